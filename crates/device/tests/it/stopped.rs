//! A process that is stopped (`SIGSTOP`) in the middle of its work, and goes on later: no result that this spoils may
//! look undisturbed.

use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_device::{Lines, Protocol, Pulse, VirtualBoard};
use hairspring_machine::{Host, Nanos};
use hairspring_time::{LongDelay, Timebase};
use testing::process::{stop_now_and_then, until_told};

/// Shortest gap that shows a stop of that length: the signal may take some time.
const SEEN: Nanos = Nanos::from_millis(30);

#[test]
fn a_pulse_that_was_stopped_is_no_shorter_and_says_that_it_was_disturbed() {
    let folder = tempfile::tempdir().expect("a folder");
    stop_now_and_then("pulses", folder.path(), Protocol::Inherit);
}

/// The process of the test above.
pub(crate) fn pulses(board: &mut VirtualBoard<'_, Host>, timebase: &Timebase<Host>) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| until_told(&is_over));
        let mut long = LongDelay::new(timebase);
        let mut stops = 0;
        for number in 0.. {
            if is_over.load(Ordering::Acquire) {
                break;
            }
            // Polled, slept and polled, and mostly slept.
            let pulse = Pulse { lines: Lines(1), width: Nanos::from_micros([150, 2_000, 20_000][number % 3]) };
            let report = pulse.fire_with(board, timebase, Some(&mut long)).expect("a pulse");
            assert!(report.at_least >= pulse.width, "{report:?}");
            if report.at_most - pulse.width > SEEN {
                assert!(report.is_disturbed(), "{report:?}");
                stops += 1;
            }
        }
        assert!(stops > 0, "it was never stopped in a pulse");
    });
}
