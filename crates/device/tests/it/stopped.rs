//! A process that is stopped (`SIGSTOP`) in the middle of what it does, and goes on later: nothing that this spoils may look undisturbed.

use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hairspring_device::{Activation, Lines, Protocol, Pulse, SchedulingUnit, Stop, VirtualBoard, source};
use hairspring_machine::{Host, Nanos};
use hairspring_time::{LongDelay, Timebase};

use crate::process::Other;

/// How often a process is stopped, and for how long.
const STOPS: u32 = 12;
const STOPPED: Duration = Duration::from_millis(40);
/// What a stop of that length is seen as at least: a signal may take its time.
const SEEN: Nanos = Nanos::from_millis(30);

/// Starts a process, and stops it at moments that have nothing to do with what it does.
fn stop_now_and_then(job: &str, folder: &Path) {
    let other = Other::start(job, folder, Protocol::Inherit);
    for number in 0..STOPS {
        std::thread::sleep(Duration::from_micros(7_300 + 1_700 * u64::from(number)));
        other.signal("STOP");
        std::thread::sleep(STOPPED);
        other.signal("CONT");
    }
    other.finish();
}

/// Whether the other process wants no more: it closes our input then.
fn until_told(is_over: &AtomicBool) {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    is_over.store(true, Ordering::Release);
}

#[test]
fn a_pulse_that_was_stopped_is_no_shorter_and_says_that_it_was_disturbed() {
    let folder = tempfile::tempdir().expect("a folder");
    stop_now_and_then("pulses", folder.path());
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

#[test]
fn events_of_the_time_in_which_a_process_was_stopped_are_missed_and_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    stop_now_and_then("events", folder.path());
}

/// The process of the test above.
pub(crate) fn events(timebase: &Timebase<Host>) {
    let (stop, is_over) = (Stop::new().expect("a stop"), AtomicBool::new(false));
    let period = Nanos::from_millis(1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            until_told(&is_over);
            stop.set();
        });
        let timer = source::PreciseTimer::new(period, timebase, &stop).expect("a timer");
        let (mut first, mut last) = (None, None);
        let action = |activation: &mut Activation<'_, '_, Host>| {
            let event = activation.event();
            first.get_or_insert((event.sequence, event.at));
            last = Some((event.sequence, event.at));
            Ok(())
        };
        let (mut unit, _log) = SchedulingUnit::new(Box::new(timer), Box::new(action), None, timebase, 64);
        unit.run().expect("nothing fails");
        let counts = unit.counts();
        drop(unit);
        assert!(counts.holds() && counts.missed > 0, "{counts:?}");
        // The numbers have gone on while it was stopped: they are those of the time that has passed.
        let (Some((first, began)), Some((last, ended))) = (first, last) else { panic!("no event") };
        let passed = ended.since(began).expect("one epoch");
        let counted = period.times(i64::try_from(last - first).expect("few"));
        assert!((passed - counted).count().abs() < period.count() / 100, "{passed} passed, {counted} counted");
    });
}
