//! [`Verdict`]: what happened to a thread while it polled, as far as that can be told.
//!
//! A polling loop looks at the counter every few nanoseconds. A *gap* between two looks that is longer than
//! [`GAP_LEAST`] means that the thread did not run. The sentinel of the machine tells whether it left its CPU; without a
//! system call nothing tells more. So a gap is *preempted* if the sentinel broke, else *interrupted*, except on a guest,
//! where the hypervisor can take the time just as well and nobody inside can tell: *interrupted or stolen*.

use hairspring_machine::{Machine, Nanos};

use crate::timebase::Timebase;

/// The shortest pause between two looks at the counter that counts as a gap. A hundred times a poll step, and shorter
/// than any interrupt. Where time is taken from a kernel clock so slow that a look takes that long itself, four looks.
pub const GAP_LEAST: Nanos = Nanos::from_micros(1);

/// Why a thread did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// An interrupt (or the firmware's system management mode) on a machine without a hypervisor.
    Interrupted,
    /// An interrupt or the hypervisor: on a guest the two look alike.
    InterruptedOrStolen,
    /// The hypervisor: only where counters over the run leave nothing else.
    Stolen,
    /// Anything: there was no sentinel to tell whether the thread left its CPU, or a long delay was late by something that
    /// its watch did not see.
    Unknown,
    /// The thread was taken off its CPU, or handled a signal.
    Preempted,
}

impl Cause {
    /// All causes, from the least to the gravest.
    pub const ALL: [Self; 5] =
        [Self::Interrupted, Self::InterruptedOrStolen, Self::Stolen, Self::Unknown, Self::Preempted];

    /// Its name as it stands in ids and in JSON.
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

/// What disturbed one polling stretch.
///
/// It is small, for it is written between the end of a delay and its caller's next instruction: gaps in which the thread left its CPU
/// have a place of their own, all others share one. Gaps of two causes in that one count as those of the graver.
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
    /// By how much the kernel woke us after the deadline itself; zero when it was in time.
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
    /// Nothing happened. As a constant it costs a delay that nothing disturbed a few stores, and no copy.
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

    /// If the end came so long after where it was to be and nothing tells why, adds that as a gap of unknown cause: for who puts the
    /// end of a delay together of parts, each of which may be clean.
    #[inline]
    pub fn explain<M: Machine>(&mut self, over: Nanos, timebase: &Timebase<M>) {
        if over > timebase.gap_least() && self.is_clean() {
            self.add(Cause::Unknown, over);
        }
    }

    /// This stretch and the one after it as one.
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

    /// How long the thread did not run, in all.
    pub fn lost(&self) -> Nanos {
        self.preempted.total + self.on_cpu.total
    }

    /// Nothing happened that can be told.
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

    /// Every word that [`name`](Self::name) can say.
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
