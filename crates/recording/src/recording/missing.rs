//! [`Missing`]: which frames a recording lacks, and why. Every reader takes its answer from here: exports, `play`,
//! `verify`, Python.
//!
//! **Problem.** Frames are missing for several reasons, and each has a list of its own: gaps and skips in the journals,
//! blocks that are in no file, segments that were deleted, jumps of `core:global_index` in recordings of other
//! programs. A reader of only one list takes frames around another hole for adjacent, or a truncated copy for a whole
//! recording.
//!
//! **Solution.** The existing frames follow from the blocks and the time line alone. All others between the first and
//! the last frame are missing. The lists give the reasons; frames in no list are [`MissingCause::Undeclared`], or
//! [`MissingCause::NotStated`] where another program wrote the recording.
//!
//! ```text
//! first_frame                                                   end_frame
//!  │▓▓▓▓▓▓▓│ gap │▓▓▓▓▓│ in no file │▓▓▓▓▓│ left out │▓▓▓│ in no file │
//! ```

use std::fmt;
use std::ops::Range;

use hairspring_ring::gap::{GapBounds, GapCause};
use hairspring_ring::units::{Bytes, Frames};

use super::{Block, Recording};

/// Why frames are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MissingCause {
    /// A gap that the recording declares.
    Gap(GapCause),
    /// No trigger asked for them.
    LeftOut,
    /// Retention deleted the segment that held them.
    Deleted,
    /// They are in no file, and nothing declares that: a copy that was cut short, a missing member or segment, a block
    /// that was never written.
    Undeclared,
    /// The recording of another program counts past them without a reason.
    NotStated,
}

impl MissingCause {
    /// Its stable name in files and JSON: that of the gap, else `left_out`, `deleted`, `not_stated`; `damaged` for
    /// frames that are in no file, which is the name of the gap that `recover` makes of them.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gap(cause) => cause.name(),
            Self::LeftOut => "left_out",
            Self::Deleted => "deleted",
            Self::Undeclared => GapCause::Damaged.name(),
            Self::NotStated => "not_stated",
        }
    }

    /// Whether data were lost. Frames that no trigger asked for or that retention deleted are not lost.
    pub fn is_loss(self) -> bool {
        !matches!(self, Self::LeftOut | Self::Deleted)
    }

    /// Whether the recording itself declares that they are missing.
    pub fn is_declared(self) -> bool {
        self != Self::Undeclared
    }
}

impl fmt::Display for MissingCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap(cause) => cause.fmt(f),
            Self::LeftOut => f.pad("no trigger asked for them"),
            Self::Deleted => f.pad("retention deleted them"),
            Self::Undeclared => f.pad("in no file, and no gap declares them"),
            Self::NotStated => f.pad("core:global_index counts past them"),
        }
    }
}

/// Frames that follow one another and are missing for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingFrames {
    /// The global index of the first one.
    pub first: Frames,
    /// Their number.
    pub frames: Frames,
    /// The cause.
    pub cause: MissingCause,
    /// The true length of the gap, if that is known as an interval only.
    pub bounds: Option<GapBounds>,
}

impl MissingFrames {
    /// The global index of the first frame after them.
    pub fn end(&self) -> Frames {
        Frames(self.first.0.saturating_add(self.frames.0))
    }
}

/// All missing frames of a recording, ascending, and the frames between which they were counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The extent of the recording.
    extent: Range<u64>,
    stretches: Vec<MissingFrames>,
    is_end_known: bool,
}

impl Missing {
    /// The frames that a recording lacks if only these of its blocks are good; they ascend.
    pub fn of(recording: &Recording, blocks: &[Block]) -> Self {
        let extent = recording.first_frame().0..recording.end_frame().0;
        let claims = claims(recording);
        let unclaimed = if recording.is_foreign() { MissingCause::NotStated } else { MissingCause::Undeclared };
        let (mut stretches, mut at, mut claim) = (Vec::new(), extent.start, 0);
        let ends = present(recording, blocks).chain([(extent.end, extent.end)]);
        for (first, end) in ends {
            explain(at, first.min(extent.end), &claims, &mut claim, unclaimed, &mut stretches);
            at = at.max(end);
        }
        Self { extent, stretches, is_end_known: recording.is_end_known() }
    }

    /// The missing frames, in order.
    pub fn iter(&self) -> impl Iterator<Item = &MissingFrames> {
        self.stretches.iter()
    }

    /// The missing frames of a piece, cut at its ends.
    pub fn within(&self, frames: Range<u64>) -> impl Iterator<Item = MissingFrames> + '_ {
        // A piece without frames lacks none.
        let end = if frames.is_empty() { 0 } else { frames.end };
        let from = self.stretches.partition_point(|stretch| stretch.end().0 <= frames.start);
        let touching = self.stretches[from..].iter().take_while(move |stretch| stretch.first.0 < end);
        touching.map(move |stretch| {
            let (first, end) = (stretch.first.0.max(frames.start), stretch.end().0.min(frames.end));
            MissingFrames { first: Frames(first), frames: Frames(end - first), ..*stretch }
        })
    }

    /// The extent without missing but not lost frames at its ends, and the missing frames between these ends.
    pub fn between_ends(&self) -> (Range<u64>, Vec<MissingFrames>) {
        let (mut range, mut stretches) = (self.extent(), self.stretches.clone());
        leave_out_ends(&mut range, &mut stretches);
        (range, stretches)
    }

    /// Whether no frame is missing.
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// The number of the first frame, and the one after the last, missing ones included.
    pub fn extent(&self) -> Range<u64> {
        self.extent.clone()
    }

    /// Whether the end of the recording is known. If it was cut off, or its last segments are missing, the number of
    /// frames after the last one is unknown.
    pub fn is_end_known(&self) -> bool {
        self.is_end_known
    }
}

