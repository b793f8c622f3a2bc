//! [`VirtualOutput`]: a converter with a clock of its own and a finite FIFO, that plays into an [`Output`].
//!
//! Its clock is the time that its caller passes. Frames in the FIFO will certainly be played, so they go to the output
//! at once, and the FIFO itself is only a count. A frame that is due before it was taken is missing.

use std::io;

use hairspring_machine::{Instant, Nanos};

use super::feed::Feed;
use super::output::Output;
use super::{Late, MOST_UNDERRUNS, Sink, SinkCounters, SinkDescription, SinkNext, Underrun};
use hairspring_ring::End;
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Bytes, Frames, SampleRate};

/// Interval at which an output that has run dry checks for data without a wake-up.
const LOOK_AT_LEAST: Nanos = Nanos::from_millis(10);

/// A clocked output.
#[derive(Debug)]
pub struct VirtualOutput<O> {
    output: O,
    layout: Layout,
    rate: SampleRate,
    /// Frames that the FIFO holds.
    fifo: u64,
    /// The time at which frame 0 was played.
    start: Option<Instant>,
    /// Frames that were due up to now.
    due: u64,
    /// Frames that were taken or found missing up to now.
    taken: u64,
    /// The end of the last run of missing frames.
    dry_until: u64,
    ended: Option<End>,
    counters: SinkCounters,
    underruns: Vec<Underrun>,
}

impl<O: Output> VirtualOutput<O> {
    /// A converter that plays at this rate. Its FIFO holds at least one grain.
    pub fn new(output: O, layout: Layout, rate: SampleRate, fifo: Bytes) -> Self {
        let grain = layout.grain();
        Self {
            output,
            layout,
            rate,
            fifo: layout.frames_in(fifo).0.max(grain.frames),
            start: None,
            due: 0,
            taken: 0,
            dry_until: 0,
            ended: None,
            counters: SinkCounters::default(),
            underruns: Vec::with_capacity(MOST_UNDERRUNS),
        }
    }

    /// Ends, and with a failure if the output cannot be finished.
    fn end(&mut self, end: End) -> SinkNext {
        let finished = self.output.finish();
        let end = finished.map_or_else(|error| End::Failed(super::errno(&error)), |()| end);
        self.ended = Some(end);
        SinkNext::Ended(end)
    }

    /// Takes as many frames as fit into the FIFO.
    fn refill(&mut self, feed: &mut Feed) -> io::Result<()> {
        loop {
            feed.pass(Frames(self.taken));
            let room = self.due + self.fifo - self.taken;
            if feed.at().0 < self.taken || room == 0 {
                return Ok(());
            }
            let most = usize::try_from(self.layout.bytes_of(Frames(room)).0).unwrap_or(usize::MAX);
            let Some(piece) = feed.peek(most) else { return Ok(()) };
            self.output.play(piece)?;
            let (length, recorded) = (piece.bytes.len(), piece.recorded);
            let frames = self.layout.frames_in(Bytes(length as u64)).0;
            feed.advance(length);
            self.taken += frames;
            *(if recorded { &mut self.counters.recorded_frames } else { &mut self.counters.filled_frames }) += frames;
        }
    }

    /// Advances the clock to `due`; frames not taken by then are missing.
    fn run(&mut self, due: u64, now: Instant, feed: &mut Feed) -> io::Result<()> {
        self.due = due;
        if due <= self.taken {
            return Ok(());
        }
        let (first, frames) = (Frames(self.taken), Frames(due - self.taken));
        self.taken = due;
        self.counters.missing_frames += frames.0;
        let goes_on = self.counters.underruns > 0 && self.dry_until == first.0;
        self.dry_until = due;
        if !goes_on {
            let late = if feed.has_frames() { Late::ServedLate } else { Late::BufferEmpty };
            self.counters.underruns += 1;
            if self.underruns.len() < MOST_UNDERRUNS {
                self.underruns.push(Underrun { first, frames, late, found: now });
            }
        } else if let Some(last) = self.underruns.last_mut().filter(|last| last.first.0 + last.frames.0 == first.0) {
            last.frames.0 += frames.0;
        }
        self.output.missing(first, frames)
    }
}

impl<O: Output> Sink for VirtualOutput<O> {
    fn describe(&self) -> SinkDescription {
        let hardware = format!("virtual output to {}", self.output.name());
        SinkDescription { rate: Some(self.rate), fifo: self.layout.bytes_of(Frames(self.fifo)), hardware }
    }

    fn prime(&mut self, feed: &mut Feed) {
        if let Err(error) = self.refill(feed) {
            self.ended = Some(End::Failed(super::errno(&error)));
        }
        self.counters.primed_frames = self.taken;
    }

    fn start(&mut self, now: Instant) {
        self.start = Some(now);
    }

    fn service(&mut self, now: Instant, feed: &mut Feed) -> SinkNext {
        if let Some(end) = self.ended {
            return SinkNext::Ended(end);
        }
        let Some(start) = self.start else { return SinkNext::Data(now + LOOK_AT_LEAST) };
        let grain = self.layout.grain().frames;
        let due = self.rate.frames_after(now - start).0 / grain * grain;
        // After the last frame nothing is due any more.
        let last = if feed.end().is_some() { Some(self.taken) } else { feed.length().map(|length| length.0) };
        let due = last.map_or(due, |last| due.min(last)).max(self.due);
        let moved = self.run(due, now, feed).and_then(|()| self.refill(feed));
        self.counters.fifo_frames = self.taken - self.due;
        if let Err(error) = moved {
            return self.end(End::Failed(super::errno(&error)));
        }
        let at = |frames: u64| start + self.rate.time_of(Frames(frames));
        let level = self.taken - self.due;
        match feed.end() {
            Some(end) if level == 0 => self.end(end),
            // All frames were due; those that have not come by now are missing.
            None if level == 0 && feed.length().is_some_and(|length| self.due >= length.0) => self.end(End::Finished),
            Some(_) => SinkNext::At(at(self.taken)),
            // Half of the FIFO is the margin for lateness.
            None if level > self.fifo / 2 => SinkNext::At(at(self.taken - self.fifo / 2)),
            None if level > 0 => SinkNext::Data(at(self.taken)),
            None => {
                SinkNext::Data(feed.length().map_or(now + LOOK_AT_LEAST, |last| at(last.0).min(now + LOOK_AT_LEAST)))
            }
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
