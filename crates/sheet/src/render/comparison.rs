//! A comparison for a terminal: first what differs in the conditions, then the figures, those that moved and those that
//! cannot be compared before those that show no difference.

use std::fmt;

use unicode_width::UnicodeWidthStr;

use super::quantity;
use super::text::{Ink, Page, flush_right, padded};
use crate::compare::{Against, ComparedRow, ComparedSide, Comparison, RowVerdict};
use crate::{Centre, TextStyle};

impl fmt::Display for RowVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RowVerdict::NoDifferenceShown => "no difference shown",
            RowVerdict::Higher { within_spread: false } => "higher",
            RowVerdict::Higher { within_spread: true } => "higher, within the spread",
            RowVerdict::Lower { within_spread: false } => "lower",
            RowVerdict::Lower { within_spread: true } => "lower, within the spread",
            RowVerdict::TooFewSamples => "cannot tell, n too small",
            RowVerdict::NoInterval => "cannot tell, no interval",
            RowVerdict::OnlyInBaseline => "only in A",
            RowVerdict::OnlyInOther => "not in A",
            RowVerdict::AbsentInBaseline => "absent in A",
            RowVerdict::AbsentInOther => "absent here, measured in A",
            RowVerdict::AbsentInBoth => "absent in both",
            RowVerdict::UnitsDiffer => "error: the units differ",
        })
    }
}

/// Renders a comparison for a terminal. With `verbose`, rows that show no difference and rows that are absent in every
/// sheet are listed too; without it they are counted.
pub fn comparison(comparison: &Comparison, style: &TextStyle) -> String {
    let mut page = Page::new(style.width, style.colour);
    page.line(&[(Ink::Heading, "Comparison of timing data sheets")]);
    for (letter, sheet) in letters().zip(&comparison.sheets) {
        page.wrapped(Ink::Plain, 2, 5, &format!("{letter}  {sheet}"));
    }
    conditions(&mut page, comparison);
    page.blank();
    page.line(&[(Ink::Heading, "Figures")]);
    page.wrapped(
        Ink::Dim,
        2,
        2,
        "median of A, the other median, their ratio with an interval of at least 95 %, what may be said",
    );
    let shown = |row: &&ComparedRow| style.verbose || row.others.iter().any(|o| says_something(o.verdict));
    for row in comparison.rows.iter().filter(shown) {
        self::row(&mut page, row);
    }
    summary(&mut page, comparison, style.verbose);
    page.finish()
}

fn says_something(verdict: RowVerdict) -> bool {
    !matches!(verdict, RowVerdict::NoDifferenceShown | RowVerdict::AbsentInBoth)
}

fn conditions(page: &mut Page, comparison: &Comparison) {
    page.blank();
    page.line(&[(Ink::Heading, "What differs in the conditions")]);
    if comparison.conditions.is_empty() {
        page.wrapped(Ink::Plain, 2, 2, "nothing that the sheets record");
    }
    // A fact that only one sheet knows says nothing of a difference.
    let (known, alone): (Vec<_>, Vec<_>) =
        comparison.conditions.iter().partition(|fact| fact.values.iter().flatten().count() > 1);
    for fact in known {
        page.line(&[(Ink::Plain, &format!("  {}  ", fact.label)), (Ink::Dim, &fact.id)]);
        for (letter, value) in letters().zip(&fact.values) {
            let (ink, value) = value.as_deref().map_or((Ink::Missing, "absent"), |v| (Ink::Plain, v));
            page.wrapped(ink, 4, 7, &format!("{letter}  {value}"));
        }
    }
    if !alone.is_empty() {
        let ids: Vec<&str> = alone.iter().map(|fact| fact.id.as_str()).collect();
        page.wrapped(Ink::Dim, 2, 4, &format!("known of one sheet only: {}", ids.join(", ")));
    }
}

