//! Running: the carrier's loop, its looks at interrupts and time, and the end of a run.
#![expect(unsafe_code, reason = "cells that are borrowed between switches")]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use hairspring_exec_core::{By, Call, Moment, Priority, Reply, State, Status, TaskId, TimerId};
use hairspring_machine::Nanos;

use super::attention::{ARRIVED, BURST, RUNAWAY, TIMED};
use super::overflow::GuardPages;
use super::placement::Placement;
use super::watchdog::Watchdog;
use super::{Carrier, Fibers, between, cell};
use crate::context::{IspCtx, TimerCtx};
use crate::engine::{Engine, IspBody, TaskBody, TimerBody};
use crate::host::ControlWords;
use crate::interrupt::{Arrival, Isp, RING_SLOTS, Source};
use crate::message::Bytes;
use crate::report::{Finish, RunLimit, Stopped};

/// Runs that may begin while a stopped executive unwinds its tasks (a destructor may trigger one): enough for every task to
/// have been triggered by every other in a small system, little enough to end.
const MOST_LATE_RUNS: usize = 100_000;

/// Turns in one look. Procedures take time, in which more becomes due, and are served until nothing is: far more than honest
/// sources need. One that is due again each time it has been served must let the tasks have their turn.
const MOST_TURNS: u32 = 16;

impl<M: Carrier> Fibers<M> {
    /// Serves all that is due: interrupt procedures, time-outs, timer procedures, the limit of the run. The one place that does.
    /// Every call of a task and every end of a run comes here if [`is_wanted`](Self::is_wanted) says so; so does the carrier,
    /// which is nobody (`caller`), before it lets anybody run.
    #[cold]
    #[inline(never)]
    pub(super) fn attend(&self, caller: Option<TaskId>) {
        if self.config.measure_latency && caller.is_some() {
            let stretch = between(self.left_at.get(), self.machine.moment());
            self.longest_unpolled.set(self.longest_unpolled.get().max(stretch));
        }
        for turn in 0..=MOST_TURNS {
            let bits = self.attention.take();
            if bits & RUNAWAY != 0 {
                // After the first turn it was a procedure that had the CPU.
                self.blame(caller.filter(|_| turn == 0));
            }
            if bits & BURST != 0 {
                self.end_by_panic(cell!(self.core).observer.burst.take());
            }
            if turn == MOST_TURNS {
                self.attention.set(bits & ARRIVED);
                self.alarm.expire();
                cell!(self.finish).floods += 1;
                return;
            }
            let arrived = self.serve_arrivals(bits & ARRIVED != 0);
            let timed = (turn == 0 || self.alarm.is_up(&self.machine)) && self.serve_time();
            if !arrived && !timed {
                return;
            }
        }
    }

    /// Runs the procedures of the interrupts that have arrived; whether any had. Those that arrive meanwhile have their turn later.
    fn serve_arrivals(&self, told: bool) -> bool {
        let arrivals = &self.arrivals;
        if !told && !arrivals.doorbell.is_rung() {
            return false;
        }
        // Before the ring is emptied: a push after that rings again.
        arrivals.doorbell.answer();
        let taken = cell!(self.arrived);
        taken.extend(std::iter::from_fn(|| arrivals.ring.pop()).take(RING_SLOTS));
        let count = taken.len();
        for number in 0..count {
            let (at, word) = cell!(self.arrived)[number];
            // In virtual time the clock that the poster read is another one.
            let at = if M::REAL { Moment::from_nanos(at) } else { self.machine.moment() };
            self.interrupt((word >> 48) as u16, Arrival { at, count: word & ((1 << 48) - 1) });
        }
        cell!(self.arrived).clear();
        count > 0
    }

    /// Looks at the clock and serves what is due by then; whether anything was. Sets the alarm for what comes next.
    fn serve_time(&self) -> bool {
        let mut served = false;
        if self.next_event().is_some() {
            let look = self.alarm.look(&self.machine, || self.machine.moment());
            while let Some((at, isp)) = cell!(self.agenda).pop_if(|&mut (at, _)| at <= look.now) {
                self.interrupt(isp, Arrival { at, count: 1 });
                served = true;
            }
            served |= self.tick(look.now);
            if self.limit.get().is_some_and(|limit| look.now >= limit) {
                self.end_run(Stopped::TimeUp);
            }
            if let Some(next) = self.next_event() {
                self.alarm.set(look, next);
                if self.attention.bits() & TIMED == 0 {
                    self.attention.set(TIMED);
                }
                return served;
            }
        }
        self.alarm.unset();
        self.attention.clear(TIMED);
        served
    }

