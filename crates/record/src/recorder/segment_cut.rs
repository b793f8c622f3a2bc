//! The recorder of a segment: where in the series its stream begins, and the cut with which the next segment takes
//! over.
//!
//! ```text
//!   frames of the series   0 ······ first ─── stored ─── cut = first of the next
//!   this segment           left out  [  block  ][  block  ]
//! ```
//!
//! Positions, blocks and files restart in each segment; frames are counted through. So the stored stream of a
//! segment begins after a skip of all frames before it, and everything else is as in a recording alone.
//!
//! A cut lies between two blocks, and blocks are whole grains: nothing is lost or divided there. Where a trigger
//! chooses the data, a cut lies between two shots; the last block of the segment is as long as the kept data, and the
//! gate goes on in the next segment.

use hairspring_machine::Instant;
use hairspring_ring::gap::{Gap, GapCause, Skip};
use hairspring_ring::units::Frames;
use hairspring_source::trigger::Gate;
use hairspring_source::{Ignored, SourceCounters};

use super::feed::Staging;
use super::{Phase, Recorder};
use hairspring_recording::beginning::Beginning;
use hairspring_recording::clock::ClockNote;
use hairspring_recording::journal::{GapBounds, InSeries, Record, RecordingId};

/// Where a stream begins, and the account before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// The first frame of this segment, stored or lost.
    pub(super) first: Frames,
    /// The frame that the source counts as 0.
    pub(super) origin: Frames,
    /// Bytes of the source's gaps in earlier segments.
    pub(super) source_lost_bytes: u64,
    /// Datagrams that were ignored during earlier segments.
    pub(super) ignored: Ignored,
}

impl Recorder {
    /// Enters the journal's first records: the place in the series, the account of earlier segments, and facts about
    /// the clocks.
    pub(super) fn enter_place(&mut self) {
        if let Some(of) = self.setup.series.clone() {
            let first = of.first.unwrap_or_default();
            (self.place.first, self.place.origin, self.frame) = (first, of.epoch_first, first);
            self.setup.gate.iter_mut().for_each(|gate| gate.jump(first));
            let (series, previous) = (of.id, of.previous.unwrap_or_default());
            if of.epoch_first > Frames(0) {
                self.record_all(&Record::Epoch { first: of.epoch_first });
            }
            self.record_all(&Record::Series(InSeries { series, number: of.number, first, previous, epoch: of.epoch }));
            if first > Frames(0) {
                let skip = Skip { first: Frames(0), frames: first };
                self.timeline.skip(0, first);
                self.record_all(&Record::Skip { position: 0, skip });
                self.skips.push(skip);
                self.left_out_bytes = self.timeline.layout().bytes_of(first).0;
            }
        }
        for record in self.clock.records() {
            self.record_all(&record);
        }
        if let Some(bounds) = self.resumed {
            let found = self.setup.opened.monotonic;
            let gap = Gap { first: bounds.first, frames: bounds.least, cause: GapCause::Resumed, found };
            if bounds.most > bounds.least {
                self.record_all(&Record::Bounds(bounds));
            }
            if gap.frames > Frames(0) {
                self.lost_bytes += self.timeline.layout().bytes_of(gap.frames).0;
                self.enter_gap(gap);
            }
        }
    }

    /// Enters the start of a resumed series, once its time is known.
    pub(super) fn settle_place(&mut self, beginning: Beginning) {
        let Some(from) = self.setup.resumed.take() else { return };
        let count = self.first_count.take();
        let bounds = from.bounds(beginning, &self.clock, count);
        self.resumed = Some(bounds);
        if let Some(of) = &mut self.setup.series {
            of.epoch_first = Frames(bounds.first.0 + bounds.least.0);
        }
        self.enter_place();
        count.into_iter().for_each(|count| self.note(ClockNote::Count(count)));
    }

    /// Whether the start of the stream is known. A source that ended before it began lost nothing.
    pub(super) fn has_place(&mut self) -> bool {
        if self.setup.resumed.is_some() && self.inlet.closed().is_some() {
            self.settle_place(self.setup.opened);
        }
        self.setup.resumed.is_none()
    }

    /// The gap with which a resumed series began again, and its epoch.
    pub fn resumed(&self) -> Option<(u16, GapBounds)> {
        Some((self.setup.series.as_ref()?.epoch, self.resumed?))
    }

    /// Bytes in the ring that still belong to this segment.
    pub(super) fn bytes_before_cut(&self) -> u64 {
        self.cut_after
            .map_or(u64::MAX, |blocks| blocks.saturating_sub(self.block_states.len()).saturating_mul(self.block))
    }

    /// Whether all blocks before the cut are taken.
    pub(super) fn is_full(&self) -> bool {
        let Some(blocks) = self.cut_after else { return false };
        if !self.setup.gated {
            return self.block_states.len() >= blocks;
        }
        let begun = self.block_states.len() + u64::from(self.ahead_bytes() > 0);
        begun >= blocks && self.is_between_shots() && self.inlet.closed().is_none()
    }

