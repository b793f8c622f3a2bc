//! Student's t, and the interval that rounds give a figure.

use hairspring_sheet::statistics::{Scale, Units, student_t_quantile, student_t_tail, t_interval};
use hairspring_sheet::{Figure, FigureRound, Method, Unit};
use proptest::prelude::*;

fn rounds(medians: &[f64]) -> Vec<FigureRound> {
    let round = |(i, median): (usize, &f64)| FigureRound { median: *median, n: 40, at_s: i as f64, process: i as u32 };
    medians.iter().enumerate().map(round).collect()
}

fn with_rounds(medians: &[f64]) -> Figure {
    Figure::from_samples(Unit::Ns, Method::Stamp, &mut [10.0; 12]).with_rounds(rounds(medians))
}

/// NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.2: critical values of Student's t. Its value for 1
/// and 0.001 is rounded wrongly; the cotangent of 0.001 π stands here.
#[test]
fn t_agrees_with_the_tabulated_values() {
    let table = [
        (1.0, 0.025, 12.706),
        (1.0, 0.001, 318.309),
        (2.0, 0.025, 4.303),
        (4.0, 0.05, 2.132),
        (4.0, 0.025, 2.776),
        (4.0, 0.001, 7.173),
        (9.0, 0.1, 1.383),
        (9.0, 0.025, 2.262),
        (9.0, 0.001, 4.297),
        (18.0, 0.025, 2.101),
        (38.0, 0.01, 2.429),
        (100.0, 0.025, 1.984),
    ];
    for (degrees, tail, expected) in table {
        let found = student_t_quantile(tail, degrees);
        assert!((found - expected).abs() < 6e-4, "{degrees} {tail}: {found} and not {expected}");
        assert!((student_t_tail(found, degrees) / tail - 1.0).abs() < 1e-6, "{degrees} {tail}: and back");
    }
    // Welch's degrees of freedom are broken numbers, and corrected levels are far out.
    assert!((student_t_tail(student_t_quantile(1e-6, 4.7), 4.7) / 1e-6 - 1.0).abs() < 1e-4);
    assert!(student_t_quantile(0.0, 4.0).is_nan() && student_t_quantile(0.025, 0.0).is_nan());
}

#[test]
fn the_interval_of_five_rounds_is_the_one_worked_out_by_hand() {
    // Logarithms 0, ±0.1 and ±0.2 have the mean 0 and the variance 0.1 / 4; 2.7764 · √(0.025 / 5) is 0.19632.
    let medians: Vec<f64> = [-0.2f64, -0.1, 0.0, 0.1, 0.2].iter().map(|x| 100.0 * x.exp()).collect();
    let [low, high] = t_interval(&medians, None).unwrap();
    assert!((low - 82.1749).abs() < 1e-3 && (high - 121.6916).abs() < 1e-3, "{low} {high}");
    // One of them not positive: the values themselves, mean 0 and variance 2.5.
    let [low, high] = t_interval(&[-2.0, -1.0, 0.0, 1.0, 2.0], None).unwrap();
    assert!((low + 1.96324).abs() < 1e-4 && (high - 1.96324).abs() < 1e-4, "{low} {high}");
}

#[test]
fn equal_rounds_keep_the_interval_of_the_counters_step() {
    let [low, high] = t_interval(&[100.0; 5], Some(10.0)).unwrap();
    // ln(1.1) / √12 is 0.027514; times 2.7764 / √5 it is 0.034163.
    assert!((low - 96.6414).abs() < 1e-3 && (high - 103.4753).abs() < 1e-3, "{low} {high}");
    let [low, high] = t_interval(&[100.0; 5], None).unwrap();
    assert!((low - 100.0).abs() < 1e-9 && (high - 100.0).abs() < 1e-9);
    assert_eq!(Units::new(&[0.0; 5], Scale::of(&[0.0]), Some(10.0)).unwrap().variance, Some(100.0 / 12.0));
}

#[test]
fn a_figure_with_rounds_is_headed_by_them() {
    let figure = with_rounds(&[104.0, 98.0, 100.0, 103.0, 101.0]);
    assert_eq!((figure.median, figure.n, figure.rounds.len()), (Some(101.0), 12, 5));
    assert!((figure.between.unwrap() - 0.0236).abs() < 1e-4, "{:?}", figure.between);
    assert_eq!(with_rounds(&[1.0, 2.0, 4.0, 9.0]).median, Some(3.0));
    let single = with_rounds(&[104.0]);
    assert_eq!((single.median, single.median_interval, single.between), (Some(104.0), None, None));
    let none = with_rounds(&[]);
    assert_eq!((none.median, none.median_interval.is_some()), (Some(10.0), true));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_interval_holds_the_median_and_follows_the_unit(
        medians in prop::collection::vec(1.0..1e6f64, 2..20),
        factor in 1e-3..1e3f64,
    ) {
        let [low, high] = with_rounds(&medians).median_interval.unwrap();
        let median = with_rounds(&medians).median.unwrap();
        prop_assert!(low <= median && median <= high && low > 0.0);
        let scaled: Vec<f64> = medians.iter().map(|m| m * factor).collect();
        let [s_low, s_high] = with_rounds(&scaled).median_interval.unwrap();
        prop_assert!((s_low / low / factor - 1.0).abs() < 1e-9 && (s_high / high / factor - 1.0).abs() < 1e-9);
    }
}
