//! How an executive is set up.

use hairspring_machine::{Cpu, CpuSet, Nanos, Refused};

/// Sizes and options of an executive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecConfig {
    /// Messages that can be under way at once, in all mailboxes and exchanges together; 1 to 65,534.
    pub envelopes: u16,
    /// The largest message, in bytes; 12 as in AMX.
    pub message_bytes: usize,
    /// Stack of each task, in bytes, rounded up to pages, with a guard page below. Only what is touched becomes memory. On fibers
    /// and in virtual time, timer and interrupt procedures and hooks run on the stack of the task in whose call they come, so each
    /// stack must hold the task's own deepest call and the deepest procedure upon it. The procedures find the floating-point
    /// control words that a run begins with, and the task finds its own afterwards.
    pub stack_bytes: usize,
    /// How much CPU time a task may use in one stretch without a call before the watchdog takes its real-time priority.
    /// Zero: nobody watches while it runs.
    pub watchdog: Nanos,
    /// Calls to keep in the trace; none: no trace, and no clock reading per call.
    pub trace: Option<usize>,
    /// Whether to measure how long the executive keeps others out and leaves interrupts unpolled; two clock readings per
    /// call.
    pub measure_latency: bool,
}

impl Default for ExecConfig {
    fn default() -> Self {
        Self {
            envelopes: 1024,
            message_bytes: 12,
            stack_bytes: 64 * 1024,
            watchdog: Nanos::from_secs(1),
            trace: None,
            measure_latency: false,
        }
    }
}

/// How the thread back-end uses the CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadProfile {
    /// All tasks on one CPU: strict priority holds.
    Up {
        /// Which; none: the last one that the process may run on.
        cpu: Option<Cpu>,
    },
    /// Tasks on these CPUs: as many of the most urgent run at once. A wake does not preempt its sender.
    Smp {
        /// Which; empty: all that the process may run on.
        cpus: CpuSet,
    },
}

/// Why an executive could not be made or run.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExecError {
    /// The configuration makes no sense; what to write instead.
    ExecConfig(&'static str),
    /// The system has no more threads, memory or descriptors.
    System(std::io::Error),
    /// A placement that was asked for was not granted.
    Refused(Refused),
}

impl std::fmt::Display for ExecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ExecConfig(text) => write!(f, "set up an executive: {text}"),
            Self::System(error) => write!(f, "set up an executive: {error}"),
            Self::Refused(refused) => refused.fmt(f),
        }
    }
}

impl std::error::Error for ExecError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::ExecConfig(_) => None,
            Self::System(error) => Some(error),
            Self::Refused(refused) => Some(refused),
        }
    }
}

impl From<std::io::Error> for ExecError {
    fn from(error: std::io::Error) -> Self {
        Self::System(error)
    }
}
