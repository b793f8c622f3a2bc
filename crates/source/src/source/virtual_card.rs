//! [`VirtualCard`]: a card in software. It produces data at its rate whether or not the ring has room.
//!
//! ```text
//!            rate            bus                room
//!   clock ─────────▶ FIFO ─────────▶ ring ─────────▶ recorder
//!                     │ full: the newest is lost
//! ```
//!
//! The time alone determines what has been produced, in whole grains. The FIFO holds no bytes: the data are computed in
//! place when they move into the ring, so the card costs as much as a driver that copies. Data move only during a call.
//! Frames that do not fit into the FIFO before the next call are lost, exactly as many.
//!
//! With `overwrite` the card evicts the ring's oldest data when its FIFO is more than half full, so that the FIFO does
//! not overflow.
//!
//! **Disturbances** are settings: late interrupts (`jitter`: each interrupt is late by a pseudo-random span up to it),
//! pauses of the bus (`hiccups`), and a slow bus (`bus`). They are the same in every run with the same times.
//!
//! The card never waits and never reads a clock, so the same calls give the same stream, also in virtual time.

mod fifo;
mod unpaced;

use hairspring_machine::{Instant, Nanos};

use super::{End, FrameStamp, Ignored, Next, OnOverrun, Source, SourceCounters, SourceDescription, StampTime};
use crate::pattern::{Pattern, splitmix64};
use hairspring_ring::Producer;
use hairspring_ring::gap::{Gap, GapCause};
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{ByteRate, Bytes, Frames, SampleRate};

use fifo::{Fifo, Lost};
pub use unpaced::UnpacedCard;

/// Most bytes that one call moves: about a millisecond's work.
const MOST_PER_CALL: u64 = 4 << 20;

/// Bytes that are published at once, so that the consumer can begin while the rest is computed; they stay in the cache.
const PIECE_BYTES: u64 = 256 << 10;

/// The shortest time between two interrupts, unless a small FIFO needs a shorter one.
const SHORTEST_PERIOD: Nanos = Nanos::from_millis(1);

/// The longest time between two interrupts, so that the counters stay current.
const LONGEST_PERIOD: Nanos = Nanos::from_millis(50);

/// The shortest sleep that a machine can keep up for long.
const LEAST_SLEEP: Nanos = Nanos::from_micros(10);

/// A pause of the card's bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hiccup {
    /// When it begins, after the start of the card.
    pub at: Nanos,
    /// Duration.
    pub lasts: Nanos,
}

/// The properties of a virtual card.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Channels, resolution, container.
    pub layout: Layout,
    /// Frames per second.
    pub rate: SampleRate,
    /// The data.
    pub pattern: Pattern,
    /// Size of the hardware's FIFO; rounded down to whole grains, one at least.
    pub fifo: Bytes,
    /// Interrupts are late by up to this.
    pub jitter: Nanos,
    /// The pauses of the bus.
    pub hiccups: Vec<Hiccup>,
    /// The highest rate of the bus.
    pub bus: Option<ByteRate>,
    /// The card ends after this many frames, rounded up to whole grains.
    pub frames: Option<Frames>,
}

/// A clocked source without hardware. Counts in grains.
#[derive(Debug)]
pub struct VirtualCard {
    settings: Settings,
    grain_frames: u64,
    grain_bytes: u64,
    total: u64,
    start: Option<Instant>,
    produced: u64,
    fifo: Fifo,
    /// Bytes that the bus could have carried until `bus_at` but did not.
    bus_credit: f64,
    bus_at: Instant,
    /// Number of requested calls.
    wakes: u64,
    /// Why the card has stopped producing; the FIFO may still hold data.
    ending: Option<End>,
    ended: Option<End>,
}

impl VirtualCard {
    /// A card that has not started.
    pub fn new(settings: Settings) -> Self {
        let grain = settings.layout.grain();
        Self {
            fifo: Fifo::new((settings.fifo.0 / grain.bytes).max(1)),
            total: settings.frames.map_or(u64::MAX / grain.bytes, |frames| frames.0.div_ceil(grain.frames)),
            settings,
            grain_frames: grain.frames,
            grain_bytes: grain.bytes,
            start: None,
            produced: 0,
            bus_credit: 0.0,
            bus_at: Instant::BOOT,
            wakes: 0,
            ending: None,
            ended: None,
        }
    }

