//! [`Mapping`]: memory mapped for this process, from a file, a device or anonymous, until it is dropped.
//!
//! The kernel may take it away earlier: then zeroed memory replaces it, and [`Mapping::is_revoked`] returns true (see
//! `revoked.rs`). The owners, pages and windows, decide how the memory is read and written.

#![expect(unsafe_code, reason = "maps and unmaps memory")]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use super::revoked::Revocable;

/// Mapped memory. It begins at a page.
#[derive(Debug)]
pub(crate) struct Mapping {
    address: NonNull<u8>,
    bytes: usize,
    revocable: Revocable,
    is_left: bool,
}

// SAFETY: an address and its length, both constant; owners access the memory by atomics or by single volatile accesses.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes` bytes of a file from `offset` on, shared with all other mappings of it.
    pub(crate) fn of_file(
        file: &File,
        offset: u64,
        bytes: usize,
        access: ProtFlags,
        flags: MapFlags,
    ) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice; nothing that exists is touched.
        let address = unsafe { mmap(null_mut(), bytes, access, MapFlags::SHARED | flags, file, offset)? };
        Self::watched(address, bytes)
    }

    /// Maps zeroed memory that this process shares with those that it forks.
    pub(crate) fn of_process(bytes: usize, access: ProtFlags, flags: MapFlags) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice; nothing that exists is touched.
        let address = unsafe { mmap_anonymous(null_mut(), bytes, access, MapFlags::SHARED | flags)? };
        Self::watched(address, bytes)
    }

    fn watched(address: *mut c_void, bytes: usize) -> io::Result<Self> {
        let begin = NonNull::new(address.cast()).ok_or_else(|| io::Error::other("it lies at address 0"))?;
        match Revocable::new(address as usize, bytes) {
            Ok(revocable) => Ok(Self { address: begin, bytes, revocable, is_left: false }),
            Err(error) => {
                // SAFETY: exactly the range that was mapped, which was not handed out.
                let _ = unsafe { munmap(address, bytes) };
                Err(error)
            }
        }
    }

    /// Its first byte.
    #[inline]
    pub(crate) fn address(&self) -> NonNull<u8> {
        self.address
    }

    /// Its size.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the kernel has revoked it. Correct after an access.
    #[inline]
    pub(crate) fn is_revoked(&self) -> bool {
        self.revocable.is_revoked()
    }

    /// Leaves the memory mapped for ever, for a holder of an address in it.
    pub(crate) fn leave(&mut self) {
        self.is_left = true;
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if !self.is_left {
            self.revocable.release();
            // SAFETY: exactly what was mapped, or the memory that has replaced it; no borrow of it outlives its owner.
            let _ = unsafe { munmap(self.address.as_ptr().cast(), self.bytes) };
        }
    }
}
