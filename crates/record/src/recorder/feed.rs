//! Takes data out of the ring: whole blocks in place, or copies where data may be overwritten or left out.

use hairspring_machine::Instant;

use hairspring_recording::journal::Record;
use hairspring_ring::gap::{GapCause, Skip};
use hairspring_ring::memory::{Memory, MemoryError};
use hairspring_ring::units::{Bytes, Frames};
use hairspring_store::lent_memory::{Scratch, pages_for};
use hairspring_store::{MemoryId, Piece, Store};

use super::{Phase, Recorder};

/// Buffers in which blocks are assembled.
pub(super) struct Staging {
    scratch: Scratch,
    memory: MemoryId,
    block: usize,
    free: Vec<usize>,
    /// The buffer that is being filled, and the bytes in it.
    current: Option<usize>,
    filled: usize,
    /// Frames that the gate has decided on but that are not yet copied or left out: their number, and the shot if they
    /// are kept.
    decided: Option<(Frames, Option<u64>)>,
}

impl Staging {
    pub(super) fn new(store: &mut dyn Store, block: u64, buffers: usize) -> Result<Self, MemoryError> {
        let size = Bytes(block * buffers as u64);
        let (scratch, memory) = Scratch::attached(Memory::plain(size, size, pages_for(size))?, store);
        let free = (0..buffers).rev().collect();
        Ok(Self { scratch, memory, block: block as usize, free, current: None, filled: 0, decided: None })
    }

    /// Bytes that are copied but not yet in a block.
    pub(super) fn waiting_bytes(&self) -> u64 {
        self.filled as u64
    }

    pub(super) fn give_back(&mut self, buffer: usize) {
        self.free.push(buffer);
    }

    /// Whether there is a buffer to fill.
    fn has_buffer(&mut self) -> bool {
        if self.current.is_none() {
            self.current = self.free.pop();
        }
        self.current.is_some()
    }

    /// Whether frames that are to be kept are decided on and not yet copied.
    pub(super) fn owes_copies(&self) -> bool {
        matches!(self.decided, Some((_, Some(_))))
    }

    /// Hands on to the next recorder the decided frames that are still to be left out.
    pub(super) fn hand_on(&mut self, next: &mut Self) {
        next.decided = self.decided.take();
    }

    /// Discards copied bytes that are in no block.
    pub(super) fn discard(&mut self) {
        self.decided = None;
        self.filled = 0;
    }

    fn space(&self) -> usize {
        self.block - self.filled
    }

    /// The bytes that were copied last.
    fn newest(&mut self, bytes: usize) -> &[u8] {
        let end = self.current.map_or(0, |buffer| buffer * self.block + self.filled);
        self.scratch.bytes(end.saturating_sub(bytes), bytes)
    }

    fn copy(&mut self, bytes: &[u8]) {
        if let Some(buffer) = self.current {
            self.scratch.bytes(buffer * self.block + self.filled, bytes.len()).copy_from_slice(bytes);
            self.filled += bytes.len();
        }
    }
}

impl Recorder {
    /// Takes the available data and submits them.
    pub(super) fn feed(&mut self, now: Instant) {
        if self.failed.is_some() {
            self.feed_nothing(now);
        } else if self.staging.is_some() {
            self.feed_copies(now);
        } else {
            self.feed_slices(now);
        }
    }

