//! Pulses drawn over each other: all of them in full, and below, if that shows more, the falling edges of the usual
//! ones enlarged.
//!
//! A falling edge leads from the least width at the top to the greatest at the bottom: its slope shows the uncertainty.
//! Below the edges a density shows how many fell where. The file is self-contained, and follows the reader's light or
//! dark scheme.
//!
//! Problem: labels of close markers would overlap. Solution: each label goes into a row below those that would overlap
//! it from the left.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::markup::{coordinate, escaped};
use crate::Unit;
use crate::overlay::{Overlaid, Overlay, OverlayError};
use crate::render::axes::Scale;
use crate::render::quantity::{grouped, quantity, quantity_with_digits};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 24.0;
const RIGHT: f64 = 24.0;
const TITLE: f64 = 30.0;
/// One line of the legend, and one row of marker labels.
const ROW: f64 = 19.0;
/// Height of the pulses, of the densities under them, and of the labels of the axis.
const PULSE: f64 = 110.0;
const DENSITY: f64 = 46.0;
const AXIS: f64 = 26.0;
/// Height of a panel's name, and the space below a drawing.
const NAME: f64 = 26.0;
const GAP: f64 = 20.0;
/// Approximate width of a character in labels.
const CHARACTER: f64 = 6.9;
/// The most edges of one kind that are drawn; of more, only the densities show those in between.
const EDGES_MOST: usize = 1500;
/// The least number of pulses for densities.
const DENSITY_LEAST: usize = 20;
/// Bins of a density.
const BINS: usize = 228;
/// The edges are enlarged if they take less than this part of the full width.
const ENLARGED_BELOW: f64 = 0.35;
/// Ticks count from the first marker if the enlarged range is less than this part of it.
const RELATIVE_BELOW: f64 = 0.2;

const STYLE: &str = "
:root { color-scheme: light dark; }
svg { --paper: #fff; --ink: #16191d; --soft: #5a636e; --line: #d9dde2; --mark: #16191d;
  --c0: #14507d; --c1: #c2410c; --c2: #7a3e9d; --c3: #2f7d4f; font: 13px system-ui, \"Segoe UI\", sans-serif; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #14171a; --ink: #e4e7ea; --soft: #a4adb7; --line: #31373e; --mark: #e4e7ea;
    --c0: #78b4e6; --c1: #ff9a62; --c2: #c99be6; --c3: #72c796; }
}
.paper { fill: var(--paper); }
text { fill: var(--ink); }
.title { font-size: 16px; font-weight: 650; }
.soft { fill: var(--soft); font-size: 12px; }
.label { paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }
.grid { stroke: var(--line); fill: none; }
.axis { stroke: var(--soft); fill: none; }
.mark { stroke: var(--mark); stroke-dasharray: 4 3; fill: none; }
.k0 { --c: var(--c0); } .k1 { --c: var(--c1); } .k2 { --c: var(--c2); } .k3 { --c: var(--c3); }
.edge { stroke: var(--c); fill: none; stroke-opacity: .45; }
.level { stroke: var(--c); fill: none; stroke-width: 1.5; }
.fill { fill: var(--c); }
";

/// Draws them one below the other, as one SVG file; an empty list gives a text instead of drawings.
///
/// # Errors
/// One of them cannot be drawn.
pub fn overlays(drawings: &[Overlay]) -> Result<String, OverlayError> {
    let mut body = String::new();
    let mut top = GAP;
    for drawing in drawings {
        drawing.check()?;
        top = self::drawing(&mut body, drawing, top) + GAP;
    }
    if drawings.is_empty() {
        top += 14.0;
        write(&mut body, format_args!("<text x=\"{LEFT}\" y=\"{top}\">no pulses</text>\n"));
        top += GAP;
    }
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {0}\" width=\"{WIDTH}\" height=\"{0}\" role=\"img\">\n\
         <style>{STYLE}</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n{body}</svg>\n",
        coordinate(top)
    ))
}

/// A range of widths, and its place in the drawing.
struct Range {
    from: f64,
    to: f64,
}

