//! [`RunLimit`] and [`Finish`]: how long an executive runs, why it stopped, and what went wrong.

use hairspring_exec_core::{Ending, TaskId};
use hairspring_machine::{Instant, Nanos, Refused};

/// How long to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunLimit {
    /// Until a task stops the executive or nothing can happen any more.
    Forever,
    /// For this long.
    For(Nanos),
    /// Until this instant.
    Until(Instant),
}

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// A task, timer or interrupt procedure stopped the executive.
    Asked,
    /// The limit was reached.
    TimeUp,
    /// Every task is idle, no timer runs and no interrupt source is attached: nothing could happen any more.
    Finished,
    /// Some task waits, but nothing can end its wait any more.
    Stuck,
}

/// A run of a task that did not end by returning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mishap {
    /// Which task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// The kind of mishap.
    pub what: Misfortune,
}

/// The ways in which a task can go wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Misfortune {
    /// Its run was killed or panicked. The text is the panic's message.
    Ended(Ending, String),
    /// The task returned while it owned resources. They were handed on.
    HeldResources,
    /// The task kept the CPU without a call longer than the watchdog allows, and lost its real-time priority.
    RanAway(Nanos),
}

/// Losses, errors and end of an attached interrupt source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceTrouble {
    /// The number of its procedure, in the order of attachment.
    pub isp: u16,
    /// Its name.
    pub name: String,
    /// Arrivals that found the ring full and were lost.
    pub lost: u64,
    /// Reads that failed.
    pub errors: u64,
    /// Why the source ended: end of file, repeated read errors, or a panic of its procedure.
    pub ended: Option<String>,
}

/// The report of a run. It counts everything that was lost.
#[derive(Clone, PartialEq, Debug)]
pub struct Finish {
    /// Why it ended.
    pub stopped: StopReason,
    /// Panics, kills, tasks that ended as owners, runaways; at most [`MOST_MISHAPS`].
    pub mishaps: Vec<Mishap>,
    /// Mishaps beyond that number.
    pub more_mishaps: u64,
    /// Interrupts that found the ring full and were lost, of all sources.
    pub interrupts_lost: u64,
    /// The sources that lost arrivals, could not be read, or ended since the last report.
    pub sources: Vec<SourceTrouble>,
    /// Timer periods that passed without a run of the procedure, of all timers.
    pub timer_overruns: u64,
    /// How often a look at interrupts and timers was broken off to let the tasks run, because each procedure made
    /// another one due. On fibers and in virtual time. Nothing is lost: the next call continues.
    pub floods: u64,
    /// The longest time that a timer or interrupt procedure kept the CPU, if the watchdog did not allow it; on fibers.
    pub procedure_ran_away: Option<Nanos>,
    /// The refusals of the system. With a refusal, [`strict`](Self::strict) may be false.
    pub refused: Vec<Refused>,
    /// Whether strict priority held: the back-end could promise that the most urgent ready task is the one that runs.
    pub strict: bool,
    /// The longest time in which the executive kept other threads out of its state, if it was measured: the hold of the
    /// thread back-end's lock, or one call of the fiber back-end.
    pub longest_lock: Option<Nanos>,
    /// Longest time for which a fiber's own code ran without a call or an end that looks at interrupts, time and the
    /// limit of the run, if it was measured.
    pub longest_unpolled: Option<Nanos>,
}

/// The most mishaps in a [`Finish`]: enough to see a pattern, and few enough to print.
pub const MOST_MISHAPS: usize = 64;

impl Finish {
    pub(crate) fn new(stopped: StopReason) -> Self {
        Self {
            stopped,
            mishaps: Vec::new(),
            more_mishaps: 0,
            interrupts_lost: 0,
            sources: Vec::new(),
            timer_overruns: 0,
            floods: 0,
            procedure_ran_away: None,
            refused: Vec::new(),
            strict: true,
            longest_lock: None,
            longest_unpolled: None,
        }
    }

    pub(crate) fn add(&mut self, mishap: Mishap) {
        if self.mishaps.len() < MOST_MISHAPS {
            self.mishaps.push(mishap);
        } else {
            self.more_mishaps += 1;
        }
    }

    pub(crate) fn tell_sources(&mut self, troubles: impl Iterator<Item = SourceTrouble>) {
        self.sources = troubles.collect();
        self.interrupts_lost = self.sources.iter().map(|trouble| trouble.lost).sum();
    }

    /// Whether nothing was lost, no source had trouble or ended, no task met with a mishap and no procedure ran away.
    pub fn clean(&self) -> bool {
        let lost = self.interrupts_lost + self.timer_overruns;
        self.mishaps.is_empty() && self.sources.is_empty() && lost == 0 && self.procedure_ran_away.is_none()
    }
}
