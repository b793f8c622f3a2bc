//! [`Listing`]: facts as text, each a label with wrapped text beside it.

use hairspring_sheet::Unit;
use hairspring_sheet::render::quantity;
use hairspring_time::Nanos;

/// Width of the labels, with the space after them.
const LABELS: usize = 14;
/// Indentation of the labels.
const INDENT: &str = "  ";

/// A list under construction.
pub(crate) struct Listing {
    text: String,
    width: usize,
}

impl Listing {
    /// An empty list for this many columns.
    pub(crate) fn new(width: usize) -> Self {
        Self { text: String::new(), width }
    }

    /// Adds a heading.
    pub(crate) fn heading(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        for line in broken(text, self.width) {
            self.text.push_str(&line);
            self.text.push('\n');
        }
        self.text.push('\n');
    }

    /// Adds a fact. An empty label continues the fact before.
    pub(crate) fn fact(&mut self, label: &str, text: &str) {
        let room = self.width.saturating_sub(INDENT.len() + LABELS);
        for (number, line) in broken(text, room).iter().enumerate() {
            let label = if number == 0 { label } else { "" };
            let whole = format!("{INDENT}{label:<LABELS$}{line}");
            self.text.push_str(whole.trim_end());
            self.text.push('\n');
        }
    }

    /// Adds facts under one label, each on its own lines.
    pub(crate) fn facts<T: AsRef<str>>(&mut self, label: &str, texts: impl IntoIterator<Item = T>) {
        for (number, text) in texts.into_iter().enumerate() {
            self.fact(if number == 0 { label } else { "" }, text.as_ref());
        }
    }

    /// The text.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// Wraps between words. A word that is too long, such as a path, stays whole.
fn broken(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line =
            lines.last_mut().filter(|line| line.is_empty() || line.chars().count() + 1 + word.chars().count() <= room);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A whole number with commas between the thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A span with three digits.
pub(crate) fn span(nanos: Nanos) -> String {
    quantity(nanos.count() as f64, Unit::Ns).to_string()
}

/// A ratio in percent; 0 if the whole is 0.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let ratio = if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    format!("{:.1} %", ratio * 100.0)
}

/// A duration as a clock shows it.
pub(crate) fn clock(nanos: Nanos) -> String {
    let seconds = nanos.count().max(0) / 1_000_000_000;
    let (days, hours, minutes, seconds) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{seconds:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{seconds:02}"),
        (1..1000, _) => format!("{days} d {hours} h"),
        _ => "years".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_between_words_and_stands_under_itself() {
        let mut listing = Listing::new(30);
        listing.heading("complete: everything");
        listing.fact("files", "one two three four");
        listing.fact("", "/a/very/long/path/that/stays/whole");
        let expected = "complete: everything\n\n  files         one two three\n                four\n                /a/very/long/path/that/stays/whole\n";
        assert_eq!(listing.finish(), expected);
    }

    #[test]
    fn numbers_and_spans_are_written_for_people() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(clock(Nanos::from_secs(59)), "0:59");
        assert_eq!(clock(Nanos::from_secs(3_661)), "1:01:01");
        assert_eq!(clock(Nanos::from_secs(90_000)), "1 d 1 h");
        assert_eq!(clock(Nanos::MAX), "years");
        assert_eq!((percent(1, 8), percent(1, 0)), ("12.5 %".to_owned(), "0.0 %".to_owned()));
    }
}
