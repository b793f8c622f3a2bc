//! A stopwatch for loops that do not use the port: the lower bounds, and our executive with its calls in a task's body.
//!
//! Each round carries a proof: a count that the more urgent task raises and the measuring one reads when its call has
//! returned.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hairspring_machine::{Clock, Host, Instant, Machine};
use hairspring_sheet::Absent;
use hairspring_suite::executive::port::TaskUrgency;
use hairspring_suite::executive::{Bench, Round};
use hairspring_time::Nanos;

/// The urgency of the task that answers.
pub(crate) const HIGH: TaskUrgency = 16;
/// The urgency of the task that measures.
pub(crate) const LOW: TaskUrgency = 48;
/// Rounds between two readings of the clock.
pub(crate) const CHUNK: u64 = 512;
/// Tasks of a chain of messages.
pub(crate) const LINKS: u8 = 16;
/// Limit of checks, by a task that was not preempted, whether the other task has caught up.
const CATCH_UP_MOST: u32 = 1_000_000;
/// Above this share of rounds without proof there is no result.
const UNPROVEN_MOST: f64 = 0.001;

/// Result of one loop.
pub(crate) type Outcome = Result<Round, Absent>;

/// A count in a cache line of its own, shared by two tasks.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Raises the count. Release pairs with the Acquire in `now`.
    #[inline(always)]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn now(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// After a call that returned before the more urgent task ran: lets it catch up, so that one such round does not spoil
/// the rest. False: the round has no proof.
#[cold]
#[inline(never)]
pub(crate) fn catch_up(count: &Count, number: u64) -> bool {
    for _ in 0..CATCH_UP_MOST {
        if count.now() == number {
            break;
        }
        Host.relax();
    }
    false
}

/// Times one batch.
pub(crate) struct Meter {
    began: (Instant, Nanos),
    end: Instant,
    rounds: u64,
    unproven: u64,
}

impl Meter {
    pub(crate) fn start(span: Nanos) -> Self {
        let cpu = Host.read(Clock::ProcessCpu);
        let wall = Host.monotonic();
        Self { began: (wall, cpu), end: wall + span, rounds: 0, unproven: 0 }
    }

    /// Whether there is time for another chunk.
    #[inline]
    pub(crate) fn goes_on(&self) -> bool {
        Host.monotonic() < self.end
    }

    #[inline(always)]
    pub(crate) fn round(&mut self, proven: bool) {
        self.rounds += 1;
        self.unproven += u64::from(!proven);
    }

    pub(crate) fn finish(self) -> Round {
        let (wall, cpu) = (Host.monotonic(), Host.read(Clock::ProcessCpu));
        let per_round = |span: Nanos| span.count() as f64 / self.rounds.max(1) as f64;
        let (wall_ns, cpu_ns) = (per_round(wall - self.began.0), per_round(cpu - self.began.1));
        Round { wall_ns, cpu_ns: Some(cpu_ns), samples: self.rounds, unproven: self.unproven }
    }
}

/// The measuring task stores its batch here.
#[derive(Clone, Default)]
pub(crate) struct Tray(Arc<Mutex<Option<Round>>>);

impl Tray {
    pub(crate) fn put(&self, batch: Round) {
        if let Ok(mut tray) = self.0.lock() {
            *tray = Some(batch);
        }
    }

    /// The stored batch, if it can be trusted.
    pub(crate) fn take(&self) -> Outcome {
        let batch = self.0.lock().ok().and_then(|mut tray| tray.take());
        batch.ok_or_else(|| Absent::final_("the run came to no end")).and_then(believed)
    }
}

/// The batch, if enough of its rounds have a proof.
pub(crate) fn believed(round: Round) -> Outcome {
    if round.unproven as f64 > round.samples as f64 * UNPROVEN_MOST {
        let reason = format!("no result: {} of {} rounds without proof of the switch", round.unproven, round.samples);
        return Err(Absent::final_(reason));
    }
    Ok(round)
}

/// Runs a short batch to warm caches and predictors, then the measured one.
pub(crate) fn spans(bench: &Bench) -> [Nanos; 2] {
    [Nanos::new(bench.slice.count() / 8), bench.slice]
}
