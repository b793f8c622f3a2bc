//! The system calls of the stores that the standard library does not have, each behind a safe function.

#![expect(unsafe_code, reason = "pwrite, pread, fallocate, statx, statvfs, fcntl, ppoll, clock_gettime")]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use hairspring_machine::Nanos;

use super::memories::Span;

/// Writes a span at an offset of a file; how many bytes were written.
pub(super) fn write_at(file: &File, at: u64, from: Span<'_>) -> io::Result<u64> {
    let at = offset(at)?;
    // SAFETY: the kernel reads at most `length` bytes, which stay mapped while the span lives.
    counted(unsafe { libc::pwrite64(file.as_raw_fd(), from.address().cast(), from.length(), at) })
}

/// Reads into a span from an offset of a file; how many bytes were read.
pub(super) fn read_at(file: &File, at: u64, into: Span<'_>) -> io::Result<u64> {
    let at = offset(at)?;
    // SAFETY: the kernel writes at most `length` bytes, which stay mapped while the span lives, and who submitted the read has
    // lent them.
    counted(unsafe { libc::pread64(file.as_raw_fd(), into.address().cast(), into.length(), at) })
}

/// Reserves space in a file, and makes it as long as that.
pub(super) fn allocate(file: &File, at: u64, length: u64) -> io::Result<()> {
    let (at, length) = (offset(at)?, offset(length)?);
    // SAFETY: no memory is involved.
    checked(unsafe { libc::fallocate64(file.as_raw_fd(), 0, at, length) })
}

/// What the file system states about direct I/O on a file: the alignment of addresses and of offsets. `None` if it states
/// nothing; (0, 0) if it does none on this file.
pub(super) fn direct_alignment(file: &File) -> Option<(u64, u64)> {
    // SAFETY: the structure consists of integers, for which zero is a value.
    let mut found: libc::statx = unsafe { zeroed() };
    let (flags, mask) = (libc::AT_EMPTY_PATH, libc::STATX_DIOALIGN);
    // SAFETY: the path is an empty C string that lives for ever, and `found` lives until the call returns.
    checked(unsafe { libc::statx(file.as_raw_fd(), c"".as_ptr(), flags, mask, &raw mut found) }).ok()?;
    (found.stx_mask & libc::STATX_DIOALIGN != 0)
        .then(|| (u64::from(found.stx_dio_mem_align), u64::from(found.stx_dio_offset_align)))
}

/// Sends all further reads and writes of a file through the page cache.
pub(super) fn leave_direct(file: &File) -> io::Result<()> {
    // SAFETY: reads the flags of our own descriptor; no memory is involved.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: changes one flag of our own descriptor; no memory is involved.
    checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_DIRECT) })
}

/// Bytes that the file system of a folder has for us.
pub(super) fn free_bytes(folder: &Path) -> Option<u64> {
    let path = CString::new(folder.as_os_str().as_bytes()).ok()?;
    // SAFETY: like the other structures of the system it consists of integers only.
    let mut found: libc::statvfs64 = unsafe { zeroed() };
    // SAFETY: the path is a C string, and both it and `found` live until the call returns.
    checked(unsafe { libc::statvfs64(path.as_ptr(), &raw mut found) }).ok()?;
    // The types differ between machines.
    #[allow(clippy::useless_conversion, clippy::allow_attributes, reason = "u32 on some machines")]
    let block = u64::from(found.f_frsize);
    Some(found.f_bavail.saturating_mul(block))
}

/// `CLOCK_MONOTONIC`.
pub(super) fn now() -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to `time`, which lives until the call returns. The clock exists everywhere, so it does not fail.
    let _ = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    Nanos::new(time.tv_sec * 1_000_000_000 + time.tv_nsec)
}

/// How long it is until a moment; nothing if it is over.
pub(super) fn left(until: Nanos) -> Nanos {
    Nanos::new(until.count().saturating_sub(now().count()).max(0))
}

/// Whether a descriptor can be read, within a time. False too early if a signal comes.
pub(super) fn readable(descriptor: RawFd, at_most: Nanos) -> bool {
    let mut entry = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    let whole = at_most.count().max(0);
    let timeout = libc::timespec { tv_sec: whole / 1_000_000_000, tv_nsec: whole % 1_000_000_000 };
    // SAFETY: one entry and the timeout, which both live until the call returns.
    (unsafe { libc::ppoll(&raw mut entry, 1, &raw const timeout, std::ptr::null()) }) > 0
}

fn offset(at: u64) -> io::Result<i64> {
    i64::try_from(at).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))
}

fn counted(result: isize) -> io::Result<u64> {
    u64::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn checked(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
