//! [`LentMemory`]: a memory that one store may use, and the memories that this crate lends.

#![expect(unsafe_code, reason = "attaches memories, and gives out their bytes")]

use std::sync::Arc;

use hairspring_ring::memory::{Memory, Pages};
use hairspring_ring::units::Bytes;

use super::{MemoryId, Store};

/// A memory whose bytes are lent to a store, one piece for each operation.
#[derive(Debug)]
pub struct LentMemory(Arc<Memory>);

impl LentMemory {
    /// Lends a memory to the store that it will be attached to.
    ///
    /// # Safety
    /// The caller guarantees, for every operation on the memory that is submitted to that store, from its submission to
    /// its completion:
    /// - No reference exists to bytes that are read into.
    /// - No mutable reference exists to bytes that are written to the disk.
    /// - No operation on another store touches these bytes.
    ///
    /// So the caller that attaches a memory keeps the store, or the id, to itself.
    pub unsafe fn new(memory: Arc<Memory>) -> Self {
        Self(memory)
    }

    /// The same memory once more, for a store that consists of two: it gives each operation to one of them.
    pub(super) fn again(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl From<LentMemory> for Arc<Memory> {
    fn from(lent: LentMemory) -> Self {
        lent.0
    }
}

/// Buffers from this size on are on huge pages if possible.
const HUGE: Bytes = Bytes::mib(4);

/// The pages for a buffer of this size. Huge pages are faster to allocate. Also, many disks limit the memory pieces per
/// transfer, and in all transfers together, so with small pages they have fewer and shorter transfers under way.
pub fn pages_for(size: Bytes) -> Pages {
    if size >= HUGE { Pages::Transparent } else { Pages::Small }
}

/// Attaches a ring's memory to the store that writes it to the disk.
pub fn attach(ring: &Arc<Memory>, store: &mut dyn Store) -> MemoryId {
    // SAFETY: the recorder alone has the id; it writes only pieces between the tail and `next` that it took itself, and
    // they are released when their writes are complete. Until then no mutable reference to them exists, by the protocol
    // of the cursors. The recorders of other segments write other pieces of the same ring through their own stores:
    // each piece is taken once.
    let memory = unsafe { LentMemory::new(Arc::clone(ring)) };
    store.attach(memory)
}

/// A plain memory that its owner fills and a store writes to a disk.
#[derive(Debug)]
pub struct Scratch {
    memory: Arc<Memory>,
}

impl Scratch {
    /// Allocates a memory and attaches it to the store that uses it.
    pub fn attached(memory: Memory, store: &mut dyn Store) -> (Self, MemoryId) {
        let memory = Arc::new(memory);
        // SAFETY: only `bytes` gives out references to the memory, for which this value is borrowed; its owners in this
        // crate keep the id to themselves and call `bytes` only for pieces without an operation, as it demands.
        let lent = unsafe { LentMemory::new(Arc::clone(&memory)) };
        (Self { memory }, store.attach(lent))
    }

    /// The bytes of a piece. Nothing may be read into them meanwhile; they may be written to the disk.
    pub fn view(&self, at: usize, length: usize) -> &[u8] {
        assert!(at.checked_add(length).is_some_and(|end| end <= self.memory.reach()), "beyond the memory");
        // SAFETY: within the reach, asserted above. This value was given the memory, and it is borrowed, so `bytes`
        // gives out no mutable reference; the store only reads these bytes.
        unsafe { std::slice::from_raw_parts(self.memory.address().as_ptr().add(at).cast_const(), length) }
    }

    /// The bytes of a piece. No operation on them may be under way.
    pub fn bytes(&mut self, at: usize, length: usize) -> &mut [u8] {
        assert!(at.checked_add(length).is_some_and(|end| end <= self.memory.reach()), "beyond the memory");
        // SAFETY: within the reach, asserted above. This value was given the memory and hands out slices one at a time;
        // the other owners of the Arc are stores, which reach the bytes through the kernel or raw pointers, never by
        // reference.
        unsafe { std::slice::from_raw_parts_mut(self.memory.address().as_ptr().add(at), length) }
    }
}
