//! [`Ownership`]: one program at a time changes the files of a recording.
//!
//! **Problem.** A recorder writes for days. Meanwhile another command, another user or a unit that was started twice
//! may take the same recording for one that was cut off, and truncate it.
//!
//! **Solution.** A process that changes a recording holds an exclusive lock on each of its files: the lock of an open
//! file description (`F_OFD_SETLK`) on the inode. It ends with the process, whatever signal ends it; it follows a file
//! that is moved; it survives when another descriptor of the file is closed. Readers need no lock. They ask for the
//! holder ([`holder`]), which needs only the permission to read.
//!
//! ```text
//!   take:     open, lock, check that the path still leads to that inode; file by file in the order of the paths;
//!             if one is refused, release all
//!   create:   create, lock                        (by the store to which the ownership was lent)
//!   replace:  write under another name, lock, rename                                      (likewise)
//! ```
//!
//! The first byte that the lock covers encodes what the owner does with the files, so that every process sees it.
//!
//! **Conditions.** A lock is on the inode and known to the kernel of this computer, or to the server of a network file
//! system. Programs that do not check it, such as `cp`, `mv` and `rm`, are not kept out. Some file systems have no
//! locks: then a recorder goes on and reports it, and no other program may change a recording. Descriptors are closed
//! at `exec`; a child that was forked without it keeps no lock that was released.

mod lock;
mod process;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{Errno, StoreError};
use lock::{Answer, Lock};
pub use process::OwnerProcess;

/// Times that a file is opened again because another one got its name meanwhile.
const MOST_TRIES: u32 = 16;

/// The work of an owner on its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It records them.
    Records,
    /// It mends, compresses, restores, makes or describes them.
    Changes,
    /// It deletes them.
    Deletes,
    /// It copies them, and no other process may change them meanwhile. Others may copy them, too; the permission to
    /// read suffices.
    Copies,
}

impl Work {
    /// The first byte of the lock. All locks overlap, because each reaches to the end.
    fn first_byte(self) -> u64 {
        match self {
            Self::Records => 0,
            Self::Changes => 1,
            Self::Deletes => 2,
            Self::Copies => 3,
        }
    }

    fn of_first_byte(byte: u64) -> Self {
        match byte {
            0 => Self::Records,
            2 => Self::Deletes,
            3 => Self::Copies,
            _ => Self::Changes,
        }
    }

    /// The participle, as in "is being recorded".
    pub fn participle(self) -> &'static str {
        match self {
            Self::Records => "recorded",
            Self::Changes => "changed",
            Self::Deletes => "deleted",
            Self::Copies => "copied",
        }
    }
}

/// Device, inode, links and size of the file at a path, or of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathFacts {
    /// The device and the inode: the same for two paths only if they lead to the same file.
    pub device: u64,
    /// The inode.
    pub inode: u64,
    /// Number of names of the file; 0 after the last was removed.
    pub links: u64,
    /// Its size in bytes.
    pub size: u64,
}

impl From<&Metadata> for PathFacts {
    fn from(found: &Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino(), links: found.nlink(), size: found.len() }
    }
}

impl PathFacts {
    /// Whether both are the same file; sizes are ignored.
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// A process that holds the lock of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its work on the file.
    pub work: Work,
    device: u64,
    inode: u64,
}

impl Holder {
    /// Looks for the process in `/proc`. May take some milliseconds.
    pub fn process(&self) -> OwnerProcess {
        process::holding(self.device, self.inode)
    }
}

/// As in "is being recorded by process 4711 (hairspring)".
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "is being {} by {}", self.work.participle(), self.process())
    }
}

/// A file that another process owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The file.
    pub file: PathBuf,
    /// Its owner.
    pub holder: Holder,
}

impl fmt::Display for Owned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: wait until it ends, or end it, and try again", self.file.display(), self.holder)
    }
}

/// Why files cannot be owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnError {
    /// Another process owns one of them.
    Owned(Owned),
    /// The file system has no locks: the file, and the system's error.
    NoLocks(PathBuf, Errno),
    /// A file cannot be opened.
    Store(StoreError),
}

