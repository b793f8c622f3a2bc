//! [`Reader`]: the disk's half of a player. Reads blocks straight into the ring, several at once and in any order, and
//! publishes them in order when their checksums are right.
//!
//! ```text
//!     head                                          tail + capacity
//!  ─────┼───────────┬───────────┬───────────┬──────────────┼───
//!  sink's│ block k   │ block k+1 │ block k+2 │ free         │
//!        │ reading   │ done      │ reading   │              │
//! ```
//!
//! A block that cannot be read, or whose checksum is wrong, is never published as data: its place in the ring becomes
//! padding and its frames a gap. A block all of whose frames are late already is not read at all.

#![expect(unsafe_code, reason = "looks at blocks that the kernel has read into the ring")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hairspring_machine::{Instant, Nanos};

use super::track::{Stretch, Track, TrackBlock};
use super::{BadBlock, MOST_BAD_BLOCKS, PlayError};
use crate::sink::feed::{Padding, Shared};
use hairspring_recording::timeline::Run;
use hairspring_recording::{BlockRead, BlockReads, Unproven, proven, turned};
use hairspring_ring::End;
use hairspring_ring::Producer;
use hairspring_ring::gap::{Gap, GapCause};
use hairspring_ring::units::{Bytes, Frames};
use hairspring_store::{FileId, LentMemory, MemoryId, Open, Piece, Store, Token};

/// The longest wait of the reader; the disk and room in the ring wake it earlier.
const LOOK_AT_LEAST: Nanos = Nanos::from_millis(50);

/// The counters of the reader.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    /// Frames that went into the ring.
    pub(crate) sent_frames: u64,
    /// Frames of recorded gaps.
    pub(crate) gap_frames: u64,
    /// Frames of blocks that were damaged.
    pub(crate) bad_frames: u64,
    /// Frames of blocks that were not read because they would have been late.
    pub(crate) unread_frames: u64,
    pub(crate) bad_blocks: u64,
    /// Blocks that have no checksum.
    pub(crate) unproven_blocks: u64,
    pub(crate) bad: Vec<BadBlock>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Being read.
    Reading,
    /// Read, with the right checksum.
    Good,
    /// Not played. Without a cause it is in no file, and the track gives the reason.
    Lost(Option<GapCause>),
}

/// A stretch between its submission and its publication.
#[derive(Clone, Copy, Debug)]
struct Flight {
    token: Token,
    stretch: Stretch,
    state: State,
    /// Its place in the ring, and the bytes that it takes there; 0 if it is not read.
    position: u64,
    slot: u64,
    /// How much of it was published; a frame that ends in the next block is not.
    published: u64,
}

/// The event that the reader waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The disk, room in the ring, or this time.
    Until(Instant),
    /// Nothing: it has ended.
    Ended,
}

/// Reads a track into a ring.
pub(crate) struct Reader {
    store: Box<dyn Store>,
    memory: MemoryId,
    files: Vec<FileId>,
    alignment: u64,
    producer: Producer,
    padding: rtrb::Producer<Padding>,
    track: Track,
    stretches: Vec<Stretch>,
    /// The next stretch to be submitted, and its round.
    next: usize,
    round: u64,
    rounds: Option<u64>,
    /// Whether late blocks are left unread.
    leaves_out_late: bool,
    depth: usize,
    flights: VecDeque<Flight>,
    /// Bytes of the ring that are reserved after the head.
    reserved: u64,
    /// The first of these bytes, which are the beginning of a frame that ends in the next block.
    held: u64,
    tokens: u64,
    /// The index in the output of the next frame to be published.
    at: u64,
    reads: BlockReads,
    counters: Counters,
    shared: Arc<Shared>,
    ended: bool,
}

/// How a track is read.
pub(crate) struct Way {
    pub(crate) rounds: Option<u64>,
    pub(crate) leaves_out_late: bool,
    pub(crate) depth: usize,
}

