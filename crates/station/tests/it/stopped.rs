//! A process that is stopped (`SIGSTOP`) and goes on later: the events in between are missed, and counted.

use std::sync::atomic::AtomicBool;

use hairspring_machine::{Host, Nanos};
use hairspring_station::source::PreciseTimer;
use hairspring_station::{Activation, SchedulingUnit, Stop};
use hairspring_time::Timebase;
use testing::process::{stop_now_and_then, until_told};

#[test]
fn events_of_the_time_in_which_a_process_was_stopped_are_missed_and_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    stop_now_and_then("events", folder.path(), "plain");
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
        let timer = PreciseTimer::new(period, timebase, &stop).expect("a timer");
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
        // The numbers went on during the stop, with the time that passed.
        let (Some((first, began)), Some((last, ended))) = (first, last) else { panic!("no event") };
        let passed = ended.since(began).expect("one epoch");
        let counted = period * i64::try_from(last - first).expect("few");
        assert!((passed - counted).count().abs() < period.count() / 100, "{passed} passed, {counted} counted");
    });
}
