//! A comparison as one self-contained HTML file: the differences in a table, and every ratio with its interval as a
//! plot.

use super::super::html::{Markup, STYLE};
use super::super::svg::{coordinate, escaped};
use super::{differing, ground, letter, phrases, with_side};
use crate::compare::{Against, ComparedRow, Comparison, Grounds, chapter};

/// Left edge and width of the plot, and height of a row.
const PLOT: (f64, f64, f64) = (430.0, 440.0, 18.0);
/// The range of the plot; ratios beyond it lie on its edge.
const LIMITS: [f64; 2] = [0.1, 10.0];
/// Marks on the axis, if within its range.
const MARKS: [f64; 13] = [0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 2.0, 5.0, 10.0];

const PLOT_STYLE: &str = "
svg.ratios { display: block; width: 100%; min-width: 640px; max-width: 60rem; height: auto; }
svg.ratios text { font: 11px ui-monospace, Consolas, monospace; fill: var(--soft); }
svg.ratios .one { stroke: var(--strong); } svg.ratios .grid { stroke: var(--line); }
svg.ratios .i { stroke: var(--faint); stroke-width: 1.5; } svg.ratios .d { fill: var(--faint); }
svg.ratios .differs .i { stroke: var(--median); } svg.ratios .differs .d { fill: var(--median); }
svg.ratios .differs text { fill: var(--ink); } svg.ratios .same .i { stroke: var(--c2); } svg.ratios .same .d { fill: var(--c2); }
summary { cursor: pointer; margin-top: .8rem; }
";

/// Renders a comparison as an HTML file.
pub fn comparison_html(comparison: &Comparison) -> String {
    let mut page = Markup::default();
    let names: Vec<String> = comparison.sides.iter().map(|side| escaped(&side.name)).collect();
    page.add(format_args!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Comparison: {}</title>\n\
         <style>\n{STYLE}{PLOT_STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header>\n<p class=\"kind\">Comparison of timing data sheets</p>\n<h1>{}</h1>\n<dl class=\"head\">\n",
        names.join(", "),
        names.join(" and ")
    ));
    for (number, side) in comparison.sides.iter().enumerate() {
        let taken: Vec<String> = side.taken.iter().map(|taken| escaped(taken)).collect();
        page.add(format_args!(
            "<div><dt>{} {}</dt><dd>{}</dd></div>\n",
            letter(number),
            escaped(&side.name),
            taken.join("<br>")
        ));
    }
    page.add(format_args!("</dl>\n</header>\n"));
    for remark in &comparison.remarks {
        page.add(format_args!("<p class=\"note warning\">{}</p>\n", escaped(remark)));
    }
    for (other, grounds) in comparison.grounds.iter().enumerate() {
        side(&mut page, comparison, other, *grounds);
    }
    conditions(&mut page, comparison);
    page.add(format_args!("<footer>{}</footer>\n</main>\n</body>\n</html>\n", escaped(&comparison.schema)));
    page.text
}

fn side(page: &mut Markup, comparison: &Comparison, other: usize, grounds: Grounds) {
    page.add(format_args!("<section class=\"chapter\">\n<h2>{} against A</h2>\n", letter(other + 1)));
    let (sentence, command) = ground(grounds);
    let command = command.map_or(String::new(), |c| format!("<span class=\"remedy\">→ <code>{c}</code></span>"));
    page.add(format_args!("<p class=\"note\">{}{command}</p>\n", escaped(&sentence)));
    for shift in comparison.shifts.iter().filter(|shift| shift.other == other) {
        page.add(format_args!("<p class=\"note warning\">{}</p>\n", escaped(&phrases::shift(shift, comparison))));
    }
    page.add(format_args!("<p>{}.</p>\n", escaped(&phrases::sum_of(comparison, other))));
    let listed = differing(comparison, other);
    if !listed.is_empty() {
        page.add(format_args!(
            "<h3>What differs, the largest change first</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th \
             class=\"text\">figure</th><th>A</th><th>{}</th><th class=\"text\">verdict</th></tr></thead>\n<tbody>\n",
            letter(other + 1)
        ));
        for (row, against) in listed {
            page.add(format_args!(
                "<tr><th scope=\"row\">{}{} <code>{}</code></th><td>{}</td><td>{}</td><td class=\"text\">{}</td></tr>\n",
                escaped(&row.label),
                phrases::instead(row.centre),
                escaped(&row.id),
                phrases::side(&row.baseline),
                phrases::side(&against.side),
                escaped(&phrases::verdict(against, grounds))
            ));
        }
        page.add(format_args!("</tbody>\n</table></div>\n"));
    }
    if with_side(comparison, other).any(|(_, against)| against.ratio.is_some()) {
        page.add(format_args!("<h3>Ratios with their 95 % intervals</h3>\n"));
    }
    let mut chapters: Vec<&str> = Vec::new();
    for row in &comparison.rows {
        if !chapters.contains(&chapter(&row.id)) {
            chapters.push(chapter(&row.id));
        }
    }
    let untold = phrases::untold(comparison, other);
    for name in chapters {
        let rows: Vec<(&ComparedRow, &Against)> = with_side(comparison, other)
            .filter(|(row, against)| chapter(&row.id) == name && against.ratio.is_some())
            .collect();
        if rows.is_empty() {
            continue;
        }
        let open = if rows.iter().any(|(_, against)| against.verdict.differs()) { " open" } else { "" };
        let line = untold.iter().find(|untold| untold.chapter == name);
        let line = line.map_or(String::new(), |untold| format!(": no verdict on {}", untold.line));
        page.add(format_args!(
            "<details{open}><summary>{}{}</summary>\n<div class=\"scroll\">",
            escaped(name),
            escaped(&line)
        ));
        ratios(page, &rows, grounds);
        page.add(format_args!("</div></details>\n"));
    }
    for line in phrases::unmatched(comparison, other) {
        page.add(format_args!("<p>{}</p>\n", escaped(&line)));
    }
    page.add(format_args!("</section>\n"));
}

