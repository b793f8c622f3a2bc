//! The hidden command `round`: `hairspring sheet` and `hairspring ab` start it as a process and read its figures.

use std::io::{BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hairspring_suite::serve_round;

use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::measure::sheet::build;

/// Measures one round. It ends when its input does, so it ends with the process that started it.
pub(crate) fn run() -> Result<Exit, Failure> {
    let interrupted = interrupt::watch()?;
    let mut asked = String::new();
    let read = std::io::stdin().lock().read_line(&mut asked);
    read.map_err(|error| Failure::failed(format!("failed to read what to measure: {error}")))?;
    let told = Arc::clone(&interrupted);
    // Not joined: a complete round ends while its input is still open.
    std::thread::spawn(move || {
        let mut input = std::io::stdin();
        while matches!(input.read(&mut [0; 64]), Ok(1..)) {}
        // Relaxed: a plain flag, which publishes no other data.
        told.store(true, Ordering::Relaxed);
    });
    let program = std::env::current_exe().ok();
    let served = serve_round(&asked, &build(), program.as_deref(), &interrupted, &mut std::io::stdout().lock());
    match served {
        Ok(true) => Ok(Exit::Success),
        Ok(false) => {
            Err(Failure::bad_request("`hairspring sheet` starts this command; it has no other use".to_owned()))
        }
        Err(error) => Err(Failure::failed(format!("failed to write to the standard output: {error}"))),
    }
}
