//! [`Signal`]: an event that software fires; every thread that waits for it gets it, in any process.
//!
//! **What it is.** A page of memory that processes share by the name of a file, like the registers of a timing
//! receiver. To fire it, a thread stores a number, a stamp of the counter and a cycle in one of [`PLACES`] slots, and
//! wakes all sleepers. Each waiting thread keeps its own count, so it gets every event. Events that come while it is
//! busy stay in their slots, and events that were overwritten there are counted as missed.
//!
//! **Two ways to wait.** [`Sleeper`] sleeps in the kernel, and costs nothing between events. [`Poller`] polls the word
//! all the time: it sees an event after the transfer of one cache line, and needs a CPU of its own.
//!
//! **Real-time behaviour.** Firing does not block or allocate; it makes a system call if a thread sleeps.
//!
//! **Conditions.** All processes use the same counter, so a stamp of one means the same to another. Several may fire at
//! once. If a process dies in the few instructions between taking a number and filling its place, the threads that wait
//! for that number see no later event until [`PLACES`] more were fired. If it is delayed there for that long, it may
//! spoil the stamp and the cycle of the event that took its place meanwhile.

#![expect(unsafe_code, reason = "says that the words are atomics, and can be shared with other processes")]

mod words;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use hairspring_device::memory::page::{Page, Zeroed};
use hairspring_device::{DeviceError, system};
use hairspring_machine::{Machine, Nanos, Policy, Ticks};
use hairspring_time::{HeldTimebase, Timebase};

use crate::event::{Event, Stamped};
use crate::source::EventSource;
use crate::stop::Stop;

pub use words::PLACES;
use words::{Found, Words};

/// Longest time between two checks of the stop flag by a sleeper.
const LOOK: Nanos = Nanos::from_millis(100);
/// Looks at the word between two checks of the stop flag.
const LOOKS: u32 = 1024;
/// First word of a signal's file: the format and its version.
const MAGIC: u64 = u64::from_le_bytes(*b"hsSignl1");
/// Size of the file.
const SIGNAL_BYTES: usize = 4096;

// SAFETY: consists of atomics.
unsafe impl Zeroed for Words {}

/// The signal, as one process sees it.
#[derive(Debug)]
pub struct Signal {
    page: Page,
    path: PathBuf,
}

impl Signal {
    /// Opens the signal of this file; the first process creates it. A file under `/dev/shm` is only memory.
    ///
    /// # Errors
    /// The file cannot be opened, or is of another kind.
    pub fn open(path: &Path) -> Result<Self, DeviceError> {
        let page = Page::of(path, SIGNAL_BYTES, MAGIC).map_err(|error: io::Error| DeviceError {
            attempted: format!("open the signal {}", path.display()),
            said: error.to_string(),
            remedy: "name a file in a folder that may be written, for instance /dev/shm/trigger",
        })?;
        let signal = Self { page, path: path.to_owned() };
        // All of its other words are zero in the beginning.
        signal.page.made_once(&signal.words().magic, MAGIC, path, || Ok(()))?;
        Ok(signal)
    }

    fn words(&self) -> &Words {
        self.page.start()
    }

    /// Fires the signal now, and returns the event's number.
    ///
    /// # Errors
    /// Another process truncated the file.
    pub fn fire<M: Machine>(&self, cycle: Option<u64>, timebase: &Timebase<M>) -> Result<u64, DeviceError> {
        self.fire_at(timebase.stamp(), cycle)
    }

    /// Fires the signal with a stamp that was taken before, and returns the event's number.
    ///
    /// # Errors
    /// As [`fire`](Self::fire).
    pub fn fire_at(&self, stamp: Ticks, cycle: Option<u64>) -> Result<u64, DeviceError> {
        let words = self.words();
        let sequence = words.put(stamp.raw(), cycle);
        // SeqCst, as is the count of sleepers: either the sleeper sees the new bell, or this sees the sleeper.
        words.bell.fetch_add(1, Ordering::SeqCst);
        if words.sleepers.load(Ordering::SeqCst) > 0 {
            system::wake_all(&words.bell);
        }
        self.page.kept("fire the signal").map(|()| sequence)
    }

    /// The number of events fired since the signal was made.
    pub fn fired(&self) -> u64 {
        self.words().fired()
    }
}

/// The progress of one waiting thread.
#[derive(Debug)]
struct Follower<'t, M: Machine> {
    signal: Signal,
    timebase: HeldTimebase<'t, M>,
    last: u64,
}

impl<'t, M: Machine> Follower<'t, M> {
    fn new(signal: Signal, timebase: &'t Timebase<M>) -> Self {
        let last = signal.fired();
        Self { signal, timebase: HeldTimebase::Lent(timebase), last }
    }

