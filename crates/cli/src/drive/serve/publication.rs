//! [`Publication`]: keeps the published state of the station that is served.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use hairspring_device::DeviceError;
use hairspring_file::NewFile;
use hairspring_machine::{Host, Machine};
use hairspring_station::command::{CommandSocket, Peer, PropertyRequest};
use hairspring_station::publish::{
    LatestEvent, Phase, StatePublisher, StationState, UnitLatency, UnitProperties, UnitState, bracketed_realtime,
    folders,
};
use hairspring_station::restore::{keep, set_points};
use hairspring_station::run::{StationOutcome, Watched};
use hairspring_station::{Property, Station};

use super::tally::Tally;
use super::variables::{description, variables};
use crate::exit::Failure;
use crate::output;

/// File that bridges read beside the page: names, units and limits of all variables.
const DESCRIPTION: &str = "station.json";

/// The state that other processes see, and the properties that they may set.
pub(super) struct Publication {
    publisher: StatePublisher,
    state: StationState,
    /// Socket for requests; `None` if nothing can be set.
    socket: Option<CommandSocket>,
    puts: Puts,
    /// Whether the page is gone; reported once.
    is_lost: bool,
}

impl Publication {
    /// Opens the page under this name, or in this folder.
    pub(super) fn begin(place: &Path, name: &str, station: &mut Station) -> Result<Self, Failure> {
        let variables = variables(station).map_err(Failure::bad_request)?;
        let folder = made(place)?;
        let publisher = StatePublisher::open(&folder).map_err(|error| Failure::failed(error.to_string()))?;
        // Under the lock of the page: another station's description stays.
        let described = NewFile::begin(&folder.join(DESCRIPTION)).and_then(|mut file| {
            file.write_all(description(station, name, &variables).as_bytes())?;
            file.replace()
        });
        described.map_err(|error| not_made(&folder.join(DESCRIPTION), &error))?;
        let (mut message, mut kept) = ("the station starts".to_owned(), None);
        if let Some(path) = &station.publish.keep.clone() {
            let restored = station.restore(path);
            let (count, faults) = restored.map_err(|error| {
                Failure::failed(format!("failed to read the set-points {}: {error}", path.display()))
            })?;
            message = format!("{count} set-points restored");
            for fault in faults {
                output::complain(&fault);
                message = fault;
            }
            kept = Some((path.clone(), String::new()));
        }
        let is_settable = station.units.iter().any(|unit| !unit.settable.is_empty());
        let socket = is_settable.then(|| CommandSocket::bind(&folder)).transpose();
        let socket = socket.map_err(|error| Failure::failed(error.to_string()))?;
        let puts = Puts { accounts: station.publish.accounts.clone(), kept, message: None };
        let clock = bracketed_realtime(&Host);
        let started = Host.monotonic().as_monotonic() + clock.realtime_offset;
        let unit = |name: &String| UnitState { name: name.clone(), ..UnitState::default() };
        let state = StationState {
            name: name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            message,
            started_realtime_ns: started.count(),
            phase: Phase::Starting,
            clock,
            units: station.units.iter().map(|settings| unit(&settings.name)).collect(),
        };
        let mut publication = Self { publisher, state, socket, puts, is_lost: false };
        publication.publish();
        Ok(publication)
    }

    /// Answers requests, and publishes the counts of the units so far.
    pub(super) fn show(&mut self, units: &mut [Watched], tallies: &[Tally], is_stopping: bool) {
        self.state.phase = if is_stopping { Phase::Stopping } else { Phase::Running };
        if let Some(socket) = &mut self.socket {
            let puts = &mut self.puts;
            socket.look(&mut |peer, request| puts.answer(units, peer, request));
        }
        self.puts.keep(units);
        if let Some(message) = self.puts.message.take() {
            self.state.message = message;
        }
        for (unit, watched) in self.state.units.iter_mut().zip(units) {
            unit.properties = watched.control.as_mut().map(|control| UnitProperties {
                set_points: control.set_points(),
                read_back: control.read_back(),
                waiting: control.waiting(),
                expired: control.expired(),
            });
        }
        self.state.clock = bracketed_realtime(&Host);
        for (unit, tally) in self.state.units.iter_mut().zip(tallies) {
            let offset = self.state.clock.realtime_offset;
            let is_new = |sequence| unit.latest.is_none_or(|latest| latest.sequence != sequence);
            if let Some(stages) = tally.latest.filter(|stages| is_new(stages.sequence)) {
                unit.latest = Some(LatestEvent {
                    sequence: stages.sequence,
                    cycle: stages.cycle,
                    at: stages.event,
                    realtime_ns: (stages.event.as_monotonic() + offset).count(),
                    stamped: stages.stamped,
                });
            }
            unit.counts = tally.counts;
            let total = &tally.total;
            let max = total.range().map(|(_, most)| most);
            unit.latency = UnitLatency { median: total.quantile(0.5), p99: total.quantile(0.99), max };
            unit.histogram = tally.histogram;
        }
        self.publish();
    }

