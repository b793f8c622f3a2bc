//! The sheet as Markdown.

use hairspring_sheet::render::markdown;
use hairspring_sheet::{Absent, NoteKind};

use crate::example;

#[test]
fn the_markdown_is_as_reviewed() {
    insta::assert_snapshot!(markdown(&example::sheet()));
}

#[test]
fn the_markdown_is_complete() {
    let sheet = example::sheet();
    let markdown = markdown(&sheet);
    let (figures, absent): (Vec<_>, Vec<_>) = sheet.rows().partition(|row| row.figure().is_some());
    assert!(absent.iter().all(|row| markdown.contains(&format!("`{}`", row.id))));
    for id in figures.iter().map(|row| &row.id).chain(sheet.conditions.facts.iter().map(|f| &f.id)) {
        assert!(markdown.contains(&format!("| `{id}` |")), "{id}");
    }
    for thread in &sheet.conditions.threads {
        assert!(markdown.contains(&format!("| {} |", thread.tid)), "{}", thread.tid);
    }
}

#[test]
fn every_line_of_a_table_has_as_many_cells_as_its_head_whatever_the_texts_hold() {
    let mut sheet = example::sheet();
    let nasty = "a | b\n| c <img src=x> `code` \\| [x](y) _*~#";
    sheet.chapters[0].tables[0].rows.push(example::absent("clocks.nasty", nasty, Absent::new(nasty, nasty)));
    sheet.conditions.facts.push(example::fact("cpu.nasty", nasty, nasty));
    sheet.conditions.threads[0].name = Some(nasty.to_owned());
    sheet.notes.push(example::note(NoteKind::Warning, nasty, Some(nasty)));
    let markdown = markdown(&sheet);
    assert!(!markdown.contains("<img"));
    let cells = |line: &str| line.replace("\\\\", "").replace("\\|", "").matches('|').count();
    let lines: Vec<&str> = markdown.lines().collect();
    for pair in lines.windows(2).filter(|pair| pair.iter().all(|line| line.starts_with('|'))) {
        assert_eq!(cells(pair[0]), cells(pair[1]), "{pair:?}");
    }
}
