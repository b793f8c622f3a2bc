//! [`Sequenced`]: words that one thread writes and any number of threads or processes read whole: a sequence lock.
//!
//! **How it works.** The writer makes the sequence odd, stores the words, and makes it even again. A reader copies the
//! words between two looks at the sequence. The copy is whole if both looks saw the same even number. The writer never
//! waits and does not know the readers; a reader that finds the words changing tries again.
//!
//! **Why it works.** The words are relaxed atomics, so a read during a write is no data race. The writer's fence orders
//! the odd number before the words: a reader that sees a new word, and then passes its own fence, also sees the odd
//! number or a later one. Acquire and release on the sequence alone are not enough: the second look could then come
//! before the words, which x86 hides and the model in `loom_checks` shows.
//!
//! **Conditions.** One writer at a time. The memory of a reader may be read-only; there only relaxed loads are defined,
//! so acquire is a relaxed load and a fence. A successor of a writer that died in the middle of a change begins with
//! the next change.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Attempts of [`Sequenced::read`] before it gives up. A ring's writer needs less than a microsecond, some times a
/// minute; a writer that died during a change leaves the sequence odd for ever.
const TRIES: usize = 64;

/// A sequence number and the words that it guards: in memory a 64-bit word, odd during a change, and the words behind
/// it.
#[derive(Debug)]
#[repr(C)]
pub struct Sequenced<const N: usize> {
    sequence: AtomicU64,
    words: [AtomicU64; N],
}

impl<const N: usize> Sequenced<N> {
    /// Changes the words. For the one writer. Real-time safe if `change` is.
    pub fn write(&self, change: impl FnOnce(&SequencedWords<'_, N>)) {
        // Relaxed: only this thread writes it. A writer that was killed left it odd.
        let odd = self.sequence.load(Ordering::Relaxed) | 1;
        // Relaxed, and a fence: it pairs with the second one in `copy`. A reader that sees a word of this change also
        // sees the odd number.
        self.sequence.store(odd, Ordering::Relaxed);
        fence(Ordering::Release);
        change(&SequencedWords(&self.words));
        // Release: pairs with the first fence in `copy`; a reader that sees this number sees all words of this change.
        self.sequence.store(odd.wrapping_add(1), Ordering::Release);
    }

    /// Copies the first words, as many as `into` has. Returns the sequence; `None` if the writer changed them during
    /// the copy, or died in a change.
    pub fn copy(&self, into: &mut [u64]) -> Option<u64> {
        // Relaxed, and a fence: it pairs with the Release at the end of `write`.
        let before = self.sequence.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        if !before.is_multiple_of(2) {
            return None;
        }
        for (value, word) in into.iter_mut().zip(&self.words) {
            // Relaxed: ordered by the two fences.
            *value = word.load(Ordering::Relaxed);
        }
        // The words are read before the second look: pairs with the fence in `write`.
        fence(Ordering::Acquire);
        // Relaxed: ordered by the fence.
        (self.sequence.load(Ordering::Relaxed) == before).then_some(before)
    }

    /// Copies the words, and retries while the writer changes them; `None` if that does not end.
    pub fn read(&self) -> Option<[u64; N]> {
        let mut words = [0; N];
        for _ in 0..TRIES {
            if self.copy(&mut words).is_some() {
                return Some(words);
            }
            std::hint::spin_loop();
        }
        None
    }
}

/// The words while they are being changed.
#[derive(Debug)]
pub struct SequencedWords<'w, const N: usize>(&'w [AtomicU64; N]);

impl<const N: usize> SequencedWords<'_, N> {
    /// A word.
    ///
    /// # Panics
    /// If there is no word at this index.
    pub fn get(&self, at: usize) -> u64 {
        // Relaxed: only this thread writes it.
        self.0[at].load(Ordering::Relaxed)
    }

    /// Stores a word.
    ///
    /// # Panics
    /// If there is no word at this index.
    pub fn set(&self, at: usize, value: u64) {
        // Relaxed: ordered by the fence and the store in `write`.
        self.0[at].store(value, Ordering::Relaxed);
    }
}

impl<const N: usize> Default for Sequenced<N> {
    /// Zeros.
    fn default() -> Self {
        Self { sequence: AtomicU64::new(0), words: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_were_written() {
        let page = Sequenced::<3>::default();
        assert_eq!(page.read(), Some([0; 3]));
        page.write(|words| (0..3).for_each(|at| words.set(at, words.get(at) + at as u64 + 1)));
        assert_eq!(page.read(), Some([1, 2, 3]));
    }

    /// A writer that is killed in the middle of a change must not make a reader spin for ever.
    #[test]
    fn a_change_that_never_ends_is_told() {
        let page = Sequenced::<3>::default();
        page.write(|words| words.set(0, 5));
        page.sequence.store(7, Ordering::Relaxed);
        assert_eq!(page.read(), None);
        page.write(|words| words.set(0, 6));
        let mut first = [0];
        assert_eq!((page.copy(&mut first), first, page.read()), (Some(8), [6], Some([6, 0, 0])));
    }

    #[test]
    fn readers_beside_a_writer_get_whole_states_only() {
        let (page, done) = (Sequenced::<64>::default(), std::sync::atomic::AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (1..=20_000).for_each(|value| page.write(|words| (0..64).for_each(|at| words.set(at, value))));
                done.store(true, Ordering::Release);
            });
            let mut last = 0;
            while !done.load(Ordering::Acquire) {
                let mut state = [0; 64];
                if page.copy(&mut state).is_some() {
                    assert!(state.iter().all(|word| *word == state[0]) && state[0] >= last, "{state:?} after {last}");
                    last = state[0];
                }
            }
        });
        let mut state = [0; 64];
        assert_eq!((page.copy(&mut state), state), (Some(40_000), [20_000; 64]));
    }
}

#[cfg(all(test, loom))]
mod loom_checks {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// Switches between threads that are not forced.
    const PREEMPTIONS: usize = 3;

    /// A writer changes both words twice, a reader reads twice: each accepted copy is one of the three states, and
    /// never an older one than before.
    #[test]
    fn a_copy_that_is_taken_as_whole_is_one_state() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(PREEMPTIONS);
        model.check(|| {
            let page = Arc::new(Sequenced::<2>::default());
            let theirs = Arc::clone(&page);
            let writer = thread::spawn(move || {
                for value in 1..=2 {
                    theirs.write(|words| (0..2).for_each(|at| words.set(at, value)));
                }
            });
            let mut last = 0;
            for _ in 0..2 {
                let mut state = [0; 2];
                if let Some(sequence) = page.copy(&mut state) {
                    assert_eq!(state, [sequence / 2; 2], "a torn copy");
                    assert!(state[0] >= last, "an older state than before");
                    last = state[0];
                }
            }
            writer.join().expect("it does not panic");
            let mut state = [0; 2];
            assert_eq!((page.copy(&mut state), state), (Some(4), [2; 2]));
        });
    }

    #[test]
    fn the_successor_of_a_writer_that_died_in_mid_write_is_read_whole() {
        loom::model(|| {
            let page = Arc::new(Sequenced::<2>::default());
            page.sequence.store(3, Ordering::Relaxed);
            page.words[0].store(7, Ordering::Relaxed);
            let theirs = Arc::clone(&page);
            let writer = thread::spawn(move || theirs.write(|words| (0..2).for_each(|at| words.set(at, 9))));
            let mut state = [0; 2];
            if page.copy(&mut state).is_some() {
                assert_eq!(state, [9; 2]);
            }
            writer.join().expect("it does not panic");
        });
    }
}
