//! [`Arena`]: memory on pages of one kind, moved through block by block.
//!
//! The kind of pages is read back from the kernel. If the requested pages are unavailable, opening an arena fails with
//! the reason.

#![expect(unsafe_code, reason = "makes a slice of mapped memory")]

use hairspring_ring::{Bytes, Memory, Pages};
use hairspring_sheet::Absent;

use super::operation::Operation;

/// The kinds of pages that a sweep is taken on.
pub(crate) const PAGES: [Pages; 3] = [Pages::Small, Pages::Transparent, Pages::Huge2M];

/// Memory in two halves: operations read from the first and write to the second.
#[derive(Debug)]
pub struct Arena {
    memory: Memory,
    /// Offset in each half at which the next walk continues.
    cursor: usize,
    /// Whether the walks have wrapped around in one of the two halves.
    crossed: bool,
}

impl Arena {
    /// An arena of `size` on these pages.
    ///
    /// # Errors
    /// The kernel gave other pages, or none.
    pub fn new(size: Bytes, pages: Pages) -> Result<Self, Absent> {
        Self::with_remedy(size, pages, huge_pages(size))
    }

    /// The same; the remedy for missing huge pages names a number of them that the caller knows to be enough for all.
    pub(super) fn with_remedy(size: Bytes, pages: Pages, set_aside: u64) -> Result<Self, Absent> {
        Ok(Self { memory: on_pages(Memory::plain, size, pages, set_aside)?, cursor: 0, crossed: false })
    }

    /// Does the same to the same block, `times` over: a block that fits into a cache stays there.
    ///
    /// # Panics
    /// If a half is smaller than the block.
    pub fn repeat(&mut self, operation: Operation, block: Bytes, times: u64) {
        let (source, target) = self.halves();
        let length = usize::try_from(block.0).unwrap_or(usize::MAX);
        let (source, target) = (&source[..length], &mut target[..length]);
        for _ in 0..times {
            operation.run(source, target);
        }
    }

    /// Goes through all of the arena in windows: no byte is touched again before all others were. Returns after `times`
    /// windows, and goes on from there the next time. Reading and writing go through both halves.
    ///
    /// # Panics
    /// If a half is smaller than the window.
    pub fn walk(&mut self, operation: Operation, window: Bytes, times: u64) {
        let length = usize::try_from(window.0).unwrap_or(usize::MAX);
        let half = self.memory.reach() / 2;
        let (mut cursor, mut crossed) = (self.cursor, self.crossed);
        let advance = |cursor: &mut usize| *cursor = if *cursor + 2 * length > half { 0 } else { *cursor + length };
        if operation.is_copy() && std::mem::take(&mut crossed) {
            advance(&mut cursor);
        }
        let (first, second) = self.halves();
        for _ in 0..times {
            let (from, to) = (&mut first[cursor..cursor + length], &mut second[cursor..cursor + length]);
            if crossed {
                operation.run(to, from);
            } else {
                operation.run(from, to);
            }
            // One that only reads or only writes has its turns in both halves alternately.
            crossed = !operation.is_copy() && !crossed;
            if !crossed {
                advance(&mut cursor);
            }
        }
        (self.cursor, self.crossed) = (cursor, crossed);
    }

    /// The two halves.
    fn halves(&mut self) -> (&mut [u8], &mut [u8]) {
        let bytes = bytes(&mut self.memory);
        let half = bytes.len() / 2;
        bytes.split_at_mut(half)
    }
}

/// A way to get memory: size, the least that would do, pages.
type Source = fn(Bytes, Bytes, Pages) -> Result<Memory, hairspring_ring::memory::MemoryError>;

/// All of a memory, once, also where it is mapped twice.
pub(super) fn bytes(memory: &mut Memory) -> &mut [u8] {
    let length = usize::try_from(memory.size().0).unwrap_or(0);
    // SAFETY: the address is valid for the size of the memory, which lives at least as long as the slice and is
    // borrowed mutably for as long: its holder has it alone, so no ring, store or second slice reaches the bytes
    // meanwhile. A second mapping of the same bytes is not touched through this slice or any other.
    unsafe { std::slice::from_raw_parts_mut(memory.address().as_ptr(), length) }
}

/// Memory that is on these pages by the kernel's own account.
pub(super) fn on_pages(source: Source, size: Bytes, pages: Pages, set_aside: u64) -> Result<Memory, Absent> {
    if pages == Pages::Huge2M {
        // Two pages show whether any are set aside, before much memory on other pages is made present in vain.
        let few = Bytes::mib(2);
        checked(source(few, few, pages), pages, set_aside)?;
    }
    checked(source(size, size, pages), pages, set_aside)
}

/// Huge pages that a memory needs, with some for others.
pub(super) fn huge_pages(size: Bytes) -> u64 {
    size.0.div_ceil(2 << 20) + 8
}

fn checked(
    memory: Result<Memory, hairspring_ring::memory::MemoryError>,
    pages: Pages,
    set_aside: u64,
) -> Result<Memory, Absent> {
    let memory = match memory {
        Ok(memory) => memory,
        Err(error) => {
            return Err(Absent::new(error.to_string(), "free memory, or take the sheet on a machine that has more"));
        }
    };
    let granted = memory.granted();
    if granted.pages == pages {
        return Ok(memory);
    }
    let why = granted.refused.first().map_or_else(String::new, |refused| format!(": {refused}"));
    let file = if memory.reach() as u64 > memory.size().0 { "shmem_enabled" } else { "enabled" };
    let remedy = match pages {
        Pages::Huge2M | Pages::Huge1G => format!("sysctl vm.nr_hugepages={set_aside}"),
        Pages::Small => format!("echo madvise > /sys/kernel/mm/transparent_hugepage/{file}"),
        Pages::Transparent if file == "enabled" => {
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled".to_owned()
        }
        Pages::Transparent => "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled".to_owned(),
    };
    Err(Absent::new(format!("{pages} are not available; the kernel gave {}{why}", granted.pages), remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arena_is_on_the_pages_it_was_asked_for_or_says_what_would_help() {
        for pages in PAGES {
            match Arena::new(Bytes::mib(4), pages) {
                Ok(arena) => assert_eq!(arena.memory.granted().pages, pages),
                Err(absent) => assert!(absent.remedy.is_some(), "{}", absent.reason),
            }
        }
    }

    #[test]
    fn a_walk_touches_everything_before_it_begins_again() {
        let mut arena = Arena::new(Bytes::kib(64), Pages::Small).expect("64 KiB");
        bytes(&mut arena.memory)[..32 << 10].fill(1);
        // Eight windows to a half.
        arena.walk(Operation::Copy, Bytes::kib(4), 7);
        assert_eq!(arena.halves().1.iter().filter(|byte| **byte == 1).count(), 28 << 10);
        arena.walk(Operation::CopyNt, Bytes::kib(4), 1);
        assert!(arena.halves().1.iter().all(|byte| *byte == 1) && arena.cursor == 0);
        arena.walk(Operation::Write, Bytes::kib(4), 15);
        let left = bytes(&mut arena.memory).iter().filter(|byte| **byte == 1).count();
        assert_eq!(left, 4 << 10);
        arena.walk(Operation::Write, Bytes::kib(4), 1);
        assert!(bytes(&mut arena.memory).iter().all(|byte| *byte != 1) && arena.cursor == 0);
    }
}
