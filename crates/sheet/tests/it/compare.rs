//! Comparing sheets, and builds that were measured in turns.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use hairspring_sheet::{
    Absent, Build, COMPARISON_SCHEMA, Centre, CompareTerms, ComparedBuild, ComparedSheets, Comparison, Doubt, Figure,
    FigureRound, Grounds, Interleaved, InterleavedRow, LedgerError, Method, RoundPair, Row, RowPattern, RowVerdict,
    Sheet, SheetLedger, Taken, Unit, Unmatched, Value, compare, compare_interleaved,
};
use proptest::prelude::*;

use crate::example::{self, absent, row};

pub(crate) const ID: &str = "clocks.cost.now";

/// The example without its figures.
static EMPTY: LazyLock<Sheet> = LazyLock::new(|| {
    let mut sheet = example::sheet();
    sheet.chapters.truncate(1);
    sheet.chapters[0].tables.truncate(1);
    sheet
});

/// A sheet of one table.
pub(crate) fn sheet(rows: Vec<Row>) -> Sheet {
    let mut sheet = EMPTY.clone();
    sheet.chapters[0].tables[0].rows = rows;
    sheet
}

/// A row with this median.
pub(crate) fn median(id: &str, median: f64) -> Row {
    row(id, id, Figure { median: Some(median), ..Figure::from_samples(Unit::Ns, Method::Stamp, &mut [median; 10]) })
}

pub(crate) fn side(name: &str, sheets: Vec<Sheet>) -> ComparedSheets {
    ComparedSheets { name: name.to_owned(), sheets }
}

/// Two sides, one sheet for each median.
pub(crate) fn sides(a: &[f64], b: &[f64]) -> [ComparedSheets; 2] {
    let of = |medians: &[f64]| medians.iter().map(|m| sheet(vec![median(ID, *m)])).collect();
    [side("before", of(a)), side("after", of(b))]
}

fn verdict(comparison: &Comparison) -> RowVerdict {
    comparison.rows[0].others[0].verdict
}

/// Verdict on one row of a single sheet against one row of another.
#[track_caller]
fn check(a: Vec<Row>, b: Vec<Row>, expected: RowVerdict) -> Comparison {
    let comparison =
        compare(&[side("before", vec![sheet(a)]), side("after", vec![sheet(b)])], &CompareTerms::default());
    assert_eq!(verdict(&comparison), expected, "{comparison:#?}");
    comparison
}

const SINGLE: RowVerdict = RowVerdict::CannotTell(Doubt::SingleSheets);

#[test]
fn single_sheets_decide_nothing_however_far_apart_they_are() {
    let comparison = check(vec![median(ID, 100.0)], vec![median(ID, 900.0)], SINGLE);
    assert_eq!((comparison.grounds[0], comparison.rows[0].others[0].ratio), (Grounds::SingleSheets, Some(9.0)));
    // Rounds of the two sheets are shown as an interval, and decide nothing either.
    let rounds = |medians: [f64; 5]| {
        let rounds = medians.map(|median| FigureRound { median, n: 9, at_s: 0.0, process: 1 });
        let Value::Figure(figure) = median(ID, 0.0).value else { panic!("a figure") };
        vec![row(ID, ID, figure.with_rounds(rounds.into()))]
    };
    let comparison =
        check(rounds([100.0, 101.0, 99.0, 100.5, 99.5]), rounds([200.0, 202.0, 198.0, 201.0, 199.0]), SINGLE);
    let [low, high] = comparison.rows[0].others[0].interval.unwrap();
    assert!(1.9 < low && low < 2.0 && 2.0 < high && high < 2.1, "{low} {high}");
    assert_eq!(verdict(&compare(&sides(&[1.0, 1.0], &[2.0, 2.0, 2.0]), &CompareTerms::default())), SINGLE);
}

