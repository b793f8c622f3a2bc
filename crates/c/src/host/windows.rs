//! Windows: maps files. A mapped file cannot be truncated there, so its words stay valid.

#![expect(unsafe_code, reason = "loads and stores of mapped words")]

use std::fs::OpenOptions;

use memmap2::{MmapOptions, MmapRaw};

use crate::error::{Failure, HS_E_IO};

/// Bytes of a word.
const WORD: usize = size_of::<u32>();

/// A mapped file.
pub(crate) struct Mapped(MmapRaw);

impl Mapped {
    pub(crate) fn open(path: &str, writable: bool) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::new(HS_E_IO, format!("map {path}: {error}"));
        let file = OpenOptions::new().read(true).write(writable).open(path).map_err(failed)?;
        let options = MmapOptions::new();
        let mapped = if writable { options.map_raw(&file) } else { options.map_raw_read_only(&file) };
        mapped.map(Self).map_err(failed)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.len() / WORD * WORD
    }

    #[inline(always)]
    pub(crate) fn read(&self, offset: usize) -> Result<u32, Failure> {
        // SAFETY: see `word`. Others may write to the file; a volatile load of a word is one access whatever they do.
        Ok(unsafe { self.word(offset).read_volatile() })
    }

    #[inline(always)]
    pub(crate) fn write(&self, offset: usize, value: u32) -> Result<(), Failure> {
        // SAFETY: see `word`; the caller has seen that the file was opened for writing, and so it was mapped.
        unsafe { self.word(offset).write_volatile(value) };
        Ok(())
    }

    /// The word at an offset. Aligned and in the mapping, which lives as long as `self`: that is seen here once more.
    #[inline(always)]
    fn word(&self, offset: usize) -> *mut u32 {
        assert!(offset.is_multiple_of(WORD) && offset < self.bytes(), "the caller looks before");
        self.0.as_mut_ptr().wrapping_add(offset).cast()
    }
}
