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

/// Buckets per factor of two: the relative width of a bucket is at most 1/16.
const BUCKETS_PER_OCTAVE: f64 = 16.0;

impl Histogram {
    /// Puts ascending samples into logarithmic buckets, negative ones mirrored, zero in a bucket of its own.
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

    /// How many samples there are in all.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|b| b.count).sum()
    }
}

/// The bucket that holds `sample`: 16 equal steps in each octave, the octaves being the powers of two.
fn bounds(sample: f64) -> (f64, f64) {
    if sample == 0.0 {
        return (0.0, f64::MIN_POSITIVE);
    }
    if sample < 0.0 {
        // Mirrored; the shared edge belongs to the bucket whose lower bound it is.
        let (from, to) = bounds(-sample);
        let (low, high) = (-to, -from);
        return if sample == high { (high, high + (high - low)) } else { (low, high) };
    }
    let octave = 2f64.powi(sample.log2().floor() as i32);
    let step = octave / BUCKETS_PER_OCTAVE;
    let index = ((sample - octave) / step).floor().clamp(0.0, BUCKETS_PER_OCTAVE - 1.0);
    (octave + index * step, octave + (index + 1.0) * step)
}
