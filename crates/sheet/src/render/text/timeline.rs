//! A timing diagram in letters: lanes one below the other, the thread of execution as a line between them.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::page::{INDENT, Ink, Page, flush_right, wrap};
use crate::render::clean::clean;
use crate::render::timeline::{self, Layout, Manner, Metrics};
use crate::{Diagram, Table};

const METRICS: Metrics = Metrics { width: UnicodeWidthStr::width, event: 1, gap: 1, bracket: 1 };
/// The greatest width; longer lines are hard to follow.
const WIDTH_MAX: usize = 96;
/// Space between the names of the lanes and the drawing.
const GAP: usize = 2;
/// Legend of the line, below the drawing.
const LINES: &str = "━ its own code · ┄ on the way to the next";

/// The layouts of a diagram, best first: whether the names of the lanes stand above them, calls are numbers, and spans
/// have their names beside them.
const MANNERS: [(bool, Manner); 5] = [
    (false, Manner { numbered: false, beside: false }),
    (true, Manner { numbered: false, beside: false }),
    (false, Manner { numbered: true, beside: false }),
    (true, Manner { numbered: true, beside: false }),
    (true, Manner { numbered: true, beside: true }),
];

/// The diagram of a table, above its rows.
pub(super) fn diagram(page: &mut Page, table: &Table) {
    let Some(diagram) = &table.diagram else { return };
    page.wrapped(Ink::Plain, INDENT, INDENT, &diagram.caption);
    match drawing(diagram, page.width) {
        Ok(lines) => lines.iter().for_each(|line| page.line(&[(Ink::Plain, line)])),
        Err(why) => page.wrapped(Ink::Missing, INDENT, 2 * INDENT, &format!("absent: {why}")),
    }
    let meanings = timeline::meanings(diagram, table);
    let names = meanings.iter().map(|(span, _)| clean(&span.name).width()).max().unwrap_or(0).min(page.width / 4);
    for (span, measured) in meanings {
        let name = clean(&span.name);
        let gap = " ".repeat(2 + names.saturating_sub(name.width()));
        let line = format!("{name}{gap}{}", clean(&span.meaning));
        let rest = INDENT + names + 2;
        match measured {
            None => page.hanging(INDENT, rest, &name, &span.meaning),
            Some(measured) if INDENT + line.width() + 2 + measured.width() <= page.width => {
                let measured = flush_right(&measured, page.width - INDENT - line.width());
                page.line(&[(Ink::Plain, &format!("{}{line}", " ".repeat(INDENT))), (Ink::Heading, &measured)]);
            }
            Some(measured) => page.hanging(INDENT, rest, &name, &format!("{}: {measured}", span.meaning)),
        }
    }
    page.wrapped(Ink::Dim, INDENT, INDENT, diagram.origin.sentence());
    page.blank();
}

/// The lines of the drawing, none wider than `width`, or why there is none.
pub(crate) fn drawing(diagram: &Diagram, width: usize) -> Result<Vec<String>, String> {
    diagram.check().map_err(|error| format!("cannot {error}"))?;
    let lanes: Vec<String> = diagram.lanes.iter().map(|lane| clean(lane)).collect();
    let names = lanes.iter().map(|lane| lane.width()).max().unwrap_or(0);
    let width = width.min(WIDTH_MAX);
    for (above, manner) in MANNERS {
        let left = if above { INDENT } else { INDENT + names + GAP };
        // Names beside the last span must fit as well.
        let beside =
            if manner.beside { diagram.spans.iter().map(|s| s.name.width() + 1).max().unwrap_or(0) } else { 0 };
        let room = width.saturating_sub(left + beside);
        let layout = timeline::layout(diagram, &METRICS, manner, room);
        if layout.width <= room {
            return Ok(drawn(diagram, &lanes, &layout, above, left, manner, width));
        }
    }
    Err(format!("its events do not fit into {width} columns"))
}

