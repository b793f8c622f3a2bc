//! Profiles: the first span apart, exact counts and means, and the cost of the stamps beside them.

use hairspring_machine::sim::Script;
use hairspring_time::{Nanos, Ordering, Profile, Summary, Ticks};

use super::{calibrated, micros};

/// A machine whose counter ticks once per nanosecond and whose stamps cost 13 ns ordered, 8 ns unordered.
fn script() -> Script {
    Script { rate_hz: 1_000_000_000, ..Script::default() }
}

/// Profiles pieces of work of these lengths.
fn profiled(ordering: Ordering, lengths: &[i64]) -> Summary {
    let (sim, timebase) = calibrated(script());
    let mut profile = Profile::new(&timebase, ordering);
    for length in lengths {
        profile.span(|| sim.work(Nanos::new(*length)));
    }
    profile.summary()
}

/// Whether a figure is this one, but for the rounding of a calibrated scale and the three digits of the histogram.
#[track_caller]
fn near(figure: Option<Nanos>, expected: i64) {
    let figure = figure.expect("a figure").count();
    assert!((figure - expected).abs() <= 1 + expected / 500, "{figure} instead of {expected}");
}

#[test]
fn a_profile_without_spans_has_no_figures() {
    let summary = profiled(Ordering::Ordered, &[]);
    assert_eq!(summary.count, 0);
    assert_eq!((summary.first, summary.min, summary.median, summary.max, summary.mean), (None, None, None, None, None));
}

#[test]
fn the_first_span_is_kept_apart_and_is_in_no_other_figure() {
    let one = profiled(Ordering::Ordered, &[90_000]);
    assert_eq!((one.count, one.min, one.mean), (1, None, None));
    near(one.first, 90_013);
    let many = profiled(Ordering::Ordered, &[90_000, 100, 200, 300, 400, 500]);
    assert_eq!(many.count, 6);
    near(many.first, 90_013);
    near(many.min, 113);
    near(many.median, 313);
    near(many.max, 513);
    near(many.mean, 313);
}

#[test]
fn the_mean_is_computed_from_exact_sums() {
    // A histogram of three digits would put these into buckets 1 µs wide.
    let lengths: Vec<i64> = std::iter::once(0).chain((0..1_000).map(|n| 1_000_000 + n)).collect();
    let mean = profiled(Ordering::Ordered, &lengths).mean.expect("a thousand spans").count();
    // 999.5 and the stamps; the scale is good to some 10 ppm.
    assert!((mean - 1_000_512).abs() <= 25, "{mean}");
}

#[test]
fn the_cost_of_the_stamps_is_stated_and_not_subtracted() {
    for (ordering, cost) in [(Ordering::Ordered, 13), (Ordering::Unordered, 8)] {
        let summary = profiled(ordering, &[0, 0, 0, 1_000]);
        near(Some(summary.stamp_cost), cost);
        near(summary.min, cost);
        near(summary.max, 1_000 + cost);
    }
}

#[test]
fn stop_returns_the_length_and_span_returns_the_result() {
    let (sim, timebase) = calibrated(script());
    let mut profile = Profile::new(&timebase, Ordering::Ordered);
    let start = profile.start();
    sim.work(micros(5));
    near(Some(profile.stop(start)), 5_013);
    assert_eq!(profile.span(|| 42), 42);
    assert_eq!(profile.summary().count, 2);
}

#[test]
fn spans_of_hours_are_counted() {
    let summary = profiled(Ordering::Ordered, &[0, 3_600_000_000_000, 40_000_000_000_000]);
    assert_eq!(summary.count, 3);
    assert!(summary.max.expect("two spans") >= Nanos::from_secs(3_600));
}

#[test]
fn a_span_that_a_lagging_counter_makes_negative_is_the_shortest() {
    use hairspring_machine::sim::Disturbance;
    use hairspring_time::Cpu;
    let (sim, timebase) = calibrated(Script { cpu_offsets: vec![0, -5_000], ..script() });
    let mut profile = Profile::new(&timebase, Ordering::Ordered);
    profile.span(|| ());
    profile.span(|| {
        super::disturb_in(&sim, Nanos::ZERO, Disturbance::Migrate(Cpu(1)));
        sim.work(Nanos::new(10));
    });
    let summary = profile.summary();
    assert_eq!((summary.count, summary.min), (2, Some(Nanos::ZERO)));
    assert!(timebase.nanos(Ticks::new(0).since(Ticks::new(5_000))).is_negative());
}
