//! [`Publication`]: keeps the published state of the station that is served.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hairspring_device::DeviceError;
use hairspring_machine::{Host, Machine};
use hairspring_station::Station;
use hairspring_station::publish::{
    LatestEvent, Phase, StatePublisher, StationState, UnitLatency, UnitState, bracketed_realtime, folders,
};
use hairspring_station::run::StationOutcome;

use super::tally::Tally;
use crate::exit::Failure;
use crate::output;

/// The state that other processes see.
pub(super) struct Publication {
    publisher: StatePublisher,
    state: StationState,
    /// The page is gone: said once.
    is_lost: bool,
}

impl Publication {
    /// Opens the page under this name, or in this folder.
    pub(super) fn begin(name: &Path, station: &Station) -> Result<Self, Failure> {
        let folder = made(name)?;
        let publisher = StatePublisher::open(&folder).map_err(|error| Failure::failed(error.to_string()))?;
        let clock = bracketed_realtime(&Host);
        let started = Host.monotonic().as_monotonic() + clock.realtime_offset;
        let unit = |name: &String| UnitState { name: name.clone(), ..UnitState::default() };
        let state = StationState {
            name: name.file_name().unwrap_or(name.as_os_str()).to_string_lossy().into_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            message: "the station starts".to_owned(),
            started_realtime_ns: started.count(),
            phase: Phase::Starting,
            clock,
            units: station.units.iter().map(|settings| unit(&settings.name)).collect(),
        };
        let mut publication = Self { publisher, state, is_lost: false };
        publication.publish();
        Ok(publication)
    }

    /// Publishes what the units have done so far.
    pub(super) fn show(&mut self, tallies: &[Tally], is_stopping: bool) {
        let phase = if is_stopping { Phase::Stopping } else { Phase::Running };
        if phase != self.state.phase {
            self.state.phase = phase;
            let message = if is_stopping { "the station stops" } else { "the station runs" };
            message.clone_into(&mut self.state.message);
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
        "--publish: failed to make the folder {}: {error}; name a folder that you may write to",
        folder.display()
    ))
}