    /// The next moment at which there is something to do.
    pub(super) fn next_event(&self) -> Option<Moment> {
        let limit = self.limit.get().filter(|_| !self.stopping.get());
        let scripted = cell!(self.agenda).last().map(|&(at, _)| at);
        [cell!(self.core).next_deadline(), limit, scripted].into_iter().flatten().min()
    }

    /// Serves deadlines, and the timer procedures: the kernel task's work, done on whatever stack is at hand. Whether any was due.
    fn tick(&self, now: Moment) -> bool {
        if cell!(self.core).next_deadline().is_none_or(|next| next > now) {
            return false;
        }
        if self.apply(By::Kernel, Call::Tick { now }).value == 0 {
            return true;
        }
        loop {
            let next = self.apply(By::Kernel, Call::NextTimer);
            if next.status != Status::Ok {
                return true;
            }
            let timer = TimerId::from_number(next.value);
            let expiry = cell!(self.core).take_expiry(timer);
            cell!(self.finish).timer_overruns += expiry.missed;
            // Taken out while it runs: it may delete its own timer, or make others.
            let Some(mut body) = cell!(self.timers)[timer.index()].1.take() else { continue };
            self.guard(|| body(&TimerCtx::new(self.kernel(), timer), expiry));
            let alive = cell!(self.core).is_timer(timer);
            let slot = &mut cell!(self.timers)[timer.index()].1;
            if alive && slot.is_none() {
                *slot = Some(body);
            }
        }
    }

    /// Runs a procedure. It is above all tasks: whoever it readies runs when it is done.
    fn interrupt(&self, isp: u16, arrival: Arrival) {
        let procedures = cell!(self.procedures);
        let Some(procedure) = procedures.get(usize::from(isp)) else { return };
        let body: *mut Option<IspBody> = procedure.body.get();
        // SAFETY: procedures are boxed and attached only between runs; this one is not running, for procedures do not nest.
        match unsafe { &mut *body } {
            Some(IspBody::Conforming(conforming)) => {
                self.guard(|| conforming(&IspCtx::new(self.kernel(), isp), arrival));
            }
            Some(IspBody::Raw(raw)) => self.guard(|| raw(arrival)),
            None => {}
        }
    }

    /// Runs a procedure with the control words that runs begin with, on the stack and among the words of whoever was
    /// interrupted. Its panic must not unwind that one: it ends the run, and goes on where the run was asked for.
    fn guard(&self, procedure: impl FnOnce()) {
        let interrupted = ControlWords::read();
        self.default_control.get().put_in_force(interrupted);
        let outcome = catch_unwind(AssertUnwindSafe(procedure));
        interrupted.put_in_force(ControlWords::read());
        if let Err(payload) = outcome {
            self.end_by_panic(Some(payload));
        }
    }

    /// Ends the run, in which a procedure or hook has panicked with this.
    fn end_by_panic(&self, payload: Option<Box<dyn Any + Send>>) {
        if let Some(payload) = payload {
            cell!(self.burst).get_or_insert(payload);
        }
        self.end_run(Stopped::Asked);
    }

    /// Ends the run: every task is killed, and unwinds when it runs next.
    fn end_run(&self, why: Stopped) {
        if self.stopping.replace(true) {
            return;
        }
        cell!(self.finish).stopped = why;
        for task in cell!(self.core).tasks() {
            self.apply(By::Outside, Call::Kill { task });
        }
    }

    /// The carrier's loop.
    fn carry(&self) {
        let mut late_runs = 0;
        loop {
            // The carrier and its procedures have their own words back, and so has who called `run`.
            self.default_control.get().put_in_force(self.control.get());
            self.attend(None);
            // Procedures that ran on the carrier may have changed the words that the next fiber finds.
            self.control.set(ControlWords::read());
            if let Some(first) = self.above() {
                if self.stopping.get() {
                    late_runs += 1;
                    if late_runs > MOST_LATE_RUNS {
                        return;
                    }
                }
                self.resume(first);
                continue;
            }
            if self.stopping.get() {
                return;
            }
            let core = cell!(self.core);
            if core.next_deadline().is_none() && !self.expects_interrupts() {
                let waiting = core.tasks().into_iter().any(|task| {
                    core.look(task).is_some_and(|look| matches!(look.state, State::Waiting | State::Ready))
                });
                self.end_run(if waiting { Stopped::Stuck } else { Stopped::Finished });
                continue;
            }
            self.machine.idle(&self.arrivals.doorbell, self.next_event());
        }
    }
}

impl<M: Carrier> Engine for Fibers<M> {
    fn call(&self, by: By, call: Call) -> Reply {
        self.call_inline(by, call)
    }

