//! System calls that need structures of C: the device mapper makes disks that fail, comedi attaches a driver, a PTP
//! clock is set, and a page of memory is locked at its physical address.

#![expect(unsafe_code, reason = "ioctl, clock_settime, mmap and mlock")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::ptr::NonNull;

const CONTROL: &str = "/dev/mapper/control";
/// `struct dm_ioctl`, and one target with its parameters behind it.
const HEADER: usize = 312;
const TARGET: usize = 40;
const ROOM: usize = 1024;
const FLAGS_AT: usize = 28;
const NAME_AT: usize = 48;
const CREATE: u8 = 3;
const SUSPEND: u8 = 6;
const LOAD: u8 = 9;
/// Flags: suspend, without waiting for pending I/O or for the file system.
const SUSPENDED: u32 = 1 << 1;
const SKIP_LOCK: u32 = 1 << 10;
const NO_FLUSH: u32 = 1 << 11;

/// A disk of the device mapper.
pub(crate) struct Mapped {
    control: File,
    name: String,
}

impl Mapped {
    /// Makes a disk with one target.
    pub(crate) fn create(name: &str, sectors: u64, target: &str, parameters: &str) -> io::Result<Self> {
        let control = OpenOptions::new().read(true).write(true).open(CONTROL)?;
        let mapped = Self { control, name: name.to_owned() };
        mapped.call(CREATE, 0, None)?;
        mapped.replace(sectors, target, parameters)?;
        Ok(mapped)
    }

    /// Replaces the target while the disk is in use. Pending I/O goes to the new target.
    pub(crate) fn replace(&self, sectors: u64, target: &str, parameters: &str) -> io::Result<()> {
        self.call(LOAD, 0, Some((sectors, target, parameters)))?;
        self.call(SUSPEND, SUSPENDED | SKIP_LOCK | NO_FLUSH, None)?;
        self.call(SUSPEND, 0, None)
    }

    fn call(&self, request: u8, flags: u32, table: Option<(u64, &str, &str)>) -> io::Result<()> {
        let mut block = [0_u64; ROOM / 8];
        let number = libc::c_ulong::from(3_u32 << 30 | (HEADER as u32) << 16 | 0xfd << 8 | u32::from(request));
        let bytes: &mut [u8] = as_bytes(&mut block);
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &4_u32.to_ne_bytes());
        put(12, &(ROOM as u32).to_ne_bytes());
        put(16, &(HEADER as u32).to_ne_bytes());
        put(FLAGS_AT, &flags.to_ne_bytes());
        put(NAME_AT, self.name.as_bytes());
        if let Some((sectors, target, parameters)) = table {
            put(20, &1_u32.to_ne_bytes());
            put(HEADER + 8, &sectors.to_ne_bytes());
            let length = (TARGET + parameters.len() + 1).next_multiple_of(8);
            put(HEADER + 20, &(length as u32).to_ne_bytes());
            put(HEADER + 24, target.as_bytes());
            put(HEADER + TARGET, parameters.as_bytes());
        }
        // SAFETY: the kernel reads and writes as many bytes as the block's own length field gives, which the block has;
        // it lives until the call returns.
        let result = unsafe { libc::ioctl(self.control.as_raw_fd(), number as _, block.as_mut_ptr()) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

fn as_bytes(words: &mut [u64; ROOM / 8]) -> &mut [u8] {
    // SAFETY: the same memory, as long in bytes; any bytes are numbers.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), ROOM) }
}

/// Attaches comedi's driver of this name to a card at these ports.
pub(crate) fn attach(card: &Path, driver: &str, port: i32) -> io::Result<()> {
    #[repr(C)]
    struct Configuration {
        driver: [u8; 20],
        options: [i32; 32],
    }
    let mut configuration = Configuration { driver: [0; 20], options: [0; 32] };
    configuration.driver[..driver.len()].copy_from_slice(driver.as_bytes());
    configuration.options[0] = port;
    let file = OpenOptions::new().read(true).write(true).open(card)?;
    let number = libc::c_ulong::from(1_u32 << 30 | (size_of::<Configuration>() as u32) << 16 | u32::from(b'd') << 8);
    // SAFETY: `struct comedi_devconfig`, which the kernel reads; it lives until the call returns.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), number as _, &raw const configuration) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets modem control lines of a terminal that others may have open.
pub(crate) fn modem_set(port: &Path, lines: libc::c_int) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(port)?;
    // SAFETY: the kernel reads one number, which lives until the call returns.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TIOCMBIS, &raw const lines) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets a PTP clock to these nanoseconds, as a daemon that disciplines it would.
pub(crate) fn set_clock(clock: &File, nanoseconds: i64) -> io::Result<()> {
    // As `FD_TO_CLOCKID` of the kernel's documentation.
    let id: libc::clockid_t = !clock.as_raw_fd() << 3 | 3;
    let time = libc::timespec {
        tv_sec: nanoseconds.div_euclid(1_000_000_000),
        tv_nsec: nanoseconds.rem_euclid(1_000_000_000),
    };
    // SAFETY: the kernel reads one structure, which lives until the call returns.
    let result = unsafe { libc::clock_settime(id, &raw const time) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A locked page of memory, whose physical address does not change.
pub(crate) struct FixedPage {
    address: NonNull<u32>,
    physical: u64,
}

const PAGE: usize = 4096;

impl FixedPage {
    /// Locks a page, and asks the kernel for its physical address.
    pub(crate) fn new() -> io::Result<Self> {
        let (access, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_LOCKED | libc::MAP_POPULATE,
        );
        // SAFETY: a new mapping at an address of the kernel's choice; its result is checked.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, access, flags, -1, 0) };
        let Some(words) = NonNull::new(address.cast::<u32>()).filter(|_| address != libc::MAP_FAILED) else {
            return Err(io::Error::last_os_error());
        };
        // SAFETY: within the page; makes it one of its own.
        unsafe { words.as_ptr().write_volatile(1) };
        let mut entry = [0; 8];
        File::open("/proc/self/pagemap")?.read_exact_at(&mut entry, (address as usize / PAGE * 8) as u64)?;
        let frame = u64::from_ne_bytes(entry) & ((1 << 55) - 1);
        if frame == 0 {
            return Err(io::Error::other("the kernel does not tell the physical address of a page"));
        }
        Ok(Self { address: words, physical: frame * PAGE as u64 })
    }

    /// The physical address, for a device.
    pub(crate) fn physical(&self) -> u64 {
        self.physical
    }

    pub(crate) fn write(&mut self, word: usize, value: u32) {
        assert!(word < PAGE / 4, "within the page");
        // SAFETY: within the page, which lives as long as the program; a device may change it, so volatile.
        unsafe { self.address.add(word).as_ptr().write_volatile(value) };
    }

    pub(crate) fn read(&self, word: usize) -> u32 {
        assert!(word < PAGE / 4, "within the page");
        // SAFETY: as above.
        unsafe { self.address.add(word).as_ptr().read_volatile() }
    }
}
