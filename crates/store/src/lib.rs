//! [`Store`]: the interface to the disk. All data of recorder and player pass through it.
//!
//! Operations are submitted with a token and complete later, in any order. There are three implementations: io_uring,
//! plain `pwrite`, and a disk in memory that fails, stalls and loses power as scripted.
//!
//! Data are never copied on the way: an operation names a piece of a memory that was attached before, and the store
//! keeps that memory alive until the operation has completed.

pub mod compressed;
mod discard;
mod files;
mod folder;
pub mod frames;
pub mod lent_memory;
mod memories;
pub mod owner;
pub mod plain;
#[cfg(any(test, feature = "testing"))]
pub mod scripted;
mod system;
#[cfg(test)]
mod tests;
pub mod uring;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use hairspring_machine::Instant;

use hairspring_ring::notifier::Notifier;

use compressed::CompressedReads;
pub use lent_memory::LentMemory;
use owner::{Holder, OwnError, Owned, Ownership, PathFacts, Work};

/// A memory that was attached to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryId(pub u32);

/// A file that a store has opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId(pub u32);

/// The submitter's name for an operation; its completion carries the same token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(pub u64);

/// A piece of an attached memory. In a mirrored memory it may cross the seam.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The memory.
    pub memory: MemoryId,
    /// Offset of its first byte.
    pub at: usize,
    /// Its length in bytes.
    pub length: usize,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// A new file for data, written with direct I/O where that is available. It must not exist.
    CreateData,
    /// A new file for small appends, through the page cache. It must not exist.
    CreateJournal,
    /// An existing file to read, with direct I/O where that is available.
    ReadData,
    /// An existing file to read and mend, through the page cache.
    Mend,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Write a piece at an offset of a file. Completes with the number of bytes written, which may be fewer.
    Write(FileId, u64, Piece),
    /// Read into a piece. Completes with the number of bytes read, which may be fewer; 0 at the end of the file.
    Read(FileId, u64, Piece),
    /// Make everything durable that was complete in a file when this was submitted (`fdatasync`).
    Sync(FileId),
    /// Reserve space, so that writes there need no allocation (`fallocate`): file, offset, length. The file becomes
    /// that long, so its size no longer shows the bytes written.
    Allocate(FileId, u64, u64),
}

/// The end of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The token of the operation.
    pub token: Token,
    /// Bytes moved, or the system's error number.
    pub result: Result<u64, Errno>,
}

/// An error number of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// The kind of the error.
    pub fn kind(self) -> std::io::ErrorKind {
        std::io::Error::from_raw_os_error(self.0).kind()
    }
}

impl std::fmt::Display for Errno {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

/// An action of a store that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    /// The action that failed, as a fragment that fits after "failed to".
    pub attempted: String,
    /// The file or folder.
    pub path: PathBuf,
    /// The system's error.
    pub errno: Errno,
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.attempted, self.path.display(), self.errno)?;
        self.remedy().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

impl std::error::Error for StoreError {}

impl StoreError {
    /// An error with the system's number; an error without one counts as `EIO`.
    pub fn new(attempted: &str, path: &Path, error: &std::io::Error) -> Self {
        // Only errors of the system have a number; the calls used here return no others.
        let errno = Errno(error.raw_os_error().unwrap_or(libc::EIO));
        Self { attempted: attempted.to_owned(), path: path.to_owned(), errno }
    }

    /// Whether a new file was to be made, so that its folder is missing, not the file.
    fn is_of_a_new_file(&self) -> bool {
        ["create", "write"].iter().any(|act| self.attempted.starts_with(act))
    }

    /// A remedy, if the error suggests one.
    pub fn remedy(&self) -> Option<&'static str> {
        Some(match self.errno.0 {
            libc::EEXIST => "it is not overwritten: choose another name, or move it away",
            libc::ENOENT if self.is_of_a_new_file() => "make the folder first, or mend the path",
            libc::ENOENT => "mend the path, or look whether another program has moved or removed it",
            libc::ENOTDIR => "a part of the path is a file: choose another folder",
            libc::EISDIR => "this is a folder: choose a name in it",
            libc::ENOSPC => "no space or no inodes are left (df, df -i): free some there, or choose another folder",
            libc::EDQUOT => "the quota is used up: free space there, or choose another folder",
            libc::EROFS => "the file system is read-only: choose another folder, or mount it for writing",
            libc::EACCES | libc::EPERM => "ask for the permission, or choose another folder",
            libc::EMFILE | libc::ENFILE => "no descriptors are left: raise the limit (ulimit -n)",
            libc::ENAMETOOLONG => "choose a shorter name",
            libc::EFBIG => "the file system or a limit (ulimit -f) takes no file that large",
            libc::EIO => "the device reports an error: see the kernel's log, and use another disk",
            libc::ENODEV | libc::ENXIO | libc::ESTALE => "the device or the file system went away: attach it again",
            _ => return None,
        })
    }
}

