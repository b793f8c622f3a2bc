//! Scheduling units in virtual time: every event is acted upon or counted, and every stage is stamped.

use hairspring_device::{AccessTimes, DeviceError, Guarded, Lines, Protocol, VirtualBoard};
use hairspring_machine::sim::Script;
use hairspring_machine::{Machine, Nanos, Sim};
use hairspring_station::unit::RING_USUAL;
use hairspring_station::{Activation, Counts, Event, EventSource, SchedulingUnit, Stages, Stamped, Stop, source};
use hairspring_time::{HeldTimebase, Instant, Timebase};
use proptest::prelude::*;

/// Events at given times, on a machine whose time passes only through calls. The thread receives the next event at its
/// time or when it waits again, whichever is later. Up to `depth` events wait meanwhile.
struct Scripted<'t> {
    times: Vec<Nanos>,
    at: usize,
    depth: usize,
    wake: Nanos,
    start: Instant,
    timebase: HeldTimebase<'t, Sim>,
}

impl EventSource<Sim> for Scripted<'_> {
    fn name(&self) -> String {
        "a script".to_owned()
    }

    fn adopt(&mut self, successor: Timebase<Sim>) {
        self.start = successor.now();
        self.timebase.adopt(successor);
    }

    fn wait(&mut self) -> Result<Option<Event>, DeviceError> {
        let machine = self.timebase.machine();
        let now = self.timebase.now().since(self.start).expect("one epoch");
        let over = self.times[self.at..].iter().take_while(|time| **time <= now).count();
        let missed = over.saturating_sub(self.depth);
        self.at += missed;
        let Some(time) = self.times.get(self.at) else { return Ok(None) };
        if *time > now {
            machine.sleep_until(self.start + *time + self.wake);
        }
        self.at += 1;
        let (at, wake) = (self.start + *time, self.timebase.now());
        let sequence = self.at as u64;
        let (missed, cycle) = (missed as u64, Some(sequence * 10));
        Ok(Some(Event { at, stamped: Stamped::Due, wake, waited: false, sequence, missed, cycle }))
    }
}

fn sim() -> Timebase<Sim> {
    let script = Script { wake_late: (Nanos::ZERO, Nanos::ZERO), ..Script::default() };
    let sim = Sim::new(script);
    sim.set_timer_slack(Nanos::new(1));
    Timebase::calibrate(sim).expect("a time base")
}

/// Runs a unit over events at these times; each action takes `action_takes`.
fn run(times: &[i64], action_takes: i64, late_after: i64, depth: usize) -> (Counts, Vec<Stages>, Instant) {
    let timebase = sim();
    let start = timebase.now();
    let source = Scripted {
        times: times.iter().map(|time| Nanos::from_micros(*time)).collect(),
        at: 0,
        depth,
        wake: Nanos::ZERO,
        start,
        timebase: HeldTimebase::Lent(&timebase),
    };
    let action = |activation: &mut Activation<'_, '_, Sim>| {
        activation.timebase().machine().work(Nanos::from_micros(action_takes));
        Ok(())
    };
    let (unit, mut ring) = SchedulingUnit::new(Box::new(source), Box::new(action), None, &timebase, RING_USUAL);
    let mut unit = unit.late_after(Nanos::from_micros(late_after));
    unit.run().expect("nothing fails");
    let stages = ring.by_ref().collect();
    (unit.counts(), stages, start)
}

#[test]
fn events_with_room_between_them_are_all_acted_upon_in_time() {
    let (counts, stages, start) = run(&[100, 200, 300], 50, 20, 64);
    assert_eq!(counts, Counts { events: 3, activations: 3, ..Counts::default() });
    let at: Vec<i64> = stages.iter().map(|one| one.event.since(start).expect("one epoch").count() / 1000).collect();
    assert_eq!(at, [100, 200, 300]);
    assert_eq!(stages.iter().map(|one| one.cycle).collect::<Vec<_>>(), [Some(10), Some(20), Some(30)]);
    for one in stages {
        let took = one.end.since(one.start).expect("one epoch");
        assert!(one.wake.since(one.event).is_ok_and(|late| late >= Nanos::ZERO));
        assert!(took >= Nanos::from_micros(50) && took < Nanos::from_micros(51), "{took}");
    }
}

