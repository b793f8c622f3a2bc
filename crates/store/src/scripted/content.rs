//! The bytes of a file in memory, and changes that are not durable yet.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::script::Chance;

/// The unit that a disk writes wholly or not at all, in bytes.
pub(super) const SECTOR_BYTES: usize = 512;

/// Size of the blocks in memory. A missing block is all zeros.
const BLOCK_BYTES: usize = 4096;

/// The bytes of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) length: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
}

impl Content {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut content = Self::default();
        content.write(0, bytes);
        content
    }

    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) {
        let mut rest = bytes;
        let mut position = at;
        while !rest.is_empty() {
            let within = (position % BLOCK_BYTES as u64) as usize;
            let (now, later) = rest.split_at(rest.len().min(BLOCK_BYTES - within));
            let block = self.blocks.entry(position / BLOCK_BYTES as u64);
            block.or_insert_with(|| vec![0; BLOCK_BYTES].into())[within..within + now.len()].copy_from_slice(now);
            position += now.len() as u64;
            rest = later;
        }
        self.length = self.length.max(position);
    }

    /// Bytes from an offset on, fewer at the end of the file.
    pub(super) fn read(&self, at: u64, length: usize) -> Vec<u8> {
        let length = (self.length.saturating_sub(at)).min(length as u64) as usize;
        let mut bytes = vec![0; length];
        let mut done = 0;
        while done < length {
            let position = at + done as u64;
            let within = (position % BLOCK_BYTES as u64) as usize;
            let count = (length - done).min(BLOCK_BYTES - within);
            if let Some(block) = self.blocks.get(&(position / BLOCK_BYTES as u64)) {
                bytes[done..done + count].copy_from_slice(&block[within..within + count]);
            }
            done += count;
        }
        bytes
    }

    pub(super) fn truncate(&mut self, length: u64) {
        if length < self.length {
            self.blocks.retain(|index, _| index * (BLOCK_BYTES as u64) < length);
            let within = (length % BLOCK_BYTES as u64) as usize;
            if let Some(block) = self.blocks.get_mut(&(length / BLOCK_BYTES as u64)) {
                block[within..].fill(0);
            }
        }
        self.length = length;
    }

    /// The pieces that are not known to be zeros: offset and bytes.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.blocks.iter().map(|(index, block)| {
            let at = index * BLOCK_BYTES as u64;
            (at, &block[..(self.length.saturating_sub(at)).min(BLOCK_BYTES as u64) as usize])
        })
    }
}

/// A change of a file.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write {
        at: u64,
        bytes: Arc<[u8]>,
    },
    /// A write that keeps only offset and length.
    Extend {
        to: u64,
    },
    Truncate {
        length: u64,
    },
}

impl Change {
    pub(super) fn apply(&self, content: &mut Content) {
        match self {
            Self::Write { at, bytes } => content.write(*at, bytes),
            Self::Extend { to } => content.length = content.length.max(*to),
            Self::Truncate { length } => content.truncate(*length),
        }
    }

    /// Not at all, wholly, or in some sectors.
    pub(super) fn apply_by_chance(&self, content: &mut Content, chance: &mut Chance) {
        let how = chance.below(4);
        match (how, self) {
            (0, _) => {}
            (1, _) | (_, Self::Extend { .. } | Self::Truncate { .. }) => self.apply(content),
            (_, Self::Write { at, bytes }) => {
                let mut position = *at;
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    let to_boundary = SECTOR_BYTES - (position % SECTOR_BYTES as u64) as usize;
                    let (now, later) = rest.split_at(rest.len().min(to_boundary));
                    if chance.coin() {
                        content.write(position, now);
                    }
                    position += now.len() as u64;
                    rest = later;
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// The next sync makes it durable.
    Pending,
    /// A sync made it durable; it waits for a doubtful one before it.
    Synced,
    /// The sync for it failed.
    Doubtful,
}

/// One file: its two images and the changes between them.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    pub(super) volatile: Content,
    durable: Content,
    changes: VecDeque<(u64, Change, Standing)>,
    next_change: u64,
    /// The space that it takes, including holes.
    pub(super) reserved: u64,
}

impl Inode {
    pub(super) fn durable(content: Content) -> Self {
        Self { reserved: content.length, volatile: content.clone(), durable: content, ..Self::default() }
    }

    /// Takes space up to this offset.
    pub(super) fn reserve(&mut self, to: u64) {
        self.reserved = self.reserved.max(to);
    }

    pub(super) fn change(&mut self, change: Change) {
        change.apply(&mut self.volatile);
        self.changes.push_back((self.next_change, change, Standing::Pending));
        self.next_change += 1;
    }

    /// Applies part of a change that was under way at the crash.
    pub(super) fn change_by_chance(&mut self, change: &Change, chance: &mut Chance) {
        let before = self.volatile.clone();
        change.apply_by_chance(&mut self.volatile, chance);
        if self.volatile != before {
            self.changes.push_back((self.next_change, change.clone(), Standing::Pending));
            self.next_change += 1;
        }
    }

    /// The changes that a sync covers if it is submitted now.
    pub(super) fn barrier(&self) -> u64 {
        self.next_change
    }

    pub(super) fn sync(&mut self, barrier: u64) {
        self.mark(barrier, Standing::Synced);
        while let Some((_, change, Standing::Synced)) = self.changes.front() {
            change.apply(&mut self.durable);
            self.changes.pop_front();
        }
    }

    pub(super) fn fail_sync(&mut self, barrier: u64) {
        self.mark(barrier, Standing::Doubtful);
    }

    fn mark(&mut self, barrier: u64, as_what: Standing) {
        let covered = self.changes.iter_mut().take_while(|(number, ..)| *number < barrier);
        for (_, _, standing) in covered.filter(|(_, _, standing)| *standing == Standing::Pending) {
            *standing = as_what;
        }
    }

    pub(super) fn after_power_cut(&self, chance: &mut Chance) -> Content {
        let mut content = self.durable.clone();
        for (_, change, standing) in &self.changes {
            match standing {
                Standing::Synced => change.apply(&mut content),
                Standing::Pending | Standing::Doubtful => change.apply_by_chance(&mut content, chance),
            }
        }
        content
    }
}
