//! [`CounterStep`]: in which steps a counter counts.
//!
//! # Problem
//! A counter may advance in steps of many ticks, and then no span is known better than to a step. The least increment
//! of many readings is a bad estimate: one reading that is torn between two values, or one migration to another CPU,
//! makes it a single tick.
//!
//! # Solution
//! The increments of successive readings lie on a lattice. Its step is looked for among the increments that are
//! frequent and among their differences, since a read may take longer than a step: it is the largest value of which 95
//! % of the increments are multiples. The pauses between the readings vary, because readings that all take the same
//! time would look like a step.
//!
//! # Conditions
//! A step of 8 ticks or more may be missed by one tick in each increment: a hypervisor that scales a counter rounds,
//! and an out-of-order reading is torn into its step and one tick. Smaller steps must fit exactly.

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;

use hairspring_machine::Machine;

use crate::Timebase;

/// Readings of one estimate.
pub const STEP_READINGS: usize = 20_000;
/// Back-to-back readings from which their cost is taken.
const COST_READINGS: usize = 1_001;
/// Pauses between two readings: fewer than this, in turns.
const PAUSES: usize = 4;
/// Work between two readings, beside the pauses: fewer units than this, in turns that are no multiples of those.
const WORK: usize = 7;
/// Estimates, of which the coarsest counts.
const REPETITIONS: usize = 3;
/// An increment is frequent from this share on.
const FREQUENT: f64 = 0.01;
/// The share of the increments that must be multiples of a step.
const CONFIRMED: f64 = 0.95;
/// From this step on an increment may be one tick beside a multiple; below, too much would fit by chance.
const TOLERANT_FROM: i64 = 8;

/// In which steps a counter counts, and what a reading of it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterStep {
    /// No difference of two readings is known better than this, in ticks; at least 1. If it is 1, the counter counts
    /// singly.
    pub ticks: i64,
    /// The median increment of back-to-back readings, in ticks: what a reading costs. It is no step, because spans that
    /// differ by less than a reading still have different stamps.
    pub reading: i64,
    /// Whether all repetitions gave this step. If not, it is the largest that one of them gave.
    pub agreed: bool,
}

impl CounterStep {
    /// The step in the increments of successive readings, in any order. Increments that are not positive are no steps
    /// and are left out. `None` if there is no other.
    pub fn of(increments: &[i64]) -> Option<i64> {
        let mut counts = BTreeMap::<i64, usize>::new();
        increments.iter().filter(|increment| **increment > 0).for_each(|of| *counts.entry(*of).or_default() += 1);
        let all: usize = counts.values().sum();
        let is_frequent = |count: &usize| *count as f64 >= FREQUENT * all as f64;
        let frequent: Vec<i64> = counts.iter().filter(|(_, count)| is_frequent(count)).map(|(of, _)| *of).collect();
        let differences = frequent.iter().flat_map(|more| frequent.iter().map(move |less| more - less));
        let candidates: BTreeSet<i64> =
            frequent.iter().copied().chain(differences).filter(|ticks| *ticks > 1).collect();
        let fits = |step: i64| {
            let fitting = counts.iter().filter(|(increment, _)| is_multiple(**increment, step));
            fitting.map(|(_, count)| count).sum::<usize>() as f64 >= CONFIRMED * all as f64
        };
        (all > 0).then(|| candidates.into_iter().rev().find(|step| fits(*step)).unwrap_or(1))
    }

    /// The coarsest of several estimates, and whether they agree. `None` without one.
    pub fn coarsest(estimates: &[Self]) -> Option<Self> {
        let coarsest = estimates.iter().max_by_key(|step| step.ticks)?;
        Some(Self { agreed: estimates.iter().all(|step| step.ticks == coarsest.ticks), ..*coarsest })
    }

    /// Measures the step of ordered readings of a time base, three times, and keeps the coarsest. Takes some
    /// milliseconds.
    ///
    /// `None` if the counter stood still in all [`STEP_READINGS`] of each repetition.
    pub fn measure<M: Machine>(timebase: &Timebase<M>) -> Option<Self> {
        let machine = timebase.machine();
        let mut estimates = Vec::with_capacity(REPETITIONS);
        let mut increments = vec![0; STEP_READINGS];
        for _ in 0..REPETITIONS {
            let mut costs = [0; COST_READINGS];
            let mut before = timebase.stamp_ordered();
            for cost in &mut costs {
                let now = timebase.stamp_ordered();
                *cost = now.since(before);
                before = now;
            }
            for (turn, increment) in increments.iter_mut().enumerate() {
                (0..turn % PAUSES).for_each(|_| machine.relax());
                for unit in 0..turn % WORK {
                    black_box(unit);
                }
                let now = timebase.stamp_ordered();
                *increment = now.since(before);
                before = now;
            }
            costs.sort_unstable();
            let reading = costs[costs.len() / 2];
            estimates.extend(Self::of(&increments).map(|ticks| Self { ticks, reading, agreed: true }));
        }
        Self::coarsest(&estimates)
    }
}

