//! The drivers: of a virtual board in shared memory, and of real devices behind the kernel's drivers.
//!
//! Each file holds one driver, with the kernel's numbers that it needs. [`DeviceDescription`](crate::DeviceDescription) opens them by name.

pub mod comedi;
pub mod gpio;
mod node;
pub mod parport;
pub mod pci;
pub mod pps;
pub mod ptp;
pub mod serial;
pub mod virtual_board;
