//! [`UringStore`]: the store on io_uring: asynchronous direct I/O from registered buffers.
//!
//! ```text
//! submit ──► queued ──flush──► submission ring ──kernel──► completion ring ──reap──► completions
//!               ▲                                                             │
//!               └───────────── EINTR, EAGAIN; EINVAL at direct I/O ───────────┘
//! ```
//!
//! **Guarantees.** The store keeps a memory mapped until no operation on it is under way. `reap` makes no system call.
//! `wait` makes one, a `ppoll` of the notifier and the ring together. Both stay readable until their events are read,
//! so no wake-up is lost between two calls. Short transfers are reported as they are. Operations that were interrupted
//! (`EINTR`) or found no resources (`EAGAIN`) are repeated up to [`REPEATS`] times and then reported.
//!
//! **Direct I/O that is refused late**: if a transfer fails with `EINVAL` although it is aligned as the file system
//! requires, the store repeats it through the page cache, keeps the file there, and reports the fallback.
//!
//! **The end**: dropping the store waits until the kernel has finished all submitted operations, for at most
//! [`DROP_LIMIT`]. If a disk hangs for longer, the memories stay mapped forever, because the kernel may still use them.
//!
//! **Conditions.** The thread that submits operations must live until they complete, because the kernel cancels the
//! operations of a thread that ends. The store may move between threads while nothing is under way.

#![expect(unsafe_code, reason = "hands addresses to the kernel that it uses until an operation completes")]

mod buffers;

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hairspring_machine::{Instant, Nanos};
use io_uring::squeue::Entry;
use io_uring::{IoUring, Probe, opcode, types};

use super::files::Files;
use super::memories::Memories;
use super::owner::{Holder, OwnError, Ownership, PathFacts, Work};
use super::{
    Completion, Errno, Fallback, FileFacts, FileId, LEFT_OUT, LentMemory, MemoryId, Op, Open, Store, StoreError, Token,
    Ways, folder, system,
};
use buffers::Buffers;
use hairspring_ring::notifier::Notifier;

/// The fallback's name.
pub(super) const NAME: &str = "io_uring";

/// How many times the store repeats an operation.
pub const REPEATS: u32 = 16;

/// How long dropping a store waits for a disk.
pub const DROP_LIMIT: Nanos = Nanos::from_secs(30);

/// The most operations that can be under way.
const DEEPEST: usize = 1024;

/// The most files in the kernel's table. Further files are looked up for each operation.
const FILES: u32 = 64;

/// The most bytes of one transfer; the kernel has the same limit.
const LONGEST_TRANSFER: usize = 0x7fff_f000;

/// The pause before operations are repeated for which the kernel had no resources.
const PAUSE: Nanos = Nanos::from_millis(1);

#[derive(Clone, Copy, Debug)]
struct Flight {
    token: Token,
    op: Op,
    repeats: u32,
    /// Submitted as a direct transfer that should succeed.
    is_direct: bool,
}

/// A store on its own ring of the kernel.
pub struct UringStore {
    ring: IoUring,
    depth: usize,
    memories: Memories,
    files: Files,
    buffers: Buffers,
    /// Why files are not in the kernel's table.
    files_refused: Option<String>,
    /// The operations that are not complete. The kernel gets the index and returns it.
    flights: Vec<Option<Flight>>,
    free: Vec<usize>,
    /// Not in the submission ring yet.
    queued: VecDeque<usize>,
    /// In the submission ring, not taken by the kernel yet.
    offered: VecDeque<usize>,
    /// Taken by the kernel, completion not seen yet.
    under_way: usize,
    /// Failed before the kernel took them.
    failed: Vec<Completion>,
    /// The ring is broken.
    broken: Option<Errno>,
}

