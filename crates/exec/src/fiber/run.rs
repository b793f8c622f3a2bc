//! Running: the carrier's loop, its looks at interrupts and time, and the end of a run.
#![expect(unsafe_code, reason = "cells that are borrowed between switches")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use std::sync::atomic::Ordering;

use hairspring_exec_core::{By, Call, Moment, Priority, Reply, Status, TaskId, TimerId};
use hairspring_machine::Nanos;

use super::overflow::GuardPages;
use super::watchdog::Watchdog;
use super::{Carrier, Fibers, cell};
use crate::context::{IspCtx, TimerCtx};
use crate::engine::{Engine, IspBody, TaskBody, TimerBody};
use crate::host::ControlWords;
use crate::interrupt::{Arrival, Isp, Source};
use crate::message::Bytes;
use crate::report::{Finish, RunLimit, Stopped};

/// Runs that may begin while a stopped executive unwinds its tasks (a destructor may trigger one): enough for every task to
/// have been triggered by every other in a small system, little enough to end.
const MOST_LATE_RUNS: usize = 100_000;

impl<M: Carrier> Fibers<M> {
    /// Looks at what has arrived and at the clock, and serves both: interrupt procedures, time-outs, timer procedures.
    #[cold]
    #[inline(never)]
    pub(super) fn look(&self, caller: Option<TaskId>) {
        self.count_look();
        if let Some(caller) = caller
            && self.has_runaway()
        {
            self.blame(caller);
        }
        let arrivals = &self.arrivals;
        arrivals.doorbell.heed(&arrivals.ring, |at, word| {
            // In virtual time the clock that the poster read is another one.
            let at = if M::REAL { Moment::from_nanos(at) } else { self.machine.moment() };
            self.interrupt((word >> 48) as u16, Arrival { at, count: word & ((1 << 48) - 1) });
        });
        if !cell!(self.core).has_deadlines() && self.limit.get().is_none() && cell!(self.agenda).is_empty() {
            return;
        }
        let now = self.machine.moment();
        while let Some((at, isp)) = cell!(self.agenda).pop_if(|&mut (at, _)| at <= now) {
            self.interrupt(isp, Arrival { at, count: 1 });
        }
        if cell!(self.core).has_deadlines() {
            self.tick(now);
        }
        if self.limit.get().is_some_and(|limit| now >= limit) && !self.stopping.get() {
            self.end_run(Stopped::TimeUp);
        }
    }

    /// Serves what is due, and the timer procedures: the kernel task's work, done on whatever stack is at hand.
    fn tick(&self, now: Moment) {
        if cell!(self.core).next_deadline().is_none_or(|next| next > now) {
            return;
        }
        if self.apply(By::Kernel, Call::Tick { now }).value == 0 {
            return;
        }
        loop {
            let next = self.apply(By::Kernel, Call::NextTimer);
            if next.status != Status::Ok {
                return;
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

    /// Runs a procedure, whose panic must not unwind the task on whose stack it happens to run: it ends the run, and goes on
    /// where the run was asked for.
    fn guard(&self, procedure: impl FnOnce()) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(procedure)) {
            cell!(self.burst).get_or_insert(payload);
            self.end_run(Stopped::Asked);
        }
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
            self.look(None);
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
            let mut until = core.next_deadline();
            if until.is_none() && !self.expects_interrupts() {
                let waiting = core.tasks().into_iter().any(|task| {
                    core.look(task).is_some_and(|look| {
                        use hairspring_exec_core::State;
                        matches!(look.state, State::Waiting | State::Ready)
                    })
                });
                self.end_run(if waiting { Stopped::Stuck } else { Stopped::Finished });
                continue;
            }
            for other in [self.limit.get(), cell!(self.agenda).last().map(|&(at, _)| at)].into_iter().flatten() {
                until = Some(until.map_or(other, |until| until.min(other)));
            }
            self.machine.idle(&self.arrivals.doorbell, until);
        }
    }

    /// Puts the calling thread where the carrier is to run, and back.
    fn placed(&self, run: impl FnOnce()) {
        let (cpus, policy) = &self.placement;
        let (cpus_before, policy_before) = (self.machine.affinity(), self.machine.policy());
        let mut refusals = Vec::new();
        if let Some(cpus) = cpus {
            refusals.extend(self.machine.set_affinity(cpus).err());
        }
        if *policy != policy_before {
            refusals.extend(self.machine.set_policy(*policy).err());
        }
        cell!(self.finish).refused.extend(refusals);
        // An ordinary thread's timers may be 50 µs late on purpose, to save power.
        let slack_before = self.machine.timer_slack();
        self.machine.set_timer_slack(Nanos::new(1));
        run();
        self.machine.set_timer_slack(slack_before);
        // What was in force before was granted before. The watchdog may have changed it.
        if self.machine.policy() != policy_before {
            let _ = self.machine.set_policy(policy_before);
        }
        if cpus.is_some() {
            let _ = self.machine.set_affinity(&cpus_before);
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
            let core = cell!(self.core);
            let next = [core.next_deadline(), self.limit.get(), cell!(self.agenda).last().map(|&(at, _)| at)];
            let until = next.into_iter().flatten().min().map_or(i64::MAX, |next| {
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
        // One that the last run left untold is nobody's in this one. Relaxed: its watchdog has been joined.
        self.ran_away.store(0, Ordering::Relaxed);
        self.placed(|| {
            let _guard_pages = GuardPages::watch(self);
            let watchdog = M::REAL.then(|| Watchdog::start(self)).flatten();
            self.carry();
            if let Some(watchdog) = watchdog {
                watchdog.end();
            }
        });
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