/// Which of the faster ways to the disk may be used. A store falls back automatically where one is unavailable; this
/// switches one off on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    /// io_uring instead of plain calls.
    pub uring: bool,
    /// Direct I/O, which bypasses the page cache.
    pub direct: bool,
    /// Memories and files registered with the kernel.
    pub registered: bool,
}

impl Ways {
    /// All of them.
    pub const ALL: Self = Self { uring: true, direct: true, registered: true };
}

impl Default for Ways {
    fn default() -> Self {
        Self::ALL
    }
}

/// The reason in a report for a way that [`Ways`] switches off.
const LEFT_OUT: &str = "left out on request";

/// Makes the best store that works on this machine: io_uring, or plain calls. It also reads compressed data. `depth` is
/// the most operations under way.
pub fn best(depth: usize, ways: Ways) -> Box<dyn Store> {
    let refused = if ways.uring {
        match uring::UringStore::new(depth, ways) {
            Ok(store) => return Box::new(CompressedReads::above(store)),
            Err(refused) => refused,
        }
    } else {
        Fallback::refused(uring::NAME, LEFT_OUT)
    };
    Box::new(CompressedReads::above(plain::PlainStore::below(vec![refused], depth, ways)))
}

/// Removes a file that another process may have removed already. Blocks.
///
/// # Errors
/// The system's refusal.
pub fn remove_if_there(store: &mut (impl Store + ?Sized), path: &Path) -> Result<(), StoreError> {
    match store.remove(path) {
        Err(error) if error.errno.0 != libc::ENOENT => Err(error),
        _ => Ok(()),
    }
}

/// Looks for the owner of an empty file, a millisecond apart, before it counts as nobody's.
const MOST_LOOKS: u32 = 1000;

/// Why a file could not be made: another process owns a file of that name, or the system refused. Blocks for up to
/// about a second if the file is empty and has no owner yet: the process that makes a file locks it next, and writes
/// only then.
pub fn not_made(store: &(impl Store + ?Sized), error: StoreError) -> OwnError {
    if error.errno.0 != libc::EEXIST {
        return OwnError::Store(error);
    }
    for _ in 0..MOST_LOOKS {
        let is_empty = std::fs::metadata(&error.path).is_ok_and(|file| file.is_file() && file.len() == 0);
        if let Some(holder) = store.holder(&error.path) {
            return OwnError::Owned(Owned { file: error.path, holder });
        }
        if !is_empty {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    OwnError::Store(error)
}

/// Free bytes in the file system of a folder on this machine that this process may use; `None` if it does not state
/// them. May block.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    system::free_bytes(folder)
}

/// Makes the name of a file on this machine durable, if the file system supports it.
///
/// # Errors
/// The system's refusal.
pub fn sync_folder(path: &Path) -> std::io::Result<()> {
    let synced = folder::sync(hairspring_file::folder_of(path));
    synced.map(|_| ()).map_err(|error| std::io::Error::from_raw_os_error(error.errno.0))
}

/// One way to the disk: in use, or refused with a reason, so that the store fell back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// Its stable name: `io_uring`, `registered_buffers`, `direct`, `pwrite`, ….
    pub name: &'static str,
    /// `Ok` if it is in use, otherwise the reason why not.
    pub refused: Option<String>,
}

impl Fallback {
    fn used(name: &'static str) -> Self {
        Self { name, refused: None }
    }

    fn refused(name: &'static str, why: impl Into<String>) -> Self {
        Self { name, refused: Some(why.into()) }
    }
}

/// Properties of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Its size in bytes.
    pub size: u64,
    /// Offsets and lengths must be multiples of this; a power of two, 1 if there is no restriction.
    pub alignment: u64,
    /// Addresses in memory must be multiples of this.
    pub memory_alignment: u64,
    /// Whether data provably bypass the page cache: the file was opened for direct I/O *and* the file system states its
    /// alignment for it. tmpfs accepts the flag and ignores it.
    pub direct: Direct,
    /// Whether the file has further names, or was opened by a symbolic link: changes of its content would show
    /// elsewhere, too.
    pub shared: bool,
}

/// Whether data bypass the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direct {
    /// Requested, accepted, and confirmed by the file system.
    Proven,
    /// Accepted, but not confirmed by the file system.
    Claimed,
    /// Through the page cache.
    No,
}

/// The interface to the disk.
///
/// `submit` may only queue; `flush` submits everything queued to the system. At most [`Store::depth`] operations may be
/// under way; the caller counts them. The other methods may block, so call them before or after the stream, not during
/// it.
pub trait Store: Send {
    /// Keeps a memory for operations, and registers it with the kernel where that is available.
    fn attach(&mut self, memory: LentMemory) -> MemoryId;

