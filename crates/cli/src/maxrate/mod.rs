//! `hairspring maxrate`: the highest rate at which a card is recorded without loss, and what that rests on.

mod report;

use std::sync::atomic::AtomicBool;

use hairspring_machine::{Clock, Host, Machine};
use hairspring_stream::maxrate::{Doing, Found, Probe, ProbeError, Purpose, Recordings, Search, search};
use hairspring_stream::store::plain::PlainStore;
use hairspring_stream::store::{Direct, Rung, Store, Ways};
use hairspring_stream::{ByteRate, Bytes};
use hairspring_time::Nanos;

use crate::arguments::{MaxrateArguments, Plain};
use crate::exit::{Exit, Failure};
use crate::live::Live;
use crate::record::standing;
use crate::{interrupt, output, record, recording, target, way};

/// The search begins at this part of what the folders take when the card waits.
const FIRST: f64 = 0.5;
/// It goes no further than so many times that, unless it is told.
const FURTHEST: f64 = 4.0;
/// The shares of a bracket that can be asked for, in percent.
const RESOLUTIONS: std::ops::RangeInclusive<f64> = 0.1..=50.0;

/// What was found out, as it is shown.
struct Answer {
    card: String,
    folders: Vec<String>,
    length: Nanos,
    buffer: Bytes,
    notify: Bytes,
    /// What the folders took when the card waited, and how data went there.
    unpaced: ByteRate,
    ladder: Vec<Rung>,
    direct: Direct,
    block: Bytes,
    probes: Vec<Probe>,
    /// `None` if the search was interrupted.
    found: Option<Found>,
}

pub(crate) fn run(arguments: &MaxrateArguments) -> Result<Exit, Failure> {
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
        notify: recordings.config.notify,
        unpaced,
        ladder: first.outcome.ladder,
        direct: first.outcome.direct,
        block: first.outcome.block,
        probes,
        found,
    };
    output::print(&match arguments.format {
        Plain::Text => report::text(&answer, output::style(false).width),
        Plain::Json => report::json(&answer),
    })?;
    Ok(exit)
}

/// The search; `None` if it was interrupted.
fn explore(
    arguments: &MaxrateArguments,
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

/// How the search stands, in a line.
struct Shown {
    live: Live,
    begun: Nanos,
    run: usize,
}

impl Shown {
    fn new(quiet: bool) -> Self {
        Self { live: Live::new(quiet), begun: Host.read(Clock::Monotonic), run: 0 }
    }

    fn show(&mut self, what: &str, doing: Doing<'_>) {
        let run = self.run;
        self.live.show(Host.read(Clock::Monotonic) - self.begun, || match doing {
            Doing::Recording(card) => {
                format!("{run} {what}  {}", standing::line(std::slice::from_ref(card), None, None))
            }
            Doing::Verifying(at) => format!("{run} {what}  read back {} of {}", at.done, at.total),
        });
    }
}

fn recordings(arguments: &MaxrateArguments) -> Result<Recordings, Failure> {
    way::check(&arguments.way)?;
    if arguments.length <= Nanos::ZERO {
        return Err(Failure::bad_request("--for 0s: write how long each recording lasts, for instance 10s"));
    }
    if !RESOLUTIONS.contains(&arguments.resolution) {
        let (least, most) = (RESOLUTIONS.start(), RESOLUTIONS.end());
        return Err(Failure::bad_request(format!(
            "--resolution {}: write a part of the rate in percent, {least} to {most}",
            arguments.resolution
        )));
    }
    for (place, folder) in arguments.to.iter().enumerate() {
        if arguments.to[..place].contains(folder) {
            let twice = folder.display();
            return Err(Failure::bad_request(format!("{twice} is named twice: a stripe needs different folders")));
        }
    }
    let targets: Vec<_> = arguments.to.iter().map(|folder| folder.join(name())).collect();
    for target in &targets {
        target::check(target)?;
    }
    let config = way::config(&arguments.way, 1, None, Bytes(0));
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

/// Why there is no answer, and whether another request would help.
fn refused(error: ProbeError) -> Failure {
    match error {
        ProbeError::Stopped => {
            Failure { exit: Exit::Interrupted, text: "interrupted before anything was found".to_owned() }
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
