//! [`Excerpt`]: frames of a recording in memory, read in place and proven.
//!
//! **Problem.** Programs ask for frames 1,000 to 2,000, and files hold blocks, spread over the members of a stripe. A
//! checksum covers a whole block. Copies cost as much as a fast disk.
//!
//! **Solution.** One memory takes the blocks that hold the frames, one after the other in the order of the stream. The
//! disks read straight into it, several pieces at once, and each block is compared with its checksum there. The caller
//! keeps the memory. [`ExcerptRun`]s list the frames in it and their places:
//!
//! ```text
//! frames requested        a ······················ b
//! blocks read     [  k   ][ k+1  ][ k+2  ]
//! memory          ........▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓   a run for each stretch without a gap
//! ```
//!
//! **Conditions.** Several recordings can be read as one if their frames ascend, as those of segments do. A piece that
//! direct I/O cannot read in place, because of its offset or length, is read into another buffer and copied.
//!
//! No byte is returned before its block has matched its checksum, unless the caller asks for unchecked bytes.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;

use hairspring_machine::Instant;
use hairspring_ring::memory::{Memory, MemoryError};
use hairspring_ring::notifier::Notifier;
use hairspring_ring::units::{Bytes, Frames};

use super::{Block, BlockRead, BlockReader, BlockReads, Recording, RecordingError, Unproven, proven, turned};
use hairspring_store::lent_memory::{Scratch, pages_for};
use hairspring_store::{FileId, MemoryId, Open, Piece, Store, Token, Ways};

/// Neighbouring blocks are read together up to this size.
const MOST_READ: u64 = 4 << 20;

/// More memory than the blocks need: direct I/O reads whole sectors, and the last one may reach beyond the end.
const SLACK: Bytes = Bytes::kib(64);

/// A recording to read from, and its good blocks.
#[derive(Clone, Copy, Debug)]
pub struct ExcerptPart<'a> {
    /// The recording.
    pub recording: &'a Recording,
    /// Its blocks, by index. Others are not read.
    pub blocks: &'a [Block],
}

/// Whether the blocks of an excerpt are compared with their checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExcerptCheck {
    /// Whole blocks are read and compared.
    Checksums,
    /// The bytes are returned as they are in the files.
    Unchecked,
}

/// Frames without a gap, and where they lie in the excerpt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExcerptRun {
    /// The global index of the first frame. It can lie before the first requested frame if a grain has two frames.
    pub first: Frames,
    /// Their number; whole grains.
    pub frames: Frames,
    /// Offset of the first in [`Excerpt::bytes`].
    pub at: usize,
}

/// A block that differs from what was recorded, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedBlock {
    /// Its number in its recording, from 0.
    pub block: u64,
    /// Its frames, including a gap in the middle of the block.
    pub frames: Range<u64>,
    /// The data file.
    pub path: PathBuf,
    /// Its offset in that file.
    pub file_offset: u64,
    /// Its length.
    pub length: u32,
    /// The failure.
    pub why: Unproven,
}

impl fmt::Display for DamagedBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block, frames, path, file_offset, length, why } = self;
        let (first, last) = (frames.start, frames.end.saturating_sub(1));
        write!(
            f,
            "block {block} (frames {first} to {last}, {length} bytes from byte {file_offset} of {}): {why}",
            path.display()
        )
    }
}

/// Why an excerpt cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub enum ExcerptError {
    /// A file cannot be opened, or the caller cancelled the reading.
    Recording(RecordingError),
    /// There is not enough memory for this many frames.
    NoMemory(MemoryError),
    /// A block is bad; the first one of the excerpt.
    Block(Box<DamagedBlock>),
}

impl fmt::Display for ExcerptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recording(error) => error.fmt(f),
            Self::NoMemory(error) => error.fmt(f),
            Self::Block(bad) => bad.fmt(f),
        }
    }
}

