//! The memories that are attached to a store, and the pieces of them.

#![expect(unsafe_code, reason = "moves bytes between attached memories and files, or a disk in memory")]

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;
use std::sync::Arc;

use super::{MemoryId, Piece};
use hairspring_ring::memory::Memory;

/// The memories of a store, kept mapped as long as operations on them may be under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Memories {
    all: Vec<Arc<Memory>>,
}

impl Memories {
    pub(super) fn attach(&mut self, memory: Arc<Memory>) -> MemoryId {
        let id = MemoryId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        self.all.push(memory);
        id
    }

    /// The addresses of a piece.
    ///
    /// # Panics
    /// If the memory is not attached here, or the piece reaches out of it.
    pub(super) fn span(&self, piece: Piece) -> Span<'_> {
        let memory = self.all.get(piece.memory.0 as usize).expect("a piece of a memory that is attached to this store");
        let end = piece.at.checked_add(piece.length).expect("a piece that ends");
        assert!(end <= memory.reach(), "{piece:?} reaches out of its memory of {} bytes", memory.reach());
        // SAFETY: `at` is within the reach of the memory, by the assertion above.
        let address = unsafe { memory.address().add(piece.at) };
        Span { address, length: piece.length, memory: PhantomData }
    }
}

/// A range of addresses in a memory that stays mapped as long as this value lives. The submitter of an operation lends
/// its piece until the operation is complete; the ring's cursors see to that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span<'memories> {
    address: NonNull<u8>,
    length: usize,
    memory: PhantomData<&'memories Memory>,
}

impl Span<'_> {
    pub(super) fn address(&self) -> *mut u8 {
        self.address.as_ptr()
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Writes the range at an offset of a file. Returns the number of bytes written.
    pub(super) fn write_at(&self, file: &File, at: u64) -> io::Result<u64> {
        // SAFETY: the kernel reads at most `length` bytes, which stay mapped while the span lives.
        counted(unsafe { libc::pwrite64(file.as_raw_fd(), self.address().cast(), self.length, offset(at)?) })
    }

    /// Reads from an offset of a file into the range. Returns the number of bytes read.
    pub(super) fn read_at(&self, file: &File, at: u64) -> io::Result<u64> {
        // SAFETY: the kernel writes at most `length` bytes, which stay mapped while the span lives; the caller that
        // submitted the read has lent them.
        counted(unsafe { libc::pread64(file.as_raw_fd(), self.address().cast(), self.length, offset(at)?) })
    }

    /// Shortens the range to its first bytes.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn first(self, length: usize) -> Self {
        Self { length: length.min(self.length), ..self }
    }

    /// Copies the present bytes out.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn copy_out(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length];
        // SAFETY: `length` bytes are mapped at the address while the span lives (see `Memories::span`), the vector is
        // as long and new, so the two do not overlap; no thread writes to a piece that is lent for writing it to the
        // disk.
        unsafe { std::ptr::copy_nonoverlapping(self.address(), bytes.as_mut_ptr(), self.length) };
        bytes
    }

    /// Copies bytes to its beginning, as many as fit.
    pub(super) fn copy_in(&self, bytes: &[u8]) {
        let length = self.length.min(bytes.len());
        // SAFETY: no more than `length` bytes, which are mapped at the address while the span lives; the slice is of
        // another allocation; no other thread touches a piece that is lent for reading into it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.address(), length) };
    }
}

fn offset(at: u64) -> io::Result<i64> {
    i64::try_from(at).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))
}

fn counted(result: isize) -> io::Result<u64> {
    u64::try_from(result).map_err(|_| io::Error::last_os_error())
}