    /// Whether no shot would be divided here.
    fn is_between_shots(&self) -> bool {
        let between = self.setup.gate.as_ref().is_none_or(Gate::is_between_shots);
        between && !self.staging.as_ref().is_some_and(Staging::owes_copies)
    }

    /// Number of blocks taken up to now.
    pub fn blocks_taken(&self) -> u64 {
        self.block_states.len()
    }

    /// The first frame of this segment, stored or lost.
    pub fn first_frame(&self) -> Frames {
        self.place.first
    }

    /// The first frame that is not in this segment, as of now.
    pub fn end_frame(&self) -> Frames {
        self.frame
    }

    /// Stops taking data after `blocks` blocks, or as soon as possible afterwards.
    pub fn cut_after(&mut self, blocks: u64) {
        // Gaps were entered up to here already, so the frames before it are counted.
        let ahead = self.ahead_bytes().div_ceil(self.block);
        self.cut_after = Some(blocks.max(self.block_states.len() + ahead).max(1));
    }

    /// Takes data without a cut again.
    pub fn do_not_cut(&mut self) {
        self.cut_after = None;
    }

    /// Whether [`cut`](Self::cut) would divide the stream now: all blocks before it are taken, and data or gaps follow.
    pub fn is_at_cut(&mut self) -> bool {
        self.something_follows() && self.may_cut()
    }

    /// Whether the ring holds data or gaps that were not taken.
    fn something_follows(&self) -> bool {
        self.inlet.available() > 0 || self.inlet.next_gap_at().is_some()
    }

    /// Whether [`cut`](Self::cut) is possible now: like [`is_at_cut`](Self::is_at_cut), but perhaps nothing follows
    /// yet. The next segment stays empty if nothing ever does.
    pub fn may_cut(&mut self) -> bool {
        // The rest of a shot in an unfinished block becomes the segment's last block.
        let is_whole = self.ahead_bytes() == 0 || self.setup.gated && self.journals_have_room();
        self.phase == Phase::Streaming && self.failed.is_none() && self.is_full() && is_whole && !self.inlet.owes()
    }

    /// Whether all blocks before the cut are taken and the source has ended there.
    pub fn ends_at_cut(&self) -> bool {
        self.is_full() && self.inlet.closed().is_some() && !self.something_follows()
    }

    /// Ends this segment and gives the ring to the recorder of the next, which was made by [`Recorder::prepare`].
    /// Returns whether that was possible: [`may_cut`](Self::may_cut). The caller keeps calling this recorder until it
    /// is done; it may move to another thread, and needs no more counts of the source.
    pub fn cut(&mut self, next: &mut Self, now: Instant, counters: SourceCounters) -> bool {
        if !self.may_cut() || self.ahead_bytes() > 0 && !self.send_copies(now) {
            return false;
        }
        let Some(handed) = self.inlet.hand_on() else { return false };
        let first = self.frame;
        let position = self.end_of_stored();
        self.flush_skip(position);
        let bytes_of = |frames: Frames| self.timeline.layout().bytes_of(frames).0;
        let lost_bytes = self.place.source_lost_bytes + self.source_lost_bytes;
        let produced_bytes = bytes_of(first) - bytes_of(self.place.origin);
        self.sealed = Some(SourceCounters { produced_bytes, lost_bytes, fifo_bytes: 0, ..counters });
        if self.taken.is_empty() {
            self.inlet.nothing_taken();
        }
        self.record_all(&Record::Cut { frame: first });
        self.phase = Phase::Draining;
        let place = Place { source_lost_bytes: lost_bytes, ignored: counters.ignored, ..self.place };
        next.inlet.join(handed);
        next.position = next.inlet.next();
        next.place = place;
        next.clock = self.clock.continued();
        if let Some(of) = &mut next.setup.series {
            (of.first, of.previous, of.epoch_first) = (Some(first), Some(self.setup.id), self.place.origin);
        }
        next.enter_place();
        if let Some(beginning) = self.beginning {
            next.begins(beginning);
        }
        // The gate uses the clock of the first call of `begins`, so it is moved after that call.
        next.setup.gate = self.setup.gate.take();
        next.setup.keep_on = self.setup.keep_on.take();
        if let (Some(ours), Some(theirs)) = (&mut self.staging, &mut next.staging) {
            ours.hand_on(theirs);
        }
        true
    }

    /// Whether the stream has ended, or was cut.
    pub fn is_ending(&self) -> bool {
        self.inlet.closed().is_some()
    }

    /// How full the ring is.
    pub fn fill(&self) -> hairspring_ring::Fill {
        self.inlet.fill()
    }

    /// The id of the recording.
    pub fn id(&self) -> RecordingId {
        self.setup.id
    }

    /// Datagrams that were ignored during this segment.
    pub(super) fn ignored(&self, counters: SourceCounters) -> Ignored {
        let before = self.place.ignored.named().map(|(_, count)| count);
        let mut counts = counters.ignored.named().map(|(_, count)| count);
        counts.iter_mut().zip(before).for_each(|(count, before)| *count = count.saturating_sub(before));
        Ignored::of(counts)
    }
}
