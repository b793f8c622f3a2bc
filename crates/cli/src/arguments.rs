//! The arguments: one declaration, from which help, man page and completions come.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use hairspring_time::Nanos;

// The arguments of the commands that only this system has.
pub(crate) use crate::host::system::*;

/// Measures what this computer's clocks, delays and wake-ups really do, and prints it as a timing data sheet.
#[derive(Debug, Parser)]
#[command(name = "hairspring", version, about, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure this computer and print its timing data sheet
    Sheet(SheetArguments),
    /// Perform delays and show how late they returned
    Delay(DelayArguments),
    /// Print the calibration of the counter and whether it can be trusted
    Clock(ClockArguments),
    #[command(flatten)]
    System(SystemCommand),
    /// Compare sheets: what differs in the conditions, then ratios with intervals
    Compare(CompareArguments),
    /// List every probe: what it measures, its unit, its method
    Probes(ProbesArguments),
    /// Print the JSON Schema of a sheet
    Schema,
    /// Print the table of exit codes
    ExitCodes,
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the man page
    Man,
}

#[derive(Args, Debug)]
pub(crate) struct SheetArguments {
    /// Measure only the rows under these ids, for instance clocks.read,delays.minimum.fifo
    #[arg(long, value_name = "ID-PREFIX", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Take a quarter of the time
    #[arg(long, conflicts_with = "thorough")]
    pub(crate) quick: bool,
    /// Take the time that it takes (about ten minutes), with the long requests
    #[arg(long)]
    pub(crate) thorough: bool,
    /// The CPU to measure on [default: the last one that may be used]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) cpu: Option<u32>,
    /// The priority for measurements under SCHED_FIFO, 1 to 99
    #[arg(long, value_name = "P", default_value_t = 80, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) priority: u8,
    /// The format [default: by the ending of --out, else text]
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Write to this file instead of the standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Compare with another sheet: a JSON file, or the name of a historic one (fermilab-2007, fermilab-bit3,
    /// amx86-486sx, amx86-net186, amx86-turbo186, freertos-threadx-linux, an006-bus, an006-continuous,
    /// an006-reference-1, an006-reference-2, an006-reference-3, fesa-2007)
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) beside: Option<String>,
    #[command(flatten)]
    pub(crate) disks: DiskArguments,
    /// Leave out host name, paths, process names and command lines
    #[arg(long)]
    pub(crate) redact: bool,
    /// In text, show every fact and the id of every row; in a comparison, every row
    #[arg(long)]
    pub(crate) verbose: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DelayArguments {
    /// How long, for instance 250us, 1.5ms or 2s
    #[arg(value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) request: String,
    /// How many delays [default: as many as fit into two seconds, at most 10000]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) count: Option<u32>,
    /// Sleep first and poll only the end; needed above 100 ms
    #[arg(long)]
    pub(crate) long: bool,
    /// Run under SCHED_FIFO with this priority, 1 to 99
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) priority: Option<u8>,
    /// Stay on this CPU
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) cpu: Option<u32>,
    /// The format
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub(crate) format: Plain,
}

#[derive(Args, Debug)]
pub(crate) struct ClockArguments {
    /// How long to let the calibration age before it is printed
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "100ms")]
    #[arg(allow_hyphen_values = true)]
    pub(crate) age: Nanos,
    /// The format
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub(crate) format: Plain,
}

#[derive(Args, Debug)]
pub(crate) struct CompareArguments {
    /// The sheets, as JSON; every one is compared with the first
    #[arg(value_name = "SHEET.json", num_args = 2.., required = true)]
    pub(crate) sheets: Vec<PathBuf>,
    /// Fail with exit code 6 if a ratio of medians is beyond a limit, for instance 'clocks.read.now.later>1.2'
    #[arg(long, value_name = "ID>RATIO")]
    pub(crate) fail_if: Vec<String>,
    /// List the rows with no difference and those that are absent, too
    #[arg(long)]
    pub(crate) verbose: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ProbesArguments {
    /// The format
    #[arg(long, value_enum, default_value_t = ProbesFormat::Text)]
    pub(crate) format: ProbesFormat,
}

/// The formats of a sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For a terminal
    Text,
    /// Markdown
    Md,
    /// For programs: hairspring.sheet/1
    Json,
    /// One self-contained page with plots
    Html,
}

/// The formats of small results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Plain {
    /// For people
    Text,
    /// For programs
    Json,
}

/// The formats of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProbesFormat {
    /// For people
    Text,
    /// Markdown
    Md,
    /// For programs
    Json,
}

/// Reads a duration as people write it; not negative.
pub(crate) fn duration(text: &str) -> Result<Nanos, String> {
    match text.parse::<Nanos>() {
        Ok(span) if span.is_negative() => Err(format!("{span} is negative: write a duration like 250us, 1.5ms or 2s")),
        Ok(span) => Ok(span),
        Err(error) => Err(error.to_string()),
    }
}
