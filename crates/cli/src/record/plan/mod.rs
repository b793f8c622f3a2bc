//! `hairspring plan`: decides whether a set-up can carry a recording, and gives its limits and the sizes that it needs.
//!
//! Collects cards, folders, topology, sheet and memory into a request, and prints the plan.

pub(crate) mod evidence;
mod json;
mod text;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use clap::{Args, ValueEnum};
use hairspring_advice::job::AnswerKind;
use hairspring_plan::topology::file::FILE_MOST_BYTES;
use hairspring_plan::topology::system::{Below, disks_below};
use hairspring_plan::{
    DeviceKind, Direction, Fits, MemoryRoom, Move, Plan, Request, Stall, Stream, Target, Topology, Written, sizes,
};
use hairspring_source::card::Card;
use hairspring_store::plain::PlainStore;
use hairspring_store::{Store, Ways};
use hairspring_time::Nanos;

use crate::arguments::{Plain, duration};
use crate::exit::{Exit, Failure};
use crate::measure::historic;
use crate::output;
use crate::page::{Example, Page};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page {
    name: "plan",
    examples: &[
        Example {
            does: "Ask whether this computer carries 320 MB/s for ten minutes",
            line: "hairspring plan --card virtual:4ch,14bit,40MS/s --to . --for 10min",
        },
        Example {
            does: "Ask what moving a card to another bus would change",
            line: "hairspring plan --card virtual:2ch,14bit,40MS/s --topology an006-shared-pcix --to disk0 --what-if 'move card0 to pcix-1'",
        },
    ],
    files: &[("/sys, /proc/meminfo", "what the kernel reports of buses, disks and memory")],
    environment: &[],
};

/// Say whether a set-up can carry a recording, and what limits it
///
/// The plan also gives the sizes of the buffers and how long the disks and the memory last.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Card with its rate, for instance virtual:4ch,14bit,40MS/s; may be repeated
    #[arg(long, value_name = "CARD", required = true)]
    card: Vec<String>,
    /// Folders to record to, or disks of the topology; several make a stripe
    #[arg(long, value_name = "DIR", value_delimiter = ',')]
    to: Vec<String>,
    /// Plan playing, from the disks to the cards, instead of recording
    #[arg(long)]
    play: bool,
    /// Length of the recording, for instance 10min or 2h
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    span: Option<Nanos>,
    /// Longest stall of the disks; the buffers are made to outlast it twice [default: 250 ms, assumed]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    stall: Option<Nanos>,
    /// Sheet with the rates of the disks: a JSON file with the chapter Transfer, or the name of a historic sheet
    #[arg(long, value_name = "NAME|FILE")]
    sheet: Option<String>,
    /// Links and buses: a JSON file (hairspring.topology/1), or one of an006-shared-pcix, an006-own-pcix,
    /// an006-shared-pci, an006-own-bus [default: those of this computer, from the kernel]
    #[arg(long, value_name = "NAME|FILE")]
    topology: Option<String>,
    /// Plan a second time with a device moved, for instance "move card0 to SEGMENT"; may be repeated
    #[arg(long, value_name = "CHANGE")]
    what_if: Vec<String>,
    /// Other traffic at the same time, for instance "net0>memory:110MB/s"; may be repeated
    #[arg(long, value_name = "FLOW")]
    also: Vec<String>,
    /// Units of the text
    #[arg(long, value_enum, default_value_t = Units::Si)]
    units: Units,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    format: Plain,
}

/// The units of amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Units {
    /// 1 MB = 1,000,000 bytes, with MiB beside it
    Si,
    /// 1 MB = 1,048,576 bytes, as in application note AN006
    An006,
}

/// The kernel's description of the computer.
const SYS: &str = "/sys";
const PROC: &str = "/proc";

/// The longest recording; a longer one is likely a typing mistake.
const SPAN_MOST: Nanos = Nanos::from_secs(100 * 365 * 86_400);

