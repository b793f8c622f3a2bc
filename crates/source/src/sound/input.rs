//! [`SoundInput`]: a sound card as a source.
//!
//! **Problem.** Programs let the kernel stop a stream whose buffer overflows, start it again, and know how long that
//! took, but not how many frames are missing.
//!
//! **Solution.** The stream is never stopped. The card goes on and overwrites its own buffer, and the distance between
//! its pointer and ours is the number of frames that were overwritten. They become a gap of exactly that length.
//!
//! ```text
//!            ours                                          the card's
//!   ──────────┼──────────────┼───────────────────────────────┼────▶ frames
//!             │◀── lost ────▶│◀──────── one buffer ─────────▶│
//!                     └ a guard: the card is writing here while we copy
//! ```
//!
//! **Conditions.** Copied frames are checked afterwards: those that the card has overwritten meanwhile are cut off and
//! belong to the gap. Where the driver's pointer may have missed whole rounds of its buffer, [`PointerCount`] reports
//! it, and the length of the gap is an interval.
//!
//! If the driver itself stops the stream, it is started again under the policies `gap` and `overwrite`. The number of
//! frames lost meanwhile is estimated from the clock, so the length of that gap is an interval, too. A card that is
//! pulled out ends the recording with an error.
//!
//! Stamps are one-sided: a driver shows when its pointer had arrived, not when it passed. So a frame lies between the
//! last look that did not show it and the stamp of the first that did. Now and then the source looks repeatedly for up
//! to a millisecond, which makes that narrow.

use std::io;
use std::os::fd::BorrowedFd;

use hairspring_machine::{Instant, Nanos};
use hairspring_ring::gap::{Gap, GapBounds, GapCause};
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Bytes, Frames};
use hairspring_ring::{End, OnOverrun, Producer};

use super::count::{Passed, PointerCount};
use super::pcm::{Pcm, PcmState, PcmStatus};
use super::setup::PcmSetup;
use super::stamps::Stamps;
use crate::source::{FrameStamp, Ignored, Next, Source, SourceCounters, SourceDescription};

/// Most bytes moved between two looks at the pointer.
const PIECE_BYTES: u64 = 64 << 10;
/// Most bytes that one call moves.
const MOST_PER_CALL: u64 = 4 << 20;
/// Longest wait for frames.
const PATIENCE: Nanos = Nanos::from_millis(100);
/// Longest time between two looks while the ring has no room.
const LOOK_AT_LEAST: Nanos = Nanos::from_millis(10);
/// Longest polling for a narrow stamp.
const HUNT_FOR: Nanos = Nanos::from_millis(1);
/// Relative deviation from the nominal rate that is allowed where frames are counted by the clock alone.
const RATE_WITHIN: f64 = 0.01;
/// Most gaps whose length is an interval. One more ends the recording, because it could not be stated.
const MOST_BOUNDS: usize = 4096;

/// A sound card that is recorded. All amounts are frames.
#[derive(Debug)]
pub struct SoundInput {
    pcm: Pcm,
    layout: Layout,
    hardware: String,
    total: u64,
    count: Option<PointerCount>,
    /// Frames that the card has taken.
    counted: u64,
    /// Global index of the frame at the program's pointer: frames moved plus frames lost.
    position: u64,
    lost: u64,
    most_waiting: u64,
    /// The newest gap, to which the next one may belong.
    newest_gap: Option<Gap>,
    bounds: Vec<GapBounds>,
    stamps: Stamps,
    ending: Option<End>,
    ended: Option<End>,
}

/// State of the card at one query.
struct Look {
    status: PcmStatus,
    /// Up to this many frames more than counted may have passed.
    doubt: u64,
}

impl SoundInput {
    /// Records a stream that is prepared. It ends after `frames`, if they are stated.
    pub fn new(pcm: Pcm, layout: Layout, hardware: String, frames: Option<Frames>) -> Self {
        Self {
            pcm,
            layout,
            hardware,
            total: frames.map_or(u64::MAX, |frames| frames.0),
            count: None,
            counted: 0,
            position: 0,
            lost: 0,
            most_waiting: 0,
            newest_gap: None,
            bounds: Vec::new(),
            stamps: Stamps::default(),
            ending: None,
            ended: None,
        }
    }

    /// The stream's set-up.
    pub fn setup(&self) -> &PcmSetup {
        self.pcm.setup()
    }

