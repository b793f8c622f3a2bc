//! [`Learned`]: how late the kernel wakes this thread, as a decaying quantile per length of sleep and policy.
//!
//! Each cell is a small histogram of lateness with buckets of a quarter octave. When a cell holds [`FULL`] samples, all
//! its counts are halved. So the past fades, and a single bad moment does not widen the window for ever. Nothing
//! allocates.

use hairspring_machine::{Nanos, Policy};

/// The number of samples at which a cell halves its counts.
const FULL: u32 = 256;
/// Buckets: four per octave from 1 µs to 16 ms. The first and the last also hold what lies below and above.
const BUCKETS: usize = 56;
/// Sleep lengths: below 100 µs, 1 ms, 10 ms, 100 ms, 1 s, and longer.
const LENGTHS: usize = 6;
/// Real-time or not.
const CLASSES: usize = 2;

/// How late wake-ups come.
#[derive(Clone, Debug)]
pub(crate) struct Learned {
    cells: [[Cell; LENGTHS]; CLASSES],
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    counts: [u16; BUCKETS],
    total: u32,
}

impl Learned {
    pub(crate) fn new() -> Self {
        Self { cells: [[Cell { counts: [0; BUCKETS], total: 0 }; LENGTHS]; CLASSES] }
    }

    /// Notes that a sleep of this length ended late by `late`.
    pub(crate) fn note(&mut self, policy: Policy, length: Nanos, late: Nanos) {
        let cell = &mut self.cells[class(policy)][decade(length)];
        if cell.total >= FULL {
            for count in &mut cell.counts {
                *count /= 2;
            }
            cell.total = cell.counts.iter().map(|&count| u32::from(count)).sum();
        }
        cell.counts[bucket(late)] += 1;
        cell.total += 1;
    }

    /// The lateness below which the share `quantile` of the sleeps of this length stayed, rounded up to its bucket. A
    /// length without samples uses the nearest shorter length that has some; none if nothing is known.
    pub(crate) fn quantile(&self, policy: Policy, length: Nanos, quantile: f64) -> Option<Nanos> {
        let cells = &self.cells[class(policy)];
        let cell = cells[..=decade(length)].iter().rev().find(|cell| cell.total > 0)?;
        let rank = (f64::from(cell.total) * quantile).ceil() as u32;
        let mut seen = 0;
        let index = cell.counts.iter().position(|&count| {
            seen += u32::from(count);
            seen >= rank
        });
        Some(upper_edge(index.unwrap_or(BUCKETS - 1)))
    }
}

fn class(policy: Policy) -> usize {
    usize::from(matches!(policy, Policy::Fifo(_) | Policy::RoundRobin(_)))
}

fn decade(length: Nanos) -> usize {
    let edges = [100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
    edges.iter().position(|&edge| length.count() < edge).unwrap_or(LENGTHS - 1)
}

fn bucket(late: Nanos) -> usize {
    (0..BUCKETS).find(|&index| late < upper_edge(index)).unwrap_or(BUCKETS - 1)
}

/// Upper edge of a bucket: 1 µs · 2^(index/4), the fractions of an octave taken linearly.
fn upper_edge(index: usize) -> Nanos {
    let (octave, quarter) = (index / 4, index % 4);
    Nanos::new(250 * (4 + quarter as i64) * (1 << octave))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_ascend_and_every_lateness_has_one() {
        assert!((1..BUCKETS).all(|index| upper_edge(index) > upper_edge(index - 1)));
        assert_eq!(bucket(Nanos::new(-5)), 0);
        assert_eq!(bucket(Nanos::MAX), BUCKETS - 1);
        assert!(upper_edge(BUCKETS - 1) > Nanos::from_millis(14));
    }

    #[test]
    fn a_single_bad_moment_fades() {
        let mut learned = Learned::new();
        let (policy, length) = (Policy::Other, Nanos::from_micros(500));
        assert_eq!(learned.quantile(policy, length, 0.99), None);
        for _ in 0..20 {
            learned.note(policy, length, Nanos::from_millis(5));
        }
        assert!(learned.quantile(policy, length, 0.99) > Some(Nanos::from_millis(4)));
        for _ in 0..4_000 {
            learned.note(policy, length, Nanos::from_micros(30));
        }
        assert!(learned.quantile(policy, length, 0.99) < Some(Nanos::from_micros(40)));
    }

    #[test]
    fn an_unknown_length_borrows_from_the_next_shorter_one() {
        let mut learned = Learned::new();
        learned.note(Policy::Fifo(1), Nanos::from_micros(500), Nanos::from_micros(20));
        assert!(learned.quantile(Policy::Fifo(50), Nanos::from_secs(3), 0.5).is_some());
        assert!(learned.quantile(Policy::Other, Nanos::from_secs(3), 0.5).is_none(), "policies are learned apart");
    }

    const OTHER: Policy = Policy::Other;

    #[test]
    fn each_decade_of_lengths_is_learned_apart() {
        let mut learned = Learned::new();
        let shortest = [1, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000].map(Nanos::new);
        let longest = [99_999, 999_999, 9_999_999, 99_999_999, 999_999_999, i64::MAX].map(Nanos::new);
        let late = |decade: usize| Nanos::from_micros(3 << decade);
        for (decade, length) in shortest.into_iter().enumerate() {
            learned.note(OTHER, length, late(decade));
        }
        for (decade, (short, long)) in shortest.into_iter().zip(longest).enumerate() {
            for length in [short, long] {
                let found = learned.quantile(OTHER, length, 1.0).expect("learned");
                assert!(found > late(decade) && found < late(decade) * 2, "{length}: {found}");
            }
        }
    }

    #[test]
    fn a_quantile_is_above_the_lateness_that_it_covers() {
        for index in 0..BUCKETS - 1 {
            let mut learned = Learned::new();
            learned.note(OTHER, Nanos::from_micros(1), upper_edge(index));
            assert_eq!(learned.quantile(OTHER, Nanos::from_micros(1), 0.5), Some(upper_edge(index + 1)));
        }
    }

    #[test]
    fn the_past_fades_by_halves_and_is_not_forgotten_at_once() {
        let mut learned = Learned::new();
        let length = Nanos::from_micros(500);
        for _ in 0..FULL {
            learned.note(OTHER, length, Nanos::from_millis(5));
        }
        for _ in 0..FULL / 4 {
            learned.note(OTHER, length, Nanos::from_micros(30));
        }
        // 128 against 64.
        assert!(learned.quantile(OTHER, length, 0.5) > Some(Nanos::from_millis(4)));
        assert!(learned.quantile(OTHER, length, 0.3) < Some(Nanos::from_micros(40)));
    }
}
