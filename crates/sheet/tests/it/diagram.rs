//! Timing diagrams: their limits, and every form in which they are drawn.

use hairspring_sheet::render::{from_json, html, markdown, text, to_json};
use hairspring_sheet::{
    Diagram, DiagramCall, DiagramError, DiagramRun, DiagramSpan, Figure, Method, Origin, Row, Sheet, Table, TextStyle,
    Unit,
};
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use crate::example;

/// Two tasks: one wakes the other, which is more urgent.
fn wait_and_wake() -> Diagram {
    let caption = "B, the less urgent task, starts A, which waits; B wakes A, which ends.";
    Diagram::new(caption, Origin::Guide, &["A (high)", "B (low)"])
        .run(1, 0, 2)
        .call(1, 2, "trigger(A)")
        .run(0, 3, 5)
        .call(0, 5, "wait")
        .run(1, 6, 8)
        .call(1, 8, "wake(A)")
        .run(0, 9, 11)
        .call(0, 11, "ends")
        .run(1, 12, 14)
        .call(1, 14, "ends")
        .span("T1", 2, 3, "B calls trigger(A) until the first instruction of A")
        .span("T2", 5, 6, "A calls wait until B continues after trigger")
        .span("T3", 8, 9, "B calls wake(A) until A continues after wait")
        .span("T4", 11, 12, "A ends until B continues after wake")
}

/// An interrupt during a task, twice over: the same moments for two kinds of service procedure.
fn service_procedure() -> Diagram {
    Diagram::new("An interrupt stops a task until its service procedure ends.", Origin::Ours, &["ISP", "task"])
        .run(1, 0, 2)
        .call(0, 2, "interrupt")
        .run(0, 4, 6)
        .call(0, 6, "dismissed")
        .run(1, 7, 9)
        .span("T1", 2, 4, "interrupt until the first useful instruction, assembly")
        .span("T2", 6, 7, "last instruction until the task continues, assembly")
        .span("T3", 2, 4, "interrupt until the first useful instruction, C")
        .span("T4", 6, 7, "last instruction until the task continues, C")
}

/// As much as a diagram may hold, with long labels.
fn full() -> Diagram {
    let lanes = ["interrupt", "kernel task", "task A (high)", "task B, lowest"];
    let mut diagram = Diagram::new("Everything at once.", Origin::Ours, &lanes);
    for i in 0..12 {
        let lane = [3, 0, 1, 2][i as usize % 4];
        diagram = diagram.run(lane, 4 * i, 4 * i + 3).call(lane, 4 * i + 3, &format!("procedure_{i}(argument)"));
    }
    for i in 0..6 {
        diagram = diagram.span(&format!("T{}", i + 1), 8 * i + 3, 8 * i + 4, "from one to the next");
    }
    diagram
}

fn table(id: &str, diagram: Diagram) -> Table {
    let rows = (1..=4).map(|t| {
        let figure = Figure::from_samples(Unit::Ns, Method::Stamp, &mut example::samples(t, 200, 90.0 * t as f64, 0.1));
        example::row(&format!("{id}.t{t}.hot.idle"), &format!("T{t}"), figure)
    });
    Table { id: id.to_owned(), title: id.to_owned(), rows: rows.collect(), diagram: Some(diagram) }
}

fn sheet(tables: Vec<Table>) -> Sheet {
    let mut sheet = example::sheet();
    sheet.conditions = Default::default();
    sheet.notes.clear();
    sheet.chapters.truncate(1);
    sheet.chapters[0].tables = tables;
    sheet
}

fn both() -> Sheet {
    sheet(vec![table("x.waitwake", wait_and_wake()), table("x.isp", service_procedure())])
}

#[test]
fn the_text_is_as_reviewed_at_60_columns() {
    insta::assert_snapshot!(text(&both(), &TextStyle { width: 60, ..TextStyle::default() }));
}

#[test]
fn the_text_is_as_reviewed_at_100_columns() {
    insta::assert_snapshot!(text(&both(), &TextStyle { width: 100, ..TextStyle::default() }));
}

#[test]
fn the_largest_diagram_is_as_reviewed_at_60_columns() {
    let text = text(&sheet(vec![table("x.full", full())]), &TextStyle { width: 60, ..TextStyle::default() });
    insta::assert_snapshot!(text);
}

#[test]
fn the_markdown_is_as_reviewed() {
    insta::assert_snapshot!(markdown(&both()));
}

