//! Running: the carrier's loop, from the first task to the end of the run.

use crate::system::clock::moment_of;
use std::panic::resume_unwind;
use std::sync::Arc;

use hairspring_exec_core::TaskState;
use hairspring_machine::{Nanos, Refused};

use super::alarm::Alarm;
use super::attention::RUNAWAY;
use super::carrier::Carrier;
use super::fibers::Fibers;
use super::overflow::GuardPages;
use super::placement::Placement;
use super::watchdog::Watchdog;
use crate::host::ControlWords;
use crate::report::{Finish, RunLimit, StopReason};

/// The most runs that may begin while a stopped executive unwinds its tasks (a destructor may trigger one). In a small
/// system every task can trigger every other, and the unwinding still ends.
const MOST_LATE_RUNS: usize = 100_000;

impl<M: Carrier> Fibers<M> {
    pub(super) fn run_once(&self, limit: RunLimit) -> Finish {
        *self.finish.borrow() = Finish::new(StopReason::Finished);
        self.stopping.set(false);
        self.left_at.set(self.machine.moment());
        self.limit.set(match limit {
            RunLimit::Forever => None,
            RunLimit::For(span) => Some(self.machine.moment().after_nanos(u64::try_from(span.count()).unwrap_or(0))),
            RunLimit::Until(instant) => Some(moment_of(instant)),
        });
        self.default_control.set(ControlWords::read());
        let mut refused: Vec<Refused> =
            self.procedures.borrow().iter().filter_map(|procedure| procedure.health.refused()).collect();
        self.deadline_check.forget();
        let (cpus, policy) = &self.placement;
        let placement = Placement::take(&self.machine, cpus.as_ref(), *policy, &mut refused);
        self.finish.borrow().refused.append(&mut refused);
        {
            let _guard_pages = GuardPages::watch(self.extents.as_ptr());
            let _watchdog = M::REAL.then(|| Watchdog::start(self)).flatten();
            // Virtual time passes only in calls, which look at it.
            *self.alarm.borrow() = if M::REAL { Alarm::new(Arc::as_ptr(&self.attention)) } else { None };
            self.arrivals.answers.begin();
            self.carry();
            self.account(None);
            self.arrivals.answers.end();
            let alarm = self.alarm.borrow().take();
            drop(alarm);
        }
        // A runaway at the very end must not be blamed on the next run.
        if self.attention.take() & RUNAWAY != 0 {
            self.pardon();
        }
        let refused = placement.release();
        self.finish.borrow().refused.extend(refused);
        self.limit.set(None);
        let burst = self.burst.borrow().take();
        if let Some(payload) = burst {
            resume_unwind(payload);
        }
        let mut finish = std::mem::replace(&mut *self.finish.borrow(), Finish::new(StopReason::Finished));
        // The second of two runs reports the trouble of sources between them.
        let procedures = self.procedures.borrow();
        let procedures = procedures.iter().zip(0..);
        finish.tell_sources(procedures.filter_map(|(procedure, isp)| procedure.health.tell(isp)));
        if self.config.measure_latency {
            finish.longest_lock = Some(self.longest_call.replace(Nanos::ZERO));
            finish.longest_unpolled = Some(self.longest_unpolled.replace(Nanos::ZERO));
        }
        finish
    }

    /// The carrier's loop.
    fn carry(&self) {
        let mut late_runs = 0;
        loop {
            // A task that changed its control words without declaring that it keeps them must not affect the caller of
            // `run`.
            self.default_control.get().put_in_force(ControlWords::read());
            self.attend(None);
            if let Some(first) = self.above() {
                if self.stopping.get() {
                    late_runs += 1;
                    if late_runs > MOST_LATE_RUNS {
                        return;
                    }
                }
                self.begin_slice();
                self.resume(first);
                continue;
            }
            self.pause_slice();
            if self.stopping.get() {
                return;
            }
            if self.core.borrow().next_deadline().is_none() && !self.expects_interrupts() {
                let waiting = self.tasks_wait();
                self.end_run(if waiting { StopReason::Stuck } else { StopReason::Finished });
                continue;
            }
            self.account(None);
            if let Some(alarm) = &*self.alarm.borrow() {
                alarm.rest();
            }
            self.machine.idle(&self.arrivals.doorbell, self.next_event());
            if let Some(alarm) = &*self.alarm.borrow() {
                alarm.wait_from(self.machine.moment());
            }
        }
    }

    /// Whether any task is in the middle of a run.
    fn tasks_wait(&self) -> bool {
        let core = self.core.borrow();
        let in_a_run =
            |task| core.look(task).is_some_and(|look| matches!(look.state, TaskState::Waiting | TaskState::Ready));
        core.tasks().into_iter().any(in_a_run)
    }
}
