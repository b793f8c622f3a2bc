//! Pulses over each other: what can be drawn, and that nothing in the drawing lies on anything else or outside of it.

use hairspring_sheet::render::overlays;
use hairspring_sheet::{Overlaid, Overlay, OverlayError};
use proptest::prelude::*;

/// Approximate width of a character of a label.
const CHARACTER: f64 = 6.0;

fn pulse(at_least_ns: f64, at_most_ns: f64, kind: usize) -> Overlaid {
    Overlaid { at_least_ns, at_most_ns, kind }
}

/// Pulses of 2 µs, of which every hundredth is preempted.
fn two_microseconds() -> Overlay {
    let usual = (0..990).map(|n| pulse(2_010.0 + f64::from(n % 97), 2_060.0 + f64::from(n % 97) * 1.5, 0));
    let preempted = (0..10).map(|n| pulse(9_000.0 + f64::from(n * 1_500), 9_050.0 + f64::from(n * 1_500), 1));
    Overlay {
        title: "line 3 of <board> & others".to_owned(),
        kinds: vec!["as usual".to_owned(), "preempted".to_owned()],
        pulses: usual.chain(preempted).collect(),
        markers_ns: vec![2_000.0],
    }
}

/// The attribute of an element, as a number.
fn number(element: &str, name: &str) -> f64 {
    let value = element.split_once(&format!(" {name}=\"")).expect(name).1;
    value.split_once('"').expect("its end").0.parse().expect("a number")
}

/// The texts with where they begin and end, and their baseline.
fn texts(svg: &str) -> Vec<(f64, f64, f64, &str)> {
    let elements = svg.split("<text").skip(1).map(|rest| rest.split_once("</text>").expect("its end").0);
    let placed = elements.map(|element| {
        let (attributes, text) = element.split_once('>').expect("its text");
        let (x, y, length) =
            (number(attributes, "x"), number(attributes, "y"), text.chars().count() as f64 * CHARACTER);
        let begin = match attributes {
            middle if middle.contains("\"middle\"") => x - length / 2.0,
            end if end.contains("\"end\"") => x - length,
            _ => x,
        };
        (begin, begin + length, y, text)
    });
    placed.collect()
}

#[track_caller]
fn check(svg: &str) {
    let texts = texts(svg);
    for (i, (begin, end, y, text)) in texts.iter().enumerate() {
        assert!(*begin >= 0.0 && *end <= 960.0, "{text:?} leaves the drawing: {begin} to {end}");
        for (other_begin, other_end, other_y, other) in &texts[..i] {
            let apart = end <= other_begin || begin >= other_end || (y - other_y).abs() >= 12.0;
            assert!(apart, "{text:?} lies on {other:?}");
        }
    }
    // Every path has numbers only, and none far outside.
    for path in svg.split(" d=\"").skip(1).map(|rest| rest.split_once('"').expect("its end").0) {
        let numbers = path.split(|c: char| c.is_ascii_alphabetic() || c == ',').filter(|text| !text.is_empty());
        for text in numbers {
            let number: f64 = text.parse().unwrap_or_else(|_| panic!("{text:?} in {path:?}"));
            assert!(number.abs() < 10_000.0, "{text:?} in {path:?}");
        }
    }
}

#[test]
fn pulses_are_counted_by_kind_and_enlarged_where_they_end() {
    let svg = overlays(&[two_microseconds()]).expect("a drawing");
    check(&svg);
    for said in [
        "line 3 of &lt;board&gt; &amp; others",
        "1,000 pulses, aligned at the rising edge",
        "990 as usual: from at least 2.01 µs to at most 2.20 µs",
        "10 preempted: from at least 9.00 µs to at most 22.6 µs",
        "enlarged",
        ">2 µs</text>",
        ">+50 ns</text>",
        "prefers-color-scheme: dark",
    ] {
        assert!(svg.contains(said), "no {said:?} in the drawing");
    }
    let alone = Overlay { pulses: vec![pulse(500.0, 2_000.0, 0)], ..two_microseconds() };
    let svg = overlays(&[alone, two_microseconds()]).expect("two drawings");
    check(&svg);
    assert!(svg.contains(">1 pulse, aligned") && svg.contains(">0 preempted<"), "the first");
}