/// The longest stall; a longer one is likely a typing mistake.
const STALL_MOST: Nanos = Nanos::from_secs(3_600);

/// The plan, for the report.
struct Shown {
    request: Request,
    /// The cards as the user wrote them.
    cards: Vec<Card>,
    topology: Topology,
    plan: Plan,
    /// The change and the plan with it.
    what_if: Option<(String, Topology, Plan)>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let cards = arguments.card.iter().map(|text| card(text)).collect::<Result<Vec<_>, _>>()?;
    let (topology, names) = topology(arguments.topology.as_deref())?
        .with_cards(cards.len())
        .map_err(|error| Failure::bad_request(error.to_string()))?;
    let request = request(arguments, &cards, &topology, names)?;
    let plan_on = |topology: &Topology| {
        Plan::of(&request, topology).map_err(|error| Failure::bad_request(format!("--also: {error}")))
    };
    let plan = plan_on(&topology)?;
    let what_if = match arguments.what_if.is_empty() {
        true => None,
        false => {
            let changed = changed(&topology, &arguments.what_if)?;
            let plan = plan_on(&changed)?;
            Some((arguments.what_if.join(", "), changed, plan))
        }
    };
    let shown = Shown { request, cards, topology, plan, what_if };
    output::print(&match arguments.format {
        Plain::Text => text::text(&shown, output::style(false).width),
        Plain::Json => json::json(&shown),
    })?;
    Ok(exit(shown.plan.verdict))
}

/// A card that has a rate.
fn card(text: &str) -> Result<Card, Failure> {
    let card: Card = text.parse().map_err(|error| Failure::bad_request(format!("--card {text}: {error}")))?;
    if card.rate().is_none() {
        let what = "has no rate: write frames per second, as in virtual:4ch,14bit,40MS/s";
        return Err(Failure::bad_request(format!("--card {text} {what}")));
    }
    Ok(card)
}

/// A built-in topology, one from a file, or this computer's.
pub(crate) fn topology(named: Option<&str>) -> Result<Topology, Failure> {
    let Some(named) = named else { return Ok(Topology::read(Path::new(SYS))) };
    if Topology::names().any(|name| name == named) {
        return Topology::named(named)
            .map_err(|error| Failure::failed(format!("failed to read the topology {named}: {error}")));
    }
    let refused = |why: String| Failure::bad_request(format!("--topology {named}: {why}"));
    match std::fs::metadata(named) {
        Err(error) => {
            let names = Topology::names().collect::<Vec<_>>().join(", ");
            Err(refused(format!("{error}; name a file that exists, or a built-in topology: {names}")))
        }
        Ok(found) if found.len() > FILE_MOST_BYTES as u64 => {
            Err(refused("the file is too long for a topology".to_owned()))
        }
        Ok(_) => {
            let text = std::fs::read_to_string(named).map_err(|error| refused(error.to_string()))?;
            Topology::parse(&text).map_err(|error| refused(error.to_string()))
        }
    }
}

fn changed(topology: &Topology, changes: &[String]) -> Result<Topology, Failure> {
    let refused = |error: hairspring_plan::TopologyError| Failure::bad_request(format!("--what-if: {error}"));
    let mut changed = topology.clone();
    for change in changes {
        changed = changed.with(&change.parse::<Move>().map_err(refused)?).map_err(refused)?;
    }
    Ok(changed)
}

