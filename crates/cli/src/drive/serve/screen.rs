//! A Phoebus screen (`.bob`) of a station: a row for each unit, and its set-points.

use std::fmt::Write;

use hairspring_station::Station;

use super::variables::{Kind, Role, Variable, prefix};

/// Sizes in pixels.
const ROW: usize = 24;
const LABEL: usize = 130;
const CELL: usize = 100;
const GAP: usize = 4;
const EDGE: usize = 10;

/// Columns of the table of units: the end of a variable's name.
const COLUMNS: [&str; 9] = ["Events", "Rate", "Missed", "Late", "Overrun", "LatMed", "LatP99", "LatMax", "LastCycle"];

/// A widget: its kind, place and width, and further XML.
struct Widget<'a> {
    kind: &'a str,
    name: &'a str,
    at: (usize, usize),
    width: usize,
    more: String,
}

/// The characters of a text that XML admits; those with a meaning in XML are escaped.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().filter(|c| !c.is_control()) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

fn put(out: &mut String, widget: &Widget<'_>) {
    let Widget { kind, name, at: (x, y), width, more } = widget;
    let name = escaped(name);
    // Writing into a String cannot fail.
    let _ = writeln!(
        out,
        "  <widget type=\"{kind}\" version=\"2.0.0\">\n    <name>{name}</name>\n    <x>{x}</x>\n    <y>{y}</y>\n    \
         <width>{width}</width>\n    <height>{}</height>\n    {more}\n  </widget>",
        ROW - GAP
    );
}

fn label(out: &mut String, text: &str, at: (usize, usize), width: usize) {
    put(out, &Widget { kind: "label", name: text, at, width, more: format!("<text>{}</text>", escaped(text)) });
}

/// A widget that shows or sets a variable.
fn variable(out: &mut String, variable: &Variable, at: (usize, usize), width: usize) {
    let kind = match (variable.role, variable.kind) {
        (Role::Set, Kind::Switch) => "combo",
        (Role::Set, _) => "textentry",
        _ => "textupdate",
    };
    // With the protocol, since Phoebus uses Channel Access without one. The tooltip describes the variable.
    let name = escaped(&variable.suffix);
    let more = format!(
        "<pv_name>pva://$(P){name}</pv_name>\n    <tooltip>{}&#10;$(pv_value)</tooltip>",
        escaped(variable.description)
    );
    put(out, &Widget { kind, name: &variable.suffix, at, width, more });
}

/// The screen as XML.
pub(super) fn screen(station: &Station, name: &str, variables: &[Variable]) -> String {
    let mut body = String::new();
    let mut y = EDGE;
    let find = |suffix: &str| variables.iter().find(|variable| variable.suffix == suffix);
    label(&mut body, name, (EDGE, y), LABEL);
    let mut x = EDGE + LABEL;
    for (suffix, width) in [("State", CELL), ("Message", 4 * CELL), ("Heartbeat", CELL), ("ClockErr", CELL)] {
        if let Some(found) = find(suffix) {
            variable(&mut body, found, (x, y), width - GAP);
            x += width;
        }
    }
    y += 2 * ROW;
    for (index, column) in COLUMNS.iter().enumerate() {
        label(&mut body, column, (EDGE + LABEL + index * CELL, y), CELL - GAP);
    }
    for (index, unit) in station.units.iter().enumerate() {
        y += ROW;
        label(&mut body, &unit.name, (EDGE, y), LABEL - GAP);
        let own = variables.iter().filter(|variable| variable.unit.as_ref().is_some_and(|(at, _)| *at == index));
        for found in own {
            let field = found.suffix.rsplit(':').next().unwrap_or_default();
            if let Some(column) = COLUMNS.iter().position(|column| *column == field) {
                variable(&mut body, found, (EDGE + LABEL + column * CELL, y), CELL - GAP);
            }
        }
    }
    y += ROW;
    for set in variables.iter().filter(|variable| variable.role == Role::Set) {
        y += ROW;
        let stem = set.suffix.strip_suffix("-SP").unwrap_or(&set.suffix);
        label(&mut body, stem, (EDGE, y), LABEL + CELL - GAP);
        variable(&mut body, set, (EDGE + LABEL + CELL, y), CELL - GAP);
        if let Some(read) = find(&format!("{stem}-RB")) {
            variable(&mut body, read, (EDGE + LABEL + 2 * CELL, y), CELL - GAP);
        }
        label(&mut body, set.measure, (EDGE + LABEL + 3 * CELL, y), CELL - GAP);
    }
    let (width, height) = (2 * EDGE + LABEL + COLUMNS.len() * CELL, y + ROW + EDGE);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<display version=\"2.0.0\">\n  <name>{}</name>\n  <macros>\n    \
         <P>{}</P>\n  </macros>\n  <width>{width}</width>\n  <height>{height}</height>\n{body}</display>\n",
        escaped(name),
        escaped(&prefix(station, name))
    )
}
