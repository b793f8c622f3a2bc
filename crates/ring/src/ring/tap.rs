//! [`Tap`]: reads a ring in the same process without consuming, and shares it with other processes.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::{Fill, Shared};
use crate::memory::{View, seal};

/// Reads the newest data of a ring without taking them and without delaying the producer or the consumer.
#[derive(Debug)]
pub struct Tap {
    shared: Arc<Shared>,
    view: View,
}

impl Tap {
    pub(super) fn new(shared: &Arc<Shared>) -> Option<Self> {
        Some(Self { view: shared.memory.view()?, shared: Arc::clone(shared) })
    }

    /// Position after the newest byte.
    pub fn head(&self) -> u64 {
        self.shared.cursors.head()
    }

    /// Copies the bytes from a position on. `false` if they are not there yet or were overwritten: then the contents of
    /// `into` are undefined.
    pub fn copy(&self, position: u64, into: &mut [u8]) -> bool {
        let capacity = self.shared.cursors.capacity();
        if into.len() as u64 > capacity || position + into.len() as u64 > self.head() {
            return false;
        }
        self.view.copy(position, into);
        self.shared.cursors.is_intact(position)
    }

    /// The present state of the ring.
    pub fn fill(&self) -> Fill {
        self.shared.fill()
    }

    /// Whether the stream has ended.
    pub fn is_closed(&self) -> bool {
        self.shared.closed.get().is_some()
    }

    /// Descriptors with which other processes map the ring. Seals both files first: from then on no process can make a
    /// writable mapping or change their lengths. Mappings of this process stay as they are.
    ///
    /// # Errors
    /// The kernel refuses a seal, or lets a sealed file be mapped for writing (hugetlb before Linux 5.13).
    pub fn share(&self) -> std::io::Result<SharedRing> {
        let page = self.shared.page.file().ok_or(std::io::ErrorKind::Unsupported)?;
        seal(page)?;
        Ok(SharedRing { ring: self.shared.memory.sealed()?, page: page.try_clone()? })
    }
}

/// Descriptors of a ring's memory and of its page, for a reader in another process. Both can only be mapped read-only.
#[derive(Debug)]
pub struct SharedRing {
    /// The memory of the ring, mapped once: a reader handles the seam.
    pub ring: OwnedFd,
    /// The page.
    pub page: OwnedFd,
}
