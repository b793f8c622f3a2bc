//! A table for a terminal: columns aligned on their decimal points, as many of them as the width allows.

use unicode_width::UnicodeWidthStr;

use super::columns::{Column, Widths, cell, layout, widths};
use super::page::{Ink, Page, clean, flush_right, padded, wrap};
use super::timeline;
use crate::render::bins::sparkline;
use crate::render::quantity;
use crate::{Absent, Figure, Row, Table, Value};

/// The indent of rows below the heading of their table.
pub(super) const INDENT: usize = 2;
/// A table of single values is read across; its labels need not be closer to them than this.
const LABEL_WIDTH_MAX: usize = 56;

/// A table with its heading and its id.
pub(super) fn table(page: &mut Page, table: &Table, verbose: bool) {
    page.beside(Ink::Heading, &table.title, &table.id);
    timeline::diagram(page, table);
    let figures: Vec<&Figure> = table.rows.iter().filter_map(Row::figure).collect();
    let (columns, spark) = layout(page.width, &figures);
    let widths: Vec<Widths> = columns.iter().map(|c| widths(*c, &figures)).collect();
    let beside = columns.iter().zip(&widths).map(|(c, w)| w.total(*c) + 2).sum::<usize>() + spark + 2 * spark.min(1);
    let label_width = (page.width - INDENT - beside).min(LABEL_WIDTH_MAX);
    if !figures.is_empty() {
        header(page, &columns, &widths, spark, label_width);
    }
    let mut rows = table.rows.iter().peekable();
    while let Some(row) = rows.next() {
        if let (Value::Absent(absent), false) = (&row.value, verbose) {
            let same = |next: &&Row| matches!(&next.value, Value::Absent(other) if other == absent);
            let mut labels = vec![row.label.as_str()];
            while let Some(next) = rows.next_if(same) {
                labels.push(&next.label);
            }
            if labels.len() > 1 {
                absent_together(page, &labels, absent);
                continue;
            }
        }
        let beside = match &row.value {
            Value::Figure(figure) => {
                let cells = columns.iter().zip(&widths).map(|(c, w)| format!("  {}", cell(*c, figure, *w))).collect();
                let spark = sparkline(figure, spark).map_or(String::new(), |s| format!("  {s}"));
                Some((cells, spark))
            }
            Value::Absent(_) => None,
        };
        labelled(page, row, label_width, beside, verbose);
    }
    if let Some(methods) = methods(&figures) {
        page.wrapped(Ink::Dim, INDENT, INDENT, &methods);
    }
}

/// How the samples of a table were taken and what of them is the measurement itself.
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

/// A row: its label, wrapped if need be, with the numbers beside the first line; what remains to be said below.
fn labelled(page: &mut Page, row: &Row, width: usize, beside: Option<(String, String)>, verbose: bool) {
    let indent = " ".repeat(INDENT);
    if let Value::Absent(absent) = &row.value {
        return self::absent(page, row, width, absent, verbose);
    }
    let (numbers, spark) = beside.unwrap_or_default();
    let lines = wrap(&row.label, width, width - INDENT);
    for (i, line) in lines.iter().enumerate() {
        if i == 0 {
            let leader =
                if lines.len() == 1 { leader(line, width) } else { padded("", width.saturating_sub(line.width())) };
            page.line(&[
                (Ink::Plain, &indent),
                (Ink::Plain, line),
                (Ink::Dim, &leader),
                (Ink::Plain, &numbers),
                (Ink::Dim, &spark),
            ]);
        } else {
            page.line(&[(Ink::Plain, &indent), (Ink::Plain, &indent), (Ink::Plain, line)]);
        }
    }
    if verbose {
        page.wrapped(Ink::Dim, 2 * INDENT, 2 * INDENT, &row.id);
    }
    // Where all was well there is nothing to say.
    let disturbed = row.figure().filter(|f| f.verdicts.keys().any(|name| name != "clean"));
    if let Some(verdicts) = disturbed.and_then(Figure::verdict_line) {
        page.wrapped(Ink::Dim, 2 * INDENT, 3 * INDENT, &verdicts);
    }
    for caveat in row.figure().map_or(&[][..], |f| &f.caveats) {
        page.wrapped(Ink::Warning, 2 * INDENT, 3 * INDENT, &format!("! {caveat}"));
    }
}

/// A row without a figure: why, and what would bring one.
fn absent(page: &mut Page, row: &Row, width: usize, absent: &Absent, verbose: bool) {
    let label = clean(&row.label);
    let reason = format!("absent: {}", absent.reason);
    if label.width() <= width && label.width() + 2 + reason.width() + INDENT <= page.width {
        let leader = leader(&label, width.min(page.width - INDENT - 2 - reason.width()));
        let indent = " ".repeat(INDENT);
        page.line(&[
            (Ink::Plain, &indent),
            (Ink::Plain, &label),
            (Ink::Dim, &leader),
            (Ink::Plain, "  "),
            (Ink::Missing, &reason),
        ]);
    } else {
        page.wrapped(Ink::Plain, INDENT, 2 * INDENT, &label);
        page.wrapped(Ink::Missing, 2 * INDENT, 3 * INDENT, &reason);
    }
    if verbose {
        page.wrapped(Ink::Dim, 2 * INDENT, 2 * INDENT, &row.id);
    }
    if let Some(remedy) = &absent.remedy {
        page.wrapped(Ink::Plain, 2 * INDENT, 3 * INDENT, &format!("→ {remedy}"));
    }
}

/// Rows that follow each other and are absent for the same reason: it is said once.
pub(super) fn absent_together(page: &mut Page, labels: &[&str], absent: &Absent) {
    page.wrapped(Ink::Plain, INDENT, 2 * INDENT, &labels.join(", "));
    page.wrapped(Ink::Missing, 2 * INDENT, 3 * INDENT, &format!("absent: {}", absent.reason));
    if let Some(remedy) = &absent.remedy {
        page.wrapped(Ink::Plain, 2 * INDENT, 3 * INDENT, &format!("→ {remedy}"));
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
        // Over single values only, one column says it all.
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
