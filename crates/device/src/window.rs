//! [`Window`]: a mapped file of 32-bit words: a window of a card through sysfs, memory that a driver hands out, or a plain file.
//!
//! Words are read and written one at a time, in the order of the program, each exactly once.
//!
//! **A window that goes.** Where the kernel takes a mapping away, or a file is cut, an access would be a bus error, which ends a
//! process. Not here: the window is replaced by ordinary memory (see `window/revoked.rs`), and the access is an error, as are
//! all later ones.
//!
//! **Real-time behaviour.** An access is one load or one store, no system call.

#![expect(unsafe_code, reason = "maps a window, and reads and writes it")]

mod revoked;

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::ptr::NonNull;

use crate::device::DeviceError;
use crate::node::refusal;
use revoked::Revocable;

const REMEDY: &str = "name a file that can be mapped and may be written, of at least four bytes";
/// The largest window that is mapped.
const WINDOW_MOST_BYTES: u64 = 1 << 30;
/// Bytes of a word.
const WORD: usize = size_of::<u32>();

/// A mapped file of words.
#[derive(Debug)]
pub struct Window {
    words: NonNull<u32>,
    bytes: usize,
    revocable: Revocable,
    name: String,
}

// SAFETY: an address and its length; volatile accesses from any one thread are as good as from another.
unsafe impl Send for Window {}

impl Window {
    /// Maps the whole of a file.
    ///
    /// # Errors
    /// No such file, no permission, one that cannot be mapped, or is too short or too long for a window.
    pub fn open(path: &Path) -> Result<Self, DeviceError> {
        Self::named(path, path.display().to_string(), format!("map {}", path.display()), REMEDY)
    }

    /// Maps a file that is known by another name.
    pub(crate) fn named(
        path: &Path,
        name: String,
        attempted: String,
        remedy: &'static str,
    ) -> Result<Self, DeviceError> {
        let failed = |error: io::Error| refusal(attempted.clone(), &error, remedy);
        let other = |said: &str| DeviceError { attempted: attempted.clone(), said: said.to_owned(), remedy };
        let length = std::fs::metadata(path).map_err(failed)?.len();
        if length < WORD as u64 || length > WINDOW_MOST_BYTES {
            return Err(other("it is no window of memory that can be mapped"));
        }
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_SYNC).open(path).map_err(failed)?;
        let bytes = length as usize;
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice; nothing that exists is touched. Its result is checked.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, file.as_raw_fd(), 0) };
        if address == libc::MAP_FAILED {
            return Err(failed(io::Error::last_os_error()));
        }
        let Some(words) = NonNull::new(address.cast::<u32>()) else { return Err(other("it lies at address 0")) };
        match Revocable::new(address as usize, bytes) {
            Ok(revocable) => Ok(Self { words, bytes, revocable, name }),
            Err(error) => {
                // SAFETY: exactly what was mapped above, and nobody has it yet.
                unsafe { libc::munmap(address, bytes) };
                Err(failed(error))
            }
        }
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reads the word at an offset of bytes.
    ///
    /// # Errors
    /// The window was taken away; no word lies there.
    #[inline]
    pub fn read(&self, offset: usize) -> Result<u32, DeviceError> {
        let word = self.word(offset)?;
        // SAFETY: `word` lies within the mapping, which lives as long as `self`, and is aligned. A window that was revoked has been
        // replaced by memory of the same size.
        let value = unsafe { word.as_ptr().read_volatile() };
        if self.is_revoked() { Err(self.gone("read from")) } else { Ok(value) }
    }

    /// Writes the word at an offset of bytes. A device may get it later: read something from it to be sure.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    pub fn write(&self, offset: usize, value: u32) -> Result<(), DeviceError> {
        let word = self.word(offset)?;
        // SAFETY: as in `read`; who may map a file for writing may write to it.
        unsafe { word.as_ptr().write_volatile(value) };
        if self.is_revoked() { Err(self.gone("write to")) } else { Ok(()) }
    }

    /// Whether it was taken away.
    pub(crate) fn is_revoked(&self) -> bool {
        self.revocable.is_revoked()
    }

    #[inline]
    pub(crate) fn word(&self, offset: usize) -> Result<NonNull<u32>, DeviceError> {
        if !offset.is_multiple_of(WORD) || offset > self.bytes - WORD {
            return Err(self.no_word(offset));
        }
        // SAFETY: within the mapping, as was just found.
        Ok(unsafe { self.words.byte_add(offset) })
    }

    #[cold]
    fn no_word(&self, offset: usize) -> DeviceError {
        DeviceError {
            attempted: format!("use the word at {offset:#x} of {}", self.name),
            said: format!("the window has {:#x} bytes, in words of {WORD}", self.bytes),
            remedy: "choose an offset within it that is a multiple of four",
        }
    }

    #[cold]
    pub(crate) fn gone(&self, attempted: &str) -> DeviceError {
        let error = io::Error::from_raw_os_error(libc::ENODEV);
        refusal(format!("{attempted} {}", self.name), &error, REMEDY)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.revocable.release();
        // SAFETY: exactly what was mapped, or the memory that has replaced it; no borrow of it exists.
        unsafe { libc::munmap(self.words.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_file_are_read_and_written_and_what_lies_beyond_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("window");
        assert!(Window::open(&path).expect_err("there is none").to_string().contains("map"));
        std::fs::write(&path, [1, 0]).expect("a file");
        assert!(Window::open(&path).expect_err("half a word").to_string().contains("no window"));
        std::fs::write(&path, [1, 0, 0, 0, 2, 0, 0, 0]).expect("a file");
        let window = Window::open(&path).expect("a window");
        assert_eq!((window.read(0), window.read(4), window.bytes()), (Ok(1), Ok(2), 8));
        window.write(4, 0x0102_0304).expect("a word");
        assert_eq!(std::fs::read(&path).expect("a file")[4..], [4, 3, 2, 1]);
        for beyond in [8, 2, usize::MAX] {
            assert!(window.read(beyond).is_err() && window.write(beyond, 0).is_err(), "{beyond}");
        }
    }

    #[test]
    fn a_file_that_is_cut_is_an_error_and_not_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("window");
        std::fs::write(&path, [0; 8192]).expect("a file");
        let window = Window::open(&path).expect("a window");
        std::fs::File::options().write(true).open(&path).and_then(|file| file.set_len(0)).expect("cut");
        assert!(window.read(0).is_err() && window.write(4096, 1).is_err());
    }
}
