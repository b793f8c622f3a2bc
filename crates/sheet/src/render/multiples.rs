//! Many machines over months on one page: small multiples, a row for each machine and a column for each figure.
//!
//! All plots of a column share their scale, and all plots their dates, so that a machine that differs stands out. Every
//! point links to the page of its sheet.

use super::html::{Markup, STYLE};
use super::quantity;
use super::svg::{coordinate, escaped};
use crate::Unit;
use crate::trend::{CutVerdict, Trend};

/// A figure that is drawn for every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiplesColumn {
    /// The id of its rows.
    pub id: String,
    /// Label of the column, for people.
    pub label: String,
    /// Its unit.
    pub unit: Unit,
}

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiplesRow {
    /// Its name, for people.
    pub name: String,
    /// Its processor, and how many sheets it has.
    pub about: String,
    /// A cell for each column; none where it has no such figure.
    pub cells: Vec<Option<MultiplesCell>>,
}

/// One figure of one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiplesCell {
    /// Its medians over months.
    pub trend: Trend,
    /// Path of the page of each of its sheets; `None` for the sheets that are not drawn.
    pub pages: Vec<Option<String>>,
}

const WIDTH: f64 = 132.0;
const HEIGHT: f64 = 44.0;
/// Between a plot's edge and its outermost points.
const MARGIN: f64 = 4.0;
/// From this ratio between the greatest and the least value on, a column has a logarithmic scale.
const LOG_FROM: f64 = 4.0;

const OWN_STYLE: &str = "
main.wide { max-width: none; }
.multiples { width: auto; } .multiples th, .multiples td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; }
.multiples thead th { white-space: normal; min-width: 8.6rem; max-width: 9rem; vertical-align: bottom; }
.multiples thead code { display: block; } .multiples thead small { display: block; color: var(--soft); }
.multiples tbody th { position: sticky; left: 0; background: var(--paper); font-weight: 600; z-index: 1; padding-right: 1rem; }
.multiples tbody th small { display: block; font-weight: 400; color: var(--soft); }
.multiples svg { display: block; width: 132px; height: 44px; background: var(--sheet); }
.multiples .d { fill: var(--c0); } .multiples a:hover .d { fill: var(--c1); } .multiples .last { fill: var(--median); }
.multiples .cut { stroke: var(--faint); stroke-dasharray: 2 2; } .multiples .shown { stroke: var(--median); stroke-dasharray: 3 2; }
.multiples .now { font-size: .8rem; color: inherit; text-decoration: none; } .multiples .by { color: var(--median); font-weight: 600; }
";

/// The limits of a column's values and of all dates.
struct Scale {
    low: f64,
    high: f64,
    log: bool,
    from_s: f64,
    until_s: f64,
}

impl MultiplesCell {
    /// Its points that are drawn: place, seconds since 1970, median, and the page.
    fn points(&self) -> impl Iterator<Item = (usize, f64, f64, &str)> {
        let trend = &self.trend;
        let pages = self.pages.iter().enumerate();
        pages.filter_map(|(at, page)| Some((at, *trend.taken_s.get(at)?, *trend.medians.get(at)?, page.as_deref()?)))
    }
}

/// The points of these cells that are drawn: their times and medians.
fn drawn<'c>(cells: impl Iterator<Item = &'c MultiplesCell>) -> (Vec<f64>, Vec<f64>) {
    cells.flat_map(|cell| cell.points().map(|(_, taken_s, median, _)| (taken_s, median))).unzip()
}

fn limits(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(*value), high.max(*value)))
}

impl Scale {
    fn of(values: &[f64], (from_s, until_s): (f64, f64)) -> Self {
        let (low, high) = limits(values);
        Self { low, high, log: low > 0.0 && high / low >= LOG_FROM, from_s, until_s }
    }

    fn x(&self, taken_s: f64) -> f64 {
        Self::place(taken_s, self.from_s, self.until_s, WIDTH)
    }

    fn y(&self, median: f64) -> f64 {
        let place = |value: f64| if self.log { value.ln() } else { value };
        HEIGHT - Self::place(place(median), place(self.low), place(self.high), HEIGHT)
    }

    /// Coordinate of a value between two others in this room; in the middle if these are equal.
    fn place(value: f64, low: f64, high: f64, room: f64) -> f64 {
        let share = if high > low { (value - low) / (high - low) } else { 0.5 };
        MARGIN + (room - 2.0 * MARGIN) * share
    }
}