#[test]
fn an_action_longer_than_the_period_overruns_and_everything_after_it_is_late_but_run() {
    let (counts, stages, _) = run(&[100, 200, 300, 400], 150, 20, 64);
    assert_eq!(counts, Counts { events: 4, activations: 4, overrun: 3, delayed: 3, ..Counts::default() });
    assert_eq!(stages.iter().map(|one| one.overrun).collect::<Vec<_>>(), [false, true, true, true]);
}

#[test]
fn what_the_source_cannot_keep_is_missed_and_counted() {
    let times: Vec<i64> = (1..=100).collect();
    let (counts, stages, _) = run(&times, 50, 1000, 4);
    assert!(counts.holds() && counts.events == 100 && counts.missed > 80, "{counts:?}");
    let numbers: u64 = stages.iter().map(|one| 1 + one.missed).sum();
    assert_eq!(numbers, 100);
    // Numbers continue after the missed ones.
    assert!(stages.windows(2).all(|two| two[1].sequence == two[0].sequence + 1 + two[1].missed));
}

/// Numbers as given, with no missed events stated.
struct Numbers<'t>(std::vec::IntoIter<u64>, &'t Timebase<Sim>);

impl EventSource<Sim> for Numbers<'_> {
    fn name(&self) -> String {
        "numbers".to_owned()
    }

    fn adopt(&mut self, _successor: Timebase<Sim>) {}

    fn wait(&mut self) -> Result<Option<Event>, DeviceError> {
        let now = self.1.now();
        let event = |sequence| Event {
            at: now,
            stamped: Stamped::Due,
            wake: now,
            waited: false,
            sequence,
            missed: 0,
            cycle: None,
        };
        Ok(self.0.next().map(event))
    }
}

/// An account that adds up only its own numbers would hold for any source.
#[test]
fn a_number_that_is_lost_or_comes_twice_shows_in_the_account() {
    for (numbers, holds) in [(vec![1, 2, 3], true), (vec![2, 3], false), (vec![1, 2, 4], false), (vec![1, 2, 2], false)]
    {
        let timebase = sim();
        let last = *numbers.last().expect("some");
        let source = Numbers(numbers.clone().into_iter(), &timebase);
        let action = |_: &mut Activation<'_, '_, Sim>| Ok(());
        let (mut unit, _log) = SchedulingUnit::new(Box::new(source), Box::new(action), None, &timebase, 8);
        unit.run().expect("nothing fails");
        let counts = unit.counts();
        assert_eq!((counts.holds(), counts.events), (holds, last), "{numbers:?}: {counts:?}");
    }
}

#[test]
fn a_full_ring_loses_stamps_and_says_how_many() {
    let timebase = sim();
    let source = Scripted {
        times: (1..=50).map(|n| Nanos::from_micros(n * 100)).collect(),
        at: 0,
        depth: 4,
        wake: Nanos::ZERO,
        start: timebase.now(),
        timebase: HeldTimebase::Lent(&timebase),
    };
    let action = |_: &mut Activation<'_, '_, Sim>| Ok(());
    let (mut unit, mut ring) = SchedulingUnit::new(Box::new(source), Box::new(action), None, &timebase, 8);
    unit.run().expect("nothing fails");
    assert_eq!((unit.counts().activations, unit.counts().unrecorded), (50, 42));
    assert_eq!(ring.by_ref().count(), 8);
}

