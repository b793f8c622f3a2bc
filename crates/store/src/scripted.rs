//! A disk in memory that fails, stalls and loses power as scripted: [`ScriptedDisk`], and [`ScriptedStore`] on it.
//!
//! **Problem.** A test cannot wait until a real disk is full, slow, broken or without power, nor repeat it.
//!
//! **Solution.** A disk whose behaviour is data: a [`DiskScript`] with a seed, latencies and [`Fault`]s. The same
//! script and the same operations always give the same result. The disk has two images of each file:
//!
//! ```text
//!            write, truncate, allocate complete      a sync completes
//! memory ───────────────────────────────► volatile ─────────────────► durable
//!                                            │                           │
//!                                    image_after_kill(seed)     image_after_power_cut(seed)
//! ```
//!
//! After SIGKILL all completed operations are in the image. After a power cut all changes that a sync made durable are
//! in it. Each later change, and each change under way, is there wholly, not at all, or in some of its sectors, as the
//! seed decides. New names and removals are durable after a sync of the folder, otherwise the seed decides. Changes
//! that were complete when a *failed* sync was submitted are never made durable by a later sync, because the kernel has
//! dropped them from its list of pages to write.
//!
//! A real disk reads memory at any time until the write completes. This disk reads it at submission for half of the
//! writes and at completion for the others, as the seed decides. So a test detects memory that is reused too early.
//!
//! **Limits.** Contents are kept in memory, except zeros, and except with [`DiskScript::forgetful`]. Folders are not
//! modelled; every folder exists. In most power cuts real file systems lose less than this disk.
//!
//! This module is part of the library, for the tests of other crates and to predict a recording on a slower disk.

mod content;
mod disk;
mod image;
mod script;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hairspring_machine::{Instant, Nanos};

pub use image::Image;
pub use script::{DiskScript, Fault, OpKind, Pace, What, When};

use super::memories::Memories;
use super::owner::{Holder, OwnError, Ownership, PathFacts, Work};
use super::{
    Completion, Fallback, FileFacts, FileId, LentMemory, MemoryId, Op, Open, Store, StoreError, Token, system,
};
use disk::State;
use hairspring_ring::notifier::Notifier;

/// A disk. It remains when the stores on it are dropped; clones are the same disk.
#[derive(Clone, Debug)]
pub struct ScriptedDisk {
    state: Arc<Mutex<State>>,
}

impl ScriptedDisk {
    /// An empty disk.
    pub fn new(script: DiskScript) -> Self {
        Self::with(script, Image::default())
    }

    /// A disk with files that are already durable.
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
            opened: Vec::new(),
        }
    }

    /// The disk's time.
    pub fn now(&self) -> Instant {
        self.lock().now()
    }

    /// Advances the disk's time and completes the operations that are due. Time never goes back.
    pub fn advance(&self, now: Instant) {
        self.lock().advance(now);
    }

    /// The time at which the next operation completes; `None` if none is under way.
    pub fn next_due(&self) -> Option<Instant> {
        self.lock().next_due(None)
    }

    /// The number of operations up to now, including faults and blocking calls. A crash at each of `1..=operations()`
    /// is a crash at every step.
    pub fn operations(&self) -> u64 {
        self.lock().operations()
    }

    /// Number of open files in stores on this disk.
    pub fn open_files(&self) -> usize {
        self.lock().open_files()
    }

    /// Number of file names.
    pub fn names(&self) -> usize {
        self.lock().names()
    }

    /// Number of files whose contents may still be needed: they have a name, a durable name, or are open.
    pub fn inodes(&self) -> usize {
        self.lock().inodes()
    }

    /// The present length of a file.
    pub fn length(&self, path: &Path) -> Option<u64> {
        self.lock().length(path)
    }

    /// Gives a file one more name, which survives a power cut. Nothing happens if there is no such file.
    pub fn link(&self, path: &Path, further: &Path) {
        self.lock().link(path, further);
    }

    /// Stops the disk for good, as [`What::Crash`] does.
    pub fn crash(&self) {
        self.lock().crash();
    }

    /// Whether it has crashed.
    pub fn is_crashed(&self) -> bool {
        self.lock().is_crashed()
    }

    /// The files as they would be if the process were killed now: everything that has completed, and as much of the
    /// operations under way as the seed decides. The disk keeps running.
    pub fn image_after_kill(&self, seed: u64) -> Image {
        self.lock().image_after_kill(seed)
    }

    /// The files as they would be if the power failed now. The disk keeps running.
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
    opened: Vec<FileId>,
}

impl Drop for ScriptedStore {
    fn drop(&mut self) {
        self.disk.lock().leave(self.number, &self.opened);
    }
}

impl Store for ScriptedStore {
    fn attach(&mut self, memory: LentMemory) -> MemoryId {
        self.memories.attach(memory.into())
    }

    fn open(&mut self, path: &Path, how: Open) -> Result<FileId, StoreError> {
        let file = self.disk.lock().open(path, how)?;
        self.opened.push(file);
        Ok(file)
    }

    /// Files of this disk have no owners.
    fn create_like(&mut self, path: &Path, _other: &Path, how: Open) -> Result<FileId, StoreError> {
        self.open(path, how)
    }

    fn close(&mut self, file: FileId) {
        self.opened.retain(|known| *known != file);
        self.disk.lock().close(file);
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

    /// With [`Pace::Stepped`] this returns at once. With [`Pace::Leaping`] the disk's time advances instead of real
    /// time.
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

    /// No other process reaches a disk in memory, so every request is granted.
    fn own(&mut self, _files: &[PathBuf], work: Work) -> Result<Ownership, OwnError> {
        Ok(Ownership::of_nobody(work))
    }

    fn lend(&mut self, _ownership: &Ownership) {}

    fn holder(&self, _path: &Path) -> Option<Holder> {
        None
    }

    fn look(&self, path: &Path) -> Result<PathFacts, StoreError> {
        self.disk.lock().look(path)
    }

    fn look_at(&self, file: FileId) -> Result<PathFacts, StoreError> {
        Ok(self.disk.lock().look_at(file))
    }

    fn remove(&mut self, path: &Path) -> Result<(), StoreError> {
        let stall = self.disk.lock().remove(path)?;
        self.sit_out(stall);
        Ok(())
    }

    fn discard(&mut self, path: &Path) -> Result<(), StoreError> {
        self.remove(path)
    }

    fn names(&mut self, folder: &Path, each: &mut dyn FnMut(&OsStr)) -> Result<(), StoreError> {
        let names = self.disk.lock().names_in(folder)?;
        names.iter().for_each(|name| each(name));
        Ok(())
    }

    fn rename(&mut self, from: &Path, to: &Path) -> Result<(), StoreError> {
        let stall = self.disk.lock().rename(from, to)?;
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
    /// Waits out the stall of a blocking call if the pace is real.
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