fn drawn(
    diagram: &Diagram,
    lanes: &[String],
    layout: &Layout<'_>,
    above: bool,
    left: usize,
    manner: Manner,
    width: usize,
) -> Vec<String> {
    // For each lane: its name if it stands above, its calls, its line.
    let height = if above { 3 } else { 2 };
    let line_of = |lane: u32| lane as usize * height + height - 1;
    let first_span = lanes.len() * height;
    let mut raster = Raster::new(width, first_span + layout.span_rows());
    for run in timeline::in_order(diagram) {
        raster.across(line_of(run.lane), left + layout.place(run.from), left + layout.place(run.to), "━");
    }
    for (before, after) in timeline::ways(diagram) {
        let (from, to) = (left + layout.place(before.to), left + layout.place(after.from));
        raster.across(line_of(before.lane), from + 1, to, "┄");
        let (upper, lower) = (before.lane.min(after.lane), before.lane.max(after.lane));
        if upper != lower {
            for row in line_of(upper) + 1..line_of(lower) {
                raster.put(row, to, "│");
            }
            let (leaving, arriving) = if after.lane < before.lane { ("┘", "┌") } else { ("┐", "└") };
            raster.put(line_of(before.lane), to, leaving);
            raster.put(line_of(after.lane), to, arriving);
        }
    }
    for (lane, name) in lanes.iter().enumerate() {
        let row = if above { lane * height } else { lane * height + 1 };
        raster.text(row, INDENT, name);
    }
    for label in &layout.labels {
        let line = label.lane * height + height - 1;
        let at = left + label.at;
        if label.before {
            raster.text(line - 1, (at + 1).saturating_sub(label.text.width()), &label.text);
            if raster.at(line, at) == "━" {
                raster.put(line, at, "┷");
            }
        } else {
            raster.text(line - 1, at + 2, &label.text);
            if raster.at(line, at) == " " {
                raster.put(line, at, "╵");
            }
        }
    }
    for (row, span) in &layout.spans {
        let (row, from, to) = (first_span + row, left + layout.place(span.from), left + layout.place(span.to));
        raster.across(row, from, to, "─");
        raster.put(row, from, "├");
        raster.put(row, to, "┤");
        let name = clean(&span.name);
        let at = if manner.beside { to + 2 } else { from + (to + 1 - from).saturating_sub(name.width()).div_ceil(2) };
        raster.text(row, at, &name);
    }
    let mut lines = raster.lines();
    let indent = " ".repeat(INDENT);
    // A number stays on the line of its text.
    let legend = layout.legend.iter().map(|call| call.replacen(' ', "\u{a0}", 1)).collect::<Vec<_>>().join(" · ");
    for text in [legend.as_str(), LINES].into_iter().filter(|text| !text.is_empty()) {
        let wrapped = wrap(text, width - INDENT, width - INDENT);
        lines.extend(wrapped.iter().map(|line| format!("{indent}{}", line.replace('\u{a0}', " "))));
    }
    lines
}

/// Cells of one column each; a wide character takes two, the second of which is empty.
struct Raster {
    rows: Vec<Vec<String>>,
}

impl Raster {
    fn new(width: usize, height: usize) -> Self {
        Self { rows: vec![vec![" ".to_owned(); width]; height] }
    }

    fn at(&self, row: usize, column: usize) -> &str {
        self.rows.get(row).and_then(|row| row.get(column)).map_or("", String::as_str)
    }

    fn put(&mut self, row: usize, column: usize, text: &str) {
        if let Some(cell) = self.rows.get_mut(row).and_then(|row| row.get_mut(column)) {
            text.clone_into(cell);
        }
    }

    /// Fills from one column to another, inclusive.
    fn across(&mut self, row: usize, from: usize, to: usize, text: &str) {
        for column in from..=to {
            self.put(row, column, text);
        }
    }

    fn text(&mut self, row: usize, column: usize, text: &str) {
        let mut at = column;
        for character in text.chars() {
            match character.width().unwrap_or(0) {
                0 => {
                    // A combining character belongs to the one before it.
                    if let Some(cell) = self.rows.get_mut(row).and_then(|row| row.get_mut(at.saturating_sub(1))) {
                        cell.push(character);
                    }
                }
                columns => {
                    self.put(row, at, character.encode_utf8(&mut [0; 4]));
                    (1..columns).for_each(|more| self.put(row, at + more, ""));
                    at += columns;
                }
            }
        }
    }

    fn lines(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.concat().trim_end().to_owned()).collect()
    }
}
