//! [`Readable`]: any descriptor that something can be read from: a pipe, a socket, a terminal, a device.

use std::fs::OpenOptions;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use hairspring_device::DeviceError;
use hairspring_machine::Machine;
use hairspring_time::{HeldTimebase, Instant, Timebase};

use super::{EventSource, failed, has_come};
use crate::event::{Event, Stamped};
use crate::stop::Stop;
use crate::system::{self, Ready};

/// Most bytes per read.
const READ_BYTES: usize = 4096;
/// The longest number at the beginning of a line: that of 2⁶⁴.
const NUMBER_BYTES: usize = 20;

/// Unit of input that counts as one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Each {
    /// The result of one read of up to 4 KiB. Several writes before it are one event, and their number is unknown.
    Read,
    /// A line. A number at its beginning is the cycle: `echo 17 > /run/trigger`.
    Line,
}

/// Waits for a descriptor.
#[derive(Debug)]
pub struct Readable<'t, M: Machine> {
    from: OwnedFd,
    name: String,
    each: Each,
    timebase: HeldTimebase<'t, M>,
    stop: &'t Stop,
    last: u64,
    buffer: Box<[u8; READ_BYTES]>,
    /// Bytes read but not yet searched for lines.
    rest: std::ops::Range<usize>,
    /// Time of that read, also for a line that waits its turn.
    read_at: Instant,
    line: Line,
}

/// A line that is not complete yet.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// The number at its beginning, as far as it has arrived.
    number: Option<u64>,
    digits: usize,
    is_over: bool,
}

impl Line {
    fn add(&mut self, byte: u8) {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
        match digit {
            Some(digit) if !self.is_over && self.digits < NUMBER_BYTES => {
                let grown = self.number.unwrap_or(0).checked_mul(10).and_then(|number| number.checked_add(digit));
                (self.number, self.is_over) = (grown, grown.is_none());
                self.digits += 1;
            }
            _ => self.is_over = true,
        }
    }
}

impl<'t, M: Machine> Readable<'t, M> {
    /// Waits for this descriptor, whose name is for people.
    pub fn new(from: OwnedFd, name: &str, each: Each, timebase: &'t Timebase<M>, stop: &'t Stop) -> Self {
        let buffer = Box::new([0; READ_BYTES]);
        let (name, read_at, line) = (name.to_owned(), timebase.now(), Line::default());
        let timebase = HeldTimebase::Lent(timebase);
        Self { from, name, each, timebase, stop, last: 0, buffer, rest: 0..0, read_at, line }
    }

    /// Waits for lines that are written into the named pipe of this path, which exists (`mkfifo`).
    ///
    /// # Errors
    /// It does not exist, or may not be read and written.
    pub fn fifo(path: &Path, timebase: &'t Timebase<M>, stop: &'t Stop) -> Result<Self, DeviceError> {
        let attempted = || format!("open the pipe {}", path.display());
        // Writing, too: so it does not end when its last writer does.
        let opened = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = opened.map_err(|error| failed(attempted(), &error))?;
        let kind = file.metadata().map_err(|error| failed(attempted(), &error))?.file_type();
        if !std::os::unix::fs::FileTypeExt::is_fifo(&kind) {
            return Err(DeviceError {
                attempted: attempted(),
                said: "it is something else".to_owned(),
                remedy: "make one with mkfifo",
            });
        }
        Ok(Self::new(file.into(), &format!("pipe {}", path.display()), Each::Line, timebase, stop))
    }

    fn event(&mut self, cycle: Option<u64>, waited: bool) -> Event {
        self.last += 1;
        let (at, wake) = (self.read_at, self.timebase.now());
        Event { at, stamped: Stamped::Wake, wake, waited, sequence: self.last, missed: 0, cycle }
    }

    /// The next line in the buffer.
    fn next_line(&mut self) -> Option<Option<u64>> {
        for at in self.rest.clone() {
            let byte = self.buffer[at];
            if byte == b'\n' {
                self.rest.start = at + 1;
                return Some(std::mem::take(&mut self.line).number);
            }
            self.line.add(byte);
        }
        self.rest = 0..0;
        None
    }
}

impl<M: Machine + Send + Sync> EventSource<M> for Readable<'_, M> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn adopt(&mut self, successor: Timebase<M>) {
        self.timebase.adopt(successor);
    }

    fn wait(&mut self) -> Result<Option<Event>, DeviceError> {
        // Lines that were read before the stop are discarded.
        if self.stop.is_set() {
            return Ok(None);
        }
        // If every piece has arrived when it is read.
        let mut waited = true;
        loop {
            if let Some(cycle) = self.next_line() {
                return Ok(Some(self.event(cycle, waited)));
            }
            waited = waited && has_come(self.from.as_fd())?;
            let ready = system::wait(self.from.as_fd(), self.stop.bell());
            if ready.map_err(|error| failed(format!("wait for {}", self.name), &error))? == Ready::Bell {
                return Ok(None);
            }
            let read = system::read(self.from.as_fd(), &mut self.buffer[..]);
            self.read_at = self.timebase.now();
            match read {
                Ok(0) => return Ok(None),
                Ok(_) if self.each == Each::Read => return Ok(Some(self.event(None, waited))),
                Ok(bytes) => self.rest = 0..bytes,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(failed(format!("read {}", self.name), &error)),
            }
        }
    }
}
