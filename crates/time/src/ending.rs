//! [`Ending`]: the way out of a delay that ends by the kernel's clock.
//!
//! # Problem
//! After a sleep, code and data of the way out are in no cache, and each line of them costs some 100 ns. That is more than all else that
//! makes a delay late.
//!
//! # Solution
//! The end is a *pass* that is made twice: first as a rehearsal, without effect, a little before the goal. So what runs after the goal
//! has run just before. The code of both passes is the same code. The compiler must not know which pass is which, or it would make two
//! copies of it.
//!
//! The report is written into the caller's variable, because a copy of what was written just before would cost more than the rest.

use std::hint::black_box;
use std::mem::ManuallyDrop;

use hairspring_machine::{Machine, Nanos};

use crate::goal::{Goal, Reached};
use crate::poll::Watch;
use crate::report::{DelayError, Report};
use crate::timebase::Timebase;
use crate::verdict::Verdict;

/// A delay just before its goal.
pub(crate) struct Ending<'t, M: Machine> {
    pub(crate) goal: Goal,
    timebase: &'t Timebase<M>,
    /// The watch on the last stretch. It ends inside the last pass, before the way out.
    watch: ManuallyDrop<Watch<'t, M>>,
    /// How long the thread has slept because the counter did not get there.
    waited: Nanos,
}

impl<'t, M: Machine> Ending<'t, M> {
    #[inline(always)]
    pub(crate) fn new(goal: Goal, timebase: &'t Timebase<M>, watch: Watch<'t, M>, waited: Nanos) -> Self {
        Self { goal, timebase, watch: ManuallyDrop::new(watch), waited }
    }

    /// The way into the code that ends the delay is no gap.
    #[inline(always)]
    pub(crate) fn go_over_to_clock(&mut self) {
        self.watch.go_over_to_clock(self.timebase.machine().monotonic());
    }

    /// Makes both passes. `pass` makes one; its argument says whether that is the rehearsal.
    #[inline(always)]
    pub(crate) fn in_two_passes(mut pass: impl FnMut(bool)) {
        let mut rehearsal = black_box(true);
        loop {
            pass(rehearsal);
            if !rehearsal {
                return;
            }
            rehearsal = black_box(false);
        }
    }

    /// One pass: `come` comes nearer to the goal by the counter, and in a rehearsal does not wait; then this reads the kernel's clock until
    /// the goal is reached, and tells the caller. `report` makes all of the report but the verdict, from how the goal was reached and how
    /// long the thread has waited asleep.
    #[inline(always)]
    pub(crate) fn pass(
        &mut self,
        rehearsal: bool,
        told: &mut Result<Report, DelayError>,
        come: impl Fn(&mut Watch<'t, M>),
        report: impl Fn(Reached, Nanos) -> Report,
    ) {
        let (machine, watch) = (self.timebase.machine(), &mut self.watch);
        come(watch);
        let reached = self.goal.confirm(self.timebase, watch, &mut self.waited, rehearsal);
        machine.fence();
        let report = report(reached, self.waited);
        *told = Ok(Report { verdict: Verdict::CLEAN, ..report });
        if watch.has_news(reached.over) {
            *told = Ok(Report { verdict: watch.explain(reached.over, reached.apart), ..report });
        }
        if !rehearsal {
            watch.let_go();
            return;
        }
        black_box(told);
        // Fetching cold code is no gap, unless it took until after the goal.
        let now = machine.monotonic();
        if now < self.goal.reading() {
            watch.go_over_to_clock(now);
            watch.pass_over_to(self.timebase.stamp());
        }
    }
}
