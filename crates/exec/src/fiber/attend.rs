//! Serves everything that is due: interrupts, time-outs, timer procedures, the limit of the run, panics. No other file
//! does.
#![expect(unsafe_code, reason = "a procedure runs while it could make others")]

use crate::system::clock::instant_of;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use hairspring_exec_core::{By, Call, CallStatus, Moment, TaskId, TimerId};

use super::alarm::PATIENCE_NS;
use super::attention::{ARRIVED, ASKED, HOOK_PANIC, RUNAWAY, TIMED};
use super::carrier::Carrier;
use super::fibers::{Fibers, between};
use crate::engine::InterruptProcedure;
use crate::host::{ControlWords, fetch};
use crate::interrupt::{Arrival, RING_SLOTS};
use crate::report::StopReason;

/// The most turns in one look. While procedures run, more can become due, so a look takes turns until nothing is due.
/// Correct sources need far fewer turns. A source that is always due again must let the tasks run.
const MOST_TURNS: u32 = 16;

impl<M: Carrier> Fibers<M> {
    /// Serves everything that is due: interrupt procedures, time-outs, timer procedures, the limit of the run.
    /// Every call of a task and every end of a run calls this if [`needs_attention`](Self::needs_attention) returns
    /// true. The carrier calls it before it resumes a task; then `caller` is none.
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
                // After the first turn a procedure had the CPU.
                self.blame(caller.filter(|_| turn == 0));
            }
            if bits & HOOK_PANIC != 0 {
                let payload = self.core.borrow().observer.burst.take();
                self.end_by_panic(payload);
            }
            if bits & ASKED != 0 {
                self.answer(caller);
            }
            if turn == MOST_TURNS {
                self.attention.set(bits & ARRIVED);
                self.deadline_check.expire();
                self.finish.borrow().floods += 1;
                return;
            }
            let arrived = self.serve_arrivals(bits & ARRIVED != 0);
            let timed = (turn == 0 || self.deadline_check.is_due(&self.machine)) && self.serve_time();
            if !arrived && !timed {
                return;
            }
        }
    }

    /// Runs the procedures of the interrupts that have arrived, and returns whether there were any. Later arrivals wait
    /// for the next turn.
    fn serve_arrivals(&self, told: bool) -> bool {
        let arrivals = &self.arrivals;
        if !told && !arrivals.doorbell.is_pending() {
            return false;
        }
        // Before the ring is emptied: a push after that rings again.
        arrivals.doorbell.acknowledge();
        // Acquire pairs with the Release in `halt`.
        if arrivals.stop.swap(false, Ordering::Acquire) {
            self.end_run(StopReason::Asked);
        }
        let roused = self.serve_roused();
        self.arrived.borrow().extend(std::iter::from_fn(|| arrivals.ring.pop()).take(RING_SLOTS));
        let count = self.arrived.borrow().len();
        for number in 0..count {
            let (at, word) = self.arrived.borrow()[number];
            // In virtual time the poster read another clock.
            let at = if M::REAL { Moment::from_nanos(at) } else { self.machine.moment() };
            self.interrupt((word >> 48) as u16, Arrival { at: instant_of(at), count: word & ((1 << 48) - 1) });
        }
        self.arrived.borrow().clear();
        count > 0 || roused
    }

    /// Reads the clock, serves everything that is due by then, and returns whether anything was. Sets the check for the
    /// next deadline.
    fn serve_time(&self) -> bool {
        let mut served = false;
        if self.next_event().is_some() {
            let look = self.deadline_check.look(&self.machine, || self.machine.moment());
            while let Some((at, isp)) = self.scripted_by(look.now) {
                self.interrupt(isp, Arrival { at: instant_of(at), count: 1 });
                served = true;
            }
            served |= self.tick(look.now);
            if self.limit.get().is_some_and(|limit| look.now >= limit) {
                self.end_run(StopReason::TimeUp);
            }
            if let Some(next) = self.next_event() {
                self.deadline_check.set(look, next);
                self.watch(next, look.now);
                self.fetch_ahead(served);
                return served;
            }
        }
        self.deadline_check.unset();
        self.attention.clear(TIMED);
        served
    }

    /// Prefetches the data of the next expiry; with many timers they are rarely cached. The address of the procedure's
    /// variables is known once its seat is cached: at the look before the deadline.
    fn fetch_ahead(&self, served: bool) {
        let Some((index, record)) = self.core.borrow().coming_timer() else { return };
        let timers = self.timers.borrow();
        let seat = &timers[index].1;
        if served {
            fetch(record);
            fetch((&raw const *seat).cast());
        } else if let Some(procedure) = seat {
            fetch((&raw const **procedure).cast());
        }
    }

    /// The alarm watches the next deadline, or else every call does.
    fn watch(&self, next: Moment, now: Moment) {
        let timed = self.attention.bits() & TIMED != 0;
        let mut alarm = self.alarm.borrow();
        if !timed && alarm.as_ref().is_some_and(|alarm| alarm.is_overdue(now)) {
            *alarm = None;
        }
        let watched = alarm.as_ref().is_some_and(|alarm| {
            alarm.forget(now);
            alarm.watches(next, now)
        });
        if watched {
            self.attention.clear(TIMED);
        } else {
            if alarm.is_some() {
                self.deadline_check.look_within(PATIENCE_NS);
            }
            if !timed {
                self.attention.set(TIMED);
            }
        }
    }

    /// Takes out a scripted interrupt that is due.
    fn scripted_by(&self, now: Moment) -> Option<(Moment, u16)> {
        self.agenda.borrow().pop_if(|&mut (at, _)| at <= now)
    }

    /// The next time at which something is due.
    pub(super) fn next_event(&self) -> Option<Moment> {
        let limit = self.limit.get().filter(|_| !self.stopping.get());
        let scripted = self.agenda.borrow().last().map(|&(at, _)| at);
        [self.core.borrow().next_deadline(), limit, scripted].into_iter().flatten().min()
    }

    /// Does the work of the kernel task on the present stack: serves deadlines and timer procedures. Returns whether
    /// any was due.
    fn tick(&self, now: Moment) -> bool {
        if self.core.borrow().next_deadline().is_none_or(|next| next > now) {
            return false;
        }
        if self.apply(By::Kernel, Call::Tick { now }).value == 0 {
            return true;
        }
        loop {
            let next = self.apply(By::Kernel, Call::NextTimer);
            if next.status != CallStatus::Ok {
                return true;
            }
            let timer = TimerId::from_number(next.value);
            let expiry = self.core.borrow().take_expiry(timer);
            self.finish.borrow().timer_overruns += expiry.missed;
            // Taken out while it runs: it may delete its own timer, or make others.
            let taken = self.timers.borrow()[timer.index()].1.take();
            let Some(mut procedure) = taken else { continue };
            self.guard(|| procedure(self, timer, expiry));
            let alive = self.core.borrow().is_timer(timer);
            let slot = &mut self.timers.borrow()[timer.index()].1;
            if alive && slot.is_none() {
                *slot = Some(procedure);
            }
        }
    }

    /// Runs a procedure. It is above all tasks: the tasks that it readies run after it.
    fn interrupt(&self, isp: u16, arrival: Arrival) {
        let found = self.procedures.borrow().get(usize::from(isp)).map(|found| found.body.get());
        let Some(body) = found else { return };
        // SAFETY: procedures are boxed and attached only between runs; this one is not running, because procedures do
        // not nest.
        match unsafe { &mut *body } {
            Some(InterruptProcedure::Conforming(conforming)) => {
                self.guard(|| conforming(self, isp, arrival));
            }
            Some(InterruptProcedure::Raw(raw)) => self.guard(|| raw(arrival)),
            None => {}
        }
    }

    /// Runs a procedure on the stack of the interrupted task, with the floating-point control words of a new run. A
    /// panic of the procedure must not unwind that task: it ends the run and continues in the caller of `run`.
    fn guard(&self, procedure: impl FnOnce()) {
        let interrupted = ControlWords::read();
        self.default_control.get().put_in_force(interrupted);
        let outcome = catch_unwind(AssertUnwindSafe(procedure));
        interrupted.put_in_force(ControlWords::read());
        if let Err(payload) = outcome {
            self.end_by_panic(Some(payload));
        }
    }

    /// Ends the run because a procedure or hook has panicked.
    fn end_by_panic(&self, payload: Option<Box<dyn Any + Send>>) {
        if let Some(payload) = payload {
            self.burst.borrow().get_or_insert(payload);
        }
        self.end_run(StopReason::Asked);
    }

    /// Ends the run: every task is killed, and unwinds when it runs next.
    pub(super) fn end_run(&self, why: StopReason) {
        if self.stopping.replace(true) {
            return;
        }
        self.finish.borrow().stopped = why;
        let tasks = self.core.borrow().tasks();
        for task in tasks {
            self.apply(By::Outside, Call::Kill { task });
        }
    }
}
