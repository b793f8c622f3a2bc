//! The hidden commands `chain` and `caller`, which `hairspring sheet` starts as processes to measure them.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use hairspring_station::Stop;
use hairspring_suite::reaction::Chain;

use crate::exit::{Exit, Failure};
use crate::output;

/// Runs one process of the chapter Reaction. It reacts until its input ends, so it ends with the process that started
/// it.
pub(crate) fn chain(words: &[OsString]) -> Result<Exit, Failure> {
    let wrong = || Failure::bad_request("`hairspring sheet` starts this command; it has no other use".to_owned());
    let chain = Chain::from_words(words).ok_or_else(wrong)?;
    let stop = Arc::new(Stop::new().map_err(|error| Failure::failed(error.to_string()))?);
    let told = Arc::clone(&stop);
    // Not joined: a chain that is refused must end while its input is still open.
    std::thread::spawn(move || {
        let mut input = std::io::stdin();
        while matches!(input.read(&mut [0; 64]), Ok(1..)) {}
        told.set();
    });
    chain.run(&stop).map_err(|error| Failure::failed(error.to_string()))?;
    Ok(Exit::Success)
}

/// Makes the calls of the chapter Callers from Rust, or the first call to a clock, and prints how long they took.
pub(crate) fn caller(mapped: Option<&Path>, calls: usize, first: Option<&str>) -> Result<Exit, Failure> {
    let said = match (first, mapped) {
        (Some(clock), _) => hairspring_suite::caller::first(clock),
        (None, mapped) => hairspring_suite::caller::call(mapped.unwrap_or(Path::new("")), calls),
    };
    let said = said.map_err(|error| Failure::failed(error.to_string()))?;
    output::print(&format!("{said}\n"))
}
