//! A limit on a comparison, such as `delays.minimum.*>1.2`: for scripts that must fail when a machine got worse.
//!
//! A gate never passes in silence. If its id matches no row, if nothing it matches can be compared, or if a figure of the
//! baseline has vanished from another sheet, that is a failure too.

use std::fmt;

use crate::compare::{Comparison, RowVerdict};

/// A limit on the ratio of medians, another sheet's over the baseline's.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonGate {
    /// The ids it covers: one id, a part of ids up to a dot, or any beginning followed by `*`.
    pattern: String,
    /// Which side of the limit fails.
    fails: Fails,
    /// The limit; positive and finite.
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fails {
    Above,
    Below,
}

/// Why a text is not a gate, with what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateError {
    text: String,
    problem: &'static str,
    instead: String,
}

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "understand the gate {:?}: {}; write {}", self.text, self.problem, self.instead)
    }
}

impl std::error::Error for GateError {}

/// A gate that did not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct GateFailure {
    /// The gate, as it was written.
    pub gate: String,
    /// The row; `None` where the gate as a whole failed.
    pub id: Option<String>,
    /// What happened, as a sentence without a full stop.
    pub text: String,
}

impl fmt::Display for GateFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.id {
            Some(id) => write!(f, "{}: {id}: {}", self.gate, self.text),
            None => write!(f, "{}: {}", self.gate, self.text),
        }
    }
}

impl fmt::Display for ComparisonGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = if self.fails == Fails::Above { '>' } else { '<' };
        write!(f, "{}{operator}{}", self.pattern, self.limit)
    }
}

impl ComparisonGate {
    /// Reads a gate: an id, `>` or `<`, and the ratio of medians from which on it fails.
    ///
    /// The id may be that of one row, the beginning of several up to a dot (`delays.minimum`), or any beginning with one
    /// `*` at its end. Spaces around the parts are accepted.
    ///
    /// # Errors
    /// When a part is missing or makes no sense; the error says what to write instead.
    ///
    /// ```
    /// use hairspring_sheet::ComparisonGate;
    /// assert!(ComparisonGate::parse("delays.minimum.*>1.2").is_ok());
    /// let error = ComparisonGate::parse("delays.minimum.*>20%").unwrap_err().to_string();
    /// assert!(error.ends_with("write delays.minimum.*>1.2"), "{error}");
    /// ```
    pub fn parse(text: &str) -> Result<Self, GateError> {
        let wrong = |problem, instead: String| GateError { text: text.to_owned(), problem, instead };
        let Some(at) = text.find(['>', '<']) else {
            return Err(wrong(
                "there is no > or <",
                format!("{}>1.2", if text.trim().is_empty() { "ID" } else { text.trim() }),
            ));
        };
        let (pattern, limit) = (text[..at].trim(), text[at + 1..].trim());
        let operator = &text[at..=at];
        let fails = if operator == ">" { Fails::Above } else { Fails::Below };
        let whole = |pattern: &str, limit: &str| format!("{pattern}{operator}{limit}");
        let example = if fails == Fails::Above { "1.2" } else { "0.8" };
        if pattern.is_empty() {
            return Err(wrong(
                "there is no id before the operator",
                whole("ID", if limit.is_empty() { example } else { limit }),
            ));
        }
        if pattern.strip_suffix('*').unwrap_or(pattern).contains('*') {
            let until = pattern.find('*').map_or(pattern, |at| &pattern[..=at]);
            return Err(wrong("a * may only stand at the end of the id", whole(until, limit)));
        }
        if let Some(bad) = pattern.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || "._*".contains(c)))
        {
            let id: String = pattern
                .to_lowercase()
                .chars()
                .filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._*".contains(*c))
                .collect();
            let id = if id.is_empty() { pattern[..bad].to_owned() + "ID" } else { id };
            return Err(wrong("an id has only a–z, 0–9, _ and dots", whole(&id, limit)));
        }
        if let Some(rest) = limit.strip_prefix('=') {
            return Err(wrong("the operators are > and <", whole(pattern, rest.trim())));
        }
        if let Some(percent) = limit.strip_suffix('%').and_then(|p| p.trim().parse::<f64>().ok()) {
            let ratio = if percent < 100.0 {
                1.0 + percent.abs() / 100.0 * if fails == Fails::Above { 1.0 } else { -1.0 }
            } else {
                percent / 100.0
            };
            return Err(wrong("the limit is a ratio of medians, not a percentage", whole(pattern, &ratio.to_string())));
        }
        match limit.parse::<f64>() {
            Ok(limit) if limit > 0.0 && limit.is_finite() => Ok(Self { pattern: pattern.to_owned(), fails, limit }),
            Ok(_) => Err(wrong("the limit must be greater than 0 and finite", whole(pattern, example))),
            Err(_) => {
                let number = limit.trim_end_matches(|c: char| !c.is_ascii_digit()).replace(',', ".");
                let number = if number.parse::<f64>().is_ok_and(|n| n > 0.0) { number } else { example.to_owned() };
                Err(wrong("the limit is not a number", whole(pattern, &number)))
            }
        }
    }

    /// Whether the gate covers the row with this id.
    pub fn covers(&self, id: &str) -> bool {
        match self.pattern.strip_suffix('*') {
            Some(beginning) => id.starts_with(beginning),
            None => id.strip_prefix(self.pattern.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')),
        }
    }

    /// Everything in the comparison that the gate does not let pass; empty when it holds.
    pub fn check(&self, comparison: &Comparison) -> Vec<GateFailure> {
        let mut failures = Vec::new();
        let (mut covered, mut compared) = (0, 0);
        for row in comparison.rows.iter().filter(|row| self.covers(&row.id)) {
            covered += 1;
            for (against, sheet) in row.others.iter().zip(comparison.sheets.iter().skip(1)) {
                let outside = |ratio| match self.fails {
                    Fails::Above => ratio > self.limit,
                    Fails::Below => ratio < self.limit,
                };
                let text = match (against.ratio, against.verdict) {
                    (Some(ratio), _) => {
                        compared += 1;
                        outside(ratio).then(|| {
                            format!("the ratio of {} is {ratio:.3} ({})", row.centre.plural(), against.verdict)
                        })
                    }
                    // It was never measured in the baseline, so nothing can have become worse.
                    (None, RowVerdict::AbsentInBaseline | RowVerdict::AbsentInBoth | RowVerdict::OnlyInOther) => None,
                    (None, RowVerdict::NoDifferenceShown) if row.baseline.value() == against.side.value() => {
                        compared += 1;
                        None
                    }
                    (None, verdict) if row.baseline.value().is_some() => {
                        Some(format!("cannot be compared ({verdict})"))
                    }
                    (None, _) => None,
                };
                let text = text.map(|text| if row.others.len() > 1 { format!("{text}, in {sheet}") } else { text });
                failures.extend(text.map(|text| GateFailure {
                    gate: self.to_string(),
                    id: Some(row.id.clone()),
                    text,
                }));
            }
        }
        if failures.is_empty() && compared == 0 {
            let text = match covered {
                0 => "no row has this id; `hairspring probes` lists the ids".to_owned(),
                _ => format!("none of the {covered} rows it covers could be compared"),
            };
            failures.push(GateFailure { gate: self.to_string(), id: None, text });
        }
        failures
    }
}