impl Reader {
    /// Opens the files of a track.
    pub(crate) fn new(
        mut store: Box<dyn Store>,
        producer: Producer,
        padding: rtrb::Producer<Padding>,
        track: Track,
        way: &Way,
        shared: Arc<Shared>,
    ) -> Result<Self, PlayError> {
        // SAFETY: the player alone has the id; it reads only into pieces that `reserve_ahead` gave it, and neither
        // publishes them nor looks at them before their reads are complete.
        let lent = unsafe { LentMemory::new(Arc::clone(producer.memory())) };
        let memory = store.attach(lent);
        let mut files = Vec::new();
        let mut alignment = 1;
        for (number, path) in track.files.iter().enumerate() {
            let mut file = store.open(path, Open::ReadData).map_err(PlayError::Store)?;
            let wanted = store.facts(file).alignment.max(store.facts(file).memory_alignment).max(1);
            let end = |block: &TrackBlock| block.position + u64::from(block.length);
            let unaligned = |block: &TrackBlock| {
                let last = end(block) >= track.stored.0;
                block.file == number
                    && (!block.offset.is_multiple_of(wanted)
                        || !last && !u64::from(block.length).is_multiple_of(wanted))
            };
            if track.blocks.iter().any(unaligned) {
                // Files of other programs and mended files are read through the page cache, which needs no alignment.
                // Unaligned direct reads would leave padding in the ring between blocks, and within a frame that lies
                // in both.
                file = store.open(path, Open::Mend).map_err(PlayError::Store)?;
            } else {
                alignment = alignment.max(wanted);
            }
            files.push(file);
        }
        let stretches = track.stretches();
        let capacity = producer.fill().capacity.0;
        let largest = stretches.iter().filter(|stretch| stretch.block.is_some()).map(|stretch| stretch.length).max();
        let slot = largest.unwrap_or(0).next_multiple_of(alignment);
        if slot > capacity / 2 {
            return Err(PlayError::Buffer { buffer: Bytes(capacity), least: Bytes(slot * 2) });
        }
        let depth = way.depth.clamp(1, store.depth().max(1));
        Ok(Self {
            store,
            memory,
            files,
            alignment,
            producer,
            padding,
            track,
            stretches,
            next: 0,
            round: 0,
            rounds: way.rounds,
            leaves_out_late: way.leaves_out_late,
            depth,
            flights: VecDeque::with_capacity(depth),
            reserved: 0,
            held: 0,
            tokens: 0,
            at: 0,
            reads: BlockReads::default(),
            counters: Counters::default(),
            shared,
            ended: false,
        })
    }

    /// Continues to read. Returns the event to wait for.
    pub(crate) fn step(&mut self, now: Instant) -> Wait {
        if self.ended {
            return Wait::Ended;
        }
        while let Some((token, ended)) = self.reads.next_ended(&mut *self.store) {
            self.complete(token, ended);
        }
        loop {
            let mut published = false;
            while self.publish(now) {
                published = true;
            }
            self.submit();
            // Blocks that are left out need no disk: more can be done at once.
            if !published {
                break;
            }
        }
        self.store.flush();
        if self.flights.is_empty() && self.is_last() {
            self.finish(now, End::Finished);
            return Wait::Ended;
        }
        // Release: pairs with the Acquire in the driver; data published before are seen.
        self.shared.full.store(self.reads.is_idle(), Ordering::Release);
        Wait::Until(now + LOOK_AT_LEAST)
    }

    /// Waits for the disk or for room.
    pub(crate) fn wait(&mut self, until: Instant) {
        self.store.wait(self.producer.notifier(), until);
        self.producer.notifier().clear();
    }

