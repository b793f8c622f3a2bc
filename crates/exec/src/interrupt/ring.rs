//! The ring between sources and the executive: bounded, many producers, one consumer, no locks, no `unsafe`.
//!
//! **Problem.** A producer can be stopped between any two of its instructions, for as long as more urgent threads keep
//! its CPU. In a queue that is emptied strictly in order, the arrivals of all other producers wait behind it.
//!
//! **Solution.** A producer owns one slot and nothing else. Two bitmaps record the owner of each slot:
//!
//! ```text
//!   free ──1 claim──► (a producer writes) ──2 publish──► full ──3 gather──► (the consumer's batch) ──4 take──► free
//! ```
//! A producer that is stopped between 1 and 2 keeps its slot from being used, and holds up no other producer.
//!
//! **Why arrivals of one producer stay in order.** Each draws a number before it is published, and the consumer takes
//! the lowest number of its batch first. It gathers until one pass over the bitmap finds nothing new. That pass sees
//! everything that was published before anything in the batch was, so no earlier arrival of the same producer is
//! missing from the batch.

use crate::system::sync::{AtomicU64, Ordering};

/// Arrivals that can be under way at once: at 1 µs between arrivals a quarter of a millisecond of not being polled.
pub(crate) const RING_SLOTS: usize = if cfg!(loom) { 2 } else { 256 };
/// Slots of one word of a bitmap. The model has one, so that two slots are two words.
const WORD_SLOTS: usize = if cfg!(loom) { 1 } else { 64 };
const WORDS: usize = RING_SLOTS / WORD_SLOTS;
/// All slots of a word.
const ALL: u64 = u64::MAX >> (64 - WORD_SLOTS);

struct Slot {
    number: AtomicU64,
    first: AtomicU64,
    second: AtomicU64,
}

pub(crate) struct Ring {
    slots: Box<[Slot]>,
    free: [AtomicU64; WORDS],
    full: [AtomicU64; WORDS],
    /// The consumer's own: slots that it has gathered and not taken yet.
    batch: [AtomicU64; WORDS],
    last_number: AtomicU64,
}

impl Ring {
    pub(crate) fn new() -> Self {
        let slot = || Slot { number: AtomicU64::new(0), first: AtomicU64::new(0), second: AtomicU64::new(0) };
        Self {
            slots: std::iter::repeat_with(slot).take(RING_SLOTS).collect(),
            free: std::array::from_fn(|_| AtomicU64::new(ALL)),
            full: std::array::from_fn(|_| AtomicU64::new(0)),
            batch: std::array::from_fn(|_| AtomicU64::new(0)),
            last_number: AtomicU64::new(0),
        }
    }

