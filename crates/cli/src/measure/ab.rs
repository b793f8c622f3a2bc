//! `hairspring ab`: measures two builds in turns, and reports the differences.

use std::path::PathBuf;

use clap::Args;
use hairspring_machine::Cpu;
use hairspring_sheet::{Interleaved, TextStyle, compare_interleaved, render};
use hairspring_suite::{AbError, AbOutcome, AbRequest, Effort, SheetError, take_ab};

use crate::arguments::number;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::measure::compare::{self, margin};
use crate::measure::destination::{Destination, Format};
use crate::measure::progress::ProgressLine;
use crate::measure::sheet::seed;
use crate::output::{self, OutputFile};
use crate::page::{Example, Page};
use crate::placement::Measuring;

/// Rounds without `--rounds`.
const ROUNDS: u32 = 10;
/// The largest share of void pairs that leaves a result.
const VOID_MOST: f64 = 0.2;

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page {
    files: &[("--sheets DIR", "a.json and b.json: an ordinary sheet of each build")],
    ..Page::new(
        "ab",
        &[
            Example {
                does: "Say what differs between two builds",
                line: "hairspring ab old/hairspring new/hairspring",
            },
            Example {
                does: "Measure only the clocks, and keep all pairs",
                line: "hairspring ab old/hairspring new/hairspring --only clocks --out pairs.json",
            },
            Example {
                does: "Separate a change of the source from a program's layout, by five builds of each source",
                line: "hairspring ab --builds a1,a2,a3,a4,a5 b1,b2,b3,b4,b5",
            },
            Example {
                does: "See how many differences this machine shows between equal builds",
                line: "hairspring ab ./hairspring ./hairspring --quick",
            },
        ],
    )
};

/// Measure two builds in turns and say what differs
///
/// Chapter by chapter, in fresh processes and in balanced random order, so that a drift of the machine cancels. Pairs
/// during which the machine was disturbed do not count. JSON has all pairs.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Program to compare with
    #[arg(value_name = "BUILD_A")]
    baseline: PathBuf,
    /// Other program
    #[arg(value_name = "BUILD_B")]
    other: PathBuf,
    /// BUILD_A and BUILD_B are several builds of one source each, with commas between: equally many on both sides, best
    /// five or more. Each counts as one value, so that an effect of one program's layout is no finding
    #[arg(long)]
    builds: bool,
    /// Rounds: each measures every chapter with both builds, or with one pair of several [default: 10, or the next
    /// multiple of the builds]
    #[arg(long, value_name = "N", value_parser = number::<u32>(2, 1000))]
    rounds: Option<u32>,
    /// Measure only rows whose ids begin with this, for instance clocks.read,delays.minimum.fifo
    #[arg(long, value_name = "ID-PREFIX", value_delimiter = ',')]
    only: Vec<String>,
    /// Compare the common rows of builds that have different ones
    #[arg(long)]
    common: bool,
    /// Take 5 rounds of all rows first, then all rounds anew of those that stand out
    #[arg(long)]
    confirm: bool,
    /// Measure a copy of BUILD_A as a third build, to see which differences appear between equal builds
    #[arg(long)]
    null: bool,
    /// Take less than half of the usual time
    #[arg(long)]
    quick: bool,
    /// Changes below this are the same
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = margin)]
    margin: f64,
    /// Seed of the order of builds and chapters [default: a new one in each run]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    place: Measuring,
    #[command(flatten)]
    to: Destination,
    /// Write a sheet of each build into this folder
    #[arg(long, value_name = "DIR")]
    sheets: Option<PathBuf>,
    /// In text, list every row
    #[arg(long)]
    verbose: bool,
    /// Lengthen every event of rows of BUILD_B, to test the comparison: ID=NANOSECONDS
    #[arg(long, value_name = "ID=NS", value_delimiter = ',', hide = true, value_parser = spin)]
    spin: Vec<(String, f64)>,
}

fn spin(text: &str) -> Result<(String, f64), String> {
    let (id, ns) = text.split_once('=').ok_or("write ID=NANOSECONDS")?;
    let ns = ns.parse().map_err(|_| format!("{ns} is not a number of nanoseconds"))?;
    Ok((id.to_owned(), ns))
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let format = arguments.to.format()?;
    if let Some(folder) = arguments.sheets.as_deref().filter(|folder| !folder.is_dir()) {
        let text = format!("--sheets {} is not a folder: name one that exists", folder.display());
        return Err(Failure::bad_request(text));
    }
    let file = arguments.to.file()?;
    let side = |named: &PathBuf| match named.to_str().filter(|_| arguments.builds) {
        Some(names) => names.split(',').map(PathBuf::from).collect(),
        None => vec![named.clone()],
    };
    let baseline: Vec<PathBuf> = side(&arguments.baseline);
    let usual = ROUNDS.next_multiple_of(u32::try_from(baseline.len()).unwrap_or(1));
    let request = AbRequest {
        other: side(&arguments.other),
        baseline,
        only: arguments.only.clone(),
        common: arguments.common,
        rounds: arguments.rounds.unwrap_or(usual),
        effort: if arguments.quick { Effort::Quick } else { Effort::Normal },
        cpu: arguments.place.cpu.map(Cpu),
        priority: arguments.place.priority,
        seed: arguments.seed.unwrap_or_else(seed),
        confirm: arguments.confirm,
        null: arguments.null,
        spin: arguments.spin.clone(),
    };
    let interrupted = interrupt::watch()?;
    let line = ProgressLine::new();
    let taken = take_ab(&request, &interrupted, &mut |progress| line.show(progress));
    line.end();
    let AbOutcome { measured, sheets, notes } = taken.map_err(|error| match error {
        AbError::Sheet(SheetError::Calibration(_)) => Failure::failed(format!("failed to {error}")),
        _ => Failure::bad_request(error.to_string()),
    })?;
    notes.iter().for_each(|note| output::complain(note));
    let style = arguments.to.style(arguments.verbose);
    output::finish(file, &rendered(&measured, arguments.margin, format, &style))?;
    if let Some(folder) = &arguments.sheets {
        for (name, sheet) in ["a.json", "b.json"].into_iter().zip(&sheets) {
            OutputFile::create(&folder.join(name))?.finish(&render::to_json(sheet))?;
        }
    }
    Ok(exit(&measured))
}

fn rendered(measured: &Interleaved, margin: f64, format: Format, style: &TextStyle) -> String {
    match format {
        // The pairs without verdicts: `compare` can judge them again, with other margins or gates.
        Format::Json => format!("{:#}\n", serde_json::json!(measured)),
        _ => compare::rendered(&compare_interleaved(measured, Some(margin)), format, style),
    }
}

fn exit(measured: &Interleaved) -> Exit {
    let pairs = || measured.rows.iter().flat_map(|row| &row.pairs);
    let void = pairs().filter(|pair| pair.void).count();
    if measured.taken.interrupted {
        Exit::Interrupted
    } else if void as f64 > VOID_MOST * pairs().count() as f64 {
        Exit::Disturbed
    } else {
        Exit::Success
    }
}
