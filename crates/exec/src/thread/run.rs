//! Running, from the gate's opening to the last task's unwinding; and the end of it all.

use std::panic::resume_unwind;

use hairspring_machine::{Nanos, Policy};

use super::given::TaskThread;
use super::mirror::{KERNEL_PLACE, RUNNER_PLACE, WATCHDOG_PLACE};
use super::state::Phase;
use super::threads::Threads;
use crate::report::{Finish, RunLimit, StopReason};
use crate::system::clock::{moment_of, monotonic};
use crate::system::scheduling::set_policy_of;
use crate::system::sync::whole;

/// How long the end of the executive waits for its own kernel thread, whose timer procedure may never return.
const PATIENCE: Nanos = Nanos::from_secs(2);

impl Threads {
    pub(super) fn run_once(&self, limit: RunLimit) -> Finish {
        let shared = &self.shared;
        let mut state = shared.lock.hold();
        state.finish = Finish::new(StopReason::Finished);
        state.finish.refused = shared.refused.clone();
        state.core.observer.overruns = 0;
        state.violations = 0;
        // An abandoned thread still exists and may do anything.
        state.weakened = state.core.observer.seats.iter().any(|seat| seat.abandoned);
        state.limit = match limit {
            RunLimit::Forever => None,
            RunLimit::For(span) => Some(monotonic().after_nanos(u64::try_from(span.count()).unwrap_or(0))),
            RunLimit::Until(instant) => Some(moment_of(instant)),
        };
        state.take_longest();
        state.phase = Phase::Running;
        state.run += 1;
        // The kernel thread lets the tasks run.
        state.opening = true;
        state.tick_first = true;
        // Nothing can be over before what was due has been served.
        state.serving = true;
        state.ring(KERNEL_PLACE);
        state.ring(WATCHDOG_PLACE);
        if std::mem::take(&mut state.stop_asked) {
            state.end_run(StopReason::Asked);
        }
        shared.release_from_outside(state);
        self.wait_until_closed();

        let mut state = shared.lock.hold();
        let mut finish = std::mem::replace(&mut state.finish, Finish::new(StopReason::Finished));
        finish.timer_overruns = state.core.observer.overruns;
        finish.strict = state.granted && state.single && !state.weakened && state.violations == 0;
        finish.longest_lock = state.take_longest();
        let burst = state.burst.take().or_else(|| state.core.observer.hook_observer.burst.take());
        shared.release(state);
        finish.tell_sources(whole(&shared.interrupts).troubles());
        if let Some(payload) = burst {
            resume_unwind(payload);
        }
        finish
    }

    fn wait_until_closed(&self) {
        let place = self.shared.places.at(RUNNER_PLACE);
        loop {
            let mut state = self.shared.lock.hold();
            state.core.observer.awake(RUNNER_PLACE);
            let closed = state.phase == Phase::Closed;
            place.forbid();
            // Not `release`: see there.
            drop(state);
            if closed {
                return;
            }
            place.doze(None);
        }
    }

    /// Ends every task and every thread. A task that does not unwind is left behind.
    pub(super) fn close(&self) {
        let shared = &self.shared;
        shared.gate.dissolve();
        whole(&shared.interrupts).end();
        let mut state = shared.lock.hold();
        if state.core.observer.busy > 0 {
            // Started before any run, or between two.
            state.run += 1;
            state.unwind_all();
            state.ring(WATCHDOG_PLACE);
        }
        shared.release(state);
        self.wait_until_closed();

        let mut state = shared.lock.hold();
        let mut threads = std::mem::take(&mut state.ended_threads);
        let granted = state.granted;
        for index in 0..state.core.observer.seats.len() {
            let seat = &mut state.core.observer.seats[index];
            let (place, thread) = (seat.place, seat.thread.take());
            let Some(thread) = thread else { continue };
            if seat.abandoned {
                thread.abandon();
            } else {
                if granted {
                    // At its very end a thread may wait for another one by `sched_yield`, as in an allocator's spin
                    // lock: for ever, if the other one is less urgent on the same CPU.
                    set_policy_of(shared.places.at(place).thread(), Policy::Other);
                }
                threads.push(thread);
            }
            shared.places.at(place).dismiss();
            state.core.observer.owe(place, u8::MAX);
        }
        state.leaving = true;
        state.ring(KERNEL_PLACE);
        state.ring(WATCHDOG_PLACE);
        shared.release(state);
        threads.into_iter().for_each(TaskThread::join);
        self.end_own_threads();
    }

    fn end_own_threads(&self) {
        let [kernel, watchdog] = match whole(&self.shared.own_threads).take() {
            Some(threads) => threads,
            None => return,
        };
        let _ = watchdog.join();
        let deadline = monotonic().after_nanos(PATIENCE.count().cast_unsigned());
        let place = self.shared.places.at(RUNNER_PLACE);
        loop {
            let mut state = self.shared.lock.hold();
            state.core.observer.awake(RUNNER_PLACE);
            let gone = state.kernel_gone;
            place.forbid();
            self.shared.release(state);
            if gone {
                let _ = kernel.join();
                return;
            }
            if monotonic() >= deadline {
                return;
            }
            place.doze(Some(deadline));
        }
    }
}
