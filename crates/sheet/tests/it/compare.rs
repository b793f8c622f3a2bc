//! Comparing sheets.

use hairspring_sheet::render::comparison;
use hairspring_sheet::{Absent, Centre, Comparison, Figure, Method, Row, RowVerdict, Sheet, TextStyle, Unit, compare};
use unicode_width::UnicodeWidthStr;

use crate::example::{self, absent, row};

/// A sheet of one table.
fn sheet(rows: Vec<Row>) -> Sheet {
    let mut sheet = example::sheet();
    sheet.chapters.truncate(1);
    sheet.chapters[0].tables.truncate(1);
    sheet.chapters[0].tables[0].rows = rows;
    sheet
}

fn of(samples: &[f64]) -> Row {
    row("clocks.cost.now", "now()", Figure::from_samples(Unit::Ns, Method::Stamp, &mut samples.to_vec()))
}

/// `n` samples around `median`, `spread` wide on either side.
fn around(median: f64, spread: f64, n: usize) -> Row {
    let step = 2.0 * spread / (n - 1) as f64;
    of(&(0..n).map(|i| median - spread + step * i as f64).collect::<Vec<_>>())
}

#[track_caller]
fn check(a: Vec<Row>, b: Vec<Row>, expected: RowVerdict) -> Comparison {
    let comparison = compare(&sheet(a), &[sheet(b)]);
    assert_eq!(comparison.rows[0].others[0].verdict, expected, "{comparison:#?}");
    comparison
}

#[test]
fn a_sheet_does_not_differ_from_itself() {
    let sheet = example::sheet();
    let comparison = compare(&sheet, std::slice::from_ref(&sheet));
    assert_eq!(comparison.conditions, []);
    let expected = [RowVerdict::NoDifferenceShown, RowVerdict::AbsentInBoth];
    assert!(comparison.rows.iter().all(|r| expected.contains(&r.others[0].verdict)));
    assert_eq!(comparison.rows.len(), sheet.rows().count());
}

#[test]
fn intervals_that_meet_show_no_difference() {
    let comparison = check(vec![around(100.0, 20.0, 25)], vec![around(105.0, 20.0, 25)], RowVerdict::NoDifferenceShown);
    let [low, high] = comparison.rows[0].others[0].interval.unwrap();
    assert!(low < 1.0 && 1.0 < high && (comparison.rows[0].others[0].ratio.unwrap() - 1.05).abs() < 1e-9);
}

#[test]
fn the_interval_of_the_ratio_joins_the_worst_ends() {
    let comparison =
        check(vec![around(100.0, 10.0, 6)], vec![around(200.0, 10.0, 6)], RowVerdict::Higher { within_spread: false });
    assert_eq!(comparison.rows[0].others[0].interval, Some([190.0 / 110.0, 210.0 / 90.0]));
}

#[test]
fn a_median_that_moved_by_less_than_the_spread_says_so() {
    check(vec![around(100.0, 20.0, 5001)], vec![around(103.0, 20.0, 5001)], RowVerdict::Higher { within_spread: true });
    check(vec![around(103.0, 20.0, 5001)], vec![around(100.0, 20.0, 5001)], RowVerdict::Lower { within_spread: true });
    check(vec![around(200.0, 20.0, 5001)], vec![around(100.0, 20.0, 5001)], RowVerdict::Lower { within_spread: false });
}

#[test]
fn few_samples_decide_nothing_unless_they_are_equal() {
    check(vec![of(&[5.0])], vec![of(&[6.0])], RowVerdict::TooFewSamples);
    check(vec![of(&[5.0; 5])], vec![around(6.0, 0.1, 1000)], RowVerdict::TooFewSamples);
    check(vec![of(&[5.0])], vec![of(&[5.0])], RowVerdict::NoDifferenceShown);
}

#[test]
fn a_sheet_without_medians_is_compared_by_the_statistic_that_both_have() {
    let kept = |mean, max| {
        let Some(figure) = of(&[15.0, 16.0]).figure().cloned() else { panic!("a figure") };
        row("clocks.cost.now", "now()", Figure { n: 100, min: None, median: None, mean, max, ..figure })
    };
    let means = check(vec![kept(Some(15.7), None)], vec![around(31.4, 1.0, 101)], RowVerdict::NoInterval);
    assert_eq!(means.rows[0].centre, Centre::Mean);
    assert!((means.rows[0].others[0].ratio.unwrap() - 2.0).abs() < 1e-9);
    assert!(comparison(&means, &TextStyle::default()).contains("now() (means)"));
    let maxima = check(vec![kept(None, Some(16.0))], vec![around(31.0, 1.0, 101)], RowVerdict::NoInterval);
    assert_eq!((maxima.rows[0].centre, maxima.rows[0].others[0].ratio), (Centre::Max, Some(2.0)));
    check(vec![kept(Some(15.7), None)], vec![kept(None, Some(15.7))], RowVerdict::AbsentInBoth);
}