/// Four real sheets of one build: the rule before this one declared half of their rows different.
#[test]
fn no_pair_of_real_sheets_of_one_build_declares_anything() {
    let (sheets, intervals) = same_build();
    let mut pairs = 0;
    for a in 0..4 {
        for b in (0..4).filter(|b| *b != a) {
            let both = [side("A", vec![sheets[a].clone()]), side("B", vec![sheets[b].clone()])];
            let comparison = compare(&both, &CompareTerms::default());
            let declared = comparison.rows.iter().filter(|row| row.others[0].verdict.differs()).count();
            assert_eq!((declared, comparison.grounds[0]), (0, Grounds::SingleSheets), "{a} {b}");
            assert!(comparison.rows.iter().filter(|row| row.others[0].verdict == SINGLE).count() > 500);
            pairs += 1;
        }
    }
    assert_eq!(pairs, 12);
    let apart = |row: &&FourIntervals| row[0].zip(row[1]).is_some_and(|(a, b)| a[1] < b[0] || b[1] < a[0]);
    assert_eq!(
        intervals.iter().filter(apart).count(),
        297,
        "the rule before this one declared so many of the first pair"
    );
}

/// Intervals of the pooled samples of the four sheets.
type FourIntervals = [Option<[f64; 2]>; 4];

/// The four sheets of `data/same-build.csv`, and the intervals that their pooled samples gave.
fn same_build() -> ([Sheet; 4], Vec<FourIntervals>) {
    let mut rows: [Vec<Row>; 4] = Default::default();
    let mut intervals = Vec::new();
    for line in include_str!("data/same-build.csv").lines().filter(|line| !line.starts_with('#')) {
        let mut cells = line.split(',');
        let mut next = || cells.next().expect("a cell").to_owned();
        let (id, unit, method) = (next(), next(), next());
        let unit: Unit = serde_json::from_value(unit.into()).expect("a unit");
        let method: Method = serde_json::from_value(method.into()).expect("a method");
        intervals.push(std::array::from_fn(|of| {
            let numbers = next();
            let numbers: Vec<f64> = numbers.split(' ').filter_map(|number| number.parse().ok()).collect();
            let (n, median) = (*numbers.first()?, *numbers.get(1)?);
            let interval = Some([*numbers.get(2).unwrap_or(&f64::NAN), *numbers.get(3).unwrap_or(&f64::NAN)]);
            let interval = interval.filter(|limits| limits[0].is_finite());
            let figure = Figure { n: n as u64, median_interval: interval, ..Figure::single(unit, method, median) };
            rows[of].push(row(&id, &id, figure));
            interval
        }));
    }
    (rows.map(sheet), intervals)
}

#[test]
fn three_sheets_a_side_make_a_sheet_the_unit() {
    let a = [100.0, 101.0, 99.0];
    let terms = CompareTerms::default();
    let differs = compare(&sides(&a, &[150.0, 151.0, 149.0]), &terms);
    let RowVerdict::Differs { at_least, within } = verdict(&differs) else { panic!("{differs:#?}") };
    assert!((0.45..0.5).contains(&at_least) && within.is_none(), "{at_least}");
    assert_eq!(differs.grounds, [Grounds::Sheets(3)]);
    let lower = compare(&sides(&[150.0, 151.0, 149.0], &a), &terms);
    assert!(matches!(verdict(&lower), RowVerdict::Differs { at_least, .. } if (-0.34..-0.31).contains(&at_least)));
    let same = verdict(&compare(&sides(&a, &[100.5, 99.5, 100.0]), &terms));
    assert!(matches!(same, RowVerdict::Same { within } if (within - 0.05).abs() < 1e-9), "{same:?}");
    // The same spread of medians and a margin that is too small for it.
    let narrow = CompareTerms { same: Some(0.01), ..CompareTerms::default() };
    assert!(matches!(verdict(&compare(&sides(&a, &[100.5, 99.5, 100.0]), &narrow)), RowVerdict::CannotTell(_)));
    let noisy = verdict(&compare(&sides(&[100.0, 130.0, 80.0], &[110.0, 140.0, 90.0]), &terms));
    let RowVerdict::CannotTell(Doubt::Varies { smallest, needed }) = noisy else { panic!("{noisy:?}") };
    assert!(smallest > 0.5 && needed.is_none(), "{smallest} {needed:?}");
}