#[test]
fn every_pulse_has_an_edge_and_a_place_in_the_density() {
    // Edges of three widths far from each other, of 30 pulses: three strokes in the whole, and three bars.
    let pulses = (0..30).map(|n| pulse(f64::from(n % 3 + 1) * 1e6, f64::from(n % 3 + 1) * 1e6 + 10.0, 0)).collect();
    let overlay = Overlay { kinds: vec!["all".to_owned()], pulses, markers_ns: vec![], ..two_microseconds() };
    let svg = overlays(&[overlay]).expect("a drawing");
    check(&svg);
    let strokes = |class: &str| {
        let path = svg.split_once(&format!("class=\"{class} k0\" d=\"")).expect(class).1;
        path.split_once('"').expect("its end").0.matches('M').count()
    };
    assert_eq!((strokes("edge"), strokes("fill")), (3, 3));
}

#[test]
fn an_edge_that_leaves_the_enlarged_range_is_cut_and_not_bent() {
    // 98 edges at 100 to 101 µs; an uncertain one spans all of that range, from its left to its right end.
    let usual = (0..98).map(|n| pulse(100_000.0 + f64::from(n) * 10.0, 100_020.0 + f64::from(n) * 10.0, 0));
    let overlay = Overlay {
        kinds: vec!["all".to_owned()],
        pulses: usual.chain([pulse(0.0, 200_000.0, 0)]).collect(),
        markers_ns: vec![],
        ..two_microseconds()
    };
    let svg = overlays(&[overlay]).expect("a drawing");
    check(&svg);
    let enlarged = svg.split_once("enlarged").expect("a second panel").1;
    let path = enlarged.split_once("class=\"edge k0\" d=\"").expect("edges").1.split_once('"').expect("its end").0;
    let crossing = path.split('M').find(|edge| edge.starts_with("24,")).expect("one from the left end");
    let [begin, end] = crossing.split_once('L').map(|(a, b)| [a, b]).expect("two ends");
    let y = |point: &str| point.split_once(',').expect("a point").1.parse::<f64>().expect("a number");
    assert!(end.starts_with("936,"), "{crossing}");
    // 110 high is its whole way; here it is in the middle, and nearly flat.
    assert!(y(end) > y(begin) && y(end) - y(begin) < 2.0, "{crossing}");
}

#[test]
fn no_drawings_are_told() {
    let svg = overlays(&[]).expect("a file");
    check(&svg);
    assert!(svg.contains(">no pulses</text>"), "{svg}");
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let good = two_microseconds();
    let kinds = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
    for (overlay, error) in [
        (Overlay { pulses: vec![], ..good.clone() }, OverlayError::NoPulses),
        (Overlay { kinds: kinds(0), ..good.clone() }, OverlayError::Kinds),
        (Overlay { kinds: kinds(1), ..good.clone() }, OverlayError::Kinds),
        (Overlay { kinds: kinds(5), ..good.clone() }, OverlayError::Kinds),
        (Overlay { pulses: vec![pulse(2.0, 1.0, 0)], ..good.clone() }, OverlayError::Widths),
        (Overlay { pulses: vec![pulse(f64::NAN, 1.0, 0)], ..good.clone() }, OverlayError::Widths),
        (Overlay { pulses: vec![pulse(-1.0, 1.0, 0)], ..good.clone() }, OverlayError::Widths),
        (Overlay { pulses: vec![pulse(1.0, f64::INFINITY, 0)], ..good.clone() }, OverlayError::Widths),
        (Overlay { markers_ns: vec![0.0], ..good.clone() }, OverlayError::Widths),
        (Overlay { markers_ns: vec![1.0; 5], ..good.clone() }, OverlayError::Widths),
    ] {
        assert_eq!(overlays(&[overlay]), Err(error));
    }
}

proptest! {
    #[test]
    fn no_label_lies_on_another_whatever_is_drawn(
        widths in prop::collection::vec((0.0..1e4_f64, 0.0..100.0_f64, 0..2_usize), 1..60),
        scale in prop::sample::select(vec![0.01, 1.0, 1e3, 1e6]),
        offset in prop::sample::select(vec![0.0, 1e5, 1e9]),
        markers in prop::collection::vec(0.1..1.2e4_f64, 0..4),
    ) {
        let pulses = widths.iter().map(|(least, more, kind)| pulse(offset + least * scale, offset + (least + more) * scale, *kind));
        let markers_ns = markers.iter().map(|marker| (offset + marker * scale).round().max(1.0)).collect();
        let overlay = Overlay { pulses: pulses.collect(), markers_ns, ..two_microseconds() };
        check(&overlays(&[overlay]).expect("a drawing"));
    }
}
