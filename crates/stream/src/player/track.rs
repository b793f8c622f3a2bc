//! [`Track`]: what is to be played: which blocks lie where, and which frames they are.

use std::path::PathBuf;

use crate::layout::Layout;
use crate::recording::{self, Files, Recording, RecordingError};
use crate::timeline::Timeline;
use crate::units::{Bytes, Frames, SampleRate};

/// A block of the stored stream in one of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where its bytes are in the stored stream.
    pub position: u64,
    /// Their number.
    pub length: u32,
    /// CRC-32C of them.
    pub crc: u32,
    /// Which of the track's files.
    pub file: usize,
    /// Where in it.
    pub offset: u64,
}

/// What is to be played.
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
    pub blocks: Vec<Block>,
}

/// Bytes of the stored stream that are read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) position: u64,
    pub(super) length: u64,
    /// `None` if no block holds them.
    pub(super) block: Option<Block>,
}

impl Track {
    /// What there is to play of a recording of which all members are there.
    ///
    /// # Errors
    /// Another program wrote it: then nothing proves its data.
    pub fn of(recording: &Recording) -> Result<Self, RecordingError> {
        if recording.is_foreign() {
            let why = "another program wrote this recording: it has no checksums, so none of it can be proven";
            return Err(RecordingError::Limit(why.to_owned()));
        }
        let members = recording.members();
        let file_of = |number: usize| members.iter().position(|member| member.number == number);
        let block = |block: &recording::Block| {
            let recording::Block { position, length, file_offset: offset, .. } = *block;
            Some(Block { position, length, crc: block.crc?, file: file_of(block.member)?, offset })
        };
        let blocks = recording.blocks();
        let ends = blocks.iter().map(recording::Block::end);
        let ends = ends.chain(recording.holes().iter().map(|hole| hole.position.saturating_add(hole.length)));
        Ok(Self {
            layout: recording.about().layout,
            rate: recording.about().rate,
            timeline: recording.timeline().clone(),
            stored: Bytes(ends.max().unwrap_or(0)),
            files: members.iter().map(|member| Files::of(&member.base).data).collect(),
            blocks: blocks.iter().filter_map(block).collect(),
        })
    }

    /// The index of the first frame that is there: what is missing or left out before it is not played.
    pub fn origin(&self) -> Frames {
        self.timeline.frame_at(0)
    }

    /// Frames from the first to the last, missing ones included.
    pub fn frames(&self) -> Frames {
        Frames(self.timeline.frame_at(self.stored.0).0.saturating_sub(self.origin().0))
    }

    /// Frames that are stored.
    pub fn stored_frames(&self) -> Frames {
        self.layout.frames_in(self.stored)
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
        let missing = |position, until: u64| Stretch { position, length: until - position, block: None };
        for block in &self.blocks {
            // A block that reaches into the one before it, or beyond the end, is not believed.
            let end = block.position.saturating_add(block.length.into());
            if block.length == 0 || block.position < next || end > self.stored.0 {
                continue;
            }
            if block.position > next {
                stretches.push(missing(next, block.position));
            }
            stretches.push(Stretch { position: block.position, length: block.length.into(), block: Some(*block) });
            next = end;
        }
        if next < self.stored.0 {
            stretches.push(missing(next, self.stored.0));
        }
        stretches
    }
}
