//! Front ends: events, the units that act on them, and stations of several units and devices.
//!
//! # What this crate does
//! * [`EventSource`]: timers, descriptors, datagrams, interrupts, signals of software; each event numbered and stamped.
//! * [`SchedulingUnit`]: runs an action for each event, stamps every stage, and counts late, missed and overrun events.
//! * [`Station`]: a front end of several devices and units, read from TOML.
//!
//! # What can go wrong, and what happens then
//! * Events come faster than the unit acts: each event without an action is counted as missed.
//! * A unit fails or panics: the station stops, and every device is set to its safe state.
//! * Another process truncates the file of a signal: the next access is an error that states it, and no user dies of
//!   it.
//! * The process is killed (SIGKILL): the lines stay as they are.

pub mod command;
pub mod event;
pub mod property;
pub mod publish;
pub mod signal;
pub mod source;
mod station;
mod stop;
mod system;
pub mod unit;

pub use event::{Event, Stamped};
pub use property::{Property, PropertyLimits, PropertyValues, PutError, UnitControl};
pub use signal::{Poller, Signal, Sleeper};
pub use source::EventSource;
pub use station::{Act, DeviceSettings, LatencyAlarm, PublishSettings, Station, UnitSettings, file, restore, run};
pub use stop::Stop;
pub use unit::{Action, Activation, Counts, SchedulingUnit, StageLog, Stages};
