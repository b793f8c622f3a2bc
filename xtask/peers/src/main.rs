//! `cargo xtask peers`: other people's clocks, calibrations, sleeps, copies of memory and executives beside ours, in
//! one run on one CPU.
//!
//! Figures of two machines, or of two moments, cannot be compared. So each table is taken in rounds in which every
//! candidate has its turn, and only ratios count. The same stamps time all candidates from outside, ours too.
#![expect(clippy::print_stdout, reason = "a command talks to its user")]
#![expect(clippy::print_stderr, reason = "progress goes beside the result")]

mod bridge;
mod calibrations;
mod callers;
mod checkout;
mod datagrams;
mod delays;
mod executive;
mod memory;
mod reaction;
mod reads;
mod recording;
mod report;
mod rtos_benchmark;
mod thread_metric;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hairspring_time::{Cpu, Host, Machine, Nanos, RealTime, Timebase};

use crate::checkout::{Checkout, Suite};

#[derive(Parser)]
#[command(name = "peers", about = "Measure other people's clocks, sleeps, copies of memory and executives beside ours")]
struct Arguments {
    /// A quarter of the samples
    #[arg(long)]
    quick: bool,
    /// One part alone
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Where the files of the recordings go, on a disk of its own
    #[arg(long, default_value = "target")]
    dir: PathBuf,
    /// A checkout of a suite whose own sources are to run: thread-metric=DIR or rtos-benchmark=DIR; once for each
    #[arg(long, value_name = "SUITE=DIR", value_parser = Checkout::named)]
    with: Vec<Checkout>,
    #[command(subcommand)]
    task: Option<Task>,
}

/// The parts of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Reads,
    Calibrations,
    Delays,
    Executive,
    Reaction,
    Bridge,
    Recording,
    Datagrams,
    Memory,
    Callers,
    ThreadMetric,
    RtosBenchmark,
}

#[derive(Subcommand)]
enum Task {
    /// Calibrate once in this process and print what it cost and how right it was (used by the run itself)
    Calibrate {
        /// `hairspring`, `quanta` or `fastant`
        candidate: String,
    },
    /// Park fibers in this process and print what each keeps in memory (used by the run itself)
    ParkedFibers,
}

fn main() -> ExitCode {
    let before_main = calibrations::process_cpu();
    let arguments = Arguments::parse();
    let outcome = match arguments.task {
        Some(Task::Calibrate { candidate }) => calibrations::once(&candidate, before_main),
        Some(Task::ParkedFibers) => executive::memory::once(),
        None => run(arguments.quick, arguments.only, &arguments.dir, &arguments.with),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peers: failed to {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(quick: bool, only: Option<Part>, folder: &Path, with: &[Checkout]) -> Result<(), String> {
    let timebase = Timebase::calibrate_to(Host, 0.2, Nanos::from_secs(1)).map_err(|error| error.to_string())?;
    let cpu = Host.affinity().0.last().copied().unwrap_or(Cpu(0));
    let wanted = |part| only.is_none_or(|only| only == part);
    println!("# Peers\n");
    report::conditions(cpu);
    if wanted(Part::Reads) {
        eprintln!("clock reads");
        let _pinned = RealTime { cpu: Some(cpu), ..RealTime::default() }.apply(&Host);
        reads::run(&timebase, quick);
    }
    if wanted(Part::Calibrations) {
        eprintln!("calibrations, in fresh processes");
        calibrations::run(quick)?;
    }
    if wanted(Part::Memory) {
        memory::run(&timebase, quick);
    }
    if wanted(Part::Executive) {
        executive::run(&timebase, cpu, folder, quick)?;
    }
    if wanted(Part::Reaction) {
        eprintln!("reactions");
        reaction::run(&timebase, cpu, quick)?;
    }
    if wanted(Part::Bridge) {
        eprintln!("a station with and without a bridge");
        bridge::run(&timebase, cpu, folder, quick)?;
    }
    if wanted(Part::Callers) {
        callers::run(&timebase, cpu, folder, quick)?;
    }
    if wanted(Part::ThreadMetric) {
        thread_metric::run(folder, quick, Checkout::of(with, Suite::ThreadMetric))?;
    }
    if wanted(Part::RtosBenchmark) {
        rtos_benchmark::run(folder, quick, Checkout::of(with, Suite::RtosBenchmark))?;
    }
    if wanted(Part::Recording) {
        recording::run(folder, quick)?;
    }
    if wanted(Part::Datagrams) {
        datagrams::run(quick)?;
    }
    if wanted(Part::Delays) {
        delays::run(timebase, cpu, quick);
    }
    Ok(())
}
