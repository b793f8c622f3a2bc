//! The axes of a plot: their ranges and marked round values.

use super::quantity;
use crate::{Axis, Series, Unit};

/// An axis that is ready to be drawn: bounds on round values, logarithmic only if it can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    pub(crate) log: bool,
    unit: Unit,
}

/// The most marks on an axis; more than these overlap even on a wide plot.
const TICKS_MAX: usize = 12;

impl Scale {
    /// The horizontal axis of a plot; `None` when there is no point to draw.
    pub(crate) fn horizontal(series: &Series) -> Option<Self> {
        Self::over(&series.x, series.lines.iter().flat_map(|l| &l.points).map(|p| p.x))
    }

    /// The vertical axis of a plot, wide enough for the ranges of its points.
    pub(crate) fn vertical(series: &Series) -> Option<Self> {
        let points = series.lines.iter().flat_map(|l| &l.points);
        Self::over(&series.y, points.flat_map(|p| [Some(p.y), p.low, p.high]).flatten())
    }

    fn over(axis: &Axis, values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let bounds = |values: &mut dyn Iterator<Item = f64>| {
            values.filter(|v| v.is_finite()).fold(None, |bounds: Option<(f64, f64)>, v| {
                Some(bounds.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
            })
        };
        let unit = axis.unit;
        // A logarithmic axis cannot show zero: it spans the positive values, the others lie on its lower end.
        if let Some((low, high)) = bounds(&mut values.clone().filter(|v| *v > 0.0)).filter(|_| axis.log) {
            let (mut low, mut high) = (low.log10(), high.log10());
            if high - low < 0.3 {
                (low, high) = (low.floor(), high.ceil().max(low.floor() + 1.0));
            }
            return Some(Self { low: low - 0.02, high: high + 0.02, log: true, unit });
        }
        let (low, high) = bounds(&mut values.clone())?;
        let margin = if high > low { (high - low) * 0.04 } else { high.abs().max(1.0) * 0.5 };
        // Zero belongs on the axis unless the values are far from it.
        let low = if low >= 0.0 && low < high * 0.5 { 0.0 } else { low - margin };
        Some(Self { low, high: high + margin, log: false, unit })
    }

    /// A linear axis from one value to another.
    pub(crate) fn spanning(unit: Unit, low: f64, high: f64) -> Self {
        Self { low, high, log: false, unit }
    }

    /// The place of `value`, 0 at the lower end and 1 at the upper one; values beyond an end lie at the end.
    pub(crate) fn position(&self, value: f64) -> f64 {
        let value = if self.log { value.max(f64::MIN_POSITIVE).log10() } else { value };
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Whether `value` has no place on the axis: zero or less on a logarithmic one.
    pub(crate) fn is_beyond(&self, value: f64) -> bool {
        self.log && value <= 0.0
    }

    /// The values to mark, ascending, with their labels. A logarithmic axis marks every decade, and also 2 and 5 if
    /// there are few decades.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        let mut values = match self.log {
            true if self.unit == Unit::Bytes => self.powers_of_two(),
            true => self.decades(),
            false => self.steps(),
        };
        let every = values.len().div_ceil(TICKS_MAX).max(1);
        values = values.into_iter().step_by(every).collect();
        values.into_iter().map(|v| (v, quantity(v, self.unit).trimmed().to_string())).collect()
    }

    fn decades(&self) -> Vec<f64> {
        let factors: &[f64] = if self.high - self.low < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let decades = self.low.floor() as i32..=self.high.ceil() as i32;
        let values = decades.flat_map(|d| factors.iter().map(move |f| f * 10f64.powi(d)));
        values.filter(|v| (self.low..=self.high).contains(&v.log10())).collect()
    }

    /// Sizes of memory double; where there are many, every second, third … of them from 1 KiB on.
    fn powers_of_two(&self) -> Vec<f64> {
        let ends = [self.low, self.high].map(|end| end / 2f64.log10());
        let (first, last) = (ends[0].ceil() as i32, ends[1].floor() as i32);
        let every = ((last - first) as usize / TICKS_MAX + 1) as i32;
        (first..=last).filter(|power| (power - 10).rem_euclid(every) == 0).map(|power| 2f64.powi(power)).collect()
    }

    fn steps(&self) -> Vec<f64> {
        let rough = (self.high - self.low) / 5.0;
        let decade = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|f| f * decade).find(|s| *s >= rough).unwrap_or(rough);
        let (first, last) = ((self.low / step).ceil(), (self.high / step).floor());
        (0..=(last - first).clamp(0.0, 20.0) as u32).map(|i| (first + f64::from(i)) * step).collect()
    }
}

/// Number of points of a plot at zero or below on a logarithmic vertical axis, where they cannot be shown.
pub(crate) fn points_beyond(series: &Series, vertical: &Scale) -> usize {
    series.lines.iter().flat_map(|l| &l.points).filter(|p| vertical.is_beyond(p.y)).count()
}
