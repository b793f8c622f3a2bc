//! [`Page`]: memory that processes share through a file.
//!
//! **Format.** The first word names the format. A file is accepted only if it is empty, or has the right length and the
//! right word, so a file of another kind is refused before anything is written to it. A page of zeros was extended by a
//! process that has not begun to fill it yet.
//!
//! **Truncated files.** Zeroed memory replaces the page (see `revoked.rs`), and every user of the page detects that by
//! [`Page::kept`] after its access.

#![expect(unsafe_code, reason = "looks at mapped memory as a type")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags};

use crate::device::DeviceError;
use crate::memory::mapping::Mapping;

/// First word of a page while its first user initialises it.
const MAKING: u64 = 1;
/// Longest time for the initialisation.
const PATIENCE: Duration = Duration::from_secs(1);

const ACCESS: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);
/// The reason for refusing a file of another format.
const SOMETHING_ELSE: &str = "the file has another content";

/// A mapped page. Other processes change its contents at any time, so it is accessed only through atomics and the
/// system's own locks.
#[derive(Debug)]
pub struct Page {
    mapping: Mapping,
    /// Name of the page in errors.
    name: String,
    /// The PID namespace of the process that opened it.
    namespace: u64,
    /// Guards made and not yet released: until then the C library and the kernel keep addresses in the page.
    guards: AtomicU32,
}

