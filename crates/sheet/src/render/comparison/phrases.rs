//! Verdicts in words.

use std::fmt;

use super::super::quantity;
use crate::compare::{Against, ChapterShift, ComparedSide, Comparison, Doubt, Grounds, RowVerdict, Unmatched, chapter};
use crate::statistics::{Scale, middle};
use crate::{Centre, Unit};

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unmatched::OnlyInBaseline => "only in A",
            Unmatched::OnlyInOther => "not in A",
            Unmatched::AbsentInBaseline => "absent in A",
            Unmatched::AbsentInOther => "absent here, measured in A",
            Unmatched::AbsentInBoth => "absent in both",
            Unmatched::UnitsDiffer => "error: the units differ",
        })
    }
}

/// The doubt as a sentence without a full stop; changes are written as fractions.
impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Doubt::Varies { .. } => "it varies too much",
            Doubt::SingleSheets => "single sheets decide nothing",
            Doubt::TooFew => "too few sheets or rounds have it",
            Doubt::NotJudged => "not judged",
            Doubt::Void => "too many pairs of rounds are void",
        })
    }
}

/// Whether changes of a row are ratios, and the unit if they are not.
fn absolute(against: &Against) -> Option<Unit> {
    match (&against.side, against.difference) {
        (ComparedSide::Measured { unit, .. }, Some(difference)) => (difference.scale == Scale::Linear).then_some(*unit),
        _ => None,
    }
}

/// The size of a change: `12 %`, `× 2.1` from a doubling on, or `35.0 ns` if it is not a ratio.
fn size(change: f64, absolute: Option<Unit>) -> String {
    match absolute {
        Some(unit) => quantity(change.abs(), unit).to_string(),
        None if change >= 1.0 => format!("× {}", factor(1.0 + change)),
        None => percent(change.abs()),
    }
}

/// A fraction in percent, with one digit more below 10 %.
pub(super) fn percent(fraction: f64) -> String {
    match fraction * 100.0 {
        percent if percent < 9.95 => format!("{percent:.1} %").replace(".0 %", " %"),
        percent => format!("{percent:.0} %"),
    }
}

/// A ratio in three digits or so, with more near 1, where differences are small.
pub(super) fn factor(ratio: f64) -> String {
    match ratio {
        r if (0.95..1.05).contains(&r) => format!("{r:.3}"),
        r if (0.01..10.0).contains(&r) => format!("{r:.2}"),
        r if (10.0..1e6).contains(&r) => format!("{r:.1}"),
        r => format!("{r:.2e}"),
    }
}

/// A size in either direction.
fn either_way(size: &str) -> String {
    if size.starts_with('×') { size.to_owned() } else { format!("±{size}") }
}

/// The verdict of a row in words.
pub(super) fn verdict(against: &Against, grounds: Grounds) -> String {
    let absolute = absolute(against);
    match against.verdict {
        RowVerdict::Differs { at_least, within } => {
            let change = against.difference.map_or(at_least, |difference| match difference.scale {
                Scale::Log => difference.estimate.exp_m1(),
                Scale::Linear => difference.estimate,
            });
            let way = if change > 0.0 { "higher" } else { "lower" };
            let by = |change: f64| {
                let size = size(change, absolute);
                if size.starts_with('×') { size } else { format!("by {size}") }
            };
            let less = within.map_or(String::new(), |within| format!(", by less than {}", size(within, absolute)));
            format!("{way} {} (at least {}){less}", by(change), size(at_least, absolute))
        }
        RowVerdict::Same { within } => format!("same within {}", size(within, absolute)),
        RowVerdict::CannotTell(Doubt::Varies { smallest, needed }) => {
            let margin = against.margins.map_or(0.0, |margins| match absolute {
                Some(_) => margins.same,
                None => margins.same.exp_m1(),
            });
            let needed = needed.map_or("more than 1,000".to_owned(), |needed| format!("about {needed}"));
            let (smallest, margin) = (size(smallest, absolute), size(margin, absolute));
            format!("cannot tell: {} would show; {margin} takes {needed} {}", either_way(&smallest), grounds.units())
        }
        RowVerdict::CannotTell(Doubt::NotJudged) => "not judged".to_owned(),
        RowVerdict::CannotTell(doubt) => format!("cannot tell: {doubt}"),
        RowVerdict::Unmatched(unmatched) => unmatched.to_string(),
    }
}

/// A side's entry, in words.
pub(super) fn side(side: &ComparedSide) -> String {
    match side {
        ComparedSide::Measured { unit, value, .. } => quantity(*value, *unit).to_string(),
        ComparedSide::Absent(_) => "absent".to_owned(),
        ComparedSide::Missing => "–".to_owned(),
    }
}

/// The ratio with its interval; empty without a ratio.
pub(super) fn ratio(against: &Against) -> String {
    match (against.ratio, against.interval) {
        (Some(ratio), Some([low, high])) => format!("× {} [{}, {}]", factor(ratio), factor(low), factor(high)),
        (Some(ratio), None) => format!("× {}", factor(ratio)),
        (None, _) => String::new(),
    }
}

