//! Stops the machine and lets it go on, as a hypervisor does that has something else to do.
//!
//! The guest's counter is that of this computer and goes on meanwhile. So the guest sees holes in its time, in which
//! its kernel did nothing, and this side knows for certain that it made them. They begin with the test that asks for
//! them, and end with it.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// The test of the guest, and the variable that announces the stops to it.
const TEST: &str = "hypervisor.stops";
pub(super) const TOLD: &str = "LAB_STOPS=1";
/// Times for which the machine stands and runs, in turns.
const STOPPED: Duration = Duration::from_millis(50);
const RUNNING: Duration = Duration::from_millis(100);

/// Stops the machine while its test asks for it, until it is over.
pub(super) fn stop_and_go(pid: &Path, results: &Path, over: &AtomicBool) {
    while !over.load(Ordering::Acquire) {
        sleep(RUNNING);
        let pid = fs::read_to_string(pid).ok().and_then(|text| text.trim().parse().ok());
        let Some(pid) = pid.and_then(Pid::from_raw).filter(|_| is_asked(&read(results))) else { continue };
        if kill_process(pid, Signal::STOP).is_ok() {
            sleep(STOPPED);
            // A machine that is gone needs no more.
            let _ = kill_process(pid, Signal::CONT);
        }
    }
}

fn read(results: &Path) -> String {
    fs::read(results).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Whether the test has begun and not ended.
fn is_asked(results: &str) -> bool {
    let has = |key: &str| {
        let lines = results.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        lines.into_iter().any(|line| line[key] == TEST)
    };
    has("begin") && !has("test")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_stopped_only_while_its_test_runs() {
        let [before, begun] = ["{\"tests\":[\"hypervisor.stops\"]}\n", "{\"begin\":\"hypervisor.stops\"}\n"];
        assert!(!is_asked("") && !is_asked(before));
        assert!(is_asked(&format!("{before}{begun}")));
        assert!(!is_asked(&format!("{before}{begun}{{\"test\":\"hypervisor.stops\",\"passed\":true}}\n")));
        assert!(!is_asked(&format!("{before}{}", begun.trim_end_matches("}\n"))), "half a line says nothing yet");
    }
}
