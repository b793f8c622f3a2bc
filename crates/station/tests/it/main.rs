//! Events, units and stations on this machine and in virtual time.

mod adopt;
mod files;
mod gone;
mod property;
mod publish;
mod source;
mod station;
mod stopped;
mod unit;

use std::path::Path;

use hairspring_time::{Host, Timebase};

fn timebase() -> Timebase<Host> {
    Timebase::calibrate(Host).expect("a time base")
}

/// In the test harness this is an ordinary test; it does something only in a child.
#[test]
fn a_job() {
    testing::process::do_job(do_job);
}

/// Runs the job of a child process.
fn do_job(name: &str, folder: &Path, _way: &str, ready: &dyn Fn()) {
    let timebase = timebase();
    ready();
    match name {
        "publish" => publish::publish(folder),
        "survive" => gone::survive(folder, &timebase),
        "events" => stopped::events(&timebase),
        other => panic!("no job {other}"),
    }
}
