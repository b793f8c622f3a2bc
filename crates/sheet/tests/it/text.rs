//! The sheet for a terminal.

use hairspring_sheet::render::{self, text};
use hairspring_sheet::{Absent, Method, NoteKind, Row, Sheet, Table, TextStyle, Unit};
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use crate::example;

fn style(width: usize) -> TextStyle {
    TextStyle { width, ..TextStyle::default() }
}

/// The first chapter alone: how a chapter is set at other widths is seen from one.
fn first_chapter() -> Sheet {
    let mut sheet = example::sheet();
    sheet.chapters.truncate(1);
    sheet
}

#[test]
fn a_chapter_is_as_reviewed_at_60_columns() {
    insta::assert_snapshot!(text(&first_chapter(), &style(60)));
}

#[test]
fn the_text_is_as_reviewed_at_80_columns() {
    insta::assert_snapshot!(text(&example::sheet(), &style(80)));
}

#[test]
fn a_chapter_is_as_reviewed_at_120_columns() {
    insta::assert_snapshot!(text(&first_chapter(), &style(120)));
}

#[test]
fn a_sheet_made_under_wine_says_so_in_its_title_in_every_form() {
    let mut sheet = example::sheet();
    assert_eq!(sheet.title(), "Timing data sheet");
    sheet.conditions.facts.push(example::fact("host.wine", "Made under", "Wine 8.0 on Linux 6.1"));
    let title = "Timing data sheet, made under Wine 8.0 on Linux 6.1";
    assert_eq!(text(&sheet, &style(80)).lines().next(), Some(title));
    assert!(render::markdown(&sheet).starts_with(&format!("# {title}\n")));
    let html = render::html(&sheet);
    assert!(html.contains(&format!("<title>{title}: ")) && html.contains(&format!("<p class=\"kind\">{title}</p>")));
}

#[test]
fn the_verbose_text_has_every_fact_and_every_id() {
    let sheet = example::sheet();
    let text = text(&sheet, &TextStyle { verbose: true, ..style(100) });
    for row in sheet.rows() {
        assert!(text.lines().any(|line| line.trim() == row.id), "{}", row.id);
    }
    for fact in &sheet.conditions.facts {
        assert!(text.contains(&fact.label), "{}", fact.label);
    }
}

#[test]
fn the_text_without_colour_has_no_control_characters_but_line_ends() {
    let mut sheet = example::sheet();
    sheet.conditions.facts[1] = example::fact("cpu.online", "\x1b]0;title\x07", "two\nlines\x1b[2J");
    sheet.notes.push(example::note(NoteKind::Remark, "\r\x08\u{9b}31m", Some("\x1b[31m")));
    let text = text(&sheet, &TextStyle { verbose: true, ..style(80) });
    let bad = text.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(bad, None);
}

#[test]
fn colours_change_nothing_but_the_colours() {
    let sheet = example::sheet();
    let coloured = text(&sheet, &TextStyle { colour: true, ..style(80) });
    assert!(coloured.contains("\x1b[1m") && coloured.contains("\x1b[2m"));
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    assert_eq!(plain, text(&sheet, &style(80)));
}

#[test]
fn a_distribution_finer_than_its_buckets_is_not_drawn() {
    // Rates that agree to eight digits lie in one bucket. Spread over the axis from their least to their greatest they
    // looked evenly distributed, which nothing had shown.
    let text = text(&example::sheet(), &style(160));
    let row = text.lines().find(|line| line.contains("Rate, calibrated five times")).unwrap();
    assert!(!row.contains('█'), "{row}");
    let row = text.lines().find(|line| line.contains("  now() ")).unwrap();
    assert!(row.contains('█'), "{row}");
}

