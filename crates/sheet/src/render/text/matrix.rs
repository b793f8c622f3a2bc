//! Tables of a chapter with the same rows, side by side: one column of medians for each.

use unicode_width::UnicodeWidthStr;

use super::page::{INDENT, Ink, Page, flush_right, padded, wrap};
use crate::render::quantity::{centre, grouped};
use crate::{Figure, Row, Table};

/// Fewer tables than this are shown one below the other, with all their columns.
const TABLES_LEAST: usize = 3;
/// The least and most width of a column.
const COLUMN_LEAST: usize = 11;
const COLUMN_MOST: usize = 18;
/// The width of the numbers of samples.
const N_WIDTH: usize = 9;

/// Whether to show these tables side by side: several that fit, with the same rows and no diagrams.
pub(super) fn suits(tables: &[Table], width: usize) -> bool {
    let Some((first, others)) = tables.split_first() else { return false };
    let same_rows = |table: &Table| table.rows.iter().map(|r| &r.label).eq(first.rows.iter().map(|r| &r.label));
    tables.len() >= TABLES_LEAST
        && first.rows.len() > 1
        && others.iter().all(same_rows)
        && tables.iter().all(|table| table.diagram.is_none())
        && INDENT + label_width(first) + N_WIDTH + tables.len() * COLUMN_LEAST <= width
}

/// The medians of all the tables, one row for each label that has a figure in any of them.
pub(super) fn matrix(page: &mut Page, tables: &[Table], id: &str) {
    let Some(first) = tables.first() else { return };
    let labels = label_width(first);
    // A single value is not a median and has no number of samples.
    let single = tables.iter().flat_map(|t| &t.rows).filter_map(Row::figure).all(Figure::is_single);
    let beside = if single { 0 } else { N_WIDTH };
    let column = ((page.width - INDENT - labels - beside) / tables.len()).clamp(COLUMN_LEAST, COLUMN_MOST);
    page.beside(Ink::Heading, if single { "Values" } else { "Medians" }, id);
    let headings: Vec<Vec<String>> = tables.iter().map(|t| wrap(&t.title, column - 2, column - 2)).collect();
    let lines = headings.iter().map(Vec::len).max().unwrap_or(0);
    for line in 0..lines {
        let mut text = " ".repeat(INDENT + labels);
        if !single {
            text.push_str(&flush_right(if line + 1 == lines { "n" } else { "" }, N_WIDTH));
        }
        for heading in &headings {
            // Short headings stand on the last line, above their numbers.
            let at = (line + heading.len()).checked_sub(lines).and_then(|i| heading.get(i));
            text.push_str(&flush_right(at.map_or("", String::as_str), column));
        }
        page.line(&[(Ink::Dim, &text)]);
    }
    for (index, row) in first.rows.iter().enumerate() {
        let cells: Vec<&Row> = tables.iter().map(|table| &table.rows[index]).collect();
        if cells.iter().all(|cell| cell.figure().is_none()) {
            continue;
        }
        let samples = if single { String::new() } else { flush_right(&samples(&cells), N_WIDTH) };
        let mut text = format!("{}{}{samples}", " ".repeat(INDENT), padded(&row.label, labels));
        for cell in cells {
            let median = cell.figure().and_then(centre);
            let median = median.map_or_else(|| "absent".to_owned(), |quantity| quantity.to_string());
            text.push_str(&flush_right(&median, column));
        }
        page.line(&[(Ink::Plain, &text)]);
    }
    if single {
        return;
    }
    let note = "spread and maxima of each: --format md, html or json";
    page.wrapped(Ink::Dim, INDENT, INDENT, note);
}

/// The number of samples of a row's figures: one number, or the least and the greatest.
fn samples(cells: &[&Row]) -> String {
    let all = || cells.iter().filter_map(|cell| cell.figure()).map(|figure| figure.n);
    match (all().min(), all().max()) {
        (Some(least), Some(most)) if least == most => grouped(&least.to_string()),
        (Some(least), Some(most)) => format!("{least}–{most}"),
        _ => String::new(),
    }
}

fn label_width(table: &Table) -> usize {
    table.rows.iter().map(|row| row.label.width()).max().unwrap_or(0)
}
