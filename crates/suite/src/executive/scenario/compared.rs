//! The scenarios that compare executives: with hot caches and no load, each as the time of one round.

use hairspring_sheet::Absent;

use super::{clock_service, mailbox, thread_metric, waitwake};
use crate::executive::bench::{Bench, Cache, Found};
use crate::executive::port::Port;

/// A scenario that compares executives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compared {
    /// Wake and wait: a switch there and one back.
    WakeWait,
    /// Trigger, wait, wake and end.
    FourTs,
    /// A message down a chain of tasks, for each link.
    SendRun,
    /// A message starts a task, which ends.
    SendRunEnd,
    /// T1 of a delay: a task delays until a less urgent one runs.
    Delay,
    /// Thread-Metric, cooperative.
    Cooperative,
    /// Thread-Metric, preemptive.
    Preemptive,
    /// Thread-Metric, message.
    Messages,
    /// Thread-Metric, synchronisation.
    Synchronisation,
}

/// A round of one run: the median of its samples.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Wall time of a round.
    pub wall_ns: f64,
    /// CPU time of the process for a round, if only rounds were measured.
    pub cpu_ns: Option<f64>,
    /// Attempted samples.
    pub samples: u64,
    /// Samples without the proof that the more urgent task ran when it should have.
    pub unproven: u64,
}

impl Compared {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::WakeWait,
        Self::FourTs,
        Self::SendRun,
        Self::SendRunEnd,
        Self::Delay,
        Self::Cooperative,
        Self::Preemptive,
        Self::Messages,
        Self::Synchronisation,
    ];

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::WakeWait => "wake + wait, two switches",
            Self::FourTs => "T1 + T2 + T3 + T4",
            Self::SendRun => "mailbox: send → run",
            Self::SendRunEnd => "mailbox: send → run → back",
            Self::Delay => "delay T1: delay → run",
            Self::Cooperative => "cooperative",
            Self::Preemptive => "preemptive",
            Self::Messages => "message",
            Self::Synchronisation => "synchronisation",
        }
    }

    /// Operations that Thread-Metric counts in a round; `None` if it is not a test of Thread-Metric.
    pub fn counted(self) -> Option<f64> {
        match self {
            Self::Cooperative | Self::Preemptive => Some(thread_metric::TASKS as f64),
            Self::Messages | Self::Synchronisation => Some(1.0),
            _ => None,
        }
    }

    /// Runs it once on an executive, with `Bench::rounds` rounds for each sample. Blocks for about `Bench::slice`.
    ///
    /// # Errors
    /// The executive lacks an ability, or too many samples have no proof.
    pub fn take<P: Port>(self, bench: &Bench) -> Result<Round, Absent> {
        let series = self.run::<P>(bench)?.proven()?;
        let whole = matches!(self, Self::WakeWait | Self::FourTs | Self::SendRunEnd);
        // Subtracts the stamps around a whole batch, as the compared benchmarks do.
        let stamps = if whole { bench.pair_ns / bench.rounds as f64 } else { 0.0 };
        let median = series.median().unwrap_or(f64::NAN) - stamps;
        let rounds = (series.attempted * bench.rounds).max(1) as f64;
        Ok(Round {
            // The tests of Thread-Metric give operations per second.
            wall_ns: self.counted().map_or(median, |counted| counted * 1e9 / median),
            cpu_ns: whole.then(|| series.cpu.count() as f64 / rounds),
            samples: series.attempted,
            unproven: series.unproven,
        })
    }

    fn run<P: Port>(self, bench: &Bench) -> Found {
        match self {
            Self::WakeWait => waitwake::closed::<P>(bench, Cache::Hot, false),
            Self::FourTs => waitwake::closed::<P>(bench, Cache::Hot, true),
            Self::SendRun => mailbox::links::<P>(bench),
            Self::SendRunEnd => mailbox::closed::<P>(bench),
            Self::Delay => clock_service::leaving::<P>(bench),
            Self::Cooperative => thread_metric::yields::<P>(bench, bench.rounds),
            Self::Preemptive => thread_metric::wakes::<P>(bench, bench.rounds),
            Self::Messages => thread_metric::messages::<P>(bench, bench.rounds),
            Self::Synchronisation => thread_metric::takings::<P>(bench, bench.rounds),
        }
    }
}
