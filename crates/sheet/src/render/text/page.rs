//! Lines of a terminal: widths in columns, wrapping, colours.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::render::clean::clean;

/// The narrowest page; below it the columns of a table no longer fit.
const WIDTH_MIN: usize = 60;
/// The widest page; longer lines are hard to follow.
const WIDTH_MAX: usize = 160;

/// The indent of rows below the heading of their table.
pub(super) const INDENT: usize = 2;

/// The style of a piece of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Plain,
    Heading,
    Dim,
    Warning,
    Missing,
}

impl Ink {
    /// The ANSI sequence of a style.
    fn sequence(self) -> &'static str {
        match self {
            Ink::Plain => "",
            Ink::Heading => "\x1b[1m",
            Ink::Dim => "\x1b[2m",
            Ink::Warning => "\x1b[33m",
            Ink::Missing => "\x1b[31m",
        }
    }
}

/// Text that grows line by line.
pub(crate) struct Page {
    pub(crate) width: usize,
    colour: bool,
    text: String,
}

impl Page {
    pub(crate) fn new(width: usize, colour: bool) -> Self {
        Self { width: width.clamp(WIDTH_MIN, WIDTH_MAX), colour, text: String::new() }
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }

    /// One line of pieces. Text beyond the width is cut, with a mark.
    pub(crate) fn line(&mut self, pieces: &[(Ink, &str)]) {
        let last = pieces.iter().rposition(|(_, text)| !text.trim_end().is_empty()).map_or(0, |i| i + 1);
        let mut left = self.width;
        for (i, (ink, text)) in pieces.iter().enumerate().take(last) {
            let text = if i + 1 == last { text.trim_end() } else { text };
            let text = cut(&clean(text), left);
            left -= text.width();
            if self.colour && *ink != Ink::Plain && !text.trim().is_empty() {
                self.text.push_str(ink.sequence());
                self.text.push_str(&text);
                self.text.push_str("\x1b[0m");
            } else {
                self.text.push_str(&text);
            }
        }
        self.text.push('\n');
    }

    /// An empty line, unless there is one already or nothing yet.
    pub(crate) fn blank(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// A line across the page.
    pub(crate) fn rule(&mut self) {
        let rule = "─".repeat(self.width);
        self.line(&[(Ink::Dim, &rule)]);
    }

    /// A heading with its id beside it, or below it without room.
    pub(crate) fn beside(&mut self, ink: Ink, heading: &str, id: &str) {
        if heading.width() + 2 + id.width() <= self.width {
            self.line(&[(ink, heading), (Ink::Plain, "  "), (Ink::Dim, id)]);
        } else {
            self.wrapped(ink, 0, 0, heading);
            self.wrapped(Ink::Dim, 0, 2, id);
        }
    }

    /// A name with wrapped text beside it, which begins at column `rest`.
    pub(crate) fn hanging(&mut self, indent: usize, rest: usize, name: &str, text: &str) {
        let width = self.width - rest;
        for (i, line) in wrap(text, width, width).iter().enumerate() {
            let name = if i == 0 { name } else { "" };
            let name = padded(&format!("{}{name}", " ".repeat(indent)), rest);
            self.line(&[(Ink::Plain, &name), (Ink::Plain, line)]);
        }
    }

    /// Wrapped text; `first` and `rest` are the indents of the first line and the others.
    pub(crate) fn wrapped(&mut self, ink: Ink, first: usize, rest: usize, text: &str) {
        let widths = (self.width - first, self.width - rest);
        for (i, line) in wrap(text, widths.0, widths.1).iter().enumerate() {
            let indent = " ".repeat(if i == 0 { first } else { rest });
            self.line(&[(Ink::Plain, &indent), (ink, line)]);
        }
    }
}

/// Breaks text at spaces into lines of at most `first` columns, then `rest` columns; words wider than a line are
/// broken.
pub(crate) fn wrap(text: &str, first: usize, rest: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in clean(text).split(' ').filter(|w| !w.is_empty()) {
        let limit = |lines: &Vec<String>| if lines.is_empty() { first } else { rest }.max(1);
        if !line.is_empty() && line.width() + 1 + word.width() > limit(&lines) {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        let mut word = word;
        while line.width() + word.width() > limit(&lines) && !word.is_empty() {
            let (start, rest) = word.split_at(break_at(word, limit(&lines).saturating_sub(line.width())));
            line.push_str(start);
            lines.push(std::mem::take(&mut line));
            word = rest;
        }
        line.push_str(word);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Position at which to break a word of which at most `width` columns fit: after the last punctuation mark inside it,
/// else anywhere. Takes at least one character, so that every call makes progress.
fn break_at(word: &str, width: usize) -> usize {
    let mut columns = 0;
    let fits = |(_, c): &(usize, char)| {
        columns += c.width().unwrap_or(0);
        columns <= width
    };
    let fitting = word.char_indices().take_while(fits).last().map_or(0, |(i, c)| i + c.len_utf8());
    let least = word.chars().next().map_or(0, char::len_utf8);
    let joint = word[..fitting].rfind(['_', '/', '(', ',', '=', '-', '.', ':']).map_or(0, |i| i + 1);
    if joint * 2 > fitting { joint } else { fitting.max(least) }
}

/// At most `width` columns of the text; `…` marks a cut.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for character in text.chars() {
        if kept.width() + character.width().unwrap_or(0) + 1 > width {
            break;
        }
        kept.push(character);
    }
    if width > 0 {
        kept.push('…');
    }
    kept
}

/// Text with spaces after it up to `width` columns.
pub(crate) fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Text with spaces before it up to `width` columns.
pub(crate) fn flush_right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.width())))
}