#[test]
fn zero_and_negative_medians_have_a_verdict_but_no_ratio() {
    let zero = check(vec![of(&[0.0; 100])], vec![around(5.0, 1.0, 100)], RowVerdict::Higher { within_spread: false });
    assert_eq!((zero.rows[0].others[0].ratio, zero.rows[0].others[0].interval), (None, None));
    assert_eq!(zero.rows[0].spread_of_values, None);
    check(vec![of(&[0.0; 100])], vec![of(&[0.0; 100])], RowVerdict::NoDifferenceShown);
    let negative =
        check(vec![around(-50.0, 1.0, 100)], vec![around(-90.0, 1.0, 100)], RowVerdict::Lower { within_spread: false });
    assert_eq!(negative.rows[0].others[0].ratio, None);
}

#[test]
fn rows_without_a_fellow_say_where_they_are() {
    let gone = || absent("clocks.cost.now", "now()", Absent::new("refused", "ask"));
    let measured = || around(5.0, 1.0, 10);
    check(vec![measured()], vec![gone()], RowVerdict::AbsentInOther);
    check(vec![gone()], vec![measured()], RowVerdict::AbsentInBaseline);
    check(vec![gone()], vec![gone()], RowVerdict::AbsentInBoth);
    check(vec![measured()], vec![], RowVerdict::OnlyInBaseline);
    check(vec![], vec![measured()], RowVerdict::OnlyInOther);
}

#[test]
fn different_units_are_an_error_and_not_a_ratio() {
    let rate = row("clocks.cost.now", "now()", Figure::single(Unit::Hz, Method::Rate, 5.0));
    let comparison = check(vec![around(5.0, 1.0, 10)], vec![rate], RowVerdict::UnitsDiffer);
    assert_eq!((comparison.rows[0].others[0].ratio, comparison.rows[0].spread_of_values), (None, None));
}

#[test]
fn more_than_two_sheets_show_the_spread_of_their_medians() {
    let sheets = [100.0, 110.0, 95.0].map(|median| sheet(vec![around(median, 1.0, 100)]));
    let comparison = compare(&sheets[0], &sheets[1..]);
    let verdicts: Vec<RowVerdict> = comparison.rows[0].others.iter().map(|o| o.verdict).collect();
    assert_eq!(verdicts, [RowVerdict::Higher { within_spread: false }, RowVerdict::Lower { within_spread: false }]);
    let spread = comparison.rows[0].spread_of_values.unwrap();
    assert!((spread - 110.0 / 95.0).abs() < 0.01, "{spread}");
}

#[test]
fn what_differs_in_the_conditions_comes_with_its_values() {
    let (a, mut b) = (example::sheet(), example::sheet());
    b.conditions.facts[1] = example::fact("cpu.online", "CPUs online", "1 of 2");
    b.conditions.facts.retain(|f| f.id != "kernel.hypervisor");
    b.conditions.facts.push(example::fact("kernel.added", "Added", "yes"));
    b.hairspring.commit = None;
    let differing: Vec<(String, Vec<Option<String>>)> =
        compare(&a, &[b]).conditions.into_iter().map(|f| (f.id, f.values)).collect();
    let text = |value: &str| Some(value.to_owned());
    assert_eq!(differing[0].0, "hairspring");
    assert_eq!(differing[1], ("cpu.online".to_owned(), vec![text("2 of 2"), text("1 of 2")]));
    assert_eq!(differing[2], ("kernel.hypervisor".to_owned(), vec![text("KVM"), None]));
    assert_eq!(differing[3], ("kernel.added".to_owned(), vec![None, text("yes")]));
}

/// Two machines alike, and what may happen between them.
fn pair() -> (Sheet, Sheet) {
    let (a, mut b) = (example::sheet(), example::sheet());
    b.taken.start = "2025-03-15T10:00:00Z".to_owned();
    b.conditions.facts[1] = example::fact("cpu.online", "CPUs online", "1 of 2");
    let clocks = &mut b.chapters[0].tables;
    clocks[0].rows[0] = row("clocks.cost.now", "now()", example::figure(90, 10_000, 12.4, 0.02));
    clocks[0].rows[1] = row("clocks.cost.tsc", "rdtsc, unordered", example::figure(91, 10_000, 7.05, 0.02));
    clocks[0].rows[2] =
        absent("clocks.cost.tsc_ordered", "ordered", Absent::final_("reading the counter is trapped here"));
    clocks[1].rows[1] = row("clocks.calibration.bound", "bound", Figure::single(Unit::Ppm, Method::Derived, 0.9));
    clocks[1].rows.pop();
    clocks[2].rows[0] = row("clocks.stability.rate", "rate", Figure::single(Unit::Ppm, Method::Derived, 3.0));
    (a, b)
}

#[test]
fn the_comparison_is_as_reviewed() {
    let (a, b) = pair();
    insta::assert_snapshot!(comparison(&compare(&a, std::slice::from_ref(&b)), &TextStyle::default()));
}

#[test]
fn the_comparison_of_three_is_as_reviewed() {
    let (a, b) = pair();
    insta::assert_snapshot!(comparison(
        &compare(&a, &[b, a.clone()]),
        &TextStyle { width: 100, ..TextStyle::default() }
    ));
}

#[test]
fn no_line_of_a_comparison_is_wider_than_the_width() {
    let (a, b) = pair();
    for width in [60, 71, 80, 133] {
        let style = TextStyle { width, verbose: true, ..TextStyle::default() };
        let text = comparison(&compare(&a, &[b.clone(), a.clone()]), &style);
        assert!(text.lines().all(|line| line.width() <= width), "{text}");
    }
}
