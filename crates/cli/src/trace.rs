//! `hairspring trace`: runs a program on the executive and shows who ran and who waited when.

use std::path::Path;

use hairspring_exec::programs;
use hairspring_exec::trace::{Mismatch, Trace};

use crate::arguments::TraceArguments;
use crate::exit::{Exit, Failure};
use crate::output::{self, OutputFile};

/// Calls kept at most: several times those of the longest program.
const CALLS_MOST: usize = 100_000;

/// What a trace can be written as.
#[derive(Clone, Copy)]
enum Format {
    Vcd,
    Chrome,
}

pub(crate) fn run(arguments: &TraceArguments) -> Result<Exit, Failure> {
    let Some(program) = programs::all().into_iter().find(|program| program.name == arguments.example) else {
        // The parser has seen to that.
        return Err(Failure::bad_request(format!("there is no example {}", arguments.example)));
    };
    let out = match &arguments.out {
        Some(file) => Some((format(file)?, file, OutputFile::create(file)?)),
        None => None,
    };
    let failed = |error: &dyn std::fmt::Display| Failure::failed(format!("failed to {error}"));
    let backend = programs::backend(arguments.backend.name()).map_err(|error| failed(&error))?;
    let run = program.run(backend, Some(CALLS_MOST)).map_err(|error| failed(&error))?;
    let Some(trace) = &run.trace else {
        return Err(Failure::failed("the run left no trace behind"));
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

fn exported(trace: &Trace, format: Format) -> Result<String, Mismatch> {
    match format {
        Format::Vcd => trace.to_vcd(),
        Format::Chrome => trace.to_chrome(),
    }
}

/// A run that the core would not have decided so: an error of ours, to be reported.
fn disagrees(mismatch: Mismatch) -> Failure {
    Failure::failed(format!(
        "failed to play the trace again: {mismatch}; this is a fault of the executive, please report it"
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
        text.push_str(&format!("{:<10} {} calls at its end found no room and are missing\n", "", trace.lost));
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
                Some(ending) => format!("no format of traces is known by the ending .{ending}"),
                None => "the name has no ending to tell the format by".to_owned(),
            };
            Err(Failure::bad_request(format!(
                "{why}: name the file .vcd (for GTKWave and PulseView) or .json (for \
                 Perfetto)"
            )))
        }
    }
}