#[test]
fn a_figure_may_differ_by_less_than_the_margin() {
    let a = [100.0, 100.1, 99.9, 100.05];
    let b = a.map(|m| m * 1.035);
    let RowVerdict::Differs { within, .. } = verdict(&compare(&sides(&a, &b), &CompareTerms::default())) else {
        panic!("3.5 % are more than the null region")
    };
    assert!(within.is_some());
}

#[test]
fn a_ledger_says_how_much_sheets_vary() {
    let ledger = |medians: &[f64]| SheetLedger::new(&sides(medians, &[])[0].sheets);
    let quiet = ledger(&[100.0, 101.0, 99.0, 100.5, 99.5]).unwrap();
    let noisy = ledger(&[100.0, 160.0, 60.0, 130.0, 80.0]).unwrap();
    let terms = |ledger| CompareTerms { ledger: Some(ledger), ..CompareTerms::default() };
    let comparison = compare(&sides(&[100.0], &[130.0]), &terms(quiet.clone()));
    assert!(verdict(&comparison).differs());
    assert_eq!(comparison.grounds, [Grounds::Ledger(5)]);
    assert!(!verdict(&compare(&sides(&[100.0], &[130.0]), &terms(noisy))).differs());
    // A row that the ledger does not know has no verdict.
    let other = [10.0, 20.0].map(|m| side("one", vec![sheet(vec![median("clocks.cost.other", m)])]));
    let comparison = compare(&other, &terms(quiet));
    assert_eq!(verdict(&comparison), RowVerdict::CannotTell(Doubt::TooFew));
}

#[test]
fn a_ledger_is_of_one_build_and_one_machine() {
    let sheets = sides(&[100.0; 5], &[]).map(|side| side.sheets).concat();
    assert_eq!(SheetLedger::new(&sheets[..4]), Err(LedgerError::TooFew(4)));
    let mut builds = sheets.clone();
    builds[4].hairspring.commit = Some("other".to_owned());
    assert!(matches!(SheetLedger::new(&builds), Err(LedgerError::Unlike("build", _))));
    let ledger = SheetLedger::new(&sheets).unwrap();
    let mut quick = sheets[0].clone();
    quick.taken.effort = "quick".to_owned();
    assert!(ledger.suits(&sheets[0]).is_ok() && matches!(ledger.suits(&quick), Err(LedgerError::Other("effort", _))));
}

#[test]
fn counts_and_largest_values_have_a_ratio_and_no_verdict() {
    let not_judged = RowVerdict::CannotTell(Doubt::NotJudged);
    let count = |n: f64| vec![row(ID, ID, Figure::single(Unit::Count, Method::Count, n))];
    assert_eq!(check(count(5.0), count(10.0), not_judged).rows[0].others[0].ratio, Some(2.0));
    let largest = |max: f64| {
        let figure = Figure::from_samples(Unit::Ns, Method::Stamp, &mut [1.0]);
        vec![row(ID, ID, Figure { median: None, mean: None, max: Some(max), ..figure })]
    };
    let comparison = check(largest(5.0), largest(10.0), not_judged);
    assert_eq!((comparison.rows[0].centre, comparison.rows[0].others[0].ratio), (Centre::Max, Some(2.0)));
    // Three sheets a side change nothing.
    let three = |n: f64| side("three", vec![sheet(count(n)), sheet(count(n + 1.0)), sheet(count(n + 2.0))]);
    assert_eq!(verdict(&compare(&[three(5.0), three(50.0)], &CompareTerms::default())), not_judged);
}