    fn frame_bytes(&self) -> u64 {
        self.pcm.setup().frame_bytes()
    }

    fn buffer(&self) -> u64 {
        self.pcm.setup().buffer.0
    }

    /// Frames that the card holds and that are wanted.
    fn waiting(&self) -> u64 {
        self.counted.min(self.total).saturating_sub(self.position)
    }

    /// Starts the card. Its pointer is 0 then.
    fn begin(&mut self) -> io::Result<()> {
        let setup = *self.pcm.setup();
        let step = if setup.moves_by_periods { setup.period.0 } else { 1 };
        let before = self.pcm.now();
        self.pcm.start()?;
        let rate_hz = setup.rate.as_hz();
        self.count = Some(PointerCount::new(setup.boundary.0, setup.buffer.0, step, rate_hz, 0, before));
        self.stamps.not_shown(before);
        Ok(())
    }

    /// Reads the card's pointer, and updates the count.
    fn look(&mut self) -> io::Result<Look> {
        let before = self.pcm.now();
        let status = self.pcm.status()?;
        let Some(count) = &mut self.count else { return Ok(Look { status, doubt: 0 }) };
        let Passed { least, most } = count.advance(status.pointer, status.changed);
        self.counted += least;
        if least > 0 && least == most {
            self.stamps.shown(Frames(self.counted - 1), status.changed);
        }
        self.stamps.not_shown(before);
        self.most_waiting = self.most_waiting.max(self.waiting().min(self.buffer()));
        Ok(Look { status, doubt: most - least })
    }

    /// Looks until the pointer moves, so that the stamp is narrow.
    fn hunt(&mut self, now: Instant, ring: &mut Producer) -> io::Result<()> {
        if !self.stamps.is_hunt_due(now) {
            return Ok(());
        }
        let (begun, before) = (self.pcm.now(), self.counted);
        while self.counted == before && self.pcm.now() - begun < HUNT_FOR {
            let look = self.look()?;
            self.heed(&look, ring)?;
            if look.status.state != PcmState::Running {
                return Ok(());
            }
        }
        if self.counted > before {
            self.stamps.keep(now);
        }
        Ok(())
    }

    /// Skips the frames that the card has overwritten, and declares them lost.
    fn heed(&mut self, look: &Look, ring: &mut Producer) -> io::Result<()> {
        let Some(count) = &self.count else { return Ok(()) };
        let setup = self.pcm.setup();
        let (held, buffer) = (count.distance(look.status.program, look.status.pointer), setup.buffer.0);
        let truly = self.counted - self.position;
        if look.doubt == 0 && truly == held && truly + setup.fifo.0 <= buffer {
            return Ok(());
        }
        // The card overwrites the oldest frames during the copy: skip some more than necessary.
        let guard = setup.fifo.0.max(buffer / 8);
        // A gap of uncertain length needs a place of its own, so it has at least one frame.
        let keep = held.min(buffer - guard).min(truly.saturating_sub(1));
        self.forward(held - keep)?;
        self.lose(truly - keep, look.doubt, None, ring);
        Ok(())
    }

