//! Pulses drawn over each other, aligned at their rising edges, as an oscilloscope with a long memory shows them.
//!
//! It is plain data: how long each pulse was high, within bounds, and its kind. The caller, which has made or seen the
//! pulses, defines the kinds.

use std::fmt;

/// One drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlay {
    /// A short description.
    pub title: String,
    /// The kinds, 1 to 4, the usual one first; the legend has their names and counts.
    pub kinds: Vec<String>,
    /// The pulses, in any order; at least one.
    pub pulses: Vec<Overlaid>,
    /// Marked widths, for instance the requested one; at most 4, positive.
    pub markers_ns: Vec<f64>,
}

/// A pulse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overlaid {
    /// The least width; not negative.
    pub at_least_ns: f64,
    /// The greatest width; not less than the least.
    pub at_most_ns: f64,
    /// Index of its kind, from 0 for the first.
    pub kind: usize,
}

/// The most kinds of a drawing, which is the number of distinguishable colours.
pub(crate) const KINDS_MAX: usize = 4;
/// The most markers of a drawing.
pub const MARKERS_MAX: usize = 4;

/// Why pulses cannot be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverlayError {
    /// There are no pulses.
    NoPulses,
    /// There are no kinds, or too many, or a pulse has an unknown kind.
    Kinds,
    /// Bounds or a marker are not widths, or there are too many markers.
    Widths,
}

impl fmt::Display for OverlayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoPulses => "draw no pulses: there must be one at least",
            Self::Kinds => "draw these kinds of pulses: there must be 1 to 4, and each pulse of one of them",
            Self::Widths => "draw these widths: bounds must be finite and in order, and markers, at most 4, positive",
        })
    }
}

impl std::error::Error for OverlayError {}

impl Overlay {
    /// Whether it can be drawn.
    ///
    /// # Errors
    /// A number or a bound is beyond its limits.
    pub fn check(&self) -> Result<(), OverlayError> {
        if self.pulses.is_empty() {
            return Err(OverlayError::NoPulses);
        }
        let kinds = self.kinds.len();
        if !(1..=KINDS_MAX).contains(&kinds) || self.pulses.iter().any(|pulse| pulse.kind >= kinds) {
            return Err(OverlayError::Kinds);
        }
        let is_bounded = |pulse: &Overlaid| {
            pulse.at_least_ns >= 0.0 && pulse.at_least_ns <= pulse.at_most_ns && pulse.at_most_ns.is_finite()
        };
        let is_width = |marker: &f64| marker.is_finite() && *marker > 0.0;
        let fits = self.pulses.iter().all(is_bounded) && self.markers_ns.iter().all(is_width);
        if fits && self.markers_ns.len() <= MARKERS_MAX { Ok(()) } else { Err(OverlayError::Widths) }
    }
}
