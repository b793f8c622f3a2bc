//! [`Goal`]: what a delay waits for by the kernel's clock, and how it gets there.
//!
//! # Problem
//! The counter is read in 10 ns, but its rate is only known from the past: the kernel may change the rate of its clock at any
//! moment. The kernel's clock decides when a delay is over; it takes longer to read.
//!
//! # Solution
//! ```text
//!   tie ──── poll the counter ────► tie ──► poll ──► … ──► ahead of the goal ──► read the kernel's clock until it is there
//!    ▲                               │
//!    └───── (1) not near enough ─────┘
//! ```
//! A *tie* reads the kernel's clock between two readings of the counter. The counter only tells when to look again; the stretch that
//! is polled by it ends early enough for a rate that is wrong by 1/4096. What ends the delay is a reading of the kernel's clock.
//!
//! # Deadlines on the scale of a time base
//! An instant is a reading of the kernel's clock that was taken with the counter. Such a deadline is reached when both have got there:
//! our scale, so that `now()` is not before it, and the kernel's clock, less by how much our scale was off when the two were compared
//! last. The lateness is that of the one that is further. A counter that stops would never get there; so by the kernel's clock there
//! is a latest moment, twice as far away.

use hairspring_machine::{Clock, Instant, Machine, Nanos};

use crate::calibration::Bracket;
use crate::poll::{STUCK_AFTER, Watch, poll};
use crate::timebase::Timebase;

/// Readings of the kernel's clock before the kernel is asked to wait instead: some milliseconds, where the poll before
/// has left some microseconds.
const CONFIRM_ROUNDS: u32 = 100_000;
/// How long before the goal the end is rehearsed: it takes some hundred nanoseconds where all is cold.
const REHEARSED_AHEAD: Nanos = Nanos::from_micros(2);
/// The part of a stretch by which the poll of the counter ends earlier, for a rate that has changed: 244 ppm.
const RATE_PART: i64 = 4_096;

/// What a delay waits for.
#[derive(Clone, Copy)]
pub(crate) struct Goal {
    /// A reading of the kernel's clock.
    at: Nanos,
    /// The same, or earlier by what must pass besides: what the lateness is counted from.
    due: Nanos,
    /// An instant of our scale besides, and the reading of the kernel's clock at which it is given up.
    target: Option<(Instant, Nanos)>,
}

/// How a goal was reached.
#[derive(Clone, Copy)]
pub(crate) struct Reached {
    /// The kernel's clock, read last of all.
    pub(crate) at: Nanos,
    /// How far beyond the goal the clock was that is further.
    pub(crate) over: Nanos,
    /// The two clocks are not equally far.
    pub(crate) apart: bool,
}

impl Goal {
    /// So long after a reading of the kernel's clock.
    #[inline(always)]
    pub(crate) fn after<M: Machine>(timebase: &Timebase<M>, began: Nanos, span: Nanos) -> Self {
        // The first reading may be almost a step old; a nanosecond of that is what every reading leaves out.
        let at = began + timebase.machine().clock_step() - Nanos::new(1) + span;
        Self { at, due: at, target: None }
    }

    /// At an instant that is so far ahead by our scale, read just after the kernel's clock.
    #[inline(always)]
    pub(crate) fn until<M: Machine>(timebase: &Timebase<M>, began: Nanos, target: Instant, ahead: Nanos) -> Self {
        let due = target.as_monotonic() - timebase.offset();
        let latest = began + ahead.max(due - began).max(Nanos::ZERO) * 2 + STUCK_AFTER;
        // As much time must pass as was ahead, wherever the kernel's clock was.
        Self { at: due.max(began + ahead), due, target: Some((target, latest)) }
    }

    /// How far away it is at this reading of the kernel's clock and the moment at which that was made.
    #[inline]
    pub(crate) fn left<M: Machine>(self, timebase: &Timebase<M>, now: Nanos) -> Nanos {
        let by_kernel = self.at - now;
        match self.target {
            None => by_kernel,
            Some((target, latest)) => {
                let ours = target.since(timebase.now_ordered()).unwrap_or(Nanos::ZERO);
                by_kernel.max(ours.min(latest - now))
            }
        }
    }

