//! [`Words`]: the memory of the page, a sequence lock around a block of words. One writer, any number of readers.
//!
//! **How it works.** The writer makes the sequence odd, stores the words, and makes it even. A reader loads the sequence, the words, and the
//! sequence again. An even number that has not changed says that the words belong together.
//!
//! **Why it works.** The words are relaxed atomics, so a race is no undefined behaviour. The writer's first fence orders the odd number
//! before the words: a reader that sees a new word, and then passes its own fence, also sees the odd number or a later one.
//! The release of the even number orders the words before it. Acquire and release on the sequence alone are not enough: the
//! second load of the sequence could then be done before the words, which x86 hides and the model in `loom_checks` shows.
//!
//! **Conditions.** One writer at a time, which the publisher's lock on the file ensures. A reader's page is read-only memory, on which
//! only relaxed loads are defined; so acquire is a relaxed load and a fence.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::layout::{BLOCK_WORDS, UNITS_MOST};

/// Words behind the sequence: the station's block and one for each unit. The model has two, so that it ends.
pub(super) const PAYLOAD: usize = if cfg!(loom) { 2 } else { BLOCK_WORDS * (1 + UNITS_MOST) };
/// Size of the file: whole pages of 4 KiB.
pub const PAGE_BYTES: usize = ((2 + BLOCK_WORDS * (1 + UNITS_MOST)) * size_of::<u64>()).next_multiple_of(4096);

/// All of it.
#[repr(C)]
pub(super) struct Words {
    /// Says what the file is. None of what the model explores.
    pub(super) magic: std::sync::atomic::AtomicU64,
    sequence: AtomicU64,
    payload: [AtomicU64; PAYLOAD],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Words>() <= PAGE_BYTES);

impl Words {
    /// Stores a state; the words behind its end keep what they had. Real-time safe. The caller is the only writer.
    ///
    /// # Panics
    /// If it is longer than the page.
    pub(super) fn write(&self, state: &[u64]) {
        // Relaxed: this thread alone writes. A writer that was killed left it odd.
        let odd = self.sequence.load(Ordering::Relaxed) | 1;
        self.sequence.store(odd, Ordering::Relaxed);
        // Release: pairs with the fence of a reader that has seen one of the words.
        fence(Ordering::Release);
        for (word, value) in self.payload[..state.len()].iter().zip(state) {
            word.store(*value, Ordering::Relaxed);
        }
        // Release: pairs with the first fence of a reader that sees the even number.
        self.sequence.store(odd.wrapping_add(1), Ordering::Release);
    }

    /// Copies the words, once. Returns the sequence, or `None` if they are being written or have changed meanwhile.
    pub(super) fn read(&self, into: &mut [u64]) -> Option<u64> {
        let before = self.sequence.load(Ordering::Relaxed);
        // Acquire: pairs with the Release of the even number.
        fence(Ordering::Acquire);
        if before % 2 == 1 {
            return None;
        }
        for (value, word) in into.iter_mut().zip(&self.payload) {
            *value = word.load(Ordering::Relaxed);
        }
        // Acquire: pairs with the Release fence behind the odd number.
        fence(Ordering::Acquire);
        (self.sequence.load(Ordering::Relaxed) == before).then_some(before)
    }
}

#[cfg(loom)]
#[cfg(test)]
mod loom_checks {
    //! All interleavings of a writer and a reader, and all orders in which stores may be seen.

    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    fn words() -> Words {
        Words {
            magic: std::sync::atomic::AtomicU64::new(0),
            sequence: AtomicU64::new(0),
            payload: [(); PAYLOAD].map(|()| AtomicU64::new(0)),
        }
    }

    #[test]
    fn a_reader_never_gets_half_a_state() {
        loom::model(|| {
            let words = Arc::new(words());
            let writes = Arc::clone(&words);
            let writer = thread::spawn(move || (1..=2).for_each(|value| writes.write(&[value; PAYLOAD])));
            let mut state = [0; PAYLOAD];
            if let Some(sequence) = words.read(&mut state) {
                assert!(state.iter().all(|word| *word == sequence / 2), "{state:?} at {sequence}");
            }
            writer.join().expect("it does not panic");
            assert_eq!(words.read(&mut state), Some(4));
            assert_eq!(state, [2; PAYLOAD]);
        });
    }

    #[test]
    fn the_successor_of_a_writer_that_died_in_mid_write_is_read_whole() {
        loom::model(|| {
            let words = Arc::new(words());
            words.sequence.store(3, Ordering::Relaxed);
            words.payload[0].store(7, Ordering::Relaxed);
            let writes = Arc::clone(&words);
            let writer = thread::spawn(move || writes.write(&[9; PAYLOAD]));
            let mut state = [0; PAYLOAD];
            if words.read(&mut state).is_some() {
                assert_eq!(state, [9; PAYLOAD]);
            }
            writer.join().expect("it does not panic");
        });
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn words() -> Box<Words> {
        let payload = [const { AtomicU64::new(0) }; PAYLOAD];
        Box::new(Words { magic: AtomicU64::new(0), sequence: AtomicU64::new(0), payload })
    }

    #[test]
    fn readers_beside_a_writer_get_whole_states_only() {
        let (words, done) = (words(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (1..=20_000).for_each(|value| words.write(&[value; BLOCK_WORDS]));
                done.store(true, Ordering::Release);
            });
            let mut last = 0;
            while !done.load(Ordering::Acquire) {
                let mut state = [0; BLOCK_WORDS];
                if words.read(&mut state).is_some() {
                    assert!(state.iter().all(|word| *word == state[0]) && state[0] >= last, "{state:?} after {last}");
                    last = state[0];
                }
            }
        });
        let mut state = [0; BLOCK_WORDS];
        assert_eq!((words.read(&mut state), state), (Some(40_000), [20_000; BLOCK_WORDS]));
    }

    #[test]
    fn an_odd_sequence_gives_no_state_until_the_next_writer_has_written() {
        let words = words();
        words.write(&[5; 4]);
        words.sequence.store(3, Ordering::Relaxed);
        let mut state = [0; 4];
        assert_eq!(words.read(&mut state), None);
        words.write(&[6; 4]);
        assert_eq!((words.read(&mut state), state), (Some(4), [6; 4]));
    }
}
