//! A limit on a comparison, such as `delays.minimum.*>1.2`, for scripts that must fail if a machine became worse.
//!
//! A gate fails, holds, or stays undecided; the point estimate of a ratio decides nothing. A gate never passes
//! silently: it also fails if its id matches no row, if no matched row can be compared, or if a figure of the baseline
//! is missing in another sheet.

use std::fmt;

use crate::RowPattern;
use crate::compare::{ComparedRow, Comparison, Doubt, RowVerdict, Unmatched};
use crate::statistics::{Difference, Scale, holm};

/// The level of each one-sided decision.
const LEVEL: f64 = 0.05;

/// A limit on the ratio of medians, another sheet's over the baseline's.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonGate {
    /// The ids it covers.
    pattern: RowPattern,
    /// The side of the limit that fails.
    fails: Fails,
    /// The limit; positive and finite.
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fails {
    Above,
    Below,
}

/// Error in the text of a gate, with the expected syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateError {
    text: String,
    problem: &'static str,
    instead: String,
}

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a gate: {}; write {}", self.text, self.problem, self.instead)
    }
}

impl std::error::Error for GateError {}

/// The outcome of a gate, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GateOutcome {
    /// All ratios are within the limit, with 95 % each.
    Holds,
    /// A ratio may be within the limit or beyond.
    Undecided,
    /// A ratio is beyond the limit, a figure is missing, or no row could be judged.
    Fails,
}

/// The result of a gate.
#[derive(Clone, Debug, PartialEq)]
pub struct GateReport {
    /// The gate, as written.
    pub gate: String,
    /// The worst of all rows.
    pub outcome: GateOutcome,
    /// Every row that does not hold, and failures of the gate as a whole.
    pub findings: Vec<GateFinding>,
}

/// A row that does not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct GateFinding {
    /// Whether it fails or is undecided.
    pub outcome: GateOutcome,
    /// The row; `None` if the gate as a whole failed.
    pub id: Option<String>,
    /// A description, as a sentence without a full stop.
    pub text: String,
}