impl Page {
    /// Maps a file, or creates it, of `bytes` bytes. New bytes are zero; an existing file begins with `magic`, unless a
    /// user is just initialising it.
    pub fn of(path: &Path, bytes: usize, magic: u64) -> io::Result<Self> {
        // Every user of the device may write to a new file; an existing one keeps its mode.
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o660).open(path)?;
        match file.metadata()?.len() {
            // Several processes may do so: the length is the same.
            0 => file.set_len(bytes as u64)?,
            length if length == bytes as u64 && is_ours(&file, bytes, magic)? => {}
            _ => return Err(io::Error::other(SOMETHING_ELSE)),
        }
        let mapping = Mapping::of_file(&file, 0, bytes, ACCESS, MapFlags::POPULATE)?;
        Self::mapped(mapping, path.display().to_string())
    }

    /// Maps a file of another process, of `bytes` bytes and with this first word, for reading only. Later writes of
    /// that process show in it. A store would end the process. On read-only memory only relaxed loads of at most 8
    /// bytes are defined, so readers use those, with fences.
    ///
    /// # Errors
    /// The file cannot be opened, or has another length or another first word.
    pub fn read_only(path: &Path, bytes: usize, magic: u64) -> io::Result<Self> {
        let file = File::open(path)?;
        let mut first = [0; size_of::<u64>()];
        if file.metadata()?.len() != bytes as u64 {
            return Err(io::Error::other(SOMETHING_ELSE));
        }
        file.read_exact_at(&mut first, 0)?;
        if u64::from_ne_bytes(first) != magic {
            return Err(io::Error::other(SOMETHING_ELSE));
        }
        let mapping = Mapping::of_file(&file, 0, bytes, ProtFlags::READ, MapFlags::POPULATE)?;
        Self::mapped(mapping, path.display().to_string())
    }

    /// Memory of this process and those that it forks; zero.
    pub(crate) fn without_file(bytes: usize) -> io::Result<Self> {
        let mapping = Mapping::of_process(bytes, ACCESS, MapFlags::POPULATE)?;
        Self::mapped(mapping, "a lock of this process".to_owned())
    }

    fn mapped(mapping: Mapping, name: String) -> io::Result<Self> {
        Ok(Self { mapping, name, namespace: pid_namespace()?, guards: AtomicU32::new(0) })
    }

    /// Whether the file has been truncated, so that this is no longer the memory that others share. Correct after an
    /// access.
    #[inline]
    pub fn is_revoked(&self) -> bool {
        self.mapping.is_revoked()
    }

    /// Fails if the file has been truncated; called after an access, which had no effect then.
    #[inline]
    pub fn kept(&self, attempted: &str) -> Result<(), DeviceError> {
        if self.is_revoked() { Err(self.truncated(attempted)) } else { Ok(()) }
    }

    #[cold]
    fn truncated(&self, attempted: &str) -> DeviceError {
        DeviceError {
            attempted: format!("{attempted} {}", self.name),
            said: "the file was truncated".to_owned(),
            remedy: "remove the file, and restart all its users",
        }
    }

    /// Fails if a lock was made in another PID namespace than this process's.
    pub(crate) fn check_namespace(&self, of_lock: u64) -> Result<(), DeviceError> {
        if of_lock == self.namespace {
            return Ok(());
        }
        Err(DeviceError {
            attempted: format!("lock {}", self.name),
            said: "it was made in another PID namespace, whose thread ids are invalid here".to_owned(),
            remedy: "run all its users in one PID namespace (docker: --pid), or remove the file if the others have ended",
        })
    }

    /// The PID namespace of the process that opened it.
    pub(crate) fn namespace(&self) -> u64 {
        self.namespace
    }

    /// Notes that a guard of a lock in this page exists.
    pub(crate) fn guard_made(&self) {
        // Relaxed: a count; the thread that drops the page has seen its own guards, and other threads' guards borrow
        // the page.
        self.guards.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a guard was dropped.
    pub(crate) fn guard_given_back(&self) {
        self.guards.fetch_sub(1, Ordering::Relaxed);
    }

    /// Lets the first user initialise the page; the others wait until that is done, at most a second. `word` is zero in
    /// a new page, and `magic` afterwards.
    pub fn made_once(
        &self,
        word: &AtomicU64,
        magic: u64,
        path: &Path,
        make: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let failed = |said: &str, remedy| DeviceError {
            attempted: format!("open {}", path.display()),
            said: said.to_owned(),
            remedy,
        };
        match word.compare_exchange(0, MAKING, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => {
                make()?;
                // Release: pairs with the Acquire of a thread that finds it made.
                word.store(magic, Ordering::Release);
                Ok(())
            }
            Err(found) if found == magic => Ok(()),
            Err(MAKING) => {
                let begun = std::time::Instant::now();
                while word.load(Ordering::Acquire) != magic {
                    if begun.elapsed() > PATIENCE {
                        return Err(failed("the process that began to make it did not finish", "remove the file"));
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(())
            }
            Err(_) => Err(failed(
                SOMETHING_ELSE,
                "name another file in a folder that may be written, for instance under /dev/shm",
            )),
        }
    }

    /// The structure at the beginning of the page.
    ///
    /// # Panics
    /// If it is larger than the page.
    pub fn start<T: Zeroed>(&self) -> &T {
        assert!(size_of::<T>() <= self.mapping.bytes(), "larger than the page");
        // SAFETY: the mapping begins at a page, so it is aligned for any type, is as long, lives as long as this
        // borrow, and any bytes are a valid value of a type that is `Zeroed`, which consists of atomics and cells.
        unsafe { self.mapping.address().cast::<T>().as_ref() }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if *self.guards.get_mut() > 0 {
            // A guard was forgotten, or its lock was lost with the file: a thread's list of robust mutexes still points
            // here.
            self.mapping.leave();
        }
    }
}

/// The number of this process's PID namespace: two processes have the same thread numbers only if they share it.
fn pid_namespace() -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self/ns/pid").map(|namespace| namespace.ino())
}

/// Whether a file of the right length begins with this word, or is just being initialised.
fn is_ours(file: &File, bytes: usize, magic: u64) -> io::Result<bool> {
    let mut content = vec![0; bytes];
    file.read_exact_at(&mut content, 0)?;
    let (first, rest) = content.split_at(size_of::<u64>());
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).unwrap_or_default();
    if [MAKING, magic].contains(&word(first)) || rest.iter().all(|byte| *byte == 0) && word(first) == 0 {
        return Ok(true);
    }
    // Its initialisation may have begun since: then the word has changed.
    let mut again = [0; size_of::<u64>()];
    file.read_exact_at(&mut again, 0)?;
    Ok(word(first) == 0 && [MAKING, magic].contains(&word(&again)))
}

/// A type of atomics and cells, for which any bytes are a valid value.
///
/// # Safety
/// Any bytes must be a valid value, and writes of other processes during a borrow must be no data race: all of it
/// consists of atomics, or of `UnsafeCell`s that only the kernel and the C library access.
pub unsafe trait Zeroed {}
