//! The distribution behind a figure, in buckets whose width grows with the value.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A distribution: non-empty buckets in ascending order. Bounds are in the unit of the figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Histogram {
    /// The buckets that hold samples; those between them are empty.
    pub buckets: Vec<Bucket>,
}

/// One bucket: `count` samples lie in `from ≤ x < to`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bucket {
    /// Lower bound, inclusive.
    pub from: f64,
    /// Upper bound, exclusive.
    pub to: f64,
    /// How many samples lie in it; at least 1.
    pub count: u64,
}

/// The low bits of a double that do not select its bucket: all except the sign, the exponent and the first four bits of
/// the mantissa. So there are 16 equal buckets in each octave, and no bucket is wider than 1/16 of its lower bound.
const WITHIN_BUCKET: u64 = (1 << 48) - 1;

impl Histogram {
    /// Puts ascending samples into logarithmic buckets, negative ones mirrored, zero in the lowest bucket of the
    /// positive ones (2⁻¹⁰²⁶ wide). Samples that are not finite are left out.
    pub fn from_sorted(samples: &[f64]) -> Self {
        let mut buckets: Vec<Bucket> = Vec::new();
        for &sample in samples.iter().filter(|s| s.is_finite()) {
            match buckets.last_mut() {
                Some(bucket) if sample < bucket.to => bucket.count += 1,
                _ => {
                    let (from, to) = bounds(sample);
                    buckets.push(Bucket { from, to, count: 1 });
                }
            }
        }
        Self { buckets }
    }

    /// Adds the samples of another histogram: buckets with the same lower bound are merged.
    pub fn merge(&mut self, other: &Self) {
        let mut all = std::mem::take(&mut self.buckets);
        all.extend_from_slice(&other.buckets);
        all.sort_by(|a, b| a.from.total_cmp(&b.from));
        for bucket in all {
            match self.buckets.last_mut() {
                Some(last) if last.from == bucket.from => last.count += bucket.count,
                _ => self.buckets.push(bucket),
            }
        }
    }

    /// Splits the bucket around a value in two: samples up to the value, and those beyond it, of which the bucket has
    /// `beyond`.
    pub fn cut(&mut self, at: f64, beyond: u64) {
        let edge = at.next_up();
        let Some(place) = self.buckets.iter().position(|bucket| bucket.from < edge && edge < bucket.to) else { return };
        let whole = self.buckets[place];
        let beyond = beyond.min(whole.count);
        let parts =
            [Bucket { to: edge, count: whole.count - beyond, ..whole }, Bucket { from: edge, count: beyond, ..whole }];
        self.buckets.splice(place..=place, parts.into_iter().filter(|part| part.count > 0));
    }

    /// The quantile, as the upper bound of a bucket. None without samples.
    pub fn at_most(&self, share: f64) -> Option<f64> {
        let rank = (share * self.count() as f64).ceil();
        let mut up_to = 0;
        let bucket = self.buckets.iter().find(|bucket| {
            up_to += bucket.count;
            up_to as f64 >= rank
        });
        bucket.or(self.buckets.last()).map(|bucket| bucket.to)
    }

    /// Number of all samples.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|b| b.count).sum()
    }
}

/// The bucket of `sample`, by truncating its binary form: exact at every power of two, unlike a logarithm.
fn bounds(sample: f64) -> (f64, f64) {
    let magnitude = sample.abs().to_bits();
    let edge = magnitude & !WITHIN_BUCKET;
    if sample < 0.0 {
        // Mirrored, but still with the lower bound inside and the upper one outside: an edge belongs to the bucket
        // above it, which is nearer to zero.
        let inner = if magnitude == edge { edge - (WITHIN_BUCKET + 1) } else { edge };
        let outer = inner + (WITHIN_BUCKET + 1);
        return (-f64::from_bits(outer).min(f64::MAX), 0.0 - f64::from_bits(inner));
    }
    (f64::from_bits(edge), f64::from_bits(edge + (WITHIN_BUCKET + 1)).min(f64::MAX))
}
