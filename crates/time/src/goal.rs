//! [`Goal`]: the reading of the kernel's clock at which a delay ends, and the way to it.
//!
//! # Problem
//! Reading the counter takes 10 ns, but its rate is only known from the past: the kernel may change the rate of its
//! clock at any moment. The kernel's clock decides when a delay is over, but reading it takes longer.
//!
//! # Solution
//! ```text
//!   tie ──── poll the counter ────► tie ──► poll ──► … ──► ahead of the goal ──► read the kernel's clock until it is there
//!    ▲                               │
//!    └───── (1) not near enough ─────┘
//! ```
//! A *tie* reads the kernel's clock between two readings of the counter. The counter only determines when to look
//! again. Each stretch of polling ends early enough for a rate that is wrong by 1/4096. A reading of the kernel's clock
//! ends the delay.
//!
//! # Deadlines on the scale of a time base
//! An instant is a reading of the kernel's clock that was taken with the counter. Such a deadline is reached when two
//! clocks have reached it: our scale, so that `now()` is not before it, and the kernel's clock, corrected by the offset
//! that was measured last. The lateness is that of the clock that is further. A counter that stops would never get
//! there, so the wait also ends at a latest reading of the kernel's clock, twice as far away.

use hairspring_machine::{Clock, Instant, Machine, Nanos};

use crate::calibration::Bracket;
use crate::poll::{STUCK_AFTER, Watch, poll};
use crate::report::Report;
use crate::timebase::Timebase;

/// Readings of the kernel's clock before the kernel waits instead. They take some milliseconds, and the poll before has
/// left some microseconds.
const CONFIRM_ROUNDS: u32 = 100_000;
/// Disturbances in a row for each of which another reading is taken beyond the goal. If the clock has become slow to
/// read, as when the kernel takes another clock source, every reading looks disturbed.
const DISTURBED_MOST: u32 = 8;
/// How long before the goal the end is rehearsed. A rehearsal with cold caches takes some hundred nanoseconds.
const REHEARSED_AHEAD: Nanos = Nanos::from_micros(2);
/// The poll of the counter ends earlier by this part of the stretch (244 ppm), because the rate may have changed.
const RATE_PART: i64 = 4_096;

/// The end of a delay.
#[derive(Clone, Copy)]
pub(crate) struct Goal {
    /// By the kernel's clock.
    at: Instant,
    /// The reading from which the lateness is counted: `at`, or earlier if more time than that must pass.
    due: Instant,
    /// An instant that our scale must reach, too, and the reading of the kernel's clock at which the wait for it ends.
    target: Option<(Instant, Instant)>,
}

/// How a goal was reached.
#[derive(Clone, Copy)]
pub(crate) struct Reached {
    /// The kernel's clock, read last of all.
    pub(crate) at: Instant,
    /// How far the clock that is further was beyond the goal.
    pub(crate) over: Nanos,
    /// The two clocks differ.
    pub(crate) apart: bool,
}

impl Goal {
    /// The goal `span` after a reading of the kernel's clock.
    #[inline(always)]
    pub(crate) fn after<M: Machine>(timebase: &Timebase<M>, began: Instant, span: Nanos) -> Self {
        // The first reading may be almost a step old; a nanosecond of that is what every reading leaves out.
        let at = began + timebase.machine().clock_step() - Nanos::new(1) + span;
        Self { at, due: at, target: None }
    }

    /// The goal at an instant. It lies `ahead` by our scale, which was read just after the kernel's clock.
    #[inline(always)]
    pub(crate) fn until<M: Machine>(timebase: &Timebase<M>, began: Instant, target: Instant, ahead: Nanos) -> Self {
        let due = Instant::from_monotonic(target.as_monotonic()) - timebase.offset();
        let latest = began + ahead.max(due - began).max(Nanos::ZERO) * 2 + STUCK_AFTER;
        // The time that was ahead must pass in any case, whatever the kernel's clock read.
        Self { at: due.max(began + ahead), due, target: Some((target, latest)) }
    }

    /// The time left at this reading of the kernel's clock, which was taken just now.
    #[inline]
    pub(crate) fn left<M: Machine>(self, timebase: &Timebase<M>, now: Instant) -> Nanos {
        let by_kernel = self.at - now;
        match self.target {
            None => by_kernel,
            Some((target, latest)) => {
                let ours = target.since(timebase.now_ordered()).unwrap_or(Nanos::ZERO);
                by_kernel.max(ours.min(latest - now))
            }
        }
    }

    /// How far beyond the goal the clocks are, and whether both have reached it. With `ahead`, for a rehearsal: whether
    /// the kernel's clock has come so close to it.
    #[inline(always)]
    fn over<M: Machine>(self, timebase: &Timebase<M>, at: Instant, gap_least: Nanos, ahead: Nanos) -> (Reached, bool) {
        let (by_kernel, end) = (at - self.due, self.at - ahead);
        match self.target {
            None => (Reached { at, over: by_kernel, apart: false }, at >= end),
            Some((target, latest)) => {
                let ours = timebase.now_ordered().since(target).unwrap_or(by_kernel);
                let apart = (ours - by_kernel).count().abs() > gap_least.count();
                let reached = Reached { at, over: ours.max(by_kernel), apart };
                (reached, at >= end && (ahead > Nanos::ZERO || ours >= Nanos::ZERO || at >= latest))
            }
        }
    }

