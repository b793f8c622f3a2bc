//! Sentinels: code that no build contains, measured by the driver beside each chapter. If their times change, the
//! machine has changed.
//!
//! Problem: a sentinel also moves without a disturbance. On a virtual machine at rest the walk through memory varied by
//! 5–8 % (one standard deviation of 24 looks), and the calls had two modes 9 % apart, one of which a run could be in
//! for seconds. One limit of 5 % for all made 8 of 13 pairs void; limits from looks in the second before the first pair
//! made up to 60 % of the pairs void, whenever that second showed one mode.
//!
//! Solution: each sentinel has a limit of its own, 5 % or half as much again as nine of ten turns of this run stay
//! within, where that is more ([`Limits`]). It comes from the sentinels alone, so no figure has a part in it, and it
//! stands in the document.

use std::collections::BTreeMap;
use std::hint::black_box;

use hairspring_machine::{Clock, Cpu, CpuSet, Host, Machine, Nanos};
use hairspring_time::Timebase;

use crate::interleaving::{Random, median};

/// Length of the chain of dependent multiplications.
const CHAIN: u64 = 20_000;
/// Bytes of the walk along a chain of pointers: more than the second-level cache of any CPU.
const CHASE_BYTES: usize = 32 << 20;
/// Steps of the walk.
const STEPS: usize = 4_000;
/// Number of system calls.
const CALLS: usize = 500;
/// Repeats of each sentinel; the median counts.
const REPEATS: usize = 15;
/// The sleep, which most chapters depend on.
const SLEEP: Nanos = Nanos::from_millis(1);
/// Words of a cache line.
const LINE: usize = 16;
/// The least limit: two readings of a sentinel that differ by more make a pair void, unless the sentinel itself varies
/// as much; so does a larger share of stolen time.
const MOVED: f64 = 0.05;
/// The limit of a sentinel that varies without a disturbance, as a multiple of the range within which [`USUAL`] of the
/// turns stay. If it varies normally, that is the range of three looks in one of some hundred turns.
const FARTHER: f64 = 1.5;
/// The part of the turns that are taken to be undisturbed.
const USUAL: f64 = 0.9;

/// Their ids and descriptions.
pub(crate) const SENTINELS: [(&str, &str); 4] = [
    ("sentinels.chain", "dependent multiplications"),
    ("sentinels.chase", "walk through memory beyond the second-level cache"),
    ("sentinels.call", "cheap system calls"),
    ("sentinels.sleep", "sleep of 1 ms"),
];

/// Readings of the sentinels at one moment, in nanoseconds, and the time stolen from the CPU so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sighting {
    pub(crate) at: Nanos,
    pub(crate) took_ns: [f64; SENTINELS.len()],
    pub(crate) stolen: Nanos,
}

/// Greatest undisturbed change of each sentinel within a turn, as a fraction. The limits are computed after the last
/// round, from all turns, before any figure is read: a sentinel that always varies gets a wide limit, and a change
/// within it is no evidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits([f64; SENTINELS.len()]);

impl Limits {
    /// From the looks of each turn.
    pub(crate) fn of<'a>(turns: impl Iterator<Item = &'a [Sighting]> + Clone) -> Self {
        Self(std::array::from_fn(|sentinel| {
            let mut ranges: Vec<f64> = turns.clone().map(|sightings| range(sightings, sentinel)).collect();
            ranges.sort_by(f64::total_cmp);
            let usual = ranges.get((ranges.len().saturating_sub(1) as f64 * USUAL) as usize);
            usual.map_or(MOVED, |usual| (FARTHER * usual).exp_m1().max(MOVED))
        }))
    }

    /// Whether the machine changed between the first and the last of these.
    pub(crate) fn moved(&self, sightings: &[Sighting]) -> bool {
        let stolen = sightings.first().zip(sightings.last()).is_some_and(|(first, last)| {
            let (stolen, passed) = (last.stolen - first.stolen, last.at - first.at);
            stolen.count() as f64 > passed.count() as f64 * MOVED
        });
        stolen || (0..SENTINELS.len()).any(|sentinel| range(sightings, sentinel).exp_m1() > self.0[sentinel])
    }

    /// The same by the ids of the sentinels.
    pub(crate) fn by_id(&self) -> BTreeMap<String, f64> {
        SENTINELS.iter().zip(self.0).map(|((id, _), limit)| ((*id).to_owned(), limit)).collect()
    }
}

/// The logarithm of the highest reading of a sentinel over the lowest.
fn range(sightings: &[Sighting], sentinel: usize) -> f64 {
    let values = || sightings.iter().map(|sighting| sighting.took_ns[sentinel]);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    (high / low).ln().max(0.0)
}

/// State of the sentinels.
pub(crate) struct Sentinels {
    timebase: Timebase<Host>,
    cpu: Cpu,
    /// The next line of each line: one cycle through all lines, in random order.
    walk: Vec<u32>,
}

