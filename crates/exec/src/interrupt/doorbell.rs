//! The doorbell: a source notifies the executive that the ring is not empty; the executive sleeps until it is notified.
//!
//! ```text
//!            ring                 acknowledge
//!   IDLE ─────────► PENDING ─────────────────► IDLE
//!     │ sleep
//!     ▼          ring, and wake the sleeper                    woken
//!   SLEEPING ─────────────────────────────────► SLEEPING and PENDING ──────► PENDING          (time is up: SLEEPING ─► IDLE)
//! ```
//! Why no notification is missed: a source pushes, then sets PENDING. The executive goes to sleep only by a
//! compare-exchange from IDLE. If a source notified it before, the exchange fails. If a source notifies it afterwards,
//! that source sees SLEEPING and wakes it. The executive clears PENDING before it empties the ring, so a later push
//! sets PENDING again.
//!
//! Why no source waits for another: SLEEPING stays set until the sleeper itself is awake. If a source is preempted
//! between setting PENDING and waking the sleeper, the next source that rings wakes it.

use hairspring_exec_core::Moment;

use crate::system::sync::{AtomicU32, Ordering, sleep_while, wake_one};

const IDLE: u32 = 0;
/// Notified and not acknowledged.
const PENDING: u32 = 1;
/// The executive sleeps, or has been woken and does not run yet.
const SLEEPING: u32 = 2;

pub(crate) struct Doorbell {
    state: AtomicU32,
}

impl Doorbell {
    pub(crate) fn new() -> Self {
        Self { state: AtomicU32::new(IDLE) }
    }

    /// Notifies the executive. Any thread; one system call if the executive sleeps.
    pub(crate) fn ring(&self) {
        if self.mark_pending() {
            wake_one(&self.state);
        }
    }

    /// Sets PENDING. Returns whether the executive has to be woken.
    fn mark_pending(&self) -> bool {
        // AcqRel: Release pairs with the Acquire in `acknowledge`, so that the executive sees what was pushed.
        self.state.fetch_or(PENDING, Ordering::AcqRel) & SLEEPING != 0
    }

    /// Whether a notification is pending. One load; Relaxed, because `acknowledge` does the pairing, and a stale value
    /// only delays the next look.
    #[inline(always)]
    pub(crate) fn is_pending(&self) -> bool {
        self.state.load(Ordering::Relaxed) & PENDING != 0
    }

    /// Acknowledges the notification. Call it before the ring is emptied.
    pub(crate) fn acknowledge(&self) {
        // Acquire pairs with the Release in `mark_pending`.
        self.state.fetch_and(!PENDING, Ordering::AcqRel);
    }

    /// Sleeps until a notification comes or `deadline` passes. One thread only.
    pub(crate) fn sleep(&self, deadline: Option<Moment>) {
        if self.state.compare_exchange(IDLE, SLEEPING, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return;
        }
        sleep_while(&self.state, SLEEPING, deadline);
        // A notification that came meanwhile stays pending. Relaxed: `acknowledge` follows.
        self.state.fetch_and(!SLEEPING, Ordering::Relaxed);
    }
}

#[cfg(loom)]
#[cfg(test)]
mod loom_checks {
    //! All interleavings of sources that push and ring with an executive that answers, empties and sleeps. In one that
    //! misses a ring the executive sleeps for ever, and loom reports a deadlock.

    use hairspring_exec_core::Moment;
    use loom::sync::Arc;
    use loom::thread;

    use super::Doorbell;
    use crate::interrupt::Ring;

    /// Switches between threads that are not forced.
    const PREEMPTIONS: usize = 3;

    /// If it was rung: answers, and then empties the ring, as the executive does.
    fn heed(bell: &Doorbell, ring: &Ring, mut serve: impl FnMut(u64, u64)) {
        if bell.is_pending() {
            bell.acknowledge();
            while let Some((first, second)) = ring.pop() {
                serve(first, second);
            }
        }
    }

    /// `sources` push and ring once each; the executive sleeps with a deadline that has come as often as given, and
    /// else without.
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

    /// Symptom: the executive slept for ever, though sources rang. Cause: a thread of low priority rang and was
    /// preempted before it could wake the sleeper, and the sources that rang after it took the sleeper for woken.
    #[test]
    fn a_source_that_is_stopped_before_it_wakes_the_executive_leaves_that_to_the_next() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(PREEMPTIONS);
        model.check(|| {
            let shared = Arc::new((Doorbell::new(), Ring::new()));
            let (stopped, rings) = (Arc::clone(&shared), Arc::clone(&shared));
            let threads = [
                // It never reaches the wake.
                thread::spawn(move || {
                    stopped.0.mark_pending();
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
