//! [`clean`]: text of a document without characters that control a terminal.

/// Text that is safe for a terminal: control characters are replaced, line ends become spaces.
pub(crate) fn clean(text: &str) -> String {
    let replace = |c: char| match c {
        '\n' | '\t' => ' ',
        // Directional marks would reorder the columns of a table.
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(replace).collect()
}
