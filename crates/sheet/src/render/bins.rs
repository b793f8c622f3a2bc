//! A histogram put into a few equal bins of an axis, for sparklines and small plots.
//!
//! The axis is logarithmic if all values are positive. With zero or negative values it is linear near zero and
//! logarithmic far from it (inverse hyperbolic sine), because lateness has long tails on both sides.

use crate::{Bucket, Figure, Histogram};

/// The widest bucket with which a distribution still has a shape, as a part of its axis.
const WIDEST_BUCKET: f64 = 0.2;

/// An axis from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Value at which the axis changes from linear to logarithmic; 0 for a purely logarithmic one.
    knee: f64,
}

impl Range {
    pub(crate) fn new(low: f64, high: f64) -> Self {
        // A thousandth of the largest magnitude: three decades on the logarithmic side.
        let knee = if low > 0.0 { 0.0 } else { low.abs().max(high.abs()) / 1000.0 };
        Self { low, high, knee }
    }

    /// From the least to the greatest sample of these figures; `None` without samples.
    pub(crate) fn of<'a>(figures: impl Iterator<Item = &'a Figure>) -> Option<Self> {
        figures
            .filter(|f| f.histogram.is_some())
            .filter_map(|f| f.min.zip(f.max))
            .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
            .map(|(low, high)| Self::new(low, high))
    }

    /// The place of `value`, 0 at the lower end and 1 at the upper one; one half if both are equal.
    pub(crate) fn position(&self, value: f64) -> f64 {
        let (low, high) = (self.bent(self.low), self.bent(self.high));
        if high > low { ((self.bent(value) - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 }
    }

    /// Round values within the range, ascending: decades, with 2 and 5 where there are few of them, mirrored below
    /// zero.
    pub(crate) fn round_values(&self) -> Vec<f64> {
        let top = self.low.abs().max(self.high.abs());
        let least = if self.knee > 0.0 { self.knee * 10.0 } else { self.low };
        if top <= 0.0 || least <= 0.0 {
            return vec![0.0];
        }
        let factors: &[f64] = if top / least < 200.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let decades = least.log10().floor() as i32..=top.log10().ceil() as i32;
        let positive: Vec<f64> = decades.flat_map(|d| factors.iter().map(move |f| f * 10f64.powi(d))).collect();
        let negative = positive.iter().rev().map(|v| -v);
        let all = negative.chain([0.0]).chain(positive.iter().copied());
        all.filter(|v| v.abs() >= least || *v == 0.0).filter(|v| (self.low..=self.high).contains(v)).collect()
    }

    fn bent(&self, value: f64) -> f64 {
        if self.knee > 0.0 { (value / self.knee).asinh() } else { value.max(f64::MIN_POSITIVE).ln() }
    }

    /// Whether the buckets are fine enough to show a shape on this axis. If one bucket covers much of the axis, the
    /// places of its samples are unknown, and bars would invent them.
    pub(crate) fn resolves(&self, histogram: &Histogram) -> bool {
        let width = |b: &Bucket| self.position(b.to.min(self.high)) - self.position(b.from.max(self.low));
        histogram.buckets.iter().all(|bucket| width(bucket) <= WIDEST_BUCKET)
    }

    /// Number of samples in each of `count` equal parts of the axis; a bucket across an edge is divided.
    pub(crate) fn bins(&self, histogram: &Histogram, count: usize) -> Vec<f64> {
        let mut bins = vec![0.0; count];
        for bucket in &histogram.buckets {
            let from = self.position(bucket.from.max(self.low)) * count as f64;
            let to = (self.position(bucket.to.min(self.high)) * count as f64).max(from);
            let (first, last) = ((from as usize).min(count - 1), (to.ceil() as usize).clamp(1, count) - 1);
            if to - from < 1e-9 || first >= last {
                bins[first] += bucket.count as f64;
                continue;
            }
            for (i, bin) in bins.iter_mut().enumerate().take(last + 1).skip(first) {
                let overlap = (to.min(i as f64 + 1.0) - from.max(i as f64)).max(0.0);
                *bin += bucket.count as f64 * overlap / (to - from);
            }
        }
        bins
    }
}

/// The heights of a sparkline, from the lowest that is not empty.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The distribution in one line of `width` characters, from the least to the greatest sample. A bin with a single
/// sample is visible; an empty one is a space.
pub(crate) fn sparkline(figure: &Figure, width: usize) -> Option<String> {
    let histogram = figure.histogram.as_ref().filter(|_| width > 0)?;
    let bins = Range::of(std::iter::once(figure)).filter(|range| range.resolves(histogram))?.bins(histogram, width);
    let top = bins.iter().copied().fold(0.0, f64::max);
    let level = |bin: f64| (bin / top * LEVELS.len() as f64).ceil().clamp(1.0, LEVELS.len() as f64) as usize - 1;
    Some(bins.iter().map(|&bin| if bin > 0.0 { LEVELS[level(bin)] } else { ' ' }).collect())
}
