//! Delays that are not early although the kernel's clock changes its rate under them.
//!
//! A calibration knows the past. NTP may change the rate of the kernel's clock at any moment after it: `adjtimex` by
//! 500 ppm, chrony by up to 100,000. Code that believes the calibration then ends a delay early by the change times the
//! request.

use hairspring_machine::sim::{Disturbance, Script};
use hairspring_time::{Instant, LongDelay, Machine, Nanos, Report, Sim, Timebase};

use super::{ODD_COSTS, calibrated, disturb_in, micros};

/// Changes of the rate in parts per 10⁹: the least that a look at the clock reveals, those of NTP, and the most of
/// chrony.
const CHANGES: [i64; 8] = [-100_000_000, -1_000_000, -500_000, -9_000, 9_000, 500_000, 1_000_000, 100_000_000];
/// From the least request that is confirmed by the kernel's clock to the most that may be polled.
const POLLED: [i64; 6] = [20_000, 20_001, 27_183, 100_000, 314_159, 1_000_000];
const LONG: [i64; 10] =
    [0, 700, 20_000, 27_183, 299_999, 1_000_000, 10_000_001, 300_000_000, 1_000_000_000, 60_000_000_000];
/// When the change comes, in parts of the request: before it, at several moments within it, and right before its end.
const PHASES: [f64; 6] = [-0.5, 0.0, 0.01, 0.37, 0.9, 0.999];

/// Changes the rate of the kernel's clock after `phase` of the request; if `phase` is negative, changes it at once and
/// lets that time pass.
fn change_rate(sim: &Sim, change: i64, phase: f64, request: Nanos) {
    let wait = Nanos::new((request.count() as f64 * phase) as i64);
    disturb_in(sim, wait.max(Nanos::ZERO), Disturbance::Drift(change));
    sim.work((-wait).max(Nanos::ZERO));
}

#[track_caller]
fn check_report(report: &Report, passed: Nanos) {
    assert!(report.late >= Nanos::ZERO && report.actual >= report.requested, "{report:?}");
    assert!(report.actual <= passed, "{passed} have passed, {report:?}");
}

