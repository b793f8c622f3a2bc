//! The sheet for a terminal, from 60 columns up.
//!
//! It shows every figure with the statistics that the width allows, the notes to read first, and the most important
//! conditions; Markdown, HTML and JSON have the rest. No line is wider than the requested width.

mod columns;
mod conditions;
mod first_page;
mod incidents;
mod matrix;
mod page;
mod plot;
mod table;
mod timeline;

pub use first_page::first_page;
pub(crate) use page::{Ink, Page, cut, flush_right, padded};
pub(crate) use plot::plot;
pub(crate) use timeline::drawing;

use super::absences::{absences, has_figures};
use crate::{Chapter, Note, NoteKind, Sheet};

/// Layout of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextStyle {
    /// Columns of the terminal. Below 60 the text is laid out for 60; above 160 it stays at 160.
    pub width: usize,
    /// Whether bold, dim and coloured text is marked with ANSI sequences.
    pub colour: bool,
    /// Whether every fact and the id of every row is shown.
    pub verbose: bool,
}

impl Default for TextStyle {
    fn default() -> Self {
        Self { width: 80, colour: false, verbose: false }
    }
}

/// Renders a sheet for a terminal. Ends with a newline.
pub fn text(sheet: &Sheet, style: &TextStyle) -> String {
    let mut page = Page::new(style.width, style.colour);
    conditions::head(&mut page, sheet);
    notes(&mut page, &sheet.notes);
    conditions::block(&mut page, &sheet.conditions, style.verbose);
    for chapter in &sheet.chapters {
        self::chapter(&mut page, chapter, style.verbose);
    }
    page.finish()
}

fn chapter(page: &mut Page, chapter: &Chapter, verbose: bool) {
    page.blank();
    page.rule();
    page.beside(Ink::Heading, &chapter.title, &chapter.id);
    page.wrapped(Ink::Plain, 0, 0, &chapter.intro);
    if !verbose && matrix::suits(&chapter.tables, page.width) {
        page.blank();
        matrix::matrix(page, &chapter.tables, &chapter.id);
    } else {
        for table in chapter.tables.iter().filter(|table| has_figures(table)) {
            page.blank();
            table::table(page, table, verbose);
        }
    }
    for series in &chapter.series {
        page.blank();
        plot::plot(page, series);
    }
    incidents::incidents(page, chapter);
    let absences = absences(chapter);
    if !absences.is_empty() {
        page.blank();
    }
    table::absent(page, &absences, verbose);
    notes(page, &chapter.notes);
}

/// Notes with their remedies: warnings first.
fn notes(page: &mut Page, notes: &[Note]) {
    let mut ordered: Vec<&Note> = notes.iter().collect();
    ordered.sort_by_key(|n| n.kind == NoteKind::Remark);
    if !ordered.is_empty() {
        page.blank();
    }
    for note in ordered {
        let (ink, mark) = match note.kind {
            NoteKind::Warning => (Ink::Warning, "! "),
            NoteKind::Remark => (Ink::Plain, "· "),
        };
        page.wrapped(ink, 0, 2, &format!("{mark}{}", note.text));
        if let Some(remedy) = &note.remedy {
            page.wrapped(Ink::Plain, 2, 4, &format!("→ {remedy}"));
        }
    }
}