impl fmt::Display for OwnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owned(owned) => owned.fmt(f),
            Self::NoLocks(file, errno) => write!(
                f,
                "failed to lock {}: {errno}; without locks two programs could change the recording at once: copy it to a file system that has \
                 locks, and change it there",
                file.display()
            ),
            Self::Store(error) => write!(f, "failed to {error}"),
        }
    }
}

impl std::error::Error for OwnError {}

impl From<StoreError> for OwnError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Files that this program owns. The ownership ends when the value and its clones are dropped.
#[derive(Clone, Debug)]
pub struct Ownership(Arc<Mutex<Held>>);

/// An ownership that was lent to a store: it ends with its owner.
#[derive(Clone, Debug)]
pub(super) struct Lent(Weak<Mutex<Held>>);

#[derive(Debug)]
struct Held {
    work: Work,
    /// The absolute paths that are owned, with the lock of each that exists.
    files: BTreeMap<PathBuf, Option<Lock>>,
    /// Why there are no locks on some of them.
    without: Option<(PathBuf, Errno)>,
}

impl Ownership {
    /// Takes these files: those that exist, and those that a store to which the ownership is lent makes under these
    /// names. Does not wait.
    ///
    /// # Errors
    /// Another process owns one of them, one cannot be opened for writing, or there are no locks. A recorder also gets
    /// files without locks, and [`without`](Self::without) lists the first. Nothing is held after an error.
    pub fn take(files: &[PathBuf], work: Work) -> Result<Self, OwnError> {
        let ownership = Self::of_nobody(work);
        ownership.add(files)?;
        Ok(ownership)
    }

    /// The ownership of files that no other process can reach.
    pub fn of_nobody(work: Work) -> Self {
        Self(Arc::new(Mutex::new(Held { work, files: BTreeMap::new(), without: None })))
    }

    /// Takes more files.
    ///
    /// # Errors
    /// As [`take`](Self::take). Files held before stay held.
    pub fn add(&self, files: &[PathBuf]) -> Result<(), OwnError> {
        let mut paths: Vec<PathBuf> = files.iter().map(|file| absolute(file)).collect();
        paths.sort_unstable();
        paths.dedup();
        let mut held = self.held();
        let mut taken: Vec<(PathBuf, Option<Lock>)> = Vec::with_capacity(paths.len());
        for path in paths {
            // Two names of one file need one lock.
            let is_ours = |file: &PathFacts| {
                let more = taken.iter().filter_map(|(_, lock)| lock.as_ref());
                held.files.values().flatten().chain(more).any(|lock| lock.is_of(file))
            };
            match locked(&path, held.work, is_ours) {
                Ok(lock) => taken.push((path, lock)),
                Err(OwnError::NoLocks(file, errno)) if held.work == Work::Records => {
                    held.without.get_or_insert((file, errno));
                    taken.push((path, None));
                }
                Err(error) => return Err(error),
            }
        }
        for (path, lock) in taken {
            let known = held.files.entry(path).or_default();
            *known = lock.or(known.take());
        }
        Ok(())
    }