/// A dot for each ratio with its interval, on a logarithmic axis.
fn ratios(page: &mut Markup, rows: &[(&ComparedRow, &Against)], grounds: Grounds) {
    let (left, width, height) = PLOT;
    let ends =
        rows.iter().flat_map(|(_, against)| against.ratio.into_iter().chain(against.interval.into_iter().flatten()));
    let beyond = ends.filter(|end| *end > 0.0).map(|end| end.ln().abs()).fold(1.1f64.ln(), f64::max);
    let reach = beyond.min(LIMITS[1].ln()) * 1.05;
    let x = |ratio: f64| left + width * ((ratio.max(1e-9).ln() / reach).clamp(-1.0, 1.0) + 1.0) / 2.0;
    let bottom = height * rows.len() as f64 + 4.0;
    page.add(format_args!(
        "<svg class=\"ratios\" role=\"img\" aria-label=\"ratios with intervals\" viewBox=\"0 0 {} {}\">\n",
        left + width + 20.0,
        bottom + 18.0
    ));
    // A mark leaves room for its text: marks close to 1 are left out on a long axis.
    let mut last = f64::MIN;
    for mark in MARKS.iter().filter(|mark| mark.ln().abs() < reach) {
        let class = if *mark == 1.0 { "one" } else { "grid" };
        let at = coordinate(x(*mark));
        page.add(format_args!(
            "<line class=\"{class}\" x1=\"{at}\" x2=\"{at}\" y1=\"0\" y2=\"{}\"/>",
            coordinate(bottom)
        ));
        if *mark == 1.0 || (x(*mark) - last > 34.0 && (x(*mark) - x(1.0)).abs() > 34.0) {
            page.add(format_args!(
                "<text text-anchor=\"middle\" x=\"{at}\" y=\"{}\">{mark}</text>",
                coordinate(bottom + 13.0)
            ));
            last = x(*mark);
        }
    }
    for (number, (row, against)) in rows.iter().enumerate() {
        let y = coordinate(height * number as f64 + height / 2.0);
        let class = match against.verdict {
            verdict if verdict.differs() => "differs",
            crate::RowVerdict::Same { .. } => "same",
            _ => "",
        };
        page.add(format_args!(
            "\n<g class=\"{class}\"><title>{} {}</title><text x=\"{}\" y=\"{y}\" dy=\"4\" text-anchor=\"end\">{}</text>",
            phrases::ratio(against),
            escaped(&phrases::verdict(against, grounds)),
            left - 8.0,
            escaped(&row.id)
        ));
        if let Some([low, high]) = against.interval {
            let (low, high) = (coordinate(x(low)), coordinate(x(high)));
            page.add(format_args!("<line class=\"i\" x1=\"{low}\" x2=\"{high}\" y1=\"{y}\" y2=\"{y}\"/>"));
        }
        if let Some(ratio) = against.ratio {
            page.add(format_args!("<circle class=\"d\" cx=\"{}\" cy=\"{y}\" r=\"3.2\"/></g>", coordinate(x(ratio))));
        }
    }
    page.add(format_args!("\n</svg>\n"));
}

fn conditions(page: &mut Markup, comparison: &Comparison) {
    page.add(format_args!("<section class=\"chapter\">\n<h2>What differs in the conditions</h2>\n"));
    if comparison.conditions.is_empty() {
        page.add(format_args!("<p>Nothing that the sheets record.</p>\n</section>\n"));
        return;
    }
    let heads: String =
        (0..comparison.sides.len()).map(|side| format!("<th class=\"text\">{}</th>", letter(side))).collect();
    page.add(format_args!(
        "<div class=\"scroll\"><table>\n<thead><tr><th class=\"text\">fact</th>{heads}</tr></thead>\n<tbody>\n"
    ));
    for fact in &comparison.conditions {
        page.add(format_args!(
            "<tr><th scope=\"row\">{} <code>{}</code></th>",
            escaped(&fact.label),
            escaped(&fact.id)
        ));
        for value in &fact.values {
            let value = value.as_deref().map_or("<span class=\"absent\">absent</span>".to_owned(), escaped);
            page.add(format_args!("<td class=\"text\">{value}</td>"));
        }
        page.add(format_args!("</tr>\n"));
    }
    page.add(format_args!("</tbody>\n</table></div>\n</section>\n"));
}
