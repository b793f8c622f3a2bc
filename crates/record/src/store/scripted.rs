//! A disk in memory that fails, stalls and loses power as a list says: [`ScriptedDisk`], and [`ScriptedStore`] on it.
//!
//! **Problem.** What a recorder does when the disk is full, slow, broken or without power can neither be waited for nor be
//! repeated on real disks.
//!
//! **Solution.** A disk whose behaviour is data: a [`DiskScript`] with a seed, latencies and [`Fault`]s. The same script and the
//! same operations give the same end, always. It has two images of each file:
//!
//! ```text
//!            write, truncate, allocate complete      a sync completes
//! memory ───────────────────────────────► volatile ─────────────────► durable
//!                                            │                           │
//!                                    image_after_kill(seed)     image_after_power_cut(seed)
//! ```
//!
//! After SIGKILL everything is there that had completed. After a power cut everything is there that a sync made durable; each
//! later change is there wholly, not at all, or in some of its sectors, as the seed says. So is what was under way. New
//! names and removals are durable after a sync of the folder, or as the seed says. What was complete when a sync was submitted that
//! *failed* is never made durable by a later one: the kernel has forgotten that it is to be written.
//!
//! A real disk reads memory at any time until it completes. This one reads it when a write is handed over for half of the
//! writes and when it completes for the other half, by seed: whoever reuses memory too early is found out.
//!
//! **Limits.** Contents are kept in memory, but for zeros, and but with [`DiskScript::forgetful`]. Folders are not modelled: each
//! exists. Real file systems lose less in most power cuts than this one.
//!
//! This module is part of the library, for the tests of other crates and for asking what would happen on a slower disk.

mod content;
mod disk;
mod image;
mod script;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hairspring_machine::{Instant, Nanos};

pub use image::Image;
pub use script::{DiskScript, Fault, OpKind, Pace, What, When};

use super::memories::Memories;
use super::{
    Completion, Fallback, FileFacts, FileId, LentMemory, MemoryId, Op, Open, Store, StoreError, Token, system,
};
use disk::State;
use hairspring_ring::notifier::Notifier;

/// The disk: what remains when the stores on it are gone. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct ScriptedDisk {
    state: Arc<Mutex<State>>,
}

impl ScriptedDisk {
    /// An empty disk.
    pub fn new(script: DiskScript) -> Self {
        Self::with(script, Image::default())
    }

    /// A disk on which files are already, durably.
    pub fn with(script: DiskScript, image: Image) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(script, image))) }
    }

    /// A store on this disk. `depth` operations may be under way at once. Several stores share files, faults and time.
    pub fn store(&self, depth: usize) -> ScriptedStore {
        let number = self.lock().add_store();
        ScriptedStore {
            disk: self.clone(),
            number,
            depth: depth.max(1),
            memories: Memories::default(),
            queued: Vec::new(),
        }
    }

    /// The disk's time.
    pub fn now(&self) -> Instant {
        self.lock().now()
    }

    /// Moves the disk's time on; what is due completes. Time does not go back.
    pub fn advance(&self, now: Instant) {
        self.lock().advance(now);
    }

    /// When the next operation completes; `None` if none is under way.
    pub fn next_due(&self) -> Option<Instant> {
        self.lock().next_due(None)
    }

    /// How many operations there were, faults and blocking acts included. A crash at each of `1..=operations()` is a crash at
    /// every step.
    pub fn operations(&self) -> u64 {
        self.lock().operations()
    }

    /// Stops the disk for ever, as [`What::Crash`] does.
    pub fn crash(&self) {
        self.lock().crash();
    }

    /// Whether it has crashed.
    pub fn is_crashed(&self) -> bool {
        self.lock().is_crashed()
    }

    /// What is in the files if the process is killed now: everything that has completed, and of what was under way as much as the
    /// seed says. The disk goes on.
    pub fn image_after_kill(&self, seed: u64) -> Image {
        self.lock().image_after_kill(seed)
    }

    /// What is in the files if the power fails now. The disk goes on.
    pub fn image_after_power_cut(&self, seed: u64) -> Image {
        self.lock().image_after_power_cut(seed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A store on a [`ScriptedDisk`].
#[derive(Debug)]
pub struct ScriptedStore {
    disk: ScriptedDisk,
    number: usize,
    depth: usize,
    memories: Memories,
    queued: Vec<(Token, Op)>,
}

impl Store for ScriptedStore {
    fn attach(&mut self, memory: LentMemory) -> MemoryId {
        self.memories.attach(memory.into())
    }

    fn open(&mut self, path: &Path, how: Open) -> Result<FileId, StoreError> {
        self.disk.lock().open(path, how)
    }

    fn facts(&self, file: FileId) -> FileFacts {
        self.disk.lock().facts(file)
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn submit(&mut self, token: Token, op: Op) {
        if let Op::Write(_, _, piece) | Op::Read(_, _, piece) = op {
            let _ = self.memories.span(piece);
        }
        self.queued.push((token, op));
    }

    fn flush(&mut self) {
        let mut state = self.disk.lock();
        for (token, op) in self.queued.drain(..) {
            state.begin(self.number, token, op, &self.memories);
        }
    }

    fn reap(&mut self, completions: &mut Vec<Completion>) {
        self.disk.lock().reap(self.number, completions);
    }

    /// With [`Pace::Stepped`] this returns at once; with [`Pace::Leaping`] the disk's time moves on instead of ours.
    fn wait(&mut self, notifier: &Notifier, until: Instant) {
        self.flush();
        let mut state = self.disk.lock();
        state.follow_the_clock();
        if state.has_completions(self.number) {
            return;
        }
        let due = state.next_due(Some(self.number)).map_or(until, |due| due.min(until));
        match state.pace() {
            Pace::Stepped => {}
            Pace::Leaping => {
                if !system::readable(notifier, Nanos::ZERO) {
                    state.advance(due);
                }
            }
            Pace::Real => {
                drop(state);
                notifier.wait(None, system::left(due));
            }
        }
    }

    fn truncate(&mut self, file: FileId, length: u64) -> Result<(), StoreError> {
        let stall = self.disk.lock().truncate(file, length)?;
        self.sit_out(stall);
        Ok(())
    }

    fn put(&mut self, path: &Path, content: &[u8]) -> Result<(), StoreError> {
        let stall = self.disk.lock().put(path, content)?;
        self.sit_out(stall);
        Ok(())
    }

    fn remove(&mut self, path: &Path) -> Result<(), StoreError> {
        let stall = self.disk.lock().remove(path)?;
        self.sit_out(stall);
        Ok(())
    }

    fn sync_folder(&mut self, folder: &Path) -> Result<(), StoreError> {
        let stall = self.disk.lock().sync_folder(folder)?;
        self.sit_out(stall);
        Ok(())
    }

    fn free_bytes(&self, _folder: &Path) -> Option<u64> {
        self.disk.lock().free_bytes()
    }

    fn fallbacks(&self) -> Vec<Fallback> {
        vec![Fallback::used("scripted")]
    }
}

impl ScriptedStore {
    /// A blocking act that stalls, as the pace has it.
    fn sit_out(&self, stall: Nanos) {
        let pace = self.disk.lock().pace();
        if pace == Pace::Real && stall > Nanos::ZERO {
            let whole = u64::try_from(stall.count()).unwrap_or(0);
            std::thread::sleep(std::time::Duration::from_nanos(whole));
        }
    }
}

#[cfg(test)]
mod tests;
