//! `hairspring plan`: whether a set-up can do a job, what limits it, which sizes it needs.
//!
//! Reads what there is to be known (cards, folders, topology, sheet, memory) into a request, and prints what comes of it.

mod evidence;
mod json;
mod text;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use hairspring_stream::card::Card;
use hairspring_stream::plan::file::FILE_MOST_BYTES;
use hairspring_stream::plan::system::{Below, disks_below};
use hairspring_stream::plan::{
    DeviceKind, Direction, MemoryRoom, Move, Plan, Request, Stall, Stream, Target, Topology, Written, sizes,
};
use hairspring_stream::store::plain::PlainStore;
use hairspring_stream::store::{Store, Ways};
use hairspring_time::Nanos;

use crate::arguments::{Plain, PlanArguments, Units};
use crate::exit::{Exit, Failure};
use crate::{historic, output};

/// Where the kernel tells about the computer.
const SYS: &str = "/sys";
const PROC: &str = "/proc";

/// The longest span: beyond it a person has mistyped.
const SPAN_MOST: Nanos = Nanos::from_secs(100 * 365 * 86_400);

/// The longest stall that is believed.
const STALL_MOST: Nanos = Nanos::from_secs(3_600);

/// What was planned, as it is shown.
struct Shown {
    request: Request,
    /// The cards as they were written.
    cards: Vec<Card>,
    topology: Topology,
    plan: Plan,
    /// The change and what comes of it.
    what_if: Option<(String, Topology, Plan)>,
}

pub(crate) fn run(arguments: &PlanArguments) -> Result<Exit, Failure> {
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
    })
}

/// A card that has a rate.
fn card(text: &str) -> Result<Card, Failure> {
    let card: Card = text.parse().map_err(|error| Failure::bad_request(format!("--card {text}: {error}")))?;
    if card.rate().is_none() {
        let what = "has no rate to plan with: write how many frames per second, as in virtual:4ch,14bit,40MS/s";
        return Err(Failure::bad_request(format!("--card {text} {what}")));
    }
    Ok(card)
}

/// A built-in topology, one from a file, or this computer's.
fn topology(named: Option<&str>) -> Result<Topology, Failure> {
    let Some(named) = named else { return Ok(Topology::read(Path::new(SYS))) };
    if Topology::names().any(|name| name == named) {
        return Topology::named(named).map_err(|error| Failure::failed(format!("read topology {named}: {error}")));
    }
    let refused = |why: String| Failure::bad_request(format!("--topology {named}: {why}"));
    match std::fs::metadata(named) {
        Err(error) => {
            let names = Topology::names().collect::<Vec<_>>().join(", ");
            Err(refused(format!("{error}; write a file that exists, or one that is built in: {names}")))
        }
        Ok(found) if found.len() > FILE_MOST_BYTES as u64 => Err(refused("this is too long for a topology".to_owned())),
        Ok(_) => {
            let text = std::fs::read_to_string(named).map_err(|error| refused(error.to_string()))?;
            Topology::parse(&text).map_err(|error| refused(error.to_string()))
        }
    }
}

fn changed(topology: &Topology, changes: &[String]) -> Result<Topology, Failure> {
    let refused = |error: hairspring_stream::plan::TopologyError| Failure::bad_request(format!("--what-if: {error}"));
    let mut changed = topology.clone();
    for change in changes {
        changed = changed.with(&change.parse::<Move>().map_err(refused)?).map_err(refused)?;
    }
    Ok(changed)
}

fn request(
    arguments: &PlanArguments,
    cards: &[Card],
    topology: &Topology,
    names: Vec<String>,
) -> Result<Request, Failure> {
    let streams = names.into_iter().zip(cards).filter_map(|(card, written)| {
        let rate = written.layout().byte_rate(written.rate()?);
        Some(Stream { card, rate })
    });
    let targets =
        arguments.to.iter().map(|named| target(named, topology)).collect::<Result<Vec<(Target, bool)>, Failure>>()?;
    // The memory of this computer says nothing about one that is only drawn.
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
        return Err(Failure::bad_request("--for 0 is no recording: write how long, for instance 10min"));
    }
    let also = arguments.also.iter().map(|flow| flow.parse()).collect::<Result<Vec<_>, _>>();
    let meminfo = || std::fs::read_to_string(Path::new(PROC).join("meminfo")).ok();
    Ok(Request {
        direction,
        streams: streams.collect(),
        targets,
        span: arguments.span,
        stall: Stall { worst, sync_interval: sizes::SYNC_INTERVAL },
        stall_is_assumed: arguments.stall.is_none(),
        memory: here.then(meminfo).flatten().and_then(|text| MemoryRoom::parse(&text)),
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

/// A disk of the topology, or a folder here; and whether it is here.
fn target(named: &str, topology: &Topology) -> Result<(Target, bool), Failure> {
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
        Failure::bad_request(format!("--to {named}: {why}; write a folder that exists, or a disk of these: {disks}"))
    };
    let found = std::fs::metadata(folder).map_err(|error| refused(error.to_string()))?;
    if !found.is_dir() {
        return Err(refused("it is not a folder".to_owned()));
    }
    let (disks, unknown) = match disks_below(folder, Path::new(SYS), Path::new(PROC)) {
        // A drawn topology need not have them.
        Below::Disks(disks) if disks.iter().any(|disk| topology.device(disk).is_none()) => {
            (Vec::new(), format!("{} is not in the topology", disks.join(", ")))
        }
        Below::Disks(disks) => (disks, String::new()),
        Below::Unknown(why) => (Vec::new(), why),
    };
    let free = PlainStore::new(1, Ways::default()).free_bytes(folder).map(hairspring_stream::Bytes);
    Ok((Target { name: named.to_owned(), disks, unknown, file_system: Some(found.dev()), free }, true))
}
