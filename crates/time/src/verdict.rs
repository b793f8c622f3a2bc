//! [`Verdict`]: what disturbed a thread while it polled.
//!
//! A polling loop looks at the counter every few nanoseconds. A *gap* between two looks that is longer than
//! [`GAP_LEAST`](crate::GAP_LEAST) means that the thread did not run. The machine's sentinel shows whether the thread
//! left its CPU. Nothing shows more without a system call. So a gap is *preempted* if the sentinel broke, else
//! *interrupted*. On a guest the hypervisor may have taken the time as well, and the guest cannot see which:
//! *interrupted or stolen*.

use hairspring_machine::{Machine, Nanos};

use crate::timebase::Timebase;

/// Why a thread did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// An interrupt (or the firmware's system management mode) on a machine without a hypervisor.
    Interrupted,
    /// An interrupt or the hypervisor: on a guest the two look alike.
    InterruptedOrStolen,
    /// The hypervisor. Reported only if counters over the whole run exclude every other cause.
    Stolen,
    /// Not known: the machine has no sentinel that shows whether the thread left its CPU, or something that the watch
    /// did not see made a long delay late.
    Unknown,
    /// The thread was taken off its CPU, or handled a signal.
    Preempted,
}

impl Cause {
    /// All causes, from the least to the gravest.
    pub const ALL: [Self; 5] =
        [Self::Interrupted, Self::InterruptedOrStolen, Self::Stolen, Self::Unknown, Self::Preempted];

    /// The name of the cause in ids and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::InterruptedOrStolen => "interrupted_or_stolen",
            Self::Stolen => "stolen",
            Self::Unknown => "unknown",
            Self::Preempted => "preempted",
        }
    }
}

/// The gaps of one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// How many.
    pub count: u32,
    /// Their length in all.
    pub total: Nanos,
    /// The longest.
    pub longest: Nanos,
}

/// Disturbances of one polling stretch.
///
/// It is small, because a delay writes it between its end and the caller's next instruction. Gaps in which the thread
/// left its CPU have a field of their own. All other gaps share one field; if they have two causes, they count under
/// the graver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    preempted: Gaps,
    on_cpu: Gaps,
    /// The cause of `on_cpu`; [`Cause::Interrupted`] while there are none.
    on_cpu_cause: Cause,
    /// The thread was moved to another CPU.
    pub migrated: bool,
    /// The polling budget was spent and the rest of the time was slept out.
    pub budget_spent: bool,
    /// The longest gap looks like the kernel's throttling of real-time threads.
    pub throttled: bool,
    /// The kernel's clock did not run at the rate that the time base knows: refine it.
    pub rerated: bool,
    /// How long after the deadline the kernel woke the thread; zero if it woke the thread in time.
    pub overslept: Nanos,
}

impl Default for Verdict {
    fn default() -> Self {
        Self::CLEAN
    }
}

impl Gaps {
    fn and(self, more: Self) -> Self {
        Self {
            count: self.count.saturating_add(more.count),
            total: self.total + more.total,
            longest: self.longest.max(more.longest),
        }
    }
}

impl Verdict {
    /// Nothing happened. As a constant it costs an undisturbed delay a few stores and no copy.
    pub const CLEAN: Self = {
        let none = Gaps { count: 0, total: Nanos::ZERO, longest: Nanos::ZERO };
        Self {
            preempted: none,
            on_cpu: none,
            on_cpu_cause: Cause::Interrupted,
            migrated: false,
            budget_spent: false,
            throttled: false,
            rerated: false,
            overslept: Nanos::ZERO,
        }
    };

    /// Adds one gap.
    #[cold]
    pub(crate) fn add(&mut self, cause: Cause, length: Nanos) {
        self.add_all(cause, Gaps { count: 1, total: length, longest: length });
    }

    fn add_all(&mut self, cause: Cause, gaps: Gaps) {
        if cause == Cause::Preempted {
            self.preempted = self.preempted.and(gaps);
        } else if gaps.count > 0 {
            self.on_cpu_cause = self.on_cpu_cause.max(cause);
            self.on_cpu = self.on_cpu.and(gaps);
        }
    }

    /// Adds a gap of unknown cause if the delay ended `over` beyond its goal and the verdict names no reason. Callers
    /// that build a delay from parts need this, because each part may be clean.
    #[inline]
    pub fn explain<M: Machine>(&mut self, over: Nanos, timebase: &Timebase<M>) {
        if over > timebase.gap_least() && self.is_clean() {
            self.add(Cause::Unknown, over);
        }
    }

