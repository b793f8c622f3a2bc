//! Figures over months: text with a plot, a page, JSON.

use super::drift::{PLOT_STYLE, plot as drift_plot};
use super::html::{Markup, STYLE};
use super::quantity;
use super::svg::escaped;
use super::text::{Ink, Page, TextStyle, plot};
use crate::drift::{DriftChange, DriftRow};
use crate::statistics::middle;
use crate::trend::{CutVerdict, Trend, TrendChange, TrendCut};
use crate::{Axis, Point, Series, SeriesLine, Unit};

/// Number of stretches with a letter of their own; earlier ones share the first.
const STRETCHES: usize = 12;
/// A plot in letters has no room for more points: of more sheets, medians of neighbours are drawn.
const POINTS: usize = 400;

const SECONDS_A_DAY: f64 = 86_400.0;

fn percent(change: f64) -> String {
    format!("{:.1} %", change.abs() * 100.0)
}

/// An amount as a fraction of the value, or in the unit where a value is not positive.
fn amount(change: f64, cut: &TrendCut, unit: Unit) -> String {
    if cut.before > 0.0 && cut.after > 0.0 { percent(change) } else { quantity(change.abs(), unit).to_string() }
}

fn step(before: f64, after: f64, unit: Unit) -> String {
    let ratio = if before > 0.0 && after > 0.0 { format!(", × {:.2}", after / before) } else { String::new() };
    format!("{} → {}{ratio}", quantity(before, unit), quantity(after, unit))
}

fn verdict(cut: &TrendCut, unit: Unit) -> String {
    match cut.verdict {
        CutVerdict::Changed(least) => {
            let direction = if least > 0.0 { "higher" } else { "lower" };
            format!("{direction}: {} (at least {})", step(cut.before, cut.after, unit), amount(least, cut, unit))
        }
        CutVerdict::Same(margin) => format!("the same within {}", amount(margin, cut, unit)),
        CutVerdict::CannotTell { smallest, more } => {
            let smallest = smallest.map_or(String::new(), |smallest| {
                format!("; a change of {} or more would show", amount(smallest, cut, unit))
            });
            let more = match more {
                Some(1) => "; 1 more sheet would tell".to_owned(),
                Some(more) => format!("; {more} more sheets would tell"),
                None => "; it varies too much for any number of sheets to tell".to_owned(),
            };
            format!("cannot tell yet: {}{smallest}{more}", step(cut.before, cut.after, unit))
        }
    }
}

fn change(change: &TrendChange, trend: &Trend) -> String {
    let [after, until] = change.between.map(|sheet| trend.taken[sheet.min(trend.taken.len() - 1)].as_str());
    format!("{}; after {after}, and by {until}", step(change.before, change.after, trend.unit))
}

/// The plot of a trend: a letter for each stretch of equal conditions.
fn series(trend: &Trend) -> Series {
    let mut starts: Vec<usize> = std::iter::once(0).chain(trend.cuts.iter().map(|cut| cut.sheet)).collect();
    if starts.len() > STRETCHES {
        starts.drain(1..starts.len() - STRETCHES + 1);
    }
    let every = trend.medians.len().div_ceil(POINTS).max(1);
    let day = |sheet: usize| (trend.taken_s[sheet] - trend.taken_s[0]) / SECONDS_A_DAY;
    let line = |(place, start): (usize, &usize)| {
        let end = starts.get(place + 1).copied().unwrap_or(trend.medians.len());
        let points = (*start..end).step_by(every).filter_map(|at| {
            let y = middle(&trend.medians[at..(at + every).min(end)])?;
            Some(Point { x: day(at), y, low: None, high: None })
        });
        let day = trend.taken[*start].split(' ').next().unwrap_or_default();
        SeriesLine { name: format!("from {day}"), points: points.collect(), fitted: false }
    };
    let first = trend.taken.first().and_then(|taken| taken.split(' ').next()).unwrap_or_default();
    Series {
        id: trend.id.clone(),
        title: trend.label.clone(),
        x: Axis { label: format!("days since {first}"), unit: Unit::Count, log: false },
        y: Axis { label: "median of each sheet".to_owned(), unit: trend.unit, log: false },
        lines: starts.iter().enumerate().map(line).collect(),
    }
}

