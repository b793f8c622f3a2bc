//! [`Board`]: where tasks store stamps and proofs for each other; and [`Clock`], which makes the stamps.

use std::sync::atomic::{AtomicU64, Ordering};

use hairspring_machine::{Clock as MachineClock, Host, Instant, Machine, Nanos, Ticks};
use hairspring_time::Timebase;

use super::Cache;
use crate::executive::port::{Calls, Port};

/// The longest time that a task polls for a proof.
const PATIENCE: Nanos = Nanos::from_millis(50);
/// Time for a task on another CPU to fall asleep: with hot caches, and if it sweeps first.
const SETTLE: [Nanos; 2] = [Nanos::from_micros(40), Nanos::from_millis(1)];

/// The stamps of a task.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    pub(super) timebase: Timebase<Host>,
}

impl Clock {
    /// An ordered stamp.
    #[inline(always)]
    pub(crate) fn stamp(&self) -> Ticks {
        self.timebase.stamp_ordered()
    }

    /// The time from a stamp until now.
    #[inline(always)]
    pub(crate) fn ns_since(&self, earlier: Ticks) -> f64 {
        self.ns(self.stamp().since(earlier))
    }

    #[inline]
    pub(crate) fn ns(&self, ticks: i64) -> f64 {
        ticks as f64 * 1e9 / self.timebase.calibration().rate_hz
    }

    /// The stamp at a time after now.
    pub(crate) fn after(&self, span: Nanos) -> Ticks {
        self.stamp().plus(self.timebase.ticks_for_at_least(span))
    }

    /// `CLOCK_MONOTONIC`.
    #[inline(always)]
    pub(crate) fn monotonic(&self) -> Instant {
        Host.monotonic()
    }

    /// CPU time of the process.
    pub(crate) fn process_cpu(&self) -> Nanos {
        Host.read(MachineClock::ProcessCpu)
    }

    /// Gives a task on another CPU time to fall asleep.
    pub(crate) fn settle(&self, cache: Cache) {
        let end = self.after(SETTLE[usize::from(cache == Cache::Dirty)]);
        while end.since(self.stamp()) > 0 {
            Host.relax();
        }
    }
}

/// Shared memory in which tasks store stamps and proofs for each other.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Board {
    /// The proof: a count that the more urgent task raises.
    word: AtomicU64,
    marks: [AtomicU64; 4],
}

impl Board {
    /// Stores a stamp. Relaxed: the proof that follows publishes it.
    #[inline(always)]
    pub(crate) fn mark(&self, index: usize, stamp: Ticks) {
        self.marks[index].store(stamp.raw(), Ordering::Relaxed);
    }

    /// Reads a stamp. Relaxed: read after the proof.
    #[inline(always)]
    pub(crate) fn at(&self, index: usize) -> Ticks {
        Ticks::new(self.marks[index].load(Ordering::Relaxed))
    }

    /// Gives the proof with this number. Release pairs with the Acquire in `proof`.
    #[inline(always)]
    pub(crate) fn prove(&self, number: u64) {
        self.word.store(number, Ordering::Release);
    }

    /// The latest proof. Acquire pairs with the Release in `prove`.
    #[inline(always)]
    pub(crate) fn proof(&self) -> u64 {
        self.word.load(Ordering::Acquire)
    }
}

/// Polls for a proof and lets other tasks run meanwhile. Returns false if the proof does not come in time.
pub(crate) async fn proof_comes<P: Port>(calls: &P::Calls<'_>, board: &Board, number: u64, clock: &Clock) -> bool {
    if board.proof() >= number {
        return true;
    }
    let end = clock.after(PATIENCE);
    let mut rounds = 0_u32;
    while board.proof() < number {
        rounds += 1;
        if rounds.is_multiple_of(256) && end.since(clock.stamp()) < 0 {
            return false;
        }
        calls.preempt_point().await;
        Host.relax();
    }
    true
}
