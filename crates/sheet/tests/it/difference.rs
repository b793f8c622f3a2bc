//! Differences between rounds: properties that hold for any numbers.

use hairspring_sheet::Unit;
use hairspring_sheet::statistics::{Difference, Margins, Scale, Units, benjamini_hochberg, holm};
use proptest::prelude::*;

fn units(values: &[f64]) -> Units {
    Units::new(values, Scale::of(values), None).unwrap()
}

fn groups(a: &[f64], b: &[f64]) -> Difference {
    Difference::between_groups(&units(a), &units(b)).unwrap()
}

#[track_caller]
fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-3 * expected.abs().max(1e-3), "{found} and not {expected}");
}

/// W. S. Gosset's sleep data (Student, 1908), as R's `t.test` prints them: unpaired with Welch's degrees of freedom t =
/// −1.8608 and p = 0.07939, paired t = −4.0621 and p = 0.002833. The sides have equally many units, so the pooled
/// degrees of freedom apply here.
#[test]
fn students_own_data_give_the_published_results() {
    let one = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
    let two = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
    let welch = groups(&one, &two);
    near(welch.estimate / welch.standard_error, 1.8608);
    near(welch.p_beyond(0.0), 0.07919);
    let pairs: Vec<[f64; 2]> = one.iter().zip(two).map(|(a, b)| [*a, b]).collect();
    let paired = Difference::paired(&pairs, Scale::Linear, None).unwrap();
    near(paired.estimate / paired.standard_error, 4.0621);
    near(paired.p_beyond(0.0), 0.002833);
    near(paired.interval(0.05)[0], 0.7001);
    // With one unit less on a side Welch's degrees of freedom are those of the formula, between 8 and 17.
    let fewer = groups(&one[1..], &two);
    assert!(fewer.degrees > 8.0 && fewer.degrees < 17.0 && fewer.degrees.fract() > 0.0, "{}", fewer.degrees);
}

/// One row alone, 80 % power, in units of the pairs' standard deviation: 3.1 with three pairs, 1.7 with five, 1.0 with
/// ten.
#[test]
fn the_smallest_difference_and_the_rounds_it_takes_follow_the_rule_of_thumb() {
    let pairs = |n: usize| -> Vec<[f64; 2]> {
        // Differences of ±1 around 0, whose standard deviation is √(n / (n − 1)).
        (0..n).map(|i| [0.0, if i % 2 == 0 { 1.0 } else { -1.0 }]).collect()
    };
    for (n, expected) in [(6, 1.50), (10, 1.0)] {
        let difference = Difference::paired(&pairs(n), Scale::Linear, None).unwrap();
        let sd = (n as f64 / (n as f64 - 1.0)).sqrt();
        let smallest = difference.smallest_shown(0.0, 0.05) / sd;
        assert!((smallest - expected).abs() < 0.08, "{n}: {smallest}");
    }
    let ten = Difference::paired(&pairs(10), Scale::Linear, None).unwrap();
    let smallest = ten.smallest_shown(0.2, 0.05);
    assert_eq!(ten.units_needed(smallest, 0.2, 0.05), Some(10));
    // Half the distance from the null region takes a little less than four times the rounds.
    let needed = ten.units_needed(0.2 + (smallest - 0.2) / 2.0, 0.2, 0.05).unwrap();
    assert!((34..=40).contains(&needed), "{needed}");
    assert_eq!(ten.units_needed(0.2, 0.2, 0.05), None);
}

#[test]
fn equal_rounds_never_differ_and_are_the_same() {
    for values in [[100.0; 5], [0.0; 5]] {
        let difference = groups(&values, &values);
        assert_eq!(difference.p_beyond(0.0), 1.0);
        assert!(difference.equivalent_within(0.01));
    }
}

#[test]
fn what_is_equivalent_has_its_90_percent_interval_inside_the_margin() {
    // Deviations 0, ±0.5 and ±0.25 from 0.1: the standard error is √(0.15625 / 5), and 2.1318 of them above 0.1 is
    // 0.47685.
    let pairs = [0.1, 0.6, -0.4, 0.35, -0.15].map(|d| [0.0, d]);
    let difference = Difference::paired(&pairs, Scale::Linear, None).unwrap();
    near(difference.standard_error, 0.176777);
    near(difference.one_sided(0.05)[1], 0.476854);
    assert!(difference.equivalent_within(0.477) && !difference.equivalent_within(0.4765));
}

#[test]
fn equal_pairs_keep_the_error_of_two_readings_of_the_counter() {
    let pairs = Difference::paired(&[[100.0, 100.0]; 6], Scale::Linear, Some(6.0)).unwrap();
    near(pairs.standard_error, 1.0);
}