/// Renders trends for a terminal.
pub fn trend_text(trends: &[Trend], style: &TextStyle) -> String {
    let mut page = Page::new(style.width, style.colour);
    for trend in trends.iter().filter(|trend| !trend.medians.is_empty()) {
        page.blank();
        plot(&mut page, &series(trend));
        let (first, last) = (&trend.taken[0], &trend.taken[trend.taken.len() - 1]);
        page.blank();
        page.wrapped(Ink::Plain, 2, 4, &format!("{} sheets, from {first} to {last}", trend.taken.len()));
        for cut in &trend.cuts {
            page.blank();
            page.line(&[(Ink::Heading, &format!("From {} on, other conditions", trend.taken[cut.sheet]))]);
            for (label, before, after) in &cut.conditions {
                page.wrapped(Ink::Warning, 2, 4, &format!("! {label}: {before} → {after}"));
            }
            page.wrapped(Ink::Plain, 2, 4, &verdict(cut, trend.unit));
        }
        for found in &trend.changes {
            page.blank();
            page.line(&[(
                Ink::Heading,
                &format!("From {} on, although no condition changed", trend.taken[found.sheet]),
            )]);
            page.wrapped(Ink::Plain, 2, 4, &change(found, trend));
        }
        if trend.cuts.is_empty() && trend.changes.is_empty() {
            page.wrapped(Ink::Dim, 2, 4, "the conditions did not change, and no change of the figure was found");
        }
        for remark in &trend.undecided {
            page.blank();
            page.wrapped(Ink::Plain, 2, 4, remark);
        }
    }
    page.finish()
}

/// The plot of one trend as HTML: a dot for each sheet, a line across for each change that was shown.
fn trend_plot(trend: &Trend) -> String {
    let cuts = trend.cuts.iter().filter(|cut| matches!(cut.verdict, CutVerdict::Changed(_)));
    let cuts = cuts.map(|cut| DriftChange { sheet: cut.sheet, before: cut.before, after: cut.after });
    let changes = trend.changes.iter();
    let changes = changes.map(|found| DriftChange { sheet: found.sheet, before: found.before, after: found.after });
    let mut all: Vec<DriftChange> = cuts.chain(changes).collect();
    all.sort_unstable_by_key(|change| change.sheet);
    let row = DriftRow {
        id: trend.id.clone(),
        label: trend.label.clone(),
        unit: trend.unit,
        medians: trend.medians.iter().copied().map(Some).collect(),
        changes: all,
    };
    let mut page = Markup::default();
    drift_plot(&mut page, &row, &trend.taken);
    page.text
}

/// Renders trends as an HTML file: a plot for each, with its causes.
pub fn trend_html(trends: &[Trend]) -> String {
    let mut page = Markup::default();
    page.add(format_args!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Figures over months</title>\n\
         <style>\n{STYLE}{PLOT_STYLE}</style>\n</head>\n<body>\n<main>\n<header>\n<p class=\"kind\">Figures over months</p>\n\
         </header>\n"
    ));
    for trend in trends.iter().filter(|trend| !trend.medians.is_empty()) {
        page.add(format_args!("{}", trend_plot(trend)));
        for cut in &trend.cuts {
            page.add(format_args!("<p>From {} on, other conditions.</p>\n", escaped(&trend.taken[cut.sheet])));
            for (label, before, after) in &cut.conditions {
                let (label, before, after) = (escaped(label), escaped(before), escaped(after));
                page.add(format_args!("<p class=\"note warning\"><b>{label}</b> {before} → {after}</p>\n"));
            }
            page.add(format_args!("<p>{}</p>\n", escaped(&verdict(cut, trend.unit))));
        }
        for found in &trend.changes {
            page.add(format_args!(
                "<p>From {} on, although no condition changed: {}</p>\n",
                escaped(&trend.taken[found.sheet]),
                escaped(&change(found, trend))
            ));
        }
        for remark in &trend.undecided {
            page.add(format_args!("<p class=\"note\">{}</p>\n", escaped(remark)));
        }
    }
    page.add(format_args!("</main>\n</body>\n</html>\n"));
    page.text
}

/// Writes trends as indented JSON with a newline at its end.
pub fn trend_json(trends: &[Trend]) -> String {
    let mut json = serde_json::to_string_pretty(trends).unwrap_or_default();
    json.push('\n');
    json
}
