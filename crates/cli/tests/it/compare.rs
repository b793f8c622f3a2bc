//! `hairspring compare`: what differs, and gates.

use hairspring_sheet::render::{from_json, to_json};
use hairspring_sheet::{Sheet, Value};

use crate::{WHOLE, code, folder, run, stderr, stdout};

const ID: &str = "clocks.read.now.later";

/// The same sheet with every statistic of one row multiplied.
fn scaled(sheet: &Sheet, id: &str, factor: f64) -> Sheet {
    let mut sheet = sheet.clone();
    let rows = sheet.chapters.iter_mut().flat_map(|chapter| &mut chapter.tables).flat_map(|table| &mut table.rows);
    for row in rows.filter(|row| row.id == id) {
        let Value::Figure(figure) = &mut row.value else { panic!("{id} was measured") };
        // As its rounds would have it on a machine that does nothing else.
        figure.median_interval = figure.median.map(|median| [median * 0.95, median * 1.05]);
        let (interval, statistics) = (
            &mut figure.median_interval,
            [
                &mut figure.min,
                &mut figure.p1,
                &mut figure.q1,
                &mut figure.median,
                &mut figure.q3,
                &mut figure.p99,
                &mut figure.p999,
                &mut figure.max,
            ],
        );
        let limits = interval.iter_mut().flatten();
        statistics.into_iter().flatten().chain(limits).for_each(|statistic| *statistic *= factor);
    }
    sheet
}

/// Compares the sheet of this machine with copies of it, one row of each scaled; returns code, result and the rest.
fn compare(factors: &[f64], arguments: &[&str]) -> (i32, String, String) {
    let folder = folder();
    let sheet = from_json(&WHOLE).expect("it is a sheet");
    let mut files = Vec::new();
    for (number, factor) in std::iter::once(&1.0).chain(factors).enumerate() {
        let file = folder.path().join(format!("{number}.json"));
        std::fs::write(&file, to_json(&scaled(&sheet, ID, *factor))).expect("written");
        files.push(file.to_str().expect("temporary names are text").to_owned());
    }
    let mut all = vec!["compare"];
    all.extend(files.iter().map(String::as_str));
    all.extend(arguments);
    let output = run(&all);
    (code(&output), stdout(&output), stderr(&output))
}

#[test]
fn a_sheet_does_not_differ_from_itself() {
    let (code, text, complaints) = compare(&[1.0], &["--fail-if", "clocks.*>1.0001"]);
    assert_eq!((code, complaints.as_str()), (0, ""));
    assert!(text.contains("nothing that the sheets record"), "{text}");
    assert!(!text.contains(ID), "{text}");
}

#[test]
fn a_row_that_differs_is_shown_with_its_ratio() {
    // So much that no disturbance of this machine hides it.
    let (code, text, complaints) = compare(&[1000.0], &[]);
    assert_eq!((code, complaints.as_str()), (0, ""));
    let after = text.split_once(ID).map(|(_, after)| after).unwrap_or_default();
    assert!(after.contains("× 1000") && after.contains("higher"), "{text}");
}

#[test]
fn a_gate_that_fails_ends_with_6_and_says_which() {
    let (code, text, complaints) = compare(&[2.0], &["--fail-if", &format!("{ID}>1.2")]);
    assert_eq!(code, 6);
    assert!(complaints.contains(ID) && complaints.contains("the ratio of medians is 2.000"), "{complaints}");
    assert!(text.contains("Comparison"), "the comparison is printed all the same");
    assert_eq!(compare(&[0.5], &["--fail-if", &format!("{ID}<0.8")]).0, 6);
}

#[test]
fn a_gate_that_holds_ends_with_0() {
    assert_eq!(compare(&[1.1], &["--fail-if", &format!("{ID}>1.2")]).0, 0);
    assert_eq!(compare(&[0.5], &["--fail-if", "clocks.read.*>1.2"]).0, 0);
}

#[test]
fn a_gate_watches_every_sheet_and_every_gate_counts() {
    let (code, _, complaints) = compare(&[1.0, 3.0], &["--fail-if", "delays>1000", "--fail-if", "clocks.read>2"]);
    assert_eq!(code, 6);
    assert!(complaints.contains("3.000"), "{complaints}");
}

#[test]
fn a_gate_on_an_id_that_is_not_there_is_refused_before_anything_is_compared() {
    let (code, text, complaints) = compare(&[1.0], &["--fail-if", "clocks.read.nosuch>1.2"]);
    assert_eq!((code, text.as_str()), (2, ""));
    assert!(complaints.contains("clocks.read.nosuch>1.2: no row of these sheets has this id"), "{complaints}");
}

#[test]
fn every_row_is_listed_on_request() {
    let (_, text, _) = compare(&[1.0], &["--verbose"]);
    assert!(text.contains(ID) && text.contains("no difference shown"), "{text}");
}

#[test]
fn historic_sheets_are_compared_by_their_names() {
    let output = run(&["compare", "amx86-486sx", "amx86-net186"]);
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
    assert!(stdout(&output).contains("× "), "{}", stdout(&output));
}
