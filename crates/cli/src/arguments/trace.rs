//! The arguments of `hairspring trace`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
use hairspring_exec::programs;

#[derive(Args, Debug)]
pub(crate) struct TraceArguments {
    /// Which example
    #[arg(value_name = "EXAMPLE", value_parser = PossibleValuesParser::new(examples()))]
    pub(crate) example: String,
    /// What runs its tasks
    #[arg(long, value_enum, default_value_t = BackendName::Sim)]
    pub(crate) backend: BackendName,
    /// Write the trace to this file, as a value change dump (.vcd) or as trace events (.json) [default: a table on the
    /// standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// The programs that come with the executive.
fn examples() -> Vec<PossibleValue> {
    programs::all().into_iter().map(|program| PossibleValue::new(program.name).help(program.shows)).collect()
}

/// The back-ends of the executive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendName {
    /// Virtual time: the same in every run
    Sim,
    /// Fibers on one thread; they switch at calls
    Fiber,
    /// Threads on one CPU; strict priority where real-time priority is granted
    ThreadUp,
    /// Threads on all CPUs
    ThreadSmp,
}

impl BackendName {
    /// As the executive knows it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Fiber => "fiber",
            Self::ThreadUp => "thread_up",
            Self::ThreadSmp => "thread_smp",
        }
    }
}
