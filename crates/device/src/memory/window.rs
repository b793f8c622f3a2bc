//! [`Window`]: 32-bit words of a mapped file or device.
//!
//! For devices without a driver here: a UIO device, a card's `resource` file, a file that processes share. Each access
//! is one load or one store, in program order; the user defines the meaning of a word. For removable cards use
//! [`PciWindow`](crate::PciWindow), which detects removal.
//!
//! **Revoked windows.** If the kernel revokes a mapping, or a file is truncated, an access would normally be a bus
//! error, which kills the process. Here ordinary memory replaces the window (see `revoked.rs`), and this access and all
//! later ones are errors.
//!
//! **Real-time behaviour.** No system call, except page faults at the first accesses to a file.

#![expect(unsafe_code, reason = "reads and writes mapped words")]

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags};

use crate::device::DeviceError;
use crate::memory::mapping::Mapping;
use crate::refusal::refusal;

const REMEDY: &str = "name a file or device that may be read and written, and whose length is known or given";
const READ_REMEDY: &str = "name a file or device that may be read, and whose length is known or given";
/// Bytes of a word.
const WORD: usize = size_of::<u32>();
/// The largest window that is mapped.
const MOST_BYTES: usize = 1 << 30;

/// Mapped words.
#[derive(Debug)]
pub struct Window {
    mapping: Mapping,
    writable: bool,
    name: String,
}

impl Window {
    /// Maps `bytes` of a file from `offset` on; without `bytes`, all that the file has from there. Not real-time safe.
    ///
    /// # Errors
    /// No such file, no permission, an offset that is no multiple of a page, no length, or a length beyond the file's
    /// end.
    pub fn map(path: &Path, offset: u64, bytes: Option<usize>) -> Result<Self, DeviceError> {
        let name = path.display().to_string();
        Self::named(path, offset, bytes, name.clone(), format!("map {name}"), REMEDY)
    }

    /// The same for reading only, for files without write permission.
    ///
    /// # Errors
    /// As [`map`](Self::map).
    pub fn map_read_only(path: &Path, offset: u64, bytes: Option<usize>) -> Result<Self, DeviceError> {
        let name = path.display().to_string();
        Self::open(path, offset, bytes, false, name.clone(), format!("map {name}"), READ_REMEDY)
    }

    /// [`map`](Self::map) for a file that errors call by another name.
    pub(crate) fn named(
        path: &Path,
        offset: u64,
        bytes: Option<usize>,
        name: String,
        attempted: String,
        remedy: &'static str,
    ) -> Result<Self, DeviceError> {
        Self::open(path, offset, bytes, true, name, attempted, remedy)
    }

