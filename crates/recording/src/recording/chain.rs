//! [`Chain`]: several segments as one recording. It keeps the blocks' places and the missing frames of each segment,
//! but neither its journals nor its description, so that a series of 100,000 segments fits into memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Ended, Hole, Member, MissingCause, Recording, RecordingError};
use crate::clock::ClockRecord;
use crate::journal::{JournalContents, RecordingId};
use crate::ledger::RecordingVerdict;
use crate::sigmf::About;
use crate::timeline::Timeline;
use crate::verify::disagreements;
use hairspring_ring::gap::Skip;
use hairspring_ring::units::Frames;
use hairspring_store::owner::Holder;

/// Puts segments together.
pub(crate) struct Chain<'a> {
    /// The base path of the series.
    base: &'a Path,
    /// The numbers of segments that are missing though retention did not delete them, ascending.
    missing: &'a [u32],
    /// The known faults.
    faults: Vec<String>,
    /// How many segments are expected.
    expected: usize,
    whole: Option<Recording>,
    /// The sums over the ends of all appended segments, unless one was cut off.
    ended: Option<Ended>,
    /// The description of every member.
    shared: Option<Arc<About>>,
    /// The first segment, for messages.
    first: PathBuf,
    one_epoch: bool,
    /// The number after the last segment's.
    next: Option<u32>,
    /// The id of the last segment's recording.
    previous: Option<RecordingId>,
    /// The position after the last segment.
    position: u64,
    /// The owner of the series, or else of the first segment that has one.
    pub holder: Option<Holder>,
}

impl<'a> Chain<'a> {
    /// A chain without segments. `faults` are known already.
    pub(crate) fn new(base: &'a Path, missing: &'a [u32], faults: Vec<String>, expected: usize) -> Self {
        let ended = Ended {
            verdict: RecordingVerdict::Complete,
            recovered: false,
            produced_bytes: 0,
            stored_bytes: 0,
            lost_bytes: 0,
            left_out_bytes: 0,
        };
        Self {
            base,
            missing,
            faults,
            expected,
            whole: None,
            ended: Some(ended),
            shared: None,
            first: PathBuf::new(),
            one_epoch: true,
            next: None,
            previous: None,
            position: 0,
            holder: None,
        }
    }

    /// Appends a segment. Segments ascend.
    pub(crate) fn append(&mut self, segment: Recording) -> Result<(), RecordingError> {
        if self.whole.is_none() {
            self.begin(&segment);
        }
        let (Some(whole), Some(shared)) = (&mut self.whole, &self.shared) else { return Ok(()) };
        let of = &segment.about;
        if (of.layout, of.rate, of.block) != (shared.layout, shared.rate, shared.block) {
            return Err(RecordingError::Limit(format!(
                "segments of the series differ in their layout, rate or size of blocks ({} and {}): open them one by one",
                self.first.display(),
                of.members[0].display()
            )));
        }
        self.holder = self.holder.or(segment.holder);
        self.faults.extend(segment.faults.iter().cloned());
        self.faults.extend(disagreements(&segment));
        if let Some(place) = &of.series
            && place.previous != self.previous
            && whole.blocks.is_empty() == whole.members.is_empty()
            && !whole.members.is_empty()
            && whole.end_frame() == place.first.unwrap_or_default()
        {
            let (name, number) = (&place.name, place.number);
            self.faults.push(format!("{name}-{number:06} follows another recording than the one before it"));
        }
        self.previous = Some(of.id);
        self.one_epoch &= of.series.as_ref().map(|of| of.epoch) == shared.series.as_ref().map(|of| of.epoch);
        whole.about.members.extend(of.members.iter().cloned());
        let clock = &mut whole.about.clock;
        of.clock.pairs().iter().for_each(|pair| clock.pair(*pair));
        of.clock.marks().iter().for_each(|mark| clock.mark(*mark));
        of.clock.external_readings().iter().for_each(|reading| clock.external_reading(*reading));
        of.clock.external_silences().iter().for_each(|silence| clock.external_silence(*silence));
        self.ended = self.ended.zip(segment.ended).map(|(whole, one)| Ended {
            verdict: whole.verdict.max(one.verdict),
            recovered: whole.recovered | one.recovered,
            produced_bytes: whole.produced_bytes.max(one.produced_bytes),
            stored_bytes: whole.stored_bytes + one.stored_bytes,
            lost_bytes: whole.lost_bytes + one.lost_bytes,
            left_out_bytes: 0,
        });
        whole.last_members = segment.members.len();
        let lost_before = |number: u32| self.missing.partition_point(|lost| *lost < number);
        let own = of.series.as_ref().map(|of| of.number).or(self.next).unwrap_or(0);
        let next = self.next.unwrap_or(own);
        let cause = match lost_before(next) < lost_before(own) {
            false if own > next => MissingCause::Deleted,
            _ => MissingCause::Undeclared,
        };
        self.next = Some(own.saturating_add(1));
        self.position = whole.append(segment, self.position, cause, shared, &mut self.faults);
        Ok(())
    }