    fn forward(&mut self, frames: u64) -> io::Result<()> {
        let moved = if frames == 0 { 0 } else { self.pcm.forward(frames)? };
        if moved == frames { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EIO)) }
    }

    /// Declares the next `frames` frames as lost, or up to `doubt` more. Without a cause the card has overwritten them.
    fn lose(&mut self, frames: u64, doubt: u64, cause: Option<GapCause>, ring: &mut Producer) {
        let frames = frames.min(self.total.saturating_sub(self.position));
        if frames == 0 {
            return;
        }
        let (room, capacity) = (ring.room(), ring.fill().capacity.0);
        // A loss larger than the ring is the fault of a late call if the ring was not full.
        let late = room >= frames.saturating_mul(self.frame_bytes()) || room >= capacity / 2;
        let overwritten = if late { GapCause::ServedLate } else { GapCause::BufferFull };
        let found = self.pcm.now();
        let gap =
            Gap { first: Frames(self.position), frames: Frames(frames), cause: cause.unwrap_or(overwritten), found };
        ring.gap(gap);
        // A gap that touches the one before it becomes a part of it, also in the ring.
        let whole = match self.newest_gap.filter(|newest| newest.end() == gap.first) {
            Some(newest) => Gap { frames: Frames(newest.frames.0 + frames), ..newest },
            None => gap,
        };
        self.newest_gap = Some(whole);
        self.bound(whole, frames, doubt);
        self.position += frames;
        self.lost += frames;
        if matches!(ring.on_overrun(), OnOverrun::Stop | OnOverrun::Block) {
            self.end(End::Overrun);
        }
    }

    /// Notes the interval of a gap that has grown by `frames`, or by up to `doubt` more.
    fn bound(&mut self, whole: Gap, frames: u64, doubt: u64) {
        if let Some(bounds) = self.bounds.last_mut().filter(|bounds| bounds.first == whole.first) {
            bounds.least = whole.frames;
            bounds.most.0 += frames + doubt;
        } else if doubt > 0 && self.bounds.len() == MOST_BOUNDS {
            self.end(End::Failed(libc::EOVERFLOW));
        } else if doubt > 0 {
            let most = Frames(whole.frames.0 + doubt);
            self.bounds.push(GapBounds { first: whole.first, least: whole.frames, most });
        }
    }

    /// Stops the card, which keeps the frames that it has.
    fn end(&mut self, end: End) {
        if self.ending.is_none() {
            self.ending = Some(end);
            // A stream that does not run any more cannot be drained.
            let _ = self.pcm.drain();
        }
    }

    /// Moves frames into the ring. Returns whether more could be moved at once.
    fn deliver(&mut self, ring: &mut Producer) -> io::Result<bool> {
        let frame_bytes = self.frame_bytes();
        let mut left = (MOST_PER_CALL / frame_bytes).max(1);
        while self.waiting() > 0 {
            let wanted = self.waiting().min((PIECE_BYTES / frame_bytes).max(1)).min(left);
            let mut room = ring.room() / frame_bytes;
            if room < wanted && self.ending.is_none() && self.waiting() > self.buffer() / 2 {
                let most = (ring.fill().capacity.0 / frame_bytes / 4).max(1);
                room = ring.evict(wanted.min(most) * frame_bytes, frame_bytes) / frame_bytes;
            }
            let frames = wanted.min(room);
            let length = (frames * frame_bytes) as usize;
            let Some(bytes) = (if frames > 0 { ring.reserve(length) } else { None }) else {
                return Ok(left == 0);
            };
            let read = match self.pcm.read(bytes) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            };
            let look = self.look()?;
            let truly = self.counted - self.position;
            let overwritten = (truly + self.pcm.setup().fifo.0).saturating_sub(self.buffer());
            let overwritten = if look.doubt > 0 { read } else { overwritten.min(read) };
            let kept = ((read - overwritten) * frame_bytes) as usize;
            if overwritten > 0 {
                bytes.copy_within((overwritten * frame_bytes) as usize..(read * frame_bytes) as usize, 0);
                self.lose(overwritten, look.doubt, None, ring);
            }
            // The gap comes before the kept data; if it finds no place, they become part of it.
            match ring.reserve(kept) {
                Some(_) => {
                    ring.commit(kept);
                    self.position += read - overwritten;
                }
                None => self.lose(read - overwritten, 0, None, ring),
            }
            left -= read.min(left);
            if left == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The driver has stopped the stream, whose frames are lost. Restarts it if the policy allows that.
    fn restart(&mut self, status: PcmStatus, ring: &mut Producer) -> io::Result<()> {
        let rate_hz = self.pcm.setup().rate.as_hz();
        let held = self.waiting();
        if self.ending.is_some() || matches!(ring.on_overrun(), OnOverrun::Stop | OnOverrun::Block) {
            self.lose(held, 0, Some(GapCause::Source), ring);
            self.ending.get_or_insert(End::Overrun);
            return Ok(());
        }
        let before = self.pcm.now();
        self.pcm.prepare()?;
        self.begin()?;
        let after = self.pcm.now();
        let frames = |span: Nanos, rate_hz: f64| (span.max(Nanos::ZERO).as_secs_f64() * rate_hz) as u64;
        // The pointer at the stop may be a period old.
        let period = self.pcm.setup().period.0;
        let least = frames(before - status.triggered, rate_hz * (1.0 - RATE_WITHIN)).saturating_sub(1).max(1);
        let most = frames(after - status.triggered, rate_hz * (1.0 + RATE_WITHIN)) + period + 1;
        self.lose(held + least, most.saturating_sub(least), Some(GapCause::Source), ring);
        self.counted = self.position;
        Ok(())
    }

    fn fail(&mut self, error: &io::Error, ring: &mut Producer) -> Next {
        let end = End::Failed(error.raw_os_error().unwrap_or(libc::EIO));
        // Frames that the card held cannot be read any more.
        self.ending.get_or_insert(end);
        self.lose(self.waiting(), 0, Some(GapCause::Source), ring);
        self.ended = Some(end);
        Next::Ended(end)
    }

    fn serve(&mut self, now: Instant, ring: &mut Producer) -> io::Result<Next> {
        let look = self.look()?;
        self.heed(&look, ring)?;
        let more = match look.status.state {
            PcmState::Running | PcmState::Draining => self.deliver(ring)?,
            PcmState::Gone => return Err(io::Error::from_raw_os_error(libc::ENODEV)),
            _ if self.ending.is_some() && self.waiting() == 0 => false,
            _ => {
                self.restart(look.status, ring)?;
                false
            }
        };
        if self.counted >= self.total {
            self.end(End::Finished);
        }
        if let Some(end) = self.ending
            && self.waiting() == 0
        {
            self.pcm.halt();
            self.ended = Some(end);
            return Ok(Next::Ended(end));
        }
        if more {
            return Ok(Next::At(now));
        }
        if self.waiting() > 0 && ring.room() < self.frame_bytes() {
            return Ok(if self.ending.is_some() { Next::Room } else { Next::At(now + self.soon()) });
        }
        if self.ending.is_none() {
            self.hunt(now, ring)?;
        }
        Ok(Next::Readable(now + self.soon().max(PATIENCE)))
    }

    /// At most a quarter of the time that the card's buffer lasts.
    fn soon(&self) -> Nanos {
        self.pcm.setup().rate.time_of(Frames(self.buffer() / 4)).min(LOOK_AT_LEAST)
    }

    fn go_on(&mut self, now: Instant, ring: &mut Producer) -> Next {
        if let Some(end) = self.ended {
            return Next::Ended(end);
        }
        if let (None, Some(end)) = (&self.count, self.ending) {
            self.ended = Some(end);
            return Next::Ended(end);
        }
        if ring.fill().capacity.0 < self.frame_bytes() {
            return self.fail(&io::Error::from_raw_os_error(libc::ENOBUFS), ring);
        }
        match self.serve(now, ring) {
            Ok(next) => next,
            // The next look finds out why the stream does not run.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EPIPE | libc::ESTRPIPE | libc::EBADFD)) => {
                Next::At(now + Nanos::from_millis(1))
            }
            Err(error) => self.fail(&error, ring),
        }
    }
}

