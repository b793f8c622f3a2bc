//! [`DescriptionError`]: what is wrong with a description, where, and what to write.

use std::fmt;
use std::ops::Range;

use unicode_width::UnicodeWidthStr as _;

/// The greatest length of a part; a longer one is shown with an ellipsis.
const NAMED_MOST: usize = 60;
/// How many characters of a long text are shown on each side of the place.
const AROUND_MOST: usize = 50;

/// Why a text is not a valid description.
///
/// Its text has three lines: what is wrong and what to write, the description, and a caret under the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptionError {
    text: String,
    named: Range<usize>,
    place: Range<usize>,
    why: String,
}

impl DescriptionError {
    /// An error about `named`, pointing at `place`; both are byte ranges of `text` at character boundaries.
    pub(crate) fn new(text: &str, named: Range<usize>, place: Range<usize>, why: String) -> Self {
        Self { text: text.to_owned(), named, place, why }
    }

    /// Adds one more alternative to write.
    #[must_use]
    pub fn also(mut self, what: &str) -> Self {
        self.why = format!("{}, {what}", self.why);
        self
    }

    /// The wrong part of the description, shortened if long.
    pub fn part(&self) -> String {
        let part = self.slice(&self.named);
        let shown: String = part.chars().take(NAMED_MOST).collect();
        printable(if shown.len() < part.len() { shown + "…" } else { shown })
    }

    /// The mistake and its remedy.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// The place in the description that the caret points at, in bytes.
    pub fn place(&self) -> Range<usize> {
        self.place.clone()
    }

    /// The first line alone, for callers that show the place in another way.
    pub fn in_one_line(&self) -> String {
        // The reason can quote the text.
        format!("'{}': {}", self.part(), printable(self.why.clone()))
    }

    fn slice(&self, range: &Range<usize>) -> &str {
        self.text.get(range.clone()).unwrap_or(&self.text)
    }
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_one_line())?;
        let (before, at) = (self.slice(&(0..self.place.start)), self.slice(&self.place));
        let after = self.slice(&(self.place.end..self.text.len()));
        let (hidden, before) = last(before, AROUND_MOST);
        let (begin, at, after) = (if hidden { "…" } else { "" }, first(at, AROUND_MOST), first(after, AROUND_MOST));
        let [before, at, after] = [before, at, after].map(|text| printable(text.to_owned()));
        if before.is_empty() && at.is_empty() && after.is_empty() {
            return Ok(());
        }
        let (indent, width) = (begin.width() + before.width(), at.width().max(1));
        write!(f, "\n  {begin}{before}{at}{after}\n  {:indent$}{:^<width$}", "", "")
    }
}

impl std::error::Error for DescriptionError {}

/// The first characters.
fn first(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

/// The last characters, and whether there are more.
fn last(text: &str, most: usize) -> (bool, &str) {
    let begin = text.char_indices().rev().nth(most.saturating_sub(1)).map_or(0, |(begin, _)| begin);
    (begin > 0, &text[begin..])
}

/// A text may contain any characters. Control characters are shown as replacement characters.
fn printable(text: String) -> String {
    text.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn shows(text: &str, named: Range<usize>, place: Range<usize>, lines: &str) {
        let error = DescriptionError::new(text, named, place, "no".to_owned());
        assert_eq!(error.to_string(), lines);
    }

    #[test]
    fn the_caret_stands_under_the_place() {
        shows("a:b,c=de", 4..8, 6..8, "'c=de': no\n  a:b,c=de\n        ^^");
        shows("a:", 0..2, 2..2, "'a:': no\n  a:\n    ^");
        shows("日本:x", 7..8, 7..8, "'x': no\n  日本:x\n       ^");
        shows("", 0..0, 0..0, "'': no");
    }

    #[test]
    fn a_reason_that_quotes_control_characters_stays_in_one_line() {
        // Found by the fuzzer: `serial:/dev/x,c1"\n[o…` broke the message into more lines, and could move a terminal's
        // cursor.
        let error = DescriptionError::new("a\nb", 0..3, 0..3, "write x for a\nb\u{1b}[2J".to_owned());
        assert_eq!(error.in_one_line(), "'a\u{FFFD}b': write x for a\u{FFFD}b\u{FFFD}[2J");
        assert_eq!(error.to_string().lines().count(), 3);
    }

    #[test]
    fn long_and_strange_texts_are_shown_as_far_as_they_can_be() {
        shows("\u{1b}[31m", 0..5, 0..1, "'\u{FFFD}[31m': no\n  \u{FFFD}[31m\n  ^");
        let long = format!("{},y,{}", "x".repeat(100), "z".repeat(100));
        let (before, after) = ("x".repeat(49), "z".repeat(49));
        shows(&long, 101..102, 101..102, &format!("'y': no\n  …{before},y,{after}\n  {:51}^", ""));
        let error = DescriptionError::new(&long, 0..long.len(), 0..1, "no".to_owned());
        assert_eq!(error.part(), format!("{}…", "x".repeat(60)));
    }
}
