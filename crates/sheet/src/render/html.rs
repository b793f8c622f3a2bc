//! The sheet as one self-contained HTML file: no scripts, no network, no own fonts. It follows the reader's light or
//! dark scheme, prints, and fits a phone: wide tables scroll.
//!
//! All texts from the sheet are escaped; none can become markup.

mod chapter;
mod conditions;
mod first_page;
mod incidents;
mod timeline;

use std::fmt::Write;

use super::quantity;
use super::svg::escaped;
use crate::{Absent, Note, NoteKind, Sheet, Unit};

pub(super) const STYLE: &str = include_str!("html/style.css");

/// Renders a sheet as an HTML file: the first page, below which each chapter opens on a click. A sheet without a
/// summary has no first page, so its chapters are open.
pub fn html(sheet: &Sheet) -> String {
    rendered(sheet, sheet.summary.is_none())
}

/// The same page with all chapters open, so that they print too.
pub fn html_unfolded(sheet: &Sheet) -> String {
    rendered(sheet, true)
}

fn rendered(sheet: &Sheet, open: bool) -> String {
    let machine = sheet.conditions.value("cpu.model").unwrap_or("Unknown machine");
    let mut page = Markup::default();
    page.add(format_args!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}: {}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        escaped(&sheet.title()),
        escaped(machine)
    ));
    head(&mut page, sheet, machine);
    notes(&mut page, &sheet.notes);
    if let Some(summary) = &sheet.summary {
        first_page::first_page(&mut page, summary);
    }
    contents(&mut page, sheet);
    for chapter in &sheet.chapters {
        chapter::chapter(&mut page, chapter, open);
    }
    conditions::conditions(&mut page, &sheet.conditions);
    page.add(format_args!(
        "<footer>{} · hairspring {} · the JSON form of this sheet has every number in full</footer>\n</main>\n</body>\n</html>\n",
        escaped(&sheet.schema),
        escaped(&sheet.hairspring.version)
    ));
    page.text
}

/// A buffer for markup.
#[derive(Default)]
pub(super) struct Markup {
    pub(super) text: String,
}

impl Markup {
    /// Adds text that is already markup: parts from the sheet must be escaped.
    pub(super) fn add(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(text);
    }
}

fn head(page: &mut Markup, sheet: &Sheet, machine: &str) {
    let (taken, build, conditions) = (&sheet.taken, &sheet.hairspring, &sheet.conditions);
    page.add(format_args!(
        "<header>\n<p class=\"kind\">{}</p>\n<h1>{}</h1>\n<dl class=\"head\">\n",
        escaped(&sheet.title()),
        escaped(machine)
    ));
    let commit = build.commit.as_deref().map_or(String::new(), |c| format!(" ({c})"));
    let duration = quantity(taken.duration_s * 1e9, Unit::Ns).to_string();
    let effort = if taken.interrupted { format!("{}, interrupted before its end", taken.how()) } else { taken.how() };
    let entries = [
        ("Kernel", conditions.value("kernel.release").unwrap_or("unknown").to_owned()),
        ("Clock source", conditions.clock_source().unwrap_or("unknown").to_owned()),
        ("Taken", taken.when()),
        ("Duration", duration),
        ("Effort", effort),
        ("Taken by", format!("hairspring {}{commit}, {}, {}", build.version, build.compiler, build.flags)),
    ];
    for (label, value) in entries {
        page.add(format_args!("<div><dt>{label}</dt><dd>{}</dd></div>\n", escaped(&value)));
    }
    page.add(format_args!("</dl>\n</header>\n"));
}

/// Notes with their remedies: warnings first.
fn notes(page: &mut Markup, notes: &[Note]) {
    let mut ordered: Vec<&Note> = notes.iter().collect();
    ordered.sort_by_key(|n| n.kind == NoteKind::Remark);
    for note in ordered {
        let (class, kind) = match note.kind {
            NoteKind::Warning => ("note warning", "Warning"),
            NoteKind::Remark => ("note", "Note"),
        };
        let remedy = note.remedy.as_deref().map_or(String::new(), remedy);
        page.add(format_args!("<p class=\"{class}\"><b>{kind}</b> {}{remedy}</p>\n", prose(&note.text)));
    }
}

/// Links to the chapters.
fn contents(page: &mut Markup, sheet: &Sheet) {
    page.add(format_args!("<nav>"));
    for chapter in &sheet.chapters {
        page.add(format_args!("<a href=\"#{}\">{}</a>", escaped(&chapter.id), escaped(&chapter.title)));
    }
    page.add(format_args!("<a href=\"#conditions\">Conditions</a></nav>\n"));
}

/// Why a part is absent, and the remedy.
fn absent(absent: &Absent) -> String {
    missing("absent", absent)
}

/// The same with another word, for a part that is incomplete.
fn missing(what: &str, absent: &Absent) -> String {
    let remedy = absent.remedy.as_deref().map_or(String::new(), remedy);
    format!("<span class=\"absent\"><b>{what}</b> {}</span>{remedy}", prose(&absent.reason))
}

fn remedy(remedy: &str) -> String {
    format!("<span class=\"remedy\">→ {}</span>", prose(remedy))
}

/// A sentence with commands between backticks.
fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return escaped(text);
    }
    let part = |(place, part): (usize, &&str)| match place % 2 {
        0 => escaped(part),
        _ => format!("<code>{}</code>", escaped(part)),
    };
    parts.iter().enumerate().map(part).collect()
}
