//! [`Parport`]: a PC parallel port through the kernel's `ppdev`.
//!
//! | lines | out | in |
//! |---|---|---|
//! | 0 to 7 | data, pins 2 to 9 | 0 to 4: nError (15), Select (13), PaperEnd (12), nAck (10), Busy (11) |
//! | 8 to 11 | nStrobe (1), nAutoFd (14), nInit (16), nSelectIn (17) | – |
//!
//! 1 is the high voltage at the pin of every line: this driver undoes the inversions of the port. Data lines and
//! control lines are two registers, so a write that changes both does it one after the other, data first.
//!
//! An interrupt is a falling edge of nAck. The kernel counts them; [`Parport::wait_interrupt`] returns the count. A
//! port without an interrupt line never has one.
//!
//! **Real-time behaviour.** A system call for each register that is written, one for a read; each is about a
//! microsecond on the port's bus, on any CPU.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use hairspring_machine::{Machine, Nanos};
use hairspring_time::Timebase;

use crate::device::{Device, DeviceError, Lines};
use crate::driver::DriverOptions;
use crate::driver::node::{Command, Node, Request};
use crate::refusal::refusal;
use crate::system::wait_readable;

// From `linux/ppdev.h`.
const CLAIM: Command = Command::new(b'p', 0x8b);
const RELEASE: Command = Command::new(b'p', 0x8c);
const EXCLUSIVE: Command = Command::new(b'p', 0x8f);
const READ_STATUS: Request<u8> = Request::gives(b'p', 0x81);
const WRITE_CONTROL: Request<u8> = Request::takes(b'p', 0x84);
const WRITE_DATA: Request<u8> = Request::takes(b'p', 0x86);
const DATA_DIRECTION: Request<i32> = Request::takes(b'p', 0x90);
const CLEAR_INTERRUPTS: Request<i32> = Request::gives(b'p', 0x93);

/// Bits of the control register that are low where the pin is high: strobe, autofeed, select.
const CONTROL_INVERTED: u8 = 0b1011;
/// Number of the first of its five lines in the status register.
const STATUS_FIRST: u32 = 3;
/// The line of the status register that is inverted, after the shift: busy.
const STATUS_INVERTED: u32 = 0b1_0000;
const DATA: u32 = 0xff;
const CONTROL_FIRST: u32 = 8;
const CONTROL: u32 = 0xf << CONTROL_FIRST;
const REMEDY: &str = "load the modules parport_pc and ppdev, and name its file, for instance parport:/dev/parport0";

/// The lines that are outputs.
const OUTPUT_LINES: Lines = Lines(DATA | CONTROL);

/// The options of a description `parport:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParportOptions {
    /// The file of the port.
    pub path: PathBuf,
}

impl DriverOptions for ParportOptions {
    const KIND: &'static str = "parport";
    const EXAMPLE: &'static str = "parport:/dev/parport0";
    const HINT: &'static str = "safe= and a number, like 0x00000004";

    fn at(place: &str) -> Self {
        Self { path: place.into() }
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn output_lines(&self) -> Option<Lines> {
        Some(OUTPUT_LINES)
    }

    fn open<'t, M: Machine + Send + Sync>(
        &self,
        safe: Option<Lines>,
        _: &'t Timebase<M>,
    ) -> Result<Box<dyn Device + 't>, DeviceError> {
        Ok(Box::new(Parport::open(&self.path, safe.unwrap_or_default())?))
    }
}

/// A parallel port.
#[derive(Debug)]
pub struct Parport {
    node: Node,
    safe: Lines,
    /// The levels of the outputs at the pins.
    outputs: u32,
}

impl Parport {
    /// Opens and claims a port for this process alone, until it is dropped. Its lines go to the safe state.
    ///
    /// # Errors
    /// The port does not exist, a permission is missing, another driver or process has claimed it, or the file is not a
    /// port.
    pub fn open(path: &Path, safe: Lines) -> Result<Self, DeviceError> {
        let mut port = Self::claim(path, safe)?;
        port.init()?;
        Ok(port)
    }

