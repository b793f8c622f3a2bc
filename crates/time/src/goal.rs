//! [`Goal`]: what a long delay waits for, on either of the two clocks, with an end in any case.
//!
//! A goal on the kernel's clock is reached when that clock reads it. A goal on our scale is reached when `now()` is not
//! before it; the kernel, which only knows its own clock, is told where that will be, anew after each sleep. A counter that
//! stops or is set back would never get there, so a goal on our scale also has a latest moment by the kernel's clock.

use hairspring_machine::{Clock, Machine, Nanos, Ticks};

use crate::calibration::Bracket;
use crate::delay::POLL_MOST;
use crate::instant::Instant;
use crate::poll::{Watch, poll};
use crate::timebase::Timebase;
use crate::verdict::Verdict;

/// Brackets taken for the re-anchoring: one in three is undisturbed, and three take 150 ns.
const ANCHOR_BRACKETS: u32 = 3;
/// Readings of the confirming clock before the kernel is asked to wait instead: some milliseconds, where the poll before
/// has left less than a microsecond.
const CONFIRM_ROUNDS: u32 = 100_000;

/// How long before the deadline the counter is tied to the kernel's clock for the last time.
const ANCHOR_AHEAD: Nanos = Nanos::from_micros(20);
/// How long before the deadline the loop that reads the confirming clock takes over from the one that reads the counter:
/// the end of the latter and the return into the caller's code, with caches and page tables cold from a long sleep, and the
/// error of a bracket must fit.
const CONFIRM_AHEAD: Nanos = Nanos::from_micros(5);

/// What a delay waits for.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// A reading of the kernel's clock.
    KernelClock(Nanos),
    /// An instant of our scale, and the latest that the kernel's clock can read then if the counter is sound.
    OurScale(Instant, Nanos),
}

/// How a goal was reached.
#[derive(Clone, Copy)]
pub(crate) struct Reached {
    /// The kernel's clock, read last of all.
    pub(crate) at: Nanos,
    /// How far beyond the goal its own clock was.
    pub(crate) over: Nanos,
    /// The clock of the goal did not get there; the kernel's clock had to wait instead.
    pub(crate) stuck: bool,
}

impl Goal {
    /// What the kernel's clock, which reads `now`, will read at the goal.
    pub(crate) fn wake<M: Machine>(self, timebase: &Timebase<M>, now: Nanos) -> Nanos {
        match self {
            Self::KernelClock(reading) => reading,
            Self::OurScale(target, latest) => {
                let left = target.since(timebase.now_ordered()).unwrap_or(Nanos::ZERO);
                (now + left).min(latest)
            }
        }
    }

    /// Polls until just before the goal, in two stretches. The first, to [`ANCHOR_AHEAD`] before it, takes up what the sleep
    /// has left and brings the code and data of the end back into the caches, which a long sleep leaves cold; then the
    /// counter is tied to the kernel's clock anew, and the second stretch ends the delay.
    ///
    /// The verdict is on the second. A gap in the first is as harmless as a longer sleep, and told only if it reached so far
    /// that the second was cut short.
    pub(crate) fn approach<M: Machine>(self, timebase: &Timebase<M>) -> Verdict {
        let (mut filler, _) = Watch::open(timebase);
        let (from, left) = self.anchor_and_warm_up(timebase);
        let start = timebase.stamp_ordered();
        filler.look(start);
        self.approach_to((from, left, start), ANCHOR_AHEAD, &mut filler, timebase);
        let (from, left) = self.anchor_and_warm_up(timebase);
        filler.look(timebase.stamp_ordered());
        let earlier = filler.end();
        let (mut watch, start) = Watch::open(timebase);
        self.approach_to((from, left, start), CONFIRM_AHEAD, &mut watch, timebase);
        watch.look(timebase.stamp());
        let last = watch.end();
        let cut_short = left < Nanos::new(ANCHOR_AHEAD.count() / 2);
        if cut_short || earlier.budget_spent { earlier.and(last) } else { last }
    }

    /// Ties the counter to the clock of the goal, and warms up the confirming read; its result is of no use yet.
    fn anchor_and_warm_up<M: Machine>(self, timebase: &Timebase<M>) -> (Ticks, Nanos) {
        let anchor = self.anchor(timebase);
        let _ = self.look(timebase);
        anchor
    }

    /// Polls, from the third reading on, until so long before the goal, which was so far away at the first.
    fn approach_to<M: Machine>(
        self,
        from: (Ticks, Nanos, Ticks),
        ahead: Nanos,
        watch: &mut Watch<'_, M>,
        timebase: &Timebase<M>,
    ) {
        let (from, left, start) = from;
        let deadline = timebase.ticks_after(from, left - ahead);
        // No skew: what ends the delay is the confirming reading, not this poll. What was left at the anchor is enough for
        // it, unless the counter fails.
        let budget = timebase.ticks_for_at_least(left.max(Nanos::ZERO).min(POLL_MOST));
        let polled = poll(watch, start, deadline, budget, Nanos::ZERO);
        if !polled.reached {
            // The watchdog: the counter does not get there, so the kernel waits.
            let machine = timebase.machine();
            machine.sleep_until(self.wake(timebase, machine.read(Clock::Monotonic)));
        }
    }

    /// Ties the counter to the clock of the goal: a reading of the counter, and how far from the goal it was.
    pub(crate) fn anchor<M: Machine>(self, timebase: &Timebase<M>) -> (Ticks, Nanos) {
        match self {
            Self::KernelClock(wake) => {
                let (machine, source) = (timebase.machine(), timebase.source());
                let bracket = Bracket::narrowest_of(machine, source, Clock::Monotonic, ANCHOR_BRACKETS);
                (bracket.middle(), wake - bracket.clock)
            }
            Self::OurScale(target, latest) => {
                let from = timebase.stamp_ordered();
                let left = target.since(timebase.instant(from)).unwrap_or(Nanos::ZERO);
                (from, left.min(latest - timebase.machine().read(Clock::Monotonic)))
            }
        }
    }

    /// Looks whether the goal has been reached.
    #[inline]
    pub(crate) fn look<M: Machine>(self, timebase: &Timebase<M>) -> Option<Reached> {
        let kernel_clock = || timebase.machine().read(Clock::Monotonic);
        let (at, over) = match self {
            Self::KernelClock(wake) => {
                let at = kernel_clock();
                (at, at - wake)
            }
            Self::OurScale(target, _) => {
                let over = timebase.now_ordered().since(target).unwrap_or(Nanos::ZERO);
                if over.is_negative() {
                    return None;
                }
                (kernel_clock(), over)
            }
        };
        (over >= Nanos::ZERO).then_some(Reached { at, over, stuck: false })
    }

    /// Reads the clock of the goal until it is reached.
    #[inline(always)]
    pub(crate) fn confirm<M: Machine>(self, timebase: &Timebase<M>) -> Reached {
        for _ in 0..CONFIRM_ROUNDS {
            if let Some(reached) = self.look(timebase) {
                return reached;
            }
        }
        self.wait_out(timebase)
    }

    /// The watchdog: the kernel waits for what is left, and its clock decides.
    #[cold]
    fn wait_out<M: Machine>(self, timebase: &Timebase<M>) -> Reached {
        let machine = timebase.machine();
        let mut now = machine.read(Clock::Monotonic);
        let wake = self.wake(timebase, now);
        while now < wake {
            machine.sleep_until(wake);
            now = machine.read(Clock::Monotonic);
        }
        let reached = self.look(timebase).unwrap_or(Reached { at: now, over: Nanos::ZERO, stuck: true });
        Reached { stuck: true, ..reached }
    }
}
