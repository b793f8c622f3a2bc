//! A table for a terminal: columns aligned on their decimal points, as many as fit.

use unicode_width::UnicodeWidthStr;

use super::columns::{Column, Widths, cell, layout, widths};
use super::page::{INDENT, Ink, Page, flush_right, padded, wrap};
use super::timeline;
use crate::render::absences::{Absence, Group};
use crate::render::bins::sparkline;
use crate::render::quantity;
use crate::{Absent, Figure, Row, Table};

/// The most tables whose absent rows are named for one reason; `verbose` names all.
const GROUPS_MOST: usize = 4;
/// The greatest distance between labels and numbers in a table of single values.
const LABEL_WIDTH_MAX: usize = 56;

/// A table with its heading and its id. Rows without a figure stand at the end of the chapter.
pub(super) fn table(page: &mut Page, table: &Table, verbose: bool) {
    page.beside(Ink::Heading, &table.title, &table.id);
    timeline::diagram(page, table);
    let figures: Vec<&Figure> = table.rows.iter().filter_map(Row::figure).collect();
    let (columns, spark) = layout(page.width, &figures);
    let widths: Vec<Widths> = columns.iter().map(|c| widths(*c, &figures)).collect();
    let beside = columns.iter().zip(&widths).map(|(c, w)| w.total(*c) + 2).sum::<usize>() + spark + 2 * spark.min(1);
    let label_width = (page.width - INDENT - beside).min(LABEL_WIDTH_MAX);
    header(page, &columns, &widths, spark, label_width);
    for (row, figure) in table.rows.iter().filter_map(|row| Some((row, row.figure()?))) {
        let cells: String = columns.iter().zip(&widths).map(|(c, w)| format!("  {}", cell(*c, figure, *w))).collect();
        let spark = sparkline(figure, spark).map_or(String::new(), |s| format!("  {s}"));
        labelled(page, row, label_width, (&cells, &spark), verbose);
    }
    if let Some(methods) = methods(&figures) {
        page.wrapped(Ink::Dim, INDENT, INDENT, &methods);
    }
}

/// The method of a table's samples, and their overhead.
fn methods(figures: &[&Figure]) -> Option<String> {
    let mut methods: Vec<&str> = Vec::new();
    for method in figures.iter().filter_map(|f| f.method.sentence()) {
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    let overheads = figures.iter().filter_map(|f| f.overhead.map(|o| (o, f.unit)));
    let greatest = overheads.max_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((overhead, unit)) = greatest {
        let overhead = format!("of every stamped sample up to {} is the measurement itself", quantity(overhead, unit));
        return Some([methods.join("; "), overhead].join("; "));
    }
    (!methods.is_empty()).then(|| methods.join("; "))
}

/// A row: its label, wrapped if needed, with the numbers beside the first line; notes follow below.
fn labelled(page: &mut Page, row: &Row, width: usize, (numbers, spark): (&str, &str), verbose: bool) {
    let indent = " ".repeat(INDENT);
    let lines = wrap(&row.label, width, width - INDENT);
    for (i, line) in lines.iter().enumerate() {
        if i == 0 {
            let leader =
                if lines.len() == 1 { leader(line, width) } else { padded("", width.saturating_sub(line.width())) };
            page.line(&[
                (Ink::Plain, &indent),
                (Ink::Plain, line),
                (Ink::Dim, &leader),
                (Ink::Plain, numbers),
                (Ink::Dim, spark),
            ]);
        } else {
            page.line(&[(Ink::Plain, &indent), (Ink::Plain, &indent), (Ink::Plain, line)]);
        }
    }
    if verbose {
        page.wrapped(Ink::Dim, 2 * INDENT, 2 * INDENT, &row.id);
    }
    // If all samples are clean, there is no note.
    let disturbed = row.figure().filter(|f| f.verdicts.keys().any(|name| name != "clean"));
    if let Some(verdicts) = disturbed.and_then(Figure::verdict_line) {
        page.wrapped(Ink::Dim, 2 * INDENT, 3 * INDENT, &verdicts);
    }
    for caveat in row.figure().map_or(&[][..], |f| &f.caveats) {
        page.wrapped(Ink::Warning, 2 * INDENT, 3 * INDENT, &format!("! {caveat}"));
    }
}

/// The absent rows of a chapter, one entry for each reason.
pub(super) fn absent(page: &mut Page, absences: &[Absence<'_>], verbose: bool) {
    for of in absences {
        let Absent { reason, remedy } = of.absent;
        page.wrapped(Ink::Missing, 0, INDENT, &format!("absent, {}: {reason}", of.count()));
        if let Some(remedy) = remedy {
            page.wrapped(Ink::Plain, INDENT, 2 * INDENT, &format!("→ {remedy}"));
        }
        let groups = if verbose { of.groups.len() } else { of.groups.len().min(GROUPS_MOST) };
        let mut named: Vec<String> = of.groups[..groups].iter().map(Group::named).collect();
        let more: usize = of.groups[groups..].iter().map(|group| group.rows.len()).sum();
        named.extend((more > 0).then(|| format!("and {more} more rows")));
        page.wrapped(Ink::Dim, INDENT, 2 * INDENT, &named.join("; "));
        if verbose {
            let rows = of.groups.iter().flat_map(|group| &group.rows);
            rows.for_each(|row| page.wrapped(Ink::Dim, 2 * INDENT, 2 * INDENT, &row.id));
        }
    }
}

/// Dots that lead the eye from the label to the numbers.
fn leader(label: &str, width: usize) -> String {
    match width.saturating_sub(label.width()) {
        gap @ 0..=2 => " ".repeat(gap),
        gap => format!(" {}", "·".repeat(gap - 1)),
    }
}

fn header(page: &mut Page, columns: &[Column], widths: &[Widths], spark: usize, label_width: usize) {
    let mut line = " ".repeat(INDENT + label_width);
    for (column, widths) in columns.iter().zip(widths) {
        // Single values need only one column.
        let single = columns.iter().all(|column| matches!(column, Column::Median | Column::Binary | Column::Spread));
        let name = if single && *column == Column::Median { "value" } else { column.name() };
        line.push_str("  ");
        line.push_str(&flush_right(name, widths.total(*column)));
    }
    if spark > 0 {
        line.push_str(if spark >= 16 { "  min … max (log)" } else { "  spread" });
    }
    page.line(&[(Ink::Dim, &line)]);
}
