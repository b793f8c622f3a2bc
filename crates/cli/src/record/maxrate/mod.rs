//! `hairspring maxrate`: searches for the highest rate at which a card is recorded without loss, and gives the
//! evidence.

mod report;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::Args;
use hairspring_machine::{Host, Instant, Machine};
use hairspring_plan::maxrate::{Doing, Found, Probe, ProbeError, Purpose, Recordings, Search, search};
use hairspring_ring::{ByteRate, Bytes};
use hairspring_source::card::Card;
use hairspring_store::plain::PlainStore;
use hairspring_store::{Direct, Fallback, Store, Ways};
use hairspring_time::Nanos;

use crate::arguments::{Plain, duration, number, parsed};
use crate::exit::{Exit, Failure};
use crate::page::{Example, Page};
use crate::progress_line::ProgressLine;
use crate::record::data_path::{self, DataPath};
use crate::record::record::{self, progress};
use crate::record::{recording, target};
use crate::{interrupt, output};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page::new(
    "maxrate",
    &[
        Example { does: "Search with the usual card; takes some minutes", line: "hairspring maxrate --to /data" },
        Example {
            does: "Search for an hour in all, to be sure of fewer losses",
            line: "hairspring maxrate --to /disk1,/disk2 --for 10min --confirmations 6",
        },
    ],
);

/// Find the highest rate at which this machine loses no data
///
/// Searches by recording at different rates, and confirms the answer by recordings that are read back and compared.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Existing folder to record into; every recording is removed again. Several folders make a stripe
    #[arg(long, value_name = "DIR,...", value_delimiter = ',', required = true)]
    to: Vec<PathBuf>,
    /// Card whose highest rate is searched; the rate in its description is ignored
    #[arg(long, value_name = "CARD", value_parser = parsed::<Card>, default_value = "virtual:4ch,16bit,1MS/s")]
    #[arg(allow_hyphen_values = true)]
    card: Card,
    /// Least length of each recording
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, default_value = "10s")]
    #[arg(allow_hyphen_values = true)]
    length: Nanos,
    /// Most data that one of about twenty recordings may write; a recording is shorter if this limits it [default: half
    /// of the free space]
    #[arg(long, value_name = "SIZE", value_parser = parsed::<Bytes>, allow_hyphen_values = true)]
    volume: Option<Bytes>,
    /// Highest rate to try [default: four times the rate of a first recording, of a card that waits]
    #[arg(long, value_name = "RATE", value_parser = parsed::<ByteRate>, allow_hyphen_values = true)]
    limit: Option<ByteRate>,
    /// Stop searching when the best rate that worked and the least that failed differ by no more than this, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0, allow_negative_numbers = true)]
    resolution: f64,
    /// Number of recordings without loss that confirm the answer; each is read back and compared
    #[arg(long, value_name = "N", default_value_t = 3, allow_negative_numbers = true)]
    #[arg(value_parser = number::<u32>(1, 1000))]
    confirmations: u32,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
    /// Also show what is normal: the ways to the disk, the pages, the processor time
    #[arg(long)]
    verbose: bool,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    format: Plain,
    #[command(flatten)]
    data_path: DataPath,
}

/// The search begins at this fraction of the folders' rate with a card that waits.
const FIRST: f64 = 0.5;
/// Default highest rate to try, as a multiple of that rate.
const FURTHEST: f64 = 4.0;
/// Range of --resolution, in percent.
const RESOLUTIONS: std::ops::RangeInclusive<f64> = 0.1..=50.0;

/// The result, for the report.
struct Answer {
    card: String,
    folders: Vec<String>,
    length: Nanos,
    buffer: Bytes,
    notify: Bytes,
    /// The folders' rate with a card that waits, and how the data were written.
    unpaced: ByteRate,
    fallbacks: Vec<Fallback>,
    direct: Direct,
    block: Bytes,
    probes: Vec<Probe>,
    /// `None` if the search was interrupted.
    found: Option<Found>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let recordings = recordings(arguments)?;
    if let Some(limit) = arguments.limit {
        recordings.can_be(limit).map_err(refused)?;
    }
    let stop = interrupt::watch()?;
    let mut shown = Shown::new(arguments.quiet);
    let first = recordings.unpaced(&stop, &mut |doing| shown.show("unpaced", doing)).map_err(refused);
    let mut probes = Vec::new();
    let found = first.and_then(|(unpaced, first)| {
        let found = explore(arguments, &recordings, unpaced, &stop, &mut shown, &mut probes)?;
        Ok((unpaced, first, found))
    });
    shown.live.end();
    let (unpaced, first, found) = found?;
    let exit = match &found {
        None => Exit::Interrupted,
        Some(found) if found.lossless.is_none() => Exit::Loss,
        Some(_) => Exit::Success,
    };
    let answer = Answer {
        card: arguments.card.to_string(),
        folders: arguments.to.iter().map(|folder| folder.display().to_string()).collect(),
        length: arguments.length,
        buffer: first.outcome.buffer,
        notify: recordings.config.write.block,
        unpaced,
        fallbacks: first.outcome.fallbacks,
        direct: first.outcome.direct,
        block: first.outcome.block,
        probes,
        found,
    };
    output::print(&match arguments.format {
        Plain::Text => report::text(&answer, arguments.verbose, output::style(false).width),
        Plain::Json => report::json(&answer),
    })?;
    Ok(exit)
}