    fn open(
        path: &Path,
        offset: u64,
        bytes: Option<usize>,
        writable: bool,
        name: String,
        attempted: String,
        remedy: &'static str,
    ) -> Result<Self, DeviceError> {
        let failed = |error: io::Error| refusal(attempted.clone(), &error, remedy);
        let other = |said: String| DeviceError { attempted: attempted.clone(), said, remedy };
        // Opening a pipe must not wait for its other end.
        let flags = libc::O_SYNC | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).write(writable).custom_flags(flags).open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        // A device has no length of its own; its driver checks how much of it can be mapped.
        let room = metadata.is_file().then(|| metadata.len().saturating_sub(offset));
        let bytes = match (bytes, room) {
            (Some(bytes), Some(room)) if bytes as u64 > room => {
                return Err(other(format!("it has {room} bytes from there, not {bytes}")));
            }
            (Some(bytes), _) => bytes,
            (None, Some(room)) => usize::try_from(room).unwrap_or(usize::MAX),
            (None, None) => return Err(other("its length is unknown".to_owned())),
        };
        // Half a word at the end does not count.
        let bytes = bytes / WORD * WORD;
        if !(WORD..=MOST_BYTES).contains(&bytes) {
            return Err(other(format!("a window has {WORD} to {MOST_BYTES} bytes, not {bytes}")));
        }
        if i64::try_from(offset).is_err() {
            return Err(other(format!("the offset {offset} is too great for a file")));
        }
        let access = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        let mapping = Mapping::of_file(&file, offset, bytes, access, MapFlags::empty()).map_err(failed)?;
        Ok(Self { mapping, writable, name })
    }

    /// Its size: a whole number of words.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.mapping.bytes()
    }

    /// Reads the word at an offset of bytes.
    ///
    /// # Errors
    /// No word at the offset; the file was truncated.
    #[inline]
    pub fn read(&self, offset: usize) -> Result<u32, DeviceError> {
        let word = self.word(offset)?;
        // SAFETY: within the mapping, which lives as long as `self`, and aligned; a window that was revoked is memory
        // of that size.
        let value = unsafe { word.read_volatile() };
        self.kept("read from").map(|()| value)
    }

    /// Writes the word at an offset of bytes.
    ///
    /// # Errors
    /// As [`read`](Self::read); mapped for reading only.
    #[inline]
    pub fn write(&self, offset: usize, value: u32) -> Result<(), DeviceError> {
        let word = self.word(offset)?;
        if !self.writable {
            return Err(self.read_only());
        }
        // SAFETY: as in `read`; the file was mapped for writing.
        unsafe { word.write_volatile(value) };
        self.kept("write to")
    }

    /// Whether it was revoked.
    pub(crate) fn is_revoked(&self) -> bool {
        self.mapping.is_revoked()
    }

    #[inline]
    pub(crate) fn word(&self, offset: usize) -> Result<NonNull<u32>, DeviceError> {
        if !offset.is_multiple_of(WORD) || offset >= self.bytes() {
            return Err(self.outside(offset));
        }
        // SAFETY: within the mapping, as was just found: its size is a whole number of words.
        Ok(unsafe { self.mapping.address().cast::<u32>().byte_add(offset) })
    }

    #[cold]
    fn outside(&self, offset: usize) -> DeviceError {
        DeviceError {
            attempted: format!("use the word at {offset:#x} of {}", self.name),
            said: format!("the window has {:#x} bytes, in words of {WORD}", self.bytes()),
            remedy: "choose an offset within it that is a multiple of four",
        }
    }

    #[cold]
    fn read_only(&self) -> DeviceError {
        DeviceError {
            attempted: format!("write to {}", self.name),
            said: "it was mapped read-only".to_owned(),
            remedy: "map it for writing",
        }
    }

    #[inline]
    fn kept(&self, attempted: &str) -> Result<(), DeviceError> {
        if self.is_revoked() { Err(self.cut(attempted)) } else { Ok(()) }
    }

    #[cold]
    fn cut(&self, attempted: &str) -> DeviceError {
        DeviceError {
            attempted: format!("{attempted} {}", self.name),
            said: "the file was truncated, or the device is gone".to_owned(),
            remedy: "map it again",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_file_and_nothing_beyond_them_is_reached() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(4098).expect("room");
        let window = Window::map(file.path(), 0, None).expect("mapped");
        assert_eq!(window.bytes(), 4096);
        window.write(8, 0x0102_0304).expect("a word");
        assert_eq!(window.read(8), Ok(0x0102_0304));
        assert_eq!(std::fs::read(file.path()).expect("the file")[8..12], 0x0102_0304_u32.to_ne_bytes());
        for offset in [2, 4096, usize::MAX - 3] {
            assert!(window.read(offset).is_err_and(|error| error.to_string().contains("multiple of four")), "{offset}");
        }
    }

    #[test]
    fn what_is_mapped_for_reading_only_is_read_and_never_written() {
        use std::os::unix::fs::PermissionsExt as _;
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), [7; 8]).expect("two words");
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o400)).expect("ours");
        let window = Window::map_read_only(file.path(), 0, None).expect("mapped");
        assert_eq!(window.read(4), Ok(0x0707_0707));
        assert!(window.write(4, 1).is_err_and(|error| error.to_string().contains("read-only")));
        file.as_file().set_len(0).expect("cut");
        assert!(window.read(4).is_err_and(|error| error.to_string().contains("was truncated")));
    }

    #[test]
    fn a_pipe_without_another_end_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).expect("a pipe");
        let error = Window::map_read_only(&path, 0, None).expect_err("no length").to_string();
        assert!(error.contains("length is unknown"), "{error}");
    }

    #[test]
    fn a_file_that_is_cut_is_an_error_and_no_end_of_the_process() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(8192).expect("room");
        let window = Window::map(file.path(), 4096, None).expect("mapped");
        assert_eq!(window.read(0), Ok(0));
        file.as_file().set_len(0).expect("cut");
        assert!(window.read(0).is_err_and(|error| error.to_string().contains("was truncated")));
        assert!(window.write(0, 1).is_err());
    }

    #[test]
    fn what_cannot_be_mapped_is_told() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(4096).expect("room");
        for (path, offset, bytes, said) in [
            (Path::new("/none"), 0, None, "No such file"),
            (file.path(), 4096, None, "4 to"),
            (file.path(), 0, Some(4100), "not 4100"),
            (file.path(), 12, None, "Invalid argument"),
            (Path::new("/dev/null"), 0, None, "length is unknown"),
        ] {
            let error = Window::map(path, offset, bytes).expect_err(said).to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
