//! [`Guarded`]: a device that several threads and processes use in turn, and that is made safe when nobody does any more.

#![expect(unsafe_code, reason = "a device is reached by whoever has its lock")]

use std::cell::UnsafeCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::device::{Device, DeviceError};
use crate::lock::{Guard, Lockable};

/// A device behind its lock. When it is dropped, also because of a panic, the device is told to go to its safe state.
pub struct Guarded<'d> {
    device: UnsafeCell<Box<dyn Device + 'd>>,
    lock: Box<dyn Lockable + Send + Sync + 'd>,
    /// Whether a thread of this process has the device: the lock lies in memory that other processes can spoil, and two threads
    /// must not have one device whatever they do.
    is_held: AtomicBool,
    recovered: AtomicU64,
}

// SAFETY: `device` is reached through `Held` alone, of which there is one at a time: `is_held` says so. The device is `Send`.
unsafe impl Sync for Guarded<'_> {}

impl fmt::Debug for Guarded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").field("recovered", &self.recovered()).finish_non_exhaustive()
    }
}

impl<'d> Guarded<'d> {
    /// Puts a device behind a lock. Everybody else who uses the device uses the same one.
    pub fn new(device: Box<dyn Device + 'd>, lock: Box<dyn Lockable + Send + Sync + 'd>) -> Self {
        Self { device: UnsafeCell::new(device), lock, is_held: AtomicBool::new(false), recovered: AtomicU64::new(0) }
    }

    /// Waits for the lock. If its last owner died with it, the device is initialised anew before anything else is done with it,
    /// and that is counted.
    ///
    /// # Errors
    /// The thread has it already; the device cannot be initialised.
    pub fn lock(&self) -> Result<Held<'_, 'd>, DeviceError> {
        let guard = self.lock.lock().lock()?;
        // Acquire: pairs with the Release of who had it before.
        if self.is_held.swap(true, Ordering::Acquire) {
            return Err(DeviceError {
                attempted: "lock a device".to_owned(),
                said: "its lock was given to two threads: somebody has written into it".to_owned(),
                remedy: "remove the lock's file, and start all its users again",
            });
        }
        let owner_died = guard.owner_died();
        let mut held = Held { guarded: self, _guard: guard };
        if owner_died {
            self.recovered.fetch_add(1, Ordering::Relaxed);
            held.device().init()?;
        }
        Ok(held)
    }

    /// How often an owner of the lock had died.
    pub fn recovered(&self) -> u64 {
        self.recovered.load(Ordering::Relaxed)
    }

    /// Its name.
    pub fn name(&mut self) -> String {
        self.device.get_mut().name()
    }
}

impl Drop for Guarded<'_> {
    fn drop(&mut self) {
        // Nobody is left to tell; who wants to know has called it before.
        drop(self.device.get_mut().make_safe());
    }
}

/// Has the device until it is dropped.
pub struct Held<'g, 'd> {
    guarded: &'g Guarded<'d>,
    /// Given back after `is_held` is.
    _guard: Guard<'g>,
}

impl fmt::Debug for Held<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}

impl<'d> Held<'_, 'd> {
    /// The device.
    pub fn device(&mut self) -> &mut (dyn Device + 'd) {
        // SAFETY: there is one `Held` for a device at a time, for `is_held` was false before it was made and is set until it is
        // dropped; and it is borrowed for as long as what is returned.
        unsafe { &mut **self.guarded.device.get() }
    }
}

impl Drop for Held<'_, '_> {
    fn drop(&mut self) {
        self.guarded.is_held.store(false, Ordering::Release);
    }
}
