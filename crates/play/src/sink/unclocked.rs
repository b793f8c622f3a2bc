//! [`Unclocked`]: takes frames as fast as they come, and makes the disk wait.

use hairspring_machine::{Instant, Nanos};

use super::feed::Feed;
use super::output::Output;
use super::{Sink, SinkCounters, SinkDescription, SinkNext};
use hairspring_ring::End;
use hairspring_ring::units::Bytes;

/// Bytes that are handed over at once, so that the reader gets room back soon.
const PIECE_BYTES: usize = 1 << 20;

/// The longest wait for data; new data end it earlier.
const LOOK_AT_LEAST: Nanos = Nanos::from_millis(50);

/// A sink without a clock.
#[derive(Debug)]
pub struct Unclocked<O> {
    output: O,
    counters: SinkCounters,
    ended: Option<End>,
}

impl<O: Output> Unclocked<O> {
    /// Hands everything to an output.
    pub fn new(output: O) -> Self {
        Self { output, counters: SinkCounters::default(), ended: None }
    }

    /// Ends, and with a failure if the output cannot be finished.
    fn end(&mut self, end: End) -> SinkNext {
        let finished = self.output.finish();
        let end = finished.map_or_else(|error| End::Failed(super::errno(&error)), |()| end);
        self.ended = Some(end);
        SinkNext::Ended(end)
    }
}

impl<O: Output> Sink for Unclocked<O> {
    fn describe(&self) -> SinkDescription {
        SinkDescription { rate: None, fifo: Bytes(0), hardware: self.output.name() }
    }

    fn prime(&mut self, _feed: &mut Feed) {}

    fn start(&mut self, _now: Instant) {}

    fn service(&mut self, now: Instant, feed: &mut Feed) -> SinkNext {
        if let Some(end) = self.ended {
            return SinkNext::Ended(end);
        }
        let layout = feed.layout();
        // At most a ringful, so that the caller can check the time and the stop flag.
        let most = feed.ring().capacity.0;
        let mut moved = 0;
        while moved < most {
            let Some(piece) = feed.peek(PIECE_BYTES) else {
                let Some(end) = feed.end() else { return SinkNext::Data(now + LOOK_AT_LEAST) };
                return self.end(end);
            };
            if let Err(error) = self.output.play(piece) {
                return self.end(End::Failed(super::errno(&error)));
            }
            let (length, frames) = (piece.bytes.len(), layout.frames_in(Bytes(piece.bytes.len() as u64)));
            let kind =
                if piece.recorded { &mut self.counters.recorded_frames } else { &mut self.counters.filled_frames };
            *kind += frames.0;
            feed.advance(length);
            moved += length as u64;
        }
        SinkNext::At(now)
    }

    fn stop(&mut self, _now: Instant) {
        if self.ended.is_none() {
            self.end(End::Stopped);
        }
    }

    fn counters(&self) -> SinkCounters {
        self.counters
    }
}
