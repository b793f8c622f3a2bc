//! [`Inlet`]: the recorder's end of the ring. The recorder of one segment hands it on to that of the next.
//!
//! ```text
//!   Waiting ── join ──▸ Live ── cut ──▸ Cut
//! ```
//!
//! A recorder that was cut still writes blocks out of the ring but cannot release them, because the ring's consumer has
//! moved on. So it publishes the position up to which its blocks are written. The next recorder releases the ring up to
//! there, and its own blocks only afterwards. The two may run on different threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hairspring_ring::gap::Gap;
use hairspring_ring::memory::Memory;
use hairspring_ring::notifier::Notifier;
use hairspring_ring::{Consumer, End, Fill, OnOverrun};

/// The memory of a ring and its policy: all that a recorder needs of a ring that it will join later.
#[derive(Clone, Debug)]
pub struct RingLoan {
    pub(super) memory: Arc<Memory>,
    pub(super) on_overrun: OnOverrun,
}

impl RingLoan {
    /// The memory and policy of this consumer's ring.
    pub fn of(consumer: &Consumer) -> Self {
        Self { memory: Arc::clone(consumer.memory()), on_overrun: consumer.on_overrun() }
    }
}

/// The end of the ring, on its way from the recorder of a segment to the next recorder.
pub(super) struct HandedOn {
    consumer: Consumer,
    /// Up to where the earlier segment has written its blocks, and up to where it will.
    written: Arc<AtomicU64>,
    until: u64,
}

enum Stage {
    Waiting,
    Live(Consumer),
    /// The ring position of the cut, and the fill of the ring then.
    Cut(u64, Fill),
}

/// The recorder's end of a ring, or a placeholder before `join` and after `cut`.
pub(super) struct Inlet {
    stage: Stage,
    ring: RingLoan,
    /// Waited for while there is no ring; never set.
    idle: Notifier,
    /// Up to where the blocks of this recorder are written, for the next one.
    written: Arc<AtomicU64>,
    /// The same for the previous recorder, and the position up to which it will write.
    before: Option<(Arc<AtomicU64>, u64)>,
    /// Ring position up to which this recorder could release if the previous one had written all its blocks.
    held_back: u64,
}

impl Inlet {
    /// With the ring of this consumer, or waiting for one.
    pub(super) fn new(ring: RingLoan, consumer: Option<Consumer>) -> std::io::Result<Self> {
        Ok(Self {
            stage: consumer.map_or(Stage::Waiting, Stage::Live),
            ring,
            idle: Notifier::new()?,
            written: Arc::default(),
            before: None,
            held_back: 0,
        })
    }

    /// Takes over the ring of the segment before.
    pub(super) fn join(&mut self, handed: HandedOn) {
        self.held_back = handed.until;
        self.before = Some((handed.written, handed.until));
        self.stage = Stage::Live(handed.consumer);
    }

    /// Hands on the ring; `None` if there is none, or if blocks of the previous segment are not written yet.
    pub(super) fn hand_on(&mut self) -> Option<HandedOn> {
        if self.before.is_some() {
            return None;
        }
        match std::mem::replace(&mut self.stage, Stage::Waiting) {
            Stage::Live(consumer) => {
                let until = consumer.next();
                self.stage = Stage::Cut(until, consumer.fill());
                Some(HandedOn { consumer, written: Arc::clone(&self.written), until })
            }
            other => {
                self.stage = other;
                None
            }
        }
    }

    /// Releases the blocks that the previous recorder has written since. Returns whether it still has blocks in the
    /// ring.
    pub(super) fn owes(&mut self) -> bool {
        let (Some((written, until)), Stage::Live(consumer)) = (&self.before, &mut self.stage) else { return false };
        // Acquire: pairs with the Release in `release`; the writes of the other recorder are complete.
        let written = written.load(Ordering::Acquire);
        let done = written >= *until;
        if done {
            self.before = None;
            consumer.release(self.held_back);
        } else if written > 0 {
            consumer.release(written);
        }
        !done
    }

