//! The two cursors of a ring, and who may move them.
//!
//! Positions count bytes since the beginning and never wrap (2⁶⁴ bytes last for centuries). The producer owns the bytes in
//! `[head, tail + capacity)`, the consumer those in `[tail, head)`:
//!
//! ```text
//!        tail            head              tail + capacity
//!   ───────┼───────────────┼───────────────────┼──────
//!    free  │   consumer's  │    producer's     │
//! ```
//!
//! The producer alone moves `head`. The consumer alone moves `tail` — but where the oldest data may be overwritten the
//! producer moves it, too; then whoever moves it or reads bytes behind it holds `held` meanwhile. Neither waits for it: the
//! producer that finds it taken tries again with its next data, and the consumer spins for the few instructions that an
//! eviction takes.
//!
//! `frontier` is how far the producer may be writing at this moment. A reader who is not the consumer copies first and looks
//! at the frontier afterwards: what lies less than a capacity behind it was not touched.

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// Keeps what two threads write on different cache lines; 128 bytes, for processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Alone<T>(T);

/// The cursors of one ring.
#[derive(Debug)]
pub(crate) struct Cursors {
    capacity: u64,
    head: Alone<AtomicU64>,
    frontier: Alone<AtomicU64>,
    tail: Alone<AtomicU64>,
    held: Alone<AtomicBool>,
}

impl Cursors {
    pub(crate) fn new(capacity: u64) -> Self {
        Self {
            capacity,
            head: Alone(AtomicU64::new(0)),
            frontier: Alone(AtomicU64::new(0)),
            tail: Alone(AtomicU64::new(0)),
            held: Alone(AtomicBool::new(false)),
        }
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Where the consumer's bytes end.
    pub(crate) fn head(&self) -> u64 {
        // Acquire: pairs with the Release in `publish`; the bytes before `head` are seen.
        self.head.0.load(Ordering::Acquire)
    }

    /// Where the consumer's bytes begin.
    pub(crate) fn tail(&self) -> u64 {
        // Acquire: pairs with the Release in `release` and `evict`; nobody reads the bytes before it any more.
        self.tail.0.load(Ordering::Acquire)
    }

    /// Says that the producer may write up to a position from now on. By the producer.
    pub(crate) fn announce(&self, frontier: u64) {
        // Relaxed, and a fence: it pairs with that in `is_intact`. Who saw a byte written after it sees the frontier, too.
        self.frontier.0.store(frontier, Ordering::Relaxed);
        fence(Ordering::Release);
    }

    /// Hands the bytes before a position to the consumer. By the producer.
    pub(crate) fn publish(&self, head: u64) {
        // Release: pairs with the Acquire in `head`.
        self.head.0.store(head, Ordering::Release);
    }

    /// Moves `tail`: gives the bytes before a position back to the producer. By who holds `held`, or by the consumer where the
    /// producer never evicts.
    pub(crate) fn release(&self, tail: u64) {
        // Release: pairs with the Acquire in `tail`; reads of these bytes are over.
        self.tail.0.store(tail, Ordering::Release);
    }

    /// Gives the bytes before a position back, where the producer may evict; `false` if they were not the consumer's any more.
    /// By the consumer.
    pub(crate) fn give_back(&self, tail: u64) -> bool {
        self.hold();
        // Under the hold the producer cannot move it; it may have moved beyond before.
        let moves = self.tail() < tail;
        if moves {
            self.release(tail);
        }
        self.let_go();
        moves
    }

    /// Takes the oldest bytes from the consumer, up to `tail`; `false` if the consumer is reading right now. By the producer.
    pub(crate) fn evict(&self, tail: u64) -> bool {
        if !self.try_hold() {
            return false;
        }
        // Under the hold the consumer cannot move it; it may have moved beyond before.
        if self.tail() < tail {
            self.release(tail);
        }
        self.let_go();
        true
    }

    /// Keeps the other side from moving `tail`, if it is not doing so now.
    pub(crate) fn try_hold(&self) -> bool {
        // Acquire: pairs with the Release in `let_go`; what the last holder did to `tail` is seen. Relaxed on failure: then
        // nothing is touched.
        self.held.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// The same, after the few instructions that an eviction takes. By the consumer.
    pub(crate) fn hold(&self) {
        while !self.try_hold() {
            #[cfg(loom)]
            loom::thread::yield_now();
            #[cfg(not(loom))]
            std::hint::spin_loop();
        }
    }

    pub(crate) fn let_go(&self) {
        // Release: pairs with the Acquire in `try_hold`.
        self.held.0.store(false, Ordering::Release);
    }

    /// Whether bytes that were copied from `position` on, before this call, cannot have been written to meanwhile.
    pub(crate) fn is_intact(&self, position: u64) -> bool {
        // The copy comes before the load: pairs with the fence in `announce`.
        fence(Ordering::Acquire);
        // Relaxed: ordered by the fence.
        self.frontier.0.load(Ordering::Relaxed) <= position.saturating_add(self.capacity)
    }
}

#[cfg(all(test, loom))]
mod loom_checks;
