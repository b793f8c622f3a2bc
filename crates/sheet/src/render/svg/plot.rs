//! A series as a plot: decades marked and ruled, each line with its own colour and marker, its range as a light band.

use std::fmt::Write;

use super::STYLES;
use super::markup::{coordinate, escaped, marker};
use crate::render::axes::Scale;
use crate::{Point, Series, SeriesLine};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
/// Room for the labels of the axes.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 44.0;

/// The plot, or `None` when there is no point to draw.
pub(crate) fn plot(series: &Series) -> Option<String> {
    let (horizontal, vertical) = (Scale::horizontal(series)?, Scale::vertical(series)?);
    let mut svg = format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escaped(&series.title)
    );
    frame(&mut svg, series, &horizontal, &vertical);
    let place = |x, y| (across(&horizontal, x), upward(&vertical, y));
    let styles = styles(series);
    for (style, line) in styles.iter().zip(&series.lines) {
        band(&mut svg, *style, line, place);
    }
    for (style, line) in styles.iter().zip(&series.lines) {
        self::line(&mut svg, *style, line, place);
    }
    svg.push_str("</svg>");
    Some(svg)
}

/// The style of each line: a fitted line has the style of its data.
pub(crate) fn styles(series: &Series) -> Vec<usize> {
    let mut next = 0;
    let style = |line: &SeriesLine| {
        next += usize::from(!line.fitted);
        next.saturating_sub(1) % STYLES
    };
    series.lines.iter().map(style).collect()
}

fn across(scale: &Scale, x: f64) -> f64 {
    LEFT + scale.position(x) * (WIDTH - LEFT - RIGHT)
}

fn upward(scale: &Scale, y: f64) -> f64 {
    HEIGHT - BOTTOM - scale.position(y) * (HEIGHT - TOP - BOTTOM)
}

fn frame(svg: &mut String, series: &Series, horizontal: &Scale, vertical: &Scale) {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    for (value, label) in vertical.ticks() {
        let y = coordinate(upward(vertical, value));
        write(svg, format_args!("<path class=\"grid\" d=\"M{LEFT},{y}H{right}\"/>"));
        write(
            svg,
            format_args!(
                "<text class=\"tick\" x=\"{}\" y=\"{y}\" dy=\".32em\" text-anchor=\"end\">{label}</text>",
                LEFT - 8.0
            ),
        );
    }
    for (value, label) in horizontal.ticks() {
        let x = coordinate(across(horizontal, value));
        write(svg, format_args!("<path class=\"grid\" d=\"M{x},{TOP}V{bottom}\"/>"));
        write(
            svg,
            format_args!(
                "<text class=\"tick\" x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                bottom + 17.0
            ),
        );
    }
    write(svg, format_args!("<path class=\"axis\" d=\"M{LEFT},{TOP}V{bottom}H{right}\"/>"));
    let (x, y) = (escaped(&series.x.label), escaped(&series.y.label));
    write(svg, format_args!("<text class=\"name\" x=\"{LEFT}\" y=\"14\" text-anchor=\"start\">{y}</text>"));
    write(
        svg,
        format_args!("<text class=\"name\" x=\"{right}\" y=\"{}\" text-anchor=\"end\">{x}</text>", HEIGHT - 8.0),
    );
}

/// From the least to the greatest value at each point that has both.
fn band(svg: &mut String, style: usize, line: &SeriesLine, place: impl Fn(f64, f64) -> (f64, f64)) {
    let ranges: Vec<(f64, f64, f64)> = finite(line).filter_map(|p| Some((p.x, p.low?, p.high?))).collect();
    if ranges.len() < 2 {
        return;
    }
    let corner = |(x, y): (f64, f64)| format!("{},{}", coordinate(x), coordinate(y));
    let upper = ranges.iter().map(|(x, _, high)| corner(place(*x, *high)));
    let lower = ranges.iter().rev().map(|(x, low, _)| corner(place(*x, *low)));
    let corners: Vec<String> = upper.chain(lower).collect();
    write(svg, format_args!("<polygon class=\"band s{style}\" points=\"{}\"/>", corners.join(" ")));
}

fn line(svg: &mut String, style: usize, line: &SeriesLine, place: impl Fn(f64, f64) -> (f64, f64)) {
    let places: Vec<(f64, f64)> = finite(line).map(|p| place(p.x, p.y)).collect();
    let corners: Vec<String> = places.iter().map(|(x, y)| format!("{},{}", coordinate(*x), coordinate(*y))).collect();
    let fitted = if line.fitted { " fit" } else { "" };
    write(svg, format_args!("<polyline class=\"l{fitted} s{style}\" points=\"{}\"/>", corners.join(" ")));
    for (x, y) in places.into_iter().filter(|_| !line.fitted) {
        svg.push_str(&marker(style, x, y));
    }
}

fn finite(line: &SeriesLine) -> impl Iterator<Item = &Point> {
    line.points.iter().filter(|p| p.x.is_finite() && p.y.is_finite())
}

/// Writing to a string cannot fail.
fn write(svg: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = svg.write_fmt(text);
}
