//! Boards, locks and pulses on this machine, with real processes.

mod exposure;
mod gone;
mod instrument;
mod lock;
mod process;
mod pulse;
#[path = "../../examples/instrument_simulator/simulator.rs"]
mod simulator;
mod source;
mod station;
mod stopped;
mod unit;

use std::io::Write;

use hairspring_device::{AccessTimes, Lines, Protocol, VirtualBoard};
use hairspring_time::{Host, Timebase};

/// Says that a test cannot run here, in the form that `cargo xtask test` counts.
fn skip(test: &str, reason: &str) {
    // Not through `eprintln!`, which the test harness captures.
    let _ = writeln!(std::io::stderr(), "test-skip: {test}: {reason}");
}

fn timebase() -> Timebase<Host> {
    Timebase::calibrate(Host).expect("a time base")
}

/// A board in a folder; the same for all who name the same.
fn board<'t>(folder: &std::path::Path, protocol: Protocol, timebase: &'t Timebase<Host>) -> VirtualBoard<'t, Host> {
    let opened = VirtualBoard::open(&folder.join("board"), AccessTimes::ZERO, Lines(0), protocol, timebase);
    opened.expect("a board")
}