    fn send(&self, by: By, call: Call, message: Bytes<'_>) -> Reply {
        self.send_inline(by, call, message)
    }

    unsafe fn take(&self, me: TaskId, envelope: u32, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.take_inline(me, envelope, to, bytes) }
    }

    fn started_with(&self, me: TaskId) -> u32 {
        self.started_with_inline(me)
    }

    fn now(&self) -> Moment {
        self.machine.moment()
    }

    fn work(&self, me: TaskId, span: Nanos) {
        let mut left = span;
        while left > Nanos::ZERO {
            let now = self.machine.moment();
            let until = self.next_event().map_or(i64::MAX, |next| {
                i64::try_from(next.as_nanos().saturating_sub(now.as_nanos())).unwrap_or(i64::MAX)
            });
            // On the host an interrupt can come at any time: look at least this often.
            let slice = if M::REAL { 1_000 } else { i64::MAX };
            let stretch = left.min(Nanos::new(until.min(slice).max(1)));
            self.machine.compute(stretch);
            let mut took = stretch;
            if M::REAL {
                // A little more than was asked for.
                let passed = self.machine.moment().as_nanos().saturating_sub(now.as_nanos());
                took = took.max(Nanos::new(i64::try_from(passed).unwrap_or(i64::MAX)));
            }
            left = left - took;
            self.preempt_point_inline(me);
        }
    }

    fn preempt_point(&self, me: TaskId) {
        self.preempt_point_inline(me);
    }

    fn create_task(
        &self,
        by: By,
        name: &str,
        priority: Priority,
        mailboxes: [u16; 4],
        body: TaskBody,
    ) -> Result<TaskId, Status> {
        self.make_task(by, name, priority, mailboxes, body)
    }

    fn delete_task(&self, by: By, task: TaskId) -> Reply {
        self.unmake_task(by, task)
    }

    fn create_timer(&self, by: By, name: &str, body: TimerBody) -> Result<TimerId, Status> {
        self.make_timer(by, name, body)
    }

    fn delete_timer(&self, by: By, timer: TimerId) -> Reply {
        self.unmake_timer(by, timer)
    }

    fn attach(&self, name: &str, source: Source, body: IspBody) -> Result<Isp, std::io::Error> {
        self.make_procedure(name, &source, body)
    }

    fn run(&self, limit: RunLimit) -> Finish {
        *cell!(self.finish) = Finish::new(Stopped::Finished);
        self.stopping.set(false);
        self.left_at.set(self.machine.moment());
        self.limit.set(match limit {
            RunLimit::Forever => None,
            RunLimit::For(span) => Some(self.machine.moment().after_nanos(u64::try_from(span.count()).unwrap_or(0))),
            RunLimit::Until(moment) => Some(moment),
        });
        let words = ControlWords::read();
        self.default_control.set(words);
        self.control.set(words);
        let sources = cell!(self.procedures).iter().filter_map(|procedure| procedure.health.refused());
        cell!(self.finish).refused.extend(sources);
        self.alarm.forget();
        let (cpus, policy) = &self.placement;
        let placement = Placement::take(&self.machine, cpus.as_ref(), *policy, &mut cell!(self.finish).refused);
        {
            let _guard_pages = GuardPages::watch(self);
            let _watchdog = M::REAL.then(|| Watchdog::start(self)).flatten();
            self.carry();
        }
        // What the watchdog saw at the end is nobody's in the next run.
        if self.attention.take() & RUNAWAY != 0 {
            self.pardon();
        }
        cell!(self.finish).refused.extend(placement.release());
        self.limit.set(None);
        if let Some(payload) = cell!(self.burst).take() {
            resume_unwind(payload);
        }
        let mut finish = std::mem::replace(cell!(self.finish), Finish::new(Stopped::Finished));
        // What befell sources between two runs is told by the second.
        let procedures = cell!(self.procedures).iter().zip(0..);
        finish.tell_sources(procedures.filter_map(|(procedure, isp)| procedure.health.tell(isp)));
        if self.config.measure_latency {
            finish.longest_lock = Some(self.longest_call.replace(Nanos::ZERO));
            finish.longest_unpolled = Some(self.longest_unpolled.replace(Nanos::ZERO));
        }
        finish
    }

    fn stop(&self, by: By) {
        self.end_run(Stopped::Asked);
        if let By::Task(me) = by {
            // Whoever is more urgent unwinds first.
            self.settle(me, Status::Ok.into());
            self.killed(me, Status::Ok.into());
        }
    }

    fn begin_unwinding(&self, me: TaskId) -> bool {
        self.unwinds(me)
    }
}
