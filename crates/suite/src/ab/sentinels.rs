//! Sentinels: code that no build contains, measured by the driver beside each chapter. When they move, the machine has moved.
//!
//! Problem: a sentinel also moves by itself. On a virtual machine at rest the walk through memory varied by 5–8 % (one standard deviation of
//! 24 looks) with what its neighbours did to the shared cache, the calls by 1.4 %, the chain by 0.8 %, the sleep by 0.4 %; one
//! limit of 5 % for all made 8 of 13 pairs void, all but one by the walk.
//! Solution: each sentinel has a limit of its own, 5 % or what it varies by itself where that is more ([`Limits`]). It comes from looks before
//! the first pair, so no figure has a part in it, and it stands in the document.

use std::collections::BTreeMap;
use std::hint::black_box;

use hairspring_machine::{Clock, Cpu, CpuSet, Host, Machine, Nanos};
use hairspring_time::Timebase;

use crate::rounds::{Random, median};

/// Multiplications that wait for each other.
const CHAIN: u64 = 20_000;
/// What is walked through by a chain of pointers: more than the second-level cache of any CPU.
const CHASE_BYTES: usize = 32 << 20;
/// Steps of the walk.
const STEPS: usize = 4_000;
/// Calls of the system.
const CALLS: usize = 500;
/// Each is repeated so often; the median counts.
const REPEATS: usize = 15;
/// The sleep, which most chapters depend on.
const SLEEP: Nanos = Nanos::from_millis(1);
/// Words of a cache line.
const LINE: usize = 16;
/// Two readings of one sentinel that differ by more make a pair void, unless the sentinel itself varies as much; so does a larger share of
/// stolen time.
const MOVED: f64 = 0.05;
/// Looks before the first pair, from which the limits come.
pub(crate) const SIGHTINGS: usize = 24;
/// A sentinel that varies by itself has a limit of so many standard deviations of its logarithm: the range of three values exceeds
/// it in one of some hundred cases, if they vary normally.
const DEVIATIONS: f64 = 4.4;
/// The standard deviation of normal values, in median deviations from the median.
const DEVIATION_OF_MEDIAN: f64 = 1.4826;

/// Their ids and what they are.
pub(crate) const SENTINELS: [(&str, &str); 4] = [
    ("sentinels.chain", "multiplications that wait for each other"),
    ("sentinels.chase", "walk through memory beyond the second-level cache"),
    ("sentinels.call", "cheap calls of the system"),
    ("sentinels.sleep", "sleep of 1 ms"),
];

/// What the sentinels showed at one moment: nanoseconds each, and the time stolen from the CPU so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sighting {
    pub(crate) at: Nanos,
    pub(crate) took_ns: [f64; SENTINELS.len()],
    pub(crate) stolen: Nanos,
}

/// By how much each sentinel may change within a pair, as a fraction. They are set before the first pair, from looks at a machine on which
/// nothing is measured yet: where a sentinel varies by itself, its limit says so, and a change within it says nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits([f64; SENTINELS.len()]);

impl Limits {
    /// From looks that were taken one after the other.
    pub(crate) fn of(sightings: &[Sighting]) -> Self {
        Self(std::array::from_fn(|sentinel| {
            let logs: Vec<f64> = sightings.iter().map(|sighting| sighting.took_ns[sentinel].ln()).collect();
            if logs.is_empty() {
                return MOVED;
            }
            let middle = median(&logs);
            let off: Vec<f64> = logs.iter().map(|log| (log - middle).abs()).collect();
            (DEVIATIONS * DEVIATION_OF_MEDIAN * median(&off)).exp_m1().max(MOVED)
        }))
    }

    /// Whether the machine moved between the first and the last of these.
    pub(crate) fn moved(&self, sightings: &[Sighting]) -> bool {
        let apart = |sentinel: usize| {
            let values = || sightings.iter().map(|sighting| sighting.took_ns[sentinel]);
            let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
            high > low * (1.0 + self.0[sentinel])
        };
        let stolen = sightings.first().zip(sightings.last()).is_some_and(|(first, last)| {
            let (stolen, passed) = (last.stolen - first.stolen, last.at - first.at);
            stolen.count() as f64 > passed.count() as f64 * MOVED
        });
        stolen || (0..SENTINELS.len()).any(apart)
    }

    /// The same by the ids of the sentinels.
    pub(crate) fn by_id(&self) -> BTreeMap<String, f64> {
        SENTINELS.iter().zip(self.0).map(|((id, _), limit)| ((*id).to_owned(), limit)).collect()
    }
}

/// What the sentinels need.
pub(crate) struct Sentinels {
    timebase: Timebase<Host>,
    cpu: Cpu,
    /// For each place the next one: one cycle through all lines, in random order.
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

    /// Measures them on the CPU of the comparison. Takes some 25 ms.
    pub(crate) fn look(&self) -> Sighting {
        let before = Host.affinity();
        // Refused, they are measured where the thread is.
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

    #[test]
    fn a_sentinel_or_stolen_time_beyond_a_twentieth_is_a_movement() {
        let limits = Limits::of(&[]);
        assert!(!limits.moved(&[sighting(0, 100.0, 0), sighting(1, 104.0, 0), sighting(2, 102.0, 90)]));
        assert!(limits.moved(&[sighting(0, 100.0, 0), sighting(1, 106.0, 0), sighting(2, 100.0, 0)]));
        assert!(limits.moved(&[sighting(0, 100.0, 0), sighting(1, 100.0, 0), sighting(2, 100.0, 110)]));
    }

    #[test]
    fn a_sentinel_that_varies_by_itself_has_a_wider_limit_which_one_outlier_does_not_move() {
        let restless = |n: i64| sighting(n, [96.0, 100.0, 104.0][n as usize % 3], 0);
        let mut before: Vec<Sighting> = (0..24).map(restless).collect();
        let limits = Limits::of(&before);
        assert!(!limits.moved(&[restless(0), restless(1), restless(2)]), "{limits:?}");
        assert!(limits.moved(&[restless(0), sighting(1, 150.0, 0)]), "{limits:?}");
        assert_eq!(limits.by_id()["sentinels.call"], MOVED);
        before[7].took_ns[0] = 900.0;
        assert!(Limits::of(&before).moved(&[restless(0), sighting(1, 150.0, 0)]));
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
