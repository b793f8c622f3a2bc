//! An incident as a drawing: a lane for each occupant of the CPU, the lost time between two dashed lines.
//!
//! Names stand in a column of their own and sums in another, so that no label can lie on a bar or on another label,
//! however short the spans are. Bars differ by lane, by depth and by outline, not by colour alone.

use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

use super::markup::{coordinate, escaped};
use crate::render::axes::Scale;
use crate::render::incident::{Lane, lanes, length, place, story, time, window};
use crate::render::quantity;
use crate::render::text::cut;
use crate::{INCIDENT_THREAD, Incident, IncidentKind, Unit};

const WIDTH: f64 = 860.0;
/// A character of the drawing's fixed-width font, rounded up.
const CHARACTER: f64 = 7.0;
/// Longer names are cut.
const NAME_MOST: usize = 44;
const GAP: f64 = 10.0;
/// The column of sums.
const SUMS: f64 = 76.0;
/// The heads of the columns, a lane, a bar, and the axis.
const HEAD: f64 = 20.0;
const LANE: f64 = 18.0;
const BAR: f64 = 10.0;
const THREAD_BAR: f64 = 4.0;
const AXIS: f64 = 22.0;
/// The shortest bar that can be seen.
const SEEN: f64 = 1.5;
/// The kind of a span of which nothing is known.
const UNEXPLAINED: &str = "unexplained";
const HEADING: &str = "who had the CPU";
const UNIT: &str = "µs from its beginning";

/// Width of the column of names for all of these.
pub(crate) fn names_width(incidents: &[&Incident]) -> f64 {
    let names = incidents.iter().flat_map(|incident| lanes(incident)).map(|lane| cut(&lane.who, NAME_MOST).width());
    names.chain([HEADING.width(), UNIT.width()]).max().unwrap_or(0) as f64 * CHARACTER
}

/// The drawing, or `None` if there is nothing to draw. `names` is the width of the column of names.
pub(crate) fn incident(incident: &Incident, names: f64) -> Option<String> {
    let (from, to) = window(incident)?;
    let lanes = lanes(incident);
    let scale = Scale::spanning(Unit::Ns, from, to);
    let (left, right) = (names + GAP, WIDTH - SUMS);
    let x = |ns: f64| left + scale.position(ns) * (right - left);
    let bottom = HEAD + lanes.len() as f64 * LANE;
    let height = bottom + AXIS;
    let mut svg = format!(
        "<svg class=\"incident\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escaped(&format!("{}, {}: {}", length(incident), place(incident), story(incident)))
    );
    let (begin, end) = (x(0.0), x(incident.length_ns as f64));
    let lost = coordinate((end - begin).max(SEEN));
    write(
        &mut svg,
        format_args!(
            "<rect class=\"lost\" x=\"{}\" y=\"{HEAD}\" width=\"{lost}\" height=\"{}\"/>",
            coordinate(begin),
            bottom - HEAD
        ),
    );
    let of = if incident.kind == IncidentKind::Gap { "of the gap" } else { "of the delay" };
    write(&mut svg, format_args!("<text class=\"who\" x=\"{names}\" y=\"13\" text-anchor=\"end\">{HEADING}</text>"));
    write(&mut svg, format_args!("<text class=\"who\" x=\"{WIDTH}\" y=\"13\" text-anchor=\"end\">{of}</text>"));
    for (row, lane) in lanes.iter().enumerate() {
        self::lane(&mut svg, lane, HEAD + row as f64 * LANE, names, &x);
    }
    for edge in [begin, end] {
        write(&mut svg, format_args!("<path class=\"edge\" d=\"M{},{HEAD}V{}\"/>", coordinate(edge), bottom + 4.0));
    }
    axis(&mut svg, &scale, bottom, names, &x);
    svg.push_str("</svg>");
    Some(svg)
}

fn lane(svg: &mut String, lane: &Lane<'_>, top: f64, names: f64, x: &impl Fn(f64) -> f64) {
    let middle = top + LANE / 2.0;
    write(svg, format_args!("<path class=\"lane\" d=\"M{},{middle}H{}\"/>", names + GAP, WIDTH - SUMS));
    let name = escaped(&cut(&lane.who, NAME_MOST));
    write(svg, format_args!("<text x=\"{names}\" y=\"{middle}\" dy=\".32em\" text-anchor=\"end\">{name}</text>"));
    if lane.taken > 0.0 {
        let taken = time(lane.taken);
        write(svg, format_args!("<text x=\"{WIDTH}\" y=\"{middle}\" dy=\".32em\" text-anchor=\"end\">{taken}</text>"));
    }
    for span in &lane.spans {
        let (class, high) = match span.concluded {
            _ if span.kind == UNEXPLAINED => ("unknown", BAR),
            true => ("concluded", BAR),
            false if span.kind == INCIDENT_THREAD => ("own", THREAD_BAR),
            false => ("took", BAR),
        };
        let (from, to) = (x(span.from_ns as f64), x(span.to_ns as f64));
        let (at, wide) = (coordinate(from), coordinate((to - from).max(SEEN)));
        let what = format!("{}: {}", span.who, time(span.to_ns as f64 - span.from_ns as f64));
        write(
            svg,
            format_args!(
                "<rect class=\"{class}\" x=\"{at}\" y=\"{}\" width=\"{wide}\" height=\"{high}\"><title>{}</title></rect>",
                middle - high / 2.0,
                escaped(&what)
            ),
        );
    }
}

/// Marks in microseconds; a label that would touch the one before is left out.
fn axis(svg: &mut String, scale: &Scale, bottom: f64, names: f64, x: &impl Fn(f64) -> f64) {
    write(svg, format_args!("<path class=\"axis\" d=\"M{},{bottom}H{}\"/>", names + GAP, WIDTH - SUMS));
    let y = bottom + 17.0;
    write(svg, format_args!("<text class=\"who\" x=\"{names}\" y=\"{y}\" text-anchor=\"end\">{UNIT}</text>"));
    let mut free = names + GAP / 2.0;
    for (value, _) in scale.ticks() {
        let label = quantity(value / 1000.0, Unit::Count).trimmed().to_string();
        let (at, half) = (x(value), label.width() as f64 * CHARACTER / 2.0);
        write(svg, format_args!("<path class=\"axis\" d=\"M{},{bottom}v4\"/>", coordinate(at)));
        if at - half < free {
            continue;
        }
        free = at + half + CHARACTER;
        write(
            svg,
            format_args!(
                "<text class=\"who\" x=\"{}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>",
                coordinate(at)
            ),
        );
    }
}

/// Writing to a string cannot fail.
fn write(svg: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = svg.write_fmt(text);
}