#[test]
fn the_page_is_as_reviewed() {
    let page = html(&both());
    let chapter = page.split("<details class=\"chapter\"").nth(1).unwrap();
    insta::assert_snapshot!(chapter.split("</details>").next().unwrap());
}

#[test]
fn a_diagram_is_read_as_it_was_written_and_an_old_sheet_has_none() {
    let json = to_json(&both());
    assert_eq!(from_json(&json).unwrap(), both());
    assert_eq!(crate::json::faults(serde_json::from_str(&json).unwrap()), None);
    let without = to_json(&example::sheet());
    assert!(!without.contains("\"diagram\""));
    assert!(from_json(&without).unwrap().chapters.iter().flat_map(|c| &c.tables).all(|t| t.diagram.is_none()));
}

#[test]
fn every_span_says_what_it_means_and_what_was_measured() {
    let sheet = both();
    let median = |t: usize| {
        let row: &Row = &sheet.chapters[0].tables[0].rows[t - 1];
        format!("median {:.1} ns", row.figure().unwrap().median.unwrap())
    };
    for form in [text(&sheet, &TextStyle::default()), markdown(&sheet), html(&sheet)] {
        assert!(form.contains("until the first instruction of A"), "{form}");
        assert!(form.contains(&median(1)[..11]), "{} in {form}", median(1));
        // Readers see by these names which definition it is.
        assert!(form.contains("KADAK") && form.contains("our own definition"), "{form}");
    }
}

#[test]
fn several_rows_of_one_span_are_told_from_the_least_to_the_greatest() {
    let mut table = table("x.waitwake", wait_and_wake());
    let mut loaded = table.rows[0].clone();
    loaded.id = "x.waitwake.t1.hot.loaded".to_owned();
    loaded.value = hairspring_sheet::Value::Figure(Figure::single(Unit::Ns, Method::Stamp, 5_000.0));
    table.rows.push(loaded);
    let text = text(&sheet(vec![table]), &TextStyle { width: 100, ..TextStyle::default() });
    assert!(text.contains("… 5.00 µs"), "{text}");
}

#[track_caller]
fn check_error(diagram: Diagram, expected: &str) {
    let error = diagram.clone().checked().unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
    let sheet = sheet(vec![table("x.wrong", diagram)]);
    for form in [text(&sheet, &TextStyle { width: 160, ..TextStyle::default() }), markdown(&sheet), html(&sheet)] {
        assert!(form.contains("absent") && form.contains("cannot"), "{form}");
    }
}

#[test]
fn a_diagram_that_makes_no_sense_says_why_instead_of_being_drawn() {
    assert_eq!(wait_and_wake().checked(), Ok(wait_and_wake()));
    assert_eq!(wait_and_wake().run(0, 5, 5).check(), Err(DiagramError::Backwards { from: 5, to: 5 }));
    check_error(wait_and_wake().run(2, 0, 1), "lane 2 of a diagram with 2 lanes");
    check_error(wait_and_wake().call(9, 0, "x"), "lane 9");
    check_error(wait_and_wake().span("T5", 7, 3, "backwards"), "from 7 to 3");
    check_error(wait_and_wake().call(0, 1, ""), "there must be a text");
    check_error(wait_and_wake().call(0, 1, "a text that goes on and on"), "at most 24 columns");
    check_error((0..20).fold(wait_and_wake(), |d, i| d.run(0, i, i + 1)), "25 runs");
    check_error(Diagram::new("empty", Origin::Ours, &[]), "0 lanes");
}

/// Texts of every kind, small numbers and absurd ones.
fn any_diagram(texts: &'static str) -> impl Strategy<Value = Diagram> {
    let time = prop_oneof![4 => 0u32..30, 1 => any::<u32>()];
    let lane = prop_oneof![8 => 0u32..4, 1 => any::<u32>()];
    let run = (lane.clone(), time.clone(), time.clone()).prop_map(|(lane, from, to)| DiagramRun { lane, from, to });
    let call = (lane, time.clone(), texts).prop_map(|(lane, at, text)| DiagramCall { lane, at, text });
    let span = (texts, time.clone(), time, texts).prop_map(|(name, from, to, meaning)| DiagramSpan {
        name,
        from,
        to,
        meaning,
    });
    (
        texts,
        prop::collection::vec(texts, 0..6),
        prop::collection::vec(run, 0..14),
        prop::collection::vec(call, 0..14),
        prop::collection::vec(span, 0..8),
    )
        .prop_map(|(caption, lanes, runs, calls, spans)| Diagram {
            caption,
            origin: Origin::Ours,
            lanes,
            runs,
            calls,
            spans,
        })
}

