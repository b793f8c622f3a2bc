//! Two sheets that were taken on real machines and are kept in the repository: they load, and compare without error.
//!
//! The tests do not assert the conclusions of a comparison of real sheets. Versions of the program lie between the two,
//! so each has rows that the other lacks.

use std::collections::HashSet;

use hairspring_sheet::render::{comparison, comparison_html, comparison_json, comparison_markdown, from_json, to_json};
use hairspring_sheet::{CompareTerms, Doubt, RowVerdict, Sheet, TextStyle, Unmatched, compare};
use unicode_width::UnicodeWidthStr;

use crate::compare::side;

const TAKEN: [&str; 2] = ["2026-11-21-kvm-guest", "2026-11-22-kvm-guest"];

#[track_caller]
fn load(name: &str) -> Sheet {
    from_json(&testing::sheets::real(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn ids(sheet: &Sheet) -> HashSet<&str> {
    sheet.rows().map(|row| row.id.as_str()).collect()
}

#[test]
fn a_real_sheet_is_the_same_after_it_was_written_and_read_again() {
    for sheet in TAKEN.map(load) {
        assert!(sheet.rows().filter(|row| row.figure().is_some()).count() > 600);
        let again = from_json(&to_json(&sheet)).expect("what was written");
        assert_eq!(to_json(&again), to_json(&sheet));
    }
}

#[test]
fn every_row_of_two_real_sheets_is_compared_once_and_its_verdict_says_where_it_has_figures() {
    let [a, b] = TAKEN.map(load);
    let compared = compare(&[side("A", vec![a.clone()]), side("B", vec![b.clone()])], &CompareTerms::default());
    let rows: Vec<&str> = compared.rows.iter().map(|row| row.id.as_str()).collect();
    let distinct: HashSet<&str> = rows.iter().copied().collect();
    assert_eq!(rows.len(), distinct.len());
    assert_eq!(distinct, &ids(&a) | &ids(&b));
    let mut in_both = 0;
    for row in &compared.rows {
        let has = |sheet: &Sheet| sheet.row(&row.id).map(|row| row.figure().is_some());
        let unmatched = RowVerdict::Unmatched;
        let expected = match (has(&a), has(&b)) {
            (Some(true), Some(true)) => {
                in_both += 1;
                let judged = row.others[0].verdict != RowVerdict::CannotTell(Doubt::NotJudged);
                RowVerdict::CannotTell(if judged { Doubt::SingleSheets } else { Doubt::NotJudged })
            }
            (Some(true), Some(false)) => unmatched(Unmatched::AbsentInOther),
            (Some(false), Some(true)) => unmatched(Unmatched::AbsentInBaseline),
            (Some(false), Some(false)) => unmatched(Unmatched::AbsentInBoth),
            (Some(_), None) => unmatched(Unmatched::OnlyInBaseline),
            (None, _) => unmatched(Unmatched::OnlyInOther),
        };
        assert_eq!(row.others[0].verdict, expected, "{}", row.id);
    }
    assert!(in_both > 400, "only {in_both} rows have a figure in both");
}

#[test]
fn the_comparison_of_two_real_sheets_fits_its_width_and_has_every_form() {
    let [a, b] = TAKEN.map(load);
    let compared = compare(&[side("A", vec![a]), side("B", vec![b])], &CompareTerms::default());
    for (width, verbose) in [(60, true), (80, false), (120, true)] {
        let text = comparison(&compared, &TextStyle { width, verbose, ..TextStyle::default() });
        assert!(text.lines().all(|line| line.width() <= width), "at {width} columns");
        assert_eq!(text.contains("clocks.read.now.later"), verbose);
    }
    let screen = comparison(&compared, &TextStyle::default());
    assert!(screen.lines().count() < 90, "{screen}");
    let json: serde_json::Value = serde_json::from_str(&comparison_json(&compared)).expect("JSON");
    assert_eq!(json["rows"].as_array().map(Vec::len), Some(compared.rows.len()));
    let (html, markdown) = (comparison_html(&compared), comparison_markdown(&compared));
    for row in compared.rows.iter().filter(|row| row.others[0].ratio.is_some()) {
        assert!(html.contains(&row.id) && markdown.contains(&row.id), "{}", row.id);
    }
}