impl std::error::Error for ExcerptError {}

impl From<RecordingError> for ExcerptError {
    fn from(error: RecordingError) -> Self {
        Self::Recording(error)
    }
}

/// Frames of a recording in memory.
#[derive(Debug)]
pub struct Excerpt {
    scratch: Scratch,
    length: usize,
    runs: Vec<ExcerptRun>,
}

impl Excerpt {
    /// Reads under way at once; enough to keep one disk busy. A store for excerpts has this depth.
    pub const DEPTH: usize = 8;

    /// Through the page cache, so that frames that are read again come from memory; nothing is registered, because a
    /// store reads one excerpt.
    pub const WAYS: Ways = Ways { uring: true, direct: false, registered: false };

    /// Reads the existing frames of a range. The parts ascend by frames; all have one layout. `look` is called after
    /// each piece of the reading and can cancel it. The store keeps the memory until it is dropped, so give each
    /// excerpt a store of its own.
    ///
    /// # Errors
    /// See [`ExcerptError`].
    pub fn read(
        store: &mut dyn Store,
        parts: &[ExcerptPart<'_>],
        frames: Range<u64>,
        check: ExcerptCheck,
        look: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Self, ExcerptError> {
        let mut wanted = Wanted::default();
        for (part, source) in parts.iter().enumerate() {
            wanted.add(part, source, &frames, check);
        }
        let length = wanted.length;
        let size = Bytes(length as u64 + SLACK.0).round_up(SLACK);
        let memory = Memory::unfilled(size, pages_for(size)).map_err(ExcerptError::NoMemory)?;
        let (scratch, memory) = Scratch::attached(memory, store);
        let mut excerpt = Self { scratch, length, runs: wanted.runs };
        let pieces = joined(parts, &wanted.places);
        let left = excerpt.read_in_place(store, memory, parts, &pieces, look)?;
        for piece in left {
            excerpt.read_and_copy(store, &parts[piece.part], &piece.places)?;
            if look().is_break() {
                return Err(RecordingError::Cancelled.into());
            }
        }
        Ok(excerpt)
    }

    /// The runs of frames, in order.
    pub fn runs(&self) -> &[ExcerptRun] {
        &self.runs
    }

    /// The bytes of all blocks that were read.
    pub fn bytes(&mut self) -> &mut [u8] {
        self.scratch.bytes(0, self.length)
    }

    /// Reads the pieces that suit their files. Returns the others, which must be read and copied, in order.
    fn read_in_place<'p>(
        &mut self,
        store: &mut dyn Store,
        memory: MemoryId,
        parts: &[ExcerptPart<'_>],
        pieces: &'p [Joined],
        look: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Vec<&'p Joined>, ExcerptError> {
        let notifier =
            Notifier::new().map_err(|error| RecordingError::Limit(format!("no descriptor for waiting: {error}")))?;
        let mut files: HashMap<(usize, usize), FileId> = HashMap::new();
        let mut flight = Flight { reads: BlockReads::default(), under_way: 0, left: Vec::new(), stop: None };
        let depth = Self::DEPTH.min(store.depth()).max(1);
        let mut pieces_left = pieces.iter().enumerate();
        let mut ended: Vec<(Token, Result<(), Unproven>)> = Vec::with_capacity(depth);
        let opened = loop {
            while flight.under_way < depth && flight.stop.is_none() {
                let Some((number, piece)) = pieces_left.next() else { break };
                let file = match files.get(&(piece.part, piece.member)) {
                    Some(file) => *file,
                    None => match open(store, parts, piece) {
                        Ok(file) => *files.entry((piece.part, piece.member)).or_insert(file),
                        Err(error) => {
                            flight.stop = Some(error);
                            break;
                        }
                    },
                };
                let facts = store.facts(file);
                let alignment = facts.alignment;
                let fits = piece.file_offset.is_multiple_of(alignment)
                    && (piece.at as u64).is_multiple_of(alignment.max(facts.memory_alignment))
                    && (piece.length.is_multiple_of(alignment) || piece.at + piece.length as usize == self.length);
                if !fits {
                    flight.left.push(number);
                    continue;
                }
                let length = piece.length.next_multiple_of(alignment) as usize;
                let target = Piece { memory, at: piece.at, length };
                let read = BlockRead { file, at: piece.file_offset, alignment, piece: target, needed: piece.length };
                flight.reads.begin(store, Token(number as u64), read);
                flight.under_way += 1;
            }
            store.flush();
            // The disk reads the next pieces while these are checked.
            for (Token(number), result) in ended.drain(..) {
                let number = number as usize;
                // Reading the blocks one by one later shows the error of a piece of several blocks.
                let sound = result.is_ok() && pieces[number].places.iter().all(|place| self.matches(place));
                if !sound {
                    flight.left.push(number);
                } else {
                    let Joined { part, at, length, .. } = pieces[number];
                    let sample = parts[part].recording.swapped_bytes();
                    turned(self.scratch.bytes(at, length as usize), sample);
                }
                if look().is_break() {
                    flight.stop.get_or_insert(RecordingError::Cancelled.into());
                }
            }
            while let Some(read) = flight.reads.next_ended(store) {
                flight.under_way -= 1;
                ended.push(read);
            }
            if !ended.is_empty() {
                continue;
            }
            match (flight.under_way, &flight.stop) {
                (0, Some(_)) => break Err(()),
                (0, None) if pieces_left.len() == 0 => break Ok(()),
                (0, None) => {}
                _ => store.wait(&notifier, Instant::END),
            }
        };
        if let (Err(()), Some(error)) = (opened, flight.stop) {
            return Err(error);
        }
        flight.left.sort_unstable();
        Ok(flight.left.into_iter().map(|number| &pieces[number]).collect())
    }

    /// Reads blocks one by one into another buffer, and copies them.
    fn read_and_copy(
        &mut self,
        store: &mut dyn Store,
        part: &ExcerptPart<'_>,
        places: &[Place],
    ) -> Result<(), ExcerptError> {
        let blocks = places.iter().map(|place| place.block).collect();
        let mut reader = BlockReader::of(store, part.recording, blocks)?;
        for place in places {
            let Some((block, bytes)) = reader.next_block() else { break };
            let bytes = bytes.map_err(|why| bad(part, &block, why))?;
            self.scratch.bytes(place.at, bytes.len()).copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Whether a block in the memory matches its checksum.
    fn matches(&mut self, place: &Place) -> bool {
        proven(self.scratch.bytes(place.at, place.block.length as usize), place.block.crc).is_ok()
    }
}

/// The reads of an excerpt.
struct Flight {
    reads: BlockReads,
    under_way: usize,
    /// Pieces that must be read and copied.
    left: Vec<usize>,
    /// Why no further pieces are begun.
    stop: Option<ExcerptError>,
}

/// A block, or the requested part of it, and its place in the memory.
#[derive(Clone, Copy, Debug)]
struct Place {
    part: usize,
    block: Block,
    at: usize,
}

/// Blocks that lie one after the other in a file and in the memory.
struct Joined {
    part: usize,
    member: usize,
    file_offset: u64,
    at: usize,
    length: u64,
    places: Vec<Place>,
}

/// The blocks to read.
#[derive(Default)]
struct Wanted {
    places: Vec<Place>,
    runs: Vec<ExcerptRun>,
    length: usize,
}

impl Wanted {
    /// Adds the blocks of a part that hold frames of the range.
    fn add(&mut self, part: usize, source: &ExcerptPart<'_>, frames: &Range<u64>, check: ExcerptCheck) {
        let timeline = source.recording.timeline();
        let layout = timeline.layout();
        let grain = layout.grain();
        let begin = timeline.position_of(Frames(frames.start)) / grain.bytes * grain.bytes;
        let first = source.blocks.partition_point(|block| block.end() <= begin);
        for block in &source.blocks[first..] {
            if timeline.frame_at(block.position).0 >= frames.end {
                break;
            }
            // The wanted pieces of the block: position, first frame, frames.
            let runs = timeline.runs_in(block.position, Bytes(block.length.into()));
            let pieces: Vec<(u64, u64, u64)> = runs
                .filter_map(|run| {
                    let end = run.first.0.saturating_add(layout.frames_in(run.length.unwrap_or_default()).0);
                    let from = frames.start.clamp(run.first.0, end);
                    let from = run.first.0 + (from - run.first.0) / grain.frames * grain.frames;
                    let to = frames.end.clamp(run.first.0, end);
                    let count = to.saturating_sub(from).next_multiple_of(grain.frames);
                    (to > from).then(|| (run.position + layout.bytes_of(Frames(from - run.first.0)).0, from, count))
                })
                .collect();
            let (Some(head), Some(tail)) = (pieces.first(), pieces.last()) else { continue };
            let block = match check {
                ExcerptCheck::Checksums => *block,
                ExcerptCheck::Unchecked => {
                    let end = tail.0 + layout.bytes_of(Frames(tail.2)).0;
                    let file_offset = block.file_offset + (head.0 - block.position);
                    let length = (end - head.0) as u32;
                    Block { position: head.0, file_offset, length, crc: None, ..*block }
                }
            };
            for (position, first, count) in pieces {
                let at = self.length + (position - block.position) as usize;
                match self.runs.last_mut() {
                    Some(last)
                        if last.first.0 + last.frames.0 == first
                            && last.at + layout.bytes_of(last.frames).0 as usize == at =>
                    {
                        last.frames.0 += count;
                    }
                    _ => self.runs.push(ExcerptRun { first: Frames(first), frames: Frames(count), at }),
                }
            }
            self.places.push(Place { part, block, at: self.length });
            self.length += block.length as usize;
        }
    }
}

/// Joins blocks that can be read at once.
fn joined(parts: &[ExcerptPart<'_>], places: &[Place]) -> Vec<Joined> {
    let mut pieces: Vec<Joined> = Vec::new();
    for place in places {
        let Place { part, block, at } = *place;
        let length = u64::from(block.length);
        debug_assert!(part < parts.len(), "a part that was named");
        match pieces.last_mut() {
            Some(last)
                if last.part == part
                    && last.member == block.member
                    && last.file_offset + last.length == block.file_offset
                    && last.length + length <= MOST_READ =>
            {
                last.length += length;
                last.places.push(*place);
            }
            _ => pieces.push(Joined {
                part,
                member: block.member,
                file_offset: block.file_offset,
                at,
                length,
                places: vec![*place],
            }),
        }
    }
    pieces
}

fn open(store: &mut dyn Store, parts: &[ExcerptPart<'_>], piece: &Joined) -> Result<FileId, ExcerptError> {
    let member = parts[piece.part].recording.member(piece.member).ok_or(RecordingError::Nothing)?;
    store.open(&member.data(), Open::ReadData).map_err(|error| RecordingError::from(error).into())
}

/// The place of a block that is not proven.
fn bad(part: &ExcerptPart<'_>, block: &Block, why: Unproven) -> ExcerptError {
    let timeline = part.recording.timeline();
    let grain = timeline.layout().grain();
    // The last grain, because a gap can follow it.
    let last = timeline.frame_at(block.end().saturating_sub(grain.bytes).max(block.position));
    let path = part.recording.member(block.member).map(super::Member::data).unwrap_or_default();
    ExcerptError::Block(Box::new(DamagedBlock {
        block: block.index,
        frames: timeline.frame_at(block.position).0..last.0 + grain.frames,
        path,
        file_offset: block.file_offset,
        length: block.length,
        why,
    }))
}