#[test]
fn the_way_to_the_device_is_stamped_and_its_failure_ends_the_unit() {
    let timebase = sim();
    let folder = tempfile::tempdir().expect("a folder");
    let open = || {
        let path = folder.path().join("board");
        VirtualBoard::open(&path, AccessTimes::FESA, Lines(0b100), Protocol::Inherit, &timebase).expect("a board")
    };
    let device = Guarded::new(Box::new(open()), Box::new(open()));
    let source = |times: &[i64]| Scripted {
        times: times.iter().map(|time| Nanos::from_micros(*time)).collect(),
        at: 0,
        depth: 4,
        wake: Nanos::from_micros(7),
        start: timebase.now(),
        timebase: HeldTimebase::Lent(&timebase),
    };
    let action = |activation: &mut Activation<'_, '_, Sim>| {
        let lines = activation.device(|device| device.read())?;
        activation.timebase().machine().work(Nanos::from_micros(3));
        activation.device(|device| device.write(Lines::one(0), Lines(lines.0 ^ 1)))
    };
    let (mut unit, mut ring) =
        SchedulingUnit::new(Box::new(source(&[100, 200])), Box::new(action), Some(&device), &timebase, 8);
    let error = unit.run().expect_err("the board is not initialised");
    assert!(error.to_string().contains("call init first"), "{error}");
    // An activation that began is still counted and logged.
    assert!((unit.counts().activations, ring.next().is_some()) == (1, true) && unit.counts().holds());
    drop(unit);
    device.lock().and_then(|mut held| held.device().init()).expect("initialised");
    let (mut unit, mut ring) =
        SchedulingUnit::new(Box::new(source(&[100, 200])), Box::new(action), Some(&device), &timebase, 8);
    unit.run().expect("nothing fails");
    drop(unit);
    let stages = ring.next().expect("two");
    let access = stages.access.expect("it did something");
    let nanos = |from: Instant, to: Instant| to.since(from).expect("one epoch").count();
    assert!(nanos(stages.event, stages.wake) >= 7_000);
    let marks = [stages.event, stages.wake, stages.start, access.requested, access.granted, access.done, stages.end];
    assert!(marks.windows(2).all(|two| nanos(two[0], two[1]) >= 0), "{stages:?}");
    // A read, the work between, and a write.
    assert!(nanos(access.granted, access.done) >= 1_250 + 3_000 + 1_250, "{stages:?}");
    assert_eq!(stages.total(), access.done.since(stages.event).ok());
    assert_eq!(open().outputs().0, Lines(0b101));
    drop(device);
    assert_eq!(open().outputs().0, Lines(0b100), "it is left safe");
}

#[test]
fn a_unit_without_a_device_cannot_use_one() {
    let timebase = sim();
    let source = Scripted {
        times: vec![Nanos::from_micros(1)],
        at: 0,
        depth: 1,
        wake: Nanos::ZERO,
        start: timebase.now(),
        timebase: HeldTimebase::Lent(&timebase),
    };
    let action = |activation: &mut Activation<'_, '_, Sim>| activation.device(|device| device.read()).map(drop);
    let (mut unit, _ring) = SchedulingUnit::new(Box::new(source), Box::new(action), None, &timebase, 1);
    assert!(unit.run().is_err_and(|error| error.to_string().contains("the unit has none")));
}

#[test]
fn a_precise_timer_is_never_early_and_counts_what_it_could_not_keep() {
    let (timebase, stop) = (sim(), Stop::new().expect("a stop"));
    let timer = source::PreciseTimer::new(Nanos::from_micros(500), &timebase, &stop).expect("a timer");
    let mut long = false;
    let action = |activation: &mut Activation<'_, '_, Sim>| {
        // Every second action takes three and a half periods.
        let takes = if long { 1_750 } else { 10 };
        long = !long;
        activation.timebase().machine().work(Nanos::from_micros(takes));
        if activation.event().sequence > 40 {
            stop.set();
        }
        Ok(())
    };
    let (mut unit, mut ring) = SchedulingUnit::new(Box::new(timer), Box::new(action), None, &timebase, 64);
    unit.run().expect("nothing fails");
    let counts = unit.counts();
    assert!(counts.holds() && counts.missed > 0 && counts.overrun > 0, "{counts:?}");
    let stages: Vec<Stages> = ring.by_ref().collect();
    assert!(stages.iter().all(|one| one.start.since(one.event).is_ok_and(|late| late >= Nanos::ZERO)));
    assert!(stages.windows(2).all(|two| two[1].sequence == two[0].sequence + 1 + two[1].missed));
}

proptest! {
    #[test]
    fn every_event_is_accounted_for(
        gaps in proptest::collection::vec(1_i64..300, 1..80),
        takes in 0_i64..400,
        depth in 1_usize..6,
    ) {
        let mut at = 0;
        let times: Vec<i64> = gaps.iter().map(|gap| { at += gap; at }).collect();
        let (counts, stages, _) = run(&times, takes, 30, depth);
        prop_assert!(counts.holds());
        prop_assert_eq!(counts.events, times.len() as u64);
        prop_assert_eq!(counts.activations, stages.len() as u64);
        prop_assert_eq!(counts.delayed, stages.iter().filter(|one| one.late).count() as u64);
        // By the stamps only.
        let overrun = stages.windows(2).filter(|two| two[0].end.since(two[1].event).is_ok_and(|over| over > Nanos::ZERO));
        prop_assert_eq!(counts.overrun, overrun.count() as u64);
    }
}
