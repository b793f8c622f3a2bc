//! [`Roused`]: the tasks whose futures can go on: a set to which any thread adds, and which the carrier of fibers
//! empties.
//!
//! ```text
//!   add:    bit of the task ─► any ─► attention and doorbell          take:   any ─► all bits
//! ```
//! Why no task is missed: an adder sets the bit before `any`, and the carrier clears `any` before it takes the bits. If
//! it cleared `any` before the adder set it, the adder's doorbell makes it look again. Why it cannot be full: there is
//! a bit for each task.

use std::sync::OnceLock;

use crate::system::sync::{AtomicU32, AtomicU64, Ordering};

/// Words of one piece. Pieces are allocated when the first of their tasks waits for a future.
const WORDS: usize = if cfg!(loom) { 1 } else { 16 };
const WORD_BITS: usize = 64;
/// As many as task numbers need.
const PIECES: usize = if cfg!(loom) { 1 } else { (1 << 16) / (WORDS * WORD_BITS) };

pub(crate) struct Roused {
    any: AtomicU32,
    pieces: [OnceLock<Box<[AtomicU64]>>; PIECES],
}

impl Roused {
    pub(crate) fn new() -> Self {
        Self { any: AtomicU32::new(0), pieces: [const { OnceLock::new() }; PIECES] }
    }

    /// Makes room for the task in this slot. Allocates.
    pub(crate) fn prepare(&self, index: usize) {
        if let Some(piece) = self.pieces.get(index / (WORDS * WORD_BITS)) {
            piece.get_or_init(|| (0..WORDS).map(|_| AtomicU64::new(0)).collect());
        }
    }

    /// Adds the task in this slot, if there is room for it. Any thread; never blocks.
    pub(crate) fn add(&self, index: usize) {
        let place = index % (WORDS * WORD_BITS);
        let piece = self.pieces.get(index / (WORDS * WORD_BITS)).and_then(OnceLock::get);
        if let Some(word) = piece.and_then(|piece| piece.get(place / WORD_BITS)) {
            // Both Release pair with the Acquire in `take`: what made the future go on is visible to the task.
            word.fetch_or(1 << (place % WORD_BITS), Ordering::Release);
            // A swap and no store: a store would end the release sequence of another adder, whose bit the carrier could
            // then miss.
            self.any.swap(1, Ordering::Release);
        }
    }

    /// Takes all out. For the carrier.
    pub(crate) fn take(&self, mut each: impl FnMut(usize)) {
        // Acquire pairs with the Release in `add`.
        if self.any.swap(0, Ordering::AcqRel) == 0 {
            return;
        }
        for (number, piece) in self.pieces.iter().enumerate() {
            let Some(words) = piece.get() else { continue };
            for (at, word) in words.iter().enumerate() {
                let mut bits = word.swap(0, Ordering::AcqRel);
                while bits != 0 {
                    each((number * WORDS + at) * WORD_BITS + bits.trailing_zeros() as usize);
                    bits &= bits - 1;
                }
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_task_comes_out_once_and_one_without_room_does_not_come_in() {
        let roused = Roused::new();
        for index in [0, 63, 64, 1_023, 1_024, 65_535] {
            roused.prepare(index);
        }
        for index in [65_535, 0, 64, 1_024, 64, 40_000] {
            roused.add(index);
        }
        let mut out = Vec::new();
        roused.take(|index| out.push(index));
        assert_eq!(out, [0, 64, 1_024, 65_535]);
        roused.take(|index| panic!("{index} came out again"));
    }
}

#[cfg(loom)]
#[cfg(test)]
mod loom_checks {
    //! All interleavings of two threads that add with the carrier that takes.

    use loom::sync::Arc;
    use loom::thread;

    use super::Roused;

    #[test]
    fn nobody_who_is_added_is_missed() {
        loom::model(|| {
            let roused = Arc::new(Roused::new());
            roused.prepare(0);
            let adders = [0, 1].map(|index| {
                let roused = Arc::clone(&roused);
                thread::spawn(move || roused.add(index))
            });
            let mut seen = [0; 2];
            roused.take(|index| seen[index] += 1);
            for adder in adders {
                adder.join().expect("it only adds");
            }
            // The look that the later doorbell asks for.
            roused.take(|index| seen[index] += 1);
            assert_eq!(seen, [1, 1]);
        });
    }
}
