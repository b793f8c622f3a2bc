//! Timers on the time of day: never early by a clock that is set, and the effect of its steps.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use hairspring_exec::errors::{ObjectError, PeriodError};
use hairspring_exec::{Backend, Create, DayExpiry, ExecConfig, Executive, RunLimit, Services, StopReason};
use hairspring_machine::sim::{Disturbance, Script};
use hairspring_machine::{Nanos, Sim};

use crate::backends::{Bench, LIMIT, check, sim};

const SECOND: Nanos = Nanos::from_secs(1);
/// The promise: a clock that is set forward makes a timer at most this late, including a wake-up.
const LOOK: Nanos = Nanos::from_millis(1_001);

#[test]
fn a_day_timer_goes_off_once_at_its_time_of_day_and_never_before() {
    check("reached:true late:true missed:0 again:Ok(false) = Finished", |bench| {
        let log = bench.log.clone();
        let due = bench.executive.time_of_day() + Duration::from_millis(3);
        let timer = bench.executive.day_timer("once", move |ctx, expiry| {
            log.note(format!("reached:{}", ctx.time_of_day() >= due && expiry.due == due));
            log.note(format!("late:{}", expiry.late >= Nanos::ZERO));
            log.note(format!("missed:{}", expiry.missed));
        });
        let timer = timer.expect("few objects");
        timer.start(&bench.executive, due).expect("it exists");
        bench.start("late", 20, move |ctx, log| {
            while ctx.time_of_day() < due + Duration::from_millis(3) {
                ctx.delay(Nanos::from_millis(1)).expect("nobody kills it");
            }
            log.tell("again", timer.stop(ctx));
        });
    });
}

#[test]
fn a_task_starts_and_stops_a_day_timer_and_a_time_that_has_passed_comes_at_once() {
    check("Err(BadInterval) Ok(true) Ok(false) passed = Finished", |bench| {
        let log = bench.log.clone();
        let timer = bench.executive.day_timer("passed", move |_, _| log.note("passed")).expect("few objects");
        bench.start("task", 20, move |ctx, log| {
            let far = ctx.time_of_day() + Duration::from_secs(3600);
            log.note(format!("{:?}", timer.start_periodic(ctx, far, Nanos::ZERO)));
            timer.start_periodic(ctx, far, SECOND).expect("a sensible period");
            log.note(format!("{:?}", timer.stop(ctx)));
            log.note(format!("{:?}", timer.stop(ctx)));
            timer.start(ctx, SystemTime::UNIX_EPOCH).expect("it exists");
            ctx.delay(Nanos::from_millis(2)).expect("nobody kills it");
        });
    });
}

/// Runs a periodic timer on a simulated machine with these disturbances of its clock. Returns, for each run, the
/// executive's time since the beginning and the expiry.
fn runs(disturbances: &[(i64, Disturbance)], first: i64, period: Option<i64>, count: usize) -> Vec<(Nanos, DayExpiry)> {
    let machine = Sim::new(Script::default());
    let mut executive = Executive::new(Backend::Sim(machine.clone()), &ExecConfig::default()).expect("an executive");
    let (begin, day) = (executive.now(), executive.time_of_day());
    for &(millis, what) in disturbances {
        machine.disturb(machine.true_time() + Nanos::from_millis(millis), what);
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&seen);
    let timer = executive.day_timer("day", move |ctx, expiry| {
        assert!(ctx.time_of_day() >= expiry.due, "early");
        let mut notes = notes.lock().expect("nobody panics");
        notes.push((ctx.now() - begin, expiry));
        if notes.len() == count {
            ctx.stop();
        }
    });
    let (timer, first) = (timer.expect("few objects"), day + Duration::from_millis(first.unsigned_abs()));
    match period {
        None => timer.start(&executive, first).expect("it exists"),
        Some(period) => timer.start_periodic(&executive, first, Nanos::from_millis(period)).expect("sensible"),
    }
    executive.run(RunLimit::For(Nanos::from_secs(1_000)));
    let seen = seen.lock().expect("nobody panics").clone();
    // Times in the order of the clock, none twice.
    assert!(seen.windows(2).all(|pair| pair[0].1.due < pair[1].1.due), "{seen:?}");
    seen
}

/// One run, and by how much of the executive's time it came after this many milliseconds.
#[track_caller]
fn one(disturbance: (i64, Disturbance), first: i64, came: i64) -> (Nanos, DayExpiry) {
    let seen = runs(&[disturbance], first, None, 1);
    let [(at, expiry)] = seen[..] else { panic!("{seen:?}") };
    (at - Nanos::from_millis(came), expiry)
}

