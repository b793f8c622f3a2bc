//! The connection to an instrument: sends and receives bytes, with deadlines.
//!
//! Sockets and serial lines do not block: they are polled, in steps short enough to see a flag that ends the waiting.
//! The usbtmc driver cannot poll; it blocks for its own time-out.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{ControlModes, OptionalActions, QueueSelector, tcflush, tcgetattr, tcsetattr};

use super::address::Address;

/// The longest wait between two checks of the flag.
const LOOK: Duration = Duration::from_millis(100);

/// An open wire.
#[derive(Debug)]
pub(super) enum Link {
    Tcp(TcpStream),
    Serial(File),
    Usbtmc(File),
}

/// Why bytes were not sent or received.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The time was over.
    TimedOut,
    /// The flag was set.
    Stopped,
    /// The other side has hung up.
    Closed,
    /// Any other error.
    System(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Deadline of a wait, and the flag that ends it earlier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience<'a> {
    pub(super) until: Instant,
    pub(super) stop: Option<&'a AtomicBool>,
}

impl Patience<'_> {
    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    fn check(&self) -> Result<Duration, Trouble> {
        // Relaxed: a plain flag.
        if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(Trouble::Stopped);
        }
        match self.left() {
            Duration::ZERO => Err(Trouble::TimedOut),
            left => Ok(left),
        }
    }
}

impl Link {
    /// Opens the connection; for a host, to one of the addresses of its name.
    pub(super) fn open(address: &Address, numbers: &[SocketAddr], patience: Patience<'_>) -> Result<Self, Trouble> {
        match address {
            Address::Tcp { .. } => connect(numbers, patience).map(Self::Tcp),
            Address::Serial { path, baud } => Ok(Self::Serial(serial(path, *baud)?)),
            Address::Usbtmc { path } => Ok(Self::Usbtmc(OpenOptions::new().read(true).write(true).open(path)?)),
        }
    }

    /// Sends all bytes.
    pub(super) fn send(&mut self, mut bytes: &[u8], patience: Patience<'_>) -> Result<(), Trouble> {
        while !bytes.is_empty() {
            let sent = match self {
                Self::Tcp(stream) => stream.write(bytes),
                Self::Serial(file) | Self::Usbtmc(file) => file.write(bytes),
            };
            match sent {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) => self.again(error, PollFlags::OUT, patience)?,
            }
        }
        Ok(())
    }

    /// Waits for bytes, at least one.
    pub(super) fn receive(&mut self, room: &mut [u8], patience: Patience<'_>) -> Result<usize, Trouble> {
        loop {
            match self.take(room) {
                Ok(0) => return Err(Trouble::Closed),
                Ok(received) => return Ok(received),
                Err(error) => self.again(error, PollFlags::IN, patience)?,
            }
        }
    }

    /// The bytes that have arrived; empty for a connection that cannot be polled.
    pub(super) fn pending(&mut self, room: &mut [u8]) -> Result<usize, Trouble> {
        if matches!(self, Self::Usbtmc(_)) {
            return Ok(0);
        }
        match self.take(room) {
            Ok(0) => Err(Trouble::Closed),
            Ok(received) => Ok(received),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(broken(error)),
        }
    }

    fn take(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(room),
            Self::Serial(file) | Self::Usbtmc(file) => file.read(room),
        }
    }

    /// After an attempt that failed: waits until there can be another, unless it failed for good.
    fn again(&self, error: io::Error, events: PollFlags, patience: Patience<'_>) -> Result<(), Trouble> {
        match error.kind() {
            ErrorKind::WouldBlock => {
                let step = Timespec::try_from(patience.check()?.min(LOOK)).map_err(|_| Trouble::TimedOut)?;
                match poll(&mut [PollFd::from_borrowed_fd(self.descriptor(), events)], Some(&step)) {
                    // A signal may have set the flag, which is looked at next.
                    Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
                    Err(error) => Err(Trouble::System(error.into())),
                }
            }
            ErrorKind::Interrupted => patience.check().map(drop),
            _ => Err(broken(error)),
        }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Serial(file) | Self::Usbtmc(file) => file.as_fd(),
        }
    }
}

/// Classifies an error on an open connection.
fn broken(error: io::Error) -> Trouble {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => Trouble::Closed,
        ErrorKind::TimedOut => Trouble::TimedOut,
        _ => Trouble::System(error),
    }
}

fn connect(numbers: &[SocketAddr], patience: Patience<'_>) -> Result<TcpStream, Trouble> {
    let mut last = Trouble::System(io::Error::other("the name has no address"));
    for number in numbers {
        match TcpStream::connect_timeout(number, patience.check()?) {
            Ok(stream) => {
                // Lines are short: send them without delay.
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                return Ok(stream);
            }
            Err(error) => last = broken(error),
        }
    }
    Err(last)
}

fn serial(path: &Path, baud: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // A line without carrier must not block the opening, nor become this process's controlling terminal.
    options.read(true).write(true).custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK);
    let file = options.open(path)?;
    let mut attributes = tcgetattr(&file)?;
    attributes.make_raw();
    attributes.set_speed(baud)?;
    let modes = &mut attributes.control_modes;
    modes.remove(ControlModes::CSIZE | ControlModes::CSTOPB | ControlModes::PARENB | ControlModes::CRTSCTS);
    modes.insert(ControlModes::CS8 | ControlModes::CLOCAL | ControlModes::CREAD);
    tcsetattr(&file, OptionalActions::Now, &attributes)?;
    tcflush(&file, QueueSelector::IOFlush)?;
    Ok(file)
}