    /// Puts the grains produced until now into the FIFO.
    fn arrive(&mut self, now: Instant, ring: &mut Producer) {
        if self.ending.is_some() {
            return;
        }
        let start = *self.start.get_or_insert(now);
        let due = (self.settings.rate.frames_after(now - start).0 / self.grain_frames).min(self.total);
        let new = due.saturating_sub(self.produced);
        self.produced += new;
        let grain_bytes = self.grain_bytes;
        let lost = self.fifo.arrive(new, now, |lost| {
            let (room, capacity) = (ring.room(), ring.fill().capacity.0);
            // A loss larger than the ring is the fault of a late call if the ring was not full.
            let late = room >= lost.saturating_mul(grain_bytes) || room >= capacity / 2;
            if late { GapCause::ServedLate } else { GapCause::BufferFull }
        });
        if lost > 0 && matches!(ring.on_overrun(), OnOverrun::Stop | OnOverrun::Block) {
            self.ending = Some(End::Overrun);
        }
        if self.produced == self.total {
            self.ending.get_or_insert(End::Finished);
        }
    }

    /// Moves data from the FIFO into the ring. Returns whether more could be moved at once.
    fn deliver(&mut self, now: Instant, ring: &mut Producer) -> bool {
        let bus = self.bus_grains(now);
        let per_call = (MOST_PER_CALL / self.grain_bytes).max(1);
        let mut most = per_call.min(bus);
        while let Some(present) = self.fifo.front() {
            if present == 0 {
                let lost = self.fifo.take_lost();
                self.declare(lost, ring);
                continue;
            }
            let wanted = present.min((PIECE_BYTES / self.grain_bytes).max(1)).min(most);
            let mut room = ring.room() / self.grain_bytes;
            if room < wanted && self.ending.is_none() && self.fifo.is_more_than_half_full() {
                // Does not evict all of a small ring at once, because its newest data are worth more than those in the
                // FIFO.
                let most = (ring.fill().capacity.0 / self.grain_bytes / 4).max(1);
                room = ring.evict(wanted.min(most) * self.grain_bytes, self.grain_bytes) / self.grain_bytes;
            }
            let grains = wanted.min(room);
            let length = (grains * self.grain_bytes) as usize;
            let Some(bytes) = (if grains > 0 { ring.reserve(length) } else { None }) else {
                return room > 0 && bus > per_call;
            };
            self.settings.pattern.fill(self.settings.layout, Frames(self.fifo.next() * self.grain_frames), bytes);
            ring.commit(length);
            self.fifo.take(grains);
            most -= grains;
            self.bus_credit -= length as f64;
        }
        // An idle bus does not accumulate capacity.
        self.bus_credit = 0.0;
        false
    }

    fn declare(&self, lost: Option<Lost>, ring: &mut Producer) {
        let Some(lost) = lost else { return };
        let (first, frames) = (lost.first * self.grain_frames, lost.grains * self.grain_frames);
        ring.gap(Gap { first: Frames(first), frames: Frames(frames), cause: lost.cause, found: lost.found });
    }

    /// The grains that the bus can carry now.
    fn bus_grains(&mut self, now: Instant) -> u64 {
        if self.hiccup_until(now).is_some() {
            return 0;
        }
        let Some(bus) = self.settings.bus else { return u64::MAX };
        let from = self.bus_at.max(self.start.unwrap_or(now));
        let start = self.start.unwrap_or(now);
        let idle = self.settings.hiccups.iter().map(|hiccup| {
            let (begin, end) = ((start + hiccup.at).max(from), (start + hiccup.at + hiccup.lasts).min(now));
            (end - begin).max(Nanos::ZERO)
        });
        let busy = now - from - idle.sum();
        let most = (self.fifo.capacity() * self.grain_bytes) as f64;
        self.bus_credit = (self.bus_credit + bus.volume_in(busy).0 as f64).min(most);
        self.bus_at = now;
        (self.bus_credit / self.grain_bytes as f64) as u64
    }

    /// The end of the present pause of the bus, if there is one.
    fn hiccup_until(&self, now: Instant) -> Option<Instant> {
        let start = self.start?;
        let spans = self.settings.hiccups.iter().map(|hiccup| (start + hiccup.at, start + hiccup.at + hiccup.lasts));
        spans.filter(|(begin, end)| *begin <= now && now < *end).map(|(_, end)| end).max()
    }

