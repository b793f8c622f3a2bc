//! [`DeviceDescription`]: a device on a command line: `DRIVER:WHERE`, and options that differ from the defaults.
//!
//! ```text
//! virtual:/dev/shm/board                                        no access times, safe state low, lock: inherit
//! virtual:/dev/shm/board,read=1.25us,write=1.25us,init=3.75us   the board of FESA's latency note
//! virtual:/dev/shm/board,safe=0x00000004,lock=fifo
//! parport:/dev/parport0,safe=0x00000400                         data lines low, nInit high
//! gpio:/dev/gpiochip0,out=3+4,in=7                              line 3 of the chip is line 0 of the device, …
//! serial:/dev/ttyS0                                             modem control lines
//! comedi:/dev/comedi0,subdevice=2,out=0x000000ff                the first 8 lines are outputs
//! pci:0000:00:04.0,bar=0,out=0x8,in=0xc                         words of a window of a card, by their offset in bytes
//! ```
//!
//! Every driver takes `safe=` and 32 lines as a number. The other options belong to the driver; its file in `driver/`
//! documents them. The first user of a virtual board makes it with the options after its path. Later users are refused
//! if their options differ from the board's; options that they leave out are the board's.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hairspring_describe::DescriptionError;
use hairspring_machine::Machine;
use hairspring_time::Timebase;

use crate::device::{Device, DeviceError, Lines, check_outputs};
pub use crate::driver::Driver;
use crate::driver::virtual_board::VirtualBoard;
use crate::driver::{DRIVERS, lines_of};
use crate::lock::Guarded;
use crate::lock::{LockFile, Lockable, Protocol};

/// A described device, not open yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceDescription {
    /// Its driver and its place.
    pub driver: Driver,
    /// The safe state of the outputs. By default all low, or the state of an existing virtual board.
    pub safe: Option<Lines>,
}

impl DeviceDescription {
    /// Refuses lines that are certainly not outputs, before the device is opened.
    ///
    /// # Errors
    /// Some of the lines are not outputs.
    pub fn check_outputs(&self, lines: Lines) -> Result<(), DeviceError> {
        let known = self.driver.output_lines();
        known.map_or(Ok(()), |outputs| check_outputs(outputs, lines, || self.to_string()))
    }

    /// Opens the device, as its driver does, to move these lines.
    ///
    /// # Errors
    /// As there; or these lines, or those of the safe state, are not outputs.
    pub fn open_to_move<'t, M: Machine + Send + Sync>(
        &self,
        lines: Lines,
        timebase: &'t Timebase<M>,
    ) -> Result<Box<dyn Device + 't>, DeviceError> {
        // Checks as far as possible before any access, and again with the outputs that only the device knows.
        let wanted = Lines(lines.0 | self.safe.unwrap_or_default().0);
        self.check_outputs(wanted)?;
        let device = self.open(timebase)?;
        device.check_outputs(wanted)?;
        Ok(device)
    }

    /// Opens the device, as its driver does.
    ///
    /// # Errors
    /// As there.
    pub fn open<'t, M: Machine + Send + Sync>(
        &self,
        timebase: &'t Timebase<M>,
    ) -> Result<Box<dyn Device + 't>, DeviceError> {
        self.driver.open(self.safe, timebase)
    }

    /// Opens the device to move its lines, behind the lock that its users share: the board's own lock, else the lock in
    /// this file, else one of this process.
    ///
    /// # Errors
    /// As [`open_to_move`](Self::open_to_move); the lock cannot be opened.
    pub fn open_guarded<'t, M: Machine + Send + Sync>(
        &self,
        lines: Lines,
        lock: Option<&(PathBuf, Protocol)>,
        timebase: &'t Timebase<M>,
    ) -> Result<Guarded<'t>, DeviceError> {
        let device = self.open_to_move(lines, timebase)?;
        let lock: Box<dyn Lockable + Send + Sync + 't> = match (&self.driver, lock) {
            (Driver::Virtual(board), _) => Box::new(board.board(self.safe, timebase)?),
            (_, Some((file, protocol))) => Box::new(LockFile::open(file, *protocol)?),
            (_, None) => Box::new(LockFile::of_process()?),
        };
        Ok(Guarded::new(device, lock))
    }

    /// Opens the device as a virtual board, for features that only virtual boards have: the lock between processes, and
    /// lines that an observer can watch.
    ///
    /// # Errors
    /// It is another device; as [`VirtualBoard::open`]; the board was made with other options.
    pub fn open_board<'t, M: Machine + Send + Sync>(
        &self,
        timebase: &'t Timebase<M>,
    ) -> Result<VirtualBoard<'t, M>, DeviceError> {
        match &self.driver {
            Driver::Virtual(board) => board.board(self.safe, timebase),
            _ => Err(DeviceError {
                attempted: format!("watch {self}"),
                said: "only the lines of a virtual board can be watched".to_owned(),
                remedy: "write virtual:PATH, for instance virtual:/dev/shm/board",
            }),
        }
    }

    /// The description with the options in force: those of a virtual board that differ from the defaults are filled in.
    ///
    /// # Errors
    /// As [`open_board`](Self::open_board).
    pub fn in_force<M: Machine + Send + Sync>(&self, timebase: &Timebase<M>) -> Result<Self, DeviceError> {
        let mut described = self.clone();
        if let Driver::Virtual(board) = &mut described.driver {
            described.safe = board.fill_in(self.safe, timebase)?;
        }
        Ok(described)
    }
}

impl FromStr for DeviceDescription {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Self, DescriptionError> {
        let read = DRIVERS.read(text)?;
        let place = read.place()?;
        let driver =
            Driver::at(read.kind(), place.text()).ok_or_else(|| read.whole().wrong("there is no such driver"))?;
        let mut described = Self { driver, safe: None };
        for part in read.parts() {
            let hint = described.driver.hint();
            match part.key() {
                Some("safe") => described.safe = Some(lines_of(part.value())?),
                Some(key) if described.driver.set(key, part.value())? => {}
                Some(key) => return Err(part.unknown(format!("there is no {key} here: write {hint}"))),
                None => return Err(part.wrong(format!("write {hint}"))),
            }
        }
        described.driver.check(&read)?;
        Ok(described)
    }
}

impl Driver {
    /// Whether it is the parallel port of this file.
    pub fn is_parport(&self, file: &Path) -> bool {
        matches!(self, Self::Parport(port) if port.path == file)
    }
}

impl fmt::Display for DeviceDescription {
    /// In the form that is parsed, with all given and all required options.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.driver.described(self.safe))
    }
}

#[cfg(test)]
mod tests;