#[test]
fn a_variance_from_elsewhere_judges_single_units() {
    let difference = Difference::with_variance(&units(&[100.0]), &units(&[150.0]), 0.01, 9.0).unwrap();
    near(difference.standard_error, 0.02f64.sqrt());
    // More sheets a side lower the error and leave the degrees of freedom: they are those of the ledger.
    assert!(difference.units_needed(0.3, 0.02, 0.05).unwrap() > 1);
    assert_eq!(groups(&[100.0, 101.0], &[150.0, 151.0]).degrees, 2.0);
    assert!(Difference::between_groups(&units(&[100.0]), &units(&[150.0])).is_none(), "one round is no verdict");
}

/// Benjamini and Hochberg (1995), section 3.2: 15 values, of which the procedure rejects four at 5 % and Bonferroni's
/// three. Holm's rejects the same three.
#[test]
fn the_example_of_benjamini_and_hochberg_comes_out_as_published() {
    let p = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590,
        1.0,
    ];
    let count = |declared: Vec<bool>| declared.iter().filter(|d| **d).count();
    assert_eq!((count(benjamini_hochberg(&p, 0.05)), count(holm(&p, 0.05))), (4, 3));
    assert_eq!((count(benjamini_hochberg(&[], 0.05)), count(holm(&[], 0.05))), (0, 0));
    // Step up: the second is declared because the third is, although it fails its own step.
    assert_eq!(benjamini_hochberg(&[0.001, 0.04, 0.045], 0.05), [true; 3]);
    assert_eq!(holm(&[0.001, 0.03, 0.03], 0.05), [true, false, false]);
}

fn side() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(50.0..200.0f64, 2..12)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn swapping_the_sides_turns_the_difference_round(a in side(), b in side()) {
        let (there, back) = (groups(&a, &b), groups(&b, &a));
        prop_assert!((there.estimate + back.estimate).abs() < 1e-12);
        prop_assert!((there.p_beyond(0.02) - back.p_beyond(0.02)).abs() < 1e-9);
        prop_assert!((there.interval(0.05)[0] + back.interval(0.05)[1]).abs() < 1e-9);
        prop_assert_eq!(there.equivalent_within(0.1), back.equivalent_within(0.1));
    }

    #[test]
    fn another_unit_of_the_values_changes_nothing(a in side(), b in side(), factor in 1e-3..1e3f64) {
        let scaled = |values: &[f64]| values.iter().map(|v| v * factor).collect::<Vec<_>>();
        let (one, other) = (groups(&a, &b), groups(&scaled(&a), &scaled(&b)));
        prop_assert!((one.estimate - other.estimate).abs() < 1e-9);
        prop_assert!((one.p_beyond(0.02) - other.p_beyond(0.02)).abs() < 1e-6);
    }

    #[test]
    fn a_wider_null_region_never_adds_a_finding(a in side(), b in side(), null in 0.0..0.5f64, more in 0.0..0.5f64) {
        let difference = groups(&a, &b);
        prop_assert!(difference.p_beyond(null + more) >= difference.p_beyond(null) - 1e-12);
    }

    #[test]
    fn less_than_one_step_of_the_counter_never_differs(
        a in 20.0..1e4f64,
        apart in -1.0..1.0f64,
        noise in prop::collection::vec((-1e-3..1e-3f64, -1e-3..1e-3f64), 10),
    ) {
        let quantum = 10.0;
        let b = a + apart * quantum;
        let pairs: Vec<[f64; 2]> = noise.iter().map(|(x, y)| [a + x, b + y]).collect();
        let difference = Difference::paired(&pairs, Scale::Log, Some(quantum)).unwrap();
        let margins = Margins::of(Unit::Ns, Scale::Log, [a, b], Some(quantum), None).unwrap();
        prop_assert!(difference.p_beyond(margins.null) > 0.05);
    }

    #[test]
    fn what_is_declared_has_an_interval_of_its_level_on_one_side_of_zero(
        a in side(), b in side(), null in 0.0..0.05f64, level in 1e-4..0.2f64,
    ) {
        let difference = groups(&a, &b);
        if difference.p_beyond(null) <= level {
            let [low, high] = difference.interval(level);
            prop_assert!(low > 0.0 || high < 0.0, "{low} {high}");
        }
    }

    #[test]
    fn what_holm_declares_benjamini_and_hochberg_declare_too(p in prop::collection::vec(0.0..0.2f64, 1..40)) {
        let (strict, lenient) = (holm(&p, 0.05), benjamini_hochberg(&p, 0.05));
        prop_assert!(strict.iter().zip(&lenient).all(|(strict, lenient)| !strict || *lenient));
    }
}
