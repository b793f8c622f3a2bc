//! [`Station`]: a front end: sources, devices, and the units that bind them, each on a thread with its priority and
//! CPU.
//!
//! **What a run does.** It opens and initialises the devices, starts a thread for each unit, waits until all are in
//! their places, and then lets them react until a stop is requested. At the end, whatever its cause (a stop, a unit's
//! failure or panic), every device is set to its safe state, and the result contains the outcome.
//!
//! **Time.** The run refines its time base every ten seconds, and each unit adopts the successor after its next action.
//!
//! **What it cannot do.** A process killed by SIGKILL cannot act: its lines stay as they are.
//!
//! [`mod@file`] reads a station from TOML.

pub mod file;
pub mod restore;
pub mod run;

use std::path::PathBuf;

use hairspring_device::DeviceDescription;
use hairspring_device::{Lines, Protocol};
use hairspring_machine::{Cpu, Nanos};

use crate::property::{Property, PropertyLimits};
use crate::source::EventSourceDescription;

/// A front end, as described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Station {
    /// Its devices.
    pub devices: Vec<DeviceSettings>,
    /// Its units, in the order in which they begin.
    pub units: Vec<UnitSettings>,
    /// Visibility and permissions for other processes, if published.
    pub publish: PublishSettings,
}

/// Visibility of a station to other processes, and their permissions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishSettings {
    /// Prefix of its variables' names in control systems.
    pub prefix: Option<String>,
    /// The file that keeps set-points beyond the end of the station.
    pub keep: Option<PathBuf>,
    /// The accounts that may set something through a bridge. The client's claim is not verified. Without a list, any
    /// account.
    pub accounts: Option<Vec<String>>,
}

/// A device of a station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSettings {
    /// Name by which units refer to it.
    pub name: String,
    /// Driver of the device.
    pub driver: DeviceDescription,
    /// The file of its lock, which all its users share, and the protocol for making it. A virtual board has a lock of
    /// its own.
    pub lock: Option<(PathBuf, Protocol)>,
}

/// A unit of a station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitSettings {
    /// Its name.
    pub name: String,
    /// Source of the events.
    pub on: EventSourceDescription,
    /// Its device, by its place among the station's.
    pub device: Option<usize>,
    /// Action for each event.
    pub act: Act,
    /// Its priority under `SCHED_FIFO`; without one, the ordinary policy.
    pub priority: Option<u8>,
    /// Its CPU; without one, any.
    pub cpu: Option<Cpu>,
    /// Activations that begin later than this after their event are counted as late.
    pub late_after: Option<Nanos>,
    /// Whether it acts. Events of a unit that does not are counted as skipped.
    pub enabled: bool,
    /// Properties that may be set while it runs, with their limits.
    pub settable: Vec<PropertyLimits>,
    /// Latencies from which on control systems raise an alarm.
    pub alarm: Option<LatencyAlarm>,
}

/// Limits of a unit's latency, from the event to the end of its last access, that raise alarms in control systems. The
/// station only publishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyAlarm {
    /// Latencies from here on raise a minor alarm.
    pub minor: Option<Nanos>,
    /// Latencies from here on raise a major alarm.
    pub major: Option<Nanos>,
    /// Distance below its limit at which an alarm ends. It is shorter than each limit.
    pub hysteresis: Nanos,
}

impl UnitSettings {
    /// Limits between which a property may be set; `None` if it may not be set.
    pub fn limits(&self, property: Property) -> Option<PropertyLimits> {
        self.settable.iter().copied().find(|limits| limits.property == property)
    }
}

/// Action of a unit for an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Reads the input lines.
    Read,
    /// Sets those output lines that are in the mask.
    Write(Lines, Lines),
    /// Changes a line from low to high and back, in turns.
    Toggle(u32),
    /// Makes a pulse of a guaranteed-minimum width.
    Pulse(u32, Nanos),
    /// Fires a signal, with the cycle of the event.
    Fire(PathBuf),
}

impl Act {
    /// The output lines that it moves.
    pub fn outputs(&self) -> Lines {
        match *self {
            Self::Write(mask, _) => mask,
            Self::Toggle(line) | Self::Pulse(line, _) => Lines::one(line),
            Self::Read | Self::Fire(_) => Lines(0),
        }
    }

    /// Whether it takes a device.
    pub(crate) fn takes_device(&self) -> bool {
        !matches!(self, Self::Fire(_))
    }
}

impl std::fmt::Display for Act {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Read => f.write_str("read"),
            Self::Write(mask, value) => write!(f, "write {value} to {mask}"),
            Self::Toggle(line) => write!(f, "toggle line {line}"),
            Self::Pulse(line, width) => write!(f, "pulse of {width} on line {line}"),
            Self::Fire(path) => write!(f, "fire {}", path.display()),
        }
    }
}