    /// Publishes how the station ended.
    pub(super) fn end(&mut self, outcome: &Result<StationOutcome, DeviceError>) {
        let fault = match outcome {
            Err(error) => Some(error),
            Ok(outcome) => {
                let failed = outcome.units.iter().find_map(|unit| unit.failed.as_ref());
                failed.or_else(|| outcome.devices.iter().find_map(|device| device.unsafe_because.as_ref()))
            }
        };
        if let Ok(outcome) = outcome {
            for (unit, outcome) in self.state.units.iter_mut().zip(&outcome.units) {
                unit.counts = outcome.counts;
            }
        }
        self.state.phase = if fault.is_some() { Phase::Fault } else { Phase::Ended };
        self.state.message = fault.map_or_else(|| "the station has ended".to_owned(), ToString::to_string);
        self.publish();
    }

    /// A page that is lost must not end the station: its units still serve.
    fn publish(&mut self) {
        if let Err(error) = self.publisher.publish(&self.state, &Host)
            && !std::mem::replace(&mut self.is_lost, true)
        {
            output::complain(&format!("{error}; the station goes on, and nobody sees its state"));
        }
    }
}

/// Requests by other processes to set properties.
struct Puts {
    /// Accounts that may set something through a bridge.
    accounts: Option<Vec<String>>,
    /// The file of set-points, and its text.
    kept: Option<(PathBuf, String)>,
    /// Message for the operator.
    message: Option<String>,
}

impl Puts {
    /// The answer of the station: a value, or why not. Every put is logged with its sender.
    fn answer(&mut self, units: &mut [Watched], peer: &Peer, request: &PropertyRequest) -> Result<i64, String> {
        let answer = match request {
            PropertyRequest::Get { unit, property } => {
                return control(units, unit, *property).map(|control| control.read_back().of(*property));
            }
            PropertyRequest::Set { unit, property, value, cycle } => self.admits(peer).and_then(|()| {
                let control = control(units, unit, *property)?;
                control.put(*property, *value, *cycle).map_err(|error| error.to_string())?;
                // Kept before it is answered.
                self.keep(units);
                Ok(*value)
            }),
        };
        let said = match &answer {
            Ok(_) => format!("{request}: accepted, by {peer}"),
            Err(why) => format!("{request}: refused, by {peer}: {why}"),
        };
        output::log(&said);
        self.message = Some(said);
        answer
    }

    /// Whether this account may set something. Processes of this host that ask in their own name may.
    fn admits(&self, peer: &Peer) -> Result<(), String> {
        let is_for_itself = peer.from.is_none() && peer.account.is_none();
        let Some(accounts) = self.accounts.as_ref().filter(|_| !is_for_itself) else { return Ok(()) };
        match &peer.account {
            Some(account) if accounts.contains(account) => Ok(()),
            Some(account) => Err(format!("the account {account:?} is a stranger here: it may look, and set nothing")),
            None => Err("the client says no account: it may look, and set nothing".to_owned()),
        }
    }

    /// Writes the file of set-points if one has changed.
    fn keep(&mut self, units: &mut [Watched]) {
        let Some((path, last)) = &mut self.kept else { return };
        let text = set_points(units);
        if text == *last {
            return;
        }
        if let Err(error) = keep(&text, path) {
            let said = format!(
                "failed to keep the set-points in {}: {error}; they are in force, and end with the station",
                path.display()
            );
            output::complain(&said);
            self.message = Some(said);
        }
        // Also of one that failed: it is tried again with the next change, not ten times a second.
        *last = text;
    }
}

/// The properties of a unit.
fn control<'u>(
    units: &'u mut [Watched],
    name: &str,
    property: Property,
) -> Result<&'u mut hairspring_station::UnitControl, String> {
    let Some(unit) = units.iter_mut().find(|unit| unit.name == name) else {
        return Err(format!("there is no unit {name:?}"));
    };
    let control = unit.control.as_mut();
    control.ok_or_else(|| format!("{property} of {name} is read-only: the station's file makes nothing of it settable"))
}

/// The folder of a name, made if it is missing: the first of the usual ones that this user may write to.
fn made(name: &Path) -> Result<PathBuf, Failure> {
    let mut refused = None;
    for folder in folders(name) {
        match std::fs::create_dir_all(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => refused = Some((folder, error)),
            Err(error) => return Err(not_made(&folder, &error)),
        }
    }
    Err(refused.map_or_else(
        || Failure::bad_request("--publish \"\": write a name, such as shutter"),
        |(folder, error)| not_made(&folder, &error),
    ))
}

fn not_made(folder: &Path, error: &std::io::Error) -> Failure {
    Failure::bad_request(format!(
        "--publish: failed to make {}: {error}; name a folder that you may write to",
        folder.display()
    ))
}