/// Whether an increment is a multiple of a step, to the tick that a large step may miss it by.
fn is_multiple(increment: i64, step: i64) -> bool {
    let beside = increment % step;
    let beside = beside.min(step - beside);
    beside == 0 || (beside == 1 && step >= TOLERANT_FROM)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers as from a generator, the same in each run.
    fn random(seed: u64) -> impl FnMut(i64) -> i64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            i64::try_from(state >> 33).unwrap_or(0) % below
        }
    }

    /// Increments between readings of a counter with this step. Each reading costs `cost` to `cost + spread` ticks.
    fn readings(step: f64, cost: i64, spread: i64, seed: u64) -> Vec<i64> {
        let mut random = random(seed);
        let (mut time, mut before) = (0_i64, 0_i64);
        (0..20_000)
            .map(|_| {
                time += cost + random(spread + 1);
                let now = ((time as f64 / step).floor() * step).floor() as i64;
                let increment = now - before;
                before = now;
                increment
            })
            .collect()
    }

    #[track_caller]
    fn check(increments: &[i64], ticks: i64) {
        assert_eq!(CounterStep::of(increments), Some(ticks));
    }

    #[test]
    fn the_step_of_a_lattice_is_found_whatever_a_reading_costs() {
        for seed in 1..20 {
            for step in [2, 3, 10, 26, 100, 416] {
                for cost in [1, step / 2 + 1, step, step * 3 / 2, step * 5 / 2] {
                    check(&readings(step as f64, cost, step / 2 + 1, seed), step);
                }
            }
        }
    }

    #[test]
    fn a_counter_that_counts_singly_has_no_step_however_long_its_reading_takes() {
        for seed in 1..20 {
            for (cost, spread) in [(18, 20), (40, 5), (25, 3), (300, 90)] {
                check(&readings(1.0, cost, spread, seed), 1);
            }
        }
    }

    #[test]
    fn a_scaled_counter_whose_step_is_no_whole_number_has_a_step_to_a_tick() {
        let step = CounterStep::of(&readings(20.8, 15, 20, 1));
        assert!(step == Some(20) || step == Some(21), "{step:?}");
    }

    #[test]
    fn torn_readings_and_migrations_change_nothing() {
        // As seen on a virtual machine: a step of 26 ticks, of which one reading in twelve is torn into 25 ticks and 1.
        let mut torn: Vec<i64> = readings(26.0, 13, 20, 3).into_iter().filter(|of| *of > 0).collect();
        for place in (0..torn.len()).step_by(12) {
            torn[place] = 25;
            torn.push(1);
        }
        check(&torn, 26);
        // The least increment is not the step: one that is torn, one to a CPU whose counter is behind, one to one that
        // is ahead.
        let mut few = readings(26.0, 13, 20, 4);
        few.extend([1, 7, -90_000, 1_000_003]);
        check(&few, 26);
    }

    #[test]
    fn one_wide_step_is_a_step_and_none_is_none() {
        let mut still = vec![0; 20_000];
        assert_eq!(CounterStep::of(&still), None);
        still[7_000] = 4_000_000;
        check(&still, 4_000_000);
        assert_eq!(CounterStep::of(&[]), None);
        assert_eq!(CounterStep::of(&[-5, 0]), None);
    }

    /// 20 ticks are a multiple of 21 to a tick, so 21 is the step as soon as it is a candidate.
    #[test]
    fn an_increment_is_a_candidate_from_a_hundredth_of_all_on() {
        for (count, ticks) in [(1, 20), (9, 20), (10, 21), (11, 21)] {
            check(&[vec![20; 1_000 - count], vec![21; count]].concat(), ticks);
        }
    }

    #[test]
    fn estimates_that_disagree_give_the_coarsest_and_say_so() {
        let of = |ticks| CounterStep { ticks, reading: 52, agreed: true };
        assert_eq!(CounterStep::coarsest(&[of(26), of(26), of(26)]), Some(of(26)));
        assert_eq!(CounterStep::coarsest(&[of(26), of(1), of(52)]), Some(CounterStep { agreed: false, ..of(52) }));
        assert_eq!(CounterStep::coarsest(&[]), None);
    }

    #[test]
    fn repetitions_on_this_computer_find_one_step_of_no_more_than_a_reading() {
        let timebase = Timebase::calibrate(hairspring_machine::Host).expect("a time base");
        let step = CounterStep::measure(&timebase).expect("it counts");
        assert!(step.ticks >= 1 && step.ticks <= step.reading.max(1) * 2, "{step:?}");
    }

    #[test]
    fn the_step_of_a_simulated_counter_is_the_one_of_its_script() {
        use hairspring_machine::Sim;
        use hairspring_machine::sim::Script;
        for counter_step in [1, 26, 300] {
            let sim = Sim::new(Script { counter_step, ..Script::default() });
            let timebase = Timebase::calibrate(sim).expect("a time base");
            let step = CounterStep::measure(&timebase).expect("it counts");
            assert_eq!((step.ticks, step.agreed), (counter_step.cast_signed(), true));
        }
    }

    /// A reading takes 33.8 ticks there, so four of five show 34.
    #[test]
    fn the_cost_of_a_reading_is_the_median_and_not_the_least() {
        use hairspring_machine::Sim;
        let timebase = Timebase::calibrate(Sim::new(hairspring_machine::sim::Script::default())).expect("a time base");
        assert_eq!(CounterStep::measure(&timebase).map(|step| step.reading), Some(34));
    }
}