impl std::fmt::Debug for UringStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UringStore")
            .field("depth", &self.depth)
            .field("under_way", &self.under_way)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl UringStore {
    /// A store with at most `depth` operations under way, from 1 to 1024.
    ///
    /// # Errors
    /// The fallback with the reason why io_uring is unavailable.
    pub fn new(depth: usize, ways: Ways) -> Result<Self, Fallback> {
        let depth = depth.clamp(1, DEEPEST);
        let ring = IoUring::builder().setup_clamp().build(depth.next_power_of_two() as u32).map_err(|error| {
            let why = match error.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => "not permitted (kernel.io_uring_disabled, or a seccomp filter)",
                Some(libc::ENOSYS) => "this kernel has none, or a seccomp filter hides it",
                Some(libc::ENOMEM) => "no memory for it; see the limit on locked memory (ulimit -l)",
                _ => "the kernel refused",
            };
            Fallback::refused(NAME, format!("{why}: {error}"))
        })?;
        let mut probe = Probe::new();
        let needed = [opcode::WriteFixed::CODE, opcode::Write::CODE, opcode::Fsync::CODE, opcode::Fallocate::CODE];
        let known = ring.submitter().register_probe(&mut probe).is_ok();
        if !known || !needed.iter().all(|code| probe.is_supported(*code)) || !ring.params().is_feature_nodrop() {
            return Err(Fallback::refused(
                NAME,
                "the kernel's io_uring lacks needed operations (Linux 5.6 or later has them)",
            ));
        }
        let files_refused = if ways.registered {
            ring.submitter().register_files_sparse(FILES).err().map(|error| format!("no table of files: {error}"))
        } else {
            Some(LEFT_OUT.to_owned())
        };
        Ok(Self {
            buffers: Buffers::new(&ring, ways.registered),
            ring,
            depth,
            memories: Memories::default(),
            files: Files::new(ways.direct),
            files_refused,
            flights: Vec::with_capacity(depth),
            free: Vec::with_capacity(depth),
            queued: VecDeque::with_capacity(depth),
            offered: VecDeque::with_capacity(depth),
            under_way: 0,
            failed: Vec::new(),
            broken: None,
        })
    }

    /// The entry of the submission ring for an operation.
    fn entry(&self, op: Op) -> Entry {
        let (Op::Write(file, ..) | Op::Read(file, ..) | Op::Sync(file) | Op::Allocate(file, ..)) = op;
        let descriptor = self.files.file(file).as_raw_fd();
        // The crate has one type for a descriptor and one for an index in the kernel's table.
        macro_rules! with_target {
            ($target:ident => $entry:expr) => {
                if self.files_refused.is_none() && file.0 < FILES {
                    let $target = types::Fixed(file.0);
                    $entry
                } else {
                    let $target = types::Fd(descriptor);
                    $entry
                }
            };
        }
        match op {
            Op::Write(_, at, piece) => {
                let span = self.memories.span(piece);
                let (address, length) = (span.address(), span.length().min(LONGEST_TRANSFER) as u32);
                match self.buffers.find(piece) {
                    Some(buffer) => with_target!(target =>
                        opcode::WriteFixed::new(target, address, length, buffer).offset(at).build()),
                    None => with_target!(target => opcode::Write::new(target, address, length).offset(at).build()),
                }
            }
            Op::Read(_, at, piece) => {
                let span = self.memories.span(piece);
                let (address, length) = (span.address(), span.length().min(LONGEST_TRANSFER) as u32);
                match self.buffers.find(piece) {
                    Some(buffer) => with_target!(target =>
                        opcode::ReadFixed::new(target, address, length, buffer).offset(at).build()),
                    None => with_target!(target => opcode::Read::new(target, address, length).offset(at).build()),
                }
            }
            Op::Sync(_) => {
                with_target!(target => opcode::Fsync::new(target).flags(types::FsyncFlags::DATASYNC).build())
            }
            Op::Allocate(_, at, length) => {
                with_target!(target => opcode::Fallocate::new(target, length).offset(at).build())
            }
        }
    }

    /// Moves queued operations into the submission ring, as far as there is room.
    fn offer(&mut self) {
        while let Some(&slot) = self.queued.front() {
            let Some(flight) = self.flights[slot] else { break };
            let entry = self.entry(flight.op).user_data(slot as u64);
            // SAFETY: the addresses are those of a piece of an attached memory, the descriptor that of an open file;
            // the store keeps both until the completion has come, and when it is dropped it waits for that or gives the
            // memory up.
            if unsafe { self.ring.submission().push(&entry) }.is_err() {
                break;
            }
            let is_direct = match flight.op {
                Op::Write(file, at, piece) | Op::Read(file, at, piece) => {
                    self.files.should_work_directly(file, at, &self.memories.span(piece))
                }
                Op::Sync(_) | Op::Allocate(..) => false,
            };
            self.flights[slot] = Some(Flight { is_direct, ..flight });
            self.queued.pop_front();
            self.offered.push_back(slot);
        }
    }

    /// Lets the kernel take the submitted entries. `false` if it refuses now.
    fn enter(&mut self) -> bool {
        match self.ring.submit() {
            Ok(taken) => {
                self.offered.drain(..taken.min(self.offered.len()));
                self.under_way += taken;
                taken > 0
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR) => true,
                Some(libc::EAGAIN | libc::EBUSY) => false,
                other => {
                    self.give_up(Errno(other.unwrap_or(libc::EIO)));
                    false
                }
            },
        }
    }

    /// Lets the kernel add completions that had no room in the completion ring.
    fn fetch_overflow(&mut self) {
        // Entries that a broken ring has not taken were reported as failed, so it must not take them now.
        if self.broken.is_none() && self.ring.submission().cq_overflow() {
            self.enter();
        }
    }

    /// Reports all entries as failed that the kernel has not taken, because the ring is broken.
    fn give_up(&mut self, errno: Errno) {
        self.broken = Some(errno);
        for slot in self.offered.drain(..).chain(self.queued.drain(..)) {
            let flight = self.flights[slot].take();
            self.failed.extend(flight.map(|flight| Completion { token: flight.token, result: Err(errno) }));
        }
    }

    /// Handles a result: reports it, or repeats the operation.
    fn settle(&mut self, slot: usize, result: i32) -> Option<Completion> {
        let flight = self.flights.get(slot).copied().flatten()?;
        let Flight { token, op, repeats, is_direct } = flight;
        let again = match (-result, op) {
            (libc::EINTR | libc::EAGAIN, _) => repeats < REPEATS,
            (libc::EINVAL, Op::Write(file, ..) | Op::Read(file, ..)) => is_direct && self.files.leave_direct(file),
            _ => false,
        };
        if again && self.broken.is_none() {
            self.flights[slot] = Some(Flight { repeats: repeats + 1, ..flight });
            self.queued.push_back(slot);
            return None;
        }
        self.flights[slot] = None;
        self.free.push(slot);
        Some(Completion { token, result: u64::try_from(result).map_err(|_| Errno(-result)) })
    }

    #[cfg(test)]
    pub(super) fn buffers_mut(&mut self) -> &mut Buffers {
        &mut self.buffers
    }

    #[cfg(test)]
    pub(super) fn files_mut(&mut self) -> &mut Files {
        &mut self.files
    }
}