    /// The next event, if it has been fired.
    #[inline]
    fn look(&mut self) -> Option<Event> {
        let Found { sequence, stamp, cycle, wake } = self.signal.words().look(self.last, || self.timebase.now())?;
        let missed = sequence - self.last - 1;
        self.last = sequence;
        let at = self.timebase.instant(Ticks::new(stamp));
        Some(Event { at, stamped: Stamped::Sender, wake, waited: false, sequence, missed, cycle })
    }
}

/// Waits for a signal asleep.
#[derive(Debug)]
pub struct Sleeper<'t, M: Machine> {
    follower: Follower<'t, M>,
    stop: &'t Stop,
}

impl<'t, M: Machine> Sleeper<'t, M> {
    /// Waits for events fired from now on.
    pub fn new(signal: Signal, timebase: &'t Timebase<M>, stop: &'t Stop) -> Self {
        Self { follower: Follower::new(signal, timebase), stop }
    }
}

impl<M: Machine + Send + Sync> EventSource<M> for Sleeper<'_, M> {
    fn name(&self) -> String {
        format!("signal {}", self.follower.signal.path.display())
    }

    fn begins_after(&self) -> u64 {
        self.follower.last
    }

    fn adopt(&mut self, successor: Timebase<M>) {
        self.follower.timebase.adopt(successor);
    }

    fn wait(&mut self) -> Result<Option<Event>, DeviceError> {
        loop {
            if let Some(event) = self.follower.look() {
                return Ok(Some(event));
            }
            if self.stop.is_set() {
                return Ok(None);
            }
            self.follower.signal.page.kept("wait for the signal")?;
            let words = self.follower.signal.words();
            words.sleepers.fetch_add(1, Ordering::SeqCst);
            let bell = words.bell.load(Ordering::SeqCst);
            // Every event fired before the bell was read is in its place by now.
            if !words.is_past(self.follower.last) {
                system::wait_while(&words.bell, bell, LOOK);
            }
            words.sleepers.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Waits for a signal by looking at it all the time.
#[derive(Debug)]
pub struct Poller<'t, M: Machine> {
    follower: Follower<'t, M>,
    stop: &'t Stop,
    allowed: bool,
}

impl<'t, M: Machine> Poller<'t, M> {
    /// Waits for events fired from now on.
    ///
    /// # Errors
    /// There is one CPU only: while this thread polls, no other could fire the signal.
    pub fn new(signal: Signal, timebase: &'t Timebase<M>, stop: &'t Stop) -> Result<Self, DeviceError> {
        if timebase.machine().affinity().0.len() < 2 {
            return Err(DeviceError {
                attempted: format!("poll the signal {}", signal.path.display()),
                said: "there is only one CPU, and polling would occupy it".to_owned(),
                remedy: "use the kind software, which sleeps",
            });
        }
        Ok(Self { follower: Follower::new(signal, timebase), stop, allowed: false })
    }

    /// Whether this thread may poll for ever.
    fn allow(&mut self) -> Result<(), DeviceError> {
        let machine = self.follower.timebase.machine();
        let is_throttled = machine.real_time_throttle().is_some_and(|(runtime, period)| runtime < period);
        if matches!(machine.policy(), Policy::Fifo(_) | Policy::RoundRobin(_)) && is_throttled {
            return Err(DeviceError {
                attempted: format!("poll the signal {}", self.follower.signal.path.display()),
                said: "the kernel stops a polling thread with a real-time priority for part of each second".to_owned(),
                remedy: "poll without a priority, on an otherwise idle CPU; or use the kind software, which sleeps",
            });
        }
        self.allowed = true;
        Ok(())
    }
}

impl<M: Machine + Send + Sync> EventSource<M> for Poller<'_, M> {
    fn name(&self) -> String {
        format!("polled signal {}", self.follower.signal.path.display())
    }

    fn begins_after(&self) -> u64 {
        self.follower.last
    }

    fn adopt(&mut self, successor: Timebase<M>) {
        self.follower.timebase.adopt(successor);
    }

    fn wait(&mut self) -> Result<Option<Event>, DeviceError> {
        if !self.allowed {
            self.allow()?;
        }
        let mut looks = 0_u32;
        // No pause between two looks: the CPU is ours, and a hypervisor takes it from a thread that pauses in a loop.
        loop {
            if let Some(event) = self.follower.look() {
                return Ok(Some(event));
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS) {
                if self.stop.is_set() {
                    return Ok(None);
                }
                self.follower.signal.page.kept("poll the signal")?;
            }
        }
    }
}
