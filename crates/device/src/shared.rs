//! A page of memory that processes share by the name of a file.
//!
//! Its first word says what lies there, so that a file which is something else is found out before anything is written to it: it is looked at
//! before it is made longer, and taken only if it is empty, or of the right length with the right word. All zero is a page that
//! somebody has made longer and not begun to fill yet.

#![expect(unsafe_code, reason = "mapping a file")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::device::DeviceError;

/// What stands in the first word while somebody makes what is here.
const MAKING: u64 = 1;
/// How long that may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is said of a file that is none of ours.
const SOMETHING_ELSE: &str = "the file is something else";

/// A mapped page. Others change what is in it at any time, so it is only looked at through atomics and the system's own locks.
#[derive(Debug)]
pub(crate) struct Page {
    address: NonNull<u8>,
    bytes: usize,
}

// SAFETY: an address and its length; what is behind it is shared with other processes anyway, and every access is atomic.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl Page {
    /// Maps a file that exists or is made now, of so many bytes. New bytes are zero; one that exists begins with this word, or somebody is
    /// just making it.
    pub(crate) fn of(path: &Path, bytes: usize, magic: u64) -> io::Result<Self> {
        // Whoever may use the device may write; a file that is there is taken as it is.
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o660).open(path)?;
        match file.metadata()?.len() {
            // Others may do so, too: it is the same length.
            0 => file.set_len(bytes as u64)?,
            length if length == bytes as u64 && is_ours(&file, bytes, magic)? => {}
            _ => return Err(io::Error::other(SOMETHING_ELSE)),
        }
        Self::map(libc::MAP_SHARED | libc::MAP_POPULATE, file.as_raw_fd(), bytes)
    }

    /// Memory of this process and those that it forks; zero.
    pub(crate) fn without_file(bytes: usize) -> io::Result<Self> {
        Self::map(libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE, -1, bytes)
    }

    fn map(flags: libc::c_int, file: RawFd, bytes: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice; nothing that exists is touched. Its result is checked.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, file, 0) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let address = NonNull::new(address.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { address, bytes })
    }

    /// Lets the first one who comes make what lies here; the others wait until it is made, up to a second. `word` is zero in a
    /// new page, and then says what is here.
    pub(crate) fn made_once(
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
                // Release: pairs with the Acquire of who finds it made.
                word.store(magic, Ordering::Release);
                Ok(())
            }
            Err(found) if found == magic => Ok(()),
            Err(MAKING) => {
                let begun = std::time::Instant::now();
                while word.load(Ordering::Acquire) != magic {
                    if begun.elapsed() > PATIENCE {
                        return Err(failed("who began to make it did not end", "remove the file"));
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

    /// What lies at its beginning.
    ///
    /// # Panics
    /// If it is larger than the page.
    pub(crate) fn as_ref<T: Zeroed>(&self) -> &T {
        assert!(size_of::<T>() <= self.bytes, "larger than the page");
        // SAFETY: the mapping begins at a page, so it is aligned for any type, is as long, lives as long as this borrow, and any
        // bytes are a value of a type that is `Zeroed`, which consists of atomics and cells.
        unsafe { self.address.cast::<T>().as_ref() }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped; no borrow of it can live any longer.
        unsafe { libc::munmap(self.address.as_ptr().cast(), self.bytes) };
    }
}

/// Whether a file of the right length begins with this word, or is just being made.
fn is_ours(file: &File, bytes: usize, magic: u64) -> io::Result<bool> {
    let mut content = vec![0; bytes];
    file.read_exact_at(&mut content, 0)?;
    let (first, rest) = content.split_at(size_of::<u64>());
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).unwrap_or_default();
    if [MAKING, magic].contains(&word(first)) || rest.iter().all(|byte| *byte == 0) && word(first) == 0 {
        return Ok(true);
    }
    // Its making may have begun meanwhile: then the word has changed.
    let mut again = [0; size_of::<u64>()];
    file.read_exact_at(&mut again, 0)?;
    Ok(word(first) == 0 && [MAKING, magic].contains(&word(&again)))
}

/// A type of atomics and cells, for which any bytes are a value.
///
/// # Safety
/// Any bytes must be a value, and whatever other processes write into it while it is borrowed must be no data race: all of it
/// lies in atomics or in `UnsafeCell`s that only the kernel and the C library look into.
pub(crate) unsafe trait Zeroed {}
