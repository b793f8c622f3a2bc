//! Objects that live long follow their time base when it is refined.

use hairspring_machine::Sim;
use hairspring_machine::sim::{Disturbance, Script};
use hairspring_time::{Continuity, LongDelay, Machine, Ordering, Profile, Summary, TimeSource};

use super::{calibrated, disturb_in, millis};

#[test]
fn a_long_delay_that_adopts_the_successor_has_its_smaller_bound() {
    let (sim, timebase) = calibrated(Script::default());
    let mut long = LongDelay::new(&timebase);
    let window = long.window(millis(10));
    sim.sleep_until(sim.monotonic() + millis(100));
    let refined = timebase.refine();
    assert_eq!(refined.continuity, Continuity::Continued);
    let bound_ppm = refined.timebase.calibration().bound_ppm;
    assert!(bound_ppm < timebase.calibration().bound_ppm / 4.0);
    long.adopt(refined.timebase);
    assert_eq!(long.timebase().calibration().bound_ppm, bound_ppm);
    assert_eq!(long.window(millis(10)), window, "what it has learned stays");
    let deadline = long.timebase().now() + millis(30);
    assert!(!long.delay_until(deadline).expect("the same epoch").late.is_negative());
    assert!(long.timebase().now() >= deadline && sim.monotonic() >= deadline - long.timebase().offset_bound(deadline));
}

#[test]
fn a_long_delay_that_adopts_the_successor_of_another_epoch_takes_that_epochs_instants() {
    let (sim, timebase) = calibrated(Script::default());
    let mut long = LongDelay::new(&timebase);
    disturb_in(&sim, millis(1), Disturbance::Suspend(millis(5_000)));
    sim.sleep_until(sim.monotonic() + millis(50));
    let refined = timebase.refine();
    assert_ne!(refined.timebase.epoch(), timebase.epoch());
    let (old, new) = (timebase.now() + millis(20), refined.timebase.now() + millis(20));
    assert!(long.delay_until(new).is_err());
    long.adopt(refined.timebase);
    assert!(long.delay_until(old).is_err());
    assert!(long.delay_until(new).is_ok());
}

#[test]
fn a_profile_that_adopts_the_successor_counts_at_the_new_rate() {
    let (sim, timebase) = calibrated(Script::default());
    let mut profile = Profile::new(&timebase, Ordering::Ordered);
    profile.span(|| sim.work(millis(10)));
    profile.span(|| sim.work(millis(10)));
    // The kernel's clock runs 5 % faster from now on.
    disturb_in(&sim, millis(0), Disturbance::Drift(50_000_000));
    sim.sleep_until(sim.monotonic() + millis(1));
    let before = profile.summary();
    let mut successor = timebase.refine().timebase;
    for _ in 0..3 {
        sim.sleep_until(sim.monotonic() + millis(50));
        successor = successor.refine().timebase;
    }
    profile.adopt(successor);
    let (after, ten) = (profile.summary(), before.max.expect("two spans").count());
    assert_eq!(after.count, 2);
    let gained = after.max.expect("two spans").count() - ten;
    assert!((gained - ten / 20).abs() < ten / 1_000, "{gained} of {ten}");
}

/// The counter's ticks were counted as nanoseconds of the kernel's clock: a span of 10 ms became one of 26 ms.
#[test]
fn a_profile_keeps_its_spans_when_the_successor_takes_time_from_another_source() {
    let (sim, timebase) = calibrated(Script::default());
    let mut profile = Profile::new(&timebase, Ordering::Ordered);
    for span in [1, 10, 20, 30] {
        profile.span(|| sim.work(millis(span)));
    }
    let before = profile.summary();
    disturb_in(&sim, millis(1), Disturbance::DistrustCounter);
    sim.sleep_until(sim.monotonic() + millis(50));
    let refined = timebase.refine();
    assert_eq!((timebase.source(), refined.timebase.source()), (TimeSource::Counter, TimeSource::KernelClock));
    profile.adopt(refined.timebase);
    let after = profile.summary();
    assert_eq!(after.count, 4);
    let figures = |of: Summary| [of.first, of.min, of.median, of.max, of.mean].map(|span| span.expect("spans").count());
    for (after, before) in figures(after).into_iter().zip(figures(before)) {
        // The histogram keeps three digits.
        assert!((after - before).abs() <= before / 500, "{after} of {before}");
    }
}

#[test]
fn a_long_delay_and_a_profile_may_own_their_time_base() {
    let (sim, timebase) = calibrated(Script::default());
    let (mut long, mut profile): (LongDelay<'static, Sim>, Profile<'static, Sim>) =
        (LongDelay::new(timebase.clone()), Profile::new(timebase, Ordering::Ordered));
    profile.span(|| long.delay(millis(10)).expect("in bounds"));
    assert!(profile.summary().first >= Some(millis(10)) && sim.monotonic() > long.timebase().now() - millis(1));
}
