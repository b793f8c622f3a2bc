//! [`Gate`]: lets interrupt service procedures make calls during runs. Between runs they wait here with their arrival.

use crate::system::sync::{AtomicU32, Ordering, sleep_while, wake_all};

const CLOSED: u32 = 0;
const OPEN: u32 = 1;
const LEAVING: u32 = 2;

pub(super) struct Gate {
    state: AtomicU32,
}

impl Gate {
    pub(super) fn new() -> Self {
        Self { state: AtomicU32::new(CLOSED) }
    }

    pub(super) fn open(&self) {
        self.turn(OPEN);
    }

    /// Closes the gate for good: `pass` returns false to every waiting and later caller.
    pub(super) fn dissolve(&self) {
        self.turn(LEAVING);
    }

    fn turn(&self, state: u32) {
        // Release pairs with the Acquire in `pass`.
        self.state.store(state, Ordering::Release);
        // This thread wakes all waiters at once, so that no waiter depends on another.
        wake_all(&self.state);
    }

    pub(super) fn close(&self) {
        // Relaxed: it hands nothing over. A procedure that has passed continues, and the closed core accepts its calls.
        let _ = self.state.compare_exchange(OPEN, CLOSED, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Waits until the gate is open. Returns false if the executive is being dropped.
    pub(super) fn pass(&self) -> bool {
        loop {
            // Acquire pairs with the Release in `turn`.
            match self.state.load(Ordering::Acquire) {
                // A futex sleep can end spuriously.
                CLOSED => sleep_while(&self.state, CLOSED, None),
                state => return state == OPEN,
            }
        }
    }
}

#[cfg(loom)]
#[cfg(test)]
mod loom_checks {
    //! All interleavings of two procedures at the gate with the executive that turns it.

    use loom::sync::Arc;
    use loom::thread;

    use super::Gate;
    use crate::system::sync::{AtomicU64, Ordering, wake_all};

    /// Switches between threads that are not forced.
    const PREEMPTIONS: usize = 3;

    /// Checks with `judge` which of the two passed after `turn`. A procedure that passes sees the stores before the
    /// opening.
    fn explore(turn: fn(&Gate), judge: fn([bool; 2])) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(PREEMPTIONS);
        model.check(move || {
            let shared = Arc::new((Gate::new(), AtomicU64::new(0)));
            let procedures = [(); 2].map(|()| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let passed = shared.0.pass();
                    // Relaxed: the gate orders it.
                    assert!(!passed || shared.1.load(Ordering::Relaxed) == 1, "it passed before the gate was opened");
                    passed
                })
            });
            shared.1.store(1, Ordering::Relaxed);
            turn(&shared.0);
            judge(procedures.map(|procedure| procedure.join().expect("it does not panic")));
        });
    }

    /// Symptom: two procedures that held arrivals between runs took a CPU at real-time priority. Cause: each woke the
    /// other when its own sleep ended, though the gate was closed still, and one sleep that ends for no reason is
    /// enough to begin.
    #[test]
    fn sleeps_that_end_for_no_reason_end_nobody_elses() {
        explore(
            |gate| {
                wake_all(&gate.state);
                gate.open();
            },
            |passed| assert_eq!(passed, [true; 2]),
        );
    }

    #[test]
    fn all_who_wait_are_sent_away_when_it_dissolves() {
        explore(Gate::dissolve, |passed| assert_eq!(passed, [false; 2]));
    }

    #[test]
    fn nobody_is_left_behind_by_a_gate_that_is_open_for_a_moment() {
        explore(
            |gate| {
                gate.open();
                gate.close();
                gate.dissolve();
            },
            // Each passed in that moment, or was sent away.
            |_| {},
        );
    }
}
