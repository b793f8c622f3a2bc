//! The ring between sources and the executive: bounded, many producers, one consumer, no locks, no `unsafe`.
//!
//! Dmitry Vyukov's bounded queue: each slot has a turn number that says whose it is. A producer claims a place with a
//! compare-exchange on `tail`, writes, and passes the slot on by raising its turn; the consumer reads when the turn has come
//! and passes it on to the next round. The payload is two words, so the slots are plain atomics.
//!
//! ```text
//!   turn == place              free for the producer that claims `place`
//!   turn == place + 1          written, for the consumer
//!   turn == place + SLOTS      free again, in the next round
//! ```

use crate::sync::{AtomicU64, Ordering};

/// Arrivals that can be under way at once: at 1 µs between arrivals a quarter of a millisecond of not being polled.
pub(crate) const RING_SLOTS: usize = if cfg!(loom) { 2 } else { 256 };

struct Slot {
    turn: AtomicU64,
    first: AtomicU64,
    second: AtomicU64,
}

pub(crate) struct Ring {
    slots: Box<[Slot]>,
    head: AtomicU64,
    tail: AtomicU64,
    lost: AtomicU64,
}

impl Ring {
    pub(crate) fn new() -> Self {
        let slot = |turn| Slot { turn: AtomicU64::new(turn), first: AtomicU64::new(0), second: AtomicU64::new(0) };
        Self {
            slots: (0..RING_SLOTS as u64).map(slot).collect(),
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    fn slot(&self, place: u64) -> &Slot {
        &self.slots[place as usize % RING_SLOTS]
    }

    /// Puts two words in. False: full, counted as lost. Any thread; does not block.
    pub(crate) fn push(&self, first: u64, second: u64) -> bool {
        // Relaxed: a stale place fails the compare-exchange below and is read again.
        let mut place = self.tail.load(Ordering::Relaxed);
        loop {
            let slot = self.slot(place);
            // Acquire pairs with the consumer's Release of the turn: its reads of the payload are over.
            let turn = slot.turn.load(Ordering::Acquire);
            if turn == place {
                // Relaxed: claiming a place publishes nothing; the turn does.
                match self.tail.compare_exchange_weak(place, place + 1, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => {
                        slot.first.store(first, Ordering::Relaxed);
                        slot.second.store(second, Ordering::Relaxed);
                        // Release pairs with the consumer's Acquire: the payload is there.
                        slot.turn.store(place + 1, Ordering::Release);
                        return true;
                    }
                    Err(moved) => place = moved,
                }
            } else if turn < place {
                // The consumer has not freed this slot since the last round. Relaxed: a counter.
                self.lost.fetch_add(1, Ordering::Relaxed);
                return false;
            } else {
                place = self.tail.load(Ordering::Relaxed);
            }
        }
    }

    /// Takes the oldest pair out. One thread only.
    pub(crate) fn pop(&self) -> Option<(u64, u64)> {
        // Relaxed: only the consumer writes `head`.
        let place = self.head.load(Ordering::Relaxed);
        let slot = self.slot(place);
        // Acquire pairs with the producer's Release.
        if slot.turn.load(Ordering::Acquire) != place + 1 {
            return None;
        }
        let pair = (slot.first.load(Ordering::Relaxed), slot.second.load(Ordering::Relaxed));
        // Release pairs with a producer's Acquire: the payload may be overwritten.
        slot.turn.store(place + RING_SLOTS as u64, Ordering::Release);
        self.head.store(place + 1, Ordering::Relaxed);
        Some(pair)
    }

    /// How many were lost so far.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(loom)]
#[cfg(test)]
mod loom_checks {
    //! All interleavings of a few pushes and pops, with the reorderings that the memory model allows.

    use loom::sync::Arc;
    use loom::thread;

    use super::Ring;

    /// Switches between threads that are not forced: three find all that is known to go wrong with queues of this kind.
    const PREEMPTIONS: usize = 3;

    /// Two producers push this often each, while a consumer looks this often; then the rest is taken out.
    fn explore(pushes: u64, looks: usize) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(PREEMPTIONS);
        model.check(move || {
            let ring = Arc::new(Ring::new());
            let producers = [1, 2].map(|name| {
                let ring = Arc::clone(&ring);
                thread::spawn(move || (1..=pushes).filter(|&number| ring.push(name, number)).collect::<Vec<_>>())
            });
            let mut got = Vec::new();
            for _ in 0..looks {
                got.extend(ring.pop());
                thread::yield_now();
            }
            let kept = producers.map(|producer| producer.join().expect("it does not panic"));
            while let Some(pair) = ring.pop() {
                got.push(pair);
            }
            for (name, kept) in [1, 2].into_iter().zip(&kept) {
                let from: Vec<_> = got.iter().filter(|pair| pair.0 == name).map(|pair| pair.1).collect();
                assert_eq!(&from, kept, "each once, in order, and whole");
            }
            let kept = kept.iter().map(Vec::len).sum::<usize>();
            assert_eq!(got.len(), kept, "nothing that nobody pushed");
            assert_eq!(ring.lost(), 2 * pushes - kept as u64, "what is lost is counted");
        });
    }

    #[test]
    fn nothing_is_lost_uncounted_doubled_or_out_of_order() {
        explore(2, 2);
    }

    #[test]
    fn a_slot_is_written_again_only_when_it_has_been_read() {
        explore(1, 4);
        // More than there are slots, from one producer: the second round.
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(PREEMPTIONS);
        model.check(|| {
            let ring = Arc::new(Ring::new());
            let producer = Arc::clone(&ring);
            let producer = thread::spawn(move || (1..=4_u64).filter(|&n| producer.push(n, n)).collect::<Vec<_>>());
            let mut got = Vec::new();
            for _ in 0..3 {
                got.extend(ring.pop());
                thread::yield_now();
            }
            let kept = producer.join().expect("it does not panic");
            while let Some(pair) = ring.pop() {
                got.push(pair);
            }
            assert_eq!(got, kept.iter().map(|&n| (n, n)).collect::<Vec<_>>());
        });
    }
}
