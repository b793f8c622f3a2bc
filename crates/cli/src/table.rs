//! Columns and paragraphs of plain text.

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// A table with a line of headings, indented by two; the last column is wrapped to the width.
pub(crate) fn table(headings: &[(&str, Side)], rows: &[Vec<String>], width: usize) -> String {
    let mut widths: Vec<usize> = headings.iter().map(|(heading, _)| length(heading)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(length(cell));
        }
    }
    let before: usize = widths.iter().rev().skip(1).map(|width| width + 2).sum::<usize>() + 2;
    let headings_row = headings.iter().map(|(heading, _)| (*heading).to_owned()).collect::<Vec<_>>();
    let mut text = String::new();
    for row in std::iter::once(&headings_row).chain(rows) {
        let mut line = " ".to_owned();
        for ((cell, column), (_, side)) in row.iter().zip(&widths).zip(headings).take(headings.len() - 1) {
            line.push_str(&match side {
                Side::Left => format!(" {cell:<column$} "),
                Side::Right => format!(" {cell:>column$} "),
            });
        }
        let last = row.last().map_or("", String::as_str);
        let (last_width, side) = (widths.last().copied().unwrap_or(0), headings.last().map(|(_, side)| *side));
        if side == Some(Side::Right) {
            line.push_str(&format!(" {last:>last_width$}"));
            text.push_str(line.trim_end());
            text.push('\n');
            continue;
        }
        let mut pieces = wrapped(last, width.saturating_sub(before).max(20)).into_iter();
        line.push_str(&format!(" {}", pieces.next().unwrap_or_default()));
        text.push_str(line.trim_end());
        text.push('\n');
        for piece in pieces {
            text.push_str(&format!("{:before$}{piece}\n", ""));
        }
    }
    text
}

/// A paragraph after a mark, its further lines indented below the first word.
pub(crate) fn item(mark: &str, paragraph: &str, width: usize) -> String {
    let indent = length(mark) + 3;
    let lines = wrapped(paragraph, width.saturating_sub(indent).max(20));
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        match number {
            0 => text.push_str(&format!("  {mark} {line}\n")),
            _ => text.push_str(&format!("{:indent$}{line}\n", "")),
        }
    }
    text
}

/// Breaks a paragraph into lines of at most this width; a longer word gets its own line.
pub(crate) fn wrapped(paragraph: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in paragraph.split_whitespace() {
        match lines.last_mut().filter(|line| length(line) + 1 + length(word) <= width) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_stand_in_columns_and_wrap_the_last() {
        let rows = vec![
            vec!["a".to_owned(), "1".to_owned(), "some words that do not fit".to_owned()],
            vec!["long".to_owned(), "1000".to_owned(), "few".to_owned()],
        ];
        let headings = [("name", Side::Left), ("n", Side::Right), ("what", Side::Left)];
        let text = table(&headings, &rows, 36);
        let expected =
            "  name     n  what\n  a        1  some words that do not\n              fit\n  long  1000  few\n";
        assert_eq!(text, expected);
        assert_eq!(item("+", "one two three four five six", 20), "  + one two three four\n    five six\n");
    }
}
