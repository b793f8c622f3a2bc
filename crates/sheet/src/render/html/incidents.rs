//! The worst gaps and late wake-ups of a chapter, each drawn on a line of time.

use super::Markup;
use crate::Chapter;
use crate::render::incident::{groups, length, place, story};
use crate::render::svg;
use crate::render::svg::escaped;

/// The drawings under their headings, and how to read them.
pub(super) fn incidents(page: &mut Markup, chapter: &Chapter) {
    let groups = groups(chapter);
    let all: Vec<_> = groups.iter().flat_map(|(_, incidents)| incidents).copied().collect();
    // One width for all, so that the lines of time stand below each other.
    let names = svg::incident_names_width(&all);
    for (heading, incidents) in &groups {
        page.add(format_args!("<h3>{heading}</h3>\n"));
        for incident in incidents {
            let (length, place) = (escaped(&length(incident)), escaped(&place(incident)));
            page.add(format_args!("<figure class=\"incident\">\n<figcaption><b>{length}</b> on {place}"));
            if incident.left_out > 0 {
                page.add(format_args!(", {} shorter spans left out", incident.left_out));
            }
            page.add(format_args!("</figcaption>\n"));
            match svg::incident(incident, names) {
                Some(drawing) => page.add(format_args!("<div class=\"scroll\" tabindex=\"0\">{drawing}</div>\n")),
                None => page.add(format_args!("<p>{}</p>\n", escaped(&story(incident)))),
            }
            page.add(format_args!("</figure>\n"));
        }
    }
    if !groups.is_empty() {
        page.add(format_args!(
            "<p class=\"below\">The lost time lies between the dashed lines. A full bar is what the kernel recorded. A hollow bar is a conclusion: the \
             kernel has no record of anybody else, and yet the thread did not run. A dotted bar is not known, because records were lost. A thin bar \
             is the thread itself.</p>\n"
        ));
    }
}
