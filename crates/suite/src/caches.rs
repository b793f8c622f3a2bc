//! The sizes of the caches, as the machine's facts have them, and the sweep that empties the private ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use hairspring_machine::facts::Facts;

/// A cache line.
pub(crate) const LINE_BYTES: usize = 64;
/// Size of a sweep if that of the second-level cache is unknown.
const SWEEP_BYTES: usize = 4 << 20;
/// No second-level cache is larger.
const SWEEP_BYTES_MOST: usize = 32 << 20;

/// A cache line, of which a sweep writes one byte.
#[derive(Debug)]
#[repr(align(64))]
struct Line(AtomicU8);

const _: () = assert!(size_of::<Line>() == LINE_BYTES);

/// A buffer whose sweep evicts everything else from the private caches. Copies share the buffer, since making one
/// present takes longer than many a measurement.
#[derive(Clone, Debug)]
pub struct CacheSweep {
    lines: Arc<[Line]>,
}

impl CacheSweep {
    /// A sweep through at least `bytes` bytes, in whole lines.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { lines: (0..bytes.div_ceil(LINE_BYTES)).map(|_| Line(AtomicU8::new(1))).collect() }
    }

    /// A sweep that does nothing.
    pub(crate) fn none() -> Self {
        Self::new(0)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lines.len() * LINE_BYTES
    }

    #[inline(never)]
    pub(crate) fn sweep(&self) {
        for Line(line) in self.lines.iter() {
            // Relaxed: no thread uses the value.
            line.store(line.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }
}

/// Size of a sweep: twice the second-level cache of one CPU.
pub(crate) fn sweep_bytes(facts: &Facts) -> usize {
    let second = second_level(facts).and_then(|bytes| usize::try_from(bytes).ok());
    second.map_or(SWEEP_BYTES, |bytes| bytes.saturating_mul(2).clamp(SWEEP_BYTES / 4, SWEEP_BYTES_MOST))
}

/// The size of one second-level cache in bytes.
fn second_level(facts: &Facts) -> Option<u64> {
    sizes(facts.value("cpu.caches")?).find(|(level, _)| *level == 2).map(|(_, bytes)| bytes)
}

/// The size of one cache of the last level in bytes.
pub(crate) fn last_level(facts: &Facts) -> Option<u64> {
    sizes(facts.value("cpu.caches")?).max().map(|(_, bytes)| bytes)
}

/// Level and size of each cache that holds data, from `L1d 2 × 48 KiB per 1 CPU, L2 2 × 2 MiB per 1 CPU`.
fn sizes(caches: &str) -> impl Iterator<Item = (u32, u64)> + '_ {
    caches.split(", ").filter_map(|cache| {
        let (name, rest) = cache.trim().split_once(' ')?;
        let level = name.strip_prefix('L')?.trim_end_matches('d').parse().ok()?;
        let mut words = rest.split_once("× ")?.1.split_whitespace();
        let number: u64 = words.next()?.parse().ok()?;
        let unit = match words.next()? {
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            _ => return None,
        };
        Some((level, number * unit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_found_in_the_text_of_the_fact() {
        let caches =
            "L1d 2 × 48 KiB per 1 CPU, L1i 2 × 64 KiB per 1 CPU, L2 2 × 2 MiB per 1 CPU, L3 1 × 480 MiB per 2 CPUs";
        let found: Vec<(u32, u64)> = sizes(caches).collect();
        assert_eq!(found, [(1, 48 << 10), (2, 2 << 20), (3, 480 << 20)]);
        assert_eq!(sizes("L2 4 × 512 KiB per 2 CPUs").next(), Some((2, 512 << 10)));
        assert_eq!(sizes("L1i 2 × size not told per 1 CPU, unknown").next(), None);
    }
}
