//! [`Stop`]: ends the waits of threads that wait for events.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::system;
use hairspring_device::DeviceError;

/// A flag for threads that poll, and a descriptor for threads that sleep. Set once; it stays set.
#[derive(Debug)]
pub struct Stop {
    flag: AtomicBool,
    bell: OwnedFd,
    /// Counters on which threads block: a stop adds 1 to each.
    counters: Mutex<Vec<Weak<OwnedFd>>>,
}

impl Stop {
    /// A stop that is not set.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new() -> Result<Self, DeviceError> {
        let bell = system::eventfd().map_err(|error| DeviceError {
            attempted: "make a descriptor for stopping".to_owned(),
            said: error.to_string(),
            remedy: "allow more open files (ulimit -n)",
        })?;
        Ok(Self { flag: AtomicBool::new(false), bell, counters: Mutex::default() })
    }

    /// Sets it: every wait ends, the present ones within 0.1 s. Makes system calls, and waits for a lock that is held
    /// for microseconds.
    pub fn set(&self) {
        // Release: a thread that sees the flag sees all earlier stores. Once only: a second ring would look like an
        // event.
        if self.flag.swap(true, Ordering::AcqRel) {
            return;
        }
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        // Fails only after far too many rings; then the flag is set already.
        let _ = system::add_to_counter(self.bell.as_fd(), 1);
        for counter in counters.iter().filter_map(Weak::upgrade) {
            let _ = system::add_to_counter((*counter).as_fd(), 1);
        }
    }

    /// Adds 1 to a counter when the stop is set; at once if it is set.
    pub(crate) fn rings(&self, counter: &Arc<OwnedFd>) {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_set() {
            let _ = system::add_to_counter((**counter).as_fd(), 1);
        }
        counters.push(Arc::downgrade(counter));
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    /// The flag, for delays that it cancels.
    pub fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
