//! [`Chain`]: several segments as one recording.

use std::path::Path;

use super::{Ended, Hole, Member, MissingCause, Recording, RecordingError};
use crate::clock::ClockRecord;
use crate::ledger::RecordingVerdict;
use crate::sigmf::About;
use crate::timeline::Timeline;
use crate::verify::disagreements;
use hairspring_ring::gap::Skip;
use hairspring_ring::units::Frames;

/// Puts segments together.
pub(crate) struct Chain<'a> {
    /// The base path of the series.
    pub(crate) base: &'a Path,
    /// What is known to be wrong already.
    pub(crate) faults: Vec<String>,
    /// The numbers of segments that are missing though retention did not delete them, ascending.
    pub(crate) missing: &'a [u32],
}

impl Chain<'_> {
    /// Makes one recording of segments, which ascend.
    pub(crate) fn join(self, segments: Vec<Recording>) -> Result<Recording, RecordingError> {
        let Self { base, mut faults, missing } = self;
        let Some(first) = segments.first() else { return Err(RecordingError::NotFound(base.to_owned())) };
        let about = about_all(&segments)?;
        let mut whole = Recording {
            timeline: Timeline::new(about.layout),
            members: Vec::new(),
            missing_members: Vec::new(),
            blocks: Vec::new(),
            gaps: Vec::new(),
            bounds: Vec::new(),
            cut: None,
            skips: Vec::new(),
            triggers: Vec::new(),
            kept: Vec::new(),
            failures: Vec::new(),
            holes: Vec::new(),
            produced: 0,
            ended: ended_all(&segments),
            faults: Vec::new(),
            doubts: Vec::new(),
            foreign: false,
            sha512: None,
            last_members: segments.last().map_or(0, |last| last.members.len()),
            between: Vec::new(),
            lacks_last_segment: missing.last() > segments.last().and_then(number).as_ref(),
            about,
        };
        let mut previous = first.about.series.as_ref().and_then(|of| of.previous);
        let mut position = 0;
        let mut next = number(first).unwrap_or(0);
        for segment in segments {
            faults.extend(segment.faults.iter().cloned());
            faults.extend(disagreements(&segment));
            let of = segment.about.series.clone();
            if let Some(of) = &of
                && of.previous != previous
                && whole.blocks.is_empty() == whole.members.is_empty()
                && !whole.members.is_empty()
                && whole.end_frame() == of.first.unwrap_or_default()
            {
                faults.push(format!("{}-{:06} follows another recording than the one before it", of.name, of.number));
            }
            previous = Some(segment.about.id);
            let own = number(&segment).unwrap_or(next);
            let cause = match missing.partition_point(|lost| *lost < next) < missing.partition_point(|lost| *lost < own)
            {
                false if own > next => MissingCause::Deleted,
                _ => MissingCause::Undeclared,
            };
            next = own.saturating_add(1);
            position = whole.append(segment, position, cause, &mut faults);
        }
        if let Some(ended) = &mut whole.ended {
            ended.left_out_bytes = whole.skips.iter().map(|(_, skip)| whole.about.layout.bytes_of(skip.frames).0).sum();
        }
        whole.faults = faults;
        Ok(whole)
    }
}

impl Recording {
    /// Whether this is a series, not one recording.
    pub fn is_series(&self) -> bool {
        self.last_members > 0
    }

    /// How many members the last segment of a series has.
    pub(crate) fn last_members(&self) -> usize {
        self.last_members
    }

