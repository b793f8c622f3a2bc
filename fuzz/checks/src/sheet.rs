//! Sheets as JSON: an accepted sheet is written such that it is read again, and can be rendered and compared.

use hairspring_sheet::render::{TextStyle, first_page, from_json, html, markdown, text, to_json};
use hairspring_sheet::{CompareTerms, ComparedSheets, compare};

/// Checks the module's promise.
///
/// # Panics
/// The bytes break it.
pub fn check(bytes: &[u8]) {
    let Some(json) = crate::text(bytes) else { return };
    let Ok(sheet) = from_json(json) else { return };
    let written = to_json(&sheet);
    let again = from_json(&written).expect("what was written is read");
    assert_eq!(to_json(&again), written);
    for width in [20, 80] {
        let style = TextStyle { width, verbose: true, ..TextStyle::default() };
        assert!(text(&sheet, &style).ends_with('\n'));
        let _ = first_page(&sheet, &style);
    }
    let _ = (markdown(&sheet), html(&sheet));
    let side = |name: &str| ComparedSheets { name: name.to_owned(), sheets: vec![sheet.clone(), again.clone()] };
    let _ = compare(&[side("one"), side("other")], &CompareTerms::default());
}
