//! [`BlockReader`]: reads the stored stream at the full speed of the disks, and proves each block before it returns it.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;

use hairspring_machine::Instant;

use super::reads::{BlockRead, BlockReads, Unproven, proven, turned};
use super::sync_io::buffer;
use super::{Block, Recording, RecordingError};
use hairspring_ring::notifier::Notifier;
use hairspring_ring::units::Bytes;
use hairspring_store::lent_memory::Scratch;
use hairspring_store::{Errno, FileId, MemoryId, Open, Piece, Store, Token};

/// Reads under way at once; enough to keep one disk busy.
const DEPTH: usize = 8;

/// Memory for all reads together, so fewer large blocks are read at once.
const BUFFER: Bytes = Bytes::mib(128);

/// The most data files that are open at once. A long series has more.
const MOST_OPEN: usize = 64;

/// A read under way or done. The buffer is larger than the block if the block's place is not aligned.
#[derive(Debug)]
struct Slot {
    block: Block,
    /// The offset at which reading begins, aligned.
    at: u64,
    ended: Option<Result<(), Unproven>>,
}

/// Reads blocks in the order given, several at a time.
pub struct BlockReader<'a> {
    store: &'a mut dyn Store,
    /// By member: the path of its data file, if blocks of it are to be read.
    paths: Vec<Option<PathBuf>>,
    /// By member: its data file, and its alignment, while it is open.
    files: Vec<Option<(FileId, u64)>>,
    /// The open ones, in the order in which they were opened.
    open: VecDeque<usize>,
    blocks: VecDeque<Block>,
    scratch: Scratch,
    memory: MemoryId,
    notifier: Notifier,
    slots: Vec<Option<Slot>>,
    slot_bytes: usize,
    /// Slots in the order of the blocks.
    order: VecDeque<usize>,
    reads: BlockReads,
    /// Bytes of a sample that are reversed.
    swapped: usize,
}

impl fmt::Debug for BlockReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockReader").field("left", &self.blocks.len()).finish_non_exhaustive()
    }
}

impl<'a> BlockReader<'a> {
    /// Reads the whole stored stream, in order.
    ///
    /// # Errors
    /// A file cannot be opened, or there is no memory.
    pub fn new(store: &'a mut dyn Store, recording: &Recording) -> Result<Self, RecordingError> {
        Self::of(store, recording, recording.blocks().to_vec())
    }

    /// Reads these blocks of the recording, in this order. If a segment of a series is gone, its blocks cannot be read;
    /// [`Recording::deleted_since`] finds out whether retention deleted it.
    ///
    /// # Errors
    /// A file cannot be opened, or there is no memory.
    pub fn of(store: &'a mut dyn Store, recording: &Recording, blocks: Vec<Block>) -> Result<Self, RecordingError> {
        let count = recording.about().members.len();
        let (mut files, mut paths, mut open) = (vec![None; count], vec![None; count], VecDeque::new());
        let mut wanted = vec![false; count];
        for block in &blocks {
            if let Some(wanted) = wanted.get_mut(block.member) {
                *wanted = true;
            }
        }
        let mut coarsest = 1;
        for member in recording.members().iter().filter(|member| wanted[member.number]) {
            let path = member.data();
            let file = match store.open(&path, Open::ReadData) {
                Ok(file) => file,
                // Retention may have deleted the segment since; its blocks cannot be read.
                Err(error) if recording.is_series() && error.errno.0 == libc::ENOENT => continue,
                Err(error) => return Err(error.into()),
            };
            let facts = store.facts(file);
            coarsest = coarsest.max(facts.alignment).max(facts.memory_alignment);
            paths[member.number] = Some(path);
            if open.len() < MOST_OPEN {
                files[member.number] = Some((file, facts.alignment));
                open.push_back(member.number);
            } else {
                store.close(file);
            }
        }
        // Never longer than its file, because `Recording` leaves out such blocks.
        let longest = blocks.iter().map(|block| u64::from(block.length)).max().unwrap_or(1);
        let slot = Bytes(longest + 2 * coarsest).round_up(Bytes(coarsest.max(4096)));
        let depth = usize::try_from(BUFFER.0 / slot.0).unwrap_or(DEPTH).clamp(2, DEPTH);
        let depth = depth.min(store.depth()).min(blocks.len().max(1)).max(1);
        let (scratch, memory, notifier) = buffer(store, Bytes(slot.0 * depth as u64))?;
        Ok(Self {
            store,
            paths,
            files,
            open,
            blocks: blocks.into(),
            scratch,
            memory,
            notifier,
            slots: (0..depth).map(|_| None).collect(),
            slot_bytes: slot.0 as usize,
            order: VecDeque::with_capacity(depth),
            reads: BlockReads::default(),
            swapped: recording.swapped_bytes(),
        })
    }

