//! A plot in letters: one letter for each line, decades marked on both axes.

use unicode_width::UnicodeWidthStr;

use super::page::{Ink, Page, flush_right};
use crate::render::axes::{Scale, points_beyond};
use crate::render::clean::clean;
use crate::{Point, Series, SeriesLine};

/// Rows of the plot; plot, axis and legend fit the usual 24 lines of a terminal.
const HEIGHT: usize = 17;
/// The greatest width; beyond it the points are too far apart.
const WIDTH_MAX: usize = 100;
/// The marker for several lines at one point.
const SEVERAL: char = '*';

/// The marker of fitted lines.
const FITTED: char = '·';

/// A plot with its heading and its legend.
pub(crate) fn plot(page: &mut Page, series: &Series) {
    page.beside(Ink::Heading, &series.title, &series.id);
    let (Some(horizontal), Some(vertical)) = (Scale::horizontal(series), Scale::vertical(series)) else {
        page.wrapped(Ink::Missing, 2, 4, "absent: there is no point to draw");
        return;
    };
    let marks = vertical.ticks();
    let margin = marks.iter().map(|(_, label)| label.width()).max().unwrap_or(0);
    let width = (page.width - 2 - margin - 3).min(WIDTH_MAX);
    let column = |x: f64| (horizontal.position(x) * (width - 1) as f64).round() as usize;
    let row = |y: f64| HEIGHT - 1 - (vertical.position(y) * (HEIGHT - 1) as f64).round() as usize;

    let mut cells = vec![vec![' '; width]; HEIGHT];
    let lines: Vec<&SeriesLine> = series.lines.iter().filter(|line| !line.fitted).collect();
    for point in series.lines.iter().filter(|line| line.fitted).flat_map(|line| &line.points).filter(|p| is_finite(p)) {
        cells[row(point.y)][column(point.x)] = FITTED;
    }
    for (line, marker) in lines.iter().zip(markers()) {
        for point in line.points.iter().filter(|p| is_finite(p)) {
            let cell = &mut cells[row(point.y)][column(point.x)];
            *cell = if *cell == ' ' || *cell == FITTED || *cell == marker { marker } else { SEVERAL };
        }
    }
    page.line(&[(Ink::Dim, &format!("  {}", clean(&series.y.label)))]);
    for (i, cells) in cells.iter().enumerate() {
        let label = marks.iter().find(|(value, _)| row(*value) == i).map(|(_, label)| label.as_str());
        let axis =
            format!("  {} {} ", flush_right(label.unwrap_or(""), margin), if label.is_some() { '┤' } else { '│' });
        let cells: String = cells.iter().collect();
        page.line(&[(Ink::Dim, &axis), (Ink::Plain, &cells)]);
    }
    let (axis, labels) = foot(&horizontal, width, column);
    let indent = " ".repeat(2 + margin);
    page.line(&[(Ink::Dim, &format!("{indent} └─{axis}"))]);
    page.line(&[(Ink::Dim, &format!("{indent}   {labels}"))]);
    page.line(&[(Ink::Dim, &format!("{indent}   {}", flush_right(&clean(&series.x.label), width)))]);
    let legend: Vec<String> = lines.iter().zip(markers()).map(|(l, m)| format!("{m} {}", clean(&l.name))).collect();
    let fitted = if lines.len() < series.lines.len() { format!(" · {FITTED} fitted") } else { String::new() };
    page.wrapped(Ink::Plain, 2, 2, &format!("{} · {SEVERAL} several lines{fitted}", legend.join(" · ")));
    match points_beyond(series, &vertical) {
        0 => {}
        1 => page.wrapped(Ink::Dim, 2, 2, "1 point at or below zero is drawn on the lower edge"),
        count => page.wrapped(Ink::Dim, 2, 2, &format!("{count} points at or below zero are drawn on the lower edge")),
    }
}

fn is_finite(point: &Point) -> bool {
    point.x.is_finite() && point.y.is_finite()
}

/// A, B, C …, then again from the beginning.
fn markers() -> impl Iterator<Item = char> {
    ('A'..='Z').chain('a'..='z').cycle()
}

/// The horizontal axis with its marks, and the labels that fit below it.
fn foot(scale: &Scale, width: usize, column: impl Fn(f64) -> usize) -> (String, String) {
    let mut axis = vec!['─'; width];
    let mut labels = String::new();
    for (value, label) in scale.ticks() {
        let at = column(value);
        axis[at] = '┬';
        let start = at.saturating_sub(label.width() / 2).min(width.saturating_sub(label.width()));
        if labels.is_empty() || start > labels.width() {
            labels.push_str(&" ".repeat(start - labels.width()));
            labels.push_str(&label);
        }
    }
    (axis.into_iter().collect(), labels)
}