fn request(arguments: &Arguments, cards: &[Card], topology: &Topology, names: Vec<String>) -> Result<Request, Failure> {
    let streams = names.into_iter().zip(cards).filter_map(|(card, written)| {
        let rate = written.layout().byte_rate(written.rate()?);
        Some(Stream { card, rate })
    });
    let targets =
        arguments.to.iter().map(|named| target(named, topology)).collect::<Result<Vec<(Target, bool)>, Failure>>()?;
    // The memory of this computer does not apply to a topology from a file.
    let here = arguments.topology.is_none() || targets.iter().any(|(_, here)| *here);
    let targets: Vec<Target> = targets.into_iter().map(|(target, _)| target).collect();
    let direction = if arguments.play { Direction::Play } else { Direction::Record };
    let (sustainable, fit) = match &arguments.sheet {
        None => (Err(evidence::without(&targets)), None),
        Some(named) => evidence::of(&historic::find(named)?, named, targets.len(), direction),
    };
    let worst = arguments.stall.unwrap_or(sizes::STALL_USUAL);
    let too_long = |option: &str, span: Nanos, most: Nanos| {
        let text = format!("{option} {span} is more than {most}: write less");
        (span > most).then_some(()).map_or(Ok(()), |()| Err(Failure::bad_request(text)))
    };
    too_long("--stall", worst, STALL_MOST)?;
    too_long("--for", arguments.span.unwrap_or(Nanos::ZERO), SPAN_MOST)?;
    if arguments.span == Some(Nanos::ZERO) {
        return Err(Failure::bad_request("--for 0s: write how long to record, for instance 10min"));
    }
    let also = arguments.also.iter().map(|flow| flow.parse()).collect::<Result<Vec<_>, _>>();
    Ok(Request {
        direction,
        streams: streams.collect(),
        targets,
        span: arguments.span,
        stall: Stall { worst, sync_interval: sizes::SYNC_INTERVAL },
        stall_is_assumed: arguments.stall.is_none(),
        memory: here.then(memory).flatten(),
        pointer_bits: usize::BITS,
        sustainable,
        fit,
        also: also.map_err(|error| Failure::bad_request(format!("--also: {error}")))?,
        written: match arguments.units {
            Units::Si => Written::Both,
            Units::An006 => Written::An006,
        },
    })
}

/// The memory of this computer.
pub(crate) fn memory() -> Option<MemoryRoom> {
    MemoryRoom::parse(&std::fs::read_to_string(Path::new(PROC).join("meminfo")).ok()?)
}

/// A disk of the topology, or a folder of this computer; and which of the two.
pub(crate) fn target(named: &str, topology: &Topology) -> Result<(Target, bool), Failure> {
    let disk = topology.device(named).filter(|device| device.kind == DeviceKind::Disk);
    if let Some(disk) = disk {
        let (name, disks) = (named.to_owned(), vec![named.to_owned()]);
        return Ok((Target { name, disks, unknown: String::new(), file_system: None, free: disk.free }, false));
    }
    let folder = Path::new(named);
    let refused = |why: String| {
        let disks = topology.devices().iter().filter(|device| device.kind == DeviceKind::Disk);
        let disks = disks.map(|device| device.name.as_str()).collect::<Vec<_>>().join(", ");
        let disks = if disks.is_empty() { "none".to_owned() } else { disks };
        Failure::bad_request(format!("--to {named}: {why}; name a folder that exists, or one of the disks: {disks}"))
    };
    let found = std::fs::metadata(folder).map_err(|error| refused(error.to_string()))?;
    if !found.is_dir() {
        return Err(refused("it is not a folder".to_owned()));
    }
    let (disks, unknown) = match disks_below(folder, Path::new(SYS), Path::new(PROC)) {
        // A topology from a file need not have these disks.
        Below::Disks(disks) if disks.iter().any(|disk| topology.device(disk).is_none()) => {
            (Vec::new(), format!("{} is not in the topology", disks.join(", ")))
        }
        Below::Disks(disks) => (disks, String::new()),
        Below::Unknown(why) => (Vec::new(), why),
    };
    let free = PlainStore::new(1, Ways::default()).free_bytes(folder).map(hairspring_ring::Bytes);
    Ok((Target { name: named.to_owned(), disks, unknown, file_system: Some(found.dev()), free }, true))
}

/// Exit code for a plan's verdict.
pub(crate) fn exit(fits: Fits) -> Exit {
    match AnswerKind::of_plan(fits) {
        AnswerKind::Yes => Exit::Success,
        AnswerKind::No => Exit::Cannot,
        AnswerKind::NotShown => Exit::NotShown,
    }
}