impl UringStore {
    /// Registers an open file with the kernel.
    fn register(&mut self, id: FileId, path: &Path) {
        if self.files_refused.is_none() && id.0 < FILES {
            let descriptor = self.files.file(id).as_raw_fd();
            let put = self.ring.submitter().register_files_update(id.0, &[descriptor]);
            self.files_refused = put.err().map(|error| format!("{}: {error}", path.display()));
        }
    }
}

impl Store for UringStore {
    fn attach(&mut self, memory: LentMemory) -> MemoryId {
        let memory = memory.into();
        let id = self.memories.attach(Arc::clone(&memory));
        self.buffers.attach(&self.ring, id, &memory);
        id
    }

    fn open(&mut self, path: &Path, how: Open) -> Result<FileId, StoreError> {
        let id = self.files.open(path, how)?;
        self.register(id, path);
        Ok(id)
    }

    fn create_like(&mut self, path: &Path, other: &Path, how: Open) -> Result<FileId, StoreError> {
        let id = self.files.create_like(path, other, how)?;
        self.register(id, path);
        Ok(id)
    }

    fn close(&mut self, file: FileId) {
        if self.files_refused.is_none() && file.0 < FILES {
            // A slot that stays taken keeps the file open until the store is dropped, and is overwritten with the next
            // file.
            drop(self.ring.submitter().register_files_update(file.0, &[-1]));
        }
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
        // Panics here, not in `flush`, if the operation names a missing file or memory.
        let _ = self.entry(op);
        if let Some(errno) = self.broken {
            self.failed.push(Completion { token, result: Err(errno) });
            return;
        }
        let flight = Some(Flight { token, op, repeats: 0, is_direct: false });
        let slot = self.free.pop().unwrap_or(self.flights.len());
        if slot == self.flights.len() {
            self.flights.push(flight);
        } else {
            self.flights[slot] = flight;
        }
        self.queued.push_back(slot);
    }

    fn flush(&mut self) {
        loop {
            self.offer();
            if self.offered.is_empty() || !self.enter() {
                break;
            }
        }
    }

    fn reap(&mut self, completions: &mut Vec<Completion>) {
        completions.append(&mut self.failed);
        loop {
            let next = self.ring.completion().next();
            let Some(entry) = next else { break };
            self.under_way = self.under_way.saturating_sub(1);
            completions.extend(self.settle(entry.user_data() as usize, entry.result()));
        }
        if !self.queued.is_empty() {
            self.flush();
        }
    }

    fn wait(&mut self, notifier: &Notifier, until: Instant) {
        self.flush();
        self.fetch_overflow();
        if !self.failed.is_empty() || !self.ring.completion().is_empty() {
            return;
        }
        let left = system::left(until);
        let at_most = if self.offered.is_empty() { left } else { left.min(PAUSE) };
        notifier.wait(Some(self.ring.as_fd()), at_most);
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
        let mut fallbacks = vec![Fallback::used(NAME)];
        fallbacks.extend(self.buffers.fallback());
        fallbacks.push(Fallback { name: "registered_files", refused: self.files_refused.clone() });
        fallbacks.extend(self.files.fallbacks());
        fallbacks
    }
}

impl Drop for UringStore {
    fn drop(&mut self) {
        let until = system::now() + DROP_LIMIT;
        loop {
            let seen = self.ring.completion().count();
            self.under_way = self.under_way.saturating_sub(seen);
            if self.under_way == 0 {
                return;
            }
            let left = system::left(until);
            if left == Nanos::ZERO {
                std::mem::forget(self.memories.clone());
                return;
            }
            self.fetch_overflow();
            system::readable(&self.ring, left);
        }
    }
}
