//! The sheet as one HTML file.

use hairspring_sheet::render::html;
use hairspring_sheet::{Absent, NoteKind};

use crate::example;

/// Markup that would run or break out of an attribute if any of it stayed markup.
const NASTY: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;\u{0}";

/// A page with the contents of its style sheets left out: they are read in the file that has them.
fn without_styles(page: &str) -> String {
    let mut parts = page.split("<style>");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("<style>…</style>");
        text.push_str(part.split_once("</style>").expect("a style sheet ends").1);
    }
    text
}

#[test]
fn the_page_is_as_reviewed() {
    let page = html(&example::sheet());
    assert!(page.contains("@media (prefers-color-scheme: dark)") && page.contains("@media print"));
    insta::assert_snapshot!(without_styles(&page));
}

#[test]
fn nothing_in_the_sheet_can_become_markup() {
    let mut sheet = example::sheet();
    for text in [
        &mut sheet.schema,
        &mut sheet.hairspring.version,
        &mut sheet.hairspring.compiler,
        &mut sheet.hairspring.flags,
        &mut sheet.taken.start,
        &mut sheet.taken.effort,
    ] {
        NASTY.clone_into(text);
    }
    sheet.hairspring.commit = Some(NASTY.to_owned());
    for fact in &mut sheet.conditions.facts {
        *fact = example::fact(&format!("{}{NASTY}", fact.id), NASTY, NASTY);
    }
    sheet.conditions.facts.push(example::fact("cpu.model", NASTY, NASTY));
    sheet.conditions.threads[0].name = Some(NASTY.to_owned());
    NASTY.clone_into(&mut sheet.conditions.threads[0].policy);
    sheet.conditions.threads_absent = Some(Absent::new(NASTY, NASTY));
    sheet.notes.push(example::note(NoteKind::Warning, NASTY, Some(NASTY)));
    for chapter in &mut sheet.chapters {
        for row in chapter.tables.iter_mut().flat_map(|t| &mut t.rows) {
            row.id.push_str(NASTY);
            NASTY.clone_into(&mut row.label);
            if let hairspring_sheet::Value::Figure(figure) = &mut row.value {
                figure.caveats.push(NASTY.to_owned());
            }
        }
        for incident in &mut chapter.incidents {
            NASTY.clone_into(&mut incident.began);
            for span in &mut incident.spans {
                NASTY.clone_into(&mut span.who);
                NASTY.clone_into(&mut span.kind);
            }
        }
        for table in &mut chapter.tables {
            table.rows.push(example::absent(NASTY, NASTY, Absent::new(NASTY, NASTY)));
            NASTY.clone_into(&mut table.id);
            NASTY.clone_into(&mut table.title);
        }
        for series in &mut chapter.series {
            for text in [&mut series.id, &mut series.title, &mut series.x.label, &mut series.y.label] {
                NASTY.clone_into(text);
            }
            series.lines.iter_mut().for_each(|line| NASTY.clone_into(&mut line.name));
        }
        for text in [&mut chapter.title, &mut chapter.intro] {
            NASTY.clone_into(text);
        }
        if chapter.id != "disturbance" {
            NASTY.clone_into(&mut chapter.id);
        }
    }
    let page = html(&sheet);
    for bad in ["<script", "<img", "\"'>", "\u{0}"] {
        assert!(
            !page.contains(bad),
            "{bad} near {:?}",
            page.split(bad).next().map(|s| &s[s.len().saturating_sub(80)..])
        );
    }
    assert!(page.contains("&lt;script&gt;"));
}

#[test]
fn a_thread_named_like_markup_is_shown_as_text() {
    // The example has a thread with the name `<script>alert(1)`, which any user of the machine may give to a thread.
    assert!(html(&example::sheet()).contains(">&lt;script&gt;alert(1)<"));
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let page = html(&example::sheet());
    for outside in ["<script", "<link", "@import", "url(", "http://", "https://", " src="] {
        assert!(!page.contains(outside), "{outside}");
    }
    for scheme in ["prefers-color-scheme: dark", "@media print"] {
        assert!(page.contains(scheme), "{scheme}");
    }
}

#[test]
fn every_element_that_is_opened_is_closed() {
    let page = html(&example::sheet());
    let mut open: Vec<&str> = Vec::new();
    let body = page.split("</style>").nth(1).unwrap();
    for tag in body.split('<').skip(1).filter_map(|rest| rest.split('>').next()) {
        let name = tag.trim_start_matches('/').split_whitespace().next().unwrap();
        match tag {
            _ if tag.ends_with('/') || name == "br" => {}
            _ if tag.starts_with('/') && name == "head" => {}
            _ if tag.starts_with('/') && name == "html" => {}
            _ if tag.starts_with('/') => assert_eq!(open.pop(), Some(name), "</{name}>"),
            _ => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_command_between_backticks_looks_like_one() {
    let mut sheet = example::sheet();
    sheet.notes.push(example::note(NoteKind::Warning, "Run `a <b>` first; `c` next.", Some("`d`")));
    sheet.notes.push(example::note(NoteKind::Warning, "One ` alone stays.", None));
    let page = html(&sheet);
    assert!(page.contains("Run <code>a &lt;b&gt;</code> first; <code>c</code> next."), "{page}");
    assert!(page.contains("→ <code>d</code>") && page.contains("One ` alone stays."), "{page}");
}
