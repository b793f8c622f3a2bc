//! `hairspring chain`: one process of the experiment with several; for `sheet`, which starts it.

use std::ffi::OsString;
use std::io::Read;
use std::sync::Arc;

use hairspring_device::Stop;
use hairspring_suite::reaction::Chain;

use crate::exit::{Exit, Failure};

/// Reacts until its input ends, which it does with whoever started it.
pub(crate) fn run(words: &[OsString]) -> Result<Exit, Failure> {
    let wrong = || Failure::bad_request("chain is for `hairspring sheet`, which starts it".to_owned());
    let chain = Chain::from_words(words).ok_or_else(wrong)?;
    let stop = Arc::new(Stop::new().map_err(|error| Failure::failed(error.to_string()))?);
    let told = Arc::clone(&stop);
    // Not joined: a chain that was refused ends though its input goes on.
    std::thread::spawn(move || {
        let mut input = std::io::stdin();
        while matches!(input.read(&mut [0; 64]), Ok(1..)) {}
        told.set();
    });
    chain.run(&stop).map_err(|error| Failure::failed(error.to_string()))?;
    Ok(Exit::Success)
}