/// `(means)` if the row does not compare medians.
pub(super) fn instead(centre: Centre) -> String {
    if centre == Centre::Median { String::new() } else { format!(" ({})", centre.plural()) }
}

/// A chapter that moved, in a sentence.
pub(super) fn shift(shift: &ChapterShift, comparison: &Comparison) -> String {
    let side = comparison.sides.get(shift.other + 1).filter(|_| comparison.sides.len() > 2);
    let side = side.map_or(String::new(), |side| format!(" in {}", side.name));
    let way = if shift.ratio > 1.0 { "higher" } else { "lower" };
    let cause = match shift.sentinels_moved {
        Some(_) => "The sentinels, which measure the machine itself, moved too: the machine was different.",
        None => "The machine was different, or all of them changed together.",
    };
    format!(
        "{}: {} of {} figures are {way}{side}, × {} in the middle. {cause}",
        shift.chapter,
        shift.moved,
        shift.rows,
        factor(shift.ratio)
    )
}

/// The undecided rows of a chapter, in one line.
pub(super) struct Untold<'a> {
    pub(super) chapter: &'a str,
    pub(super) line: String,
}

/// One line for each chapter with undecided rows.
pub(super) fn untold(comparison: &Comparison, other: usize) -> Vec<Untold<'_>> {
    let mut chapters: Vec<&str> = Vec::new();
    for row in &comparison.rows {
        if !chapters.contains(&chapter(&row.id)) {
            chapters.push(chapter(&row.id));
        }
    }
    let line = |of: &&str| -> Option<String> {
        let rows = super::with_side(comparison, other).filter(|(row, _)| chapter(&row.id) == *of);
        let rows: Vec<&Against> =
            rows.map(|(_, against)| against).filter(|a| matches!(a.verdict, RowVerdict::CannotTell(_))).collect();
        let smallest: Vec<f64> = rows
            .iter()
            .filter(|against| absolute(against).is_none())
            .filter_map(|against| match against.verdict {
                RowVerdict::CannotTell(Doubt::Varies { smallest, .. }) => Some(smallest),
                _ => None,
            })
            .collect();
        let ratios: Vec<f64> = rows.iter().filter_map(|against| against.ratio).collect();
        let count = rows.len();
        let what = if count == 1 { "figure" } else { "figures" };
        let told = match (middle(&smallest), middle(&ratios)) {
            (Some(smallest), _) if count == 1 => format!(", {} would show", either_way(&size(smallest, None))),
            (Some(smallest), _) => format!(", {} would show in half of them", either_way(&size(smallest, None))),
            (None, Some(ratio)) if ratios.len() > 1 => {
                let (low, high) = ratios.iter().fold((f64::MAX, 0.0f64), |(l, h), r| (l.min(*r), h.max(*r)));
                format!(", ratios from {} to {}, {} in the middle", factor(low), factor(high), factor(ratio))
            }
            (None, Some(ratio)) => format!(", × {}", factor(ratio)),
            (None, None) => String::new(),
        };
        (count > 0).then(|| format!("{count} {what}{told}"))
    };
    chapters.into_iter().filter_map(|chapter| Some(Untold { chapter, line: line(&chapter)? })).collect()
}

/// The number of rows with each verdict on this other side, in words.
pub(super) fn sum_of(comparison: &Comparison, other: usize) -> String {
    let count = |wanted: fn(RowVerdict) -> bool| {
        super::with_side(comparison, other).filter(|(_, against)| wanted(against.verdict)).count()
    };
    let parts = [
        (count(RowVerdict::differs), "differ"),
        (count(|v| matches!(v, RowVerdict::Same { .. })), "same"),
        (count(|v| matches!(v, RowVerdict::CannotTell(doubt) if doubt != Doubt::NotJudged)), "cannot tell"),
        (count(|v| v == RowVerdict::CannotTell(Doubt::NotJudged)), "not judged (counts, largest values, means)"),
        (count(|v| matches!(v, RowVerdict::Unmatched(_))), "without a figure on both sides"),
    ];
    let parts: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    format!("{} figures: {}", comparison.rows.len(), parts.join(", "))
}

/// The rows with a figure on only one side, one line for each reason; rows absent on both are left out.
pub(super) fn unmatched(comparison: &Comparison, other: usize) -> Vec<String> {
    const NAMED: usize = 4;
    let reasons = [
        (Unmatched::AbsentInOther, "Measured in A and absent here"),
        (Unmatched::OnlyInBaseline, "Only in A"),
        (Unmatched::AbsentInBaseline, "Measured here and absent in A"),
        (Unmatched::OnlyInOther, "Not in A"),
        (Unmatched::UnitsDiffer, "Error: the units differ"),
    ];
    let line = |(reason, text): &(Unmatched, &str)| {
        let ids: Vec<&str> = super::with_side(comparison, other)
            .filter(|(_, against)| against.verdict == RowVerdict::Unmatched(*reason))
            .map(|(row, _)| row.id.as_str())
            .collect();
        let more = ids.len().saturating_sub(NAMED);
        let named = ids.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!ids.is_empty()).then(|| format!("{text}: {named}{more}"))
    };
    reasons.iter().filter_map(line).collect()
}
