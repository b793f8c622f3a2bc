//! A chapter: its tables with a distribution beside each row, its plots, the larger distributions.

use super::{Markup, absent, incidents, notes, timeline};
use crate::render::absences::has_figures;
use crate::render::axes::{Scale, points_beyond};
use crate::render::bins::Range;
use crate::render::quantity;
use crate::render::quantity::{Quantity, binary, centre, count, grouped, spread, statistic};
use crate::render::svg;
use crate::render::svg::escaped;
use crate::{Chapter, Figure, Method, Row, Series, SeriesLine, Table, Unit};

/// A column of numbers: its head and its statistic.
type Statistic = (&'static str, fn(&Figure) -> Option<f64>);

const STATISTICS: &[Statistic] = &[
    ("min", |f| f.min),
    ("25 %", |f| f.q1),
    ("median", |f| f.median),
    ("75 %", |f| f.q3),
    ("99 %", |f| f.p99),
    ("99.9 %", |f| f.p999),
    ("max", |f| f.max),
];
/// The columns of numbers that were computed with limits.
const LIMITS: [Statistic; 3] = [
    ("95 %: from", |f| f.median_interval.map(|limits| limits[0])),
    ("median", |f| f.median),
    ("to", |f| f.median_interval.map(|limits| limits[1])),
];
/// A table with more rows than these stands below its diagram, in full width, because the space beside it would be
/// empty.
const MOST_ROWS_BESIDE: usize = 8;
/// Statistics that have a column beside a diagram.
const BESIDE_DIAGRAM: [&str; 4] = ["min", "median", "99 %", "max"];
/// The chapter whose results are distributions, so each gets its own plot.
const DISTRIBUTIONS_OF: &str = "disturbance";
/// The least number of samples for a distribution.
const SAMPLES_LEAST: u64 = 100;

pub(super) fn chapter(page: &mut Markup, chapter: &Chapter, open: bool) {
    let (id, title) = (escaped(&chapter.id), escaped(&chapter.title));
    let open = if open { " open" } else { "" };
    page.add(format_args!(
        "<details class=\"chapter\" id=\"{id}\"{open}>\n<summary><h2>{title}</h2>\n<p class=\"intro\">{}</p></summary>\n",
        escaped(&chapter.intro)
    ));
    for table in chapter.tables.iter().filter(|table| has_figures(table)) {
        self::table(page, table);
    }
    for series in &chapter.series {
        self::series(page, series);
    }
    incidents::incidents(page, chapter);
    if chapter.id == DISTRIBUTIONS_OF {
        chapter.tables.iter().flat_map(|t| &t.rows).for_each(|row| distribution(page, row));
    }
    absences(page, chapter);
    notes(page, &chapter.notes);
    page.add(format_args!("</details>\n"));
}

fn table(page: &mut Markup, table: &Table) {
    page.add(format_args!("<h3>{} <code>{}</code></h3>\n", escaped(&table.title), escaped(&table.id)));
    let figures: Vec<&Figure> = table.rows.iter().filter_map(Row::figure).collect();
    let beside = table.diagram.is_some() && table.rows.len() <= MOST_ROWS_BESIDE;
    if beside {
        page.add(format_args!("<div class=\"timed\">\n"));
    }
    if let Some(diagram) = &table.diagram {
        timeline::diagram(page, diagram, table);
    }
    page.add(format_args!("<div class=\"scroll\" tabindex=\"0\">\n"));
    if figures.iter().all(|f| f.is_single() && f.method != Method::Stamp) {
        page.add(format_args!("<table class=\"single\">\n"));
        table
            .rows
            .iter()
            .filter_map(|row| Some((row, row.figure()?)))
            .for_each(|(row, figure)| single(page, row, figure));
    } else {
        let columns = columns(&figures, beside);
        page.add(format_args!("<table>\n<thead><tr><th></th><th>n</th>"));
        columns.shown.iter().for_each(|(name, _)| page.add(format_args!("<th>{name}</th>")));
        page.add(format_args!("<th class=\"dist\">{}</th></tr></thead>\n", axis(&figures)));
        let rows = table.rows.iter().filter_map(|row| Some((row, row.figure()?)));
        rows.for_each(|(row, figure)| self::row(page, row, figure, &figures, &columns));
    }
    page.add(format_args!("</table>\n</div>\n"));
    if beside {
        page.add(format_args!("</div>\n"));
    }
}

/// Statistics with a column, and those below the label because a diagram takes their room.
struct Columns {
    shown: Vec<Statistic>,
    below: Vec<Statistic>,
}

fn columns(figures: &[&Figure], beside_diagram: bool) -> Columns {
    // A document without medians shows its other statistics.
    if figures.iter().all(|figure| figure.median.is_none() && figure.at_most.is_none()) {
        let kept: [Statistic; 3] = [("min", |f| f.min), ("mean", |f| f.mean), ("max", |f| f.max)];
        let some = |(_, of): &Statistic| figures.iter().any(|figure| of(figure).is_some());
        return Columns { shown: kept.into_iter().filter(some).collect(), below: Vec::new() };
    }
    // So does one whose figures are numbers with limits.
    if figures.iter().all(|figure| figure.is_interval()) {
        return Columns { shown: LIMITS.to_vec(), below: Vec::new() };
    }
    let narrow = |(name, _): &Statistic| !beside_diagram || BESIDE_DIAGRAM.contains(name);
    let (shown, below) = STATISTICS.iter().copied().partition(narrow);
    Columns { shown, below }
}

/// The head of the distributions: their range, if all rows share one axis.
fn axis(figures: &[&Figure]) -> String {
    let mut units = figures.iter().filter(|f| f.histogram.is_some()).map(|f| f.unit);
    let unit = units.next();
    match (unit, Range::of(figures.iter().copied())) {
        (Some(unit), Some(range)) if units.all(|u| u == unit) => {
            let bound = |value| quantity(value, unit).to_string();
            format!("<span>{}</span><span>{}</span>", bound(range.low), bound(range.high))
        }
        _ => "distribution".to_owned(),
    }
}

fn row(page: &mut Markup, row: &Row, figure: &Figure, figures: &[&Figure], columns: &Columns) {
    page.add(format_args!("<tr id=\"{}\">{}<td>{}</td>", escaped(&row.id), label(row, &columns.below), count(figure)));
    for (name, of) in &columns.shown {
        let value = of(figure).filter(|_| *name == "median" || !figure.is_single());
        let class = if ["median", "mean"].contains(name) { " class=\"median\"" } else { "" };
        let (text, below) = match *name {
            "median" => (quantified(centre(figure)), below_median(figure)),
            _ => (written(figure, value), String::new()),
        };
        page.add(format_args!("<td{class}>{text}{below}</td>"));
    }
    let alike = figures.iter().copied().filter(|f| f.unit == figure.unit);
    let drawing = Range::of(alike).and_then(|range| svg::small(figure, &range));
    page.add(format_args!("<td class=\"dist\">{}</td></tr>\n", drawing.unwrap_or_default()));
}

fn single(page: &mut Markup, row: &Row, figure: &Figure) {
    let median = quantified(centre(figure));
    let content = format!("<td class=\"median\">{median}{}</td>", below_median(figure));
    page.add(format_args!("<tr id=\"{}\">{}{content}</tr>\n", escaped(&row.id), label(row, &[])));
}

/// The absent rows, one line for each reason, with their ids.
fn absences(page: &mut Markup, chapter: &Chapter) {
    for of in crate::render::absences::absences(chapter) {
        let groups: Vec<String> = of.groups.iter().map(|group| escaped(&group.named())).collect();
        let ids = of.groups.iter().flat_map(|group| &group.rows);
        let ids: Vec<String> = ids.map(|row| format!("<code id=\"{0}\">{0}</code>", escaped(&row.id))).collect();
        page.add(format_args!(
            "<details class=\"missing\"><summary>{}: {}</summary><p>{}</p><p class=\"details\">{}</p></details>\n",
            of.count(),
            absent(of.absent),
            groups.join("; "),
            ids.join(" ")
        ));
    }
}

/// The label with the other facts of the row: its id, its method, statistics without a column, caveats.
fn label(row: &Row, statistics: &[Statistic]) -> String {
    let mut details = vec![format!("<code>{}</code>", escaped(&row.id))];
    let mut caveats = String::new();
    if let Some(figure) = row.figure() {
        details.push(figure.method.name().to_owned());
        if let Some(overhead) = figure.overhead {
            details.push(format!("overhead {}", quantity(overhead, figure.unit)));
        }
        for (name, of) in statistics.iter().filter(|_| !figure.is_single()) {
            details.extend(statistic(figure, of(figure)).map(|value| format!("{name} {value}")));
        }
        details.extend(figure.verdict_line());
        caveats = figure.caveats.iter().map(|c| format!("<span class=\"caveat\">{}</span>", escaped(c))).collect();
    }
    format!(
        "<th scope=\"row\">{}{caveats}<span class=\"details\">{}</span></th>",
        escaped(&row.label),
        details.join(" · ")
    )
}

fn written(figure: &Figure, value: Option<f64>) -> String {
    quantified(statistic(figure, value))
}

fn quantified(quantity: Option<Quantity>) -> String {
    match quantity {
        Some(q) if q.unit.is_empty() => q.number(),
        Some(q) => format!("{} <i>{}</i>", q.number(), q.unit),
        None => "<span class=\"none\">–</span>".to_owned(),
    }
}

/// The text below the median: a rate of bytes in powers of two, and the variation from round to round.
fn below_median(figure: &Figure) -> String {
    let below = |q: &dyn std::fmt::Display| format!("<span class=\"binary\">{q}</span>");
    let binary = binary(figure, figure.median).map_or(String::new(), |q| below(&q));
    let spread = spread(figure).map_or(String::new(), |q| below(&q));
    binary + &spread
}

fn series(page: &mut Markup, series: &Series) {
    page.add(format_args!(
        "<figure id=\"{0}\">\n<figcaption><h3>{1} <code>{0}</code></h3>",
        escaped(&series.id),
        escaped(&series.title)
    ));
    for (style, line) in svg::styles(series).into_iter().zip(&series.lines) {
        page.add(format_args!("{}", legend(style, line)));
    }
    page.add(format_args!("</figcaption>\n"));
    match svg::plot(series) {
        Some(plot) => page.add(format_args!("<div class=\"scroll\" tabindex=\"0\">{plot}</div>\n")),
        None => page.add(format_args!("<p class=\"absent\"><b>absent</b> there is no point to draw</p>\n")),
    }
    let ranges = series.lines.iter().flat_map(|l| &l.points).any(|p| p.low.is_some() && p.high.is_some());
    if ranges {
        page.add(format_args!(
            "<p class=\"below\">Lines are medians, bands go from the least to the greatest value seen.</p>\n"
        ));
    }
    let beyond = Scale::vertical(series).map_or(0, |scale| points_beyond(series, &scale));
    if beyond > 0 {
        page.add(format_args!(
            "<p class=\"below\">{beyond} of the points are at or below zero and are drawn on the lower edge.</p>\n"
        ));
    }
    page.add(format_args!("</figure>\n"));
}

fn legend(style: usize, line: &SeriesLine) -> String {
    let (fitted, marker) = if line.fitted { (" fit", String::new()) } else { ("", svg::marker(style, 14.0, 6.0)) };
    format!(
        "<span class=\"legend\"><svg viewBox=\"0 0 28 12\" aria-hidden=\"true\"><path class=\"l{fitted} s{style}\" d=\"M0,6H28\"/>{marker}</svg>{}</span>\n",
        escaped(&line.name)
    )
}

/// The distribution of a row as a plot of its own.
fn distribution(page: &mut Markup, row: &Row) {
    let Some(figure) = row.figure().filter(|f| f.unit == Unit::Ns && f.n >= SAMPLES_LEAST) else { return };
    let Some(plot) = svg::distribution(figure, &row.label) else { return };
    let marks: Vec<String> =
        svg::marks(figure).map(|(name, value)| format!("{name} {}", quantity(value, figure.unit))).collect();
    page.add(format_args!(
        "<figure>\n<figcaption><h3>{} <code>{}</code></h3></figcaption>\n<div class=\"scroll\" tabindex=\"0\">{plot}</div>\n\
         <p class=\"below\">{} samples; marked: {}. The heights grow with the square root of the count, so that single samples can be seen.</p>\n</figure>\n",
        escaped(&row.label),
        escaped(&row.id),
        grouped(&figure.n.to_string()),
        marks.join(", "),
    ));
}
