//! The drivers: of a virtual board in shared memory, and of real devices behind the kernel's drivers.
//!
//! Each file holds one driver: the kernel's numbers that it needs, and the options of its descriptions
//! (`DriverOptions`): their syntax, help, checks, and how the device is opened. The list below makes it a [`Driver`]
//! that [`DeviceDescription`](crate::DeviceDescription) opens by its name. So a new driver is a file, its `mod` line
//! and its line in the list.

pub mod comedi;
pub mod gpio;
mod node;
mod options;
pub mod parport;
pub mod pci;
pub mod pps;
pub mod ptp;
pub mod serial;
pub mod virtual_board;

pub(crate) use options::{DriverOptions, lines_of};

options::drivers! {
    /// [`VirtualBoard`](virtual_board::VirtualBoard).
    Virtual(virtual_board::BoardOptions),
    /// [`Parport`](parport::Parport).
    Parport(parport::ParportOptions),
    /// [`Gpio`](gpio::Gpio).
    Gpio(gpio::GpioOptions),
    /// [`Serial`](serial::Serial).
    Serial(serial::SerialOptions),
    /// [`Comedi`](comedi::Comedi).
    Comedi(comedi::ComediOptions),
    /// [`Pci`](pci::Pci).
    Pci(pci::PciOptions),
}
