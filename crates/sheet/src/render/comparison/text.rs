//! A comparison for a terminal: a screen, or every row with `verbose`.

use unicode_width::UnicodeWidthStr;

use super::super::text::{Ink, Page, flush_right, padded};
use super::{differing, ground, letter, phrases, with_side};
use crate::TextStyle;
use crate::compare::{Against, ComparedRow, ComparedSide, Comparison, Grounds, RowVerdict};

/// More differing facts than this are named only by their ids, unless every row is requested: then the machines are
/// different.
const FACTS_SHOWN: usize = 8;

/// Renders a comparison for a terminal. With `verbose` every row is listed; without it those that differ, and a line
/// for each chapter with undecided rows.
pub fn comparison(comparison: &Comparison, style: &TextStyle) -> String {
    let mut page = Page::new(style.width, style.colour);
    page.line(&[(Ink::Heading, "Comparison of timing data sheets")]);
    for (number, side) in comparison.sides.iter().enumerate() {
        let sheets = if side.taken.len() > 1 { format!(" ({} sheets)", side.taken.len()) } else { String::new() };
        let first = side.taken.first().map_or("", String::as_str);
        page.wrapped(Ink::Plain, 2, 5, &format!("{}  {}{sheets}: {first}", letter(number), side.name));
    }
    for remark in &comparison.remarks {
        page.wrapped(Ink::Warning, 2, 2, remark);
    }
    conditions(&mut page, comparison, style.verbose);
    for (other, grounds) in comparison.grounds.iter().enumerate() {
        page.blank();
        let heading = if comparison.grounds.len() > 1 {
            format!("{} against A", letter(other + 1))
        } else {
            "Figures".to_owned()
        };
        page.line(&[(Ink::Heading, &heading)]);
        side(&mut page, comparison, other, *grounds, style.verbose);
    }
    page.finish()
}

fn side(page: &mut Page, comparison: &Comparison, other: usize, grounds: Grounds, verbose: bool) {
    let (sentence, command) = ground(grounds);
    page.wrapped(Ink::Plain, 2, 2, &sentence);
    if let Some(command) = command {
        page.wrapped(Ink::Plain, 2, 4, &format!("→ {command}"));
    }
    for shift in comparison.shifts.iter().filter(|shift| shift.other == other) {
        page.wrapped(Ink::Warning, 2, 4, &format!("! {}", phrases::shift(shift, comparison)));
    }
    let listed = differing(comparison, other);
    if !listed.is_empty() {
        page.blank();
        page.line(&[(Ink::Heading, "  What differs, the largest change first")]);
    }
    for (row, against) in listed {
        self::row(page, row, against, grounds);
    }
    let not_listed = |against: &Against| !against.verdict.differs();
    if verbose {
        page.blank();
        page.line(&[(Ink::Heading, "  All other rows")]);
        for (row, against) in with_side(comparison, other).filter(|(_, against)| not_listed(against)) {
            self::row(page, row, against, grounds);
        }
    } else {
        let untold = phrases::untold(comparison, other);
        if !untold.is_empty() {
            page.blank();
            page.line(&[(Ink::Heading, "  What has no verdict")]);
        }
        let widest = untold.iter().map(|untold| untold.chapter.width()).max().unwrap_or(0);
        for untold in untold {
            page.hanging(4, 4 + widest + 2, untold.chapter, &untold.line);
        }
        let unmatched = phrases::unmatched(comparison, other);
        if !unmatched.is_empty() {
            page.blank();
        }
        for line in unmatched {
            page.wrapped(Ink::Dim, 2, 4, &line);
        }
    }
    page.blank();
    page.wrapped(Ink::Plain, 2, 4, &phrases::sum_of(comparison, other));
    if !verbose && with_side(comparison, other).any(|(_, against)| not_listed(against)) {
        page.wrapped(Ink::Dim, 2, 4, "--verbose lists every row");
    }
}

fn conditions(page: &mut Page, comparison: &Comparison, verbose: bool) {
    page.blank();
    page.line(&[(Ink::Heading, "What differs in the conditions")]);
    if comparison.conditions.is_empty() {
        page.wrapped(Ink::Plain, 2, 2, "nothing that the sheets record");
    }
    // A fact that only one side has is not a difference.
    let (known, alone): (Vec<_>, Vec<_>) =
        comparison.conditions.iter().partition(|fact| fact.values.iter().flatten().count() > 1);
    let shown = if verbose { known.len() } else { FACTS_SHOWN };
    for fact in known.iter().take(shown) {
        page.line(&[(Ink::Plain, &format!("  {}  ", fact.label)), (Ink::Dim, &fact.id)]);
        for (number, value) in fact.values.iter().enumerate() {
            let (ink, value) = value.as_deref().map_or((Ink::Missing, "absent"), |v| (Ink::Plain, v));
            page.wrapped(ink, 4, 7, &format!("{}  {value}", letter(number)));
        }
    }
    if known.len() > shown {
        let ids: Vec<&str> = known.iter().skip(shown).map(|fact| fact.id.as_str()).collect();
        page.wrapped(Ink::Dim, 2, 4, &format!("also: {}", ids.join(", ")));
    }
    if !alone.is_empty() {
        let ids: Vec<&str> = alone.iter().map(|fact| fact.id.as_str()).collect();
        page.wrapped(Ink::Dim, 2, 4, &format!("known of one side only: {}", ids.join(", ")));
    }
}

fn row(page: &mut Page, row: &ComparedRow, against: &Against, grounds: Grounds) {
    let instead = phrases::instead(row.centre);
    if 2 + row.id.width() + 2 + row.label.width() + instead.width() <= page.width {
        page.line(&[(Ink::Plain, "  "), (Ink::Plain, &row.id), (Ink::Dim, &format!("  {}{instead}", row.label))]);
    } else {
        page.wrapped(Ink::Plain, 2, 4, &format!("{}{instead}", row.id));
    }
    let baseline = flush_right(&phrases::side(&row.baseline), 9);
    let numbers = format!("    {baseline} → {}  ", padded(&phrases::side(&against.side), 9));
    let (ink, mut said) = (ink(against.verdict), phrases::verdict(against, grounds));
    if !against.verdict.differs() {
        let ratio = phrases::ratio(against);
        said = if ratio.is_empty() { said } else { format!("{ratio}  {said}") };
    }
    if numbers.width() + said.width() <= page.width {
        page.line(&[(Ink::Plain, &numbers), (ink, &said)]);
    } else {
        page.line(&[(Ink::Plain, &numbers)]);
        // A number stays with its sign.
        page.wrapped(ink, 6, 8, &said.replace(" %", "\u{a0}%"));
    }
    if let ComparedSide::Absent(reason) = &against.side {
        page.wrapped(Ink::Dim, 6, 8, &format!("absent: {reason}"));
    }
}

fn ink(verdict: RowVerdict) -> Ink {
    use crate::compare::Unmatched::{AbsentInOther, OnlyInBaseline, UnitsDiffer};
    match verdict {
        RowVerdict::Differs { .. } => Ink::Heading,
        RowVerdict::Same { .. } => Ink::Plain,
        RowVerdict::Unmatched(UnitsDiffer | OnlyInBaseline | AbsentInOther) => Ink::Missing,
        _ => Ink::Dim,
    }
}
