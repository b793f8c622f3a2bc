//! The worst gaps and late wake-ups of a chapter, a line for each.

use super::page::{INDENT, Ink, Page, flush_right};
use crate::Chapter;
use crate::render::incident::{groups, length, place, story};

pub(super) fn incidents(page: &mut Page, chapter: &Chapter) {
    for (heading, incidents) in groups(chapter) {
        page.blank();
        page.wrapped(Ink::Heading, 0, 0, heading);
        let lengths: Vec<String> = incidents.iter().map(|incident| length(incident)).collect();
        let wide = lengths.iter().map(|length| length.chars().count()).max().unwrap_or(0);
        for (incident, length) in incidents.into_iter().zip(lengths) {
            let text = format!("{}: {}", place(incident), story(incident));
            page.hanging(INDENT, INDENT + wide + 2, &flush_right(&length, wide), &text);
        }
    }
}
