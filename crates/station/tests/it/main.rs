//! Events, units and stations on this machine and in virtual time.

mod adopt;
mod files;
mod gone;
#[path = "../../../device/tests/it/process.rs"]
#[expect(dead_code, reason = "the device crate's tests use more of it")]
mod process;
mod property;
mod publish;
mod source;
mod station;
mod stopped;
mod unit;

use std::io::Write;
use std::path::Path;

use hairspring_device::Protocol;
use hairspring_time::{Host, Timebase};

/// Says that a test cannot run here, in the form that `cargo xtask test` counts.
fn skip(test: &str, reason: &str) {
    // Not through `eprintln!`, which the test harness captures.
    let _ = writeln!(std::io::stderr(), "test-skip: {test}: {reason}");
}

fn timebase() -> Timebase<Host> {
    Timebase::calibrate(Host).expect("a time base")
}

/// What a child process does, by the name of its job.
fn do_job(name: &str, folder: &Path, _protocol: Protocol, ready: &dyn Fn()) {
    let timebase = timebase();
    ready();
    match name {
        "publish" => publish::publish(folder),
        "survive" => gone::survive(folder, &timebase),
        "events" => stopped::events(&timebase),
        other => panic!("no job {other}"),
    }
}
