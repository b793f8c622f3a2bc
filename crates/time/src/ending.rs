//! [`Ending`]: the way out of a delay that ends by the kernel's clock.
//!
//! # Problem
//! After a sleep, code and data of the way out are in no cache, and each line of them costs some 100 ns. That is more
//! than all else that makes a delay late.
//!
//! # Solution
//! The end is a *pass* that is made twice: first as a rehearsal, without effect, a little before the goal. So what runs
//! after the goal has run just before. The code of both passes is the same code. The compiler must not know which pass
//! is which, or it would make two copies of it. After its last reading of a clock, a pass does not ask which one it is:
//! the processor, which has just seen the answer of the rehearsal, would predict the wrong one.
//!
//! The report is written into the caller's variable, because a copy of what was written just before would cost more
//! than the rest.

use std::mem::ManuallyDrop;

use hairspring_machine::{Machine, Nanos};

use crate::goal::{Goal, Reached};
use crate::poll::{Watch, poll};
use crate::report::Report;
use crate::timebase::Timebase;

/// Typical overshoot of a poll of the counter: half a step plus one mispredicted branch. If the poll ends earlier, the
/// kernel's clock is read once more.
const POLL_SEES_LATE: Nanos = Nanos::new(8);

/// A delay just before its goal.
pub(crate) struct Ending<'t, M: Machine> {
    pub(crate) goal: Goal,
    timebase: &'t Timebase<M>,
    /// The watch on the last stretch. It ends inside the last pass, before the way out.
    watch: ManuallyDrop<Watch<'t, M>>,
    /// How long the thread has slept because the counter did not get there. Then the goal has passed.
    waited: Nanos,
}

impl<'t, M: Machine> Ending<'t, M> {
    #[inline(always)]
    pub(crate) fn new(goal: Goal, timebase: &'t Timebase<M>, watch: Watch<'t, M>, waited: Nanos) -> Self {
        Self { goal, timebase, watch: ManuallyDrop::new(watch), waited }
    }

    /// One pass: polls the counter until the next reading of the kernel's clock will be at the goal, reads that clock
    /// until the goal is reached, and completes the caller's report. A rehearsal ends earlier. `tell` enters into the
    /// report how the goal was reached and how long the thread has waited asleep. The other fields were in the caller's
    /// variable before the first pass, and unchanged ones are not written again.
    #[inline(always)]
    pub(crate) fn pass(&mut self, rehearsal: bool, told: &mut Report, tell: impl Fn(&mut Report, Reached, Nanos)) {
        if !rehearsal {
            self.take_up();
        }
        if self.waited == Nanos::ZERO {
            self.come(rehearsal);
        }
        let watch = &mut self.watch;
        let reached = self.goal.confirm(self.timebase, watch, &mut self.waited, rehearsal);
        tell(told, reached, self.waited);
        if watch.has_news(reached.over) {
            told.verdict = watch.explain(reached.over, reached.apart);
        }
        watch.let_go();
        // Nothing that follows has begun before the goal.
        self.timebase.machine().fence();
    }

    /// Goes on watching after the rehearsal: fetching cold code is no gap, unless it took until after the goal.
    #[inline(always)]
    fn take_up(&mut self) {
        self.watch.take_up();
        let now = self.timebase.machine().monotonic();
        if now < self.goal.reading() {
            self.watch.go_over_to_clock(now);
            self.watch.pass_over_to(self.timebase.stamp());
        }
    }

    /// Polls the counter, so that the next reading of the kernel's clock is at the goal, as that of the tie would be.
    #[inline(always)]
    fn come(&mut self, rehearsal: bool) {
        let Self { goal, timebase, watch, .. } = self;
        let tie = goal.tie(timebase);
        if rehearsal {
            // The way into this code is no gap.
            watch.pass_over_to(tie.after);
        }
        let left = if rehearsal { Nanos::ZERO } else { goal.left(timebase, tie.at()) };
        let aim = timebase.ticks_after(tie.before, left - POLL_SEES_LATE);
        let polled = poll(watch, tie.before, aim, i64::MAX, goal.latest(), Nanos::ZERO);
        // Later looks see only what comes after the goal, unless the goal passed within a gap that was seen.
        let in_time = !rehearsal && polled.end.since(aim) < timebase.gap_ticks();
        watch.go_over_to_clock(if in_time { tie.at() + left } else { timebase.machine().monotonic() });
    }
}
