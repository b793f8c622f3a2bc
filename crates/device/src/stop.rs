//! [`Stop`]: tells threads that wait for events that there will be none.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::calls;
use crate::device::DeviceError;

/// A flag for those who look, and a descriptor for those who sleep. Set once; it stays set.
#[derive(Debug)]
pub struct Stop {
    flag: AtomicBool,
    bell: OwnedFd,
}

impl Stop {
    /// One that is not set.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new() -> Result<Self, DeviceError> {
        let bell = calls::eventfd().map_err(|error| DeviceError {
            attempted: "make a descriptor for stopping".to_owned(),
            said: error.to_string(),
            remedy: "allow more open files (ulimit -n)",
        })?;
        Ok(Self { flag: AtomicBool::new(false), bell })
    }

    /// Sets it: every wait ends, the present ones within 0.1 s. Real-time safe but for a system call.
    pub fn set(&self) {
        // Release: who sees it sees why.
        self.flag.store(true, Ordering::Release);
        // Fails only if it has been rung for ever.
        let _ = calls::add_to_counter(self.bell.as_fd(), 1);
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