    /// Publishes that the owner does other work on the files from now on.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn turn(&self, work: Work) -> Result<(), OwnError> {
        let mut held = self.held();
        held.work = work;
        for (path, lock) in &held.files {
            let turned = lock.as_ref().map_or(Ok(()), |lock| lock.turn(work));
            turned.map_err(|error| StoreError::new("lock", path, &error))?;
        }
        Ok(())
    }

    /// The first file that is owned without a lock, because its file system has none, and the system's error.
    pub fn without(&self) -> Option<(PathBuf, Errno)> {
        self.held().without.clone()
    }

    /// The facts of the file of an owned name from when it was locked, even if it has another name now.
    pub fn facts(&self, path: &Path) -> Option<PathFacts> {
        self.held().files.get(&absolute(path))?.as_ref()?.facts()
    }

    pub(super) fn lent(&self) -> Lent {
        Lent(Arc::downgrade(&self.0))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lent {
    /// The ownership, if it has not ended.
    fn owner(&self) -> Option<Ownership> {
        self.0.upgrade().map(Ownership)
    }

    /// Whether the lock of a file of this name is held.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.owner().is_some_and(|owner| owner.held().files.get(&absolute(path)).is_some_and(Option::is_some))
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.strong_count() == 0
    }

    /// Takes a new file that gets this name next; it is `at` another path until then, or has the name already. Does
    /// nothing if the name is not owned.
    pub(super) fn adopt(&self, path: &Path, file: &File, at: &Path) -> Result<(), StoreError> {
        let Some(owner) = self.owner() else { return Ok(()) };
        let (path, mut held) = (absolute(path), owner.held());
        if !held.files.contains_key(&path) {
            return Ok(());
        }
        let found = file.metadata().map_err(|error| StoreError::new("look at", &path, &error))?;
        let found = PathFacts::from(&found);
        // It is ours under another name.
        let known = held.files.values_mut().find(|lock| lock.as_ref().is_some_and(|lock| lock.is_of(&found)));
        if let Some(lock) = known.and_then(Option::take) {
            held.files.insert(path, Some(lock));
            return Ok(());
        }
        // A description of its own: the locks of a shared one would stay as long as io_uring uses that.
        let own = reopened(file, at).map_err(|error| StoreError::new("open to lock", &path, &error))?;
        match Lock::take(own, held.work) {
            Ok(Answer::Taken(lock)) => drop(held.files.insert(path, Some(lock))),
            // Another process was quicker: it has locked a file that is still empty.
            Ok(Answer::Refused) => {
                return Err(StoreError::new("lock", &path, &io::Error::from_raw_os_error(libc::EAGAIN)));
            }
            // The file is new, and no other process knows it. A file on such a file system that existed could not have
            // been taken here.
            Err(errno) => {
                held.files.insert(path.clone(), None);
                held.without.get_or_insert((path, errno));
            }
        }
        Ok(())
    }

    /// The file of this name was removed or has another name.
    pub(super) fn is_gone(&self, path: &Path) {
        if let Some(owner) = self.owner()
            && let Some(lock) = owner.held().files.get_mut(&absolute(path))
        {
            *lock = None;
        }
    }
}

/// The owner of a file. Needs the permission to read it, and takes no lock.
pub fn holder(path: &Path) -> Option<Holder> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).ok()?;
    lock::holder(&file).ok()?
}

/// Whether the file system of a file can say who owns it; `false` if the file cannot be opened.
pub fn has_locks(path: &Path) -> bool {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    file.is_ok_and(|file| lock::holder(&file).is_ok())
}

/// The lock of a file; `None` if there is no file, or if it is held already.
fn locked(path: &Path, work: Work, is_ours: impl Fn(&PathFacts) -> bool) -> Result<Option<Lock>, OwnError> {
    let failed = |error: &io::Error| OwnError::Store(StoreError::new("open to lock", path, error));
    let mut last = None;
    for _ in 0..MOST_TRIES {
        let mut options = OpenOptions::new();
        options.read(true).write(work != Work::Copies).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
        let file = match options.open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&error)),
        };
        let found = file.metadata().map_err(|error| failed(&error))?;
        if !found.is_file() {
            return Err(failed(&io::Error::from_raw_os_error(libc::EINVAL)));
        }
        let opened = PathFacts::from(&found);
        if is_ours(&opened) {
            return Ok(None);
        }
        match Lock::take(file, work).map_err(|errno| OwnError::NoLocks(path.to_owned(), errno))? {
            Answer::Taken(lock) => {
                let now = std::fs::metadata(path).map(|now| PathFacts::from(&now));
                if now.is_ok_and(|now| now.is_same_file(&opened)) {
                    return Ok(Some(lock));
                }
            }
            Answer::Refused => match holder(path) {
                Some(holder) => return Err(OwnError::Owned(Owned { file: path.to_owned(), holder })),
                // It was released just now.
                None => last = Some(Holder { work: Work::Changes, device: opened.device, inode: opened.inode }),
            },
        }
    }
    match last {
        Some(holder) => Err(OwnError::Owned(Owned { file: path.to_owned(), holder })),
        None => Err(failed(&io::Error::from_raw_os_error(libc::EBUSY))),
    }
}

/// A second description of an open file, which has this path.
fn reopened(file: &File, at: &Path) -> io::Result<File> {
    let again = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(at)?;
    match PathFacts::from(&again.metadata()?).is_same_file(&PathFacts::from(&file.metadata()?)) {
        true => Ok(again),
        // Another process has put another file in its place.
        false => Err(io::Error::from_raw_os_error(libc::ESTALE)),
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
