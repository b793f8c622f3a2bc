//! A plot: lines over two axes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Unit;

/// A plot: its axes and its lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Stable id, `chapter.subject`.
    pub id: String,
    /// The heading of the plot.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines, in the order of their legend.
    pub lines: Vec<SeriesLine>,
}

/// One axis of a plot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// The quantity, without the unit.
    pub label: String,
    /// Its unit.
    pub unit: Unit,
    /// Whether it is logarithmic.
    pub log: bool,
}

/// One line of a plot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Line")]
pub struct SeriesLine {
    /// Its name in the legend.
    pub name: String,
    /// Its points, ascending in `x`.
    pub points: Vec<Point>,
    /// Whether it was fitted to the line before it: then it is drawn without marks, in the other's colour.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fitted: bool,
}

/// One point, with its range if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Position on the horizontal axis.
    pub x: f64,
    /// Position on the vertical axis (a median if there is a range).
    pub y: f64,
    /// The least value seen at this `x`; null for a single sample.
    pub low: Option<f64>,
    /// The greatest value seen at this `x`; null for a single sample.
    pub high: Option<f64>,
}
