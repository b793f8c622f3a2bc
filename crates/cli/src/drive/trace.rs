//! `hairspring trace`: runs an example on the executive and shows which task ran and which waited at each moment.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
use hairspring_exec::programs;
use hairspring_exec::trace::{ReplayMismatch, Trace};

use crate::exit::{Exit, Failure};
use crate::output::{self, OutputFile};
use crate::page::{Example, Page};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page::new(
    "trace",
    &[
        Example { does: "Show a camera's exposures in virtual time", line: "hairspring trace shutter" },
        Example {
            does: "Run an example on fibers, and keep its trace for GTKWave",
            line: "hairspring trace inversion --backend fiber --out inversion.vcd",
        },
    ],
);

/// Run an example on the executive and show who ran when
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Example to run
    #[arg(value_name = "EXAMPLE", value_parser = PossibleValuesParser::new(examples()))]
    example: String,
    /// Back-end that runs the tasks
    #[arg(long, value_enum, default_value_t = BackendName::Sim)]
    backend: BackendName,
    /// Write the trace to this file: as a value change dump (.vcd) or as trace events (.json) [default: a table on the
    /// standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
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
    /// The executive's name for the back-end.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Fiber => "fiber",
            Self::ThreadUp => "thread_up",
            Self::ThreadSmp => "thread_smp",
        }
    }
}

/// Most calls to keep: several times those of the longest example.
const CALLS_MOST: usize = 100_000;

/// The formats of a trace file.
#[derive(Clone, Copy)]
enum Format {
    Vcd,
    Chrome,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Some(program) = programs::all().into_iter().find(|program| program.name == arguments.example) else {
        // The parser accepts only names of examples.
        return Err(Failure::bad_request(format!("there is no example {}", arguments.example)));
    };
    let out = match &arguments.out {
        Some(file) => Some((format(file)?, file, OutputFile::create(file)?)),
        None => None,
    };
    let backend = programs::backend(arguments.backend.name()).map_err(Failure::failed_to)?;
    let run = program.run(backend, Some(CALLS_MOST)).map_err(Failure::failed_to)?;
    let Some(trace) = &run.trace else {
        return Err(Failure::failed(
            "failed to trace the run: it left no trace; this is a defect of the executive, please report it",
        ));
    };
    let mut text = format!("{:<10} {}: {}\n", "example", program.name, program.shows);
    text.push_str(&format!("{:<10} {}\n", "back-end", trace.backend));
    match out {
        Some((format, named, file)) => {
            file.finish(&exported(trace, format).map_err(disagrees)?)?;
            text.push_str(&written(trace, format, named));
            output::print(&format!("{text}\n{run}"))
        }
        None => {
            let table = trace.to_text().map_err(disagrees)?;
            output::print(&format!("{text}\n{table}\n{run}"))
        }
    }
}

fn exported(trace: &Trace, format: Format) -> Result<String, ReplayMismatch> {
    match format {
        Format::Vcd => trace.to_vcd(),
        Format::Chrome => trace.to_chrome(),
    }
}

/// The core does not reproduce the trace: a defect of Hairspring.
fn disagrees(mismatch: ReplayMismatch) -> Failure {
    Failure::failed(format!(
        "failed to replay the trace: {mismatch}; this is a defect of the executive, please report it"
    ))
}

fn written(trace: &Trace, format: Format, file: &Path) -> String {
    let viewer = match format {
        Format::Vcd => "GTKWave or PulseView shows it",
        Format::Chrome => "https://ui.perfetto.dev or chrome://tracing shows it",
    };
    let calls = trace.records.len();
    let mut text = format!("{:<10} {calls} calls in {}; {viewer}\n", "trace", file.display());
    if trace.lost > 0 {
        text.push_str(&format!("{:<10} the last {} calls are missing: there was no room for them\n", "", trace.lost));
    }
    text
}

/// The format by the ending of the file.
fn format(file: &Path) -> Result<Format, Failure> {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("vcd") => Ok(Format::Vcd),
        Some("json") => Ok(Format::Chrome),
        other => {
            let why = match other {
                Some(ending) => format!("no trace format has the ending .{ending}"),
                None => "the name has no ending that says the format".to_owned(),
            };
            Err(Failure::bad_request(format!(
                "{why}: name the file .vcd (for GTKWave and PulseView) or .json (for \
                 Perfetto)"
            )))
        }
    }
}
