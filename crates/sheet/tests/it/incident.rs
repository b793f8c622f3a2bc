//! Incidents: gaps and late wake-ups on a line of time.

use hairspring_sheet::render::{from_json, html, markdown, quantity, text, to_json};
use hairspring_sheet::{Chapter, Incident, IncidentKind, IncidentSpan, Sheet, TextStyle, Unit};
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use crate::example;

/// The worst gaps and wake-ups of a chapter, as a virtual machine had them while others built programs on it.
const RECORDED: &str = include_str!("recorded/incidents.json");

/// A sheet with these incidents and nothing else.
fn of(incidents: Vec<Incident>) -> Sheet {
    let chapter = Chapter {
        id: "disturbance".to_owned(),
        title: "Disturbance".to_owned(),
        intro: String::new(),
        tables: Vec::new(),
        series: Vec::new(),
        incidents,
        notes: Vec::new(),
    };
    Sheet { chapters: vec![chapter], summary: None, ..example::sheet() }
}

fn recorded() -> Vec<Incident> {
    serde_json::from_str(RECORDED).expect("incidents")
}

fn drawings(page: &str) -> Vec<&str> {
    let drawing = |rest: &'_ str| rest.find("</svg>").map(|end| end + 6);
    let starts = page.match_indices("<svg class=\"incident\"").map(|(at, _)| at);
    starts.filter_map(|at| Some(&page[at..at + drawing(&page[at..])?])).collect()
}

/// The value of an attribute of a tag.
fn attribute(tag: &str, name: &str) -> Option<f64> {
    let value = tag.split_once(&format!(" {name}=\""))?.1;
    value.split('"').next()?.parse().ok()
}

/// The texts of a drawing: left and right edge, line, and content of each.
fn texts(drawing: &str) -> Vec<(f64, f64, f64, String)> {
    let texts = drawing.split("<text").skip(1).map(|rest| rest.split("</text>").next().expect("an end"));
    texts
        .map(|text| {
            let (tag, said) = text.split_once('>').expect("a text");
            let said = said
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&amp;", "&")
                .replace("&#39;", "'")
                .replace("&quot;", "\"");
            let (x, y) = (attribute(tag, "x").expect("x"), attribute(tag, "y").expect("y"));
            let width = said.width() as f64 * 7.0;
            match tag.split("text-anchor=\"").nth(1).and_then(|rest| rest.split('"').next()) {
                Some("end") => (x - width, x, y, said),
                Some("middle") => (x - width / 2.0, x + width / 2.0, y, said),
                _ => (x, x + width, y, said),
            }
        })
        .collect()
}

/// Checks a property of every drawing: no text lies on another or beyond the edge, and no bar lies on a text.
#[track_caller]
fn check(drawing: &str) {
    let texts = texts(drawing);
    for (place, (from, to, y, said)) in texts.iter().enumerate() {
        assert!(*from >= -0.5 && *to <= 860.5, "{said} reaches from {from} to {to}: {drawing}");
        for (other_from, other_to, other_y, other) in &texts[..place] {
            let apart = to <= other_from || other_to <= from || (y - other_y).abs() >= 12.0;
            assert!(apart, "{said} lies on {other}: {drawing}");
        }
    }
    for bar in drawing.split("<rect").skip(1).filter_map(|rest| rest.split('>').next()) {
        let x = attribute(bar, "x").expect("x");
        let (right, y) = (x + attribute(bar, "width").expect("width"), attribute(bar, "y").expect("y"));
        let low = y + attribute(bar, "height").expect("height");
        for (from, to, baseline, said) in &texts {
            let apart = *to <= x || *from >= right || *baseline <= y - 5.0 || *baseline >= low + 5.0;
            assert!(apart, "a bar lies on {said}: {drawing}");
        }
    }
}

#[test]
fn a_recorded_incident_names_everybody_who_had_its_time_in_every_form() {
    let sheet = of(recorded());
    let page = html(&sheet);
    let drawn = drawings(&page);
    assert_eq!(drawn.len(), sheet.chapters[0].incidents.len());
    drawn.iter().for_each(|drawing| check(drawing));
    let forms = [markdown(&sheet), text(&sheet, &TextStyle { width: 160, ..TextStyle::default() })];
    let joined = forms.map(|form| form.replace('\\', "").split_whitespace().collect::<Vec<_>>().join(" "));
    for incident in &sheet.chapters[0].incidents {
        let inside = incident.spans.iter().filter(|span| span.from_ns >= 0 && span.to_ns <= incident.length_ns);
        let taken: i64 = inside.clone().map(|span| span.to_ns - span.from_ns).sum();
        assert_eq!(taken, incident.length_ns, "the parts add up to the whole: {incident:?}");
        let time = |who: &str| {
            inside.clone().filter(|span| span.who == who).map(|span| span.to_ns - span.from_ns).sum::<i64>()
        };
        let chief = inside.clone().max_by_key(|span| time(&span.who)).expect("somebody had it");
        for form in &joined {
            assert!(
                form.contains(&format!(": {} {}", quantity(time(&chief.who) as f64, Unit::Ns), chief.who)),
                "{form}"
            );
        }
    }
    assert!(sheet.chapters[0].incidents.iter().any(|incident| incident.kind == IncidentKind::Wakeup));
    insta::assert_snapshot!(drawn[0]);
    assert_eq!(from_json(&to_json(&sheet)).expect("a sheet"), sheet);
}

#[test]
fn a_sheet_of_an_older_version_has_no_incidents_and_opens() {
    let mut sheet = of(vec![example::gap()]);
    assert!(to_json(&sheet).contains("\"incidents\""));
    sheet.chapters[0].incidents.clear();
    let json = to_json(&sheet);
    assert!(!json.contains("incidents"));
    assert_eq!(from_json(&json).expect("a sheet").chapters[0].incidents, []);
    assert_eq!(drawings(&html(&sheet)).len(), 0);
}

fn span() -> impl Strategy<Value = IncidentSpan> {
    let time = || prop_oneof![4 => -2_000_000_i64..6_000_000, 1 => any::<i64>()];
    let who = prop_oneof![3 => "[a-z]{1,8}", 1 => ".{0,60}"];
    (time(), 0_i64..3_000_000, who, any::<bool>()).prop_map(|(from_ns, length, who, concluded)| IncidentSpan {
        from_ns,
        to_ns: from_ns.saturating_add(length),
        who,
        kind: "task".to_owned(),
        concluded,
    })
}

proptest! {
    #[test]
    fn no_label_lies_on_another_or_on_a_bar_whatever_happened(
        spans in proptest::collection::vec(span(), 0..40),
        length_ns in prop_oneof![4 => 1_i64..5_000_000, 1 => any::<i64>()],
    ) {
        let incident = Incident { length_ns, spans, ..example::gap() };
        for drawing in drawings(&html(&of(vec![incident, example::late_wakeup()]))) {
            check(drawing);
        }
    }
}