impl Range {
    fn place(&self, width: f64) -> f64 {
        LEFT + ((width - self.from) / (self.to - self.from)).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn holds(&self, width: f64) -> bool {
        (self.from..=self.to).contains(&width)
    }
}

/// Returns the lower end.
fn drawing(svg: &mut String, drawing: &Overlay, top: f64) -> f64 {
    let count = grouped(&drawing.pulses.len().to_string());
    let mut y = top + 14.0;
    write(svg, format_args!("<text class=\"title\" x=\"{LEFT}\" y=\"{y}\">{}</text>\n", escaped(&drawing.title)));
    let noun = if drawing.pulses.len() == 1 { "pulse" } else { "pulses" };
    let what = format!("{count} {noun}, aligned at the rising edge");
    let end = WIDTH - RIGHT;
    write(svg, format_args!("<text class=\"soft\" x=\"{end}\" y=\"{y}\" text-anchor=\"end\">{what}</text>\n"));
    y = top + TITLE;
    for (kind, name) in drawing.kinds.iter().enumerate() {
        let told = legend(drawing, kind, name);
        let middle = y + 5.0;
        write(svg, format_args!("<path class=\"level k{kind}\" d=\"M{LEFT},{middle}h22\"/>"));
        write(svg, format_args!("<text x=\"{}\" y=\"{}\">{}</text>\n", LEFT + 30.0, y + 10.0, escaped(&told)));
        y += ROW;
    }
    let whole = whole(drawing);
    let edges = edges(drawing).filter(|edges| edges.to - edges.from < (whole.to - whole.from) * ENLARGED_BELOW);
    y = panel(svg, drawing, &whole, edges.as_ref().map(|_| "all of them, whole"), y);
    match edges {
        Some(edges) => panel(svg, drawing, &edges, Some("the falling edges of the usual ones, enlarged"), y),
        None => y,
    }
}

/// Name, count and widths of a kind.
fn legend(drawing: &Overlay, kind: usize, name: &str) -> String {
    let of_kind: Vec<&Overlaid> = drawing.pulses.iter().filter(|pulse| pulse.kind == kind).collect();
    let least = of_kind.iter().map(|pulse| pulse.at_least_ns).fold(f64::INFINITY, f64::min);
    let most = of_kind.iter().map(|pulse| pulse.at_most_ns).fold(0.0, f64::max);
    match of_kind.len() {
        0 => format!("0 {name}"),
        count => {
            let (least, most) = (quantity(least, Unit::Ns), quantity(most, Unit::Ns));
            format!("{} {name}: from at least {least} to at most {most}", grouped(&count.to_string()))
        }
    }
}

/// The range that holds every pulse and every marker.
fn whole(drawing: &Overlay) -> Range {
    let pulses = drawing.pulses.iter().map(|pulse| pulse.at_most_ns);
    let longest = pulses.chain(drawing.markers_ns.iter().copied()).fold(1.0, f64::max);
    Range { from: -0.08 * longest, to: 1.08 * longest }
}

/// The range of the falling edges of the usual kind without the first and the last fiftieth, with the markers nearby.
fn edges(drawing: &Overlay) -> Option<Range> {
    let usual = || drawing.pulses.iter().filter(|pulse| pulse.kind == 0);
    let (mut begins, mut ends): (Vec<f64>, Vec<f64>) =
        usual().map(|pulse| (pulse.at_least_ns, pulse.at_most_ns)).unzip();
    begins.sort_by(f64::total_cmp);
    ends.sort_by(f64::total_cmp);
    let first = *begins.get(begins.len() / 50)?;
    let last = *ends.get(ends.len() - 1 - ends.len() / 50)?;
    let span = (last - first).max(1.0);
    let near = drawing.markers_ns.iter().filter(|marker| **marker > first - 3.0 * span && **marker < last + 3.0 * span);
    let (from, to) = near.fold((first, last), |(from, to), marker| (from.min(*marker), to.max(*marker)));
    let margin = (to - from).max(1.0) * 0.08;
    Some(Range { from: from - margin, to: to + margin })
}

/// The pulses in a range, the densities of their edges, the markers and the axis. Returns the lower end.
fn panel(svg: &mut String, drawing: &Overlay, range: &Range, name: Option<&str>, top: f64) -> f64 {
    let mut y = top;
    if let Some(name) = name {
        write(svg, format_args!("<text class=\"soft\" x=\"{LEFT}\" y=\"{}\">{name}</text>\n", y + 18.0));
        y += NAME;
    }
    let labels = marker_rows(drawing, range);
    let high = y + 8.0 + ROW * labels.iter().map(|(_, row, _)| row + 1).max().unwrap_or(0) as f64;
    let low = high + PULSE;
    let is_dense = drawing.pulses.len() >= DENSITY_LEAST;
    let bottom = low + if is_dense { 10.0 + DENSITY } else { 8.0 };
    axis(svg, drawing, range, high, bottom);
    let of_kind =
        |kind: usize| -> Vec<&Overlaid> { drawing.pulses.iter().filter(|pulse| pulse.kind == kind).collect() };
    // Draws usual pulses on top, but unusual edges above usual ones.
    for kind in (0..drawing.kinds.len()).rev() {
        levels_of(svg, &of_kind(kind), kind, range, high, low);
    }
    for kind in 0..drawing.kinds.len() {
        edges_of(svg, &of_kind(kind), kind, range, high, low);
    }
    if is_dense {
        densities(svg, drawing, range, bottom);
    }
    for (marker, row, label) in labels {
        let x = coordinate(range.place(marker));
        let baseline = y + ROW * row as f64 + 14.0;
        write(svg, format_args!("<path class=\"mark\" d=\"M{x},{}V{bottom}\"/>", baseline + 4.0));
        let at = (range.place(marker) + 4.0).min(WIDTH - length(&label));
        write(
            svg,
            format_args!(
                "<text class=\"label\" x=\"{}\" y=\"{baseline}\">{}</text>\n",
                coordinate(at),
                escaped(&label)
            ),
        );
    }
    bottom + AXIS
}

/// The markers in the range with their labels. A label goes below every label on the left that reaches its line, so
/// that no marker line crosses a label.
fn marker_rows(drawing: &Overlay, range: &Range) -> Vec<(f64, usize, String)> {
    let mut markers: Vec<f64> = drawing.markers_ns.iter().copied().filter(|marker| range.holds(*marker)).collect();
    markers.sort_by(f64::total_cmp);
    markers.dedup();
    let mut placed: Vec<(f64, usize, String)> = Vec::new();
    for marker in markers {
        let end = |(left, _, label): &(f64, usize, String)| range.place(*left) + 10.0 + length(label);
        let reaching = placed.iter().filter(|left| end(left) > range.place(marker));
        let row = reaching.map(|(_, row, _)| row + 1).max().unwrap_or(0);
        placed.push((marker, row, exact(marker)));
    }
    placed
}

/// A width with all its digits.
fn exact(width: f64) -> String {
    quantity_with_digits(width, Unit::Ns, 12).trimmed().to_string()
}

/// The approximate width of a label.
fn length(label: &str) -> f64 {
    label.chars().count() as f64 * CHARACTER
}

fn axis(svg: &mut String, drawing: &Overlay, range: &Range, top: f64, bottom: f64) {
    let origin = drawing
        .markers_ns
        .first()
        .copied()
        .filter(|marker| range.holds(*marker) && range.to - range.from < marker * RELATIVE_BELOW);
    let from_origin = origin.unwrap_or(0.0);
    let ticks = Scale::spanning(Unit::Ns, range.from - from_origin, range.to - from_origin).ticks();
    let step = ticks.windows(2).map(|pair| pair[1].0 - pair[0].0).next().unwrap_or(1.0);
    // Enough digits to distinguish neighbours.
    let digits = |value: f64| (value.abs() / step).max(1.0).log10() as usize + 2;
    for (value, _) in ticks {
        let x = range.place(value + from_origin);
        let label = quantity_with_digits(value, Unit::Ns, digits(value)).trimmed().to_string();
        let label = match origin {
            Some(marker) if value == 0.0 => exact(marker),
            Some(_) if value > 0.0 => format!("+{label}"),
            _ => label,
        };
        let half = length(&label) / 2.0;
        write(svg, format_args!("<path class=\"grid\" d=\"M{0},{top}V{bottom}\"/>", coordinate(x)));
        // The marks are too few to overlap, but one can be at the very end.
        let (x, y) = (coordinate(x.clamp(half, WIDTH - half)), bottom + 17.0);
        write(
            svg,
            format_args!(
                "<text class=\"soft\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{}</text>\n",
                escaped(&label)
            ),
        );
    }
    write(svg, format_args!("<path class=\"axis\" d=\"M{LEFT},{bottom}H{}\"/>\n", WIDTH - RIGHT));
}

/// The levels of a pulse, without its falling edges.
fn levels_of(svg: &mut String, of_kind: &[&Overlaid], kind: usize, range: &Range, high: f64, low: f64) {
    let Some(longest) = of_kind.iter().map(|pulse| pulse.at_least_ns).reduce(f64::max) else { return };
    let first_down = of_kind.iter().map(|pulse| pulse.at_most_ns).fold(f64::INFINITY, f64::min);
    let (begin, end, right) = (range.place(0.0), range.place(longest), WIDTH - RIGHT);
    let mut levels = String::new();
    if range.holds(0.0) {
        let _ = write!(levels, "M{LEFT},{low}H{0}V{high}", coordinate(begin));
    } else {
        let _ = write!(levels, "M{LEFT},{high}");
    }
    let _ = write!(levels, "H{}", coordinate(end));
    if first_down < range.to {
        let _ = write!(levels, "M{},{low}H{right}", coordinate(range.place(first_down)));
    }
    write(svg, format_args!("<path class=\"level k{kind}\" d=\"{levels}\"/>\n"));
}

/// The falling edges that pass through the range. Edges on the same tenths of a unit are merged.
fn edges_of(svg: &mut String, of_kind: &[&Overlaid], kind: usize, range: &Range, high: f64, low: f64) {
    let tenths = |value: f64| (value * 10.0).round() as i64;
    let ends = |pulse: &&Overlaid| {
        let (least, most) = (pulse.at_least_ns, pulse.at_most_ns);
        // An edge is cut where it leaves the range.
        let down =
            |width: f64| if most > least { low.min(high + (width - least) / (most - least) * PULSE) } else { low };
        let [begin, end] = [least.max(range.from), most.min(range.to)];
        let top = if begin > least { down(begin) } else { high };
        let bottom = if end < most { down(end) } else { low };
        (begin <= end).then(|| [range.place(begin), top, range.place(end), bottom].map(tenths))
    };
    let edges: BTreeSet<[i64; 4]> = of_kind.iter().filter_map(ends).collect();
    let every = edges.len().div_ceil(EDGES_MOST).max(1);
    let mut path = String::new();
    for edge in edges.iter().step_by(every) {
        let [begin, top, end, bottom] = edge.map(|tenths| coordinate(tenths as f64 / 10.0));
        let _ = write!(path, "M{begin},{top}L{end},{bottom}");
    }
    write(svg, format_args!("<path class=\"edge k{kind}\" d=\"{path}\"/>\n"));
}

/// The density of edges: the square root of the count, so that a single one is visible beside thousands.
fn densities(svg: &mut String, drawing: &Overlay, range: &Range, bottom: f64) {
    let kinds = drawing.kinds.len();
    let mut bins = vec![[0_u32; crate::overlay::KINDS_MAX]; BINS];
    for pulse in &drawing.pulses {
        let middle = f64::midpoint(pulse.at_least_ns, pulse.at_most_ns);
        if range.holds(middle) {
            let bin = ((middle - range.from) / (range.to - range.from) * BINS as f64) as usize;
            bins[bin.min(BINS - 1)][pulse.kind] += 1;
        }
    }
    let tallest = bins.iter().map(|bin| bin.iter().sum::<u32>()).max().unwrap_or(0).max(1);
    let step = (WIDTH - LEFT - RIGHT) / BINS as f64;
    for kind in 0..kinds {
        let mut path = String::new();
        for (number, bin) in bins.iter().enumerate().filter(|(_, bin)| bin[kind] > 0) {
            let height = |count: u32| (f64::from(count) / f64::from(tallest)).sqrt() * (DENSITY - 4.0);
            let below: u32 = bin[..kind].iter().sum();
            let (from, to) = (height(below), height(below + bin[kind]).max(height(below) + 2.0));
            let x = coordinate(LEFT + number as f64 * step);
            let (across, up) = (coordinate(step - 0.6), coordinate(to - from));
            let _ = write!(path, "M{x},{}v-{up}h{across}v{up}z", coordinate(bottom - from));
        }
        write(svg, format_args!("<path class=\"fill k{kind}\" d=\"{path}\"/>\n"));
    }
}

/// Writing to a string cannot fail.
fn write(svg: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = svg.write_fmt(text);
}
