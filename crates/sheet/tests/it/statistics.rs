//! Figures and their histograms.

use hairspring_sheet::{Figure, Histogram, LARGEST, Method, Unit};
use proptest::prelude::*;

fn figure(samples: &[f64]) -> Figure {
    Figure::from_samples(Unit::Ns, Method::Stamp, &mut samples.to_vec())
}

/// Numbers as measurements have them, with the borders between buckets and a few extremes.
fn sample() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => -1e6..1e6f64,
        2 => (-60i32..60, any::<bool>()).prop_map(|(e, minus)| 2f64.powi(e) * if minus { -1.0 } else { 1.0 }),
        1 => (-60i32..60).prop_map(|e| 2f64.powi(e).next_down()),
        1 => prop::num::f64::NORMAL.prop_filter("a possible sample", |x| x.abs() <= LARGEST),
        1 => prop::num::f64::SUBNORMAL,
        1 => Just(0.0),
        1 => Just(-0.0),
    ]
}

#[test]
fn a_statistic_that_n_does_not_support_is_null() {
    // In a scrambled order: ascending samples would depend on each other.
    let of = |n: usize| figure(&(0..n).map(|i| (i * 7_919 % n) as f64).collect::<Vec<_>>());
    let supported = |n: usize| {
        let f = of(n);
        [f.min, f.median, f.max, f.mean, f.q1, f.q3, f.mad, f.p1, f.p99, f.p999].map(|s| u8::from(s.is_some()))
    };
    assert_eq!(supported(0), [0; 10]);
    assert_eq!(supported(3), [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(supported(299), [1, 1, 1, 1, 1, 1, 1, 0, 0, 0]);
    assert_eq!(supported(2_999), [1, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
    assert_eq!(supported(3_000), [1; 10]);
    assert_eq!((of(5).median_interval, of(6).median_interval), (None, Some([0.0, 5.0])));
}

#[test]
fn the_tails_need_independent_samples_and_single_events() {
    // Each value stays for a hundred samples: 3,000 of them are worth 30.
    let slow: Vec<f64> = (0..3_000).map(|i| f64::from(i / 100 * 7_919 % 31)).collect();
    let of_slow = figure(&slow);
    assert!(of_slow.n_effective.is_some_and(|n| n < 60.0), "{:?}", of_slow.n_effective);
    assert_eq!((of_slow.p1, of_slow.p99, of_slow.p999), (None, None, None));
    let mut quick: Vec<f64> = (0..3_000).map(|i| f64::from(i * 7_919 % 3_000)).collect();
    let means = Figure::from_samples(Unit::Ns, Method::Mean, &mut quick.clone());
    assert_eq!((means.p1, means.p99, means.p999), (None, None, None));
    let events = Figure::from_samples(Unit::Ns, Method::Stamp, &mut quick);
    assert!(events.p1.is_some() && events.p99.is_some() && events.p999.is_some());
}

#[test]
fn the_statistics_of_a_small_set_are_those_worked_out_by_hand() {
    let figure = figure(&[8.0, 1.0, 4.0, 2.0, 100.0]);
    assert_eq!((figure.n, figure.min, figure.max), (5, Some(1.0), Some(100.0)));
    assert_eq!((figure.q1, figure.median, figure.q3), (Some(2.0), Some(4.0), Some(8.0)));
    // The deviations from 4 are, in order, 0, 2, 3, 4 and 96.
    assert_eq!((figure.mad, figure.mean), (Some(3.0), Some(23.0)));
}

#[test]
fn samples_that_are_no_numbers_are_left_out_and_named() {
    let figure = figure(&[f64::NAN, 3.0, f64::INFINITY, 1.0, f64::NEG_INFINITY, 2.0, -f64::NAN, 1e300]);
    assert_eq!((figure.n, figure.min, figure.median, figure.max), (3, Some(1.0), Some(2.0), Some(3.0)));
    assert_eq!(figure.caveats, ["5 samples were not finite numbers and are left out"]);
    let nothing = Figure::single(Unit::Ns, Method::Derived, f64::NAN).with_overhead(f64::INFINITY);
    assert_eq!((nothing.n, nothing.median, nothing.overhead), (0, None, None));
    assert_eq!(nothing.caveats.len(), 2);
}

#[test]
fn the_interval_of_the_median_holds_it_in_95_percent_at_every_n() {
    // Exactly: the interval between two order statistics misses the median only if too few or too many samples lie
    // below.
    for n in 6..=1000usize {
        let [low, high] = figure(&(0..n).map(|i| i as f64).collect::<Vec<_>>()).median_interval.unwrap();
        let mut probability = 0.5f64.powi(n as i32 / 2) * 0.5f64.powi(n as i32 - n as i32 / 2);
        let mut covered = 0.0;
        for below in 0..n {
            if below as f64 > low && below as f64 <= high {
                covered += probability;
            }
            probability *= (n - below) as f64 / (below + 1) as f64;
        }
        assert!(covered >= 0.95, "n = {n}: {covered}");
    }
}

#[test]
fn buckets_at_powers_of_two_do_not_overlap_on_either_side_of_zero() {
    let histogram = Histogram::from_sorted(&[-2.125, -2.0, -1.95, -1.0, -0.99, 0.0, 0.99, 1.0, 1.95, 2.0, 2.125]);
    let bounds: Vec<(f64, f64)> = histogram.buckets.iter().map(|b| (b.from, b.to)).collect();
    assert!(bounds.contains(&(-2.0, -1.9375)) && bounds.contains(&(2.0, 2.125)), "{bounds:?}");
    assert!(bounds.windows(2).all(|w| w[0].1 <= w[1].0), "{bounds:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn percentiles_are_samples_in_ascending_order(samples in prop::collection::vec(sample(), 1..1500)) {
        let f = figure(&samples);
        let statistics = [f.min, f.p1, f.q1, f.median, f.q3, f.p99, f.p999, f.max];
        let statistics: Vec<f64> = statistics.into_iter().flatten().collect();
        prop_assert!(statistics.iter().all(|s| samples.contains(s)));
        prop_assert!(statistics.windows(2).all(|w| w[0] <= w[1]), "{statistics:?}");
        if let Some([low, high]) = f.median_interval {
            prop_assert!(low <= f.median.unwrap() && f.median.unwrap() <= high);
        }
        prop_assert!(f.mean.is_some_and(f64::is_finite));
    }

    #[test]
    fn every_sample_lies_in_its_bucket_and_every_bucket_is_narrow(samples in prop::collection::vec(sample(), 2..300)) {
        let f = figure(&samples);
        let histogram = f.histogram.unwrap();
        prop_assert_eq!(histogram.count(), f.n);
        for bucket in &histogram.buckets {
            let within = samples.iter().filter(|s| bucket.from <= **s && **s < bucket.to).count();
            prop_assert_eq!(within as u64, bucket.count, "{:?}", bucket);
            prop_assert!(bucket.from < bucket.to && bucket.from.is_finite() && bucket.to.is_finite());
            let inner = bucket.from.abs().min(bucket.to.abs());
            prop_assert!(inner < 1e-300 || bucket.to - bucket.from <= inner / 16.0, "{:?}", bucket);
        }
        prop_assert!(histogram.buckets.windows(2).all(|w| w[0].to <= w[1].from));
    }
}