    /// Opens and claims a port for its inputs and interrupts alone: its data lines stay as they are. The kernel's
    /// driver sets nInit and nStrobe high and nSelectIn low when a port is claimed. Call [`init`](Device::init) before
    /// anything is written to it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn listen(path: &Path) -> Result<Self, DeviceError> {
        Self::claim(path, Lines(0))
    }

    fn claim(path: &Path, safe: Lines) -> Result<Self, DeviceError> {
        let node = Node::open(path, "the parallel port", REMEDY)?;
        let claimed = node.command(EXCLUSIVE).and_then(|()| node.command(CLAIM));
        let port = Self { node, safe, outputs: 0 };
        claimed.map_err(|error| match error.raw_os_error() {
            // The kernel's error for a claimed port, which does not name the owner.
            Some(libc::ENXIO | libc::EINVAL) => DeviceError {
                attempted: format!("claim the parallel port {}", path.display()),
                said: "another driver or process has it".to_owned(),
                remedy: "end that program, or unload the driver, for instance lp",
            },
            _ => port.failed("claim", &error),
        })?;
        Ok(port)
    }

    /// Its file.
    pub fn path(&self) -> PathBuf {
        self.node.path().to_owned()
    }

    /// Waits at most `most` for interrupts. Returns the number since the last call. Blocks.
    ///
    /// # Errors
    /// The port is gone.
    pub fn wait_interrupt(&mut self, most: Nanos) -> Result<u32, DeviceError> {
        let waited = wait_readable(self.node.as_fd(), most).and_then(|ready| match ready {
            true => self.node.ask(CLEAR_INTERRUPTS),
            false => Ok(0),
        });
        waited.map(i32::unsigned_abs).map_err(|error| self.failed("wait for interrupts of", &error))
    }

    fn failed(&self, attempted: &str, error: &io::Error) -> DeviceError {
        refusal(format!("{attempted} the parallel port {}", self.node.path().display()), error, REMEDY)
    }
}

impl AsFd for Parport {
    /// Readable after an interrupt. Reading it clears nothing; [`Parport::wait_interrupt`] does.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.node.as_fd()
    }
}

impl Device for Parport {
    fn name(&self) -> String {
        format!("parallel port {}", self.node.path().display())
    }

    fn init(&mut self) -> Result<(), DeviceError> {
        // First the levels, then the direction.
        self.make_safe()?;
        self.node.put(DATA_DIRECTION, 0).map_err(|error| self.failed("initialise", &error))
    }

    fn output_lines(&self) -> Lines {
        OUTPUT_LINES
    }

    fn write(&mut self, mask: Lines, value: Lines) -> Result<(), DeviceError> {
        self.check_outputs(mask)?;
        self.outputs = self.outputs & !mask.0 | value.0 & mask.0;
        let (data, control) = (self.outputs as u8, (self.outputs >> CONTROL_FIRST) as u8 & 0xf ^ CONTROL_INVERTED);
        let writes = [(DATA, WRITE_DATA, data), (CONTROL, WRITE_CONTROL, control)];
        for (_, request, register) in writes.into_iter().filter(|(lines, ..)| lines & mask.0 != 0) {
            self.node.put(request, register).map_err(|error| self.failed("write to", &error))?;
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Lines, DeviceError> {
        let status = self.node.ask(READ_STATUS).map_err(|error| self.failed("read from", &error))?;
        Ok(Lines(u32::from(status) >> STATUS_FIRST ^ STATUS_INVERTED))
    }

    fn safe_state(&self) -> Lines {
        self.safe
    }
}

impl Drop for Parport {
    fn drop(&mut self) {
        // Closing the file would do the same, but later.
        let _ = self.node.command(RELEASE);
    }
}
