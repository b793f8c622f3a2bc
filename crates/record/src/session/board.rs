//! [`Board`]: state shared by the threads of a card and the caller of a session, besides the ring.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use hairspring_machine::Instant;
use hairspring_source::{Ignored, SourceCounters};

use super::time_notes::{SharedBounds, SharedCount};
use crate::recorder::Status;
use hairspring_recording::beginning::Beginning;

/// State shared by the threads of a card and the caller, besides the ring.
#[derive(Default)]
pub(super) struct Board {
    pub(super) produced_bytes: AtomicU64,
    pub(super) lost_bytes: AtomicU64,
    pub(super) fifo_bytes: AtomicU64,
    pub(super) fifo_high_water_bytes: AtomicU64,
    pub(super) ignored: [AtomicU64; 5],
    pub(super) pauses: AtomicU64,
    pub(super) reordered: AtomicU64,
    /// When a source that begins at the start call was started.
    pub(super) started: OnceLock<Beginning>,
    /// When the first frame was taken, once it has come.
    pub(super) frame0: OnceLock<Beginning>,
    /// The recorder needs no more data.
    pub(super) enough: AtomicBool,
    /// The recorder has ended or panicked.
    pub(super) done: AtomicBool,
    pub(super) status: Mutex<Status>,
    /// The number of the present segment plus one; 0 if it is no series.
    pub(super) segment: AtomicU64,
    pub(super) bounds: SharedBounds,
    pub(super) count: SharedCount,
    /// Free space in the file systems of all targets, or [`NOT_SAID`](super::NOT_SAID).
    pub(super) free_bytes: AtomicU64,
    /// Free space on the fullest target, while it is low and ends a series, or [`NOT_SAID`](super::NOT_SAID).
    pub(super) low_bytes: AtomicU64,
    pub(super) ended: OnceLock<Instant>,
}

impl Board {
    /// When the recording began: the one value for limits, report, journals and metadata.
    pub(super) fn began(&self) -> Option<Beginning> {
        self.frame0.get().or_else(|| self.started.get()).copied()
    }

    /// Shows the source's counts.
    pub(super) fn put(&self, counters: SourceCounters) {
        // Relaxed: figures; the last ones are published by the ring's end, which comes after them.
        self.produced_bytes.store(counters.produced_bytes, Ordering::Relaxed);
        self.lost_bytes.store(counters.lost_bytes, Ordering::Relaxed);
        self.fifo_bytes.store(counters.fifo_bytes, Ordering::Relaxed);
        self.fifo_high_water_bytes.store(counters.fifo_high_water_bytes, Ordering::Relaxed);
        for (place, (_, count)) in self.ignored.iter().zip(counters.ignored.named()) {
            place.store(count, Ordering::Relaxed);
        }
        self.pauses.store(counters.pauses, Ordering::Relaxed);
        self.reordered.store(counters.reordered, Ordering::Relaxed);
    }

    /// The counts as they were shown last.
    pub(super) fn counters(&self) -> SourceCounters {
        // Relaxed: as above.
        SourceCounters {
            produced_bytes: self.produced_bytes.load(Ordering::Relaxed),
            lost_bytes: self.lost_bytes.load(Ordering::Relaxed),
            fifo_bytes: self.fifo_bytes.load(Ordering::Relaxed),
            fifo_high_water_bytes: self.fifo_high_water_bytes.load(Ordering::Relaxed),
            ignored: Ignored::of(std::array::from_fn(|number| self.ignored[number].load(Ordering::Relaxed))),
            pauses: self.pauses.load(Ordering::Relaxed),
            reordered: self.reordered.load(Ordering::Relaxed),
        }
    }
}
