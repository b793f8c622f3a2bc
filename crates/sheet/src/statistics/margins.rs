//! The null region and the margin of *same*.

use schemars::JsonSchema;
use serde::Serialize;

use super::Scale;
use crate::Unit;

/// The change of a median by the layout of code and data alone (Mytkowicz and others, 2009; Curtsinger and Berger,
/// 2013).
const LAYOUT: f64 = 0.02;

/// Medians that differ by less than this are the same for most purposes.
const SAME: f64 = 0.05;

/// The margins of one row, on the scale of its difference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Margins {
    /// A true difference up to this one is not a finding.
    pub null: f64,
    /// A true difference below this one is *the same*.
    pub same: f64,
}

impl Margins {
    /// The margins of a row: for ratios 2 % and 5 %, or `same` in place of the 5 %; but at least one and two steps of
    /// the counter. Rows that can be 0 or less have absolute margins: 5 and 20 ns, 0.1 and 0.5 ppm, 0.1 and 0.5 % of
    /// the whole. `None` for other units on the linear scale, which have no verdict.
    ///
    /// `values` are the two centres that are compared; the smaller one sets the size of a step.
    pub fn of(unit: Unit, scale: Scale, values: [f64; 2], quantum: Option<f64>, same: Option<f64>) -> Option<Self> {
        let (null, same) = match (scale, unit) {
            (Scale::Log, _) => (LAYOUT.ln_1p(), same.unwrap_or(SAME).ln_1p()),
            (Scale::Linear, Unit::Ns) => (5.0, 20.0),
            (Scale::Linear, Unit::Ppm) => (0.1, 0.5),
            (Scale::Linear, Unit::Ratio) => (0.001, 0.005),
            (Scale::Linear, _) => return None,
        };
        let step = quantum.filter(|q| *q > 0.0).map_or(0.0, |quantum| scale.step(quantum, values[0].min(values[1])));
        let two_steps = quantum.filter(|q| *q > 0.0).map_or(0.0, |q| scale.step(2.0 * q, values[0].min(values[1])));
        Some(Self { null: null.max(step), same: same.max(two_steps) })
    }
}
