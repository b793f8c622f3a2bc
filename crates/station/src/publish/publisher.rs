//! [`StatePublisher`]: the writer of a page.

#![expect(unsafe_code, reason = "says that the words are atomics, and can be shared with other processes")]

use std::fs::{File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use hairspring_device::DeviceError;
use hairspring_device::memory::page::{Page, Zeroed};
use hairspring_device::refusal::refusal;
use hairspring_machine::{Clock, Machine, Nanos};
use hairspring_ring::sequenced::Sequenced;

use super::layout::{BLOCK_WORDS, Issue, UNITS_MOST, encode};
use super::state::{ClockReading, StationState};

/// The name of the page in the folder of a station.
pub const STATE_FILE: &str = "state";
/// First word of a page's file: the format and its version.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"hsState1");
/// Brackets per reading of the clocks; the narrowest counts.
const BRACKETS: usize = 5;

/// Words after the sequence: the station's block and one for each unit.
pub(super) const PAYLOAD: usize = BLOCK_WORDS * (1 + UNITS_MOST);
/// Size of the file: whole pages of 4 KiB.
pub const PAGE_BYTES: usize = size_of::<StatePage>().next_multiple_of(4096);

/// The page in memory. The lock on its file ensures that it has one writer at a time.
#[repr(C)]
pub(super) struct StatePage {
    /// Identifies the format of the file.
    magic: AtomicU64,
    pub(super) state: Sequenced<PAYLOAD>,
}

// SAFETY: consists of atomics.
unsafe impl Zeroed for StatePage {}

/// The writer of a page. While it lives, no other process can publish in the same folder.
#[derive(Debug)]
pub struct StatePublisher {
    page: Page,
    /// Holds the lock of the file.
    _lock: File,
    issued: u64,
    words: Vec<u64>,
}

impl StatePublisher {
    /// Opens the page in this folder, or creates it. Other users may read the page but not write it. A page of a
    /// station that has ended is used again, so that its readers need not open another.
    ///
    /// # Errors
    /// Another station publishes here, or the file cannot be made.
    pub fn open(folder: &Path) -> Result<Self, DeviceError> {
        let path = folder.join(STATE_FILE);
        let failed = |error: &io::Error| {
            let attempted = format!("publish the state in {}", path.display());
            refusal(attempted, error, "name a folder that this user may write to, for instance under /run")
        };
        let page = Page::of(&path, PAGE_BYTES, MAGIC).map_err(|error| failed(&error))?;
        let lock = File::open(&path).map_err(|error| failed(&error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(DeviceError {
                    attempted: format!("publish the state in {}", path.display()),
                    said: "another station publishes there".to_owned(),
                    remedy: "choose another name, or end that station",
                });
            }
            Err(TryLockError::Error(error)) => return Err(failed(&error)),
        }
        lock.set_permissions(Permissions::from_mode(0o644)).map_err(|error| failed(&error))?;
        page.made_once(&page.start::<StatePage>().magic, MAGIC, &path, || Ok(()))?;
        Ok(Self { page, _lock: lock, issued: 0, words: Vec::new() })
    }

    /// Publishes a state. Takes about a microsecond for each unit; makes no system call after the first time.
    ///
    /// # Errors
    /// Another process truncated the file, so readers do not see the state.
    pub fn publish<M: Machine>(&mut self, state: &StationState, machine: &M) -> Result<(), DeviceError> {
        self.issued += 1;
        let issue = Issue { number: self.issued, at: machine.monotonic(), process: u64::from(std::process::id()) };
        encode(state, issue, &mut self.words);
        let words = self.words.iter().enumerate();
        self.page.start::<StatePage>().state.write(|page| words.for_each(|(at, word)| page.set(at, *word)));
        self.page.kept("publish the state in")
    }
}

/// Reads the kernel's two clocks as a pair: the real time between two readings of the monotonic clock; the narrowest of
/// a few.
pub fn bracketed_realtime<M: Machine>(machine: &M) -> ClockReading {
    let bracket = |_| {
        let before = machine.read(Clock::Monotonic);
        let realtime = machine.read(Clock::Realtime);
        let within = machine.read(Clock::Monotonic) - before;
        ClockReading { realtime_offset: realtime - before - Nanos::new(within.count() / 2), within }
    };
    (0..BRACKETS).map(bracket).min_by_key(|reading| reading.within).unwrap_or_default()
}