    /// Takes whole blocks in place.
    fn feed_slices(&mut self, now: Instant) {
        while self.journals_have_room() && self.failed.is_none() && !self.is_full() {
            // Read the end before the head. In the other order the last bytes could be missed.
            let closed = self.inlet.closed();
            let available = self.inlet.available();
            // The ring's list of gaps is bounded, and while it is full no data come in. So gaps are entered as soon as
            // they are seen, ahead of their block, which might otherwise never become whole. Gaps after a cut are left
            // to the next segment.
            let seen = available.min(self.bytes_before_cut());
            if let Some((at, gap)) = self.inlet.gap_before(self.inlet.next() + seen) {
                self.pass_to(at);
                self.enter_source_gap(gap);
                continue;
            }
            if available == 0 && closed.is_some() {
                self.end_of_stream(now);
                return;
            }
            if available < self.block && closed.is_none() || available == 0 {
                return;
            }
            let length = available.min(self.block);
            let Some(slot) = self.slot_for(length) else { return };
            let start = self.inlet.next();
            self.pass_to(start + length);
            self.inlet.take(length);
            self.taken.push_back((start + length, false));
            let piece = Piece { memory: self.ring, at: self.inlet.offset(start), length: length as usize };
            self.write_block(slot, piece, Some(start + length), None, now);
            let before = (self.setup.stopwatch)();
            let crc = crc32c::crc32c(self.inlet.view(start, length as usize));
            self.checksummed(slot, crc, before);
        }
    }

    /// Counts the frames up to a ring position; all of them become part of the stored stream. Frames before a gap that
    /// was entered ahead were counted with it.
    fn pass_to(&mut self, to: u64) {
        let bytes = to.saturating_sub(self.position);
        if let Some(watch) = self.setup.keep_on.as_mut().filter(|_| bytes > 0) {
            let found = watch.look(self.frame, self.inlet.view(self.position, bytes as usize));
            self.keep(found);
        }
        self.position += bytes;
        self.stored_position += bytes;
        self.frame.0 += self.timeline.layout().frames_in(Bytes(bytes)).0;
    }

    /// Bytes that have a place in the stored stream but are in no block yet: copies, or bytes in the ring before a gap
    /// that was entered ahead.
    pub(super) fn ahead_bytes(&self) -> u64 {
        match &self.staging {
            Some(staging) => staging.waiting_bytes(),
            None => self.position - self.inlet.next(),
        }
    }

    /// Copies the data to be kept into blocks.
    fn feed_copies(&mut self, now: Instant) {
        while self.journals_have_room() && self.failed.is_none() && !self.is_full() {
            let closed = self.inlet.closed();
            let head = self.inlet.head();
            if let Some((_, gap)) = self.inlet.gap_before(self.position) {
                self.enter_source_gap(gap);
                continue;
            }
            let Some(staging) = &mut self.staging else { return };
            if !staging.has_buffer() {
                return;
            }
            if staging.space() == 0 {
                if !self.send_copies(now) {
                    return;
                }
                continue;
            }
            let gap_at = self.inlet.next_gap_at().filter(|at| *at <= head);
            let limit = gap_at.unwrap_or(head);
            // Also if the gap comes after the newest byte, because no data come in before all gaps there are taken.
            let ends_here = gap_at.is_some() || closed.is_some();
            if gap_at == Some(self.position) {
                continue;
            }
            if limit == self.position && closed.is_some() && limit == head {
                self.end_of_stream(now);
                return;
            }
            if !self.copy_some(limit, !ends_here, now) {
                return;
            }
        }
    }

    /// Copies or leaves out bytes before a ring position; `false` if nothing could be decided yet.
    fn copy_some(&mut self, limit: u64, more_to_come: bool, now: Instant) -> bool {
        let Some(staging) = &mut self.staging else { return false };
        let (layout, expected, frame) = (self.timeline.layout(), self.position, self.frame);
        let gate = &mut self.setup.gate;
        let mut tail = expected;
        let mut used = 0;
        let mut left_out = Frames(0);
        let mut triggered = None;
        let most = (limit - expected) as usize;
        self.inlet.take_held(most, |begin, bytes| {
            tail = begin;
            if begin != expected {
                return 0;
            }
            if staging.decided.is_none() {
                staging.decided = Some(match gate {
                    None => (layout.frames_in(Bytes(bytes.len() as u64)), Some(0)),
                    Some(gate) => {
                        let decision = gate.feed(frame, bytes, more_to_come);
                        triggered = decision.triggered.zip(decision.keep);
                        (decision.frames, decision.keep)
                    }
                });
            }
            let Some((frames, keep)) = staging.decided else { return 0 };
            let whole = (layout.bytes_of(frames).0 as usize).min(bytes.len());
            used = if keep.is_some() { whole.min(staging.space()) } else { whole };
            match keep {
                Some(_) => staging.copy(&bytes[..used]),
                None => left_out = layout.frames_in(Bytes(used as u64)),
            }
            let rest = Frames(frames.0 - layout.frames_in(Bytes(used as u64)).0);
            staging.decided = (rest.0 > 0).then_some((rest, keep));
            used
        });
        if tail != expected {
            staging.decided = None;
            self.lose(tail, GapCause::Overwritten, now);
            return true;
        }
        if let Some((frame, shot)) = triggered {
            self.triggers.push((shot, frame));
            self.record_all(&Record::Trigger { frame, shot });
        }
        self.position += used as u64;
        if left_out.0 > 0 {
            self.leave_out(left_out, used as u64);
        } else if used > 0 {
            let position = self.end_of_stored() - used as u64;
            self.flush_skip(position);
            if let Some((watch, staging)) = self.setup.keep_on.as_mut().zip(self.staging.as_mut()) {
                let found = watch.look(self.frame, staging.newest(used));
                self.keep(found);
            }
            self.frame.0 += layout.frames_in(Bytes(used as u64)).0;
        }
        used > 0
    }

