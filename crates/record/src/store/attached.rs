//! Memories that are attached to a store, and what this crate promises about them.

#![expect(unsafe_code, reason = "attaches memories, and gives out their bytes")]

use std::sync::Arc;

use hairspring_ring::Consumer;
use hairspring_ring::memory::Memory;

use super::{MemoryId, Store};

/// Attaches a ring's memory to the store that writes it to the disk.
pub(crate) fn attach(ring: &Consumer, store: &mut dyn Store) -> MemoryId {
    // SAFETY: the recorder alone has the id; it writes only pieces between the tail and `next`, which it releases when
    // their writes are complete. Until then nobody has a mutable reference to them, by the protocol of the cursors.
    unsafe { store.attach(Arc::clone(ring.memory())) }
}

/// A plain memory whose bytes one owner writes, and stores read on their way to a disk.
#[derive(Debug)]
pub(crate) struct Scratch {
    memory: Arc<Memory>,
}

impl Scratch {
    /// Takes a memory of its own and attaches it to the one store that works on it.
    pub(crate) fn attached(memory: Memory, store: &mut dyn Store) -> (Self, MemoryId) {
        let memory = Arc::new(memory);
        // SAFETY: only `bytes` gives out references to the memory, for which this value is borrowed; its owners in this crate
        // keep the id to themselves and call `bytes` only for pieces without an operation, as it demands.
        let id = unsafe { store.attach(Arc::clone(&memory)) };
        (Self { memory }, id)
    }

    /// A piece to be written to or read. No operation on it may be under way.
    pub(crate) fn bytes(&mut self, at: usize, length: usize) -> &mut [u8] {
        assert!(at.checked_add(length).is_some_and(|end| end <= self.memory.reach()), "beyond the memory");
        // SAFETY: within the reach, asserted above. This value was given the memory and hands out slices one at a time; the
        // other owners of the Arc are stores, which reach the bytes through the kernel or raw pointers, never by reference.
        unsafe { std::slice::from_raw_parts_mut(self.memory.address().as_ptr().add(at), length) }
    }
}