    /// Opens a file.
    ///
    /// # Errors
    /// The system's refusal.
    fn open(&mut self, path: &Path, how: Open) -> Result<FileId, StoreError>;

    /// Creates a file like [`open`](Self::open), with owner, group, mode and extended attributes of another file, if
    /// there is one. Blocks. `how` is one of the two ways that create.
    ///
    /// # Errors
    /// The system's refusal.
    fn create_like(&mut self, path: &Path, other: &Path, how: Open) -> Result<FileId, StoreError>;

    /// Closes a file, whose id may be reused. A store that is dropped closes all its files.
    ///
    /// # Panics
    /// If the file is not this store's. No operation on it may be under way.
    fn close(&mut self, file: FileId);

    /// The present properties of a file. A file that was opened for direct I/O may fall back to the page cache later.
    fn facts(&self, file: FileId) -> FileFacts;

    /// The offset of a file's next data from an offset on: all bytes before it are zeros, which take no space or were
    /// only reserved. The length of the file if there are no more. A store that does not know returns the offset. May
    /// block.
    fn data_from(&self, _file: FileId, at: u64) -> u64 {
        at
    }

    /// The most operations under way at once.
    fn depth(&self) -> usize;

    /// Queues an operation.
    ///
    /// # Panics
    /// If the memory or the file is not this store's, or the piece reaches out of the memory.
    fn submit(&mut self, token: Token, op: Op);

    /// Submits the queued operations to the system. The store on plain calls does the work here.
    fn flush(&mut self);

    /// Takes the present completions, without waiting.
    fn reap(&mut self, completions: &mut Vec<Completion>);

    /// Waits until there is a completion, the notifier is set, or `until` has come. May return early.
    fn wait(&mut self, notifier: &Notifier, until: Instant);

    /// Cuts or extends a file to a length. Blocks.
    ///
    /// # Errors
    /// The system's refusal.
    fn truncate(&mut self, file: FileId, length: u64) -> Result<(), StoreError>;

    /// Puts a whole small file in place: either the old content or the new one, never half, also after a power cut
    /// (temporary file, sync, rename, sync of the folder). Blocks.
    ///
    /// # Errors
    /// The system's refusal.
    fn put(&mut self, path: &Path, content: &[u8]) -> Result<(), StoreError>;

    /// Becomes the owner of these files, and of those that are made under these names through this store, until the
    /// value is dropped. Blocks as long as it takes to open them.
    ///
    /// # Errors
    /// See [`Ownership::take`].
    fn own(&mut self, files: &[PathBuf], work: Work) -> Result<Ownership, OwnError>;

    /// Lets files that are made through this store belong to an ownership that was taken elsewhere, if it has their
    /// names.
    fn lend(&mut self, ownership: &Ownership);

    /// The owner of a file other than this store's ownerships. May block.
    fn holder(&self, path: &Path) -> Option<Holder>;

    /// Device, inode, links and size of the file that a path leads to now. Blocks.
    ///
    /// # Errors
    /// The system's refusal.
    fn look(&self, path: &Path) -> Result<PathFacts, StoreError>;

    /// The same of an open file, even if its path leads elsewhere now. Blocks.
    ///
    /// # Errors
    /// The system's refusal.
    ///
    /// # Panics
    /// If the file is not this store's.
    fn look_at(&self, file: FileId) -> Result<PathFacts, StoreError>;

    /// Removes a file. Blocks.
    ///
    /// # Errors
    /// The system's refusal.
    fn remove(&mut self, path: &Path) -> Result<(), StoreError>;

    /// Removes a file that may be large, and frees its space in pieces if no other name and no other process has it. If
    /// the path is a symbolic link, only the link is removed. Blocks, for long if the file is large.
    ///
    /// # Errors
    /// The system's refusal.
    fn discard(&mut self, path: &Path) -> Result<(), StoreError>;

    /// Calls a function with the name of each file in a folder, in any order. Blocks.
    ///
    /// # Errors
    /// The system's refusal.
    fn names(&mut self, folder: &Path, each: &mut dyn FnMut(&OsStr)) -> Result<(), StoreError>;

    /// Gives a file another name in the same folder, and replaces a file that has it. The names are durable after a
    /// sync of the folder. Blocks.
    ///
    /// # Errors
    /// The system's refusal.
    fn rename(&mut self, from: &Path, to: &Path) -> Result<(), StoreError>;

    /// Makes the names of files in a folder durable. Blocks.
    ///
    /// # Errors
    /// The system's refusal.
    fn sync_folder(&mut self, folder: &Path) -> Result<(), StoreError>;

    /// Free bytes in the file system of a folder that this process may use; `None` if it does not state them.
    fn free_bytes(&self, folder: &Path) -> Option<u64>;

    /// The ways in use, and those refused with the reasons.
    fn fallbacks(&self) -> Vec<Fallback>;
}
