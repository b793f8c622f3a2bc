//! A timing diagram as a drawing: lanes one below the other, the thread of execution as a line between them, the spans
//! below it with thin lines up to their events.

use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

use super::markup::escaped;
use crate::render::clean::clean;
use crate::render::timeline::{self, Layout, Manner, Metrics};
use crate::{Diagram, DiagramRun};

/// A character of the diagram's fixed-width font, rounded up.
const CHARACTER: usize = 7;
const METRICS: Metrics = Metrics { width: |text| text.width() * CHARACTER, event: 10, gap: 6, bracket: 12 };
/// The least width; a narrower drawing is stretched.
const WIDTH: usize = 330;
/// From this width on calls are numbers, because a wider drawing does not fit beside a table.
const WIDTH_MAX: usize = 480;
const LANE: usize = 42;
/// Distance from the top of a lane to its line, with the labels between.
const LINE: usize = 28;
const SPAN: usize = 24;
const MARGIN: usize = 6;
const PLAIN: Manner = Manner { numbered: false, beside: false };

/// A drawing and the meaning of its numbers, if its calls are numbers.
pub(crate) struct Drawing {
    pub(crate) svg: String,
    pub(crate) legend: Vec<String>,
}

/// The drawing, or why there is none.
pub(crate) fn timeline(diagram: &Diagram) -> Result<Drawing, String> {
    diagram.check().map_err(|error| format!("cannot {error}"))?;
    let names = diagram.lanes.iter().map(|lane| clean(lane).width() * CHARACTER).max().unwrap_or(0);
    let left = MARGIN + names + 2 * METRICS.gap;
    let mut layout = timeline::layout(diagram, &METRICS, PLAIN, WIDTH - left.min(WIDTH));
    if left + layout.width > WIDTH_MAX {
        let numbered = Manner { numbered: true, beside: false };
        layout = timeline::layout(diagram, &METRICS, numbered, WIDTH - left.min(WIDTH));
    }
    Ok(Drawing { svg: drawn(diagram, &layout, left), legend: layout.legend })
}

fn drawn(diagram: &Diagram, layout: &Layout<'_>, left: usize) -> String {
    let lanes = diagram.lanes.len();
    let spans_top = MARGIN + lanes * LANE;
    let (width, height) = (left + layout.width + MARGIN, spans_top + layout.span_rows() * SPAN + MARGIN);
    let line = |lane: u32| MARGIN + lane as usize * LANE + LINE;
    let place = |time: u32| left + layout.place(time);
    let mut svg = format!(
        "<svg class=\"timeline\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         aria-label=\"{}\"><desc>{}</desc>",
        escaped(&clean(&format!("Timing diagram. {}", diagram.caption))),
        escaped(&timeline::in_words(diagram))
    );
    for (lane, name) in diagram.lanes.iter().enumerate() {
        let y = MARGIN + lane * LANE + LINE;
        write(&mut svg, format_args!("<path class=\"lane\" d=\"M{left},{y}H{}\"/>", width - MARGIN));
        let x = MARGIN;
        let name = escaped(&clean(name));
        write(&mut svg, format_args!("<text class=\"who\" x=\"{x}\" y=\"{y}\" dy=\".32em\">{name}</text>"));
    }
    for (row, span) in &layout.spans {
        let y = spans_top + row * SPAN + SPAN / 2;
        for time in [span.from, span.to] {
            let from = event(diagram, time).map_or(MARGIN, line);
            write(&mut svg, format_args!("<path class=\"drop\" d=\"M{},{from}V{}\"/>", place(time), y + 6));
        }
    }
    for (before, after) in timeline::ways(diagram) {
        let (x, from, to) = (place(after.from), line(before.lane), line(after.lane));
        write(&mut svg, format_args!("<path class=\"way\" d=\"M{},{from}H{x}V{to}\"/>", place(before.to)));
    }
    for run in &diagram.runs {
        let y = line(run.lane);
        write(&mut svg, format_args!("<path class=\"run\" d=\"M{},{y}H{}\"/>", place(run.from), place(run.to)));
    }
    for label in &layout.labels {
        let (x, y) = (left + label.at, MARGIN + label.lane * LANE + LINE);
        let (anchor, text_x) = if label.before { ("end", x) } else { ("start", x + METRICS.gap) };
        write(&mut svg, format_args!("<path class=\"at\" d=\"M{x},{y}v-7\"/>"));
        let text = escaped(&label.text);
        let y = y - 10;
        write(
            &mut svg,
            format_args!("<text class=\"call\" x=\"{text_x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>"),
        );
    }
    for (row, span) in &layout.spans {
        let (from, to, y) = (place(span.from), place(span.to), spans_top + row * SPAN + SPAN / 2);
        write(&mut svg, format_args!("<path class=\"span\" d=\"M{from},{y}H{to}M{from},{0}v8M{to},{0}v8\"/>", y - 4));
        let (x, y, name) = ((from + to) / 2, y + 4, escaped(&clean(&span.name)));
        write(&mut svg, format_args!("<text class=\"mark\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{name}</text>"));
    }
    svg.push_str("</svg>");
    svg
}

/// The lane with an event at this time: the end or beginning of a run, or a call.
fn event(diagram: &Diagram, time: u32) -> Option<u32> {
    let run = |is: fn(&DiagramRun, u32) -> bool| diagram.runs.iter().find(|run| is(run, time)).map(|run| run.lane);
    let call = || diagram.calls.iter().find(|call| call.at == time).map(|call| call.lane);
    run(|run, time| run.to == time).or_else(|| run(|run, time| run.from == time)).or_else(call)
}

/// Writing to a string cannot fail.
fn write(svg: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = svg.write_fmt(text);
}
