//! Finding sheets and machines, and their history.

use hairspring_archive::{ArchiveError, FiguresOf, machine_id};
use hairspring_sheet::{CutVerdict, FactValue, RowPattern, render, trends};

use crate::{ID, OTHER, archive, sheet, text};

#[test]
fn a_sheet_is_found_by_the_beginning_of_its_id() {
    let (_folder, mut archive) = archive();
    for day in 0..40 {
        archive.add(&text(day, "6.8", 1.0)).expect("added");
    }
    let sheets = archive.list().expect("listed");
    assert!(sheets.is_sorted_by_key(|sheet| sheet.taken_ns));
    for sheet in &sheets {
        assert_eq!(archive.find(&sheet.id.to_uppercase()).expect("found"), *sheet);
    }
    assert!(matches!(archive.find(""), Err(ArchiveError::NoSuchSheet(_))));
    assert!(matches!(archive.find("%"), Err(ArchiveError::NoSuchSheet(_))));
    assert!(matches!(archive.find("' OR 1"), Err(ArchiveError::NoSuchSheet(_))));
    let one = sheets.iter().find(|s| sheets.iter().filter(|other| other.id[..1] == s.id[..1]).count() > 1);
    let one = one.expect("two of forty begin with one digit");
    assert!(matches!(archive.find(&one.id[..1]), Err(ArchiveError::Ambiguous(_, ids)) if ids.len() > 1));
}

#[test]
fn machines_are_told_apart_by_their_name_and_not_by_their_kernel() {
    let (_folder, mut archive) = archive();
    let mut other = sheet(3, "6.9", 1.0);
    other.conditions.facts[0].value = FactValue::Value("stand".to_owned());
    assert_eq!(machine_id(&sheet(1, "6.8", 1.0).conditions), machine_id(&sheet(2, "6.9", 1.0).conditions));
    for json in [text(1, "6.8", 1.0), text(2, "6.9", 1.0), render::to_json(&other)] {
        archive.add(&json).expect("added");
    }
    let machines = archive.machines().expect("read");
    assert_eq!(machines.iter().map(|machine| machine.sheets).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(archive.machine(Some("stand")).expect("found").sheets, 1);
    assert!(matches!(archive.machine(None), Err(ArchiveError::WhichMachine(None, names)) if names.len() == 2));
    assert!(matches!(archive.machine(Some("nowhere")), Err(ArchiveError::WhichMachine(Some(_), _))));
}

#[test]
fn a_history_is_cut_where_the_kernel_changed_and_not_where_the_load_did() {
    let (_folder, mut archive) = archive();
    for day in 0..24 {
        let (kernel, factor) = if day < 12 { ("6.8", 1.0) } else { ("6.9", 1.5) };
        let mut sheet = sheet(day, kernel, factor * (1.0 + 0.001 * (day % 5) as f64));
        sheet.conditions.facts[3].value = FactValue::Value(day.to_string());
        archive.add(&render::to_json(&sheet)).expect("added");
    }
    let machine = archive.machine(None).expect("one");
    let pattern = RowPattern::parse("clocks").expect("a pattern");
    let history = archive.history(&machine, None, &[pattern]).expect("read");
    assert_eq!(history.rows.len(), 1);
    let trend = trends(&history).remove(0);
    assert_eq!((trend.id.as_str(), trend.medians.len(), trend.cuts.len(), trend.changes.len()), (ID, 24, 1, 0));
    let cut = &trend.cuts[0];
    let kernel = ("kernel.release".to_owned(), "6.8".to_owned(), "6.9".to_owned());
    assert_eq!((cut.sheet, cut.conditions.as_slice()), (12, [kernel].as_slice()));
    assert!(matches!(cut.verdict, CutVerdict::Changed(least) if least > 0.4), "{cut:?}");
}

#[test]
fn figures_of_many_sheets_are_one_table() {
    let (_folder, mut archive) = archive();
    for day in 0..3 {
        archive.add(&text(day, "6.8", 1.0 + day as f64)).expect("added");
    }
    let all = archive.figures(&FiguresOf::default()).expect("read");
    assert_eq!((all.sheets.len(), all.quantities.len(), all.figures.len()), (3, 2, 6));
    let only = vec![RowPattern::parse("delays.*").expect("a pattern"), RowPattern::parse(OTHER).expect("a pattern")];
    let few = archive.figures(&FiguresOf { only, ..FiguresOf::default() }).expect("read");
    assert_eq!((few.figures.len(), few.quantities[0].id.as_str()), (3, OTHER));
    let of = |figure: &&hairspring_archive::ArchivedFigure| all.quantities[figure.quantity].id == ID;
    let medians: Vec<f64> = all.figures.iter().filter(of).map(|figure| figure.median.round()).collect();
    assert_eq!(medians, [20.0, 40.0, 60.0]);
    let machine = Some(archive.machine(None).expect("one"));
    let none = FiguresOf { machine, effort: Some("thorough".to_owned()), only: Vec::new() };
    assert_eq!(archive.figures(&none).expect("read").figures, []);
}