    /// Appends a segment behind a position of the stored stream. Returns the position behind it. `cause` is why frames before it are missing.
    fn append(&mut self, segment: Recording, base: u64, cause: MissingCause, faults: &mut Vec<String>) -> u64 {
        let shift = self.members.len();
        let running = self.blocks.last().map_or(0, |block| block.index + 1);
        // A resumed series has a shorter block in its middle.
        let index =
            if base.is_multiple_of(self.about.block.0) { (base / self.about.block.0).max(running) } else { running };
        let first = segment.about.series.as_ref().and_then(|of| of.first).unwrap_or_default();
        let here = self.timeline.frame_at(base);
        // A gap can stand at the end of the segment before.
        match first.0.checked_sub(here.0) {
            Some(0) => {}
            Some(frames) => {
                let skip = Skip { first: here, frames: Frames(frames) };
                self.timeline.skip(base, skip.frames);
                self.skips.push((base, skip));
                if shift > 0 {
                    self.between.push((skip, cause));
                }
            }
            None => faults.push(format!("segments overlap: one begins at frame {}, before frame {}", first.0, here.0)),
        }
        for run in segment.timeline.runs() {
            let here = self.timeline.frame_at(base + run.position);
            if let Some(frames) = run.first.0.checked_sub(here.0).filter(|frames| *frames > 0) {
                self.timeline.skip(base + run.position, Frames(frames));
            }
        }
        let end = segment.blocks.last().map_or(0, super::Block::end);
        let end = end.max(segment.holes.last().map_or(0, |hole| hole.position + hole.length));
        self.blocks.extend(segment.blocks.into_iter().map(|block| super::Block {
            index: index + block.index,
            position: base + block.position,
            member: shift + block.member,
            ..block
        }));
        self.produced = self.produced.max(segment.produced);
        self.gaps.extend(segment.gaps.into_iter().map(|(position, gap)| (base + position, gap)));
        self.bounds.extend(segment.bounds);
        let own = segment
            .skips
            .into_iter()
            .filter(|(position, skip)| !(*position == 0 && skip.first == Frames(0) && skip.frames == first));
        self.skips.extend(own.map(|(position, skip)| (base + position, skip)));
        self.triggers.extend(segment.triggers);
        self.failures.extend(
            segment.failures.into_iter().map(|failure| super::Failure { member: shift + failure.member, ..failure }),
        );
        self.holes.extend(segment.holes.into_iter().map(|hole| Hole { position: base + hole.position, ..hole }));
        let of = segment.about.members.len();
        self.missing_members.extend(segment.missing_members.into_iter().map(|(number, path)| (shift + number, path)));
        self.doubts.extend(segment.doubts);
        self.members.extend(segment.members.into_iter().map(|member| Member {
            number: shift + member.number,
            about: About { members: Vec::new(), ..member.about },
            ..member
        }));
        debug_assert!(self.members.len() <= shift + of, "each member once");
        base + end
    }
}

/// The number of a segment.
fn number(segment: &Recording) -> Option<u32> {
    segment.about.series.as_ref().map(|of| of.number)
}

/// The description of the whole.
fn about_all(segments: &[Recording]) -> Result<About, RecordingError> {
    let first = &segments[0].about;
    let mut members = Vec::new();
    let mut clock = ClockRecord::default();
    (clock.boot_id, clock.reference) = (first.clock.boot_id, first.clock.reference);
    clock.external.clone_from(&first.clock.external);
    let mut one_epoch = true;
    for Recording { about, .. } in segments {
        if (about.layout, about.rate, about.block) != (first.layout, first.rate, first.block) {
            return Err(RecordingError::Limit(format!(
                "segments of the series differ in their layout, rate or size of blocks ({} and {}): open them one by one",
                first.members[0].display(),
                about.members[0].display()
            )));
        }
        members.extend(about.members.iter().cloned());
        one_epoch &= about.series.as_ref().map(|of| of.epoch) == first.series.as_ref().map(|of| of.epoch);
        about.clock.pairs().iter().for_each(|pair| clock.pair(*pair));
        about.clock.marks().iter().for_each(|mark| clock.mark(*mark));
        about.clock.external_readings().iter().for_each(|reading| clock.external_reading(*reading));
        about.clock.external_silences().iter().for_each(|silence| clock.external_silence(*silence));
    }
    let id = first.series.as_ref().map_or(first.id, |of| of.id);
    let pattern = first.pattern.clone().filter(|_| one_epoch);
    // The frames of several starts of a source are on no common straight line.
    let clock = if one_epoch { clock } else { ClockRecord::default() };
    let series = first.series.clone();
    Ok(About { id, members, member: 0, pattern, clock, series, ..first.clone() })
}

/// The end of the whole; `None` if a segment was cut off.
fn ended_all(segments: &[Recording]) -> Option<Ended> {
    let mut whole = Ended {
        verdict: RecordingVerdict::Complete,
        recovered: false,
        produced_bytes: 0,
        stored_bytes: 0,
        lost_bytes: 0,
        left_out_bytes: 0,
    };
    for segment in segments {
        let ended = segment.ended?;
        whole.verdict = whole.verdict.max(ended.verdict);
        whole.recovered |= ended.recovered;
        whole.produced_bytes = whole.produced_bytes.max(ended.produced_bytes);
        whole.stored_bytes += ended.stored_bytes;
        whole.lost_bytes += ended.lost_bytes;
    }
    Some(whole)
}
