//! [`BlockReader`]: the stored stream from the disks at full speed, each block proven before it is given out.

use std::collections::VecDeque;
use std::fmt;

use hairspring_machine::Nanos;

use super::disk::buffer;
use super::{Block, Files, Recording, RecordingError};
use crate::store::attached::Scratch;
use crate::store::{Completion, Errno, FileId, MemoryId, Op, Open, Piece, Store, Token};
use hairspring_ring::notifier::Notifier;
use hairspring_ring::units::Bytes;

/// Reads under way at once: what keeps one disk busy.
const DEPTH: usize = 8;

/// Memory for all reads together; larger blocks are read fewer at a time.
const BUFFER: Bytes = Bytes::mib(128);

/// Why a block is not given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unproven {
    /// The system did not read it.
    Read(Errno),
    /// Its file ends within it.
    Short,
    /// It does not match its checksum.
    Checksum,
}

impl fmt::Display for Unproven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(errno) => write!(f, "it cannot be read: {errno}"),
            Self::Short => f.write_str("its file ends within it"),
            Self::Checksum => f.write_str("it does not match its checksum"),
        }
    }
}

/// A read under way or done. The buffer holds more than the block where its place is not aligned.
#[derive(Debug)]
struct Slot {
    block: Block,
    file: FileId,
    /// Where in the file reading begins, and how much is wanted: whole units of alignment.
    at: u64,
    wanted: usize,
    have: usize,
    ended: Option<Result<(), Unproven>>,
}

/// Reads blocks in the order given, several at a time.
pub struct BlockReader<'a> {
    store: &'a mut dyn Store,
    /// By member: its data file, and its alignment.
    files: Vec<Option<(FileId, u64)>>,
    blocks: VecDeque<Block>,
    scratch: Scratch,
    memory: MemoryId,
    notifier: Notifier,
    slots: Vec<Option<Slot>>,
    slot_bytes: usize,
    /// Slots in the order of the blocks.
    order: VecDeque<usize>,
    completions: Vec<Completion>,
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

    /// Reads these blocks of the recording, in this order.
    ///
    /// # Errors
    /// A file cannot be opened, or there is no memory.
    pub fn of(store: &'a mut dyn Store, recording: &Recording, blocks: Vec<Block>) -> Result<Self, RecordingError> {
        let mut files = vec![None; recording.about().members.len()];
        let mut coarsest = 1;
        for member in recording.members() {
            if !blocks.iter().any(|block| block.member == member.number) {
                continue;
            }
            let file = store.open(&Files::of(&member.base).data, Open::ReadData)?;
            let facts = store.facts(file);
            coarsest = coarsest.max(facts.alignment).max(facts.memory_alignment);
            files[member.number] = Some((file, facts.alignment));
        }
        // No longer than the file of any of them, for `Recording` leaves out what is.
        let longest = blocks.iter().map(|block| u64::from(block.length)).max().unwrap_or(1);
        let slot = Bytes(longest + 2 * coarsest).round_up(Bytes(coarsest.max(4096)));
        let depth = usize::try_from(BUFFER.0 / slot.0).unwrap_or(DEPTH).clamp(2, DEPTH);
        let depth = depth.min(store.depth()).min(blocks.len().max(1)).max(1);
        let (scratch, memory, notifier) = buffer(store, Bytes(slot.0 * depth as u64))?;
        Ok(Self {
            store,
            files,
            blocks: blocks.into(),
            scratch,
            memory,
            notifier,
            slots: (0..depth).map(|_| None).collect(),
            slot_bytes: slot.0 as usize,
            order: VecDeque::with_capacity(depth),
            completions: Vec::with_capacity(depth),
        })
    }

    /// The next block, and its bytes if they are proven; waits for the disk. `None` at the end.
    ///
    /// Blocks of recordings without checksums are given out as they are.
    pub fn next_block(&mut self) -> Option<(Block, Result<&[u8], Unproven>)> {
        self.fill();
        let number = self.order.pop_front()?;
        loop {
            let slot = self.slots[number].as_mut()?;
            if let Some(ended) = slot.ended {
                let block = slot.block;
                let start = number * self.slot_bytes + (block.file_offset - slot.at) as usize;
                self.slots[number] = None;
                let bytes = self.scratch.bytes(start, block.length as usize);
                let proven = ended.and_then(|()| match block.crc {
                    Some(crc) if crc != crc32c::crc32c(bytes) => Err(Unproven::Checksum),
                    _ => Ok(&*bytes),
                });
                return Some((block, proven));
            }
            self.store.wait(&self.notifier, Nanos::MAX);
            self.reap();
        }
    }

    /// Hands as many reads to the disk as there is room for.
    fn fill(&mut self) {
        for number in 0..self.slots.len() {
            if self.slots[number].is_some() {
                continue;
            }
            let Some(block) = self.blocks.pop_front() else { break };
            let file = self.files.get(block.member).copied().flatten();
            let (file, alignment) = file.unwrap_or((FileId(0), 1));
            let at = block.file_offset / alignment * alignment;
            let end = (block.file_offset + u64::from(block.length)).next_multiple_of(alignment);
            // A block of a member that is not there is not read.
            let absent = self.files.get(block.member).copied().flatten().is_none();
            let ended = absent.then_some(Err(Unproven::Read(Errno(libc::ENOENT))));
            let slot = Slot { block, file, at, wanted: (end - at) as usize, have: 0, ended };
            self.slots[number] = Some(slot);
            self.order.push_back(number);
            if !absent {
                self.submit(number);
            }
        }
        self.store.flush();
        self.reap();
    }

    /// Reads what is still wanted of a slot.
    fn submit(&mut self, number: usize) {
        let Some(slot) = &self.slots[number] else { return };
        let piece =
            Piece { memory: self.memory, at: number * self.slot_bytes + slot.have, length: slot.wanted - slot.have };
        self.store.submit(Token(number as u64), Op::Read(slot.file, slot.at + slot.have as u64, piece));
    }

    fn reap(&mut self) {
        let mut completions = std::mem::take(&mut self.completions);
        self.store.reap(&mut completions);
        let mut again = false;
        for completion in completions.drain(..) {
            let number = completion.token.0 as usize;
            let Some(slot) = self.slots.get_mut(number).and_then(Option::as_mut) else { continue };
            let needed = (slot.block.file_offset - slot.at) as usize + slot.block.length as usize;
            match completion.result {
                Err(errno) if errno.0 == libc::EINTR || errno.0 == libc::EAGAIN => {
                    again = true;
                    self.submit(number);
                }
                Err(errno) => slot.ended = Some(Err(Unproven::Read(errno))),
                Ok(read) => {
                    let alignment = self.files[slot.block.member].map_or(1, |(_, alignment)| alignment) as usize;
                    let have = slot.have + read as usize;
                    // Fewer than wanted is kept as far as it is aligned. No progress means the end of the file.
                    let kept = have / alignment * alignment;
                    if have >= needed {
                        slot.ended = Some(Ok(()));
                    } else if kept == slot.have {
                        slot.ended = Some(Err(Unproven::Short));
                    } else {
                        slot.have = kept;
                        again = true;
                        self.submit(number);
                    }
                }
            }
        }
        self.completions = completions;
        if again {
            self.store.flush();
        }
    }
}

impl Drop for BlockReader<'_> {
    /// Waits for the reads that are under way: their completions would be taken for others'.
    fn drop(&mut self) {
        while self.slots.iter().flatten().any(|slot| slot.ended.is_none()) {
            self.store.wait(&self.notifier, Nanos::MAX);
            self.reap();
        }
    }
}
