//! [`PlainStore`]: the store on plain calls, one operation after the other.
//!
//! Works on every Linux, and fault injectors that intercept system calls can test it. [`Store::flush`] does all the
//! work and blocks as long as the disk takes, so nothing is under way between two calls. A call that a signal
//! interrupted before it moved any byte is repeated; every other error goes to the submitter.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use hairspring_machine::Instant;

use super::files::Files;
use super::memories::Memories;
use super::owner::{Holder, OwnError, Ownership, PathFacts, Work};
use super::{
    Completion, Errno, Fallback, FileFacts, FileId, LentMemory, MemoryId, Op, Open, Store, StoreError, Token, Ways,
    folder, system,
};
use hairspring_ring::notifier::Notifier;

/// Times that an interrupted call is repeated before the interruption is reported.
const REPEATS: u32 = 1000;

/// A store that calls `pwrite`, `pread`, `fdatasync` and `fallocate`.
#[derive(Debug)]
pub struct PlainStore {
    depth: usize,
    memories: Memories,
    files: Files,
    queued: VecDeque<(Token, Op)>,
    done: Vec<Completion>,
    /// The faster stores that were unavailable.
    above: Vec<Fallback>,
}

impl PlainStore {
    /// A store that takes `depth` operations between two flushes. The more there are, the longer a flush may last.
    pub fn new(depth: usize, ways: Ways) -> Self {
        Self::below(Vec::new(), depth, ways)
    }

    /// A store to fall back to; `refused` are the faster ones.
    pub(super) fn below(above: Vec<Fallback>, depth: usize, ways: Ways) -> Self {
        let depth = depth.max(1);
        Self {
            depth,
            memories: Memories::default(),
            files: Files::new(ways.direct),
            queued: VecDeque::with_capacity(depth),
            done: Vec::with_capacity(depth),
            above,
        }
    }

    fn perform(&mut self, op: Op) -> Result<u64, Errno> {
        let mut repeats = 0;
        loop {
            let result = match op {
                Op::Write(file, at, piece) => self.memories.span(piece).write_at(self.files.file(file), at),
                Op::Read(file, at, piece) => self.memories.span(piece).read_at(self.files.file(file), at),
                Op::Sync(file) => self.files.file(file).sync_data().map(|()| 0),
                Op::Allocate(file, at, length) => system::allocate(self.files.file(file), at, length).map(|()| 0),
            };
            let error = match result {
                Ok(moved) => return Ok(moved),
                Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
            };
            let again = match (error, op) {
                (libc::EINTR, _) => repeats < REPEATS,
                (libc::EINVAL, Op::Write(file, at, piece) | Op::Read(file, at, piece)) => {
                    self.files.should_work_directly(file, at, &self.memories.span(piece))
                        && self.files.leave_direct(file)
                }
                _ => false,
            };
            if !again {
                return Err(Errno(error));
            }
            repeats += 1;
        }
    }

    #[cfg(test)]
    pub(super) fn files_mut(&mut self) -> &mut Files {
        &mut self.files
    }
}

impl Store for PlainStore {
    fn attach(&mut self, memory: LentMemory) -> MemoryId {
        self.memories.attach(memory.into())
    }

    fn open(&mut self, path: &Path, how: Open) -> Result<FileId, StoreError> {
        self.files.open(path, how)
    }

    fn create_like(&mut self, path: &Path, other: &Path, how: Open) -> Result<FileId, StoreError> {
        self.files.create_like(path, other, how)
    }

    fn close(&mut self, file: FileId) {
        self.files.close(file);
    }

    fn facts(&self, file: FileId) -> FileFacts {
        self.files.facts(file)
    }

    fn data_from(&self, file: FileId, at: u64) -> u64 {
        self.files.data_from(file, at)
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn submit(&mut self, token: Token, op: Op) {
        match op {
            Op::Write(file, _, piece) | Op::Read(file, _, piece) => {
                let _ = (self.files.file(file), self.memories.span(piece));
            }
            Op::Sync(file) | Op::Allocate(file, ..) => {
                let _ = self.files.file(file);
            }
        }
        self.queued.push_back((token, op));
    }

    fn flush(&mut self) {
        while let Some((token, op)) = self.queued.pop_front() {
            let result = self.perform(op);
            self.done.push(Completion { token, result });
        }
    }

    fn reap(&mut self, completions: &mut Vec<Completion>) {
        completions.append(&mut self.done);
    }

    fn wait(&mut self, notifier: &Notifier, until: Instant) {
        self.flush();
        if self.done.is_empty() {
            notifier.wait(None, system::left(until));
        }
    }

    fn truncate(&mut self, file: FileId, length: u64) -> Result<(), StoreError> {
        self.files.truncate(file, length)
    }

    fn put(&mut self, path: &Path, content: &[u8]) -> Result<(), StoreError> {
        self.files.put(path, content)
    }

    fn own(&mut self, files: &[PathBuf], work: Work) -> Result<Ownership, OwnError> {
        self.files.own(files, work)
    }

    fn lend(&mut self, ownership: &Ownership) {
        self.files.lend(ownership);
    }

    fn holder(&self, path: &Path) -> Option<Holder> {
        self.files.holder(path)
    }

    fn look(&self, path: &Path) -> Result<PathFacts, StoreError> {
        folder::look(path)
    }

    fn look_at(&self, file: FileId) -> Result<PathFacts, StoreError> {
        self.files.look_at(file)
    }

    fn remove(&mut self, path: &Path) -> Result<(), StoreError> {
        self.files.remove(path)
    }

    fn discard(&mut self, path: &Path) -> Result<(), StoreError> {
        self.files.discard(path)
    }

    fn names(&mut self, folder: &Path, each: &mut dyn FnMut(&OsStr)) -> Result<(), StoreError> {
        folder::names(folder, each)
    }

    fn rename(&mut self, from: &Path, to: &Path) -> Result<(), StoreError> {
        self.files.rename(from, to)
    }

    fn sync_folder(&mut self, folder: &Path) -> Result<(), StoreError> {
        self.files.sync_folder(folder)
    }

    fn free_bytes(&self, folder: &Path) -> Option<u64> {
        system::free_bytes(folder)
    }

    fn fallbacks(&self) -> Vec<Fallback> {
        let mut fallbacks = self.above.clone();
        fallbacks.push(Fallback::used("pwrite"));
        fallbacks.extend(self.files.fallbacks());
        fallbacks
    }
}
