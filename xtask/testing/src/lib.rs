//! Shared parts of the tests of several crates: skips that are counted, other processes, and sheets of real machines.

pub mod process;
pub mod sheets;

use std::fmt::Display;
use std::io::Write;

/// Reports that a test, or a part of it, cannot run here, in the form that `cargo xtask test` counts.
pub fn skip(test: &str, reason: impl Display) {
    // One write, and not through `eprintln!`, which the test harness captures.
    let _ = std::io::stderr().write_all(format!("test-skip: {test}: {reason}\n").as_bytes());
}
