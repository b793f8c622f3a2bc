//! The first page: characteristics, findings and missing measurements, above the chapters.

use super::{Markup, prose};
use crate::render::quantity;
use crate::render::svg::escaped;
use crate::{Characteristic, SheetSummary, Unit};

/// The summary as three blocks.
pub(super) fn first_page(page: &mut Markup, summary: &SheetSummary) {
    page.add(format_args!(
        "<section class=\"first\">\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">What it does</th><th>typical</th>\
         <th>99 %</th><th>worst</th><th>watched</th><th class=\"words\">conditions</th></tr></thead>\n<tbody>\n"
    ));
    for line in &summary.characteristics {
        characteristic(page, line);
    }
    page.add(format_args!("</tbody>\n</table></div>\n"));
    if !summary.findings.is_empty() {
        page.add(format_args!("<h2>What limits it</h2>\n<ol class=\"findings\">\n"));
        for finding in &summary.findings {
            let rows: Vec<String> = finding.rows.iter().map(|row| link(row, row)).collect();
            page.add(format_args!(
                "<li><p>{} <small>{}</small></p><p class=\"remedy\">→ {}: <b>{}</b></p></li>\n",
                prose(&finding.text),
                rows.join(", "),
                prose(&finding.remedy),
                escaped(&finding.effect)
            ));
        }
        page.add(format_args!("</ol>\n"));
    }
    if !summary.not_measured.is_empty() {
        page.add(format_args!("<h2>Not measured</h2>\n<ul class=\"findings\">\n"));
        for reason in &summary.not_measured {
            let remedy = reason.remedy.as_deref().map(super::remedy).unwrap_or_default();
            page.add(format_args!(
                "<li>{} ({} rows): {}{remedy}</li>\n",
                escaped(&reason.what),
                reason.rows,
                prose(&reason.reason)
            ));
        }
        page.add(format_args!("</ul>\n"));
    }
    page.add(format_args!("</section>\n"));
}

fn link(row: &str, text: &str) -> String {
    format!("<a href=\"#{}\">{}</a>", escaped(row), escaped(text))
}

fn characteristic(page: &mut Markup, line: &Characteristic) {
    let number = |value: Option<f64>| {
        let sign = |value: f64| if line.lateness && value >= 0.0 { "+" } else { "" };
        value.map_or_else(|| "–".to_owned(), |value| escaped(&format!("{}{}", sign(value), quantity(value, line.unit))))
    };
    page.add(format_args!(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"words\">{}</td></tr>\n",
        link(&line.row, &line.label),
        number(line.typical),
        number(line.p99),
        number(line.worst),
        quantity(line.watched as f64, Unit::Count),
        escaped(&line.conditions)
    ));
}
