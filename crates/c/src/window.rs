//! A file, or the window of a card, mapped into memory: words of 32 bits, read and written one at a time.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::{c_char, c_int};

use crate::error::{Failure, HS_E_IO, HS_E_RANGE, HS_E_READ_ONLY, HS_OK, door};
use crate::handle::{Kind, Shared, free, make};
use crate::host::Mapped;
use crate::pointer::{Place, text};

/// Bytes of a word.
const WORD: usize = size_of::<u32>();

/// A mapped file. Any number of threads may use it.
pub struct hs_window(());

pub(crate) struct OwnedWindow {
    mapped: Mapped,
    writable: bool,
}

impl Kind for hs_window {
    type Owned = OwnedWindow;
    const WORD: u64 = u64::from_le_bytes(*b"mappedfl");
    const NAME: &'static str = "window";
}

/// Maps a whole file of at most a GiB: an ordinary file, or the memory of an enabled PCI card
/// (/sys/bus/pci/devices/…/resource0). Writes go to the file. With `writable` 0 the window is read-only. If the file is
/// truncated or the card disappears, accesses return HS_E_IO. On Linux a SIGBUS handler does that; the first window
/// installs it, and it passes other faults on. A process has at most 256 windows. On Windows no process can truncate a
/// mapped file. HS_E_IO, HS_E_RANGE (shorter than a word).
#[unsafe(no_mangle)]
pub extern "C" fn hs_window_open(path: *const c_char, writable: c_int, window: *mut *mut hs_window) -> c_int {
    door(|| {
        let place = Place::new(window)?;
        let path = text(path)?;
        let writable = writable != 0;
        // Checked before it is opened, because opening a pipe would wait for its other end.
        let metadata = std::fs::metadata(path);
        if metadata.map_err(|error| Failure::new(HS_E_IO, format!("map {path}: {error}")))?.len() < WORD as u64 {
            let text =
                format!("map {path}: it has no word of {WORD} bytes; give a file that has the length of its memory");
            return Err(Failure::new(HS_E_RANGE, text));
        }
        place.put(make(OwnedWindow { mapped: Mapped::open(path, writable)?, writable }));
        Ok(())
    })
}

/// Its size in bytes; a multiple of the word.
#[unsafe(no_mangle)]
pub extern "C" fn hs_window_bytes(window: *const hs_window, bytes: *mut usize) -> c_int {
    door(|| {
        let place = Place::new(bytes)?;
        place.put(Shared::of(window)?.mapped.bytes());
        Ok(())
    })
}

/// Reads the word at an offset of bytes (a multiple of 4 within the window), by one load, in the byte order of the
/// machine. Real-time safe. HS_E_RANGE, HS_E_IO.
#[unsafe(no_mangle)]
pub extern "C" fn hs_window_read_u32(window: *const hs_window, offset_bytes: usize, value: *mut u32) -> c_int {
    // Without the guard of other calls, because nothing here panics and a word must cost no more than the access.
    let read = || {
        let place = Place::new(value)?;
        let window = Shared::of(window)?;
        place.put(window.mapped.read(window.within(offset_bytes)?)?);
        Ok(())
    };
    read().map_or_else(Failure::tell, |()| HS_OK)
}

/// Writes the word at an offset of bytes (a multiple of 4 within the window), by one store. Real-time safe. HS_E_RANGE,
/// HS_E_READ_ONLY, HS_E_IO.
#[unsafe(no_mangle)]
pub extern "C" fn hs_window_write_u32(window: *const hs_window, offset_bytes: usize, value: u32) -> c_int {
    let write = || {
        let window = Shared::of(window)?;
        let offset = window.within(offset_bytes)?;
        if !window.writable {
            return Err(Failure::new(HS_E_READ_ONLY, "write a word: the window is read-only"));
        }
        window.mapped.write(offset, value)
    };
    write().map_or_else(Failure::tell, |()| HS_OK)
}

/// Frees a window. NULL is allowed. HS_E_FREED, HS_E_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn hs_window_free(window: *mut hs_window) -> c_int {
    door(|| free(window))
}

impl OwnedWindow {
    #[inline(always)]
    fn within(&self, offset: usize) -> Result<usize, Failure> {
        if offset.is_multiple_of(WORD) && offset < self.mapped.bytes() { Ok(offset) } else { Err(self.outside(offset)) }
    }

    #[cold]
    fn outside(&self, offset: usize) -> Failure {
        let bytes = self.mapped.bytes();
        Failure::new(HS_E_RANGE, format!("use the word at {offset}: the window has {bytes} bytes, in words of {WORD}"))
    }
}
