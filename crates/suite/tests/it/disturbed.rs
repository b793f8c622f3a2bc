//! The sheet reports every disturbance of the clocks or of the thread during a run.

use std::sync::atomic::{AtomicU32, Ordering};

use hairspring_machine::sim::{Disturbance, Script};
use hairspring_machine::{Nanos, Sim};
use hairspring_sheet::Sheet;
use hairspring_suite::Effort;

use crate::{figure, request, take_watched, warnings};

/// One short probe of each chapter, by its name in the progress reports.
const PROBES: [&str; 4] = ["cost of counter, bare", "guaranteed minimum of 5us", "sleeps of 1ms", "wake-up every"];

/// A sheet with one short probe of each chapter, during which something happens once, `after` the probe with this name
/// has begun.
fn disturbed(probe: &str, after: Nanos, disturbance: Disturbance) -> Sheet {
    let sim = Sim::new(Script::default());
    let rows = [
        "clocks.read.counter.later",
        "clocks.calibration",
        "delays.minimum.other.5us",
        "sleeps.nanosleep.1ms",
        "disturbance.wakeup_other",
    ];
    let times = AtomicU32::new(0);
    let sheet = take_watched(&sim, &request(&rows, Effort::Quick), |progress, _| {
        if progress.measuring.starts_with(probe) && times.fetch_add(1, Ordering::Relaxed) == 0 {
            sim.disturb(sim.true_time() + after, disturbance);
        }
    });
    assert_eq!(times.into_inner(), 1, "{probe} is measured once");
    sheet
}

/// Checks that the head has one warning, with these words, whichever probe it was.
#[track_caller]
fn check(disturbance: Disturbance, expected: &str) {
    for probe in PROBES {
        let sheet = disturbed(probe, Nanos::from_millis(1), disturbance);
        let warnings = warnings(&sheet);
        assert!(warnings.len() == 1 && warnings[0].contains(expected), "{probe}: {warnings:?}");
    }
}

/// Regression: the first chapter refined the time base for its own calibration and dropped the findings of that, so
/// that a suspend during that chapter was not reported.
#[test]
fn a_suspend_is_told_at_the_head_whichever_chapter_it_falls_into() {
    check(Disturbance::Suspend(Nanos::from_secs(90)), "suspended for about 90 s");
}

#[test]
fn a_step_of_the_kernels_clock_is_told_at_the_head() {
    check(Disturbance::ClockStep(Nanos::from_millis(30)), "parted by 30 ms");
}

#[test]
fn a_kernel_that_gives_up_the_counter_is_told_at_the_head() {
    check(Disturbance::DistrustCounter, "gave up the counter");
}

#[test]
fn a_change_of_the_kernels_rate_is_told_at_the_head() {
    let sheet = disturbed(PROBES[0], Nanos::from_millis(1), Disturbance::Drift(200_000));
    assert!(warnings(&sheet).iter().any(|text| text.contains("changed the rate")), "{:?}", warnings(&sheet));
}

#[test]
fn a_preemption_during_a_delay_stands_in_the_verdicts_of_its_row() {
    let sheet = disturbed("guaranteed minimum", Nanos::from_millis(1), Disturbance::Preempt(Nanos::from_micros(300)));
    let late = figure(&sheet, "delays.minimum.other.5us.late");
    assert_eq!(late.verdicts.get("preempted"), Some(&1));
    assert_eq!(late.verdicts.values().sum::<u64>(), late.n);
    assert!(late.max >= Some(290e3), "{:?}", late.max);
}

#[test]
fn periods_that_were_slept_through_are_missed_and_their_lateness_counts() {
    let sheet = disturbed("wake-up", Nanos::from_millis(10), Disturbance::LateWake(Nanos::from_micros(5_500)));
    assert_eq!(figure(&sheet, "disturbance.wakeup_other.missed").max, Some(5.0));
    let late = figure(&sheet, "disturbance.wakeup_other.late");
    // A quick chapter has 2 s, of which this probe takes 24 %; no period is left out.
    assert_eq!((late.n, late.max >= Some(5.5e6)), (479, true), "{} samples up to {:?}", late.n, late.max);
}

#[test]
fn a_sleep_that_a_signal_ended_is_no_sample() {
    let sheet = disturbed("sleeps", Nanos::from_micros(500), Disturbance::Signal);
    let late = figure(&sheet, "sleeps.nanosleep.1ms.late");
    assert!(late.min >= Some(0.0), "{:?}", late.min);
}
