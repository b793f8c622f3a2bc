//! A distribution as bars: small beside a row of a table, large with a marked axis.

use std::fmt::Write;

use super::markup::{coordinate, escaped};
use crate::Figure;
use crate::render::bins::Range;
use crate::render::quantity;

/// Bars of the small form: one for each two pixels of its column.
const SMALL_BARS: usize = 80;
const SMALL_WIDTH: f64 = 160.0;
const SMALL_HEIGHT: f64 = 24.0;

const BARS: usize = 96;
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 12.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 24.0;

/// The distribution of a row on the axis that its table shares, with the median marked.
pub(crate) fn small(figure: &Figure, range: &Range) -> Option<String> {
    let heights = heights(figure, range, SMALL_BARS)?;
    let mut svg = format!(
        "<svg class=\"dist\" viewBox=\"0 0 {SMALL_WIDTH} {SMALL_HEIGHT}\" role=\"img\" aria-label=\"distribution\">"
    );
    write(&mut svg, format_args!("<path class=\"base\" d=\"M0,{SMALL_HEIGHT}H{SMALL_WIDTH}\"/>"));
    bars(&mut svg, &heights, 0.0, SMALL_WIDTH, SMALL_HEIGHT, SMALL_HEIGHT - 2.0);
    if let Some(median) = figure.median {
        let x = coordinate(range.position(median) * SMALL_WIDTH);
        write(&mut svg, format_args!("<path class=\"median\" d=\"M{x},0V{SMALL_HEIGHT}\"/>"));
    }
    svg.push_str("</svg>");
    Some(svg)
}

/// The distribution of one figure from its least to its greatest sample, with round values and percentiles marked.
pub(crate) fn distribution(figure: &Figure, title: &str) -> Option<String> {
    let range = Range::of(std::iter::once(figure))?;
    let heights = heights(figure, &range, BARS)?;
    let (width, bottom) = (WIDTH - LEFT - RIGHT, HEIGHT - BOTTOM);
    let place = |value| LEFT + range.position(value) * width;
    let mut svg =
        format!("<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">", escaped(title));
    let mut free_from = f64::MIN;
    for value in range.round_values() {
        let x = place(value);
        let at = coordinate(x);
        write(&mut svg, format_args!("<path class=\"grid\" d=\"M{at},{TOP}V{bottom}\"/>"));
        let label = quantity(value, figure.unit).trimmed().to_string();
        let half = label.chars().count() as f64 * 3.4;
        if x - half > free_from && x + half < WIDTH && x - half > 0.0 {
            write(
                &mut svg,
                format_args!(
                    "<text class=\"tick\" x=\"{at}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                    bottom + 16.0
                ),
            );
            free_from = x + half + 6.0;
        }
    }
    bars(&mut svg, &heights, LEFT, width, bottom, bottom - TOP - 2.0);
    write(&mut svg, format_args!("<path class=\"axis\" d=\"M{LEFT},{bottom}H{}\"/>", WIDTH - RIGHT));
    let mut free_from = f64::MIN;
    for (name, value) in marks(figure) {
        let x = place(value);
        let at = coordinate(x);
        write(&mut svg, format_args!("<path class=\"median\" d=\"M{at},{TOP}V{bottom}\"/>"));
        // The label of the last mark must stay inside the drawing; a label that would cover another is left out.
        let text = format!("{name} {}", quantity(value, figure.unit));
        let (anchor, start) =
            if x > WIDTH * 0.85 { ("end", x - text.chars().count() as f64 * 6.4) } else { ("start", x) };
        if start > free_from {
            write(
                &mut svg,
                format_args!("<text class=\"tick\" x=\"{at}\" y=\"14\" text-anchor=\"{anchor}\">{text}</text>"),
            );
            free_from = start + text.chars().count() as f64 * 6.4 + 6.0;
        }
    }
    svg.push_str("</svg>");
    Some(svg)
}

/// The statistics that are marked in a large distribution.
pub(crate) fn marks(figure: &Figure) -> impl Iterator<Item = (&'static str, f64)> {
    let marks = [("median", figure.median), ("99 %", figure.p99), ("99.9 %", figure.p999), ("max", figure.max)];
    marks.into_iter().filter_map(|(name, value)| Some((name, value?)))
}

/// Heights from 0 to 1. They grow with the square root of the count, so that a single distant sample is visible.
fn heights(figure: &Figure, range: &Range, count: usize) -> Option<Vec<f64>> {
    let histogram = figure.histogram.as_ref().filter(|histogram| range.resolves(histogram))?;
    let bins = range.bins(histogram, count);
    let top = bins.iter().copied().fold(0.0, f64::max);
    (top > 0.0).then(|| bins.iter().map(|bin| (bin / top).sqrt()).collect())
}

/// The bars as one shape; a bar that is not empty is at least one unit high.
fn bars(svg: &mut String, heights: &[f64], left: f64, width: f64, bottom: f64, tallest: f64) {
    let step = width / heights.len() as f64;
    let mut path = String::new();
    for (i, height) in heights.iter().enumerate().filter(|(_, height)| **height > 0.0) {
        let x = coordinate(left + i as f64 * step);
        let (across, up) = (coordinate((step * 0.86).max(step - 1.0)), coordinate((height * tallest).max(1.0)));
        let _ = write!(path, "M{x},{bottom}v-{up}h{across}v{up}z");
    }
    write(svg, format_args!("<path class=\"bars\" d=\"{path}\"/>"));
}

/// Writing to a string cannot fail.
fn write(svg: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = svg.write_fmt(text);
}