/// Renders machines × figures as an HTML file without scripts. `about` is a sentence below its heading.
pub fn multiples_html(about: &str, columns: &[MultiplesColumn], rows: &[MultiplesRow]) -> String {
    let mut page = Markup::default();
    page.add(format_args!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"{MULTIPLES_GENERATOR}\">\n\
         <title>Machines over months</title>\n<style>\n{STYLE}{OWN_STYLE}</style>\n</head>\n<body>\n<main class=\"wide\">\n<header>\n\
         <p class=\"kind\">Archive of timing data sheets</p>\n<h1>Machines over months</h1>\n</header>\n<p class=\"intro\">{} \
         A dot is the median of a sheet, and leads to it. All plots of a column have one scale, and all plots the same dates. A coloured \
         line marks a change that was shown, a grey one other conditions without such a change.</p>\n<div class=\"scroll\">\n\
         <table class=\"multiples\">\n<thead><tr><th></th>",
        escaped(about)
    ));
    let all = rows.iter().flat_map(|row| row.cells.iter().flatten());
    let dates = limits(&drawn(all).0);
    let scales: Vec<Scale> = (0..columns.len())
        .map(|place| Scale::of(&drawn(rows.iter().filter_map(|row| row.cells.get(place)?.as_ref())).1, dates))
        .collect();
    for (column, scale) in columns.iter().zip(&scales) {
        let (low, high) = (quantity(scale.low, column.unit), quantity(scale.high, column.unit));
        let log = if scale.log { ", logarithmic" } else { "" };
        let (label, id) = (escaped(&column.label), escaped(&column.id));
        page.add(format_args!("<th scope=\"col\">{label} <code>{id}</code><small>{low} to {high}{log}</small></th>"));
    }
    page.add(format_args!("</tr></thead>\n<tbody>\n"));
    for row in rows {
        let (name, about) = (escaped(&row.name), escaped(&row.about));
        page.add(format_args!("<tr><th scope=\"row\">{name}<small>{about}</small></th>"));
        for ((column, scale), cell) in columns.iter().zip(&scales).zip(&row.cells) {
            match cell {
                Some(cell) => plot(&mut page, column, scale, cell),
                None => page.add(format_args!("<td><span class=\"absent\">no figure</span></td>")),
            }
        }
        page.add(format_args!("</tr>\n"));
    }
    page.add(format_args!("</tbody>\n</table>\n</div>\n</main>\n</body>\n</html>\n"));
    page.text
}

/// Generator name in the page. A program that replaces the page recognizes its own by it.
pub const MULTIPLES_GENERATOR: &str = "hairspring archive html";

fn plot(page: &mut Markup, column: &MultiplesColumn, scale: &Scale, cell: &MultiplesCell) {
    let points: Vec<_> = cell.points().collect();
    let Some((last, _, now, newest)) = points.last().copied() else {
        page.add(format_args!("<td><span class=\"absent\">no figure</span></td>"));
        return;
    };
    let (id, first) = (escaped(&column.id), points[0].0);
    let label = format!("{} sheets, the last {}", points.len(), quantity(now, column.unit));
    page.add(format_args!("<td><svg role=\"img\" aria-label=\"{label}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\">"));
    let shown = |cut: &crate::trend::TrendCut| matches!(cut.verdict, CutVerdict::Changed(_));
    let cuts = cell.trend.cuts.iter().map(|cut| (cut.sheet, shown(cut)));
    for (at, shown) in cuts.chain(cell.trend.changes.iter().map(|change| (change.sheet, true))) {
        let Some(taken_s) = cell.trend.taken_s.get(at).filter(|_| at > first) else { continue };
        let (x, class) = (coordinate(scale.x(*taken_s) - 1.0), if shown { "shown" } else { "cut" });
        page.add(format_args!("<line class=\"{class}\" x1=\"{x}\" x2=\"{x}\" y1=\"0\" y2=\"{HEIGHT}\"/>"));
    }
    for (at, taken_s, median, sheet) in &points {
        let (x, y) = (coordinate(scale.x(*taken_s)), coordinate(scale.y(*median)));
        let class = if *at == last { "d last" } else { "d" };
        page.add(format_args!(
            "<a href=\"{}#{id}\"><circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"2\"><title>{}: {}</title></circle></a>",
            escaped(sheet),
            escaped(&cell.trend.taken[*at]),
            quantity(*median, column.unit)
        ));
    }
    let by = last_change(&cell.trend).map_or(String::new(), |by| format!(" <span class=\"by\">{by}</span>"));
    page.add(format_args!(
        "</svg><a class=\"now\" href=\"{}#{id}\">{}{by}</a></td>",
        escaped(newest),
        quantity(now, column.unit)
    ));
}

/// Effect of the last change shown, as a factor.
fn last_change(trend: &Trend) -> Option<String> {
    let cuts = trend.cuts.iter().filter(|cut| matches!(cut.verdict, CutVerdict::Changed(_)));
    let cuts = cuts.map(|cut| (cut.sheet, cut.before, cut.after));
    let all = cuts.chain(trend.changes.iter().map(|change| (change.sheet, change.before, change.after)));
    let (_, before, after) = all.max_by_key(|(sheet, ..)| *sheet)?;
    (before > 0.0 && after > 0.0).then(|| format!("× {:.2}", after / before))
}
