//! Pulses drawn over each other, aligned at their rising edges, as an oscilloscope with a long memory shows them.
//!
//! It is plain data: how long each pulse was up, within bounds, and of which kind it is. Which kinds there are, and what makes
//! a pulse one of them, is for whoever has made or seen the pulses.

use std::fmt;

/// One drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlay {
    /// What was watched, in a few words.
    pub title: String,
    /// The kinds, 1 to 4, the usual one first; their names go into the legend, with how many there are of each.
    pub kinds: Vec<String>,
    /// The pulses, in any order; at least one.
    pub pulses: Vec<Overlaid>,
    /// Widths that are marked, for instance the one that was asked for; at most 4, positive.
    pub markers_ns: Vec<f64>,
}

/// A pulse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overlaid {
    /// It was up for at least so long; not negative.
    pub at_least_ns: f64,
    /// And at most so long; not less than that.
    pub at_most_ns: f64,
    /// Index of its kind, from 0 for the first.
    pub kind: usize,
}

/// The most kinds of a drawing: there are so many colours that are told apart.
pub const KINDS_MAX: usize = 4;
/// The most markers of a drawing.
pub const MARKERS_MAX: usize = 4;

/// Why pulses cannot be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverlayError {
    /// There are no pulses.
    NoPulses,
    /// There are no kinds, or too many, or a pulse is of one that is not there.
    Kinds,
    /// Bounds or a marker are no widths, or there are too many markers.
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
    /// When a number or a bound is beyond its limits.
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