    /// Publishes that all blocks of this recorder are written, if it was cut before it took any.
    pub(super) fn nothing_taken(&self) {
        if let Stage::Cut(until, _) = self.stage {
            self.publish(until);
        }
    }

    fn publish(&self, position: u64) {
        // Release: pairs with the Acquire in `owes`.
        self.written.fetch_max(position, Ordering::Release);
    }

    fn live(&self) -> Option<&Consumer> {
        if let Stage::Live(consumer) = &self.stage { Some(consumer) } else { None }
    }

    fn live_mut(&mut self) -> Option<&mut Consumer> {
        if let Stage::Live(consumer) = &mut self.stage { Some(consumer) } else { None }
    }

    /// The ring position of a recorder without a ring.
    fn place(&self) -> u64 {
        if let Stage::Cut(at, _) = self.stage { at } else { 0 }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.ring.memory.size().0
    }

    pub(super) fn memory(&self) -> &Arc<Memory> {
        &self.ring.memory
    }

    pub(super) fn on_overrun(&self) -> OnOverrun {
        self.ring.on_overrun
    }

    pub(super) fn next(&self) -> u64 {
        self.live().map_or_else(|| self.place(), Consumer::next)
    }

    pub(super) fn head(&self) -> u64 {
        self.live().map_or_else(|| self.place(), Consumer::head)
    }

    pub(super) fn available(&self) -> u64 {
        self.live().map_or(0, Consumer::available)
    }

    /// The end of the stream. For a recorder that was cut it is the cut.
    pub(super) fn closed(&self) -> Option<(End, u64, Option<Gap>)> {
        match &self.stage {
            Stage::Waiting => None,
            Stage::Live(consumer) => consumer.closed(),
            Stage::Cut(at, _) => Some((End::Finished, *at, None)),
        }
    }

    pub(super) fn gap_before(&mut self, position: u64) -> Option<(u64, Gap)> {
        self.live_mut()?.gap_before(position)
    }

    pub(super) fn next_gap_at(&self) -> Option<u64> {
        self.live()?.next_gap_at()
    }

    /// Bytes in the ring.
    pub(super) fn view(&self, position: u64, length: usize) -> &[u8] {
        self.live().map_or(&[], |consumer| consumer.view(position, length))
    }

    pub(super) fn offset(&self, position: u64) -> usize {
        self.live().map_or(0, |consumer| consumer.offset(position))
    }

    pub(super) fn take(&mut self, length: u64) {
        if let Some(consumer) = self.live_mut() {
            consumer.take(length);
        }
    }

    pub(super) fn take_held(&mut self, most: usize, use_them: impl FnOnce(u64, &[u8]) -> usize) {
        if let Some(consumer) = self.live_mut() {
            consumer.take_held(most, use_them);
        }
    }

    /// Releases everything before a position, as soon as the recorder before this one is done with it.
    pub(super) fn release(&mut self, position: u64) {
        match (&mut self.stage, &self.before) {
            (Stage::Live(_), Some(_)) => self.held_back = self.held_back.max(position),
            (Stage::Live(consumer), None) => consumer.release(position),
            (Stage::Cut(..), _) => self.publish(position),
            (Stage::Waiting, _) => {}
        }
    }

    pub(super) fn skip_to(&mut self, position: u64) {
        if let Some(consumer) = self.live_mut() {
            let length = position.saturating_sub(consumer.next());
            consumer.take(length);
        }
        self.release(position);
    }

    pub(super) fn fill(&self) -> Fill {
        match &self.stage {
            Stage::Live(consumer) => consumer.fill(),
            Stage::Cut(_, fill) => *fill,
            Stage::Waiting => Fill::default(),
        }
    }

    pub(super) fn notifier(&self) -> &Notifier {
        self.live().map_or(&self.idle, Consumer::notifier)
    }
}
