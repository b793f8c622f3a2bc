//! [`StationState`]: what a station publishes, as values.

use hairspring_machine::{Instant, Nanos};

use super::histogram::LatencyHistogram;
use crate::event::Stamped;
use crate::property::PropertyValues;
use crate::unit::Counts;

/// Phase of a station's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// It opens its devices and sources.
    #[default]
    Starting,
    /// Its units wait for events and act on them.
    Running,
    /// A stop was requested.
    Stopping,
    /// It has ended, and its devices are in their safe states.
    Ended,
    /// A unit failed, or a device may not be in its safe state.
    Fault,
}

impl Phase {
    /// All phases, in the order of their numbers in the page.
    pub const ALL: [Self; 5] = [Self::Starting, Self::Running, Self::Stopping, Self::Ended, Self::Fault];

    /// Its name in lists of choices.
    pub fn name(self) -> &'static str {
        ["Starting", "Running", "Stopping", "Ended", "Fault"][self as usize]
    }
}

/// The kernel's two clocks, read as a bracketed pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockReading {
    /// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`.
    pub realtime_offset: Nanos,
    /// Uncertainty: the width of the bracket.
    pub within: Nanos,
}

/// The latest event of a unit that it acted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatestEvent {
    /// Its number at its source.
    pub sequence: u64,
    /// The cycle that it belongs to.
    pub cycle: Option<u64>,
    /// When it happened.
    pub at: Instant,
    /// The same by `CLOCK_REALTIME`, in nanoseconds since 1970. Converted once, so that it never changes afterwards.
    pub realtime_ns: i64,
    /// Origin of the stamp.
    pub stamped: Stamped,
}

/// Quantiles of the time from an event to the end of its last access, since the start. `None`: too few events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitLatency {
    /// Half of them are shorter.
    pub median: Option<Nanos>,
    /// 99 % of them are shorter.
    pub p99: Option<Nanos>,
    /// The longest.
    pub max: Option<Nanos>,
}

/// The properties of a unit that has settable ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitProperties {
    /// Values that the station has accepted.
    pub set_points: PropertyValues,
    /// Values in force.
    pub read_back: PropertyValues,
    /// Accepted values that wait for the unit's next event or for their cycles.
    pub waiting: u64,
    /// Values that were never applied, because their cycle passed without an event.
    pub expired: u64,
}

/// The state of a unit. All counters are absolute since the start of the station.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitState {
    /// Its name; the page keeps 64 bytes.
    pub name: String,
    /// Counts of its events by outcome.
    pub counts: Counts,
    /// The latest event, once there was one.
    pub latest: Option<LatestEvent>,
    /// Quantiles of its latencies.
    pub latency: UnitLatency,
    /// Their distribution.
    pub histogram: LatencyHistogram,
    /// Its properties, if any can be set.
    pub properties: Option<UnitProperties>,
}

/// The state of a station.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StationState {
    /// Its published name; the page keeps 64 bytes.
    pub name: String,
    /// The program's version; the page keeps 32 bytes.
    pub version: String,
    /// The latest message for an operator; the page keeps 256 bytes.
    pub message: String,
    /// Start time, by `CLOCK_REALTIME` in nanoseconds since 1970. Another number means another run, with new counters.
    pub started_realtime_ns: i64,
    /// Its phase.
    pub phase: Phase,
    /// The relation of the clocks when it was published.
    pub clock: ClockReading,
    /// Its units, in the order of its file; at most 64.
    pub units: Vec<UnitState>,
}
