//! The fiber back-end as [`Engine`].
#![expect(unsafe_code, reason = "messages of any Copy type are moved as bytes")]

use std::sync::Arc;

use hairspring_exec_core::{By, Call, CallStatus, Moment, Observer, Priority, Reply, SemaphoreId, TaskId, TimerId};
use hairspring_machine::{Clock, Nanos};

use super::carrier::Carrier;
use super::fibers::{Arrivals, Fibers};
use super::overflow;
use crate::calls::Rouse;
use crate::engine::{Engine, InterruptProcedure, TaskProcedure, TaskStack, TimerProcedure};
use crate::inspect::{CoreView, TaskUsage};
use crate::interrupt::{InterruptSource, Isp};
use crate::message::Bytes;
use crate::objects::guarded::{Calls, ExclusiveStep, finds_somebody};
use crate::report::{Finish, RunLimit, StopReason};
use crate::status::Sampled;
use crate::stopper::Halt;
use crate::system::stack::StackUse;
use crate::trace::Trace;

impl<M: Carrier> Engine for Fibers<M> {
    fn home(&self) -> u32 {
        self.home_inline()
    }

    fn fits(&self, bytes: usize, alignment: usize) -> bool {
        self.slots.fits(bytes, alignment)
    }

    fn call(&self, by: By, call: Call) -> Reply {
        if self.observed {
            self.call_observed(by, call, None)
        } else {
            self.call_inline(by, call, self.way_back_of(by))
        }
    }

    fn send(&self, by: By, call: Call, message: Bytes<'_>) -> Reply {
        if self.observed {
            return self.call_observed(by, call, Some(message));
        }
        self.send_inline(by, call, message, self.way_back_of(by))
    }

    fn step(&self, by: By, decide: &mut dyn FnMut(&mut ExclusiveStep) -> Option<Calls>) -> Option<Reply> {
        let calls = decide(&mut ExclusiveStep::new(self.home_inline())).unwrap_or_default();
        let mut calls =
            calls.into_iter().flatten().filter(|&call| finds_somebody(&self.core.borrow(), call)).peekable();
        while let Some(call) = calls.next() {
            if calls.peek().is_none() {
                return Some(Engine::call(self, by, call));
            }
            self.apply(by, call);
        }
        // As in every call, due work is served here and more urgent tasks run.
        if let By::Task(me) = by {
            self.preempt_point(me);
        }
        None
    }

    fn inspect(&self, see: &mut dyn FnMut(&dyn CoreView)) {
        see(&*self.core.borrow());
    }

    fn task_name(&self, task: TaskId) -> String {
        self.fiber(task).name.clone()
    }

    fn is_unwinding(&self, me: TaskId) -> bool {
        self.fiber(me).unwinding.get() || (std::thread::panicking() && self.unwinding.get() == 0)
    }

    fn halt(&self) -> Arc<dyn Halt> {
        Arc::<Arrivals>::clone(&self.arrivals)
    }

    fn rouser(&self) -> Arc<dyn Rouse> {
        Arc::<Arrivals>::clone(&self.arrivals)
    }

    fn future_line(&self, me: TaskId) -> Result<SemaphoreId, CallStatus> {
        self.line_of(me)
    }

    fn expect_rouse(&self, begins: bool) {
        let before = self.expected.get();
        self.expected.set(if begins { before + 1 } else { before.saturating_sub(1) });
    }

    fn name(&self) -> &'static str {
        M::NAME
    }

    fn sampled(&self) -> Option<Arc<dyn Sampled>> {
        // In virtual time ten milliseconds of another thread are no time at all.
        M::REAL.then(|| Arc::<Arrivals>::clone(&self.arrivals) as Arc<dyn Sampled>)
    }

    fn usage(&self, task: TaskId) -> Option<TaskUsage> {
        self.usage_of(task)
    }

    fn stack_use(&self, task: TaskId) -> Option<StackUse> {
        overflow::stack_use(&self.extents.borrow(), task.index() as u32)
    }

    unsafe fn take(&self, me: TaskId, envelope: u32, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.take_inline(me, envelope, to, bytes, self.observed) }
    }

    fn started_with(&self, me: TaskId) -> u32 {
        self.started_with_inline(me)
    }

    fn now(&self) -> Moment {
        self.machine.moment()
    }

    fn time_of_day(&self) -> Nanos {
        self.machine.read(Clock::Realtime)
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
                // A little more than the request.
                let passed = self.machine.moment().as_nanos().saturating_sub(now.as_nanos());
                took = took.max(Nanos::new(i64::try_from(passed).unwrap_or(i64::MAX)));
            }
            left -= took;
            self.preempt_point(me);
        }
    }

    fn keep_control_words(&self, me: TaskId) {
        self.keep_control(me);
    }

    fn preempt_point(&self, me: TaskId) {
        self.preempt_point_inline(me, self.way_back(me));
        self.leave(me);
    }

    fn create_task(
        &self,
        by: By,
        name: &str,
        priority: Priority,
        mailboxes: [u16; 4],
        stack: TaskStack,
        procedure: TaskProcedure,
    ) -> Result<TaskId, CallStatus> {
        self.make_task(by, name, priority, mailboxes, stack, Self::life_of(procedure))
    }

    fn delete_task(&self, by: By, task: TaskId) -> Reply {
        self.unmake_task(by, task)
    }

    fn create_timer(
        &self,
        by: By,
        name: &str,
        mut procedure: TimerProcedure<dyn Engine>,
    ) -> Result<TimerId, CallStatus> {
        self.make_timer(by, name, Box::new(move |fibers, timer, expiry| procedure(fibers, timer, expiry)))
    }

    fn set_slice(&self, timer: TimerId, slice_ns: u64) {
        self.slice.set(Some((timer, slice_ns)));
    }

    fn end_slice(&self) {
        self.apply(By::Kernel, Call::EndSlice);
        if self.core.borrow().first().is_some() {
            self.begin_slice();
        }
    }

    fn delete_timer(&self, by: By, timer: TimerId) -> Reply {
        self.unmake_timer(by, timer)
    }

    fn attach(
        &self,
        name: &str,
        source: &InterruptSource,
        procedure: InterruptProcedure<dyn Engine>,
    ) -> Result<Isp, std::io::Error> {
        let procedure: InterruptProcedure<Self> = match procedure {
            InterruptProcedure::Raw(raw) => InterruptProcedure::Raw(raw),
            InterruptProcedure::Conforming(mut conforming) => {
                InterruptProcedure::Conforming(Box::new(move |fibers, isp, arrival| conforming(fibers, isp, arrival)))
            }
        };
        self.make_procedure(name, source, procedure)
    }

    fn interrupt_at(&self, isp: u16, at: Moment) -> bool {
        if !M::REAL {
            self.post_at(isp, at);
        }
        !M::REAL
    }

    fn set_hooks(&self, hooks: Box<dyn Observer + Send>) {
        self.use_hooks(hooks);
    }

    fn trace(&self) -> Option<Trace> {
        self.recorded()
    }

    fn run(&self, limit: RunLimit) -> Finish {
        self.run_once(limit)
    }

    fn stop(&self, by: By) {
        self.end_run(StopReason::Asked);
        if let By::Task(me) = by {
            // More urgent tasks unwind first.
            self.settle(me, CallStatus::Ok.into(), self.way_back(me));
            self.killed(me, CallStatus::Ok.into());
        }
    }

    fn refuse_when_killed(&self, me: TaskId) {
        self.fiber(me).refuses.set(true);
    }

    fn begin_unwinding(&self, me: TaskId) -> bool {
        self.unwinds(me)
    }
}
