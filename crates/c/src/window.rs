//! A file, or the window of a card, mapped into memory: words of 32 bits, read and written one at a time.

#![expect(unsafe_code, reason = "loads and stores of mapped words; names of exported functions")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::{c_char, c_int};
use std::fs::OpenOptions;

use memmap2::{MmapOptions, MmapRaw};

use crate::error::{Failure, HS_E_IO, HS_E_RANGE, HS_E_READ_ONLY, HS_OK, door};
use crate::handle::{Kind, Shared, free, make};
use crate::pointer::{Place, text};

/// Bytes of a word.
const WORD: usize = size_of::<u32>();

/// A mapped file. Any number of threads may use it.
pub struct hs_window(());

pub(crate) struct OwnedWindow {
    mapped: MmapRaw,
    writable: bool,
}

impl Kind for hs_window {
    type Owned = OwnedWindow;
    const WORD: u64 = u64::from_le_bytes(*b"mappedfl");
    const NAME: &'static str = "window";
}

/// Maps a whole file as it is: an ordinary one, or the memory of a PCI card (/sys/bus/pci/devices/…/resource0, enabled before). Who
/// writes to it writes to the file. `writable` 0 maps it for reading only. While it is mapped the file must not become shorter: an
/// access beyond its end ends the process (SIGBUS), and nothing here can prevent it. HS_E_IO, HS_E_RANGE (shorter than a word).
#[unsafe(no_mangle)]
pub extern "C" fn hs_window_open(path: *const c_char, writable: c_int, window: *mut *mut hs_window) -> c_int {
    door(|| {
        let place = Place::new(window)?;
        let path = text(path)?;
        let writable = writable != 0;
        let failed = |error: std::io::Error| Failure::new(HS_E_IO, format!("map {path}: {error}"));
        let file = OpenOptions::new().read(true).write(writable).open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() < WORD as u64 {
            let text =
                format!("map {path}: it has no word of {WORD} bytes; give a file that has the length of its memory");
            return Err(Failure::new(HS_E_RANGE, text));
        }
        let options = MmapOptions::new();
        let mapped = if writable { options.map_raw(&file) } else { options.map_raw_read_only(&file) };
        place.put(make(OwnedWindow { mapped: mapped.map_err(failed)?, writable }));
        Ok(())
    })
}

/// Its size.
#[unsafe(no_mangle)]
pub extern "C" fn hs_window_bytes(window: *const hs_window, bytes: *mut usize) -> c_int {
    door(|| {
        let place = Place::new(bytes)?;
        place.put(Shared::of(window)?.mapped.len());
        Ok(())
    })
}

/// Reads the word at an offset of bytes (a multiple of 4 within the window), by one load, in the byte order of the machine. Real-time
/// safe. HS_E_RANGE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_window_read_u32(window: *const hs_window, offset_bytes: usize, value: *mut u32) -> c_int {
    // Without the door: nothing here panics, and a word may cost no more than the access.
    let read = || {
        let place = Place::new(value)?;
        let window = Shared::of(window)?;
        let word = window.word(offset_bytes)?;
        // SAFETY: `word` lies in the mapping and is aligned, and the mapping stays as long as the handle is counted. Others may write
        // to the file; a volatile load of a word is one access whatever they do.
        place.put(unsafe { word.read_volatile() });
        Ok(())
    };
    read().map_or_else(Failure::tell, |()| HS_OK)
}

/// Writes the word at an offset of bytes (a multiple of 4 within the window), by one store. Real-time safe. HS_E_RANGE,
/// HS_E_READ_ONLY.
#[unsafe(no_mangle)]
pub extern "C" fn hs_window_write_u32(window: *const hs_window, offset_bytes: usize, value: u32) -> c_int {
    let write = || {
        let window = Shared::of(window)?;
        let word = window.word(offset_bytes)?;
        if !window.writable {
            return Err(Failure::new(HS_E_READ_ONLY, "write a word: the window was opened for reading only"));
        }
        // SAFETY: as for the load; and the file was mapped for writing.
        unsafe { word.write_volatile(value) };
        Ok(())
    };
    write().map_or_else(Failure::tell, |()| HS_OK)
}

/// Gives a window back. NULL is allowed. HS_E_FREED, HS_E_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn hs_window_free(window: *mut hs_window) -> c_int {
    door(|| free(window))
}

impl OwnedWindow {
    #[inline(always)]
    fn word(&self, offset: usize) -> Result<*mut u32, Failure> {
        // Checked when it was opened: there is at least one word.
        if offset.is_multiple_of(WORD) && offset <= self.mapped.len() - WORD {
            return Ok(self.mapped.as_mut_ptr().wrapping_add(offset).cast());
        }
        Err(self.outside(offset))
    }

    #[cold]
    fn outside(&self, offset: usize) -> Failure {
        let bytes = self.mapped.len();
        Failure::new(HS_E_RANGE, format!("use the word at {offset}: the window has {bytes} bytes, in words of {WORD}"))
    }
}
