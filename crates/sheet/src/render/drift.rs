//! Figures over time: text with a small line for each row that changed, a page with a plot for every row, JSON.

use super::html::{Markup, STYLE};
use super::quantity;
use super::svg::{coordinate, escaped};
use super::text::{Ink, Page, TextStyle, padded};
use crate::drift::{DRIFT_LEVEL, Drift, DriftChange, DriftRow};

/// The heights of a small line.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The most columns of a small line; of more sheets the last ones are drawn.
const BARS_MAX: usize = 40;

/// Number of rows that changed, and the number expected by chance.
fn sum(drift: &Drift) -> String {
    let changed = drift.rows.iter().filter(|row| !row.changes.is_empty()).count();
    let chance = (drift.rows.len() as f64 * DRIFT_LEVEL).ceil();
    format!("{changed} of {} rows changed for good; about {chance} would seem to by chance", drift.rows.len())
}

fn change(row: &DriftRow, change: &DriftChange) -> String {
    let (before, after) = (quantity(change.before, row.unit), quantity(change.after, row.unit));
    let ratio = change.after / change.before;
    let ratio = if change.before > 0.0 && change.after > 0.0 { format!("  × {ratio:.2}") } else { String::new() };
    format!("{before} → {after}{ratio}")
}

/// Renders figures over time for a terminal: the times of changes, the conditions that changed with them, and a small
/// line for each.
pub fn drift_text(drift: &Drift, style: &TextStyle) -> String {
    let mut page = Page::new(style.width, style.colour);
    page.line(&[(Ink::Heading, "Figures over time")]);
    let (first, last) = (drift.taken.first(), drift.taken.last());
    let (first, last) = (first.map_or("", String::as_str), last.map_or("", String::as_str));
    page.wrapped(Ink::Plain, 2, 2, &format!("{} sheets, from {first} to {last}", drift.taken.len()));
    page.wrapped(Ink::Plain, 2, 4, &sum(drift));
    for moment in &drift.moments {
        page.blank();
        let heading =
            format!("From {} on (sheet {} of {})", drift.taken[moment.sheet], moment.sheet + 1, drift.taken.len());
        page.line(&[(Ink::Heading, &heading)]);
        for (label, before, after) in &moment.conditions {
            page.wrapped(Ink::Warning, 2, 4, &format!("! {label}: {before} → {after}"));
        }
        if moment.conditions.is_empty() {
            page.wrapped(Ink::Dim, 2, 4, "no condition that the sheets record changed then");
        }
        for row in drift.rows.iter().filter(|row| moment.rows.contains(&row.id)) {
            page.wrapped(Ink::Plain, 2, 4, &row.id);
            for step in row.changes.iter().filter(|step| step.sheet == moment.sheet) {
                let told = format!("    {}  ", padded(&change(row, step), 30));
                page.line(&[(Ink::Plain, &told), (Ink::Dim, &bars(row, page.width.saturating_sub(36)))]);
            }
        }
    }
    page.finish()
}

/// The medians as bars of eight heights; a dot where a sheet has none.
fn bars(row: &DriftRow, room: usize) -> String {
    let known = || row.medians.iter().flatten();
    let (low, high) = known().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(*v), high.max(*v)));
    let bar = |median: &Option<f64>| match median {
        Some(median) if high > low => BARS[(((median - low) / (high - low)) * 7.0).round() as usize],
        Some(_) => BARS[0],
        None => '·',
    };
    let from = row.medians.len().saturating_sub(room.min(BARS_MAX));
    row.medians[from..].iter().map(bar).collect()
}

pub(super) const PLOT_STYLE: &str = "
svg.drift { display: block; width: 100%; min-width: 420px; max-width: 46rem; height: auto; }
svg.drift text { font: 11px ui-monospace, Consolas, monospace; fill: var(--soft); }
svg.drift .d { fill: var(--c0); } svg.drift .level { stroke: var(--median); stroke-width: 1.5; }
svg.drift .change { stroke: var(--median); stroke-dasharray: 3 3; } svg.drift .frame { stroke: var(--line); }
summary { cursor: pointer; margin-top: 1.2rem; }
";

/// Renders figures over time as an HTML file: the moments, then a plot for every row, those that changed first.
pub fn drift_html(drift: &Drift) -> String {
    let mut page = Markup::default();
    page.add(format_args!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Figures over time</title>\n\
         <style>\n{STYLE}{PLOT_STYLE}</style>\n</head>\n<body>\n<main>\n<header>\n<p class=\"kind\">Figures over time</p>\n\
         <h1>{} sheets</h1>\n</header>\n<p>{}.</p>\n",
        drift.taken.len(),
        sum(drift)
    ));
    for moment in &drift.moments {
        page.add(format_args!(
            "<p>From {} on: {} {}.</p>\n",
            escaped(&drift.taken[moment.sheet]),
            moment.rows.len(),
            if moment.rows.len() == 1 { "row" } else { "rows" }
        ));
        for (label, before, after) in &moment.conditions {
            let (label, before, after) = (escaped(label), escaped(before), escaped(after));
            page.add(format_args!("<p class=\"note warning\"><b>{label}</b> {before} → {after}</p>\n"));
        }
    }
    let (changed, steady): (Vec<&DriftRow>, Vec<&DriftRow>) =
        drift.rows.iter().partition(|row| !row.changes.is_empty());
    page.add(format_args!("<h2>Rows that changed</h2>\n"));
    changed.iter().for_each(|row| plot(&mut page, row, &drift.taken));
    page.add(format_args!("<details><summary>{} rows without a change</summary>\n", steady.len()));
    steady.iter().for_each(|row| plot(&mut page, row, &drift.taken));
    page.add(format_args!("</details>\n</main>\n</body>\n</html>\n"));
    page.text
}

