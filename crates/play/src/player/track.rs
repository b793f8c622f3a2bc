//! [`Track`]: the blocks and frames to be played, and their places in the files.

use std::ops::Range;
use std::path::PathBuf;

use hairspring_recording::timeline::Timeline;
use hairspring_recording::{Member, MissingFrames, Recording};
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Bytes, Frames, SampleRate};

/// A block of the stored stream in one of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackBlock {
    /// The position of its bytes in the stored stream.
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
    /// The blocks, in the order of their positions. Bytes in none of them are missing.
    pub blocks: Vec<TrackBlock>,
    /// The number of the first frame that is played, and the one after the last, missing ones included.
    pub extent: Range<u64>,
    /// The missing frames between these, ascending. Those that the recording declares are gaps; others, and blocks that
    /// cannot be read, are damage.
    pub missing: Vec<MissingFrames>,
    /// Bytes of a sample that lie in the files with the highest first, and are reversed; 1 if none do.
    pub swapped_bytes: usize,
}

/// Bytes of the stored stream that are read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) position: u64,
    pub(super) length: u64,
    /// `None` if no block holds them.
    pub(super) block: Option<TrackBlock>,
}

impl Track {
    /// The track of a whole recording. Blocks of members that were not found are missing. Frames at its ends that no
    /// trigger asked for, or that retention deleted, are not played.
    pub fn of(recording: &Recording) -> Self {
        let files: Vec<usize> = recording.members().iter().map(|member| member.number).collect();
        let block = |block: &hairspring_recording::Block| {
            let file = files.binary_search(&block.member).ok()?;
            let (position, offset) = (block.position, block.file_offset);
            Some(TrackBlock { position, length: block.length, crc: block.crc, file, offset })
        };
        let holes = recording.holes().iter().map(|hole| hole.position.saturating_add(hole.length));
        let stored = recording.blocks().iter().map(hairspring_recording::Block::end).chain(holes).max();
        let (extent, missing) = recording.missing().between_ends();
        Self {
            layout: recording.about().layout,
            rate: recording.about().rate,
            timeline: recording.timeline().clone(),
            stored: Bytes(stored.unwrap_or(0)),
            files: recording.members().iter().map(Member::data).collect(),
            blocks: recording.blocks().iter().filter_map(block).collect(),
            extent,
            missing,
            swapped_bytes: recording.swapped_bytes(),
        }
    }

    /// The number of the first frame that is played.
    pub fn origin(&self) -> Frames {
        Frames(self.extent.start)
    }

    /// Frames from the first to the last, missing ones included.
    pub fn frames(&self) -> Frames {
        Frames(self.extent.end.saturating_sub(self.extent.start))
    }

    /// Frames that exist by the recording's own account.
    pub fn stored_frames(&self) -> Frames {
        let declared = self.missing.iter().filter(|missing| missing.cause.is_declared());
        let declared = declared.fold(0_u64, |sum, missing| sum.saturating_add(missing.frames.0));
        Frames(self.frames().0.saturating_sub(declared))
    }

    /// The number of frames from this one on that are missing for one reason, and whether the recording declares them.
    /// Frames in no entry are damage.
    pub(super) fn missing_at(&self, frame: Frames) -> (Frames, bool) {
        let next = self.missing.partition_point(|missing| missing.end() <= frame);
        match self.missing.get(next) {
            Some(missing) if missing.first <= frame => (Frames(missing.end().0 - frame.0), missing.cause.is_declared()),
            Some(missing) => (Frames(missing.first.0 - frame.0), false),
            None => (Frames(u64::MAX), false),
        }
    }

    /// The stored stream in the pieces in which it is read, the missing ones too.
    pub(super) fn stretches(&self) -> Vec<Stretch> {
        let mut stretches = Vec::with_capacity(self.blocks.len());
        let push_missing = |stretches: &mut Vec<Stretch>, from: u64, to: u64| {
            if to > from {
                stretches.push(Stretch { position: from, length: to - from, block: None });
            }
        };
        let mut next = 0;
        for block in &self.blocks {
            // A block that overlaps the one before it, or ends beyond the stream, is ignored.
            let end = block.position.saturating_add(block.length.into());
            if block.length == 0 || block.position < next || end > self.stored.0 {
                continue;
            }
            push_missing(&mut stretches, next, block.position);
            let (position, length) = (block.position, block.length.into());
            stretches.push(Stretch { position, length, block: Some(*block) });
            next = end;
        }
        push_missing(&mut stretches, next, self.stored.0);
        stretches
    }
}