    /// Waits for the next block and returns it, with its bytes if they are proven. `None` at the end.
    ///
    /// Blocks of recordings without checksums are returned as they are.
    pub fn next_block(&mut self) -> Option<(Block, Result<&[u8], Unproven>)> {
        self.fill();
        let number = self.order.pop_front()?;
        loop {
            let slot = self.slots[number].as_mut()?;
            if let Some(ended) = slot.ended {
                let block = slot.block;
                let at = slot.at;
                self.slots[number] = None;
                // Data that were not read have no place in the memory.
                let bytes = ended.and_then(|()| {
                    let start = number * self.slot_bytes + (block.file_offset - at) as usize;
                    let bytes = self.scratch.bytes(start, block.length as usize);
                    proven(bytes, block.crc)?;
                    turned(bytes, self.swapped);
                    Ok(&*bytes)
                });
                return Some((block, bytes));
            }
            self.store.wait(&self.notifier, Instant::END);
            self.reap();
        }
    }

    /// Submits as many reads as there is room for.
    fn fill(&mut self) {
        for number in 0..self.slots.len() {
            if self.slots[number].is_some() {
                continue;
            }
            let Some(block) = self.blocks.pop_front() else { break };
            let mut slot = Slot { block, at: 0, ended: None };
            let file = self.file(block.member);
            if let Ok((file, alignment)) = file {
                slot.at = block.file_offset / alignment * alignment;
                let end = block.file_offset + u64::from(block.length);
                let length = (end.next_multiple_of(alignment) - slot.at) as usize;
                let piece = Piece { memory: self.memory, at: number * self.slot_bytes, length };
                let read = BlockRead { file, at: slot.at, alignment, piece, needed: end - slot.at };
                self.reads.begin(self.store, Token(number as u64), read);
            } else if let Err(errno) = file {
                slot.ended = Some(Err(Unproven::Read(errno)));
            }
            self.slots[number] = Some(slot);
            self.order.push_back(number);
        }
        self.store.flush();
        self.reap();
    }

    /// The data file of a member and its alignment; opens it again if it was closed. That of a missing member does not
    /// exist.
    fn file(&mut self, member: usize) -> Result<(FileId, u64), Errno> {
        if let Some(known) = self.files.get(member).copied().flatten() {
            return Ok(known);
        }
        let path = self.paths.get(member).and_then(Option::as_ref).ok_or(Errno(libc::ENOENT))?;
        let file = self.store.open(path, Open::ReadData).map_err(|error| error.errno)?;
        let found = (file, self.store.facts(file).alignment);
        self.files[member] = Some(found);
        self.open.push_back(member);
        let in_use = |member: usize| self.slots.iter().flatten().any(|slot| slot.block.member == member);
        if self.open.len() > MOST_OPEN
            && let Some(place) = self.open.iter().position(|other| *other != member && !in_use(*other))
            && let Some(oldest) = self.open.remove(place)
            && let Some((file, _)) = self.files[oldest].take()
        {
            self.store.close(file);
        }
        Ok(found)
    }

    fn reap(&mut self) {
        while let Some((token, ended)) = self.reads.next_ended(self.store) {
            if let Some(slot) = &mut self.slots[token.0 as usize] {
                slot.ended = Some(ended);
            }
        }
    }
}

impl Drop for BlockReader<'_> {
    fn drop(&mut self) {
        self.reads.abandon(self.store, &self.notifier);
    }
}
