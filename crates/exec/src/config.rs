//! [`ExecConfig`]: the configuration of an executive.

use hairspring_machine::{Cpu, CpuSet, Nanos, Refused};

/// Sizes and options of an executive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecConfig {
    /// The most messages in all mailboxes and exchanges together; 1 to 65,534.
    pub envelopes: u16,
    /// The largest message, in bytes; 12 as in AMX.
    pub message_bytes: usize,
    /// Stack of each task, in bytes, rounded up to pages, with a guard page below. Only touched pages use memory. On
    /// fibers and in virtual time, timer and interrupt procedures and hooks run on the stack of the task that makes a
    /// call. So each stack must hold the task's deepest call plus the deepest procedure. Procedures get the
    /// floating-point control words of a new run, and a task that [keeps its own](crate::TaskCtx::keep_control_words)
    /// gets them back afterwards.
    pub stack_bytes: usize,
    /// The time slice among tasks of equal priority; none: a task keeps the CPU until it waits, yields or ends. Each
    /// time that this span has passed the running task goes behind the ready tasks of its priority. A task that runs
    /// above its own priority (by a [threshold](crate::Threshold), a ceiling or inheritance) keeps the CPU. The span
    /// runs while tasks do, not anew for each task, so the first slice of a task can be shorter. On fibers a slice ends
    /// at the first call after it; on several CPUs one of the running tasks goes behind at each end. At least 100 µs.
    pub slice: Option<Nanos>,
    /// The CPU time that a task may use without a call before the watchdog takes its real-time priority. Zero: no
    /// watchdog.
    pub watchdog: Nanos,
    /// The number of calls in the trace; none: no trace, and no clock reading per call.
    pub trace: Option<usize>,
    /// Whether to measure how long the executive locks its state and leaves interrupts unpolled. Costs two clock
    /// readings per call.
    pub measure_latency: bool,
    /// Whether to measure the CPU time and the switches of each task on fibers and in virtual time. Costs a clock
    /// reading per call. With threads the kernel counts them anyway.
    pub measure_usage: bool,
}

impl Default for ExecConfig {
    fn default() -> Self {
        Self {
            envelopes: 1024,
            message_bytes: 12,
            stack_bytes: 64 * 1024,
            slice: None,
            watchdog: Nanos::from_secs(1),
            trace: None,
            measure_latency: false,
            measure_usage: false,
        }
    }
}

/// The CPUs of the thread back-end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadProfile {
    /// All tasks on one CPU: strict priority holds.
    Up {
        /// The CPU; none: the last one that the process may run on.
        cpu: Option<Cpu>,
    },
    /// Tasks on these CPUs: each CPU runs one of the most urgent tasks. A wake does not preempt its sender.
    Smp {
        /// The CPUs; empty: all that the process may run on.
        cpus: CpuSet,
    },
}

/// Why an executive could not be made or run.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExecError {
    /// The configuration is invalid. The text states the requirement.
    ExecConfig(&'static str),
    /// The system has no more threads, memory or descriptors.
    System(std::io::Error),
    /// The calling thread has a shadow stack (CET, GCS), which ends the process when fibers switch stacks. Take
    /// threads, or start the program without shadow stacks.
    ShadowStack,
    /// The system refused a requested placement.
    Refused(Refused),
}

impl std::fmt::Display for ExecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ExecConfig(text) => write!(f, "set up an executive: {text}"),
            Self::System(error) => write!(f, "set up an executive: {error}"),
            Self::ShadowStack => f.write_str(
                "set up an executive on fibers: this thread has a shadow stack, with which no switch of stacks is allowed; take threads, or start the \
                 program without shadow stacks",
            ),
            Self::Refused(refused) => refused.fmt(f),
        }
    }
}

impl std::error::Error for ExecError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::ExecConfig(_) | Self::ShadowStack => None,
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
