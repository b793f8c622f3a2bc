//! [`SoundOutput`]: plays to a sound card.
//!
//! The card's pointer is the clock. The kernel is set never to stop the stream: if frames are not there in time it
//! plays silence, and the pointer shows how many were missing. Later frames are written at their own position, so they
//! are played at their own time.
//!
//! ```text
//!            given until here       the card is here
//!   ──────────────┼─────────────────────┼──┬────────────▶ frames
//!                 │◀──── silence ──────▶│◀▶│ the next frames are written from here on
//!                                        a guard: the card is reading here
//! ```
//!
//! A card that its driver stops, or that is pulled out, ends the output with an error.

use std::io;

use hairspring_machine::{Instant, Nanos};
use hairspring_ring::End;
use hairspring_ring::layout::Layout;
use hairspring_ring::units::Frames;
use hairspring_source::sound::{Pcm, PcmState, PointerCount};

use super::feed::Feed;
use super::{Late, MOST_UNDERRUNS, Sink, SinkCounters, SinkDescription, SinkNext, Underrun};

/// Interval at which an output that has run dry checks for data without a wake-up.
const LOOK_AT_LEAST: Nanos = Nanos::from_millis(10);
/// Bytes that are written at once.
const PIECE_BYTES: usize = 64 << 10;

/// A sound card that is played to. All amounts are frames of the output.
#[derive(Debug)]
pub struct SoundOutput {
    pcm: Pcm,
    layout: Layout,
    hardware: String,
    count: Option<PointerCount>,
    /// Frames that the card has played, or should have.
    due: u64,
    /// Frames that were given to the card or found missing up to now.
    taken: u64,
    /// The end of the last run of missing frames.
    dry_until: u64,
    failed: Option<i32>,
    ended: Option<End>,
    counters: SinkCounters,
    underruns: Vec<Underrun>,
}

impl SoundOutput {
    /// Plays to a stream that is prepared for frames of this layout.
    pub fn new(pcm: Pcm, layout: Layout, hardware: String) -> Self {
        Self {
            pcm,
            layout,
            hardware,
            count: None,
            due: 0,
            taken: 0,
            dry_until: 0,
            failed: None,
            ended: None,
            counters: SinkCounters::default(),
            underruns: Vec::with_capacity(MOST_UNDERRUNS),
        }
    }

    fn end(&mut self, end: End) -> SinkNext {
        self.pcm.halt();
        self.ended = Some(end);
        SinkNext::Ended(end)
    }

