//! The first page of a sheet: characteristics of the machine in twenty lines, its limits, and missing measurements.
//!
//! A crate that knows the meaning of the rows writes the summary; the sheet stores it and the renderings show it first.
//! Every line names its rows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Unit;

/// The first page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SheetSummary {
    /// The characteristics of the machine, as in a data sheet.
    pub characteristics: Vec<Characteristic>,
    /// Its limits, the costliest first.
    pub findings: Vec<Finding>,
    /// Missing measurements, those with the most rows first.
    pub not_measured: Vec<NotMeasured>,
}

/// One line of the data sheet. All numbers are in `unit`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Characteristic {
    /// Its label, for people.
    pub label: String,
    /// The row of its figure.
    pub row: String,
    /// The unit of the numbers.
    pub unit: Unit,
    /// Whether the numbers are lateness; they are shown with a sign.
    pub lateness: bool,
    /// The median.
    pub typical: Option<f64>,
    /// The 99th percentile; null with too few samples.
    pub p99: Option<f64>,
    /// The worst sample: the greatest time, the least rate. Null with only one value.
    pub worst: Option<f64>,
    /// How many samples there are.
    pub watched: u64,
    /// The conditions, in a few words.
    pub conditions: String,
}

/// A limit of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The limit and its cost, in a sentence.
    pub text: String,
    /// The rows that show it.
    pub rows: Vec<String>,
    /// The remedy; the exact command if there is one.
    pub remedy: String,
    /// The gain from the remedy when it was tried, or why it was not tried.
    pub effect: String,
}

/// Rows without figures that share a remedy or, without a remedy, a reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotMeasured {
    /// Their subjects: titles of their tables.
    pub what: String,
    /// How many rows they are.
    pub rows: u64,
    /// The reason for the absence of the first of them.
    pub reason: String,
    /// The remedy; null if there is none.
    pub remedy: Option<String>,
}
