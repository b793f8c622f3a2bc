//! Metadata: an accepted text is written such that it can be read again.

use hairspring_recording::sigmf::{parse, parse_foreign, render};

/// Checks the module's promise.
///
/// # Panics
/// The bytes break it.
pub fn check(bytes: &[u8]) {
    if let Ok((about, closing, segments)) = parse(bytes) {
        let text = render(&about, closing.as_ref(), &segments);
        let again = parse(&text).expect("what was written is read");
        assert_eq!((&again.0, &again.1), (&about, &closing));
    }
    let _ = parse_foreign(bytes);
}
