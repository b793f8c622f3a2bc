//! The doorbell: how sources tell the executive that the ring is not empty, and how it sleeps until they do.
//!
//! ```text
//!            ring                    answer
//!   QUIET ─────────► RUNG ─────────────────► QUIET
//!     │ sleep
//!     ▼          ring, and wake the sleeper                    woken
//!   ASLEEP ─────────────────────────────────► ASLEEP and RUNG ──────► RUNG          (time is up: ASLEEP ─► QUIET)
//! ```
//! Why no ring is missed: a source pushes, then sets RUNG. The executive goes to sleep only by a compare-exchange from
//! QUIET; if the bell was rung before, that fails, and if it is rung after, the source sees ASLEEP and wakes it. The bell is
//! answered (RUNG is cleared) before the ring is emptied, so a push after that rings again.
//!
//! Why nobody has to be waited for: ASLEEP stays until the sleeper itself is awake. A source that was stopped between setting
//! RUNG and waking leaves the wake to the next one that rings.

use hairspring_exec_core::Moment;

use crate::sync::{AtomicU32, Ordering, sleep_while, wake_one};

const QUIET: u32 = 0;
/// Rung and not answered.
const RUNG: u32 = 1;
/// The executive sleeps, or has been woken and does not run yet.
const ASLEEP: u32 = 2;

pub(crate) struct Doorbell {
    state: AtomicU32,
}

impl Doorbell {
    pub(crate) fn new() -> Self {
        Self { state: AtomicU32::new(QUIET) }
    }

    /// Rings. Any thread; one system call if the executive sleeps.
    pub(crate) fn ring(&self) {
        if self.strike() {
            wake_one(&self.state);
        }
    }

    /// Sets RUNG; whether the executive has to be woken.
    fn strike(&self) -> bool {
        // AcqRel: Release pairs with the Acquire in `answer`, so that who answers sees what was pushed.
        self.state.fetch_or(RUNG, Ordering::AcqRel) & ASLEEP != 0
    }

    /// Whether it was rung. One load; Relaxed, because `answer` does the pairing and a late look is only a later look.
    #[inline(always)]
    pub(crate) fn is_rung(&self) -> bool {
        self.state.load(Ordering::Relaxed) & RUNG != 0
    }

    /// Takes note of the ring, before the ring buffer is emptied.
    pub(crate) fn answer(&self) {
        // Acquire pairs with the Release in `strike`.
        self.state.fetch_and(!RUNG, Ordering::AcqRel);
    }

    /// Sleeps until it is rung or `deadline` has come. One thread only.
    pub(crate) fn sleep(&self, deadline: Option<Moment>) {
        if self.state.compare_exchange(QUIET, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return;
        }
        sleep_while(&self.state, ASLEEP, deadline);
        // A ring that came meanwhile stays. Relaxed: `answer` follows.
        self.state.fetch_and(!ASLEEP, Ordering::Relaxed);
    }
}

#[cfg(loom)]
#[cfg(test)]
mod loom_checks {
    //! All interleavings of sources that push and ring with an executive that answers, empties and sleeps. One that misses a
    //! ring sleeps for ever, and loom says that nobody can go on.

    use hairspring_exec_core::Moment;
    use loom::sync::Arc;
    use loom::thread;

    use super::Doorbell;
    use crate::interrupt::Ring;

    /// Switches between threads that are not forced.
    const PREEMPTIONS: usize = 3;

    /// If it was rung: answers, and then empties the ring, as the executive does.
    fn heed(bell: &Doorbell, ring: &Ring, mut serve: impl FnMut(u64, u64)) {
        if bell.is_rung() {
            bell.answer();
            while let Some((first, second)) = ring.pop() {
                serve(first, second);
            }
        }
    }

    /// `sources` push and ring once each; the executive sleeps with a deadline that has come as often as given, and else
    /// without.
    fn explore(sources: u64, timed_sleeps: usize) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(PREEMPTIONS);
        model.check(move || {
            let shared = Arc::new((Doorbell::new(), Ring::new()));
            let threads: Vec<_> = (1..=sources)
                .map(|name| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || {
                        assert!(shared.1.push(name, name), "there is room for as many as there are sources");
                        shared.0.ring();
                    })
                })
                .collect();
            let (bell, ring) = &*shared;
            let mut got = 0;
            let mut timed_sleeps = timed_sleeps;
            loop {
                heed(bell, ring, |name, again| {
                    assert_eq!(name, again);
                    got += 1;
                });
                if got == sources {
                    break;
                }
                let deadline = (timed_sleeps > 0).then_some(Moment::START);
                timed_sleeps = timed_sleeps.saturating_sub(1);
                bell.sleep(deadline);
            }
            threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
        });
    }

    #[test]
    fn no_ring_is_missed() {
        explore(2, 0);
    }

    #[test]
    fn no_ring_is_missed_when_a_sleep_ends_by_time_at_the_moment_of_the_ring() {
        explore(1, 2);
        explore(2, 1);
    }

    /// Symptom: the executive slept for ever, though sources rang. Cause: a thread of low priority rang and was preempted
    /// before it could wake the sleeper, and those who rang after it took the sleeper for woken.
    #[test]
    fn a_source_that_is_stopped_before_it_wakes_the_executive_leaves_that_to_the_next() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(PREEMPTIONS);
        model.check(|| {
            let shared = Arc::new((Doorbell::new(), Ring::new()));
            let (stopped, rings) = (Arc::clone(&shared), Arc::clone(&shared));
            let threads = [
                // It never comes to the wake.
                thread::spawn(move || {
                    stopped.0.strike();
                }),
                thread::spawn(move || {
                    assert!(rings.1.push(1, 1), "there is room");
                    rings.0.ring();
                }),
            ];
            let (bell, ring) = &*shared;
            let mut got = false;
            while !got {
                bell.sleep(None);
                heed(bell, ring, |_, _| got = true);
            }
            threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
        });
    }
}