/// The search; `None` if it was interrupted.
fn explore(
    arguments: &Arguments,
    recordings: &Recordings,
    unpaced: ByteRate,
    stop: &AtomicBool,
    shown: &mut Shown,
    probes: &mut Vec<Probe>,
) -> Result<Option<Found>, Failure> {
    let times = |factor: f64| ByteRate::new(unpaced.bytes_per_s() * factor).unwrap_or(unpaced);
    let to = arguments.limit.unwrap_or_else(|| times(FURTHEST));
    let from = if times(FIRST) < to { times(FIRST) } else { to };
    let resolution = arguments.resolution / 100.0;
    let found =
        search(&Search { from, to, resolution, confirmations: arguments.confirmations }, &mut |rate, purpose| {
            shown.run += 1;
            let what = match purpose {
                Purpose::Search => "searching",
                Purpose::Confirm => "confirming",
            };
            let probe = recordings.probe(rate, purpose, stop, &mut |doing| shown.show(what, doing))?;
            probes.push(probe);
            Ok(probe)
        });
    match found {
        Ok(found) => Ok(Some(found)),
        Err(ProbeError::Stopped) => Ok(None),
        Err(error) => Err(refused(error)),
    }
}

/// The progress of the search, in a line.
struct Shown {
    live: ProgressLine,
    begun: Instant,
    run: usize,
}

impl Shown {
    fn new(quiet: bool) -> Self {
        Self { live: ProgressLine::new(quiet), begun: Host.monotonic(), run: 0 }
    }

    fn show(&mut self, what: &str, doing: Doing<'_>) {
        let run = self.run;
        self.live.show(Host.monotonic() - self.begun, || match doing {
            Doing::Recording(card) => {
                format!("{run} {what}  {}", progress::line(std::slice::from_ref(card), None, None))
            }
            Doing::Verifying(at) => format!("{run} {what}  read back {} of {}", at.done, at.total),
        });
    }
}

fn recordings(arguments: &Arguments) -> Result<Recordings, Failure> {
    data_path::check(&arguments.data_path)?;
    if arguments.length <= Nanos::ZERO {
        return Err(Failure::bad_request("--for 0s: write how long each recording lasts, for instance 10s"));
    }
    if !RESOLUTIONS.contains(&arguments.resolution) {
        let (least, most) = (RESOLUTIONS.start(), RESOLUTIONS.end());
        return Err(Failure::bad_request(format!(
            "--resolution {}: write a percentage from {least} to {most}",
            arguments.resolution
        )));
    }
    for (place, folder) in arguments.to.iter().enumerate() {
        if arguments.to[..place].contains(folder) {
            let twice = folder.display();
            return Err(Failure::bad_request(format!("--to names {twice} twice: a stripe needs different folders")));
        }
    }
    let targets: Vec<_> = arguments.to.iter().map(|folder| folder.join(name())).collect();
    for target in &targets {
        target::check(target)?;
    }
    let config = data_path::config(&arguments.data_path, 1, None, Bytes(0));
    let half_free = || -> Option<u64> {
        let store = PlainStore::new(1, Ways::default());
        let free = arguments.to.iter().map(|folder| store.free_bytes(folder));
        // The blocks of a stripe are spread evenly, so the fullest folder decides.
        Some(free.collect::<Option<Vec<_>>>()?.into_iter().min()? / 2 * arguments.to.len() as u64)
    };
    let volume = arguments.volume.or_else(|| half_free().map(Bytes)).unwrap_or(Bytes::gib(4));
    Ok(Recordings { card: arguments.card.clone(), targets, config, length: arguments.length, volume })
}

/// A name that no other process uses.
fn name() -> String {
    format!(".hairspring-maxrate-{}", std::process::id())
}

/// The reason why there is no answer, and whether another request would help.
fn refused(error: ProbeError) -> Failure {
    match error {
        ProbeError::Stopped => {
            Failure { exit: Exit::Interrupted, text: "interrupted before any rate was confirmed".to_owned() }
        }
        ProbeError::NotVirtual => Failure::bad_request(format!("--card: {error}")),
        ProbeError::Rate(_) => Failure::bad_request(format!("--limit: {error}")),
        ProbeError::Volume(_) => Failure::bad_request(format!("--volume: {error}")),
        ProbeError::Open(_) => Failure::bad_request(error.to_string()),
        ProbeError::Failed(_) => Failure::failed(error.to_string()),
        ProbeError::Record(error) => record::refused(error),
        ProbeError::Verify(error) => recording::refused(&error),
    }
}
