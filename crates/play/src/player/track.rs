//! [`Track`]: the blocks and frames to be played, and their places in the files.

use std::path::PathBuf;

use hairspring_recording::timeline::Timeline;
use hairspring_recording::{Member, Recording};
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Bytes, Frames, SampleRate};

/// A block of the stored stream in one of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackBlock {
    /// Where its bytes are in the stored stream.
    pub position: u64,
    /// Their number.
    pub length: u32,
    /// CRC-32C of them; `None` in recordings of other programs, which cannot be proven.
    pub crc: Option<u32>,
    /// The number of its file in the track.
    pub file: usize,
    /// Its offset in the file.
    pub offset: u64,
}

/// The recording to be played.
#[derive(Clone, Debug)]
pub struct Track {
    /// How the frames lie in the bytes.
    pub layout: Layout,
    /// The rate at which it was recorded; `None` if it is not known.
    pub rate: Option<SampleRate>,
    /// Which frame each byte of the stored stream is.
    pub timeline: Timeline,
    /// Length of the stored stream in bytes.
    pub stored: Bytes,
    /// The files.
    pub files: Vec<PathBuf>,
    /// The blocks, in the order of their positions. What lies in none of them is missing.
    pub blocks: Vec<TrackBlock>,
    /// Pieces of the stored stream that the recording itself says are in no file, for they could not be written or were
    /// damaged when it was mended: position and length. They are gaps like others; what is in no block and not among them is
    /// damage.
    pub declared: Vec<(u64, u64)>,
    /// Bytes of a sample that lie in the files with the highest first, and are turned round; 1 if none do.
    pub swapped_bytes: usize,
}

/// Bytes of the stored stream that are read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) position: u64,
    pub(super) length: u64,
    /// `None` if no block holds them.
    pub(super) block: Option<TrackBlock>,
    /// Whether the recording itself says that they are missing.
    pub(super) declared: bool,
}

impl Track {
    /// The track of a whole recording. Blocks of members that were not found are missing.
    pub fn of(recording: &Recording) -> Self {
        let files: Vec<usize> = recording.members().iter().map(|member| member.number).collect();
        let block = |block: &hairspring_recording::Block| {
            let file = files.iter().position(|number| *number == block.member)?;
            let (position, offset) = (block.position, block.file_offset);
            Some(TrackBlock { position, length: block.length, crc: block.crc, file, offset })
        };
        let holes = recording.holes();
        let ends = recording.blocks().iter().map(hairspring_recording::Block::end);
        let stored = ends.chain(holes.iter().map(|hole| hole.position.saturating_add(hole.length))).max();
        let declared = holes.iter().filter(|hole| hole.declared).map(|hole| (hole.position, hole.length));
        Self {
            layout: recording.about().layout,
            rate: recording.about().rate,
            timeline: recording.timeline().clone(),
            stored: Bytes(stored.unwrap_or(0)),
            files: recording.members().iter().map(Member::data).collect(),
            blocks: recording.blocks().iter().filter_map(block).collect(),
            declared: declared.collect(),
            swapped_bytes: recording.swapped_bytes(),
        }
    }

    /// The index of the first frame that is there: what is missing or left out before it is not played.
    pub fn origin(&self) -> Frames {
        self.timeline.frame_at(0)
    }

    /// Frames from the first to the last, missing ones included.
    pub fn frames(&self) -> Frames {
        Frames(self.timeline.frame_at(self.stored.0).0.saturating_sub(self.origin().0))
    }

    /// Frames that are stored, by the recording's own account.
    pub fn stored_frames(&self) -> Frames {
        let declared = self.stretches().iter().filter(|stretch| stretch.declared).map(|stretch| stretch.length).sum();
        self.layout.frames_in(Bytes(self.stored.0.saturating_sub(declared)))
    }

    /// The gaps between the first and the last frame: index of the first missing frame, and how many.
    pub fn gaps(&self) -> impl Iterator<Item = (Frames, Frames)> + '_ {
        let mut next = None;
        self.timeline.runs().filter_map(move |run| {
            let before = next;
            next = run.length.map(|length| run.first.0 + self.layout.frames_in(length).0);
            let first = before.filter(|first| *first < run.first.0)?;
            Some((Frames(first), Frames(run.first.0 - first)))
        })
    }

    /// The stored stream in the pieces in which it is read, the missing ones too.
    pub(super) fn stretches(&self) -> Vec<Stretch> {
        let mut stretches = Vec::with_capacity(self.blocks.len());
        let mut next = 0;
        for block in &self.blocks {
            // A block that overlaps the one before it, or ends beyond the stream, is ignored.
            let end = block.position.saturating_add(block.length.into());
            if block.length == 0 || block.position < next || end > self.stored.0 {
                continue;
            }
            self.missing(next, block.position, &mut stretches);
            let (position, length) = (block.position, block.length.into());
            stretches.push(Stretch { position, length, block: Some(*block), declared: false });
            next = end;
        }
        self.missing(next, self.stored.0, &mut stretches);
        stretches
    }

    /// The pieces in no block, with a flag whether the recording declares them.
    fn missing(&self, mut next: u64, until: u64, stretches: &mut Vec<Stretch>) {
        let mut push = |from: u64, to: u64, declared| {
            if to > from {
                stretches.push(Stretch { position: from, length: to - from, block: None, declared });
            }
        };
        for (position, length) in &self.declared {
            let (from, to) = (next.max(*position).min(until), position.saturating_add(*length).min(until));
            if to > from {
                push(next, from, false);
                push(from, to, true);
                next = to;
            }
        }
        push(next, until, false);
    }
}
