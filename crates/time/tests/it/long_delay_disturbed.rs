//! Long delays with disturbances: in each sleep, in each poll, between them, and at the very end.

use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::sim::{Disturbance, Script};
use hairspring_time::{Cause, Cpu, DelayError, GAP_LEAST, LongDelay, Machine, Nanos, Report};

use super::{ODD_COSTS, calibrated, delay_with_in_poll, disturb_in, micros, millis};

const REQUEST: Nanos = Nanos::from_millis(2);

/// Runs one delay of 2 ms with a disturbance at these times after its beginning.
#[track_caller]
fn delay_with(events: &[(Nanos, Disturbance)]) -> Report {
    let script = Script { cpu_offsets: vec![0, 2_600, -2_600], costs: ODD_COSTS, ..Script::default() };
    let (sim, timebase) = calibrated(script);
    let mut long = LongDelay::new(&timebase);
    for (wait, disturbance) in events {
        disturb_in(&sim, *wait, *disturbance);
    }
    let before = sim.monotonic();
    let report = long.delay(REQUEST).expect("in bounds");
    assert!(sim.monotonic() - before >= REQUEST, "early: {report:?}, {events:?}");
    assert!(report.late >= Nanos::ZERO, "{report:?}");
    report
}

/// Times all over the delay, dense near its end.
fn moments() -> impl Iterator<Item = Nanos> {
    let coarse = (0..2_000_000).step_by(9_973);
    coarse.chain((1_975_000..2_000_100).step_by(251)).chain((1_998_500..2_000_100).step_by(7)).map(Nanos::new)
}

#[test]
fn a_disturbance_at_any_moment_never_makes_a_long_delay_early_and_never_goes_untold() {
    let span = micros(40);
    for moment in moments() {
        for disturbance in [
            Disturbance::Preempt(span),
            Disturbance::Interrupt(span),
            Disturbance::Steal(span),
            Disturbance::Signal,
            Disturbance::LateWake(micros(700)),
            Disturbance::Migrate(Cpu(1)),
            Disturbance::Migrate(Cpu(2)),
        ] {
            let report = delay_with(&[(moment, disturbance)]);
            let told = !report.verdict.is_clean();
            assert!(told || report.late <= GAP_LEAST, "{moment} {disturbance:?} {report:?}");
        }
    }
}

#[test]
fn a_disturbance_before_another_one_hides_neither() {
    // An interrupt in the last poll, and one after the watched part, right at the end.
    for nanos in (1_999_200..2_000_000).step_by(11) {
        let first = (micros(1_993), Disturbance::Interrupt(micros(2)));
        let report = delay_with(&[first, (Nanos::new(nanos), Disturbance::Interrupt(micros(90)))]);
        assert!(report.verdict.gaps(Cause::Interrupted).count >= 1, "the first was not seen: {report:?}");
        assert!(report.late < micros(80) || report.verdict.lost() >= micros(80), "{nanos}: {report:?}");
    }
}

#[test]
fn a_wake_up_after_the_deadline_is_overslept() {
    for late in [micros(500), millis(5)] {
        let report = delay_with(&[(micros(1_800), Disturbance::LateWake(late))]);
        assert_eq!(report.verdict.name(), "overslept", "{report:?}");
        let overslept = report.verdict.overslept;
        assert!(
            overslept > Nanos::ZERO && overslept <= report.late && report.late - overslept < micros(3),
            "{report:?}"
        );
    }
}

#[test]
fn a_preemption_in_the_window_is_preempted() {
    let report = delay_with(&[(micros(1_990), Disturbance::Preempt(micros(100)))]);
    assert_eq!((report.verdict.name(), report.verdict.gaps(Cause::Preempted).count), ("preempted", 1), "{report:?}");
    assert!(report.late >= micros(89));
}

#[test]
fn signals_without_a_flag_do_not_end_a_delay() {
    let signals: Vec<_> = (1..200).map(|n| (micros(n * 10), Disturbance::Signal)).collect();
    let report = delay_with(&signals);
    assert!(report.late < micros(2), "{report:?}");
}

