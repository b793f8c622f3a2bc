//! The kernel thread: ticks, time-outs, timer procedures, and the limit of a run.
//!
//! It sleeps on its own word until the next deadline. Setting an earlier deadline wakes it; a later one costs nothing,
//! nor does a delay, at whose end its task wakes by itself. Procedures run here, one after the other, without the lock.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hairspring_exec_core::{By, Call, Moment, TaskId};
use hairspring_machine::{Host, Machine};

use super::bands::KERNEL;
use super::mirror::{KERNEL_PLACE, RUNNER_PLACE};
use super::state::{Phase, State};
use super::threads::Threads;
use crate::report::StopReason;
use crate::system::clock::monotonic;
use crate::system::scheduling::own_number;

impl Threads {
    /// The loop of the kernel thread.
    pub(super) fn keep_time(&self) {
        self.shared.take_cpus();
        // The executive has reported a refusal when it was made.
        let _ = Host.set_policy(KERNEL);
        let place = self.shared.places.at(KERNEL_PLACE);
        place.settle_in(own_number());
        loop {
            place.count();
            let mut state = self.shared.lock.hold();
            state.kernel_until = Moment::START;
            state.core.observer.awake(KERNEL_PLACE);
            if state.leaving {
                state.kernel_gone = true;
                state.ring(RUNNER_PLACE);
                self.shared.release(state);
                return;
            }
            if state.opening && state.phase == Phase::Running {
                state.open();
            }
            if !state.serve_limit() {
                // Due work is left to the next run.
                state.serving = false;
                state.look_for_end();
            } else if state.serve_time() {
                self.shared.release(state);
                self.run_procedures();
                continue;
            }
            let until = state.next_event();
            state.kernel_until = until.unwrap_or(Moment::from_nanos(u64::MAX));
            place.forbid();
            self.shared.release(state);
            place.doze(until);
        }
    }

    fn run_procedures(&self) {
        let place = self.shared.places.at(KERNEL_PLACE);
        loop {
            place.count();
            let mut state = self.shared.lock.hold();
            let next = if state.phase == Phase::Running { state.next_procedure() } else { None };
            let Some((timer, expiry, mut body)) = next else {
                state.serving = false;
                // The next run does what the end of this run left undone.
                state.tick_first = true;
                state.look_for_end();
                self.shared.release(state);
                return;
            };
            self.shared.release(state);
            let ending = catch_unwind(AssertUnwindSafe(|| body(self, timer, expiry)));
            let mut state = self.shared.lock.hold();
            let seat = state.timers.get_mut(timer.index()).filter(|seat| seat.timer == timer && seat.body.is_none());
            // A timer that was deleted in the meantime drops its captured values outside the lock.
            let gone = match seat {
                Some(seat) => seat.body.replace(body),
                None => Some(body),
            };
            if let Err(payload) = ending {
                state.burst(payload);
            }
            self.shared.release(state);
            drop(gone);
        }
    }
}

impl State {
    /// Ends the run if its limit has come. True if the run continues.
    fn serve_limit(&mut self) -> bool {
        if self.phase == Phase::Running && self.limit.is_some_and(|limit| monotonic() >= limit) {
            self.end_run(StopReason::TimeUp);
        }
        self.phase == Phase::Running
    }

    /// Lets the core serve everything that is due. True if timer procedures are due.
    fn serve_time(&mut self) -> bool {
        let now = monotonic();
        let due = self.core.next_deadline().is_some_and(|next| next <= now);
        if !due && !std::mem::take(&mut self.tick_first) {
            return false;
        }
        self.tick_first = false;
        let reply = self.apply(By::Kernel, Call::Tick { now });
        self.serving = reply.value > 0;
        self.publish(None);
        self.settle(None, None);
        if !self.serving {
            self.look_for_end();
        }
        self.serving
    }

    /// Serves what is due, for a task whose delay is over. Timer procedures are left to the kernel thread.
    pub(super) fn serve_delay(&mut self, me: TaskId) {
        let now = monotonic();
        if self.phase != Phase::Running || self.core.next_deadline().is_none_or(|next| next > now) {
            return;
        }
        if self.apply(By::Kernel, Call::Tick { now }).value > 0 {
            // It ticks again, and so learns of them.
            self.tick_first = true;
            self.serving = true;
            self.ring(KERNEL_PLACE);
        }
        self.publish(Some(me));
        self.settle(None, None);
        if self.core.observer.runnable == 0 {
            self.look_for_end();
        }
    }

    /// The next time at which something is due.
    fn next_event(&mut self) -> Option<Moment> {
        if self.phase != Phase::Running {
            return None;
        }
        let next = self.core.next_deadline();
        [next, self.limit].into_iter().flatten().min()
    }

    /// Ends the run after a panic of a timer or interrupt procedure or of a hook. The caller of `run` gets the panic.
    pub(super) fn burst(&mut self, payload: Box<dyn Any + Send>) {
        self.burst.get_or_insert(payload);
        self.end_run(StopReason::Asked);
    }
}
