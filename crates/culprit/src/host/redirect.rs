//! [`redirect`]: one ring for all events of a CPU, which perf-event2 does not offer.
#![expect(unsafe_code, reason = "an ioctl with a descriptor")]

use std::io;
use std::os::fd::AsRawFd;

use perf_event::Counter;
use perf_event_open_sys::ioctls::SET_OUTPUT;

/// Redirects the records of an event to the ring of another event on the same CPU, so that they keep their order.
pub(crate) fn redirect(event: &Counter, into: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: the request takes the descriptor of another event by value and no address; both descriptors are open,
    // because both owners are borrowed.
    let answer = unsafe { SET_OUTPUT(event.as_raw_fd(), into.as_raw_fd()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
