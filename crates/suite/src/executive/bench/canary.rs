//! The canary: a chase of pointers through a buffer shows whether a sweep empties the caches.
//!
//! The buffer is as large as the working set of a scenario. It is touched, then the sweep runs, then each of its lines
//! is read in a random order that no prefetcher can follow. If the sweep works, each line comes from beyond the
//! second-level cache.

use std::hint::black_box;

use super::Clock;
use crate::caches::{CacheSweep, LINE_BYTES};
use crate::interleaving::{Random, median};

/// Lines of the buffer: 32 KiB.
const LINES: usize = 512;
/// Trials, hot and after a sweep.
const TRIALS: usize = 40;
/// The least ratio of the time of a swept-out line to a hot one. A line from the second-level cache takes three to five
/// times as long as one from the first level, one from the last level ten times and more.
const SLOWER: f64 = 6.0;
/// The required share of trials.
const SHARE: f64 = 0.95;

/// The result of the canary.
#[derive(Clone, Debug, PartialEq)]
pub struct CanaryReport {
    /// One line, in nanoseconds, right after the buffer was touched.
    pub hot_ns: f64,
    /// One line after a sweep: the median of the trials.
    pub dirty_ns: f64,
    /// The share of the trials in which the lines were swept out.
    pub share: f64,
}

impl CanaryReport {
    /// A result from the time of a line, hot and in each trial after a sweep.
    fn new(hot: &[f64], dirty: &[f64]) -> Self {
        let hot_ns = median(hot);
        let swept = dirty.iter().filter(|ns| **ns >= SLOWER * hot_ns).count();
        Self { hot_ns, dirty_ns: median(dirty), share: swept as f64 / dirty.len().max(1) as f64 }
    }

    /// The note about the word *dirty*.
    pub(crate) fn sentence(&self) -> String {
        let Self { hot_ns, dirty_ns, share } = self;
        let verdict = if *share >= SHARE { "Dirty is verified" } else { "Dirty is not verified" };
        format!(
            "{verdict}: of a canary of 32 KiB a line takes {dirty_ns:.1} ns after the sweep and {hot_ns:.1} ns before it, and it was swept \
             out in {:.0} % of the trials. Hot is not verified: nothing here counts the misses of an event.",
            share * 100.0
        )
    }
}

/// Chases through the buffer, hot and after sweeps.
pub(super) fn report(clock: &Clock, sweep: &CacheSweep) -> CanaryReport {
    // Each line holds the index of the next: one cycle through all lines.
    const WORDS: usize = LINE_BYTES / size_of::<usize>();
    let order = Random::new().order(LINES);
    let mut buffer = vec![0_usize; LINES * WORDS];
    for (place, line) in order.iter().enumerate() {
        buffer[line * WORDS] = order[(place + 1) % LINES] * WORDS;
    }
    let chase = || {
        let before = clock.stamp();
        let mut at = 0;
        for _ in 0..LINES {
            at = buffer[at];
        }
        black_box(at);
        clock.ns_since(before) / LINES as f64
    };
    let trial = |dirty: bool| {
        chase();
        if dirty {
            sweep.sweep();
        }
        chase()
    };
    let [hot, dirty] = [false, true].map(|dirty| (0..TRIALS).map(|_| trial(dirty)).collect::<Vec<_>>());
    CanaryReport::new(&hot, &dirty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dirty_is_verified_only_where_nearly_every_sweep_leaves_nothing() {
        let swept = |share: usize| {
            let dirty: Vec<f64> = (0..40).map(|trial| if trial < share { 20.0 } else { 1.5 }).collect();
            CanaryReport::new(&[1.5; 40], &dirty).sentence()
        };
        assert!(swept(40).starts_with("Dirty is verified") && swept(38).starts_with("Dirty is verified"));
        assert!(swept(37).starts_with("Dirty is not verified"), "{}", swept(37));
        // Lines from the second-level cache were not swept out.
        assert!(CanaryReport::new(&[1.5; 40], &[5.0; 40]).sentence().starts_with("Dirty is not verified"));
    }
}
