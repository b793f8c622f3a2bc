//! Comparisons as people see them.

use hairspring_sheet::render::{comparison, comparison_html, comparison_json, comparison_markdown};
use hairspring_sheet::{Absent, compare_interleaved};
use hairspring_sheet::{
    CompareTerms, ComparedSheets, Comparison, Figure, Method, Row, Sheet, TextStyle, Unit, compare,
};
use unicode_width::UnicodeWidthStr;

use crate::compare::{drifting, interleaved, median, side};
use crate::example::{self, absent, row};

/// Three sheets a side with every verdict there is: this one is the `number`th of a side whose rows have these ratios.
fn sheet(number: usize, ratios: [f64; 4]) -> Sheet {
    let mut sheet = crate::compare::sheet(Vec::new());
    let noise = [0.99, 1.0, 1.01][number];
    let mut rows: Vec<Row> = vec![
        median("clocks.cost.now", 9.5 * noise * ratios[0]),
        median("clocks.cost.tsc", 17.0 * noise * ratios[1]),
        median("clocks.cost.monotonic", 28.0 * ratios[2] * [0.8, 1.0, 1.3][number]),
        median("delays.long.late", [-1.0, 0.0, 1.0][number] + 100.0 * (ratios[3] - 1.0)),
        median("delays.long.1s.late", 61_000.0 * noise),
        row("disturbance.migrations", "Migrations", Figure::single(Unit::Count, Method::Count, 4.0 * ratios[0])),
    ];
    if ratios[0] > 1.0 {
        rows.push(absent("clocks.cost.hpet", "HPET", Absent::final_("it is trapped here")));
        sheet.conditions.facts[1] = example::fact("cpu.online", "CPUs online", "1 of 2");
    } else {
        rows.push(median("clocks.cost.hpet", 700.0));
    }
    sheet.chapters[0].tables[0].rows = rows;
    sheet
}

fn sides() -> [ComparedSheets; 2] {
    let of = |ratios| (0..3).map(|number| sheet(number, ratios)).collect();
    [side("old", of([1.0; 4])), side("new", of([1.27, 0.6, 1.1, 1.9]))]
}

fn compared() -> Comparison {
    compare(&sides(), &CompareTerms::default())
}

#[test]
fn the_screen_is_as_reviewed() {
    insta::assert_snapshot!(comparison(&compared(), &TextStyle::default()));
}

#[test]
fn every_row_is_as_reviewed_at_60_columns() {
    let style = TextStyle { width: 60, verbose: true, ..TextStyle::default() };
    insta::assert_snapshot!(comparison(&compared(), &style));
}

#[test]
fn single_sheets_are_shown_as_reviewed() {
    let [old, new] = sides().map(|side| ComparedSheets { sheets: vec![side.sheets[0].clone()], ..side });
    insta::assert_snapshot!(comparison(&compare(&[old, new], &CompareTerms::default()), &TextStyle::default()));
}

#[test]
fn builds_in_turns_are_shown_as_reviewed() {
    let measured = interleaved(&[drifting(1.1), drifting(1.0), drifting(0.4)]);
    insta::assert_snapshot!(comparison(&compare_interleaved(&measured, None), &TextStyle::default()));
}

#[test]
fn the_markdown_is_as_reviewed() {
    insta::assert_snapshot!(comparison_markdown(&compared()));
}

#[test]
fn no_line_is_wider_than_the_width() {
    let mut three = sides().to_vec();
    three.push(three[0].clone());
    for verbose in [false, true] {
        for width in [60, 71, 80, 120] {
            let style = TextStyle { width, verbose, ..TextStyle::default() };
            let text = comparison(&compare(&three, &CompareTerms::default()), &style);
            assert!(text.lines().all(|line| line.width() <= width), "{text}");
        }
    }
}

#[test]
fn the_page_draws_a_dot_and_an_interval_for_every_ratio_and_lets_nothing_become_markup() {
    let mut sides = sides();
    sides[1].name = "<new>".to_owned();
    let html = comparison_html(&compare(&sides, &CompareTerms::default()));
    assert!(!html.contains("<new>") && html.contains("&lt;new&gt;"));
    assert_eq!((html.matches("<circle").count(), html.matches("class=\"i\"").count()), (5, 4));
    assert_eq!(html.matches("<g class=\"differs\">").count(), 2);
    let open = html.matches("<svg").count();
    assert_eq!((open, html.matches("</svg>").count(), html.matches("<details open>").count()), (3, 3, 1));
}

#[test]
fn the_json_has_verdicts_and_what_they_rest_on() {
    let json: serde_json::Value = serde_json::from_str(&comparison_json(&compared())).unwrap();
    assert_eq!(json["schema"], "hairspring.verdicts/1");
    let against = &json["rows"][0]["others"][0];
    assert!(
        against["verdict"]["differs"]["at_least"].as_f64().is_some_and(|least| (0.2..0.27).contains(&least)),
        "{against}"
    );
    assert_eq!(against["difference"]["degrees"], 4.0);
    assert_eq!(json["grounds"][0]["sheets"], 3);
}