#[test]
fn an_empty_sheet_can_be_printed() {
    let mut sheet = example::sheet();
    sheet.conditions = Default::default();
    sheet.notes.clear();
    sheet.chapters.clear();
    assert!(text(&sheet, &style(80)).starts_with("Timing data sheet\n"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_line_is_wider_than_the_width(
        width in 60usize..170,
        label in ".{0,90}",
        id in "[a-z]{1,8}(\\.[a-z0-9_]{1,30}){0,6}",
        value in prop::num::f64::ANY,
        numbers in prop::collection::vec(prop::num::f64::ANY, 0..40),
        verbose: bool,
    ) {
        use hairspring_sheet::{Figure, Method, Unit};
        let mut sheet = example::sheet();
        for (i, unit) in [Unit::Ns, Unit::Hz, Unit::Count, Unit::BytesPerS].into_iter().enumerate() {
            let rows: &mut Vec<Row> = &mut sheet.chapters[i].tables.get_mut(0).map_or(Vec::new(), |t| std::mem::take(&mut t.rows));
            rows.push(example::row(&id, &label, Figure::from_samples(unit, Method::Stamp, &mut numbers.clone())));
            rows.push(example::row(&id, &label, Figure::single(unit, Method::Rate, value).with_caveat(&label)));
            rows.push(example::absent(&id, &label, Absent::new(&label, &id)));
            if let Some(table) = sheet.chapters[i].tables.get_mut(0) {
                table.rows = std::mem::take(rows);
                table.title = label.clone();
            }
        }
        sheet.chapters[2].series[0].lines[0].points[0].y = value;
        sheet.chapters[2].series[0].lines[0].name = label.clone();
        sheet.conditions.facts.push(example::fact(&id, &label, &label));
        let text = text(&sheet, &TextStyle { width, verbose, ..TextStyle::default() });
        for line in text.lines() {
            prop_assert!(line.width() <= width, "{} columns: {line:?}", line.width());
        }
    }
}

#[test]
fn rows_that_are_absent_for_one_reason_say_it_once() {
    let mut sheet = example::sheet();
    let reason = || Absent::new("no such thing here", "buy one");
    let rows: Vec<Row> = ["a", "b", "c"].map(|name| example::absent(&format!("x.{name}"), name, reason())).into();
    sheet.chapters[0].tables[0].rows = rows;
    let some = example::absent("x.d", "d", reason());
    sheet.chapters[0].tables[1].rows.push(some);
    let (whole, partly) = (&sheet.chapters[0].tables[0].title, &sheet.chapters[0].tables[1].title);
    let text = text(&sheet, &TextStyle { width: 160, ..style(80) });
    assert_eq!(text.matches("absent, 4 rows: no such thing here").count(), 1);
    assert_eq!(text.matches("→ buy one").count(), 1);
    // A table of which nothing is left is named, and of the others the rows.
    assert!(text.contains(&format!("  {whole}; {partly}: d")), "{text}");
    for form in [text.clone(), hairspring_sheet::render::markdown(&sheet), hairspring_sheet::render::html(&sheet)] {
        assert_eq!(form.matches("no such thing here").count(), 1);
        // At the end of the chapter: below its last table and above the next chapter.
        let at = |what: &str| form.find(what).unwrap_or_else(|| panic!("{what} is not in {form}"));
        let chapter = |index: usize| at(&sheet.chapters[index].intro[..20]);
        let row = &sheet.chapters[0].tables[1].rows[0].label;
        assert!(chapter(0) < at(row) && at(row) < at("no such thing here") && at("no such thing here") < chapter(1));
    }
}

#[test]
fn what_is_only_known_to_be_small_and_samples_that_depend_on_each_other_are_shown_as_such() {
    let mut sheet = example::sheet();
    let small = hairspring_sheet::Figure::difference(Unit::Ns, &mut [0.25, -0.25].repeat(50), None);
    assert!(small.median.is_none());
    let mut slow: Vec<f64> = (0..1_000).map(|i| 500.0 + f64::from(i / 100)).collect();
    let slow = hairspring_sheet::Figure::from_samples(Unit::Ns, Method::Stamp, &mut slow);
    sheet.chapters[0].tables[0].rows =
        vec![example::row("x.small", "small", small), example::row("x.slow", "slow", slow)];
    for form in
        [text(&sheet, &style(60)), hairspring_sheet::render::markdown(&sheet), hairspring_sheet::render::html(&sheet)]
    {
        assert!(form.contains("≤ 0.383") && form.contains("1,000 (3)"), "{form}");
    }
}

#[test]
fn verdicts_are_told_where_something_was_disturbed() {
    let mut sheet = example::sheet();
    let mut figure = example::figure(1, 100, 10.0, 1.0);
    figure.verdicts = [("clean".to_owned(), 90), ("interrupted_or_stolen".to_owned(), 10)].into();
    sheet.chapters[0].tables[0].rows = vec![example::row("x.disturbed", "disturbed", figure.clone())];
    assert!(text(&sheet, &style(80)).contains("90 clean, 10 interrupted or stolen"));
    figure.verdicts = [("clean".to_owned(), 100)].into();
    sheet.chapters[0].tables[0].rows = vec![example::row("x.clean", "all clean", figure)];
    assert!(!text(&sheet, &style(80)).contains("100 clean"));
}

#[test]
fn tables_with_the_same_rows_stand_side_by_side() {
    let mut sheet = example::sheet();
    let table = |name: &str, median: f64| Table {
        id: format!("x.{name}"),
        title: name.to_owned(),
        rows: vec![
            example::row(&format!("x.{name}.1us"), "1us", example::figure(3, 50, median, 1.0)),
            example::absent(&format!("x.{name}.10s"), "10s", Absent::new("takes too long", "--thorough")),
        ],
        diagram: None,
    };
    let median = |table: &Table| table.rows[0].figure().and_then(|f| f.median).map(|m| format!("{m:.1} ns"));
    let tables = vec![table("first", 20.0), table("second", 40.0), table("third", 80.0)];
    let medians: Vec<String> = tables.iter().filter_map(median).collect();
    sheet.chapters[0].tables = tables;
    let text = text(&sheet, &style(80));
    let line = text.lines().find(|line| line.trim_start().starts_with("1us")).expect("one row for 1us");
    assert!(medians.iter().all(|median| line.contains(median)), "{line:?} lacks one of {medians:?}");
    assert_eq!(text.matches("takes too long").count(), 1);
}

#[test]
fn figures_without_medians_show_the_means_and_maxima_that_they_have() {
    let mut sheet = example::sheet();
    let mut mean = example::figure(1, 100, 10.0, 1.0);
    (mean.min, mean.median, mean.max, mean.mean) = (None, None, None, Some(15_700.0));
    let worst = hairspring_sheet::Figure { n: 1, mean: None, max: Some(11_000.0), ..mean.clone() };
    sheet.chapters[0].tables[0].rows =
        vec![example::row("x.mean", "mean", mean), example::row("x.worst", "worst", worst)];
    for form in [text(&sheet, &style(60)), text(&sheet, &style(160)), hairspring_sheet::render::html(&sheet)] {
        assert!(form.contains("mean") && form.contains("15.7") && form.contains("11.0"), "{form}");
    }
}
