//! Small texts of command lines and files of jobs: requirements, choices of settings, spans of time, names of taps,
//! patterns of rows, gates.

use hairspring_advice::job::JobNeed;
use hairspring_machine::Nanos;
use hairspring_settings::Choice;
use hairspring_sheet::{ComparisonGate, RowPattern};
use hairspring_tap::TapPlace;

/// Checks the module's promise.
///
/// # Panics
/// The bytes break it.
pub fn check(bytes: &[u8]) {
    let Some(text) = crate::text(bytes) else { return };
    if let Err(error) = text.parse::<JobNeed>() {
        assert!(text.get(error.place()).is_some() && error.to_string().lines().count() <= 3);
    }
    if let Ok(choice) = text.parse::<Choice>() {
        let again: Choice = choice.to_string().parse().expect("what was printed is read");
        assert_eq!(again.to_string(), choice.to_string());
    }
    if let Ok(span) = text.parse::<Nanos>() {
        let _ = span.to_string();
    }
    if let Ok(place) = text.parse::<TapPlace>() {
        let _ = (place.to_string(), place.to_read());
    }
    if let Some(pattern) = RowPattern::parse(text) {
        assert_eq!(pattern.to_string(), text);
        let _ = pattern.covers("clocks.read.monotonic.cost");
    }
    if let Ok(gate) = ComparisonGate::parse(text) {
        let _ = gate.pattern().covers("clocks.read.monotonic.cost");
    }
}