    /// Moves the available data, and returns when to be called again.
    fn move_on(&mut self, now: Instant, ring: &mut Producer) -> Next {
        if let Some(end) = self.ended {
            return Next::Ended(end);
        }
        if ring.fill().capacity.0 < self.grain_bytes {
            return self.give_up(now, ring);
        }
        let more = self.deliver(now, ring);
        if let Some(end) = self.ending
            && self.fifo.front().is_none()
        {
            self.ended = Some(end);
            return Next::Ended(end);
        }
        if let Some(until) = self.hiccup_until(now) {
            return Next::At(until.min(now + LONGEST_PERIOD));
        }
        if more {
            return Next::At(now);
        }
        if self.ending.is_some() {
            let fill = ring.fill();
            let full = fill.capacity.0 - fill.now.0 < self.grain_bytes;
            // If the ring is not full, the bus is slow or its list of gaps is full.
            return if full { Next::Room } else { Next::At(now + SHORTEST_PERIOD) };
        }
        Next::At(self.next_interrupt(now, ring))
    }

    /// When enough data have gathered for the consumer, the FIFO must be emptied, or all data are produced.
    fn next_interrupt(&mut self, now: Instant, ring: &Producer) -> Instant {
        let rate = self.settings.rate;
        let due = rate.time_of(Frames((ring.notify().0 / self.grain_bytes).saturating_mul(self.grain_frames)));
        let quarter = rate.time_of(Frames(self.fifo.capacity().saturating_mul(self.grain_frames) / 4));
        let period = due.max(SHORTEST_PERIOD).min(LONGEST_PERIOD).min(quarter).max(LEAST_SLEEP);
        let last = self.start.unwrap_or(now) + rate.time_of(Frames(self.total.saturating_mul(self.grain_frames)));
        self.wakes += 1;
        let jitter_ns = self.settings.jitter.count().unsigned_abs().saturating_add(1);
        let late_ns = splitmix64(self.settings.pattern.seed(), self.wakes) % jitter_ns;
        (now + period).min(last) + Nanos::new(late_ns as i64)
    }

    /// When the card takes a frame: at the end of its period.
    fn stamp(&self, frame: Frames) -> Option<FrameStamp> {
        let taken = self.start?.checked_add(self.settings.rate.time_of(Frames(frame.0 + 1)))?;
        Some(FrameStamp { frame, taken: StampTime::Monotonic(taken) })
    }

    /// Fails, because the ring is smaller than a grain.
    fn give_up(&mut self, now: Instant, ring: &mut Producer) -> Next {
        let lost = self.fifo.give_up(now);
        self.declare(lost, ring);
        self.ended = Some(End::Failed(libc::ENOBUFS));
        Next::Ended(End::Failed(libc::ENOBUFS))
    }
}

impl Source for VirtualCard {
    fn describe(&self) -> SourceDescription {
        SourceDescription {
            layout: self.settings.layout,
            rate: Some(self.settings.rate),
            clocked: true,
            fifo: Bytes(self.fifo.capacity() * self.grain_bytes),
            hardware: "virtual card".to_owned(),
            pattern: Some(self.settings.pattern),
        }
    }

    fn start(&mut self, now: Instant) {
        self.start = Some(now);
        self.bus_at = now;
    }

    fn service(&mut self, now: Instant, ring: &mut Producer) -> Next {
        self.arrive(now, ring);
        self.move_on(now, ring)
    }

    fn stop(&mut self, now: Instant, ring: &mut Producer) -> Next {
        self.arrive(now, ring);
        self.ending.get_or_insert(End::Stopped);
        self.move_on(now, ring)
    }

    fn first_stamp(&self) -> Option<FrameStamp> {
        self.stamp(Frames(0)).filter(|_| self.produced > 0)
    }

    fn newest_stamp(&self) -> Option<FrameStamp> {
        self.stamp(Frames((self.produced * self.grain_frames).checked_sub(1)?))
    }

    fn counters(&self) -> SourceCounters {
        SourceCounters {
            ignored: Ignored::default(),
            produced_bytes: self.produced * self.grain_bytes,
            lost_bytes: self.fifo.lost() * self.grain_bytes,
            fifo_bytes: self.fifo.fill() * self.grain_bytes,
            fifo_high_water_bytes: self.fifo.high_water() * self.grain_bytes,
            pauses: 0,
            reordered: 0,
        }
    }
}

#[cfg(test)]
mod tests;