    /// How far beyond it the clocks are, and whether both are.
    #[inline(always)]
    fn over<M: Machine>(self, timebase: &Timebase<M>, at: Nanos, gap_least: Nanos) -> (Reached, bool) {
        let by_kernel = at - self.due;
        match self.target {
            None => (Reached { at, over: by_kernel, apart: false }, at >= self.at),
            Some((target, latest)) => {
                let ours = timebase.now_ordered().since(target).unwrap_or(by_kernel);
                let apart = (ours - by_kernel).count().abs() > gap_least.count();
                let reached = Reached { at, over: ours.max(by_kernel), apart };
                (reached, at >= self.at && (ours >= Nanos::ZERO || at >= latest))
            }
        }
    }

    /// The reading of the kernel's clock at which it is reached.
    #[inline(always)]
    pub(crate) fn reading(self) -> Nanos {
        self.at
    }

    /// When to stop looking at the counter, by the kernel's clock.
    #[inline(always)]
    pub(crate) fn latest(self) -> Nanos {
        self.target.map_or(self.at, |(_, latest)| latest)
    }

    /// How late a goal is that has passed, by the clock that is further.
    #[cold]
    pub(crate) fn lateness<M: Machine>(self, timebase: &Timebase<M>) -> Nanos {
        self.over(timebase, timebase.machine().read(Clock::Monotonic), Nanos::ZERO).0.over
    }

    /// Polls the counter until so long before the goal, for at most so many ticks from the first tie on. Returns the last tie, and
    /// whether it got so far.
    pub(crate) fn approach<M: Machine>(
        self,
        timebase: &Timebase<M>,
        watch: &mut Watch<'_, M>,
        first: Bracket,
        ahead: Nanos,
        budget: i64,
    ) -> (Bracket, bool) {
        let start = first.before;
        let latest = self.latest() - if self.target.is_none() { ahead } else { Nanos::ZERO };
        let mut tie = first;
        loop {
            let left = self.left(timebase, tie.clock);
            let near = ahead + Nanos::new(left.count().max(0) / RATE_PART);
            if left <= near {
                return (tie, true);
            }
            // What is left is too much for the budget, whatever the counter does.
            if tie.after.since(start) >= budget {
                return (tie, false);
            }
            let deadline = timebase.ticks_after(tie.middle(), left - near);
            // No skew: what ends the delay is a reading of the kernel's clock.
            poll(watch, start, deadline, budget, latest, Nanos::ZERO);
            tie = self.tie(timebase);
            watch.look(tie.after);
        }
    }

    /// Ties the counter to the kernel's clock.
    #[inline]
    pub(crate) fn tie<M: Machine>(self, timebase: &Timebase<M>) -> Bracket {
        Bracket::narrowest_of(timebase.machine(), timebase.source(), Clock::Monotonic, 1)
    }

    /// Reads the kernel's clock until the goal is reached, or for a rehearsal until it is near.
    #[inline(always)]
    pub(crate) fn confirm<M: Machine>(
        self,
        timebase: &Timebase<M>,
        watch: &mut Watch<'_, M>,
        slept: &mut Nanos,
        rehearsal: bool,
    ) -> Reached {
        let machine = timebase.machine();
        let gap_least = timebase.gap_least();
        let near = self.at - if rehearsal { REHEARSED_AHEAD } else { Nanos::ZERO };
        let mut rounds = 0;
        loop {
            let at = machine.read(Clock::Monotonic);
            // What was noted took time: a later reading is to decide.
            let disturbed = watch.look_by_clock(at).is_some();
            let (reached, done) = self.over(timebase, at, gap_least);
            if !disturbed && (done || (rehearsal && at >= near)) {
                return reached;
            }
            rounds += 1;
            if rounds > CONFIRM_ROUNDS {
                *slept += self.wait_out(timebase, watch);
                rounds = 0;
            }
        }
    }

    /// The watchdog: the kernel waits for what is left. Returns how long the thread slept.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait_out<M: Machine>(self, timebase: &Timebase<M>, watch: &mut Watch<'_, M>) -> Nanos {
        let machine = timebase.machine();
        let from = machine.read(Clock::Monotonic);
        let mut now = from;
        loop {
            let left = self.left(timebase, now);
            if left <= Nanos::ZERO {
                break;
            }
            machine.sleep_until(Instant::from_monotonic(now + left));
            now = machine.read(Clock::Monotonic);
        }
        watch.note(|verdict| verdict.budget_spent = true);
        watch.slept(now);
        now - from
    }
}
