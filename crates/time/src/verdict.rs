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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    gaps: [Gaps; Cause::ALL.len()],
    /// The thread was moved to another CPU.
    pub migrated: bool,
    /// The polling budget was spent and the rest of the time was slept out.
    pub budget_spent: bool,
    /// The longest gap looks like the kernel's throttling of real-time threads.
    pub throttled: bool,
    /// By how much the kernel woke us after the deadline itself; zero when it was in time.
    pub overslept: Nanos,
}

impl Verdict {
    /// Adds one gap.
    pub(crate) fn add(&mut self, cause: Cause, length: Nanos) {
        let gaps = &mut self.gaps[cause as usize];
        gaps.count += 1;
        gaps.total = gaps.total + length;
        gaps.longest = gaps.longest.max(length);
    }

    /// If the end came so long after where it was to be and nothing tells why, adds that as a gap of unknown cause: for who puts the
    /// end of a delay together of parts, each of which may be clean.
    pub fn explain<M: Machine>(&mut self, over: Nanos, timebase: &Timebase<M>) {
        if over > timebase.gap_least() && self.is_clean() {
            self.add(Cause::Unknown, over);
        }
    }

    /// This stretch and the one after it as one.
    pub(crate) fn and(mut self, later: Self) -> Self {
        for (gaps, more) in self.gaps.iter_mut().zip(later.gaps) {
            gaps.count += more.count;
            gaps.total = gaps.total + more.total;
            gaps.longest = gaps.longest.max(more.longest);
        }
        self.migrated |= later.migrated;
        self.budget_spent |= later.budget_spent;
        self
    }

    /// The gaps of one cause.
    pub fn gaps(&self, cause: Cause) -> Gaps {
        self.gaps[cause as usize]
    }

    /// How long the thread did not run, in all.
    pub fn lost(&self) -> Nanos {
        self.gaps.iter().map(|gaps| gaps.total).sum()
    }

    /// Nothing happened that can be told.
    pub fn is_clean(&self) -> bool {
        *self == Self::default()
    }

    /// The verdict in one word: the gravest cause, else `overslept`, `migrated` or `clean`.
    pub fn name(&self) -> &'static str {
        let gravest = Cause::ALL.into_iter().rev().find(|cause| self.gaps(*cause).count > 0);
        match gravest {
            Some(cause) => cause.name(),
            None if self.overslept > Nanos::ZERO => "overslept",
            None if self.migrated => "migrated",
            None if self.budget_spent => "budget_spent",
            None => "clean",
        }
    }

    /// Every word that [`name`](Self::name) can say.
    pub const NAMES: [&'static str; 9] = [
        "clean",
        "migrated",
        "overslept",
        "budget_spent",
        "interrupted",
        "interrupted_or_stolen",
        "stolen",
        "unknown",
        "preempted",
    ];
}
