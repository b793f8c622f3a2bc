//! Devices with digital lines, and timed actions on them.
//!
//! # What this crate does
//! * [`Device`]: digital lines that are written and read, with a safe state. [`VirtualBoard`] is one whose registers
//!   are shared memory, so that several processes can share it like a card on a bus, with the access times of one.
//! * Real devices behind the kernel's drivers: [`Parport`], [`Gpio`], [`Serial`], [`Comedi`], [`Pci`].
//!   [`DeviceDescription`] names each of them on a command line. [`AnalogInput`] is a source of recordings;
//!   [`GpioEdges`], [`PciInterrupt`] and [`PpsDevice`] report edges, interrupts and the pulses of a clock; [`PtpClock`]
//!   reads the clock of a network card or a hypervisor.
//! * [`DeviceLock`]: one user at a time, between processes: with priority inheritance, in the order of arrival, or
//!   plainly. The lock reports the death of an owner to the next one.
//! * [`Pulse`]: a line goes up, and comes down no earlier than after its width; trains of them at absolute times.
//! * [`Exposure`]: a shutter that is open for a time, with an instrument read in the middle, closed on time however
//!   long the reading took.
//! * [`Instrument`]: a question and its answer in lines of text, over a socket or a serial line; a late answer is never
//!   taken for the next one.
//! * [`Scope`]: an independent observer on another CPU that stamps every edge of a virtual board, and counts the edges
//!   that it missed.
//!
//! # What can go wrong, and what happens then
//! * A process dies with the lock: the next owner gets a flag, and initialises the device again.
//! * A pulse is preempted: it is longer than asked, never shorter, and its report states by how much it may be.
//! * A device is unplugged while it is used: the next access is an error that states it.
//! * An instrument is silent or slow during an exposure: the shutter is closed on time, or at once, and the report
//!   states it.
//! * Another process truncates the file of a board or a lock: the next access is an error that states it, and no user
//!   dies of it.
//! * The scope is preempted: edges that it did not see are counted, because the board numbers them.

pub mod description;
pub mod device;
pub mod driver;
pub mod exposure;
pub mod instrument;
pub mod lock;
pub mod memory;
pub mod pulse;
pub mod reference;
pub mod refusal;
pub mod scope;
pub mod system;

pub use description::DeviceDescription;
pub use device::{Device, DeviceError, Lines};
pub use driver::comedi::{AnalogCard, AnalogInput, Comedi, Inputs};
pub use driver::gpio::{Gpio, GpioEdge, GpioEdges};
pub use driver::parport::Parport;
pub use driver::pci::{Pci, PciInterrupt, PciWindow};
pub use driver::pps::{PpsDevice, PpsPulse};
pub use driver::ptp::{PtpBracket, PtpCapabilities, PtpClock, PtpReading};
pub use driver::serial::Serial;
pub use driver::virtual_board::{AccessTimes, VirtualBoard};
pub use exposure::{Exposure, ExposureReport};
pub use instrument::{Answer, Instrument};
pub use lock::{DeviceLock, Guard, Guarded, Lend, LockFile, Lockable, Protocol};
pub use memory::window::Window;
pub use pulse::{Pulse, PulseReport};
pub use reference::ReferenceDescription;
pub use scope::{Edge, Scope, Traced};
