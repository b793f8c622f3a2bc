//! [`Guarded`]: a device that several threads and processes use in turn, and that is made safe when nobody does any more.
//!
//! **Nobody gets it as it should not be.** Whoever has the device has its lock. If an owner died, the device is initialised before it
//! is handed out; as long as that fails, nobody gets it.
//!
//! **How it is left.** When it is dropped, also because of a panic, the device is told to go to its safe state: under its lock, unless
//! another keeps that for more than [`PATIENCE`]. That one is in command then, and its lines are not touched. If the lock was lost
//! because somebody truncated its file, nobody is in command any more, and the device is made safe without it.
//! [`make_safe`](Guarded::make_safe) does the same and returns what became of it.

#![expect(unsafe_code, reason = "a device is reached by whoever has its lock")]

use std::cell::UnsafeCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::device::{Device, DeviceError, Lines};
use crate::lock::{Guard, Lockable};

/// How long the end of a user waits for the lock, to make the device safe.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// A device behind its lock.
pub struct Guarded<'d> {
    device: UnsafeCell<Box<dyn Device + 'd>>,
    lock: Box<dyn Lockable + Send + Sync + 'd>,
    stop: Option<&'d AtomicBool>,
    /// Whether a thread of this process has the device: the lock lies in memory that other processes can spoil, and two threads
    /// must not have one device whatever they do.
    is_held: AtomicBool,
    /// Whether it was had since it was made safe.
    is_used: AtomicBool,
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
        let no = || AtomicBool::new(false);
        let recovered = AtomicU64::new(0);
        Self { device: UnsafeCell::new(device), lock, stop: None, is_held: no(), is_used: no(), recovered }
    }

    /// Lets a flag end a wait for the lock, within some tenth of a second.
    #[must_use]
    pub fn cancelled_by(mut self, stop: &'d AtomicBool) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Waits for the lock. If its last owner died with it, the device is initialised anew before anything else is done with it,
    /// and that is counted.
    ///
    /// # Errors
    /// The thread has it already; the device cannot be initialised; the flag ended the wait.
    pub fn lock(&self) -> Result<Held<'_, 'd>, DeviceError> {
        self.lock_or_stop()?.ok_or_else(|| kept("lock a device", "until this one was told to stop"))
    }

    /// As [`lock`](Self::lock); nothing if the flag ended the wait.
    ///
    /// # Errors
    /// As there.
    pub fn lock_or_stop(&self) -> Result<Option<Held<'_, 'd>>, DeviceError> {
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

    fn held<'g>(&'g self, guard: Option<Guard<'g>>) -> Result<Held<'g, 'd>, DeviceError> {
        // Acquire: pairs with the Release of who had it before.
        if self.is_held.swap(true, Ordering::Acquire) {
            return Err(DeviceError {
                attempted: "lock a device".to_owned(),
                said: "its lock was given to two threads: somebody has written into it".to_owned(),
                remedy: "remove the lock's file, and start all its users again",
            });
        }
        // Relaxed: under the lock.
        self.is_used.store(true, Ordering::Relaxed);
        Ok(Held { guarded: self, guard })
    }

    /// Tells the device to go to its safe state, if it was had since it was told so. Waits for the lock until
    /// the flag is set, and then for [`PATIENCE`] more; without a flag no longer than that.
    ///
    /// # Errors
    /// Others keep the lock, or the device does not answer: it may not be in its safe state.
    pub fn make_safe(&self) -> Result<(), DeviceError> {
        // Relaxed: whoever it was had by here has come to its end, or may still wait for the lock and is made safe later.
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
        // Also if it cannot be initialised.
        held.device().make_safe().and(recovered)?;
        // Relaxed: under the lock.
        self.is_used.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// How often an owner of the lock had died, and the device was initialised because of that.
    pub fn recovered(&self) -> u64 {
        self.recovered.load(Ordering::Relaxed)
    }

    /// Its safe state.
    pub fn safe_state(&mut self) -> Lines {
        self.device.get_mut().safe_state()
    }

    /// Its name.
    pub fn name(&mut self) -> String {
        self.device.get_mut().name()
    }
}

fn kept(attempted: &str, how_long: &str) -> DeviceError {
    DeviceError {
        attempted: attempted.to_owned(),
        said: format!("another kept its lock {how_long}"),
        remedy: "let the other users of the device come to their end",
    }
}

impl Drop for Guarded<'_> {
    fn drop(&mut self) {
        // Whoever drops it is going, told to stop or not.
        self.stop = None;
        // Nobody is left to tell; who wants to know has called it before.
        drop(self.make_safe());
    }
}

/// What lends a device for one act after the other: the device itself, or one that others have between them.
pub trait Lend {
    /// Does this with the device; nothing if it was told to stop while others had it.
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

/// Has the device until it is dropped.
pub struct Held<'g, 'd> {
    guarded: &'g Guarded<'d>,
    /// Given back after `is_held` is. None if the lock was lost.
    guard: Option<Guard<'g>>,
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

    /// Initialises the device if an owner died with it.
    fn recover(&mut self) -> Result<(), DeviceError> {
        if self.guard.as_ref().is_some_and(Guard::owner_died) {
            self.device().init()?;
            self.guard.iter_mut().for_each(Guard::repaired);
            self.guarded.recovered.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Drop for Held<'_, '_> {
    fn drop(&mut self) {
        self.guarded.is_held.store(false, Ordering::Release);
    }
}
