//! The first page of a sheet: what the machine does in twenty lines, what limits it, and what was not measured.
//!
//! Whoever knows what the rows mean writes the summary; the sheet keeps it and the renderings show it first. Every line names the rows
//! that it rests on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Unit;

/// The first page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SheetSummary {
    /// What the machine does, as engineers read data sheets.
    pub characteristics: Vec<Characteristic>,
    /// What limits it, the costliest first.
    pub findings: Vec<Finding>,
    /// What could not be measured, the most rows first.
    pub not_measured: Vec<NotMeasured>,
}

/// One line of the data sheet. All numbers are in `unit`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Characteristic {
    /// What it is, for people.
    pub label: String,
    /// The row that it comes from.
    pub row: String,
    /// The unit of the numbers.
    pub unit: Unit,
    /// Whether the numbers say how much later than asked something came; they are shown with a sign.
    pub lateness: bool,
    /// The median.
    pub typical: Option<f64>,
    /// The 99th percentile; null where there are too few samples.
    pub p99: Option<f64>,
    /// The worst sample: the greatest time, the least rate. Null where there is one value only.
    pub worst: Option<f64>,
    /// How many samples there are.
    pub watched: u64,
    /// Under which conditions, in a few words.
    pub conditions: String,
}

/// Something that limits the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What it is and what it costs, in a sentence.
    pub text: String,
    /// The rows that show it.
    pub rows: Vec<String>,
    /// What to do; the very command where there is one.
    pub remedy: String,
    /// What the remedy brought when it was tried, or why it was not tried.
    pub effect: String,
}

/// Rows without figures that have the same remedy or, where there is none, the same reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotMeasured {
    /// What they are about: titles of their tables.
    pub what: String,
    /// How many rows they are.
    pub rows: u64,
    /// Why the first of them has no figure.
    pub reason: String,
    /// What would bring them; null where nothing helps.
    pub remedy: Option<String>,
}