#[test]
fn without_a_step_it_is_as_exact_as_any_timer() {
    let (after, expiry) = one((500, Disturbance::Drift(0)), 5_250, 5_250);
    // A wake-up of the simulated machine is 20 to 60 µs late.
    assert!((Nanos::ZERO..Nanos::from_micros(100)).contains(&after), "{after}");
    assert_eq!((expiry.stepped, expiry.missed), (Nanos::ZERO, 0));
}

#[test]
fn a_clock_that_is_set_back_makes_it_wait_and_is_told() {
    let back = Nanos::from_secs(40);
    let (after, expiry) = one((2_300, Disturbance::DayStep(-back)), 5_250, 45_250);
    assert!((Nanos::ZERO..Nanos::from_micros(100)).contains(&after), "{after}");
    assert!((-back..-back + Nanos::from_micros(1)).contains(&expiry.stepped), "{expiry:?}");
}

#[test]
fn a_clock_that_is_set_forward_past_the_time_lets_it_go_off_within_a_second_and_is_told() {
    let forward = Nanos::from_secs(3_600);
    for step in [Disturbance::DayStep(forward), Disturbance::Suspend(forward)] {
        let (after, expiry) = one((2_300, step), 100_000, 2_300);
        assert!((Nanos::ZERO..LOOK).contains(&after), "{step:?}: {after}");
        assert!((forward - Nanos::from_micros(1)..=forward).contains(&expiry.stepped), "{step:?}: {expiry:?}");
        assert!(expiry.late > forward - Nanos::from_secs(100), "{step:?}: {expiry:?}");
    }
}

#[test]
fn a_clock_that_is_set_forward_to_before_the_time_leaves_it_exact() {
    let (after, expiry) = one((2_300, Disturbance::DayStep(SECOND * 90)), 100_000, 10_000);
    assert!((Nanos::ZERO..Nanos::from_micros(100)).contains(&after), "{after}");
    assert!(expiry.late < Nanos::from_micros(100), "{expiry:?}");
}

#[test]
fn periods_that_the_clock_leaps_over_are_counted_and_none_comes_twice() {
    // Every ten seconds; at 25 s the clock is set forward by a minute, at 33 s back by two.
    let steps = [(25_000, Disturbance::DayStep(SECOND * 60)), (33_000, Disturbance::DayStep(SECOND * -120))];
    let seen = runs(&steps, 10_000, Some(10_000), 5);
    let told: Vec<_> = seen.iter().map(|(_, expiry)| (expiry.missed, expiry.overruns)).collect();
    // 10 and 20 s; then 85 s, which stands for 30 to 80; 90 s at once after it; and 100 s only when the clock shows it
    // again.
    assert_eq!(told, [(0, 0), (0, 0), (5, 5), (0, 5), (0, 5)]);
    let at: Vec<_> = seen.iter().map(|(at, _)| at.count() / 1_000_000_000).collect();
    assert_eq!(at[..2], [10, 20]);
    assert!((25..=26).contains(&at[2]) && at[3] == 30 && at[4] == 160, "{at:?}");
}

#[test]
fn a_day_timer_of_another_executive_or_a_deleted_one_is_refused() {
    let mut bench = Bench::new(sim(), &ExecConfig::default());
    let other = Bench::new(sim(), &ExecConfig::default());
    let timer = bench.executive.day_timer("day", |_, _| {}).expect("few objects");
    let now = bench.executive.time_of_day();
    assert_eq!(timer.start(&other.executive, now), Err(ObjectError::NoSuchObject));
    assert_eq!(timer.stop(&other.executive), Err(ObjectError::NoSuchObject));
    let gone = timer.clone();
    let killer = bench.executive.timer("killer", move |ctx, _| {
        ctx.delete_timer(gone.timer()).expect("it exists");
        ctx.stop();
    });
    bench.executive.start_timer(killer.expect("few objects"), bench.executive.now()).expect("it exists");
    assert_eq!(bench.executive.run(RunLimit::Forever).stopped, StopReason::Asked);
    assert_eq!(timer.start(&bench.executive, now), Err(ObjectError::NoSuchObject));
    assert_eq!(timer.start_periodic(&bench.executive, now, SECOND), Err(PeriodError::NoSuchObject));
    assert_eq!(timer.stop(&bench.executive), Err(ObjectError::NoSuchObject));
    assert!(bench.executive.run(LIMIT).clean());
}

#[test]
fn a_trace_of_a_day_timer_replays() {
    let mut bench = Bench::new(sim(), &ExecConfig { trace: Some(1_000), ..ExecConfig::default() });
    let timer = bench.executive.day_timer("day", |ctx, _| ctx.stop()).expect("few objects");
    timer.start(&bench.executive, bench.executive.time_of_day() + Duration::from_secs(4)).expect("it exists");
    assert_eq!(bench.executive.run(LIMIT).stopped, StopReason::Asked);
    let trace = bench.executive.trace().expect("it was asked for");
    trace.replay().expect("the core answers as before");
}