/// Diagrams that make sense: runs one after the other on any lane, calls and spans at their ends.
fn sound_diagram() -> impl Strategy<Value = Diagram> {
    let lanes = prop::collection::vec("[A-Za-z ()界é]{1,12}[a-z]", 1..5);
    let steps = prop::collection::vec((0u32..4, 1u32..4, 0u32..3, "[a-z_()界]{0,20}", any::<bool>()), 1..13);
    (lanes, steps).prop_map(|(lanes, steps)| {
        let count = lanes.len() as u32;
        let names: Vec<&str> = lanes.iter().map(String::as_str).collect();
        let mut diagram = Diagram::new("Any.", Origin::Ours, &names);
        let mut now = 0;
        for (lane, length, gap, call, span) in steps {
            let end = now + length;
            diagram = diagram.run(lane % count, now, end);
            if (1..=24).contains(&call.width()) {
                diagram = diagram.call(lane % count, end, &call);
            }
            now = end + gap;
            if span && gap > 0 && diagram.spans.len() < 6 {
                let name = format!("T{}", diagram.spans.len() + 1);
                diagram = diagram.span(&name, end, now, "until the next");
            }
        }
        if diagram.spans.is_empty() { diagram.span("T1", 0, now.max(1), "all of it") } else { diagram }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_diagram_from_outside_can_stop_a_renderer(diagram in any_diagram(".{0,30}"), width in 0usize..170) {
        let sheet = sheet(vec![table("x.any", diagram)]);
        let text = text(&sheet, &TextStyle { width, ..TextStyle::default() });
        for line in text.lines() {
            prop_assert!(line.width() <= width.clamp(60, 160), "{line:?}");
        }
        let markdown = markdown(&sheet);
        prop_assert!(!markdown.contains("<img"));
        prop_assert!(html(&sheet).ends_with("</html>\n"));
        prop_assert_eq!(from_json(&to_json(&sheet)).unwrap(), sheet);
    }

    #[test]
    fn labels_never_collide(diagram in sound_diagram(), width in 60usize..130) {
        let sheet = sheet(vec![table("x.sound", diagram.clone())]);
        prop_assert_eq!(diagram.check(), Ok(()));
        let text = text(&sheet, &TextStyle { width, ..TextStyle::default() });
        prop_assert!(!text.contains("absent"), "{}", text);
        // A mark that covers a label would have replaced a part of it.
        let mut moments: Vec<(u32, u32)> = diagram.calls.iter().map(|call| (call.lane, call.at)).collect();
        moments.dedup();
        let numbered = text.lines().any(|line| line.starts_with("  1 "));
        for (i, call) in diagram.calls.iter().enumerate() {
            let label = if numbered { format!("{} {}", i + 1, call.text) } else { call.text.clone() };
            prop_assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(&label), "{} in\n{}", label, text);
        }
        for span in &diagram.spans {
            let drawn = text.lines().filter(|line| line.contains(&span.name) && line.contains('├')).count();
            prop_assert!(drawn >= 1, "{} in\n{}", span.name, text);
        }
        let boxes = boxes_of_texts(&html(&sheet));
        for (i, one) in boxes.iter().enumerate() {
            for other in &boxes[..i] {
                let apart = one.1 <= other.0 || other.1 <= one.0 || (one.2 - other.2).abs() >= 12.0;
                prop_assert!(apart, "{one:?} {other:?}");
            }
        }
    }
}

/// From where to where every text of the first drawing goes, and its line.
fn boxes_of_texts(page: &str) -> Vec<(f64, f64, f64, String)> {
    let svg = page.split("<svg class=\"timeline\"").nth(1).unwrap().split("</svg>").next().unwrap();
    let texts = svg.split("<text ").skip(1).map(|text| {
        let attribute = |name: &str| text.split(&format!("{name}=\"")).nth(1).map(|v| v.split('"').next().unwrap());
        let number = |name: &str| attribute(name).unwrap().parse::<f64>().unwrap();
        let content = text.split_once('>').unwrap().1.split("</text>").next().unwrap();
        let width = content.width() as f64 * 6.95;
        let start = match attribute("text-anchor") {
            Some("end") => number("x") - width,
            Some("middle") => number("x") - width / 2.0,
            _ => number("x"),
        };
        (start, start + width, number("y"), content.to_owned())
    });
    texts.collect()
}
