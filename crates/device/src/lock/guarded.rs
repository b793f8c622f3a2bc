//! [`Guarded`]: a device that several threads and processes use in turn, and that is set to its safe state when the
//! last user ends.
//!
//! **Always initialised.** A thread that has the device has its lock. If an owner died, [`Guarded`] initialises the
//! device before it hands it out. If that fails, no thread gets the device.
//!
//! **How it is left.** When it is dropped, also because of a panic, the device is set to its safe state: under its
//! lock, unless another owner keeps that for more than [`PATIENCE`]. Then that owner is in command, and the lines are
//! not touched. If the lock was lost because its file was truncated, no owner is in command any more, and the device is
//! made safe without the lock. [`make_safe`](Guarded::make_safe) does the same and returns the result.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crate::device::{Device, DeviceError, Lines};
use crate::lock::{Guard, Lockable};

/// Longest wait for the lock at the end of a user, to make the device safe.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// A device behind its lock.
pub struct Guarded<'d> {
    /// Held by one thread of this process at a time. The lock lies in memory that other processes can spoil, so this
    /// mutex guarantees the exclusion within the process. No thread blocks on it.
    device: Mutex<Box<dyn Device + 'd>>,
    lock: Box<dyn Lockable + Send + Sync + 'd>,
    stop: Option<&'d AtomicBool>,
    /// Whether it was used since it was made safe.
    is_used: AtomicBool,
    recovered: AtomicU64,
}

impl fmt::Debug for Guarded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").field("recovered", &self.recovered()).finish_non_exhaustive()
    }
}

impl<'d> Guarded<'d> {
    /// Puts a device behind a lock. All users of the device must use the same lock.
    pub fn new(device: Box<dyn Device + 'd>, lock: Box<dyn Lockable + Send + Sync + 'd>) -> Self {
        let (is_used, recovered) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { device: Mutex::new(device), lock, stop: None, is_used, recovered }
    }

    /// Lets a flag end a wait for the lock, within some tenth of a second.
    #[must_use]
    pub fn cancelled_by(mut self, stop: &'d AtomicBool) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Waits for the lock. If its last owner died with it, the device is first initialised again, and that is counted.
    ///
    /// # Errors
    /// The thread holds it already; the device cannot be initialised; the flag ended the wait.
    pub fn lock(&self) -> Result<HeldDevice<'_, 'd>, DeviceError> {
        self.lock_or_stop()?.ok_or_else(|| kept("lock a device", "until this thread was told to stop"))
    }

    /// As [`lock`](Self::lock); `None` if the flag ended the wait.
    ///
    /// # Errors
    /// As there.
    pub fn lock_or_stop(&self) -> Result<Option<HeldDevice<'_, 'd>>, DeviceError> {
        let guard = match self.stop {
            None => Some(self.lock.lock().lock()?),
            // Relaxed: a plain flag.
            Some(stop) => self.lock.lock().lock_unless(&mut || stop.load(Ordering::Relaxed))?,
        };
        let Some(guard) = guard else { return Ok(None) };
        let mut held = self.held(Some(guard))?;
        held.recover()?;
        Ok(Some(held))
    }

    fn held<'g>(&'g self, guard: Option<Guard<'g>>) -> Result<HeldDevice<'g, 'd>, DeviceError> {
        let device = match self.device.try_lock() {
            Ok(device) => device,
            // A panic while the device was held proves nothing about the device.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(DeviceError {
                    attempted: "lock a device".to_owned(),
                    said: "two threads own its lock: another program has overwritten the lock's file".to_owned(),
                    remedy: "remove the lock's file, and restart all its users",
                });
            }
        };
        // Relaxed: under the lock.
        self.is_used.store(true, Ordering::Relaxed);
        Ok(HeldDevice { guarded: self, device, guard })
    }

    /// Sets the device to its safe state, if it was used since the last time. Waits for the lock until the flag is set,
    /// and then for [`PATIENCE`] more; without a flag no longer than that.
    ///
    /// # Errors
    /// Others keep the lock, or the device does not answer: it may not be in its safe state.
    pub fn make_safe(&self) -> Result<(), DeviceError> {
        // Relaxed: the last thread that used it here has ended, or may still wait for the lock and is made safe later.
        if !self.is_used.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut since = None;
        let lock = self.lock.lock();
        let guard = lock.lock_unless(&mut || {
            // Relaxed: a plain flag.
            let is_told = self.stop.is_none_or(|stop| stop.load(Ordering::Relaxed));
            is_told && since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE
        });
        let guard = match guard {
            Err(_) if lock.is_lost() => None,
            guard => Some(guard?.ok_or_else(|| kept("make a device safe", "for too long"))?),
        };
        let mut held = self.held(guard)?;
        let recovered = held.recover();
        // Also if the device cannot be initialised.
        held.device().make_safe().and(recovered)?;
        // Relaxed: under the lock.
        self.is_used.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Number of times that an owner of the lock had died and the device was initialised again.
    pub fn recovered(&self) -> u64 {
        self.recovered.load(Ordering::Relaxed)
    }

    /// Its safe state.
    pub fn safe_state(&mut self) -> Lines {
        self.device.get_mut().unwrap_or_else(PoisonError::into_inner).safe_state()
    }

    /// Its name.
    pub fn name(&mut self) -> String {
        self.device.get_mut().unwrap_or_else(PoisonError::into_inner).name()
    }
}