/// Leaves out missing frames at both ends of a piece that are not lost: frames that no trigger asked for or that
/// retention deleted.
pub fn leave_out_ends(range: &mut Range<u64>, missing: &mut Vec<MissingFrames>) {
    let is_end = |it: Option<&MissingFrames>| it.filter(|it| !it.cause.is_loss()).copied();
    while let Some(last) = is_end(missing.last()).filter(|last| last.end().0 == range.end) {
        range.end = last.first.0;
        missing.pop();
    }
    let mut leading = 0;
    while let Some(first) = is_end(missing.get(leading)).filter(|first| first.first.0 == range.start) {
        range.start = first.end().0;
        leading += 1;
    }
    missing.drain(..leading);
}

impl Recording {
    /// Which frames are missing, and why. Blocks listed in a journal count as existing; nothing is read.
    pub fn missing(&self) -> Missing {
        Missing::of(self, &self.blocks)
    }

    /// The number of the first frame: 0, that of a segment in its series, or the first index of another program's
    /// recording.
    pub fn first_frame(&self) -> Frames {
        match &self.about.series {
            _ if self.is_foreign() => self.timeline.frame_at(0),
            Some(of) => of.first.unwrap_or_default(),
            None => Frames(0),
        }
    }

    /// The number after the last frame that is stored or missing.
    pub fn end_frame(&self) -> Frames {
        let stored = self.blocks.last().map_or(0, Block::end);
        let end = self.holes.last().map_or(0, |hole| hole.position.saturating_add(hole.length)).max(stored);
        self.timeline.frame_at(end).max(self.first_frame())
    }

    /// Whether the end of the recording is known: it ended in order, or was mended.
    fn is_end_known(&self) -> bool {
        match self.is_foreign() {
            // Its file is all that is known, unless it is shorter than its captures.
            true => self.faults.is_empty(),
            false => self.ended.is_some() && !self.lacks_last_segment,
        }
    }
}

/// The runs of frames in these blocks: the first frame, and the one after the last.
fn present<'a>(recording: &'a Recording, blocks: &'a [Block]) -> impl Iterator<Item = (u64, u64)> + 'a {
    let (timeline, layout) = (recording.timeline(), recording.about().layout);
    let runs = blocks.iter().flat_map(move |block| timeline.runs_in(block.position, Bytes(block.length.into())));
    runs.map(move |run| (run.first.0, run.first.0.saturating_add(layout.frames_in(run.length.unwrap_or_default()).0)))
}

/// The entries of a recording's lists, ascending; of two that touch the same frames, the first counts.
fn claims(recording: &Recording) -> Vec<MissingFrames> {
    // Ascending, like the gaps.
    let bounds = |first: Frames| {
        let found = recording.bounds.binary_search_by_key(&first, |bounds| bounds.first);
        found.ok().map(|number| recording.bounds[number])
    };
    let gaps = recording.gaps.iter().map(|(_, gap)| MissingFrames {
        first: gap.first,
        frames: gap.frames,
        cause: MissingCause::Gap(gap.cause),
        bounds: bounds(gap.first),
    });
    let between = recording.between.iter().map(|(skip, cause)| (*skip, *cause));
    let skips = recording.skips.iter().map(|(_, skip)| (*skip, MissingCause::LeftOut));
    let skips = between.chain(skips).map(|(skip, cause)| MissingFrames {
        first: skip.first,
        frames: skip.frames,
        cause,
        bounds: None,
    });
    // Another program's file that was cut short: the frames after its end are in no file.
    let foreign = recording.holes.first().filter(|_| recording.is_foreign()).map(|hole| {
        let first =
            recording.blocks.last().map_or(recording.first_frame(), |block| recording.timeline.frame_at(block.end()));
        debug_assert!(hole.position >= recording.blocks.last().map_or(0, Block::end), "the end of the file");
        let frames = Frames(recording.end_frame().0.saturating_sub(first.0));
        MissingFrames { first, frames, cause: MissingCause::Undeclared, bounds: None }
    });
    let mut claims: Vec<MissingFrames> = gaps.chain(skips).chain(foreign).collect();
    claims.sort_by_key(|claim| claim.first);
    claims
}

/// Enters the missing frames from `at` to before `end`, divided by the claims.
fn explain(
    mut at: u64,
    end: u64,
    claims: &[MissingFrames],
    next: &mut usize,
    unclaimed: MissingCause,
    stretches: &mut Vec<MissingFrames>,
) {
    let mut push = |first: u64, end: u64, cause, bounds: Option<GapBounds>| {
        let frames = Frames(end - first);
        match stretches.last_mut() {
            // A journal has a record for each piece of a gap.
            Some(last) if last.end().0 == first && last.cause == cause && last.bounds.is_none() && bounds.is_none() => {
                last.frames.0 += frames.0;
            }
            _ => stretches.push(MissingFrames { first: Frames(first), frames, cause, bounds }),
        }
    };
    while at < end {
        while claims.get(*next).is_some_and(|claim| claim.end().0 <= at) {
            *next += 1;
        }
        let claim = claims.get(*next).filter(|claim| claim.first.0 < end);
        let Some(claim) = claim else {
            push(at, end, unclaimed, None);
            return;
        };
        if claim.first.0 > at {
            push(at, claim.first.0, unclaimed, None);
        }
        let (first, last) = (claim.first.0.max(at), claim.end().0.min(end));
        push(first, last, claim.cause, claim.bounds);
        at = last;
    }
}

#[cfg(test)]
mod tests;
