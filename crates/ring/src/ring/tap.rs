//! [`Tap`]: looks on at a ring from the same process, and shares it with others.

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

    /// Position behind the newest byte.
    pub fn head(&self) -> u64 {
        self.shared.cursors.head()
    }

    /// Copies the bytes from a position on. `false` if they are not there yet or were overwritten: then the contents of `into` are undefined.
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

    /// The descriptors by which other processes look on. First seals both files: nobody can make a mapping that may be written to any
    /// more, and nobody can change their lengths. What this process has mapped stays as it is.
    ///
    /// # Errors
    /// The kernel refuses a seal, or lets a sealed file be mapped for writing (hugetlb before Linux 5.13).
    pub fn share(&self) -> std::io::Result<SharedRing> {
        let page = self.shared.page.file().ok_or(std::io::ErrorKind::Unsupported)?;
        seal(page)?;
        Ok(SharedRing { ring: self.shared.memory.sealed()?, page: page.try_clone()? })
    }
}

/// What another process needs to look on: the memory of a ring, and its page. Both can only be mapped read-only.
#[derive(Debug)]
pub struct SharedRing {
    /// The memory of the ring, mapped once: a reader handles the seam.
    pub ring: OwnedFd,
    /// The page.
    pub page: OwnedFd,
}
