//! [`Notifier`]: wakes a thread that waits for data or for room. It is an eventfd, so a thread can wait for it together
//! with its disk or its socket.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use hairspring_machine::Nanos;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// A flag that threads can wait for. It stays set until it is cleared. Setting it never blocks and is safe in a
/// real-time thread: it takes one system call.
#[derive(Debug)]
pub struct Notifier {
    descriptor: OwnedFd,
}

impl Notifier {
    /// A notifier that is not set.
    ///
    /// # Errors
    /// The process or the system has no descriptors left.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { descriptor: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
    }

    /// Wakes the waiting thread, or the next one that waits.
    pub fn notify(&self) {
        // This fails only after 2⁶⁴−2 notifications that were not cleared; then the flag is set already.
        let _ = rustix::io::write(&self.descriptor, &1_u64.to_ne_bytes());
    }

    /// Clears the flag; returns whether it was set.
    pub fn clear(&self) -> bool {
        rustix::io::read(&self.descriptor, &mut [0; size_of::<u64>()]).is_ok()
    }

    /// Waits until the flag is set, a descriptor can be read, or the time is over. May return early.
    pub fn wait(&self, beside: Option<BorrowedFd<'_>>, at_most: Nanos) {
        let own = PollFd::new(&self.descriptor, PollFlags::IN);
        // Without a second descriptor, poll the own one twice.
        let other = beside.map_or_else(|| own.clone(), |beside| PollFd::from_borrowed_fd(beside, PollFlags::IN));
        let timeout = timeout(at_most);
        let count = if beside.is_some() { 2 } else { 1 };
        // A signal or an error ends the wait early.
        let _ = poll(&mut [own, other][..count], Some(&timeout));
    }
}

impl AsFd for Notifier {
    /// The descriptor, for waiting on it with others: readable while the flag is set.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A span in the kernel's form; none if it is negative.
fn timeout(span: Nanos) -> Timespec {
    let whole = span.count().max(0);
    Timespec { tv_sec: whole / 1_000_000_000, tv_nsec: whole % 1_000_000_000 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notifier_stays_set_until_it_is_cleared() {
        let notifier = Notifier::new().expect("a descriptor");
        assert!(!notifier.clear());
        notifier.notify();
        notifier.notify();
        notifier.wait(None, Nanos::from_secs(3600));
        assert!(notifier.clear());
        assert!(!notifier.clear());
    }
}