impl Sentinels {
    pub(crate) fn new(timebase: Timebase<Host>, cpu: Cpu) -> Self {
        let lines = CHASE_BYTES / 4 / LINE;
        let order = Random::new().order(lines);
        let mut walk = vec![0_u32; lines * LINE];
        for (place, line) in order.iter().enumerate() {
            let next = order[(place + 1) % lines];
            walk[line * LINE] = u32::try_from(next * LINE).unwrap_or(0);
        }
        Self { timebase, cpu, walk }
    }

    /// Measures the sentinels on the CPU of the comparison. Takes about 25 ms.
    pub(crate) fn look(&self) -> Sighting {
        let before = Host.affinity();
        // If refused, measures on the thread's present CPU.
        drop(Host.set_affinity(&CpuSet(vec![self.cpu])));
        let mut place = 0_usize;
        let took_ns = [
            self.repeated(|| {
                let product = (0..CHAIN).fold(3_u64, |product, _| black_box(product).wrapping_mul(0x9e37_79b9));
                black_box(product);
            }),
            self.repeated(|| {
                place = (0..STEPS).fold(place, |place, _| self.walk[place] as usize);
                black_box(place);
            }),
            self.repeated(|| {
                for _ in 0..CALLS {
                    black_box(Host.read(Clock::ThreadCpu));
                }
            }),
            self.repeated(|| {
                let _ = Host.sleep_until(Host.monotonic() + SLEEP);
            }),
        ];
        let stolen = Host.cpu_counters(self.cpu).map_or(Nanos::ZERO, |counters| counters.steal);
        drop(Host.set_affinity(&before));
        Sighting { at: Host.monotonic().as_monotonic(), took_ns, stolen }
    }

    fn repeated(&self, mut act: impl FnMut()) -> f64 {
        act();
        let times: Vec<f64> = (0..REPEATS)
            .map(|_| {
                let start = self.timebase.stamp_ordered();
                act();
                self.timebase.nanos(self.timebase.stamp_ordered().since(start)).count() as f64
            })
            .collect();
        median(&times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sighting(second: i64, chain: f64, stolen_ms: i64) -> Sighting {
        Sighting {
            at: Nanos::from_secs(second),
            took_ns: [chain, 1.0, 1.0, 1.0],
            stolen: Nanos::from_millis(stolen_ms),
        }
    }

    /// Turns of three looks each; in turn `i` the middle look is slower than the others by `slower[i]`.
    fn turns(slower: &[f64]) -> Vec<[Sighting; 3]> {
        slower.iter().map(|slower| [1.0, 1.0 + slower, 1.0].map(|by| sighting(0, 100.0 * by, 0))).collect()
    }

    fn limits(turns: &[[Sighting; 3]]) -> Limits {
        Limits::of(turns.iter().map(<[Sighting; 3]>::as_slice))
    }

    #[test]
    fn a_sentinel_or_stolen_time_beyond_a_twentieth_is_a_movement() {
        let limits = limits(&[]);
        assert!(!limits.moved(&[sighting(0, 100.0, 0), sighting(1, 104.0, 0), sighting(2, 102.0, 90)]));
        assert!(limits.moved(&[sighting(0, 100.0, 0), sighting(1, 106.0, 0), sighting(2, 100.0, 0)]));
        assert!(limits.moved(&[sighting(0, 100.0, 0), sighting(1, 100.0, 0), sighting(2, 100.0, 110)]));
    }

    #[test]
    fn a_sentinel_that_varies_by_itself_has_a_wider_limit_which_rare_disturbances_do_not_widen() {
        // Two modes 9 % apart, and one turn of 20 that was disturbed.
        let mut all = turns(&[0.0, 0.01, 0.09, 0.01, 0.0, 0.09, 0.01, 0.0, 0.01, 0.02]);
        all.extend(turns(&[0.01, 0.0, 0.01, 0.01, 0.09, 0.0, 0.01, 0.0, 0.6, 0.01]));
        let limits = limits(&all);
        let moved: Vec<usize> = (0..all.len()).filter(|turn| limits.moved(&all[*turn])).collect();
        assert_eq!(moved, [18], "{limits:?}");
        assert_eq!(limits.by_id()["sentinels.call"], MOVED);
    }

    #[test]
    fn the_walk_comes_back_after_every_line() {
        let timebase = Timebase::calibrate(Host).expect("a time base");
        let sentinels = Sentinels::new(timebase, Host.affinity().0[0]);
        let mut place = 0;
        let steps = (1..).find(|_| {
            place = sentinels.walk[place] as usize;
            place == 0
        });
        assert_eq!(steps, Some(CHASE_BYTES / 64));
        assert!(sentinels.look().took_ns.iter().all(|ns| *ns > 0.0));
    }
}
