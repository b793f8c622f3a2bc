//! The program that calls from Rust: the command itself, started as `caller`.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;

use hairspring_device::{DeviceError, Window};
use hairspring_machine::{Host, Machine, Nanos};
use hairspring_time::{CalibrationError, DelayError, Timebase};

use crate::interleaving::median;

/// Calls in a block, for calls that cost less than a stamp.
const BLOCK: usize = 100;
/// The delay.
const DELAY: Nanos = Nanos::from_micros(1);
/// The words that are read and written, as offsets in bytes. They lie on two pages, because a first access maps its
/// page.
const READ_AT: usize = 64;
const WRITTEN_AT: usize = 4096 + 64;
/// Pairs of stamps with nothing between them.
const STAMPS: usize = 101;

/// Why the calls could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerError(String);

impl CallerError {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl std::fmt::Display for CallerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CallerError {}

impl From<DeviceError> for CallerError {
    fn from(error: DeviceError) -> Self {
        Self(error.to_string())
    }
}

impl From<DelayError> for CallerError {
    fn from(error: DelayError) -> Self {
        Self(error.to_string())
    }
}

impl From<CalibrationError> for CallerError {
    fn from(error: CalibrationError) -> Self {
        Self(error.to_string())
    }
}

/// Makes the calls of the chapter *Callers* in this process: a first one of each and `calls` later ones. They should be
/// the first such calls of the process. Returns their times as the JSON that the chapter reads.
///
/// # Errors
/// No time base; `mapped` cannot be mapped.
pub fn call(mapped: &Path, calls: usize) -> Result<String, CallerError> {
    let timebase = Timebase::calibrate(Host)?;
    let window = Window::map(mapped, 0, None)?;
    // Warms the clock that times the calls, for first and later ones.
    for _ in 0..BLOCK {
        black_box(Host.monotonic());
    }
    let pairs = (0..STAMPS).map(|_| {
        let before = Host.monotonic();
        (Host.monotonic() - before).count() as f64
    });
    let stamp_ns = median(&pairs.collect::<Vec<_>>());
    let mut said = format!(r#"{{"language":"rust","stamp_ns":{stamp_ns}"#);
    let mut tell = |call: &str, taken: Taken| {
        let Taken { block, first, later } = taken;
        // Writing to a text cannot fail.
        let _ = write!(said, r#","{call}":{{"block":{block},"first_ns":{first},"later_ns":{later:?}}}"#);
    };
    tell("now", taken(calls, BLOCK, || Ok::<_, CallerError>(timebase.now()))?);
    tell("delay_1us", taken(calls, 1, || timebase.delay(DELAY))?);
    tell("word_read", taken(calls, BLOCK, || window.read(READ_AT))?);
    tell("word_write", taken(calls, BLOCK, || window.write(WRITTEN_AT, 1))?);
    said.push('}');
    Ok(said)
}

/// Makes the first call of this process to a clock, named by its segment in ids, and returns its time in the form that
/// the chapter *Clocks* reads.
///
/// # Errors
/// No such clock; no time base.
pub fn first(clock: &str) -> Result<String, CallerError> {
    crate::clocks::first_call(clock).map_err(CallerError::new)
}

/// Times of calls, in nanoseconds.
struct Taken {
    block: usize,
    first: f64,
    later: Vec<f64>,
}

/// Times one call, then `calls` calls in blocks of `block`; returns the time of each call.
fn taken<R, E>(calls: usize, block: usize, call: impl Fn() -> Result<R, E>) -> Result<Taken, E> {
    let timed = |calls: usize| {
        let before = Host.monotonic();
        for _ in 0..calls {
            black_box(call()?);
        }
        Ok((Host.monotonic() - before).count() as f64 / calls as f64)
    };
    let blocks = (calls / block).max(1);
    Ok(Taken { block, first: timed(1)?, later: (0..blocks).map(|_| timed(block)).collect::<Result<_, E>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_made_and_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let mapped = folder.path().join("mapped");
        assert!(call(&mapped, 1).is_err(), "there is no file");
        std::fs::write(&mapped, [0; 8192]).expect("a file");
        let said = call(&mapped, 300).expect("calls");
        let samples = crate::callers::understood(&said, "rust").expect("the chapter reads it");
        assert_eq!(samples.len(), 4);
        let later = |call: &str| {
            samples.iter().find(|(of, _)| *of == call).map(|(_, times)| times.later.clone()).expect("it was told")
        };
        assert!(later("delay_1us").iter().all(|ns| *ns >= 1000.0), "never early: {said}");
        assert!(later("now").len() == 3 && later("now").iter().all(|ns| *ns > 0.0), "{said}");
        assert_eq!(std::fs::read(&mapped).expect("a file")[WRITTEN_AT], 1, "the word was written");
    }
}