    /// Takes over the facts of the first segment that hold for all.
    fn begin(&mut self, segment: &Recording) {
        let about = &segment.about;
        self.first = about.members[0].clone();
        self.previous = about.series.as_ref().and_then(|of| of.previous);
        let mut clock = ClockRecord::default();
        (clock.boot_id, clock.reference) = (about.clock.boot_id, about.clock.reference);
        clock.external.clone_from(&about.clock.external);
        let id = about.series.as_ref().map_or(about.id, |of| of.id);
        let about = About { id, members: Vec::new(), member: 0, clock, ..about.clone() };
        self.shared = Some(Arc::new(about.clone()));
        self.whole = Some(Recording {
            timeline: Timeline::new(about.layout),
            members: Vec::with_capacity(self.expected * segment.members.len()),
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
            ended: None,
            faults: Vec::new(),
            doubts: Vec::new(),
            foreign: None,
            last_members: 0,
            series_base: Some(self.base.to_owned()),
            between: Vec::new(),
            lacks_last_segment: false,
            holder: None,
            about,
        });
    }

    /// The whole.
    pub(crate) fn end(self) -> Result<Recording, RecordingError> {
        let Some(mut whole) = self.whole else { return Err(RecordingError::NotFound(self.base.to_owned())) };
        whole.ended = self.ended;
        whole.holder = self.holder;
        whole.lacks_last_segment = self.missing.last().is_some_and(|lost| self.next.is_none_or(|next| *lost >= next));
        if let Some(ended) = &mut whole.ended {
            ended.left_out_bytes = whole.skips.iter().map(|(_, skip)| whole.about.layout.bytes_of(skip.frames).0).sum();
        }
        if !self.one_epoch {
            // The frames of several starts of a source are on no common straight line.
            (whole.about.pattern, whole.about.clock) = (None, ClockRecord::default());
        }
        whole.faults = self.faults;
        Ok(whole)
    }
}

impl Recording {
    /// Whether this is a series, not one recording.
    pub fn is_series(&self) -> bool {
        self.last_members > 0
    }

    /// How many members the last segment of a series has.
    pub fn last_members(&self) -> usize {
        self.last_members
    }

    /// Appends a segment at a position of the stored stream. Returns the position after it. `cause` is why frames
    /// before it are missing.
    fn append(
        &mut self,
        segment: Recording,
        base: u64,
        cause: MissingCause,
        shared: &Arc<About>,
        faults: &mut Vec<String>,
    ) -> u64 {
        let shift = self.members.len();
        let running = self.blocks.last().map_or(0, |block| block.index + 1);
        // A resumed series has a shorter block in its middle.
        let index =
            if base.is_multiple_of(self.about.block.0) { (base / self.about.block.0).max(running) } else { running };
        let first = segment.about.series.as_ref().and_then(|of| of.first).unwrap_or_default();
        let here = self.timeline.frame_at(base);
        // A gap can stand at the end of the previous segment.
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
            about: Arc::clone(shared),
            closing: member.closing.filter(|_| shift + member.number == 0),
            segments: Vec::new(),
            journal: JournalContents::default(),
            ..member
        }));
        debug_assert!(self.members.len() <= shift + of, "each member once");
        base + end
    }
}