/// A dot for each sheet, the level between changes as a line, each change as a line across.
pub(super) fn plot(page: &mut Markup, row: &DriftRow, taken: &[String]) {
    const LEFT: f64 = 80.0;
    const WIDTH: f64 = 560.0;
    const HEIGHT: f64 = 90.0;
    let known = || row.medians.iter().flatten();
    let (low, high) = known().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(*v), high.max(*v)));
    let x = |sheet: f64| coordinate(LEFT + WIDTH * (sheet + 0.5) / row.medians.len() as f64);
    let range = if high > low { high - low } else { 1.0 };
    let y = |value: f64| coordinate(8.0 + (HEIGHT - 16.0) * (1.0 - (value - low) / range));
    let (lowest, highest) = (quantity(low, row.unit), quantity(high, row.unit));
    page.add(format_args!(
        "<h3>{} <code>{}</code></h3>\n<svg class=\"drift\" role=\"img\" aria-label=\"medians of sheets\" viewBox=\"0 0 {3} {4}\">\n\
         <line class=\"frame\" x1=\"{LEFT}\" x2=\"{LEFT}\" y1=\"0\" y2=\"{HEIGHT}\"/>\
         <text x=\"{2}\" y=\"12\" text-anchor=\"end\">{highest}</text><text x=\"{2}\" y=\"{HEIGHT}\" text-anchor=\"end\">{lowest}</text>",
        escaped(&row.label),
        escaped(&row.id),
        LEFT - 6.0,
        LEFT + WIDTH + 4.0,
        HEIGHT + 20.0,
    ));
    for (at, anchor, date) in dates(row, taken, |sheet| LEFT + WIDTH * (sheet as f64 + 0.5) / row.medians.len() as f64)
    {
        let (at, y, date) = (coordinate(at), HEIGHT + 15.0, escaped(&date));
        page.add(format_args!("<text x=\"{at}\" y=\"{y}\" text-anchor=\"{anchor}\">{date}</text>"));
    }
    let last = row.medians.len();
    for (number, step) in row.changes.iter().enumerate() {
        let from = if number == 0 { 0 } else { row.changes[number - 1].sheet };
        let until = row.changes.get(number + 1).map_or(last, |next| next.sheet);
        let across = x(step.sheet as f64 - 0.5);
        page.add(format_args!("<line class=\"change\" x1=\"{across}\" x2=\"{across}\" y1=\"0\" y2=\"{HEIGHT}\"/>"));
        for (from, until, value) in [(from, step.sheet, step.before), (step.sheet, until, step.after)] {
            let (from, until, value) = (x(from as f64 - 0.5), x(until as f64 - 0.5), y(value));
            page.add(format_args!(
                "<line class=\"level\" x1=\"{from}\" x2=\"{until}\" y1=\"{value}\" y2=\"{value}\"/>"
            ));
        }
    }
    for (sheet, median) in row.medians.iter().enumerate() {
        let Some(median) = median else { continue };
        let (cx, cy) = (x(sheet as f64), y(*median));
        let when = escaped(&taken[sheet]);
        page.add(format_args!(
            "<circle class=\"d\" cx=\"{cx}\" cy=\"{cy}\" r=\"2.6\"><title>{when}: {}</title></circle>",
            quantity(*median, row.unit)
        ));
    }
    page.add(format_args!("\n</svg>\n"));
}

/// The dates below a plot: of the first and the last sheet, and of each change that has room between. Each with its
/// place and its side.
fn dates(row: &DriftRow, taken: &[String], x: impl Fn(usize) -> f64) -> Vec<(f64, &'static str, String)> {
    const CHARACTER: f64 = 6.7;
    let (Some(first), Some(last)) = (taken.first(), taken.last()) else { return Vec::new() };
    // Within one day the date distinguishes no sheets.
    let day = |when: &str| when.split(' ').next().unwrap_or_default().to_owned();
    let minute = |when: &str| when.rsplit_once(':').map_or(when, |(minute, _)| minute).to_owned();
    let date = |when: &String| if day(first) == day(last) { minute(when) } else { day(when) };
    let mut dates = vec![(x(0), "start", date(first))];
    let half = date(first).chars().count() as f64 * CHARACTER / 2.0;
    let end = x(taken.len() - 1);
    let mut free = x(0) + 2.0 * half + CHARACTER;
    for change in &row.changes {
        let at = x(change.sheet);
        if at - half >= free && at + half + CHARACTER <= end - 2.0 * half {
            dates.push((at, "middle", date(&taken[change.sheet])));
            free = at + half + CHARACTER;
        }
    }
    if end - 2.0 * half >= x(0) + 2.0 * half + CHARACTER {
        dates.push((end, "end", date(last)));
    }
    dates
}

/// Writes figures over time as indented JSON with a newline at its end.
pub fn drift_json(drift: &Drift) -> String {
    let mut json = serde_json::to_string_pretty(drift).unwrap_or_default();
    json.push('\n');
    json
}
