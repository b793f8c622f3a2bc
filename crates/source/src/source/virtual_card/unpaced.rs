//! [`UnpacedCard`]: fills all room in the ring at once, to find the highest rate. It has no clock, so it can wait.

use hairspring_machine::Instant;

use super::{MOST_PER_CALL, PIECE_BYTES};
use crate::pattern::Pattern;
use crate::source::{Next, Source, SourceCounters, SourceDescription};
use hairspring_ring::End;
use hairspring_ring::Producer;
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Bytes, Frames};

/// A source that produces whenever there is room.
#[derive(Debug)]
pub struct UnpacedCard {
    layout: Layout,
    pattern: Pattern,
    /// In grains, like all amounts here.
    total: u64,
    produced: u64,
    ended: Option<End>,
}

impl UnpacedCard {
    /// A card that ends after `frames`, rounded up to whole grains; without a number it never ends.
    pub fn new(layout: Layout, pattern: Pattern, frames: Option<Frames>) -> Self {
        let grain = layout.grain();
        let total = frames.map_or(u64::MAX / grain.bytes, |frames| frames.0.div_ceil(grain.frames));
        Self { layout, pattern, total, produced: 0, ended: None }
    }
}

impl Source for UnpacedCard {
    fn describe(&self) -> SourceDescription {
        SourceDescription {
            layout: self.layout,
            rate: None,
            clocked: false,
            fifo: Bytes(0),
            hardware: "virtual card without a clock".to_owned(),
            pattern: Some(self.pattern),
        }
    }

    fn start(&mut self, _now: Instant) {}

    fn service(&mut self, now: Instant, ring: &mut Producer) -> Next {
        let grain = self.layout.grain();
        let mut most = (MOST_PER_CALL / grain.bytes).max(1);
        while self.ended.is_none() && self.produced < self.total && most > 0 {
            let piece = (PIECE_BYTES / grain.bytes).max(1).min(most).min(self.total - self.produced);
            let grains = piece.min(ring.room() / grain.bytes);
            let length = (grains * grain.bytes) as usize;
            let Some(bytes) = (if grains > 0 { ring.reserve(length) } else { None }) else { break };
            self.pattern.fill(self.layout, Frames(self.produced * grain.frames), bytes);
            ring.commit(length);
            self.produced += grains;
            most -= grains;
        }
        if self.produced == self.total {
            self.ended.get_or_insert(End::Finished);
        }
        if ring.fill().capacity.0 < grain.bytes {
            // The ring is smaller than a grain.
            self.ended.get_or_insert(End::Failed(libc::ENOBUFS));
        }
        match self.ended {
            Some(end) => Next::Ended(end),
            // There may be more room, and no notification would follow.
            None if most == 0 => Next::At(now),
            None => Next::Room,
        }
    }

    fn stop(&mut self, _now: Instant, _ring: &mut Producer) -> Next {
        Next::Ended(*self.ended.get_or_insert(End::Stopped))
    }

    fn counters(&self) -> SourceCounters {
        SourceCounters { produced_bytes: self.produced * self.layout.grain().bytes, ..SourceCounters::default() }
    }
}
