//! [`View`]: a memory that another process writes to, mapped read-only and copied word by word.

#![expect(unsafe_code, reason = "mapping memory, and looking at it while others write")]

use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};

use super::unmap;
use crate::units::Bytes;

/// A read-only view of a [`Memory`](super::Memory) that other threads write to at the same time.
#[derive(Debug)]
pub struct View {
    address: NonNull<u8>,
    length: usize,
}

// SAFETY: only this value uses the mapping, and `copy` only reads it, word by word.
unsafe impl Send for View {}
// SAFETY: a copy reads only; two at once are two readers.
unsafe impl Sync for View {}

impl View {
    /// Maps `size` bytes of a file read-only. The caller has checked that the file has this length and cannot become
    /// shorter.
    ///
    /// # Errors
    /// The kernel refuses the mapping.
    pub fn map(file: impl AsFd, size: Bytes) -> io::Result<Self> {
        let length = usize::try_from(size.0).map_err(|_| Errno::NOMEM)?;
        // SAFETY: maps a file at an address of the kernel's choice; nothing that exists is touched.
        let address = unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, file, 0)? };
        Ok(Self { address: NonNull::new(address.cast()).ok_or(Errno::NOMEM)?, length })
    }

    /// Copies bytes from a position in the ring (modulo its size). A concurrent write can tear the copy. The caller
    /// checks the cursors afterwards and discards the copy if the producer may have written there.
    ///
    /// # Panics
    /// If `into` is larger than the memory.
    pub fn copy(&self, position: u64, into: &mut [u8]) {
        assert!(into.len() <= self.length, "more than the ring holds");
        let at = (position % self.length as u64) as usize;
        let (first, second) = into.split_at_mut(into.len().min(self.length - at));
        self.copy_piece(at, first);
        self.copy_piece(0, second);
    }

    /// Copies bytes that do not cross the seam, as whole words if their addresses allow it.
    fn copy_piece(&self, at: usize, into: &mut [u8]) {
        const WORD: usize = size_of::<u64>();
        debug_assert!(at + into.len() <= self.length, "over the seam");
        let byte = |at: usize| {
            // SAFETY: `at` is below the length of the mapping: `copy` splits at its end. The read is volatile and of a
            // mapping of its own, because the bytes change like those of a device; no reference to them is ever made.
            unsafe { self.address.add(at).read_volatile() }
        };
        // The mapping begins at a page, so an aligned offset is an aligned address.
        let before = into.len().min(at.next_multiple_of(WORD) - at);
        let (head, rest) = into.split_at_mut(before);
        head.iter_mut().enumerate().for_each(|(number, to)| *to = byte(at + number));
        let at = at + before;
        let (words, tail) = rest.as_chunks_mut::<WORD>();
        for (number, to) in words.iter_mut().enumerate() {
            // SAFETY: the word ends within the mapping, as above, and its address is a multiple of its size. Volatile,
            // as above.
            *to = unsafe { self.address.add(at + number * WORD).cast::<u64>().read_volatile() }.to_ne_bytes();
        }
        let at = at + words.len() * WORD;
        tail.iter_mut().enumerate().for_each(|(number, to)| *to = byte(at + number));
    }
}

impl Drop for View {
    fn drop(&mut self) {
        unmap(self.address, self.length);
    }
}
