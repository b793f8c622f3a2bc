//! [`Node`]: a device file of a kernel driver, and its `ioctl` calls.
//!
//! It guarantees that the file is a character device, that a call passes exactly the value that its number encodes, and
//! that each error has a remedy. It does not depend on any driver: the drivers' own files define the numbers. Requests
//! whose values contain addresses are not made here.

#![expect(unsafe_code, reason = "the system call ioctl")]

use std::fs::{File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use zerocopy::{FromBytes, IntoBytes};

use crate::device::DeviceError;
use crate::refusal::refusal;

/// Integers, and structures of integers without padding: any bits are a valid value, and they hold no addresses.
/// zerocopy checks that.
pub(crate) trait Number: FromBytes + IntoBytes + Copy + Default {}
impl<T: FromBytes + IntoBytes + Copy + Default> Number for T {}

/// A request of a driver that takes or gives one number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<T> {
    number: libc::c_ulong,
    value: PhantomData<T>,
}

impl<T: Number> Request<T> {
    /// `_IOR`: the driver returns a value. The kernel's drivers copy as many bytes as the number encodes.
    pub(crate) const fn gives(group: u8, index: u8) -> Self {
        Self { number: encoded(2, group, index, size_of::<T>()), value: PhantomData }
    }

    /// `_IOW`: the driver takes a value.
    pub(crate) const fn takes(group: u8, index: u8) -> Self {
        Self { number: encoded(1, group, index, size_of::<T>()), value: PhantomData }
    }

    /// `_IOWR`: the driver takes a value and gives one.
    pub(crate) const fn exchanges(group: u8, index: u8) -> Self {
        Self { number: encoded(3, group, index, size_of::<T>()), value: PhantomData }
    }

    /// A request whose number encodes the size of an address instead of the value's, a mistake of some headers. `T`
    /// must have the length that the driver copies.
    pub(crate) const fn by_address(direction: u32, group: u8, index: u8) -> Self {
        Self { number: encoded(direction, group, index, size_of::<usize>()), value: PhantomData }
    }
}

/// The requests of terminals are older than the encoding of sizes; all of these are about one `int`.
/// glibc and musl declare the numbers of requests with different types.
pub(crate) const MODEM_GET: Request<i32> = Request { number: libc::TIOCMGET as _, value: PhantomData };
pub(crate) const MODEM_SET: Request<i32> = Request { number: libc::TIOCMBIS as _, value: PhantomData };
pub(crate) const MODEM_CLEAR: Request<i32> = Request { number: libc::TIOCMBIC as _, value: PhantomData };

/// A request without any value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command(libc::c_ulong);

impl Command {
    /// `_IO`.
    pub(crate) const fn new(group: u8, index: u8) -> Self {
        Self(encoded(0, group, index, 0))
    }
}

/// The exclusive use of a terminal.
pub(crate) const EXCLUSIVE: Command = Command(libc::TIOCEXCL as _);

/// The number of a request, as in `asm-generic/ioctl.h`; both supported architectures use this one.
pub(crate) const fn encoded(direction: u32, group: u8, index: u8, bytes: usize) -> libc::c_ulong {
    (direction << 30 | (bytes as u32) << 16 | (group as u32) << 8 | index as u32) as libc::c_ulong
}

/// The open file of a device.
#[derive(Debug)]
pub(crate) struct Node {
    file: File,
    path: PathBuf,
}

impl Node {
    /// Opens a device file for reading and writing, always non-blocking. `what` names the device and `remedy` the
    /// advice for the error.
    pub(crate) fn open(path: &Path, what: &str, remedy: &'static str) -> Result<Self, DeviceError> {
        Self::open_as(path, what, remedy, true)
    }

    /// The same for reading only, which needs fewer rights.
    pub(crate) fn open_to_read(path: &Path, what: &str, remedy: &'static str) -> Result<Self, DeviceError> {
        Self::open_as(path, what, remedy, false)
    }

    fn open_as(path: &Path, what: &str, remedy: &'static str, writes: bool) -> Result<Self, DeviceError> {
        let failed = |error: io::Error| refusal(format!("open {what} {}", path.display()), &error, remedy);
        // Checks before opening, because opening alone can have effects, for instance on the lines of a serial port.
        if !std::fs::metadata(path).map_err(failed)?.file_type().is_char_device() {
            return Err(wrong_kind(path, what, remedy));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(writes).custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC);
        Ok(Self { file: options.open(path).map_err(failed)?, path: path.to_owned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Makes a request without a value.
    pub(crate) fn command(&self, command: Command) -> io::Result<()> {
        // SAFETY: the descriptor is open as long as `self`, and the request has no value: the kernel touches no memory
        // of ours.
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), command.0 as _) };
        if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Hands a value over.
    pub(crate) fn put<T: Number>(&self, request: Request<T>, value: T) -> io::Result<()> {
        self.exchange(request, value).map(drop)
    }

    /// Asks for a value.
    pub(crate) fn ask<T: Number>(&self, request: Request<T>) -> io::Result<T> {
        self.exchange(request, T::default())
    }

    /// Passes a value and returns the driver's version of it.
    pub(crate) fn exchange<T: Number>(&self, request: Request<T>, mut value: T) -> io::Result<T> {
        // SAFETY: the request is made only with the type that the driver copies (`Request`), any bits of which are a
        // valid value; the value lives until the call returns and no other thread sees it.
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), request.number as _, &raw mut value) };
        if result >= 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
    }
}

impl AsFd for Node {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The error for a file that is not a device.
fn wrong_kind(path: &Path, what: &str, remedy: &'static str) -> DeviceError {
    DeviceError {
        attempted: format!("open {what} {}", path.display()),
        said: "the file is not a character device".to_owned(),
        remedy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_kernels_headers() {
        // PPWDATA, PPRSTATUS, PPCLRIRQ, PPCLAIM.
        assert_eq!(Request::<u8>::takes(b'p', 0x86).number, 0x4001_7086);
        assert_eq!(Request::<u8>::gives(b'p', 0x81).number, 0x8001_7081);
        assert_eq!(Request::<i32>::gives(b'p', 0x93).number, 0x8004_7093);
        assert_eq!(Command::new(b'p', 0x8b).0, 0x708b);
    }

    #[test]
    fn what_is_no_device_is_refused_before_it_is_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let letter = folder.path().join("letter");
        std::fs::write(&letter, "Dear Sir or Madam").expect("written");
        let error = Node::open(&letter, "the port", "load ppdev").expect_err("a letter").to_string();
        assert!(error.starts_with("failed to open the port ") && error.contains("not a character device"), "{error}");
        let error = Node::open(&folder.path().join("none"), "the port", "load ppdev").expect_err("none").to_string();
        assert!(error.contains("No such file") && error.ends_with("; load ppdev"), "{error}");
    }

    #[test]
    fn a_driver_that_does_not_know_a_request_says_so() {
        let null = Node::open(Path::new("/dev/null"), "nothing", "look elsewhere").expect("a character device");
        let error = null.ask(MODEM_GET).expect_err("no modem");
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
    }
}
