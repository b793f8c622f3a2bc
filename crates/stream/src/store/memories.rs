//! The memories that are attached to a store, and the pieces of them.

#![expect(unsafe_code, reason = "copies bytes between attached memories and a disk in memory")]

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use super::{MemoryId, Piece};
use crate::memory::Memory;

/// Keeps memories mapped as long as a store may have operations on them.
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

/// A range of addresses in a memory that stays mapped meanwhile. Who may touch the bytes is settled by the ring's cursors: who
/// submits an operation lends its piece until the operation is complete.
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

    /// The first bytes alone.
    pub(super) fn first(self, length: usize) -> Self {
        Self { length: length.min(self.length), ..self }
    }

    /// What is in it now.
    pub(super) fn copy_out(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length];
        // SAFETY: `length` bytes are mapped at the address while the span lives (see `Memories::span`), the vector is as long
        // and new, so the two do not overlap; nobody writes to a piece that is lent for writing it to the disk.
        unsafe { std::ptr::copy_nonoverlapping(self.address(), bytes.as_mut_ptr(), self.length) };
        bytes
    }

    /// Puts bytes at its beginning, as many as fit.
    pub(super) fn copy_in(&self, bytes: &[u8]) {
        let length = self.length.min(bytes.len());
        // SAFETY: no more than `length` bytes, which are mapped at the address while the span lives; the slice is of another
        // allocation; nobody else touches a piece that is lent for reading into it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.address(), length) };
    }
}