fn kept(attempted: &str, how_long: &str) -> DeviceError {
    DeviceError {
        attempted: attempted.to_owned(),
        said: format!("another thread or process held its lock {how_long}"),
        remedy: "wait for the other users of the device to end",
    }
}

impl Drop for Guarded<'_> {
    fn drop(&mut self) {
        // The user is ending, with or without a stop.
        self.stop = None;
        // The result has no receiver here. A user that wants it has called `make_safe` before.
        drop(self.make_safe());
    }
}

/// Lends a device for one act at a time: the device itself, or one behind a lock that other users take in between.
pub trait Lend {
    /// Calls `act` with the device; `None` after a stop while another owner had the lock.
    ///
    /// # Errors
    /// As [`Guarded::lock`].
    fn lend<R>(&mut self, act: impl FnOnce(&mut dyn Device) -> R) -> Result<Option<R>, DeviceError>;
}

impl<D: Device> Lend for D {
    fn lend<R>(&mut self, act: impl FnOnce(&mut dyn Device) -> R) -> Result<Option<R>, DeviceError> {
        Ok(Some(act(self)))
    }
}

impl Lend for Guarded<'_> {
    fn lend<R>(&mut self, act: impl FnOnce(&mut dyn Device) -> R) -> Result<Option<R>, DeviceError> {
        Ok(self.lock_or_stop()?.map(|mut held| act(held.device())))
    }
}

/// Exclusive use of the device until it is dropped.
pub struct HeldDevice<'g, 'd> {
    guarded: &'g Guarded<'d>,
    device: MutexGuard<'g, Box<dyn Device + 'd>>,
    /// Dropped after `device`: fields are dropped in order. `None` if the lock was lost.
    guard: Option<Guard<'g>>,
}

impl fmt::Debug for HeldDevice<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldDevice").finish_non_exhaustive()
    }
}

impl<'d> HeldDevice<'_, 'd> {
    /// The device.
    pub fn device(&mut self) -> &mut (dyn Device + 'd) {
        &mut **self.device
    }

    /// Initialises the device if an owner of its lock died.
    fn recover(&mut self) -> Result<(), DeviceError> {
        if self.guard.as_ref().is_some_and(Guard::owner_died) {
            self.device().init()?;
            self.guard.iter_mut().for_each(Guard::repaired);
            self.guarded.recovered.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}
