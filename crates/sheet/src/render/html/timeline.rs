//! The timing diagram of a table, beside it, or above it on a narrow screen or for a long table.

use super::Markup;
use crate::render::svg;
use crate::render::svg::escaped;
use crate::render::timeline::meanings;
use crate::{Diagram, Table};

/// The drawing with its caption, the meaning of its numbers, and of every span.
pub(super) fn diagram(page: &mut Markup, diagram: &Diagram, table: &Table) {
    page.add(format_args!("<figure class=\"timeline\">\n"));
    let mut legend = String::new();
    match svg::timeline(diagram) {
        Ok(drawing) => {
            page.add(format_args!("<div class=\"scroll\" tabindex=\"0\">{}</div>\n", drawing.svg));
            // A number stays on the line of its text.
            legend = drawing.legend.iter().map(|call| call.replacen(' ', "\u{a0}", 1)).collect::<Vec<_>>().join(" · ");
        }
        Err(why) => page.add(format_args!("<p class=\"absent\"><b>absent</b> {}</p>\n", escaped(&why))),
    }
    page.add(format_args!("<figcaption>{} {}", escaped(&diagram.caption), diagram.origin.sentence()));
    if !legend.is_empty() {
        page.add(format_args!(" <span class=\"calls\">{}</span>", escaped(&legend)));
    }
    page.add(format_args!("</figcaption>\n<dl>\n"));
    for (span, measured) in meanings(diagram, table) {
        let measured = measured.map_or(String::new(), |measured| format!(" <b>{}</b>", escaped(&measured)));
        let (name, meaning) = (escaped(&span.name), escaped(&span.meaning));
        page.add(format_args!("<div><dt>{name}</dt><dd>{meaning}{measured}</dd></div>\n"));
    }
    page.add(format_args!("</dl>\n</figure>\n"));
}