    /// Gives the card as many frames as it has room for.
    fn refill(&mut self, feed: &mut Feed) -> io::Result<()> {
        loop {
            feed.pass(Frames(self.taken));
            let room = (self.due + self.pcm.setup().buffer.0).saturating_sub(self.taken);
            if feed.at().0 < self.taken || room == 0 {
                return Ok(());
            }
            let most = usize::try_from(self.layout.bytes_of(Frames(room)).0).unwrap_or(usize::MAX);
            let Some(piece) = feed.peek(most.min(PIECE_BYTES)) else { return Ok(()) };
            let written = match self.pcm.write(piece.bytes) {
                Ok(written) => written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            let recorded = piece.recorded;
            feed.advance(self.layout.bytes_of(Frames(written)).0 as usize);
            self.taken += written;
            *(if recorded { &mut self.counters.recorded_frames } else { &mut self.counters.filled_frames }) += written;
        }
    }

    /// Reads the card's pointer; frames not given to the card by then are missing.
    fn look(&mut self, now: Instant, feed: &mut Feed) -> io::Result<()> {
        let status = self.pcm.status()?;
        match status.state {
            PcmState::Running | PcmState::Draining => {}
            PcmState::Gone => return Err(io::Error::from_raw_os_error(libc::ENODEV)),
            PcmState::Suspended => return Err(io::Error::from_raw_os_error(libc::ESTRPIPE)),
            _ => return Err(io::Error::from_raw_os_error(libc::EPIPE)),
        }
        let Some(count) = &mut self.count else { return Ok(()) };
        self.due += count.advance(status.pointer, status.changed).least;
        let last = if feed.end().is_some() { Some(self.taken) } else { feed.length().map(|length| length.0) };
        let setup = self.pcm.setup();
        if last.is_some_and(|last| self.taken >= last) || self.taken >= self.due + setup.fifo.0 {
            return Ok(());
        }
        let guard = setup.fifo.0.max(setup.buffer.0 / 16);
        let until = (self.due + guard).min(last.unwrap_or(u64::MAX)).max(self.taken);
        let (first, frames) = (self.taken, until - self.taken);
        if self.pcm.forward(frames)? != frames {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        self.taken = until;
        self.miss(first, frames, now, feed);
        Ok(())
    }

    fn miss(&mut self, first: u64, frames: u64, now: Instant, feed: &mut Feed) {
        self.counters.missing_frames += frames;
        let goes_on = self.counters.underruns > 0 && self.dry_until == first;
        self.dry_until = first + frames;
        if !goes_on {
            let late = if feed.has_frames() { Late::ServedLate } else { Late::BufferEmpty };
            self.counters.underruns += 1;
            if self.underruns.len() < MOST_UNDERRUNS {
                self.underruns.push(Underrun { first: Frames(first), frames: Frames(frames), late, found: now });
            }
        } else if let Some(last) = self.underruns.last_mut().filter(|last| last.first.0 + last.frames.0 == first) {
            last.frames.0 += frames;
        }
    }
}

impl Sink for SoundOutput {
    fn describe(&self) -> SinkDescription {
        let setup = self.pcm.setup();
        let fifo = self.layout.bytes_of(setup.buffer);
        SinkDescription { rate: Some(setup.rate), fifo, hardware: self.hardware.clone() }
    }

    fn prime(&mut self, feed: &mut Feed) {
        if let Err(error) = self.refill(feed) {
            self.failed = Some(super::errno(&error));
        }
        self.counters.primed_frames = self.taken;
    }

    fn start(&mut self, _now: Instant) {
        let setup = *self.pcm.setup();
        let step = if setup.moves_by_periods { setup.period.0 } else { 1 };
        let before = self.pcm.now();
        match self.pcm.start() {
            Ok(()) => {
                let rate_hz = setup.rate.as_hz();
                self.count = Some(PointerCount::new(setup.boundary.0, setup.buffer.0, step, rate_hz, 0, before));
            }
            Err(error) => self.failed = Some(super::errno(&error)),
        }
    }

    fn service(&mut self, now: Instant, feed: &mut Feed) -> SinkNext {
        if let Some(end) = self.ended {
            return SinkNext::Ended(end);
        }
        if let Some(errno) = self.failed {
            return self.end(End::Failed(errno));
        }
        if self.count.is_none() {
            return SinkNext::Data(now + LOOK_AT_LEAST);
        }
        let moved = self.look(now, feed).and_then(|()| self.refill(feed));
        let level = self.taken.saturating_sub(self.due);
        self.counters.fifo_frames = level;
        if let Err(error) = moved {
            return self.end(End::Failed(super::errno(&error)));
        }
        let setup = *self.pcm.setup();
        let lasts = |frames: u64| setup.rate.time_of(Frames(frames));
        // The card may hold some frames beyond its pointer.
        let left = (self.taken + setup.fifo.0).saturating_sub(self.due);
        match feed.end() {
            Some(end) if left == 0 => self.end(end),
            None if level == 0 && feed.length().is_some_and(|length| self.taken >= length.0) => self.end(End::Finished),
            Some(_) => SinkNext::At(now + lasts(left).min(LOOK_AT_LEAST).max(lasts(1))),
            // Half of the buffer is the margin for lateness.
            None if level > setup.buffer.0 / 2 => SinkNext::At(now + lasts(level - setup.buffer.0 / 2)),
            None => SinkNext::Data(now + lasts(level).min(LOOK_AT_LEAST).max(lasts(1))),
        }
    }

    fn stop(&mut self, _now: Instant) {
        if self.ended.is_none() {
            self.end(End::Stopped);
        }
    }

    fn counters(&self) -> SinkCounters {
        self.counters
    }

    fn underruns(&self) -> &[Underrun] {
        &self.underruns
    }
}
