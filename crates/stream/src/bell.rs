//! [`Bell`]: wakes a thread that waits for data or for room. An eventfd, so that a thread can wait for it together with its
//! disk or its socket.

#![expect(unsafe_code, reason = "system calls of the eventfd")]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use hairspring_machine::Nanos;

/// Rings until it is quieted. Ringing never blocks and is safe from a real-time thread: one system call.
#[derive(Debug)]
pub struct Bell {
    descriptor: OwnedFd,
}

impl Bell {
    /// A silent bell.
    ///
    /// # Errors
    /// The process or the system has no descriptors left.
    pub fn new() -> std::io::Result<Self> {
        // SAFETY: eventfd takes no pointers; its result is checked before it becomes an owned descriptor, which nobody else has.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if descriptor < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the descriptor is open, and this is its only owner: it was made two lines above.
        Ok(Self { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) } })
    }

    /// Wakes whoever waits, now or later.
    pub fn ring(&self) {
        let one = 1_u64;
        // SAFETY: writes the eight bytes of `one`, which live until the call returns. It fails only if the bell has been rung
        // 2⁶⁴−2 times without anybody listening, and then it rings already.
        let _ = unsafe { libc::write(self.descriptor.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    /// Stops the ringing; whether it rang.
    pub fn quiet(&self) -> bool {
        let mut count = 0_u64;
        // SAFETY: reads at most eight bytes into `count`, which lives until the call returns.
        let read = unsafe { libc::read(self.descriptor.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
        read > 0
    }

    /// The descriptor, for waiting on it with others: readable while it rings.
    pub fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Waits until this bell rings, a descriptor can be read, or the time is over. May return early.
    pub fn wait(&self, beside: Option<RawFd>, at_most: Nanos) {
        let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // A negative descriptor is left out by the kernel.
        let mut entries = [entry(self.descriptor()), entry(beside.unwrap_or(-1))];
        let whole = at_most.count().max(0);
        let timeout = libc::timespec { tv_sec: whole / 1_000_000_000, tv_nsec: whole % 1_000_000_000 };
        // SAFETY: both entries and the timeout live until the call returns, and their number is that of the array.
        let _ = unsafe { libc::ppoll(entries.as_mut_ptr(), 2, &raw const timeout, std::ptr::null()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bell_rings_until_it_is_quieted() {
        let bell = Bell::new().expect("a descriptor");
        assert!(!bell.quiet());
        bell.ring();
        bell.ring();
        bell.wait(None, Nanos::from_secs(3600));
        assert!(bell.quiet());
        assert!(!bell.quiet());
    }
}