impl fmt::Display for GateOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GateOutcome::Holds => "holds",
            GateOutcome::Undecided => "undecided",
            GateOutcome::Fails => "fails",
        })
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
    /// The id may be that of one row, the beginning of several up to a dot (`delays.minimum`), or any beginning with
    /// one `*` at its end. Spaces around the parts are accepted.
    ///
    /// # Errors
    /// A part is missing or invalid; the error names the expected syntax.
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
            Ok(limit) if limit > 0.0 && limit.is_finite() => RowPattern::parse(pattern)
                .map(|pattern| Self { pattern, fails, limit })
                .ok_or_else(|| wrong("the id is not one", whole("ID", example))),
            Ok(_) => Err(wrong("the limit must be greater than 0 and finite", whole(pattern, example))),
            Err(_) => {
                let number = limit.trim_end_matches(|c: char| !c.is_ascii_digit()).replace(',', ".");
                let number = if number.parse::<f64>().is_ok_and(|n| n > 0.0) { number } else { example.to_owned() };
                Err(wrong("the limit is not a number", whole(pattern, &number)))
            }
        }
    }

    /// The ids that the gate covers.
    pub fn pattern(&self) -> &RowPattern {
        &self.pattern
    }

    /// Whether the comparison fails the gate, holds it, or decides neither.
    ///
    /// A row fails if its ratio lies beyond the limit with 95 %. Holm's procedure covers all rows of the gate, so that
    /// a gate on many rows has no more false failures than a gate on one. A row holds if its ratio lies within the
    /// limit with 95 %. A missing figure of the baseline fails. Counts and largest values are not judged.
    pub fn check(&self, comparison: &Comparison) -> GateReport {
        let covered: Vec<&ComparedRow> = comparison.rows.iter().filter(|row| self.pattern.covers(&row.id)).collect();
        let pairs = || covered.iter().flat_map(|row| row.others.iter().enumerate().map(|(other, a)| (*row, other, a)));
        let judged: Vec<(&ComparedRow, usize, Difference)> = pairs()
            .filter_map(|(row, other, against)| Some((row, other, against.difference?)))
            .filter(|(.., difference)| difference.scale == Scale::Log)
            .collect();
        let failing: Vec<f64> = judged.iter().map(|(.., difference)| self.beyond(difference).p_above(0.0)).collect();
        let failing = holm(&failing, LEVEL);
        let mut report = GateReport { gate: self.to_string(), outcome: GateOutcome::Holds, findings: Vec::new() };
        for ((row, other, difference), fails) in judged.iter().zip(failing) {
            let ratio = format!("the ratio of {} is {:.3}", row.centre.plural(), difference.estimate.exp());
            let beyond = self.beyond(difference);
            let [low, high] = beyond.one_sided(LEVEL);
            if fails {
                let near = self.ratio(low);
                let least = if self.fails == Fails::Above { "least" } else { "most" };
                report.add(
                    GateOutcome::Fails,
                    row,
                    *other,
                    comparison,
                    format!("{ratio}, and at {least} {near:.3} with 95 %"),
                );
            } else if high > 0.0 {
                let needed = beyond.units_needed(beyond.estimate.abs(), 0.0, 2.0 * LEVEL);
                let what = comparison.grounds[*other].units();
                let needed =
                    needed.map_or(format!("more than 1,000 {what}"), |needed| format!("about {needed} {what}"));
                let [near, far] = difference.one_sided(LEVEL).map(f64::exp);
                let text = format!("{ratio}, from {near:.3} to {far:.3}: a decision needs {needed}");
                report.add(GateOutcome::Undecided, row, *other, comparison, text);
            }
        }
        let mut not_judged = 0;
        for (row, other, against) in
            pairs().filter(|(.., against)| against.difference.is_none_or(|d| d.scale != Scale::Log))
        {
            use Unmatched::{AbsentInBaseline, AbsentInBoth, OnlyInOther};
            let (outcome, text) = match against.verdict {
                // The baseline never measured it, so it cannot have become worse.
                RowVerdict::Unmatched(AbsentInBaseline | AbsentInBoth | OnlyInOther) => continue,
                RowVerdict::Unmatched(unmatched) => (GateOutcome::Fails, format!("cannot be compared ({unmatched})")),
                RowVerdict::CannotTell(Doubt::NotJudged) => {
                    not_judged += 1;
                    continue;
                }
                RowVerdict::CannotTell(doubt) => (GateOutcome::Undecided, doubt.to_string()),
                _ => (GateOutcome::Undecided, "it can be 0 or less, so it has no ratio".to_owned()),
            };
            report.add(outcome, row, other, comparison, text);
        }
        if report.findings.is_empty() && judged.is_empty() {
            let text = match covered.len() {
                0 => "no row has this id; `hairspring probes` lists the ids".to_owned(),
                covered if not_judged > 0 => {
                    format!("none of the {covered} rows it covers has a verdict: counts and largest values have none")
                }
                covered => format!("none of the {covered} rows it covers could be compared"),
            };
            report.outcome = GateOutcome::Fails;
            report.findings.push(GateFinding { outcome: GateOutcome::Fails, id: None, text });
        }
        report
    }

    /// The distance of a difference from the limit: positive on the side that fails.
    fn beyond(&self, difference: &Difference) -> Difference {
        let beyond = difference.estimate - self.limit.ln();
        let estimate = if self.fails == Fails::Above { beyond } else { -beyond };
        Difference { estimate, ..*difference }
    }

    /// The ratio at a distance from the limit.
    fn ratio(&self, beyond: f64) -> f64 {
        self.limit * if self.fails == Fails::Above { beyond.exp() } else { (-beyond).exp() }
    }
}

impl GateReport {
    fn add(&mut self, outcome: GateOutcome, row: &ComparedRow, other: usize, comparison: &Comparison, text: String) {
        let side = comparison.sides.get(other + 1).filter(|_| comparison.grounds.len() > 1);
        let text = side.map_or(text.clone(), |side| format!("{text}, in {}", side.name));
        self.outcome = self.outcome.max(outcome);
        self.findings.push(GateFinding { outcome, id: Some(row.id.clone()), text });
    }
}