    /// The reading of the kernel's clock at which the goal is reached.
    #[inline(always)]
    pub(crate) fn reading(self) -> Instant {
        self.at
    }

    /// When to stop looking at the counter, by the kernel's clock.
    #[inline(always)]
    pub(crate) fn latest(self) -> Instant {
        self.target.map_or(self.at, |(_, latest)| latest)
    }

    /// The report on a goal that has passed: the lateness by the clock that is further, and whether the two clocks
    /// differ.
    #[cold]
    pub(crate) fn passed<M: Machine>(self, timebase: &Timebase<M>) -> Report {
        let gap_least = timebase.gap_least();
        let Reached { over, apart, .. } = self.over(timebase, timebase.machine().monotonic(), gap_least, Nanos::ZERO).0;
        let mut report = Report { late: over, ..Report::NONE };
        report.verdict.rerated = apart && over > gap_least;
        report
    }

    /// Polls the counter until `ahead` before the goal, for at most `budget` ticks from the first tie on. Returns the
    /// last tie, and whether the poll got that far.
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
            let left = self.left(timebase, tie.at());
            let near = ahead + Nanos::new(left.count().max(0) / RATE_PART);
            if left <= near {
                return (tie, true);
            }
            // The budget is spent, whatever the counter does.
            if tie.after.since(start) >= budget {
                return (tie, false);
            }
            let deadline = timebase.ticks_after(tie.middle(), left - near);
            // No skew: a reading of the kernel's clock ends the delay.
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

    /// Reads the kernel's clock until the goal is reached; a rehearsal ends when it is near.
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
        let ahead = if rehearsal { REHEARSED_AHEAD } else { Nanos::ZERO };
        let mut beyond = 0;
        loop {
            for _ in 0..CONFIRM_ROUNDS {
                let at = machine.monotonic();
                // Noting the disturbance took time, so a later reading decides.
                let disturbed = watch.look_by_clock(at).is_some();
                let (reached, done) = self.over(timebase, at, gap_least, ahead);
                if done {
                    beyond += 1;
                    if !disturbed || beyond > DISTURBED_MOST {
                        return reached;
                    }
                }
            }
            *slept += self.wait_out(timebase, watch);
        }
    }

    /// The watchdog: sleeps in the kernel for the time left. Returns how long the thread slept.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait_out<M: Machine>(self, timebase: &Timebase<M>, watch: &mut Watch<'_, M>) -> Nanos {
        let machine = timebase.machine();
        let from = machine.monotonic();
        let mut now = from;
        loop {
            let left = self.left(timebase, now);
            if left <= Nanos::ZERO {
                break;
            }
            machine.sleep_until(now + left);
            now = machine.monotonic();
        }
        watch.note(|verdict| verdict.budget_spent = true);
        watch.slept(now);
        now - from
    }
}

#[cfg(test)]
mod tests {
    use hairspring_machine::Sim;
    use hairspring_machine::sim::{Disturbance, Script};

    use super::*;

    /// The same machine in the same state at each call.
    fn machine() -> (Sim, Timebase<Sim>) {
        let sim = Sim::new(Script::default());
        (sim.clone(), Timebase::calibrate(sim).expect("it advances"))
    }

    /// The clock of this machine shows single nanoseconds.
    #[test]
    fn a_goal_after_a_reading_is_the_span_later() {
        let (sim, timebase) = machine();
        let began = sim.monotonic();
        for span in [0, 1, 20_000].map(Nanos::new) {
            assert_eq!(Goal::after(&timebase, began, span).reading(), began + span);
        }
    }

    #[test]
    fn the_clocks_are_apart_if_they_differ_by_more_than_the_shortest_gap_in_either_direction() {
        let over = |by_kernel: Nanos, gap_least| {
            let (_, timebase) = machine();
            let target = timebase.now_ordered() + Nanos::from_micros(1);
            let due = Instant::from_monotonic(target.as_monotonic());
            let goal = Goal { at: due, due, target: Some((target, due + STUCK_AFTER)) };
            goal.over(&timebase, due + by_kernel, gap_least, Nanos::ZERO).0
        };
        // The kernel's clock is far behind, so the lateness is that of our scale.
        let ours = over(Nanos::from_millis(-1), Nanos::ZERO).over;
        for difference in [3_000, -3_000].map(Nanos::new) {
            let apart = |gap_least| over(ours - difference, Nanos::new(gap_least)).apart;
            assert!(!apart(3_000) && apart(2_999), "{difference}");
        }
    }

    #[test]
    fn an_approach_ends_ahead_of_the_goal_even_if_the_counter_stands_still() {
        let (sim, timebase) = machine();
        sim.disturb(sim.true_time(), Disturbance::CounterRate(0));
        let began = sim.monotonic();
        let mut watch = Watch::begin_by_clock(&timebase, began);
        let goal = Goal::after(&timebase, began, Nanos::from_millis(2));
        let (ahead, first) = (Nanos::from_millis(1), goal.tie(&timebase));
        watch.start_at(first.after);
        let (last, near) = goal.approach(&timebase, &mut watch, first, ahead, i64::MAX);
        let left = goal.reading() - last.at();
        // It looks at the kernel's clock every 4,096 rounds.
        assert!(near && left <= ahead && left > Nanos::from_micros(800), "{left} are left");
    }
}
