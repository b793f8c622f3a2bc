//! Comparisons: text for a terminal, Markdown, one HTML file, JSON.
//!
//! All of them first list the differences, the largest change first; then, chapter by chapter, the number of undecided
//! figures.

mod html;
mod markdown;
mod phrases;
mod text;

pub use html::comparison_html;
pub use markdown::comparison_markdown;
pub use text::comparison;

use crate::compare::{Against, ComparedRow, Comparison, Grounds};

/// Writes a comparison as indented JSON with a newline at its end.
pub fn comparison_json(comparison: &Comparison) -> String {
    // JSON has no numbers that are not finite, which serde_json writes as null; every key is a string.
    let mut json = serde_json::to_string_pretty(comparison).unwrap_or_default();
    json.push('\n');
    json
}

/// The rows that differ from the baseline on this other side, the largest change first.
fn differing(comparison: &Comparison, other: usize) -> Vec<(&ComparedRow, &Against)> {
    let mut rows: Vec<_> = with_side(comparison, other).filter(|(_, against)| against.verdict.differs()).collect();
    // A change that is not a ratio is compared with the null region.
    let size = |against: &Against| match (against.ratio, against.difference, against.margins) {
        (Some(ratio), ..) => ratio.ln().abs(),
        (None, Some(difference), Some(margins)) => (difference.estimate / margins.null).abs().ln(),
        _ => 0.0,
    };
    rows.sort_by(|(_, a), (_, b)| size(b).total_cmp(&size(a)));
    rows
}

fn with_side(comparison: &Comparison, other: usize) -> impl Iterator<Item = (&ComparedRow, &Against)> {
    comparison.rows.iter().filter_map(move |row| Some((row, row.others.get(other)?)))
}

/// The basis of verdicts on this side, in a sentence or two, and the command that would decide more.
fn ground(grounds: Grounds) -> (String, Option<&'static str>) {
    match grounds {
        Grounds::Turns(pairs) => (format!("The two builds were measured in turns, {pairs} rounds each."), None),
        Grounds::Builds(builds) => {
            (format!("{builds} builds a side were measured in turns; each counts as one value, however many rounds it has."), None)
        }
        Grounds::Sheets(sheets) => (format!("There are at least {sheets} sheets a side; each counts as one value."), None),
        Grounds::Ledger(sheets) => {
            (format!("The variation between sheets of this machine is known from {sheets} sheets of one build."), None)
        }
        Grounds::SingleSheets => (
            "There are no verdicts here: two sheets of one build differ as well, because the machine drifts between them. To know, measure \
             both builds in turns, give three sheets a side, or a ledger of this machine's sheets (--ledger)."
                .to_owned(),
            Some("hairspring ab BUILD_A BUILD_B"),
        ),
    }
}

/// The letters of the sides; A is the baseline.
fn letter(side: usize) -> char {
    char::from(b'A' + u8::try_from(side % 26).unwrap_or(0))
}
