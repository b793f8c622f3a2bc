//! Information in samples: how many independent ones they are worth, and medians between the steps of a counter.

use hairspring_sheet::statistics::{grouped_median, n_effective};
use proptest::prelude::*;

/// Uniform numbers below 1, the same for each seed.
fn uniform(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as f64 + 0.5) / (1u64 << 31) as f64
    }
}

/// Autoregressive samples, each with the share `keeps` of the one before: 1 + `keeps` over 1 − `keeps` of them are
/// worth one.
fn autoregressive(seed: u64, n: usize, keeps: f64) -> Vec<f64> {
    let mut uniform = uniform(seed);
    let mut value = 0.0;
    (0..n)
        .map(|_| {
            let normal = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            value = keeps * value + normal;
            value
        })
        .collect()
}

/// By the definition, without any of the shortcuts: ranks are counted, every batch and every lag is summed anew.
fn slowly(samples: &[f64]) -> f64 {
    let n = samples.len();
    if n < 16 {
        return n as f64;
    }
    let rank = |sample: f64| {
        let below = samples.iter().filter(|other| **other < sample).count() as f64;
        let equal = samples.iter().filter(|other| **other == sample).count() as f64;
        below + (equal + 1.0) / 2.0
    };
    let ranks: Vec<f64> = samples.iter().map(|sample| rank(*sample)).collect();
    let mean = ranks.iter().sum::<f64>() / n as f64;
    let covariance =
        |lag: usize| (0..n - lag).map(|i| (ranks[i] - mean) * (ranks[i + lag] - mean)).sum::<f64>() / n as f64;
    if covariance(0) == 0.0 {
        return n as f64;
    }
    let mut sum = 0.0;
    let mut lag = 1;
    while lag < (10.0 * (n as f64).sqrt()).floor().min((n / 2) as f64) as usize {
        let pair = (covariance(lag) + covariance(lag + 1)) / covariance(0);
        if pair <= 2.0 * (2.0 / n as f64).sqrt() {
            break;
        }
        sum += pair;
        lag += 2;
    }
    let by_lags = n as f64 / (1.0 + 2.0 * sum);
    let length = n / (n as f64).sqrt().floor() as usize;
    let batches = n / length;
    let of_batch = |batch: usize| (0..length).map(|i| ranks[batch * length + i] - mean).sum::<f64>() / length as f64;
    let between = (0..batches).map(|batch| of_batch(batch).powi(2)).sum::<f64>() / (batches - 1) as f64;
    let inflation = between * length as f64 / covariance(0);
    let beyond_chance = inflation > 1.0 + 2.0 * (2.0 / (batches - 1) as f64).sqrt();
    let by_batches = if beyond_chance { n as f64 / inflation } else { n as f64 };
    by_lags.min(by_batches).clamp(1.0, n as f64)
}

#[test]
fn samples_that_keep_nine_tenths_of_the_one_before_are_worth_a_nineteenth() {
    for seed in 0..20 {
        let worth = n_effective(&autoregressive(seed, 10_000, 0.9));
        assert!((250.0..1_100.0).contains(&worth), "{worth} instead of 526");
    }
}

#[test]
fn independent_samples_are_worth_their_number_nearly_always() {
    for n in [300, 1_000, 10_000] {
        let fewer = (0..200).filter(|seed| n_effective(&autoregressive(*seed, n, 0.0)) < 0.8 * n as f64).count();
        assert!(fewer <= 20, "{fewer} of 200 at {n}");
    }
}

#[test]
fn a_shift_in_mid_run_shows_though_neighbours_hardly_depend_on_each_other() {
    let mut samples = autoregressive(1, 2_000, 0.0);
    samples[1_000..].iter_mut().for_each(|sample| *sample += 0.5);
    let worth = n_effective(&samples);
    assert!(worth < 600.0, "{worth}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn effective_numbers_are_those_of_the_definition(
        samples in prop_oneof![
            prop::collection::vec((0..30_i32).prop_map(f64::from), 0..250),
            (any::<u64>(), 0..400_usize, 0.0..0.99f64).prop_map(|(seed, n, keeps)| autoregressive(seed, n, keeps)),
        ],
    ) {
        let (fast, slow) = (n_effective(&samples), slowly(&samples));
        prop_assert!((fast - slow).abs() <= 1e-6 * slow.max(1.0), "{fast} and {slow}");
        prop_assert!(fast <= samples.len() as f64 && (fast >= 1.0 || samples.is_empty()));
    }

    #[test]
    fn effective_numbers_know_neither_unit_nor_outliers_nor_the_direction_of_time(
        seed in any::<u64>(), n in 16..600_usize, keeps in 0.0..0.95f64, unit in 1e-6..1e6f64,
    ) {
        let samples = autoregressive(seed, n, keeps);
        let worth = n_effective(&samples);
        let grown: Vec<f64> = samples.iter().map(|sample| unit * sample.exp().powi(5)).collect();
        prop_assert!((n_effective(&grown) - worth).abs() < 1e-6 * worth);
    }

    #[test]
    fn a_grouped_median_is_nearer_to_a_span_than_a_step(
        seed in any::<u64>(), steps in 10.0..100.0f64, step in 0.1..50.0f64,
    ) {
        // One span, and a counter whose phase is random: only two of its multiples show.
        let mut uniform = uniform(seed);
        let mut samples: Vec<f64> = (0..2_000)
            .map(|_| {
                let phase = uniform();
                ((phase + steps).floor() - phase.floor()) * step
            })
            .collect();
        samples.sort_unstable_by(f64::total_cmp);
        match grouped_median(&samples, step) {
            Some(median) => prop_assert!((median / step - steps).abs() < 0.35, "{} for {steps}", median / step),
            // Nearly all of them show the same multiple, and the span is one.
            None => prop_assert!((steps - steps.round()).abs() < 0.15, "{steps}"),
        }
    }

    #[test]
    fn a_grouped_median_is_that_of_the_cumulated_shares(
        counts in prop::collection::vec(0..50_usize, 1..8), step in 0.5..20.0f64,
    ) {
        let samples: Vec<f64> = counts
            .iter()
            .enumerate()
            .flat_map(|(class, count)| std::iter::repeat_n((class + 12) as f64 * step, *count))
            .collect();
        let enough = counts.iter().filter(|count| **count as f64 >= 0.1 * samples.len() as f64 && **count > 0).count();
        let median = grouped_median(&samples, step);
        prop_assert_eq!(median.is_some(), enough >= 2);
        let Some(median) = median else { return Ok(()) };
        // Each step's samples are spread evenly over it: half of all lie below the median.
        let below: f64 = counts
            .iter()
            .enumerate()
            .map(|(class, count)| *count as f64 * (median / step - (class as f64 + 11.5)).clamp(0.0, 1.0))
            .sum();
        prop_assert!((below - samples.len() as f64 / 2.0).abs() < 1e-6, "{below} of {}", samples.len());
    }
}