    /// Stops early. Waits for the reads under way, because the disk writes into the ring until they are done.
    pub(crate) fn stop(&mut self, now: impl FnOnce() -> Instant) {
        if self.ended {
            return;
        }
        self.reads.abandon(&mut *self.store, self.producer.notifier());
        self.finish(now(), End::Stopped);
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Bytes that were read, padding included.
    pub(crate) fn read(&self) -> Bytes {
        self.reads.read()
    }

    pub(crate) fn fallbacks(&self) -> Vec<hairspring_store::Fallback> {
        self.store.fallbacks()
    }

    /// Whether nothing is left to be submitted.
    fn is_last(&self) -> bool {
        self.stretches.is_empty() || self.rounds.is_some_and(|rounds| self.round >= rounds)
    }

    fn finish(&mut self, now: Instant, end: End) {
        // A gap at the end of the last round belongs to it.
        if end == End::Finished
            && let Some(rounds) = self.rounds
        {
            self.miss_until(rounds.saturating_mul(self.track.frames().0), None, now);
        }
        self.ended = true;
        self.producer.close(end);
    }

    /// Declares that the frames before `until` in the output are missing. Without a cause they are in no file, and the
    /// track gives the reason.
    fn miss_until(&mut self, until: u64, cause: Option<GapCause>, now: Instant) {
        while self.at < until {
            let round = self.track.frames().0.max(1);
            let (most, cause) = match cause {
                Some(cause) => (u64::MAX, Some(cause)),
                None => {
                    let (frames, is_declared) = self.track.missing_at(Frames(self.track.origin().0 + self.at % round));
                    (frames.0.min(round - self.at % round), (!is_declared).then_some(GapCause::Damaged))
                }
            };
            let (first, frames) = (Frames(self.at), Frames(most.min(until - self.at)));
            self.producer.gap(Gap { first, frames, cause: cause.unwrap_or(GapCause::Source), found: now });
            match cause {
                None => self.counters.gap_frames += frames.0,
                Some(GapCause::ServedLate) => self.counters.unread_frames += frames.0,
                Some(_) => {
                    self.counters.bad_frames += frames.0;
                    // Relaxed: seen by the sink with the bytes after the gap, which are published later.
                    self.shared.bad_frames.fetch_add(frames.0, Ordering::Relaxed);
                }
            }
            self.at += frames.0;
        }
    }

    /// The index in the output of a frame of the track, in the round of a stretch.
    fn output_index(&self, round: u64, frame: Frames) -> u64 {
        round * self.track.frames().0 + frame.0.saturating_sub(self.track.origin().0)
    }

    fn submit(&mut self) {
        while self.flights.len() < self.depth && !self.is_last() {
            let stretch = self.stretches[self.next];
            let mut flight = Flight {
                token: Token(self.tokens),
                stretch,
                state: State::Lost(None),
                position: self.producer.position() + self.reserved,
                slot: 0,
                published: 0,
            };
            if let Some(block) = stretch.block {
                let grain = self.track.layout.grain();
                let last = (stretch.position + stretch.length - 1) / grain.bytes * grain.bytes;
                let last = Frames(self.track.timeline.frame_at(last).0 + grain.frames);
                // Relaxed: a hint; a block that is read in vain is discarded by the sink.
                let due = self.shared.due.load(Ordering::Relaxed);
                if self.leaves_out_late && self.output_index(self.round, last) <= due {
                    flight.state = State::Lost(Some(GapCause::ServedLate));
                } else {
                    flight.slot = stretch.length.next_multiple_of(self.alignment);
                    let length = flight.slot as usize;
                    let Some(at) = self.producer.reserve_ahead(self.reserved, length) else { return };
                    self.reserved += flight.slot;
                    flight.state = State::Reading;
                    let read = BlockRead {
                        file: self.files[block.file],
                        at: block.offset,
                        alignment: self.alignment,
                        piece: Piece { memory: self.memory, at, length },
                        needed: stretch.length,
                    };
                    self.reads.begin(&mut *self.store, flight.token, read);
                }
            }
            self.tokens += 1;
            self.flights.push_back(flight);
            self.next += 1;
            if self.next == self.stretches.len() {
                self.next = 0;
                self.round += 1;
            }
        }
    }

    /// Takes a block that has been read, if its checksum is right.
    fn complete(&mut self, token: Token, ended: Result<(), Unproven>) {
        let Some(flight) = self.flights.iter_mut().find(|flight| flight.token == token) else { return };
        let Stretch { block: Some(block), position, length, .. } = flight.stretch else { return };
        let skip = flight.position - self.producer.position();
        // SAFETY: the read of this block has ended, and no other goes into its place before it is published.
        let bytes = ended.map(|()| unsafe { self.producer.ahead_mut(skip, block.length as usize) });
        match bytes.and_then(|bytes| proven(bytes, block.crc).map(drop).map(|()| bytes)) {
            Ok(bytes) => {
                turned(bytes, self.track.swapped_bytes);
                flight.state = State::Good;
                self.counters.unproven_blocks += u64::from(block.crc.is_none());
            }
            Err(why) => {
                flight.state = State::Lost(Some(GapCause::Damaged));
                self.counters.bad_blocks += 1;
                if self.counters.bad.len() < MOST_BAD_BLOCKS {
                    let first = self.track.timeline.frame_at(position);
                    let frames = self.track.layout.frames_in(Bytes(length));
                    let file = self.track.files[block.file].clone();
                    self.counters.bad.push(BadBlock { first, frames, file, offset: block.offset, why });
                }
            }
        }
    }

    /// Publishes the oldest stretch, or a part of it; `false` if it is not read yet, or if its gap finds no room before
    /// the sink takes data.
    fn publish(&mut self, now: Instant) -> bool {
        let Some(&Flight { stretch, state, published, slot, .. }) = self.flights.front() else { return false };
        let round = self.round_of_first();
        let grain = self.track.layout.grain().bytes;
        let end = stretch.position + stretch.length;
        match state {
            State::Reading => return false,
            State::Lost(cause) => {
                // Frames that reach into the blocks beside it are lost, too.
                let (first, last) = (stretch.position / grain * grain, end.next_multiple_of(grain).min(self.whole()));
                let rest = Bytes(last.saturating_sub(first));
                let runs: Vec<Run> = self.track.timeline.runs_in(first, rest).collect();
                for run in runs {
                    let frames = self.track.layout.frames_in(run.length.unwrap_or(rest));
                    self.miss_until(self.output_index(round, run.first), None, now);
                    self.miss_until(self.output_index(round, Frames(run.first.0 + frames.0)), cause, now);
                }
                if !self.pad(self.held + slot - published) {
                    return false;
                }
                self.held = 0;
            }
            State::Good => {
                let position = stretch.position + published;
                let first = position - self.held;
                if !first.is_multiple_of(grain) {
                    // The rest of a frame whose beginning is lost.
                    let length = (grain - first % grain).min(end - position);
                    let done = self.pad(length);
                    self.flights[0].published += if done { length } else { 0 };
                    return done;
                }
                let rest = Bytes((end / grain * grain).saturating_sub(first));
                let run = self.track.timeline.runs_in(first, rest).next();
                if let Some(Run { first, length: Some(length), .. }) = run {
                    self.miss_until(self.output_index(round, first), None, now);
                    // No room in spite of the reservation: the mark of the gap finds no place yet.
                    if self.producer.room() < length.0 {
                        return false;
                    }
                    self.producer.commit(length.0 as usize);
                    self.reserved -= length.0;
                    let frames = self.track.layout.frames_in(length).0;
                    self.at += frames;
                    self.counters.sent_frames += frames;
                    self.flights[0].published += length.0 - self.held;
                    self.held = 0;
                    return true;
                }
                // The beginning of a frame that ends in the next block; the last block has none.
                self.held = end - first;
                if slot > stretch.length || end >= self.whole() {
                    if !self.pad(self.held + slot - stretch.length) {
                        return false;
                    }
                    self.held = 0;
                }
            }
        }
        self.flights.pop_front();
        true
    }

    /// Where the last whole frame of the stored stream ends.
    fn whole(&self) -> u64 {
        let grain = self.track.layout.grain().bytes;
        self.track.stored.0 / grain * grain
    }

    /// Publishes padding; `false` if there is no room for its mark yet.
    fn pad(&mut self, length: u64) -> bool {
        if length == 0 {
            return true;
        }
        if self.producer.room() < length || self.padding.push((self.producer.position(), length)).is_err() {
            return false;
        }
        self.producer.commit(length as usize);
        self.reserved -= length;
        true
    }

    /// The round of the oldest stretch under way.
    fn round_of_first(&self) -> u64 {
        let behind = self.flights.len() as u64;
        let count = self.stretches.len() as u64;
        (self.round * count + self.next as u64 - behind) / count
    }
}
