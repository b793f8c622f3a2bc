//! A comparison as Markdown with GitHub's tables: the differences, the undecided rows, and every row.

use std::fmt::Write;

use super::super::markdown::escaped;
use super::{differing, ground, letter, phrases, with_side};
use crate::compare::{Against, ComparedRow, Comparison, Grounds};

/// Renders a comparison as Markdown. Ends with a newline.
pub fn comparison_markdown(comparison: &Comparison) -> String {
    let mut out = "# Comparison of timing data sheets\n\n".to_owned();
    for (number, side) in comparison.sides.iter().enumerate() {
        let taken: Vec<String> = side.taken.iter().map(|taken| escaped(taken)).collect();
        write(&mut out, format_args!("- **{}** {}: {}\n", letter(number), escaped(&side.name), taken.join("; ")));
    }
    out.push('\n');
    for remark in &comparison.remarks {
        write(&mut out, format_args!("> [!WARNING]\n> {}\n\n", escaped(remark)));
    }
    conditions(&mut out, comparison);
    for (other, grounds) in comparison.grounds.iter().enumerate() {
        side(&mut out, comparison, other, *grounds);
    }
    out
}

fn side(out: &mut String, comparison: &Comparison, other: usize, grounds: Grounds) {
    write(out, format_args!("## {} against A\n\n", letter(other + 1)));
    let (sentence, command) = ground(grounds);
    write(out, format_args!("{}{}\n\n", escaped(&sentence), command.map_or(String::new(), |c| format!(" `{c}`"))));
    for shift in comparison.shifts.iter().filter(|shift| shift.other == other) {
        write(out, format_args!("> [!WARNING]\n> {}\n\n", escaped(&phrases::shift(shift, comparison))));
    }
    write(out, format_args!("{}.\n\n", phrases::sum_of(comparison, other)));
    let listed = differing(comparison, other);
    if !listed.is_empty() {
        out.push_str("### What differs\n\n");
        table(out, other, grounds, listed.into_iter());
    }
    let untold = phrases::untold(comparison, other);
    if !untold.is_empty() {
        out.push_str("### What has no verdict\n\n| chapter | |\n|:--|:--|\n");
    }
    for untold in untold {
        write(out, format_args!("| {} | {} |\n", escaped(untold.chapter), untold.line));
    }
    out.push_str("\n### Every row\n\n");
    table(out, other, grounds, with_side(comparison, other));
}

fn table<'a>(
    out: &mut String,
    other: usize,
    grounds: Grounds,
    rows: impl Iterator<Item = (&'a ComparedRow, &'a Against)>,
) {
    write(
        out,
        format_args!(
            "| id | | A | {} | ratio, 95 % interval | verdict |\n|:--|:--|--:|--:|:--|:--|\n",
            letter(other + 1)
        ),
    );
    for (row, against) in rows {
        let label = format!("{}{}", escaped(&row.label), phrases::instead(row.centre));
        let (a, b) = (phrases::side(&row.baseline), phrases::side(&against.side));
        let verdict = phrases::verdict(against, grounds);
        write(out, format_args!("| `{}` | {label} | {a} | {b} | {} | {verdict} |\n", row.id, phrases::ratio(against)));
    }
    out.push('\n');
}

fn conditions(out: &mut String, comparison: &Comparison) {
    out.push_str("## What differs in the conditions\n\n");
    if comparison.conditions.is_empty() {
        out.push_str("Nothing that the sheets record.\n\n");
        return;
    }
    let heads: Vec<String> = (0..comparison.sides.len()).map(|side| letter(side).to_string()).collect();
    write(out, format_args!("| fact | {} |\n|:--|{}\n", heads.join(" | "), ":--|".repeat(heads.len())));
    for fact in &comparison.conditions {
        let values = fact.values.iter().map(|value| value.as_deref().map_or("absent".to_owned(), escaped));
        write(out, format_args!("| {} | {} |\n", escaped(&fact.label), values.collect::<Vec<_>>().join(" | ")));
    }
    out.push('\n');
}

fn write(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
}