/// Checks a delay for a time by the kernel's clock.
#[track_caller]
fn check_for(
    change: i64,
    phase: f64,
    request: i64,
    delay: impl Fn(&mut LongDelay<'_, Sim>, &Timebase<Sim>, Nanos) -> Report,
) {
    let request = Nanos::new(request);
    let (sim, timebase) = calibrated(Script { costs: ODD_COSTS, ..Script::default() });
    let mut long = LongDelay::new(&timebase);
    change_rate(&sim, change, phase, request);
    let before = sim.monotonic();
    let report = delay(&mut long, &timebase, request);
    let passed = sim.monotonic() - before;
    assert!(passed >= request, "{passed} of {request} at {change} ppb from {phase} on: {report:?}");
    check_report(&report, passed);
}

/// Checks a delay until an instant: it ends by the kernel's clock and by the scale of the time base, and its reported
/// lateness is true.
#[track_caller]
fn check_until(
    change: i64,
    phase: f64,
    request: i64,
    delay: impl Fn(&mut LongDelay<'_, Sim>, &Timebase<Sim>, Instant) -> Report,
) {
    let request = Nanos::new(request);
    let (sim, timebase) = calibrated(Script { costs: ODD_COSTS, ..Script::default() });
    let mut long = LongDelay::new(&timebase);
    change_rate(&sim, change, phase, request);
    let before = sim.monotonic();
    let deadline = timebase.now() + request;
    let report = delay(&mut long, &timebase, deadline);
    let over = timebase.now().since(deadline).expect("one epoch");
    let kernel = sim.monotonic();
    let what = format!("{request} at {change} ppb from {phase} on: {report:?}");
    assert!(over >= Nanos::ZERO, "early by {} on its own scale, {what}", -over);
    assert!(kernel >= deadline, "early by the kernel's clock, {what}");
    assert!(kernel - before >= request, "the time did not pass by the kernel's clock, {what}");
    assert!(report.late >= Nanos::ZERO, "{what}");
    // The reported lateness is the later of the two, to the duration of the readings here.
    let late = over.max(kernel - deadline);
    assert!((late - report.late).count().abs() < 1_000, "late by {late}, {what}");
}

fn sweep(requests: &[i64], check: impl Fn(i64, f64, i64)) {
    for change in CHANGES {
        for phase in PHASES {
            for request in requests {
                check(change, phase, *request);
            }
        }
    }
}

/// Regression: `delay` believed the rate of its calibration to the end. After `adjtimex` had changed the rate by −500
/// ppm, delays of 99 ms returned up to 45 µs early, with a clean verdict.
#[test]
fn a_delay_of_twenty_microseconds_or_more_is_never_early_whatever_the_kernels_rate_does() {
    sweep(&POLLED, |change, phase, request| {
        check_for(change, phase, request, |_, timebase, request| timebase.delay(request).expect("in bounds"));
    });
}

#[test]
fn a_delay_of_a_tenth_of_a_second_is_never_early_whatever_the_kernels_rate_does() {
    for change in CHANGES {
        check_for(change, 0.01, 99_000_000, |_, timebase, request| timebase.delay(request).expect("in bounds"));
        check_until(change, 0.01, 90_000_000, |_, timebase, deadline| {
            timebase.delay_until(deadline).expect("this epoch")
        });
    }
}

/// The poll of the counter ends early enough for a rate that is wrong by 244 ppm; the kernel's clock ends the delay.
#[test]
fn a_delay_is_not_late_while_the_kernels_clock_runs_faster_than_it_did_by_less_than_244_ppm() {
    for request in [20, 50, 90].map(super::millis) {
        for change in [100_000, 200_000, 230_000] {
            let (sim, timebase) = calibrated(Script { costs: ODD_COSTS, ..Script::default() });
            disturb_in(&sim, Nanos::ZERO, Disturbance::Drift(change));
            let report = timebase.delay(request).expect("in bounds");
            assert!(report.late < Nanos::new(100), "{request} at {change} ppb: {report:?}");
        }
    }
}

#[test]
fn a_delay_with_a_budget_is_never_early_whatever_the_kernels_rate_does() {
    for budget in [Nanos::ZERO, micros(3), micros(90)] {
        sweep(&POLLED, |change, phase, request| {
            let delay = |_: &mut LongDelay<'_, Sim>, timebase: &Timebase<Sim>, request| {
                timebase.delay_polling(request, budget).expect("in bounds")
            };
            check_for(change, phase, request, delay);
        });
    }
}

#[test]
fn delay_until_ends_by_both_clocks_whatever_the_kernels_rate_does() {
    sweep(&POLLED, |change, phase, request| {
        check_until(change, phase, request, |_, timebase, deadline| {
            timebase.delay_until(deadline).expect("this epoch")
        });
    });
}

#[test]
fn a_long_delay_is_never_early_whatever_the_kernels_rate_does() {
    sweep(&LONG, |change, phase, request| {
        check_for(change, phase, request, |long, _, request| long.delay(request).expect("in bounds"));
    });
}

/// Regression: a long delay until an instant ended when the time base's own scale had got there or when the kernel's
/// clock read what the scale had promised before the change. With 100 ppm it ended 4.2 ms before its target with a
/// lateness of 0, or 3.7 ms early by the kernel's clock.
#[test]
fn a_long_delay_until_an_instant_ends_by_both_clocks_whatever_the_kernels_rate_does() {
    sweep(&LONG, |change, phase, request| {
        check_until(change, phase, request, |long, _, deadline| long.delay_until(deadline).expect("this epoch"));
    });
}

/// Regression: after a change of the rate a deadline that had just passed was late by how far the two clocks were
/// apart, with a clean verdict.
#[test]
fn a_deadline_that_has_passed_by_one_clock_only_says_that_the_rate_has_changed() {
    for (ppb, rerated) in [(0, false), (-9_000, true), (9_000, true)] {
        let (sim, timebase) = calibrated(Script::default());
        disturb_in(&sim, Nanos::ZERO, Disturbance::Drift(ppb));
        sim.sleep_until(sim.monotonic() + Nanos::from_secs(10));
        let deadline = timebase.now() - if ppb < 0 { micros(95) } else { micros(1) };
        for report in [timebase.delay_until(deadline), LongDelay::new(&timebase).delay_until(deadline)] {
            let report = report.expect("this epoch");
            assert_eq!((report.actual, report.verdict.rerated), (Nanos::ZERO, rerated), "{ppb}: {report:?}");
            assert!(!rerated || report.late > micros(80), "{ppb}: {report:?}");
        }
    }
}