    fn leave_out(&mut self, frames: Frames, bytes: u64) {
        self.left_out_bytes += bytes;
        match &mut self.pending_skip {
            Some(skip) => skip.frames.0 += frames.0,
            None => self.pending_skip = Some(Skip { first: self.frame, frames }),
        }
        self.frame.0 += frames.0;
    }

    /// Enters the frames left out before a position of the stored stream.
    pub(super) fn flush_skip(&mut self, position: u64) {
        if let Some(skip) = self.pending_skip.take() {
            self.timeline.skip(position, skip.frames);
            self.record_all(&Record::Skip { position, skip });
            self.skips.push(skip);
        }
    }

    /// Submits the buffer, full or not; `false` if too many writes are under way.
    pub(super) fn send_copies(&mut self, now: Instant) -> bool {
        let filled = self.staging.as_ref().map_or(0, Staging::waiting_bytes);
        let Some(slot) = self.slot_for(filled) else { return false };
        let Some(staging) = &mut self.staging else { return false };
        let Some(buffer) = staging.current.take() else { return false };
        let (at, length) = (buffer * staging.block, std::mem::take(&mut staging.filled));
        let piece = Piece { memory: staging.memory, at, length };
        self.stored_position += length as u64;
        self.write_block(slot, piece, None, Some(buffer), now);
        let before = (self.setup.stopwatch)();
        let crc = self.staging.as_ref().map_or(0, |staging| crc32c::crc32c(staging.scratch.view(at, length)));
        self.checksummed(slot, crc, before);
        true
    }

    /// Takes the remaining gaps and the last block, after all data were taken.
    fn end_of_stream(&mut self, now: Instant) {
        while let Some((_, gap)) = self.inlet.gap_before(self.position) {
            self.enter_source_gap(gap);
        }
        if self.staging.as_ref().is_some_and(|staging| staging.filled > 0) && !self.send_copies(now) {
            return;
        }
        if let Some((_, _, Some(gap))) = self.inlet.closed() {
            self.enter_source_gap(gap);
        }
        let position = self.end_of_stored();
        self.flush_skip(position);
        self.phase = Phase::Draining;
    }

    /// Enters all data as lost until the source has ended, because no target is left.
    fn feed_nothing(&mut self, now: Instant) {
        if !self.failure_is_settled || !self.journals_have_room() {
            return;
        }
        let closed = self.inlet.closed();
        let head = self.inlet.head();
        // One gap at a time, because the journal's buffer is finite.
        let limit = self.inlet.next_gap_at().map_or(head, |at| at.min(head));
        self.lose(limit, GapCause::WriteFailed, now);
        self.inlet.skip_to(limit);
        if closed.is_some() && limit == head && self.inlet.next_gap_at().is_none() {
            if let Some((_, _, Some(gap))) = closed {
                self.enter_source_gap(gap);
            }
            self.phase = Phase::Draining;
        }
    }
}