impl Source for SoundInput {
    fn describe(&self) -> SourceDescription {
        SourceDescription {
            layout: self.layout,
            rate: Some(self.pcm.setup().rate),
            clocked: true,
            fifo: Bytes(self.buffer() * self.frame_bytes()),
            hardware: self.hardware.clone(),
            pattern: None,
        }
    }

    fn start(&mut self, _now: Instant) {
        if let Err(error) = self.begin() {
            self.ending = Some(End::Failed(error.raw_os_error().unwrap_or(libc::EIO)));
        }
    }

    fn service(&mut self, now: Instant, ring: &mut Producer) -> Next {
        self.go_on(now, ring)
    }

    fn stop(&mut self, now: Instant, ring: &mut Producer) -> Next {
        self.end(End::Stopped);
        self.go_on(now, ring)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.pcm.descriptor()
    }

    fn first_stamp(&self) -> Option<FrameStamp> {
        self.stamps.first()
    }

    fn newest_stamp(&self) -> Option<FrameStamp> {
        self.stamps.newest()
    }

    fn gap_bounds(&self) -> &[GapBounds] {
        &self.bounds
    }

    fn counters(&self) -> SourceCounters {
        let frame_bytes = self.frame_bytes();
        SourceCounters {
            ignored: Ignored::default(),
            produced_bytes: (self.position + self.waiting()) * frame_bytes,
            lost_bytes: self.lost * frame_bytes,
            fifo_bytes: self.waiting() * frame_bytes,
            fifo_high_water_bytes: self.most_waiting * frame_bytes,
            pauses: 0,
            reordered: 0,
        }
    }
}

#[cfg(test)]
mod tests;