#[test]
fn rows_without_a_fellow_say_where_they_are() {
    let gone = || absent(ID, "now()", Absent::new("refused", "ask"));
    let measured = || median(ID, 5.0);
    let unmatched = RowVerdict::Unmatched;
    check(vec![measured()], vec![gone()], unmatched(Unmatched::AbsentInOther));
    check(vec![gone()], vec![measured()], unmatched(Unmatched::AbsentInBaseline));
    check(vec![gone()], vec![gone()], unmatched(Unmatched::AbsentInBoth));
    check(vec![measured()], vec![], unmatched(Unmatched::OnlyInBaseline));
    check(vec![], vec![measured()], unmatched(Unmatched::OnlyInOther));
    let rate = row(ID, "now()", Figure::single(Unit::Hz, Method::Rate, 5.0));
    let comparison = check(vec![measured()], vec![rate], unmatched(Unmatched::UnitsDiffer));
    assert_eq!(comparison.rows[0].others[0].ratio, None);
}

#[test]
fn medians_of_zero_and_below_are_compared_by_their_difference() {
    let terms = CompareTerms::default();
    let comparison = compare(&sides(&[-1.0, 0.0, 1.0], &[60.0, 61.0, 62.0]), &terms);
    assert!(matches!(verdict(&comparison), RowVerdict::Differs { at_least, .. } if (50.0..61.0).contains(&at_least)));
    assert_eq!(comparison.rows[0].others[0].ratio, None);
    let same = verdict(&compare(&sides(&[-1.0, 0.0, 1.0], &[0.0, 1.0, 2.0]), &terms));
    assert_eq!(same, RowVerdict::Same { within: 20.0 });
}

#[test]
fn what_differs_in_the_conditions_comes_with_its_values() {
    let (a, mut b) = (example::sheet(), example::sheet());
    b.conditions.facts[1] = example::fact("cpu.online", "CPUs online", "1 of 2");
    b.conditions.facts.retain(|f| f.id != "kernel.hypervisor");
    b.conditions.facts.push(example::fact("kernel.added", "Added", "yes"));
    b.hairspring.commit = None;
    let both = [side("A", vec![a.clone(), a]), side("B", vec![b])];
    let differing = compare(&both, &CompareTerms::default()).conditions;
    let differing: Vec<(String, Vec<Option<String>>)> = differing.into_iter().map(|f| (f.id, f.values)).collect();
    let text = |value: &str| Some(value.to_owned());
    assert_eq!(differing[0].0, "hairspring");
    assert_eq!(differing[1], ("cpu.online".to_owned(), vec![text("2 of 2"), text("1 of 2")]));
    assert_eq!(differing[2], ("kernel.hypervisor".to_owned(), vec![text("KVM"), None]));
    assert_eq!(differing[3], ("kernel.added".to_owned(), vec![None, text("yes")]));
}

/// Twelve rows of a chapter, and one sentinel if it is given a ratio.
fn chapter(ratios: [f64; 12], sentinel: Option<f64>) -> Comparison {
    let rows = |other: bool| {
        let ratio = |ratio: f64| if other { ratio } else { 1.0 };
        let mut rows: Vec<Row> =
            ratios.iter().enumerate().map(|(i, r)| median(&format!("sleeps.row{i}"), 100.0 * ratio(*r))).collect();
        rows.extend(sentinel.map(|s| median("sentinels.chase", 50.0 * ratio(s))));
        sheet(rows)
    };
    compare(&[side("A", vec![rows(false)]), side("B", vec![rows(true)])], &CompareTerms::default())
}

#[test]
fn a_chapter_that_moved_as_a_whole_is_named_once() {
    let mut ratios = [1.09; 12];
    ratios[0] = 0.9;
    let shifts = chapter(ratios, None).shifts;
    assert_eq!((shifts.len(), shifts[0].moved, shifts[0].rows, shifts[0].sentinels_moved), (1, 11, 12, None));
    assert_eq!(chapter(ratios, Some(1.08)).shifts[0].sentinels_moved, Some(true));
    assert!(chapter(ratios, Some(1.0)).shifts.is_empty(), "sentinels that stayed acquit the machine");
    ratios[1..4].fill(1.0);
    assert!(chapter(ratios, None).shifts.is_empty(), "8 of 12 are not enough");
    assert!(chapter([1.01; 12], None).shifts.is_empty(), "1 % is no movement");
}