fn row(page: &mut Page, row: &ComparedRow) {
    // Where it is not the medians that are compared, it is said.
    let instead = match row.centre {
        Centre::Median => String::new(),
        other => format!(" ({})", other.plural()),
    };
    if 2 + row.id.width() + 2 + row.label.width() + instead.width() <= page.width {
        page.line(&[(Ink::Plain, "  "), (Ink::Plain, &row.id), (Ink::Dim, &format!("  {}{instead}", row.label))]);
    } else {
        page.wrapped(Ink::Plain, 2, 4, &format!("{}{instead}", row.id));
    }
    let baseline = written(&row.baseline);
    for (letter, against) in letters().skip(1).zip(&row.others) {
        let letter = if row.others.len() > 1 { format!("{letter} ") } else { String::new() };
        let numbers = format!("    {letter}{} → {}  ", flush_right(&baseline, 9), padded(&written(&against.side), 9));
        let ratio = padded(&self::ratio(against), 25);
        let (ink, verdict) = (ink(against.verdict), against.verdict.to_string());
        if numbers.width() + ratio.width() + 1 + verdict.width() <= page.width {
            page.line(&[(Ink::Plain, &numbers), (Ink::Plain, &ratio), (Ink::Plain, " "), (ink, &verdict)]);
        } else {
            page.line(&[(Ink::Plain, &numbers), (Ink::Plain, &ratio)]);
            page.wrapped(ink, 6, 8, &verdict);
        }
        if let ComparedSide::Absent(reason) = &against.side {
            page.wrapped(Ink::Dim, 6, 8, &format!("absent: {reason}"));
        }
    }
    if let Some(spread) = row.spread_of_values.filter(|_| row.others.len() > 1) {
        page.wrapped(
            Ink::Dim,
            4,
            4,
            &format!("greatest {} over the least, over all sheets: × {}", row.centre.name(), factor(spread)),
        );
    }
}

fn summary(page: &mut Page, comparison: &Comparison, verbose: bool) {
    let verdicts = || comparison.rows.iter().flat_map(|r| &r.others).map(|o| o.verdict);
    let count = |wanted: fn(RowVerdict) -> bool| verdicts().filter(|v| wanted(*v)).count();
    let counts = [
        (count(|v| matches!(v, RowVerdict::Higher { .. })), "higher"),
        (count(|v| matches!(v, RowVerdict::Lower { .. })), "lower"),
        (count(|v| v == RowVerdict::NoDifferenceShown), "with no difference shown"),
        (count(|v| matches!(v, RowVerdict::TooFewSamples | RowVerdict::NoInterval)), "that cannot be told"),
        (count(|v| v == RowVerdict::UnitsDiffer), "with different units"),
        (count(|v| matches!(v, RowVerdict::OnlyInBaseline | RowVerdict::OnlyInOther)), "in one sheet only"),
        (
            count(|v| matches!(v, RowVerdict::AbsentInBaseline | RowVerdict::AbsentInOther | RowVerdict::AbsentInBoth)),
            "absent in a sheet",
        ),
    ];
    let parts: Vec<String> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    page.blank();
    let total = verdicts().count();
    page.wrapped(Ink::Plain, 0, 2, &format!("{total} compared: {}", parts.join(", ")));
    if !verbose && verdicts().any(|v| !says_something(v)) {
        page.wrapped(Ink::Dim, 0, 2, "those with no difference shown or absent in both are listed with --verbose");
    }
}

fn written(side: &ComparedSide) -> String {
    match side {
        ComparedSide::Measured { unit, value, .. } => quantity(*value, *unit).to_string(),
        ComparedSide::Absent(_) => "absent".to_owned(),
        ComparedSide::Missing => "–".to_owned(),
    }
}

fn ratio(against: &Against) -> String {
    match (against.ratio, against.interval) {
        (Some(ratio), Some([low, high])) => format!("× {} [{}, {}]", factor(ratio), factor(low), factor(high)),
        (Some(ratio), None) => format!("× {}", factor(ratio)),
        (None, _) => String::new(),
    }
}

/// A ratio in five characters or so, with one digit more near 1, where differences are small: `1.0012`, `1.301`, `15.3`.
fn factor(ratio: f64) -> String {
    match ratio {
        r if (0.9..1.1).contains(&r) => format!("{r:.4}"),
        r if (0.01..10.0).contains(&r) => format!("{r:.3}"),
        r if (10.0..1e6).contains(&r) => format!("{r:.1}"),
        r => format!("{r:.2e}"),
    }
}

fn ink(verdict: RowVerdict) -> Ink {
    match verdict {
        RowVerdict::Higher { within_spread: false } | RowVerdict::Lower { within_spread: false } => Ink::Heading,
        RowVerdict::Higher { .. } | RowVerdict::Lower { .. } => Ink::Plain,
        RowVerdict::UnitsDiffer | RowVerdict::OnlyInBaseline | RowVerdict::AbsentInOther => Ink::Missing,
        _ => Ink::Dim,
    }
}

/// The sheets are A, B, C …; A is the baseline.
fn letters() -> impl Iterator<Item = char> {
    ('A'..='Z').cycle()
}
