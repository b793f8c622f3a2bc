//! The first page: the summary of a sheet in the form of a data sheet, on one screen.

use super::page::{Ink, Page, flush_right, padded};
use super::{TextStyle, notes};
use crate::render::quantity;
use crate::{Characteristic, NoteKind, Sheet, SheetSummary, Unit};

/// The least width with the conditions beside the numbers.
const WIDTH_WITH_CONDITIONS: usize = 96;
/// Widths of the columns.
const LABEL: usize = 39;
const NUMBER: usize = 10;
const WATCHED: usize = 9;

/// Renders the first page for a terminal: at most 45 lines of 100 columns. Ends with a newline. A sheet without a
/// summary has its head only.
pub fn first_page(sheet: &Sheet, style: &TextStyle) -> String {
    let mut page = Page::new(style.width, style.colour);
    head(&mut page, sheet);
    if let Some(summary) = &sheet.summary {
        body(&mut page, summary);
    }
    page.blank();
    page.wrapped(
        Ink::Dim,
        0,
        0,
        "--full shows everything, --chapter NAME one chapter, --out sheet.html a page with plots.",
    );
    page.finish()
}

/// The machine and its conditions in two lines, then the warnings.
fn head(page: &mut Page, sheet: &Sheet) {
    let fact = |id: &str| sheet.conditions.value(id);
    let guest = fact("kernel.hypervisor").filter(|what| !what.starts_with("none")).map(|_| "guest".to_owned());
    let machine: Vec<String> = [
        fact("cpu.model").map(str::to_owned),
        guest,
        fact("cpu.online").map(|online| format!("CPUs {online}")),
        fact("kernel.release").map(|kernel| format!("kernel {kernel}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    page.wrapped(Ink::Heading, 0, 2, &machine.join(" · "));
    let taken = &sheet.taken;
    let duration = quantity(taken.duration_s * 1e9, Unit::Ns);
    let clock = sheet.conditions.clock_source().map(|clock| format!("clock source {clock} · ")).unwrap_or_default();
    let interrupted = if taken.interrupted { " · INTERRUPTED" } else { "" };
    page.wrapped(
        Ink::Plain,
        0,
        2,
        &format!(
            "{clock}taken {} in {duration}, {} · hairspring {}{interrupted}",
            taken.when(),
            taken.effort,
            sheet.hairspring.version
        ),
    );
    let warnings: Vec<_> = sheet.notes.iter().filter(|note| note.kind == NoteKind::Warning).cloned().collect();
    notes(page, &warnings);
}

fn body(page: &mut Page, summary: &SheetSummary) {
    let wide = page.width >= WIDTH_WITH_CONDITIONS;
    page.blank();
    let mut heads = padded("", LABEL);
    for name in ["typical", "99 %", "worst"] {
        heads.push_str(&flush_right(name, NUMBER));
    }
    heads.push_str(&flush_right("watched", WATCHED));
    page.line(&[(Ink::Dim, &heads), (Ink::Dim, if wide { "  conditions" } else { "" })]);
    for line in &summary.characteristics {
        characteristic(page, line, wide);
    }
    if !summary.findings.is_empty() {
        page.blank();
        page.line(&[(Ink::Heading, "What limits it")]);
        for (number, finding) in summary.findings.iter().enumerate() {
            page.wrapped(Ink::Plain, 2, 4, &format!("{} {}", number + 1, finding.text));
            page.wrapped(Ink::Plain, 4, 6, &format!("→ {}: {}", finding.remedy, finding.effect));
        }
    }
    if !summary.not_measured.is_empty() {
        page.blank();
        page.line(&[(Ink::Heading, "Not measured")]);
        for reason in &summary.not_measured {
            // One line each: the remedy if there is one; the chapters have the full reasons.
            let why = reason.remedy.as_ref().map_or_else(|| reason.reason.clone(), |remedy| format!("→ {remedy}"));
            let line = format!("  {} ({}): {why}", reason.what, reason.rows);
            page.line(&[(Ink::Plain, &line)]);
        }
    }
}

fn characteristic(page: &mut Page, line: &Characteristic, wide: bool) {
    let number = |value: Option<f64>| {
        let sign = |value: f64| if line.lateness && value >= 0.0 { "+" } else { "" };
        let text =
            value.map_or_else(|| "–".to_owned(), |value| format!("{}{}", sign(value), quantity(value, line.unit)));
        flush_right(&text, NUMBER)
    };
    let numbers = [line.typical, line.p99, line.worst].map(number).concat();
    let watched = flush_right(&quantity(line.watched as f64, Unit::Count).to_string(), WATCHED);
    let conditions = if wide { format!("  {}", line.conditions) } else { String::new() };
    page.line(&[
        (Ink::Plain, &padded(&format!("  {}", line.label), LABEL)),
        (Ink::Plain, &numbers),
        (Ink::Dim, &watched),
        (Ink::Dim, &conditions),
    ]);
}