#[test]
fn only_the_chosen_rows_are_compared() {
    let rows = || vec![median(ID, 1.0), median("clocks.cost.nowhere", 1.0), median("delays.a", 1.0)];
    let compared = |only: &str| {
        let terms = CompareTerms { only: vec![RowPattern::parse(only).unwrap()], ..CompareTerms::default() };
        compare(&[side("A", vec![sheet(rows())]), side("B", vec![sheet(rows())])], &terms).rows.len()
    };
    assert_eq!((compared(ID), compared("clocks"), compared("clocks.cost.now*"), compared("*")), (1, 2, 2, 3));
    assert!(
        RowPattern::parse("a*b").is_none() && RowPattern::parse("").is_none() && RowPattern::parse("a b").is_none()
    );
}

/// Two builds in turns, one row for each set of pairs.
pub(crate) fn interleaved(rows: &[Vec<[f64; 2]>]) -> Interleaved {
    let build = |name: &str| ComparedBuild {
        name: name.to_owned(),
        hash: name.to_owned(),
        build: Build {
            version: "0.1.0".to_owned(),
            commit: None,
            compiler: "rustc".to_owned(),
            flags: "release".to_owned(),
        },
    };
    let pair = |(round, pair): (usize, &[f64; 2])| RoundPair {
        round: round as u32,
        baseline: Some(pair[0]),
        other: Some(pair[1]),
        baseline_first: round % 2 == 0,
        void: false,
    };
    let row = |(number, pairs): (usize, &Vec<[f64; 2]>)| InterleavedRow {
        id: format!("clocks.row{number}"),
        label: "row".to_owned(),
        unit: Unit::Ns,
        method: Method::Stamp,
        quantum: None,
        pairs: pairs.iter().enumerate().map(pair).collect(),
    };
    Interleaved {
        schema: COMPARISON_SCHEMA.to_owned(),
        taken: Taken {
            start: "2025-03-14T09:26:53Z".to_owned(),
            duration_s: 1.0,
            effort: "quick".to_owned(),
            interrupted: false,
            rounds: 0,
        },
        baseline: build("old"),
        other: build("new"),
        seed: 1,
        rounds: rows.first().map_or(0, Vec::len),
        builds: 1,
        rows: rows.iter().enumerate().map(row).collect(),
        sentinels: Vec::new(),
        limits: BTreeMap::new(),
        null: Vec::new(),
        screened: None,
    }
}

/// Ten pairs whose machine drifts by half, and whose builds differ by this ratio.
pub(crate) fn drifting(ratio: f64) -> Vec<[f64; 2]> {
    let pair = |i: usize| {
        let machine = 100.0 * (1.0 + 0.05 * i as f64);
        [machine, machine * ratio * (1.0 + 0.004 * (i % 3) as f64)]
    };
    (0..10).map(pair).collect()
}

#[test]
fn rounds_taken_in_turns_see_through_a_machine_that_drifts() {
    let comparison = compare_interleaved(&interleaved(&[drifting(1.1), drifting(1.0)]), None);
    assert!(comparison.rows[0].others[0].verdict.differs());
    assert!(matches!(comparison.rows[1].others[0].verdict, RowVerdict::Same { .. }));
    assert_eq!(comparison.grounds, [Grounds::Turns(10)]);
}

#[test]
fn void_pairs_do_not_count_and_too_many_leave_no_result() {
    let mut measured = interleaved(&[drifting(1.1)]);
    measured.rows[0].pairs[3] = RoundPair { other: Some(1e6), void: true, ..measured.rows[0].pairs[3] };
    let comparison = compare_interleaved(&measured, None);
    assert!(
        verdict(&comparison).differs() && comparison.remarks[0].starts_with("1 of 10 pairs"),
        "{:?}",
        comparison.remarks
    );
    measured.rows[0].pairs[..3].iter_mut().for_each(|pair| pair.void = true);
    assert_eq!(verdict(&compare_interleaved(&measured, None)), RowVerdict::CannotTell(Doubt::Void));
}

