//! Firing: an event, a rest, and the next event after the reaction.

use hairspring_machine::{Host, Machine, Nanos};
use hairspring_sheet::Absent;
use hairspring_station::{StageLog, Stages};
use hairspring_time::{Instant, Timebase};

/// Room for all stamps.
pub(super) const EVENTS_MOST: usize = 4096;
/// The least time between two events, in which the waiting thread falls asleep again.
const REST: Nanos = Nanos::from_micros(200);
/// An event without a reaction after this time is lost.
const PATIENCE: Nanos = Nanos::from_millis(500);

/// The result.
pub(super) struct Fired {
    /// Every activation.
    pub(super) stages: Vec<Stages>,
    /// The time of each event.
    pub(super) stamps: Vec<Instant>,
}

/// Fires events for this long, or collects the events of a source that fires without us.
pub(super) fn fire(
    firing: Option<Box<dyn FnMut() -> std::io::Result<()> + '_>>,
    span: Nanos,
    mut log: StageLog,
    timebase: &Timebase<Host>,
) -> Result<Fired, Absent> {
    let mut fired = Fired { stages: Vec::with_capacity(EVENTS_MOST), stamps: Vec::with_capacity(EVENTS_MOST) };
    let monotonic = || Host.monotonic();
    let end = monotonic() + span;
    let Some(mut firing) = firing else {
        while monotonic() < end && fired.stages.len() < EVENTS_MOST {
            Host.sleep_until(monotonic() + REST * 20);
            fired.stages.extend(log.by_ref());
        }
        return Ok(fired);
    };
    while monotonic() < end && fired.stages.len() < EVENTS_MOST {
        Host.sleep_until(monotonic() + REST);
        fired.stamps.push(timebase.now());
        firing().map_err(|error| Absent::final_(format!("failed to fire an event: {error}")))?;
        let lost = monotonic() + PATIENCE;
        loop {
            if let Some(stages) = log.next() {
                fired.stages.push(stages);
                break;
            }
            if monotonic() > lost {
                return Err(Absent::new(
                    format!("an event was not reacted to within {PATIENCE}"),
                    "see whether something of higher priority keeps the CPU busy",
                ));
            }
            Host.sleep_until(monotonic() + REST);
        }
    }
    Ok(fired)
}
