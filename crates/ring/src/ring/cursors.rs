//! The two cursors of a ring, and the rules for moving them.
//!
//! Positions count bytes since the beginning and never wrap (2⁶⁴ bytes last for centuries). The producer owns the bytes
//! in `[head, tail + capacity)`, the consumer those in `[tail, head)`:
//!
//! ```text
//!        tail            head              tail + capacity
//!   ───────┼───────────────┼───────────────────┼──────
//!    free  │   consumer's  │    producer's     │
//! ```
//!
//! Only the producer moves `head`. Only the consumer moves `tail`, unless the policy is `overwrite`: then the producer
//! moves it, too. In that case a thread holds `held` while it moves `tail` or reads bytes behind it. Waits for `held`
//! are short: a producer that finds it taken tries again with its next data, and a consumer spins for the few
//! instructions of an eviction.
//!
//! `frontier` is the position up to which the producer may be writing now. Any other reader copies first and checks the
//! frontier afterwards. Bytes less than a capacity behind the frontier were not touched.
//!
//! `head` and `frontier` are [`CursorWords`], which lie in the ring's page: other processes read the same words that
//! the producer stores.

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// Keeps the words that two threads write on different cache lines. 128 bytes, because processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Alone<T>(T);

/// The cursors that taps need as well.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct CursorWords {
    head: Alone<AtomicU64>,
    frontier: Alone<AtomicU64>,
}

impl CursorWords {
    /// The end of the consumer's bytes.
    pub(crate) fn head(&self) -> u64 {
        // Acquire: pairs with the Release in `publish`; the bytes before `head` are seen.
        self.head.0.load(Ordering::Acquire)
    }

    /// The position up to which the producer may be writing.
    pub(crate) fn frontier(&self) -> u64 {
        // Relaxed: a hint; a copy is judged by `is_intact`.
        self.frontier.0.load(Ordering::Relaxed)
    }

    /// Whether a copy from `position` on, made before this call, is intact: the producer cannot have written there.
    pub(crate) fn is_intact(&self, position: u64, capacity: u64) -> bool {
        // The copy comes before the load: pairs with the fence in `announce`.
        fence(Ordering::Acquire);
        // Relaxed: ordered by the fence.
        self.frontier.0.load(Ordering::Relaxed) <= position.saturating_add(capacity)
    }
}

/// Location of the cursor words.
pub(crate) trait CursorPlace {
    fn words(&self) -> &CursorWords;
}

/// The cursors of one ring.
#[derive(Debug)]
pub(crate) struct Cursors<P> {
    capacity: u64,
    place: P,
    tail: Alone<AtomicU64>,
    held: Alone<AtomicBool>,
}

impl<P: CursorPlace> Cursors<P> {
    pub(crate) fn new(capacity: u64, place: P) -> Self {
        Self { capacity, place, tail: Alone(AtomicU64::new(0)), held: Alone(AtomicBool::new(false)) }
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The end of the consumer's bytes.
    pub(crate) fn head(&self) -> u64 {
        self.place.words().head()
    }

    /// The beginning of the consumer's bytes.
    pub(crate) fn tail(&self) -> u64 {
        // Acquire: pairs with the Release in `release` and `evict`; all reads of the bytes before it are over.
        self.tail.0.load(Ordering::Acquire)
    }

    /// Announces that the producer may write up to a position from now on. For the producer.
    pub(crate) fn announce(&self, frontier: u64) {
        // Relaxed, and a fence: it pairs with that in `is_intact`. A thread that sees a byte written later also sees
        // the frontier.
        self.place.words().frontier.0.store(frontier, Ordering::Relaxed);
        fence(Ordering::Release);
    }

    /// Hands the bytes before a position to the consumer. For the producer.
    pub(crate) fn publish(&self, head: u64) {
        // Release: pairs with the Acquire in `head`.
        self.place.words().head.0.store(head, Ordering::Release);
    }

    /// Moves `tail`: gives the bytes before a position back to the producer. For the holder of `held`, or for the
    /// consumer if the producer never evicts.
    pub(crate) fn release(&self, tail: u64) {
        // Release: pairs with the Acquire in `tail`; reads of these bytes are over.
        self.tail.0.store(tail, Ordering::Release);
    }

    /// Returns the bytes before a position if the producer may evict; `false` if it had evicted them already. For the
    /// consumer.
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

    /// Takes the oldest bytes from the consumer, up to `tail`; `false` if the consumer is reading now. For the
    /// producer.
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

    /// Takes `held`, so that the other side cannot move `tail`; `false` if the other side has it.
    pub(crate) fn try_hold(&self) -> bool {
        // Acquire: pairs with the Release in `let_go`; this thread sees the last holder's changes of `tail`. Relaxed on
        // failure: then nothing is accessed.
        self.held.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes `held`, and spins for the few instructions of an eviction. For the consumer.
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

    /// Whether a copy from `position` on, made before this call, is intact: the producer cannot have written there.
    pub(crate) fn is_intact(&self, position: u64) -> bool {
        self.place.words().is_intact(position, self.capacity)
    }
}

#[cfg(all(test, loom))]
mod loom_checks;
