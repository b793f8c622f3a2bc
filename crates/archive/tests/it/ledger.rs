//! The archive as a ledger.

use hairspring_sheet::{CompareTerms, ComparedSheets, Grounds, RowVerdict, compare};

use crate::{ID, archive, sheet, text};

#[test]
fn five_sheets_under_equal_conditions_decide_between_two() {
    let (_folder, mut archive) = archive();
    for day in 0..4 {
        archive.add(&text(day, "6.8", 1.0 + 0.002 * (day % 3) as f64)).expect("added");
    }
    let (before, after) = (sheet(30, "6.8", 1.0), sheet(31, "6.9", 1.2));
    assert!(archive.ledger(&[&before, &after]).expect("read").is_none(), "four are too few");
    // A sheet of another kernel, twice as slow: it must not count.
    archive.add(&text(10, "6.7", 2.0)).expect("added");
    assert!(archive.ledger(&[&before, &after]).expect("read").is_none(), "one is of another kernel");
    archive.add(&text(4, "6.8", 1.001)).expect("added");
    let ledger = archive.ledger(&[&before, &after]).expect("read");
    assert!(ledger.is_some());
    let side = |name: &str, sheet| ComparedSheets { name: name.to_owned(), sheets: vec![sheet] };
    let terms = CompareTerms { ledger, ..CompareTerms::default() };
    let found = compare(&[side("before", before), side("after", after)], &terms);
    assert_eq!(found.grounds, [Grounds::Ledger(5)]);
    let row = found.rows.iter().find(|row| row.id == ID).expect("the row");
    assert!(matches!(row.others[0].verdict, RowVerdict::Differs { .. }), "{row:?}");
}
