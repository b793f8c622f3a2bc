//! System calls of the stores that the standard library lacks.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use hairspring_machine::{Instant, Nanos};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, FallocateFlags, OFlags, StatxFlags, fallocate, fcntl_getfl, fcntl_setfl, statvfs, statx};
use rustix::time::{ClockId, clock_gettime};

/// Reserves space in a file and makes the file as long as that.
pub(super) fn allocate(file: &File, at: u64, length: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::empty(), at, length)?)
}

/// The alignment that direct I/O on a file requires, of addresses and of offsets. `None` if the file system states
/// none; (0, 0) if it has no direct I/O for this file.
pub(super) fn direct_alignment(file: &File) -> Option<(u64, u64)> {
    let found = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    (found.stx_mask & StatxFlags::DIOALIGN.bits() != 0)
        .then(|| (u64::from(found.stx_dio_mem_align), u64::from(found.stx_dio_offset_align)))
}

/// Sends all further reads and writes of a file through the page cache.
pub(super) fn leave_direct(file: &File) -> io::Result<()> {
    Ok(fcntl_setfl(file, fcntl_getfl(file)? - OFlags::DIRECT)?)
}

/// Free bytes in the file system of a folder that this process may use.
pub(super) fn free_bytes(folder: &Path) -> Option<u64> {
    let found = statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// The time now.
pub(super) fn now() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    Instant::from_monotonic(Nanos::new(time.tv_sec * 1_000_000_000 + time.tv_nsec))
}

/// The time left until an instant; zero if it has passed.
pub(super) fn left(until: Instant) -> Nanos {
    (until - now()).max(Nanos::ZERO)
}

/// Waits until a descriptor is readable, at most this long. A signal ends the wait early.
pub(super) fn readable(descriptor: &impl AsFd, at_most: Nanos) -> bool {
    let whole = at_most.count().max(0);
    let timeout = Timespec { tv_sec: whole / 1_000_000_000, tv_nsec: whole % 1_000_000_000 };
    poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&timeout)).is_ok_and(|ready| ready > 0)
}
