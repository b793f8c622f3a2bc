//! The difference between two sides of a figure, and its tests.
//!
//! Problem: two medians are never equal, and most differences between two measurements mean nothing. Solution: a
//! difference has a standard error from the variation between units (rounds or sheets), and with it a Student's t.
//! Three tests follow: is it beyond the null region, is it inside the margin of equivalence, and if neither, which
//! difference would have been detected.
//!
//! Conditions: the units of a side are alike and independent. Rounds of two consecutive measurements are not: the
//! machine drifts between them, and these tests cannot see that.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Scale, Units, student_t_quantile, student_t_tail};

/// Fewer pairs than this are compared as two groups: the lost degrees of freedom cost more than pairing gains.
pub const PAIRS_MIN: usize = 5;

/// The power behind "could have been shown": such a difference is found in four of five comparisons.
const MISSED: f64 = 0.2;

/// The most units that are advised.
const UNITS_MAX: f64 = 1000.0;

/// The other side less the baseline, on a scale, with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// The scale of the two numbers that follow.
    pub scale: Scale,
    /// The other side less the baseline.
    pub estimate: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// The degrees of freedom of the standard error.
    pub degrees: f64,
    /// The number of units of each side; between the two numbers if they differ.
    pub(crate) units: f64,
    /// The degrees of freedom that one more unit adds.
    pub(crate) degrees_per_unit: f64,
}

impl Difference {
    /// Two independent groups: Welch's t test (B. L. Welch, 1947); with equally many units the pooled degrees of
    /// freedom, 2 (n − 1). `None` below two units on a side, or on different scales.
    pub fn between_groups(baseline: &Units, other: &Units) -> Option<Self> {
        let (n, m) = (baseline.count as f64, other.count as f64);
        let (a, b) = (baseline.variance? / n, other.variance? / m);
        let welch = (a + b).powi(2) / (a * a / (n - 1.0) + b * b / (m - 1.0));
        let degrees = if baseline.count == other.count || !welch.is_finite() { n + m - 2.0 } else { welch };
        let units = 2.0 / (1.0 / n + 1.0 / m);
        (baseline.scale == other.scale).then_some(Self {
            scale: baseline.scale,
            estimate: other.mean - baseline.mean,
            standard_error: (a + b).sqrt(),
            degrees,
            units,
            degrees_per_unit: degrees / (units - 1.0),
        })
    }

    /// Pairs that were measured in turns, `[baseline, other]`: the t test of their differences, in which common effects
    /// of the machine cancel. Below [`PAIRS_MIN`] pairs the two sides are compared as groups. `None` below two pairs,
    /// or if a value is not on the scale.
    pub fn paired(pairs: &[[f64; 2]], scale: Scale, quantum: Option<f64>) -> Option<Self> {
        let side = |side: usize| {
            let values: Vec<f64> = pairs.iter().map(|pair| pair[side]).collect();
            Units::new(&values, scale, quantum)
        };
        let (baseline, other) = (side(0)?, side(1)?);
        if pairs.len() < PAIRS_MIN {
            return Self::between_groups(&baseline, &other);
        }
        let n = pairs.len() as f64;
        let estimate = other.mean - baseline.mean;
        let squares = pairs.iter().map(|[a, b]| (scale.place(*b) - scale.place(*a) - estimate).powi(2)).sum::<f64>();
        // The floor of the difference of two values that were rounded to a step each.
        let floor = Units::floor(&baseline, quantum) + Units::floor(&other, quantum);
        let variance = (squares / (n - 1.0)).max(floor);
        Some(Self {
            scale,
            estimate,
            standard_error: (variance / n).sqrt(),
            degrees: n - 1.0,
            units: n,
            degrees_per_unit: 1.0,
        })
    }

    /// Two groups whose units vary by a variance that is known from elsewhere, with its degrees of freedom: how much
    /// the sheets of this machine vary.
    pub fn with_variance(baseline: &Units, other: &Units, variance: f64, degrees: f64) -> Option<Self> {
        let inverse = 1.0 / baseline.count as f64 + 1.0 / other.count as f64;
        (baseline.scale == other.scale).then(|| Self {
            scale: baseline.scale,
            estimate: other.mean - baseline.mean,
            standard_error: (variance * inverse).sqrt(),
            degrees,
            units: 2.0 / inverse,
            degrees_per_unit: 0.0,
        })
    }

    /// The probability of a difference at least this large if the true one lies at the border of the null region,
    /// `null` from 0 on either side. With `null` 0 it is the two-sided p value.
    pub fn p_beyond(&self, null: f64) -> f64 {
        let size = self.estimate.abs();
        if self.standard_error <= 0.0 {
            return if size > null { 0.0 } else { 1.0 };
        }
        let tail = |distance: f64| student_t_tail(distance / self.standard_error, self.degrees);
        (tail(size - null) + tail(size + null)).min(1.0)
    }

    /// The probability of a difference at least this high if the true one is `limit` or less.
    pub(crate) fn p_above(&self, limit: f64) -> f64 {
        if self.standard_error <= 0.0 {
            return if self.estimate > limit { 0.0 } else { 1.0 };
        }
        student_t_tail((self.estimate - limit) / self.standard_error, self.degrees)
    }

    /// The interval that holds the true difference with probability 1 − `level`.
    pub fn interval(&self, level: f64) -> [f64; 2] {
        let half = self.reach(level / 2.0);
        [self.estimate - half, self.estimate + half]
    }

    /// The limits below and above which the true difference lies with probability `level` each.
    pub fn one_sided(&self, level: f64) -> [f64; 2] {
        let half = self.reach(level);
        [self.estimate - half, self.estimate + half]
    }

    /// Whether the true difference lies within `margin` of 0 on either side: two one-sided tests at 5 % each (D. J.
    /// Schuirmann, 1987), so that the 90 % interval lies inside.
    pub fn equivalent_within(&self, margin: f64) -> bool {
        let [low, high] = self.one_sided(0.05);
        -margin < low && high < margin
    }

    /// The smallest true difference that a comparison such as this one finds in four of five cases, at a two-sided
    /// `level`.
    pub fn smallest_shown(&self, null: f64, level: f64) -> f64 {
        null + self.reach(level / 2.0) + self.reach(MISSED)
    }

    /// The number of units a side, rounds or sheets, that would find a true difference of `target` in four of five
    /// cases; `None` if more than 1,000, or if no number would.
    pub fn units_needed(&self, target: f64, null: f64, level: f64) -> Option<usize> {
        let with = |units: f64| Self {
            standard_error: self.standard_error * (self.units / units).sqrt(),
            degrees: if self.degrees_per_unit > 0.0 { self.degrees_per_unit * (units - 1.0) } else { self.degrees },
            ..*self
        };
        let enough = |units: f64| with(units).smallest_shown(null, level) <= target;
        let (mut low, mut high) = (2.0, UNITS_MAX);
        if !enough(high) {
            return None;
        }
        while low < high {
            let half = ((low + high) / 2.0f64).floor();
            if enough(half) { high = half } else { low = half + 1.0 }
        }
        Some(high as usize)
    }

    fn reach(&self, tail: f64) -> f64 {
        if self.standard_error > 0.0 { student_t_quantile(tail, self.degrees) * self.standard_error } else { 0.0 }
    }
}
