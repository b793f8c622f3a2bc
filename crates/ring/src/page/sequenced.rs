//! [`Sequenced`]: words that one thread writes and any number of processes read whole: a sequence lock.
//!
//! The writer makes the sequence odd, writes the words, and makes it even again. A reader copies the words between two looks at the
//! sequence. The copy is whole if both looks saw the same even number. The writer never waits and does not know the readers; a reader
//! that finds the words changing tries again.
//!
//! The words are relaxed atomics, so a reader that looks while the writer writes is no data race. Two fences give the order: a reader that
//! saw a new word also sees the odd sequence at its second look.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Looks of a reader before it gives up. The writer is at work for less than a microsecond, some times a minute; one that died in the middle
/// leaves the sequence odd for ever.
const TRIES: usize = 64;

/// A sequence number and the words that it guards.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Sequenced<const N: usize> {
    sequence: AtomicU64,
    words: [AtomicU64; N],
}

impl<const N: usize> Sequenced<N> {
    /// Changes the words. For the one writer.
    pub(crate) fn write(&self, change: impl FnOnce(&SequencedWords<'_, N>)) {
        // Relaxed: only this thread writes it.
        let sequence = self.sequence.load(Ordering::Relaxed);
        // Relaxed, and a fence: it pairs with the one in `try_read`. A reader that sees a word of this change also sees the odd number.
        self.sequence.store(sequence | 1, Ordering::Relaxed);
        fence(Ordering::Release);
        change(&SequencedWords(&self.words));
        // Release: pairs with the Acquire in `try_read`; a reader that sees this number sees all words of this change.
        self.sequence.store((sequence | 1).wrapping_add(1), Ordering::Release);
    }

    /// Copies the words; `None` if the writer was at work during the copy.
    pub(crate) fn try_read(&self) -> Option<[u64; N]> {
        // Acquire: pairs with the Release at the end of `write`.
        let before = self.sequence.load(Ordering::Acquire);
        // Relaxed: ordered by the load above and the fence below.
        let words = std::array::from_fn(|number| self.words[number].load(Ordering::Relaxed));
        // The words are read before the second look: pairs with the fence in `write`.
        fence(Ordering::Acquire);
        // Relaxed: ordered by the fence.
        let after = self.sequence.load(Ordering::Relaxed);
        (before == after && before.is_multiple_of(2)).then_some(words)
    }

    /// Copies the words, and tries again while the writer is at work; `None` if that does not end.
    pub(crate) fn read(&self) -> Option<[u64; N]> {
        (0..TRIES).find_map(|_| {
            let words = self.try_read();
            if words.is_none() {
                std::hint::spin_loop();
            }
            words
        })
    }
}

/// The words while they are being changed.
pub(crate) struct SequencedWords<'w, const N: usize>(&'w [AtomicU64; N]);

impl<const N: usize> SequencedWords<'_, N> {
    pub(crate) fn get(&self, at: usize) -> u64 {
        // Relaxed: only this thread writes it.
        self.0[at].load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, at: usize, value: u64) {
        // Relaxed: ordered by the fence and the store in `write`.
        self.0[at].store(value, Ordering::Relaxed);
    }
}

#[cfg(any(test, loom))]
impl<const N: usize> Sequenced<N> {
    pub(crate) fn new() -> Self {
        Self { sequence: AtomicU64::new(0), words: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_were_written() {
        let page = Sequenced::<3>::new();
        assert_eq!(page.read(), Some([0; 3]));
        page.write(|words| (0..3).for_each(|at| words.set(at, words.get(at) + at as u64 + 1)));
        assert_eq!(page.read(), Some([1, 2, 3]));
    }

    /// A writer that is killed in the middle of a change must not make a reader spin for ever.
    #[test]
    fn a_change_that_never_ends_is_told() {
        let page = Sequenced::<3>::new();
        page.sequence.store(7, Ordering::Relaxed);
        assert_eq!(page.read(), None);
    }
}

#[cfg(all(test, loom))]
mod loom_checks {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// Switches between threads that are not forced.
    const PREEMPTIONS: usize = 3;

    /// A writer changes both words twice, a reader looks twice: what it takes as whole is one of the three states, and never goes back.
    #[test]
    fn a_copy_that_is_taken_as_whole_is_one_state() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(PREEMPTIONS);
        model.check(|| {
            let page = Arc::new(Sequenced::<2>::new());
            let theirs = Arc::clone(&page);
            let writer = thread::spawn(move || {
                for value in 1..=2 {
                    theirs.write(|words| (0..2).for_each(|at| words.set(at, value)));
                }
            });
            let mut last = 0;
            for _ in 0..2 {
                if let Some([first, second]) = page.try_read() {
                    assert_eq!(first, second, "a torn copy");
                    assert!(first >= last, "an older state than before");
                    last = first;
                }
            }
            writer.join().expect("it does not panic");
        });
    }
}