    /// Puts two words in. False: full. Any thread; does not block, and holds up no other thread if it is stopped
    /// inside.
    pub(crate) fn push(&self, first: u64, second: u64) -> bool {
        let Some((word, bit)) = self.claim() else { return false };
        let slot = &self.slots[word * WORD_SLOTS + bit];
        // Relaxed: of two numbers of one thread the later is the greater, and no more is asked of them.
        slot.number.store(self.last_number.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        slot.first.store(first, Ordering::Relaxed);
        slot.second.store(second, Ordering::Relaxed);
        // 2. Release pairs with the Acquire in `gather`: the payload is there.
        self.full[word].fetch_or(1 << bit, Ordering::Release);
        true
    }

    /// 1. Takes a free slot.
    fn claim(&self) -> Option<(usize, usize)> {
        for (word, free) in self.free.iter().enumerate() {
            // Relaxed: a stale look is corrected by the exchange.
            let mut seen = free.load(Ordering::Relaxed);
            while seen != 0 {
                let bit = seen.trailing_zeros() as usize;
                // Acquire pairs with the Release in `take`: the consumer's reads of the payload are over.
                seen = free.fetch_and(!(1 << bit), Ordering::Acquire);
                if seen & (1 << bit) != 0 {
                    return Some((word, bit));
                }
            }
        }
        None
    }

    /// Takes the oldest pair out. One thread only.
    pub(crate) fn pop(&self) -> Option<(u64, u64)> {
        self.oldest()
            .or_else(|| if self.gather() { self.oldest() } else { None })
            .map(|(word, bit)| self.take(word, bit))
    }

    /// 3. Begins a batch; whether there is anything in it.
    fn gather(&self) -> bool {
        let mut anything = false;
        loop {
            let mut anything_new = false;
            for (full, batch) in self.full.iter().zip(&self.batch) {
                // Acquire pairs with the Release in `push`, and orders the passes.
                if full.load(Ordering::Acquire) != 0 {
                    let found = full.swap(0, Ordering::Acquire);
                    // Relaxed here and below: the batch is the consumer's own.
                    batch.store(batch.load(Ordering::Relaxed) | found, Ordering::Relaxed);
                    anything_new = true;
                }
            }
            // At most one pass for each slot: none of them is freed meanwhile.
            if !anything_new {
                return anything;
            }
            anything = true;
        }
    }

    /// The slot of the batch with the lowest number.
    fn oldest(&self) -> Option<(usize, usize)> {
        let mut oldest: Option<(u64, usize, usize)> = None;
        for (word, batch) in self.batch.iter().enumerate() {
            let mut left = batch.load(Ordering::Relaxed);
            while left != 0 {
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                // Relaxed: `gather` has seen it published.
                let number = self.slots[word * WORD_SLOTS + bit].number.load(Ordering::Relaxed);
                if oldest.is_none_or(|(lowest, ..)| number < lowest) {
                    oldest = Some((number, word, bit));
                }
            }
        }
        oldest.map(|(_, word, bit)| (word, bit))
    }

    /// 4. Empties a slot of the batch.
    fn take(&self, word: usize, bit: usize) -> (u64, u64) {
        let slot = &self.slots[word * WORD_SLOTS + bit];
        let pair = (slot.first.load(Ordering::Relaxed), slot.second.load(Ordering::Relaxed));
        let batch = &self.batch[word];
        batch.store(batch.load(Ordering::Relaxed) & !(1 << bit), Ordering::Relaxed);
        // Release pairs with a producer's Acquire: the payload may be overwritten.
        self.free[word].fetch_or(1 << bit, Ordering::Release);
        pair
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

    fn model() -> loom::model::Builder {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(PREEMPTIONS);
        model
    }

    /// Two producers push this often, while a consumer looks this often; then the rest is taken out.
    fn explore(pushes: [u64; 2], looks: usize) {
        model().check(move || {
            let ring = Arc::new(Ring::new());
            let producers = [1, 2].map(|name| {
                let (ring, pushes) = (Arc::clone(&ring), pushes[name as usize - 1]);
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
            assert_eq!(got.len(), kept.iter().map(Vec::len).sum::<usize>(), "nothing that nobody pushed");
        });
    }

    #[test]
    fn nothing_is_lost_untold_doubled_or_out_of_order() {
        explore([2, 1], 2);
    }

    #[test]
    fn a_slot_is_written_again_only_when_it_has_been_read() {
        explore([1, 1], 4);
        // More than there are slots, from one producer: the second round.
        model().check(|| {
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

    /// Symptom: no source's arrivals came through any more. Cause: a thread of low priority was preempted in the middle
    /// of a push, and the consumer waited for it before it took what others had pushed since. Wherever the other
    /// producer stands, what has been pushed can be taken out, and its slot can be used again.
    #[test]
    fn a_producer_that_is_stopped_in_a_push_holds_up_nobody() {
        model().check(|| {
            let ring = Arc::new(Ring::new());
            let theirs = Arc::clone(&ring);
            let stopped = thread::spawn(move || theirs.push(1, 1));
            for number in 1..=2 {
                assert!(ring.push(2, number), "one of two slots is enough");
                let got: Vec<_> = std::iter::from_fn(|| ring.pop()).filter(|pair| pair.0 == 2).collect();
                assert_eq!(got, [(2, number)]);
            }
            stopped.join().expect("it does not panic");
        });
    }
}