    /// Combines the verdicts on this stretch and on the next one.
    pub(crate) fn and(mut self, later: Self) -> Self {
        self.add_all(Cause::Preempted, later.preempted);
        self.add_all(later.on_cpu_cause, later.on_cpu);
        self.migrated |= later.migrated;
        self.budget_spent |= later.budget_spent;
        self.throttled |= later.throttled;
        self.rerated |= later.rerated;
        self.overslept = self.overslept.max(later.overslept);
        self
    }

    /// The gaps of one cause.
    pub fn gaps(&self, cause: Cause) -> Gaps {
        match cause {
            Cause::Preempted => self.preempted,
            cause if cause == self.on_cpu_cause => self.on_cpu,
            _ => Gaps::default(),
        }
    }

    /// The total time in which the thread did not run.
    pub fn lost(&self) -> Nanos {
        self.preempted.total + self.on_cpu.total
    }

    /// Whether no disturbance was seen.
    pub fn is_clean(&self) -> bool {
        *self == Self::CLEAN
    }

    /// The verdict in one word: the gravest cause, else `overslept`, `migrated`, `budget_spent`, `rerated` or `clean`.
    pub fn name(&self) -> &'static str {
        let gravest = Cause::ALL.into_iter().rev().find(|cause| self.gaps(*cause).count > 0);
        match gravest {
            Some(cause) => cause.name(),
            None if self.overslept > Nanos::ZERO => "overslept",
            None if self.migrated => "migrated",
            None if self.budget_spent => "budget_spent",
            None if self.rerated => "rerated",
            None => "clean",
        }
    }

    /// Every word that [`name`](Self::name) can return.
    pub const NAMES: [&'static str; 10] = [
        "clean",
        "migrated",
        "overslept",
        "budget_spent",
        "interrupted",
        "interrupted_or_stolen",
        "stolen",
        "unknown",
        "preempted",
        "rerated",
    ];
}

#[cfg(test)]
mod tests {
    use hairspring_machine::Sim;
    use hairspring_machine::sim::Script;

    use super::*;

    #[test]
    fn a_verdict_on_two_stretches_has_what_either_has() {
        let marked = |mark: fn(&mut Verdict)| {
            let mut verdict = Verdict::CLEAN;
            mark(&mut verdict);
            verdict
        };
        let verdicts = [
            marked(|verdict| verdict.migrated = true),
            marked(|verdict| verdict.budget_spent = true),
            marked(|verdict| verdict.throttled = true),
            marked(|verdict| verdict.rerated = true),
            marked(|verdict| verdict.overslept = Nanos::new(9)),
            marked(|verdict| verdict.add(Cause::Preempted, Nanos::new(7))),
            marked(|verdict| verdict.add(Cause::Unknown, Nanos::new(8))),
        ];
        for verdict in verdicts {
            assert_eq!(verdict.and(Verdict::CLEAN), verdict);
            assert_eq!(Verdict::CLEAN.and(verdict), verdict);
        }
        let all = verdicts.into_iter().fold(Verdict::CLEAN, Verdict::and);
        assert!(all.migrated && all.budget_spent && all.throttled && all.rerated);
        assert_eq!((all.overslept, all.lost()), (Nanos::new(9), Nanos::new(15)));
    }

    #[test]
    fn the_word_is_that_of_the_gravest() {
        let mut verdict = Verdict::CLEAN;
        assert_eq!(verdict.name(), "clean");
        verdict.throttled = true;
        assert_eq!(verdict.name(), "clean", "a stall is named by its gap");
        verdict.rerated = true;
        assert_eq!(verdict.name(), "rerated");
        verdict.budget_spent = true;
        assert_eq!(verdict.name(), "budget_spent");
        verdict.migrated = true;
        assert_eq!(verdict.name(), "migrated");
        verdict.overslept = Nanos::new(1);
        assert_eq!(verdict.name(), "overslept");
        verdict.add(Cause::Interrupted, Nanos::new(1));
        assert_eq!(verdict.name(), "interrupted");
    }

    #[test]
    fn lateness_of_more_than_the_shortest_gap_is_explained_and_less_is_a_step_of_the_loop() {
        let timebase = Timebase::calibrate(Sim::new(Script::default())).expect("it advances");
        let least = timebase.gap_least();
        let mut verdict = Verdict::CLEAN;
        verdict.explain(least, &timebase);
        assert!(verdict.is_clean());
        verdict.explain(least + Nanos::new(1), &timebase);
        assert_eq!((verdict.name(), verdict.lost()), ("unknown", least + Nanos::new(1)));
        let known = verdict;
        verdict.explain(least * 2, &timebase);
        assert_eq!(verdict, known, "it names a reason already");
    }
}
