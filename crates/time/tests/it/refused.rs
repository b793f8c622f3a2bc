//! Requests that no delay can mean are refused at once, with a remedy.

use hairspring_machine::sim::{Disturbance, Script};
use hairspring_time::{DelayError, LongDelay, Machine, Nanos, POLL_MOST, REQUEST_MOST};

use super::{calibrated, millis};

#[track_caller]
fn check<T: std::fmt::Debug>(result: Result<T, DelayError>, expected: DelayError, says: &str) {
    let error = result.expect_err("this must be refused");
    assert_eq!(error, expected);
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn requests_that_no_delay_can_mean_are_refused_and_nothing_is_waited_for() {
    let (sim, timebase) = calibrated(Script::default());
    let mut long = LongDelay::new(&timebase);
    let before = sim.true_time();
    for negative in [Nanos::new(-1), -Nanos::MAX, Nanos::new(i64::MIN)] {
        check(timebase.delay(negative), DelayError::Negative(negative), "negative");
        check(timebase.delay_polling(negative, Nanos::MAX), DelayError::Negative(negative), "negative");
        check(long.delay(negative), DelayError::Negative(negative), "negative");
    }
    for absurd in [REQUEST_MOST + Nanos::new(1), Nanos::MAX] {
        check(timebase.delay(absurd), DelayError::Absurd(absurd), "100 days");
        check(timebase.delay_polling(absurd, Nanos::MAX), DelayError::Absurd(absurd), "100 days");
        check(long.delay(absurd), DelayError::Absurd(absurd), "100 days");
        assert!(long.delay_until(timebase.now() + absurd + millis(1)).is_err());
    }
    assert!(sim.true_time() - before < millis(1));
}

#[test]
fn more_than_a_tenth_of_a_second_of_polling_must_be_asked_for() {
    let (_, timebase) = calibrated(Script::default());
    let long = POLL_MOST + Nanos::new(1);
    check(timebase.delay(long), DelayError::TooLongToPoll(long), "LongDelay");
    check(timebase.delay_polling(long, POLL_MOST), DelayError::TooLongToPoll(long), "LongDelay");
    let far = timebase.now() + millis(101);
    assert!(matches!(timebase.delay_until(far), Err(DelayError::TooLongToPoll(_))));
    let report = timebase.delay_polling(long, Nanos::MAX).expect("asked for");
    assert!(report.verdict.is_clean() && report.actual >= long, "{report:?}");
}

#[test]
fn a_delay_from_a_moment_in_the_past_is_refused_by_what_is_left_of_it() {
    let (sim, timebase) = calibrated(Script::default());
    let began = sim.monotonic();
    check(timebase.delay_since(began, -millis(1)), DelayError::Negative(-millis(1)), "negative");
    assert!(matches!(timebase.delay_since(began, millis(101)), Err(DelayError::TooLongToPoll(_))));
    sim.sleep_until(began + millis(60));
    let report = timebase.delay_since(began, millis(101)).expect("40 ms are left");
    assert!(!report.late.is_negative() && sim.monotonic() >= began + millis(101), "{report:?}");
    let report = timebase.delay_since(began, millis(1)).expect("it has passed");
    assert!(report.late >= millis(99), "{report:?}");
}

/// Regression: the distance of an instant near the beginning of time overflowed and became one in the far future.
#[test]
fn distances_and_moments_beyond_the_scale_saturate() {
    let (_, timebase) = calibrated(Script::default());
    let now = timebase.now();
    let later = timebase.now();
    assert_eq!((now - Nanos::MAX).since(later), Ok(Nanos::new(i64::MIN)));
    assert_eq!((now + Nanos::MAX).since(now - Nanos::MAX), Ok(Nanos::MAX));
}

#[test]
fn an_instant_of_another_time_base_is_no_deadline() {
    let (_, timebase) = calibrated(Script::default());
    let (_, other) = calibrated(Script { counter_start: 77, ..Script::default() });
    let foreign = other.now() + millis(1);
    check(timebase.delay_until(foreign), DelayError::OtherEpoch, "another epoch");
    check(LongDelay::new(&timebase).delay_until(foreign), DelayError::OtherEpoch, "another epoch");
    assert!(timebase.now().since(foreign).is_err());
}

#[test]
fn a_reading_of_the_kernels_clock_is_a_deadline_that_neither_clock_is_before() {
    // Our scale ahead of the kernel's clock, and behind it.
    for drift in [-40_000, 0, 40_000] {
        let (sim, timebase) = calibrated(Script::default());
        sim.disturb(sim.true_time(), Disturbance::Drift(drift));
        sim.sleep_until(sim.monotonic() + millis(50));
        let timebase = timebase.refine().timebase;
        let short = sim.monotonic() + Nanos::from_micros(300);
        let report = timebase.delay_until(short).expect("soon");
        assert!(!report.late.is_negative(), "{drift}: {report:?}");
        assert!(sim.monotonic() >= short && timebase.now() >= short, "{drift}: {report:?}");
        let long = sim.monotonic() + millis(30);
        let report = LongDelay::new(&timebase).delay_until(long).expect("in bounds");
        assert!(!report.late.is_negative(), "{drift}: {report:?}");
        assert!(sim.monotonic() >= long && timebase.now() >= long, "{drift}: {report:?}");
    }
}
