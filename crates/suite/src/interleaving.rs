//! Interleaved rounds: every candidate has its turn in each round, in an order of the round's own.
//!
//! So a slow moment of the machine does not affect one candidate alone, and no candidate always follows the same other.
//! A round counts by its median, and all rounds by the median of those.

use std::ops::ControlFlow;

/// The turn of one candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The round, from 0.
    pub round: usize,
    /// The candidate whose turn it is.
    pub candidate: usize,
    /// Whether this turn is the first of its round.
    pub first: bool,
}

/// Gives each of `candidates` its turn in each of `rounds` rounds. Ends early if a turn breaks.
pub fn interleave<B>(rounds: usize, candidates: usize, mut take: impl FnMut(Turn) -> ControlFlow<B>) -> ControlFlow<B> {
    let mut random = Random::new();
    for round in 0..rounds {
        for (place, candidate) in random.order(candidates).into_iter().enumerate() {
            take(Turn { round, candidate, first: place == 0 })?;
        }
    }
    ControlFlow::Continue(())
}

/// The order of two arms in a block: A B, B A, B A, A B and so on (Thue and Morse), so that neither a drift of the
/// machine nor a change of that drift affects only one of them.
pub fn mirrored(block: usize) -> Vec<usize> {
    if block.count_ones().is_multiple_of(2) { vec![0, 1] } else { vec![1, 0] }
}

/// Runs an experiment: in each block every arm has its turn, in the order of the block. Returns the results of the arms
/// in each complete block, by arm. Ends early once `stopped`.
///
/// # Errors
/// Those of `take`, which makes the turn of the arm with this number. The first ends the experiment.
pub fn in_blocks<T, E>(
    blocks: impl IntoIterator<Item = Vec<usize>>,
    stopped: &dyn Fn() -> bool,
    mut take: impl FnMut(usize) -> Result<T, E>,
) -> Result<Vec<Vec<T>>, E> {
    let mut complete = Vec::new();
    for order in blocks {
        let mut block: Vec<Option<T>> = order.iter().map(|_| None).collect();
        for arm in order {
            if stopped() {
                return Ok(complete);
            }
            block[arm] = Some(take(arm)?);
        }
        complete.push(block.into_iter().flatten().collect());
    }
    Ok(complete)
}

/// The median of samples in any order, by the nearest rank: of an even number the lower of the two in the middle, as in
/// a [`Figure`](hairspring_sheet::Figure). Not a number if there are no samples.
pub fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

/// Pseudo-random numbers, the same in every run (xorshift64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Default for Random {
    fn default() -> Self {
        Self::new()
    }
}

impl Random {
    /// The sequence from its beginning.
    pub fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    /// A different sequence for each seed.
    pub fn seeded(seed: u64) -> Self {
        // SplitMix64, so that consecutive seeds give unrelated sequences. A state of 0 would stay 0.
        let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Self(((mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)).max(1))
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.below_u64(limit as u64) as usize
    }

    /// A number below `limit`; 0 if that is 0. Numbers beyond 2⁴⁸ do not occur.
    #[inline]
    pub fn below_u64(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % limit.max(1)
    }

    /// The numbers below `count` in some order.
    pub fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_every_candidate_once_and_orders_differ() {
        let mut orders = vec![Vec::new(); 5];
        let ended = interleave(5, 20, |turn| {
            assert_eq!(turn.first, orders[turn.round].is_empty());
            orders[turn.round].push(turn.candidate);
            ControlFlow::<()>::Continue(())
        });
        assert!(ended.is_continue());
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..20).collect::<Vec<_>>());
        }
        assert!(orders.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_turn_that_breaks_is_the_last() {
        let mut turns = 0;
        let ended = interleave(5, 20, |turn| {
            turns += 1;
            if turn.round == 2 { ControlFlow::Break(turn.round) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((ended, turns), (ControlFlow::Break(2), 41));
    }

    #[test]
    fn in_each_block_every_arm_has_its_turn_and_half_a_block_does_not_count() {
        let mut turns = Vec::new();
        let mut experiment = |most: usize| {
            turns.clear();
            let left = std::cell::Cell::new(most);
            let stopped = || left.replace(left.get().saturating_sub(1)) == 0;
            in_blocks((0..4).map(mirrored), &stopped, |arm| {
                turns.push(arm);
                if turns.len() > 90 { Err("too many") } else { Ok(arm * 10) }
            })
        };
        assert_eq!(experiment(90), Ok(vec![vec![0, 10]; 4]));
        assert_eq!(experiment(5), Ok(vec![vec![0, 10]; 2]));
        assert_eq!(turns, [0, 1, 1, 0, 1]);
        let refused = in_blocks([vec![2, 0, 1]], &|| false, |arm| if arm == 1 { Err(arm) } else { Ok(()) });
        assert_eq!(refused, Err(1));
    }

    #[test]
    fn a_median_is_a_sample_and_that_of_a_figure() {
        for count in 1..9_u32 {
            let samples: Vec<f64> = (0..count).map(|n| f64::from(n * 7 % 9)).collect();
            let (unit, method) = (hairspring_sheet::Unit::Ns, hairspring_sheet::Method::Stamp);
            let figure = hairspring_sheet::Figure::from_samples(unit, method, &mut samples.clone());
            assert_eq!(figure.median, Some(median(&samples)), "{samples:?}");
        }
        assert!(median(&[]).is_nan());
    }
}
