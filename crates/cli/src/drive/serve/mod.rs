//! `hairspring serve`: runs a front end that a station file describes, and shows how it reacts.

mod publication;
mod report;
mod screen;
mod tally;
mod variables;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use hairspring_machine::{Host, Machine};
use hairspring_station::run::{StationOutcome, Watched};
use hairspring_station::{Station, Stop, file};
use hairspring_time::{Nanos, Timebase};

use crate::arguments::{Plain, duration};
use crate::exit::{Exit, Failure};
use crate::page::{Example, Page};
use crate::progress_line::ProgressLine;
use crate::{interrupt, output};
use publication::Publication;
use tally::Tally;

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page {
    name: "serve",
    examples: &[
        Example { does: "Show a station file with all defaults", line: "hairspring serve station.toml --check" },
        Example { does: "Serve it for ten seconds", line: "hairspring serve station.toml --for 10s" },
        Example {
            does: "Make a screen of it for Phoebus",
            line: "hairspring serve station.toml --screen > station.bob",
        },
        Example {
            does: "Show its state to other processes, such as the EPICS bridge",
            line: "hairspring serve station.toml --publish shutter",
        },
    ],
    files: &[
        ("STATION.toml", "the front end; docs/station.md describes the format"),
        ("/run/hairspring/NAME/state", "the state that --publish writes, for reading by other processes"),
        ("/run/hairspring/NAME/command", "the socket where other processes set what the file makes settable"),
        super::BOARD,
    ],
    environment: &[],
};

/// Run a front end that a station file describes
///
/// Each unit waits for events and reacts with an action on a device. The report counts every event as acted upon or
/// missed, and shows how long the reactions took.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// File that describes the front end: its sources, devices and units
    #[arg(value_name = "STATION.toml")]
    station: PathBuf,
    /// How long to serve [default: until Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    length: Option<Nanos>,
    /// Print the file with every default filled in, and end
    #[arg(long)]
    check: bool,
    /// Publish the state of the station under this name, or in this folder, for other processes to read
    #[arg(long, value_name = "NAME|FOLDER")]
    publish: Option<PathBuf>,
    /// Print a screen of the station for Phoebus (.bob), and end
    #[arg(long, conflicts_with = "check")]
    screen: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
    /// Also show the settings, stages and account of every unit
    #[arg(long)]
    verbose: bool,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    format: Plain,
}

/// Bound of the calibration before the first event, and the most time it may take.
const BOUND_PPM: f64 = 0.5;
const AGE: Nanos = Nanos::from_millis(200);

/// The result, for the report.
struct Served<'a> {
    arguments: &'a Arguments,
    station: &'a Station,
    outcome: StationOutcome,
    tallies: Vec<Tally>,
    elapsed: Nanos,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if arguments.length.is_some_and(|length| length <= Nanos::ZERO) {
        return Err(Failure::bad_request("--for 0s: write how long to serve, for instance 10s"));
    }
    let mut station = read(arguments)?;
    if arguments.check {
        output::print(&match arguments.format {
            Plain::Text => report::station(&station, output::style(false).width),
            Plain::Json => report::station_json(&station),
        })?;
        return Ok(Exit::Success);
    }
    if arguments.screen {
        let name = arguments.name();
        let variables = variables::variables(&station).map_err(Failure::bad_request)?;
        return output::print(&screen::screen(&station, &name, &variables));
    }
    let timebase = Timebase::calibrate_to(Host, BOUND_PPM, AGE).map_err(Failure::failed_to)?;
    let stop = Stop::new().map_err(|error| Failure::failed(error.to_string()))?;
    let interrupted = Arc::new(AtomicBool::new(false));
    // A second signal does not end the program either: its devices must first reach their safe states.
    interrupt::flag_only(&interrupted)?;
    let begun = Host.monotonic();
    let elapsed = || Host.monotonic() - begun;
    let mut live = ProgressLine::block(arguments.quiet);
    let mut tallies: Vec<Tally> = Vec::new();
    let mut publication = arguments
        .publish
        .as_deref()
        .map(|name| Publication::begin(name, &arguments.name(), &mut station))
        .transpose()?;
    let outcome = station.run(&timebase, &stop, &mut |units: &mut [Watched]| {
        tallies.resize_with(units.len(), Tally::default);
        for (unit, tally) in units.iter_mut().zip(&mut tallies) {
            unit.log.by_ref().for_each(|stages| tally.add(&stages));
        }
        live.show(elapsed(), || {
            let so_far = tallies.iter().map(|tally| (tally.counts, tally));
            report::table(&station, so_far, output::style(false).width).trim_end().to_owned()
        });
        if let Some(publication) = &mut publication {
            publication.show(units, &tallies, stop.is_set());
        }
        // Relaxed: a plain flag.
        if interrupted.load(Ordering::Relaxed) || arguments.length.is_some_and(|length| elapsed() >= length) {
            stop.set();
        }
    });
    live.end();
    if let Some(publication) = &mut publication {
        publication.end(&outcome);
    }
    let outcome = outcome.map_err(|error| Failure::failed(error.to_string()))?;
    let served = Served { arguments, station: &station, outcome, tallies, elapsed: elapsed() };
    output::print(&match arguments.format {
        Plain::Text => served.text(output::style(false).width),
        Plain::Json => served.json(),
    })?;
    Ok(served.exit(interrupted.load(Ordering::Relaxed)))
}

impl Arguments {
    /// Name of the station: the name that it is published under, or that of its file.
    fn name(&self) -> String {
        let name = match &self.publish {
            Some(publish) => publish.file_name(),
            None => self.station.file_stem(),
        };
        name.unwrap_or_default().to_string_lossy().into_owned()
    }
}

fn read(arguments: &Arguments) -> Result<Station, Failure> {
    let name = arguments.station.display();
    let text = std::fs::read_to_string(&arguments.station)
        .map_err(|error| Failure::bad_request(format!("failed to read {name}: {error}")))?;
    file::read(&text).map_err(|error| Failure::bad_request(format!("{name}: {error}")))
}

impl Served<'_> {
    /// The exit code; prints an error message for each unit and device that failed.
    fn exit(&self, interrupted: bool) -> Exit {
        let failed = self.outcome.units.iter().filter_map(|unit| Some((&unit.name, "", unit.failed.as_ref()?)));
        let not_safe = self.outcome.devices.iter().filter_map(|device| {
            Some((&device.name, " may not be in its safe state", device.unsafe_because.as_ref()?))
        });
        let mut exit = if interrupted { Exit::Interrupted } else { Exit::Success };
        for (name, what, error) in failed.chain(not_safe) {
            output::complain(&format!("{name}{what}: {error}"));
            exit = Exit::Failed;
        }
        exit
    }
}
