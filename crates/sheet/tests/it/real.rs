//! Two sheets that were taken on real machines and are kept in the repository: they load, and compare without error.
//!
//! What a comparison of real sheets should conclude is not asserted here. Versions of the program lie between the two, so each
//! has rows that the other lacks.

use std::collections::HashSet;
use std::path::Path;

use hairspring_sheet::render::{comparison, from_json, to_json};
use hairspring_sheet::{Comparison, ComparisonGate, RowVerdict, Sheet, TextStyle, compare};
use unicode_width::UnicodeWidthStr;

const TAKEN: [&str; 2] = ["2026-11-21-kvm-guest", "2026-11-22-kvm-guest"];

#[track_caller]
fn load(name: &str) -> Sheet {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sheets").join(name).join("sheet.json");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    from_json(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn ids(sheet: &Sheet) -> HashSet<&str> {
    sheet.rows().map(|row| row.id.as_str()).collect()
}

fn verdict(comparison: &Comparison, id: &str) -> RowVerdict {
    let row = comparison.rows.iter().find(|row| row.id == id).unwrap_or_else(|| panic!("{id} is not compared"));
    row.others[0].verdict
}

#[test]
fn a_real_sheet_is_the_same_after_it_was_written_and_read_again() {
    for sheet in TAKEN.map(load) {
        assert!(sheet.rows().filter(|row| row.figure().is_some()).count() > 600);
        let again = from_json(&to_json(&sheet)).expect("what was written");
        assert_eq!(to_json(&again), to_json(&sheet));
        let itself = compare(&sheet, std::slice::from_ref(&again));
        let same = [RowVerdict::NoDifferenceShown, RowVerdict::NoInterval, RowVerdict::AbsentInBoth];
        let other = itself.rows.iter().find(|row| !same.contains(&row.others[0].verdict));
        assert!(other.is_none(), "{other:?}");
    }
}

#[test]
fn every_row_of_two_real_sheets_is_compared_once_and_its_verdict_says_where_it_has_figures() {
    let [a, b] = TAKEN.map(load);
    let compared = compare(&a, std::slice::from_ref(&b));
    let rows: Vec<&str> = compared.rows.iter().map(|row| row.id.as_str()).collect();
    let distinct: HashSet<&str> = rows.iter().copied().collect();
    assert_eq!(rows.len(), distinct.len());
    assert_eq!(distinct, &ids(&a) | &ids(&b));
    let mut in_both = 0;
    for row in &compared.rows {
        let has = |sheet: &Sheet| sheet.row(&row.id).map(|row| row.figure().is_some());
        let verdict = row.others[0].verdict;
        let expected = match (has(&a), has(&b)) {
            (Some(true), Some(true)) => {
                in_both += 1;
                use RowVerdict::{Higher, Lower, NoDifferenceShown, NoInterval, TooFewSamples};
                matches!(verdict, Higher { .. } | Lower { .. } | NoDifferenceShown | NoInterval | TooFewSamples)
            }
            (Some(true), Some(false)) => verdict == RowVerdict::AbsentInOther,
            (Some(false), Some(true)) => verdict == RowVerdict::AbsentInBaseline,
            (Some(false), Some(false)) => verdict == RowVerdict::AbsentInBoth,
            (Some(_), None) => verdict == RowVerdict::OnlyInBaseline,
            (None, _) => verdict == RowVerdict::OnlyInOther,
        };
        assert!(expected, "{}: {verdict:?}", row.id);
    }
    assert!(in_both > 400, "only {in_both} rows have a figure in both");
}

#[test]
fn what_is_higher_in_one_real_sheet_is_lower_in_the_other() {
    let [a, b] = TAKEN.map(load);
    let (there, back) = (compare(&a, std::slice::from_ref(&b)), compare(&b, std::slice::from_ref(&a)));
    let mut differ = 0;
    for row in &there.rows {
        let expected = match row.others[0].verdict {
            RowVerdict::Higher { within_spread } => RowVerdict::Lower { within_spread },
            RowVerdict::Lower { within_spread } => RowVerdict::Higher { within_spread },
            RowVerdict::AbsentInBaseline => RowVerdict::AbsentInOther,
            RowVerdict::AbsentInOther => RowVerdict::AbsentInBaseline,
            RowVerdict::OnlyInBaseline => RowVerdict::OnlyInOther,
            RowVerdict::OnlyInOther => RowVerdict::OnlyInBaseline,
            same => same,
        };
        differ += usize::from(expected != row.others[0].verdict);
        assert_eq!(verdict(&back, &row.id), expected, "{}", row.id);
    }
    assert!(differ > 100, "two versions on two days differ in {differ} rows only");
}

#[test]
fn the_comparison_of_two_real_sheets_fits_its_width_and_a_gate_can_be_put_on_it() {
    let [a, b] = TAKEN.map(load);
    let compared = compare(&a, std::slice::from_ref(&b));
    for width in [60, 100, 160] {
        let text = comparison(&compared, &TextStyle { width, verbose: true, ..TextStyle::default() });
        assert!(text.lines().all(|line| line.width() <= width), "at {width} columns");
        assert!(text.contains("clocks.read.now.later"));
    }
    let failures = |gate: &str| ComparisonGate::parse(gate).expect("a gate").check(&compared).len();
    assert_eq!((failures("clocks.read.now.later>1000"), failures("clocks.read.now.later>0.000001")), (0, 1));
}
