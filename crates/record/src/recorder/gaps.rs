//! Missing data: gaps are entered where they are found, before the block in which they lie.

use hairspring_machine::Instant;
use hairspring_ring::gap::{Gap, GapCause};
use hairspring_ring::units::{Bytes, Frames};

use super::Recorder;
use hairspring_recording::journal::Record;

impl Recorder {
    /// Enters the frames between the present ring position and `to` as lost, and the source's gaps among them.
    pub(super) fn lose(&mut self, to: u64, cause: GapCause, now: Instant) {
        while self.position < to || self.inlet.next_gap_at().is_some_and(|at| at <= to) {
            let until = self.inlet.next_gap_at().map_or(to, |at| at.min(to));
            let bytes = until - self.position;
            if bytes > 0 {
                let frames = self.timeline.layout().frames_in(Bytes(bytes));
                self.lost_bytes += bytes;
                self.enter_gap(Gap { first: self.frame, frames, cause, found: now });
                self.position = until;
            }
            if let Some((_, gap)) = self.inlet.gap_before(until) {
                self.enter_source_gap(gap);
            }
        }
    }

    /// Enters a gap that the source declared, at the frame where the stream is now.
    pub(super) fn enter_source_gap(&mut self, gap: Gap) {
        // The source counts from its own start.
        let gap = Gap { first: Frames(gap.first.0 + self.place.origin.0), ..gap };
        self.source_lost_bytes += self.timeline.layout().bytes_of(gap.frames).0;
        if gap.first != self.frame {
            self.misplaced += 1;
        }
        self.enter_gap(gap);
    }

    /// Enters a gap before the next byte of the stored stream.
    pub(super) fn enter_gap(&mut self, gap: Gap) {
        let position = self.end_of_stored();
        self.flush_skip(position);
        self.frame.0 += gap.frames.0;
        if let Some(gate) = &mut self.setup.gate {
            gate.jump(self.frame);
        }
        self.record_all(&Record::Gap { position, gap });
        if gap.cause.is_in_stream() {
            self.stored_position += self.timeline.layout().bytes_of(gap.frames).0;
        } else {
            self.timeline.skip(position, gap.frames);
        }
        self.declare(gap);
    }

    /// Adds a gap to the list, which is in order. Gaps of one cause that touch become one.
    pub(super) fn declare(&mut self, gap: Gap) {
        let at = self.gaps.partition_point(|other| other.first < gap.first);
        match self.gaps[..at].last_mut() {
            Some(last) if last.end() == gap.first && last.cause == gap.cause => last.frames.0 += gap.frames.0,
            _ => self.gaps.insert(at, gap),
        }
    }
}