/// Runs a delay of a second that a flag may cancel, with a signal at this time.
fn cancelled(flag: bool, signal: Option<Nanos>) -> (Result<Report, DelayError>, Nanos) {
    let flag = AtomicBool::new(flag);
    let (sim, timebase) = calibrated(Script::default());
    let mut long = LongDelay::new(&timebase).cancelled_by(&flag);
    if let Some(signal) = signal {
        disturb_in(&sim, signal, Disturbance::Signal);
    }
    let slack = sim.timer_slack();
    let before = sim.true_time();
    let result = long.delay(Nanos::from_secs(1));
    assert_eq!(sim.timer_slack(), slack, "a cancelled delay gives the slack back");
    (result, sim.true_time() - before)
}

#[test]
fn a_flag_that_is_set_ends_a_delay_and_says_after_how_long() {
    for signal in [None, Some(micros(1)), Some(millis(1)), Some(millis(400))] {
        let (result, took) = cancelled(true, signal);
        let Err(DelayError::Cancelled(after)) = result else { panic!("{result:?}") };
        assert!(took < millis(1) && after <= took, "after {after}, took {took}");
    }
}

#[test]
fn a_flag_that_is_not_set_ends_nothing() {
    for signal in [None, Some(millis(400))] {
        let (result, took) = cancelled(false, signal);
        assert!(took >= Nanos::from_secs(1) && result.is_ok());
    }
}

/// Regression: a signal between the look at the flag and the sleep was lost, and the delay slept to its end. Here the
/// flag is set by another thread, without any signal, which is the same to the sleeper.
#[test]
fn a_flag_that_is_set_without_a_signal_ends_a_delay_in_the_middle() {
    let flag = AtomicBool::new(false);
    let timebase = hairspring_time::Timebase::calibrate(hairspring_time::Host).expect("this machine has a counter");
    let mut long = LongDelay::new(&timebase).cancelled_by(&flag);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(30));
            // Relaxed: the flag carries no data.
            flag.store(true, Ordering::Relaxed);
        });
        let result = long.delay(Nanos::from_secs(3_600));
        assert!(matches!(result, Err(DelayError::Cancelled(_))), "{result:?}");
    });
}

#[test]
fn a_gap_before_the_last_stretch_is_as_harmless_as_sleep() {
    let (sim, timebase) = calibrated(Script::default());
    let mut long = LongDelay::new(&timebase);
    // One after the other: the wake-ups differ, and many of the gaps fall between one and the last stretch.
    for before_end in (24..40).cycle().take(160) {
        disturb_in(&sim, REQUEST - micros(before_end), Disturbance::Interrupt(micros(3)));
        let report = long.delay(REQUEST).expect("in bounds");
        assert!(report.verdict.is_clean() && report.late < GAP_LEAST, "{before_end} µs before the end: {report:?}");
    }
}

/// The gap begins before the counter is tied to the kernel's clock for the last time, and ends this long before the
/// deadline.
#[test]
fn a_gap_that_cuts_the_last_stretch_short_is_told_although_the_delay_is_not_late() {
    for (before_end, told) in [(3, true), (6, true), (9, true), (11, false), (14, false)] {
        let gap = Disturbance::Interrupt(micros(26 - before_end));
        let report = delay_with_in_poll(&Script::default(), micros(26), gap);
        assert!(report.late < GAP_LEAST, "{before_end} µs before the end: {report:?}");
        let count = report.verdict.gaps(Cause::Interrupted).count;
        assert_eq!(count, u32::from(told), "{before_end} µs before the end: {report:?}");
    }
}

#[test]
fn a_gap_in_the_loop_that_confirms_is_told_with_its_cause() {
    let report = delay_with(&[(REQUEST - micros(1), Disturbance::Interrupt(micros(3)))]);
    assert_eq!(report.verdict.gaps(Cause::Interrupted).count, 1, "{report:?}");
    assert!(report.late > GAP_LEAST, "{report:?}");
}
