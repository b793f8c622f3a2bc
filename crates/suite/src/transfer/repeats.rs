//! Repeats of many cells in turns: each round visits every cell once, in an order of its own, so that a slow moment of the
//! machine falls on no cell alone and none always follows the same other.

use hairspring_machine::Nanos;
use hairspring_time::{Machine, Timebase};

use crate::context::Effort;

/// How many rounds there are.
pub(super) fn rounds(effort: Effort) -> usize {
    match effort {
        Effort::Quick => 5,
        Effort::Normal => 7,
        Effort::Thorough => 15,
    }
}

/// Numbers that look random and are the same in every run (xorshift).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    /// A number below `limit`, which is not 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 16) % limit as u64) as usize
    }

    /// The numbers below `count` in some order.
    pub(super) fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }
}

/// The median; not a number if there are no samples.
pub(super) fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

/// How long a call takes.
pub(super) fn timed<M: Machine>(timebase: &Timebase<M>, call: impl FnOnce()) -> Nanos {
    let before = timebase.stamp_ordered();
    call();
    timebase.nanos(timebase.stamp_ordered().since(before))
}

/// How many times a call is to be made so that it takes about `span`; at least once.
pub(super) fn tuned<M: Machine>(timebase: &Timebase<M>, span: Nanos, mut call: impl FnMut(u64)) -> u64 {
    let mut times = 1_u64;
    loop {
        let took = timed(timebase, || call(times));
        if took.times(8) >= span {
            let factor = span.count() as f64 / took.count().max(1) as f64;
            return ((times as f64 * factor) as u64).max(1);
        }
        times = times.saturating_mul(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_has_every_cell_once_and_orders_differ() {
        let mut random = Random::new();
        let orders: Vec<Vec<usize>> = (0..5).map(|_| random.order(20)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..20).collect::<Vec<_>>());
        }
        assert!(orders.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
