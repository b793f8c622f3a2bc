//! Devices with digital lines, and what is done with them on time.
//!
//! # What this crate does
//! * [`Device`]: digital lines that are written and read, with a safe state. [`VirtualBoard`] is one whose registers are shared
//!   memory, so that several processes use it as they would a card on a bus, at the access times of one.
//! * Real devices behind the kernel's drivers: [`Parport`], [`Gpio`], [`Serial`], [`Comedi`], [`Pci`]. [`Description`] names each of
//!   them on a command line. [`AnalogInput`] is a source of recordings; [`GpioEdges`] and [`PciInterrupt`] tell of events.
//! * [`DeviceLock`]: one at a time, between processes: with priority inheritance, in the order of coming, or plainly. The
//!   death of an owner is told to the next one.
//! * [`Pulse`]: a line that goes up and comes down not before its width has passed; trains of them at absolute times.
//! * [`Exposure`]: a shutter that is open for a time, with an instrument read in the middle, closed on time whatever that took.
//! * [`Instrument`]: a question and its answer in lines of text, over a socket or a serial line; a late answer is never taken
//!   for the next one.
//! * [`Scope`]: an independent observer on another CPU that stamps every edge of a virtual board, and says how many it missed.
//! * [`EventSource`]: timers, descriptors, datagrams, signals of software; each event numbered and stamped.
//!   [`SchedulingUnit`] runs an action for each, stamps every stage of the way, and counts what was late, missed or overrun.
//! * [`Station`]: a front end of several devices and units, read from TOML.
//!
//! # What can go wrong, and what happens then
//! * A process dies with the lock: the next owner is told so, and initialises the device again.
//! * A pulse is preempted: it is longer than asked, never shorter, and its report says by how much it may be.
//! * A device is unplugged while it is used: the next access is an error that says so.
//! * An instrument is silent or slow during an exposure: the shutter is closed on time, or at once, and the report says so.
//! * Somebody truncates the file of a board, a lock or a signal: the next access is an error that says so, and no user dies of it.
//! * The scope is preempted: edges that it did not see are counted, for the board numbers them.

mod calls;
pub mod comedi;
pub mod description;
pub mod device;
pub mod event;
pub mod exposure;
pub mod gpio;
pub mod guarded;
pub mod instrument;
pub mod lock;
mod node;
pub mod parport;
pub mod pci;
pub mod pulse;
mod refusal;
mod revoked;
pub mod scope;
pub mod serial;
mod shared;
pub mod signal;
pub mod source;
pub mod stages;
pub mod station;
mod stop;
pub mod unit;
pub mod virtual_board;
pub mod window;

pub use comedi::{AnalogCard, AnalogInput, Comedi, Inputs};
pub use description::Description;
pub use device::{Device, DeviceError, Lines};
pub use event::{Event, Stamped};
pub use exposure::{Exposure, ExposureReport};
pub use gpio::{Gpio, GpioEdge, GpioEdges};
pub use guarded::{Guarded, Lend};
pub use instrument::{Answer, Instrument};
pub use lock::{DeviceLock, Guard, LockFile, Lockable, Protocol};
pub use parport::Parport;
pub use pci::{Pci, PciInterrupt, PciWindow};
pub use pulse::{Pulse, PulseReport};
pub use scope::{Edge, Scope, Traced};
pub use serial::Serial;
pub use signal::{Poller, Signal, Sleeper};
pub use source::EventSource;
pub use stages::Stages;
pub use station::Station;
pub use stop::Stop;
pub use unit::{Action, Activation, Counts, SchedulingUnit, StageLog};
pub use virtual_board::{AccessTimes, VirtualBoard};
pub use window::Window;