#[test]
fn a_comparison_of_a_build_with_itself_and_a_null_arm_are_named() {
    let mut measured = interleaved(&[drifting(1.0)]);
    measured.other.hash = measured.baseline.hash.clone();
    measured.null = interleaved(&[drifting(1.2), drifting(1.2)]).rows;
    let remarks = compare_interleaved(&measured, None).remarks.join(" ");
    assert!(
        remarks.contains("the same program") && remarks.contains("2 of 2 figures differ, all falsely"),
        "{remarks}"
    );
    assert!(remarks.contains("not calibrated"), "{remarks}");
}

#[test]
fn a_row_without_rounds_on_one_side_has_no_verdict() {
    let mut measured = interleaved(&[drifting(1.1)]);
    measured.rows[0].pairs.iter_mut().for_each(|pair| pair.other = None);
    assert_eq!(verdict(&compare_interleaved(&measured, None)), RowVerdict::Unmatched(Unmatched::OnlyInBaseline));
    let one = interleaved(&[vec![[1.0, 2.0]]]);
    assert_eq!(
        verdict(&compare_interleaved(&one, None)),
        RowVerdict::CannotTell(Doubt::TooFew),
        "one round is no verdict"
    );
    let json = serde_json::to_string(&measured).unwrap();
    assert_eq!(serde_json::from_str::<Interleaved>(&json).unwrap(), measured);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn swapping_the_sides_swaps_the_verdict(
        a in prop::collection::vec(90.0..120.0f64, 3..6),
        b in prop::collection::vec(90.0..140.0f64, 3..6),
    ) {
        let there = verdict(&compare(&sides(&a, &b), &CompareTerms::default()));
        let back = verdict(&compare(&sides(&b, &a), &CompareTerms::default()));
        match (there, back) {
            (RowVerdict::Differs { at_least: one, .. }, RowVerdict::Differs { at_least: other, .. }) => {
                prop_assert!(((1.0 + one) * (1.0 + other) - 1.0).abs() < 1e-9, "{one} {other}");
            }
            (one, other) => prop_assert_eq!(std::mem::discriminant(&one), std::mem::discriminant(&other)),
        }
    }
}

#[test]
fn of_several_builds_each_pair_is_one_value_however_many_rounds_it_has() {
    // Four pairs of builds whose layouts differ by up to 6 % to either side, in 20 rounds that hardly vary.
    let layouts = [1.06, 0.96, 1.03, 0.95];
    let pairs: Vec<[f64; 2]> =
        (0..20).map(|round| [100.0, 100.0 * layouts[round % 4] * (1.0 + 0.001 * (round % 3) as f64)]).collect();
    let changed = |ratio: f64| {
        let pairs = pairs.iter().map(|[a, b]| [*a, b * ratio]).collect();
        let mut measured = interleaved(&[pairs]);
        measured.builds = 4;
        compare_interleaved(&measured, None)
    };
    let same = changed(1.0);
    assert_eq!(same.grounds, [Grounds::Builds(4)]);
    assert!(!same.rows[0].others[0].verdict.differs(), "{:?}", same.rows[0].others);
    assert_eq!(same.rows[0].others[0].difference.map(|difference| difference.degrees), Some(6.0));
    assert!(changed(1.5).rows[0].others[0].verdict.differs());
    // The same pairs as rounds of one build each would make the layout look like a change.
    let rounds = pairs.iter().step_by(4).map(|pair| [pair[0], pair[1]]).collect();
    assert!(compare_interleaved(&interleaved(&[rounds]), None).rows[0].others[0].verdict.differs());
    let text = hairspring_sheet::render::comparison(&same, &hairspring_sheet::TextStyle::default());
    assert!(text.contains("4 builds a side were measured in turns"), "{text}");
}
