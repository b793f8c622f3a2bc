//! The thread back-end as [`Engine`].
#![expect(unsafe_code, reason = "messages of any Copy type are moved as bytes")]

use std::sync::Arc;

use hairspring_exec_core::{By, Call, CallStatus, Moment, Observer, Priority, Reply, SemaphoreId, TaskId, TimerId};
use hairspring_machine::{Clock, Host, Machine, Nanos};

use super::parking::ParkingSpot;
use super::state::{Phase, TimerSeat};
use super::threads::{Shared, Threads};
use crate::calls::Rouse;
use crate::engine::{Engine, InterruptProcedure, TaskProcedure, TaskStack, TimerProcedure};
use crate::inspect::{CoreView, TaskUsage};
use crate::interrupt::{InterruptSource, Isp};
use crate::message::Bytes;
use crate::objects::guarded::{Calls, ExclusiveStep, finds_somebody};
use crate::report::{Finish, RunLimit, StopReason};
use crate::status::Sampled;
use crate::stopper::Halt;
use crate::system::clock::monotonic;
use crate::system::scheduling::{cpu_time_of, switches_of};
use crate::system::stack::StackUse;
use crate::trace::Trace;

impl Engine for Threads {
    fn home(&self) -> u32 {
        self.shared.slots.home()
    }

    fn fits(&self, bytes: usize, alignment: usize) -> bool {
        self.shared.slots.fits(bytes, alignment)
    }

    fn call(&self, by: By, call: Call) -> Reply {
        let gives_back = matches!(
            call,
            Call::FreeBuffer { .. } | Call::FreeBlock { .. } | Call::Release { .. } | Call::SetThreshold { .. }
        );
        let mut state = self.enter_for(by, gives_back);
        let reply = state.apply(by, call);
        self.leave(state, by, &call, reply)
    }

    fn send(&self, by: By, call: Call, message: Bytes<'_>) -> Reply {
        let mut state = self.enter(by);
        let reply = state.apply(by, call);
        if matches!(reply.status, CallStatus::Ok | CallStatus::Blocked) {
            // Under the lock, and before the receiver's word is set.
            self.shared.slots.write(reply.value, message);
        }
        self.leave(state, by, &call, reply)
    }

    fn step(&self, by: By, decide: &mut dyn FnMut(&mut ExclusiveStep) -> Option<Calls>) -> Option<Reply> {
        let mut state = self.enter(by);
        let calls = decide(&mut ExclusiveStep::new(self.home())).unwrap_or_default();
        let mut last = None;
        for call in calls.into_iter().flatten() {
            if finds_somebody(&state.core, call) {
                last = Some((call, state.apply(by, call)));
            }
        }
        match last {
            Some((call, reply)) => Some(self.leave(state, by, &call, reply)),
            None => {
                self.shared.release(state);
                None
            }
        }
    }

    fn inspect(&self, see: &mut dyn FnMut(&dyn CoreView)) {
        let state = self.shared.lock.hold();
        see(&state.core);
        self.shared.release(state);
    }

    fn task_name(&self, task: TaskId) -> String {
        let state = self.shared.lock.hold();
        let name = state.core.observer.seats.get(task.index()).map(|seat| seat.name.clone());
        self.shared.release(state);
        name.unwrap_or_default()
    }

    fn is_unwinding(&self, _me: TaskId) -> bool {
        std::thread::panicking()
    }

    fn halt(&self) -> Arc<dyn Halt> {
        Arc::<Shared>::clone(&self.shared)
    }

    fn rouser(&self) -> Arc<dyn Rouse> {
        Arc::<Shared>::clone(&self.shared)
    }

    fn future_line(&self, me: TaskId) -> Result<SemaphoreId, CallStatus> {
        self.line_of(me)
    }

    fn expect_rouse(&self, begins: bool) {
        let mut state = self.shared.lock.hold();
        state.expected = if begins { state.expected + 1 } else { state.expected.saturating_sub(1) };
        self.shared.release(state);
    }

    fn name(&self) -> &'static str {
        self.shared.backend
    }

    fn sampled(&self) -> Option<Arc<dyn Sampled>> {
        Some(Arc::<Shared>::clone(&self.shared))
    }

    fn usage(&self, task: TaskId) -> Option<TaskUsage> {
        let mut state = self.shared.lock.hold();
        let place = state.core.observer.seat_of(task).map(|seat| seat.place);
        self.shared.release(state);
        let thread = self.shared.places.at(place?).thread();
        Some(TaskUsage { cpu: cpu_time_of(thread)?, switches: switches_of(thread)? })
    }

    fn stack_use(&self, task: TaskId) -> Option<StackUse> {
        let mut state = self.shared.lock.hold();
        let extent = state.core.observer.seat_of(task).and_then(|seat| seat.stack);
        self.shared.release(state);
        extent?.touched()
    }

    unsafe fn take(&self, me: TaskId, envelope: u32, to: *mut u8, bytes: usize) {
        let mut state = self.enter(By::Task(me));
        // SAFETY: the caller's promise; the core handed the envelope to `me`, which has not taken it yet, and the lock
        // is held.
        unsafe { self.shared.slots.read(envelope, to, bytes) };
        let reply = state.apply(By::Task(me), Call::Take);
        self.leave(state, By::Task(me), &Call::Take, reply);
    }

    fn started_with(&self, me: TaskId) -> u32 {
        self.shared.lock.hold().core.outcome(me).value
    }

    fn now(&self) -> Moment {
        monotonic()
    }

    fn time_of_day(&self) -> Nanos {
        Host.read(Clock::Realtime)
    }

    fn work(&self, me: TaskId, span: Nanos) {
        let used = || Host.read(Clock::ThreadCpu);
        let begun = used();
        while used() - begun < span {
            self.preempt_point(me);
        }
    }

    fn preempt_point(&self, _me: TaskId) {
        let Some(place) = self.own() else { return };
        place.count();
        place.unwind_if_killed();
        place.park();
        place.unwind_if_killed();
    }

    fn refuse_when_killed(&self, _me: TaskId) {
        if let Some(place) = self.own() {
            place.refuse();
        }
    }

    fn begin_unwinding(&self, _me: TaskId) -> bool {
        self.own().map_or_else(|| !std::thread::panicking(), ParkingSpot::can_unwind)
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
        self.make_task(by, name, priority, mailboxes, stack, procedure)
    }

    fn delete_task(&self, by: By, task: TaskId) -> Reply {
        self.unmake_task(by, task)
    }

    fn create_timer(&self, by: By, name: &str, procedure: TimerProcedure<dyn Engine>) -> Result<TimerId, CallStatus> {
        let mut state = self.enter(by);
        let timer = TimerId::from_number(state.apply(by, Call::CreateTimer).result()?);
        let seat = TimerSeat { timer, name: name.to_owned(), body: Some(procedure) };
        // A deleted timer has no body any more.
        match state.timers.get_mut(timer.index()) {
            Some(old) => *old = seat,
            None => state.timers.push(seat),
        }
        self.shared.release(state);
        Ok(timer)
    }

    fn set_slice(&self, timer: TimerId, slice_ns: u64) {
        self.shared.lock.hold().slice = Some((timer, slice_ns));
    }

    fn end_slice(&self) {
        self.end_time_slice();
    }

    fn delete_timer(&self, by: By, timer: TimerId) -> Reply {
        let mut state = self.enter(by);
        let call = Call::DeleteTimer { timer };
        let reply = state.apply(by, call);
        let mut gone = None;
        if reply.status == CallStatus::Ok
            && let Some(seat) = state.timers.get_mut(timer.index())
        {
            // None if the procedure itself calls this: then it is dropped when it returns.
            gone = seat.body.take();
            seat.timer = TimerId::from_number(u32::MAX);
        }
        let reply = self.leave(state, by, &call, reply);
        drop(gone);
        reply
    }

    fn attach(
        &self,
        name: &str,
        source: &InterruptSource,
        procedure: InterruptProcedure<dyn Engine>,
    ) -> Result<Isp, std::io::Error> {
        self.make_procedure(name, source, procedure)
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
        let mut state = self.enter(by);
        state.end_run(StopReason::Asked);
        // The core was not called; `leave` handles the consequences of the kill.
        self.leave(state, by, &Call::Tick { now: Moment::START }, CallStatus::Ok.into());
    }
}

impl Halt for Shared {
    fn halt(&self) {
        let mut state = self.lock.hold();
        if state.phase == Phase::Running {
            state.end_run(StopReason::Asked);
        } else {
            state.stop_asked = true;
        }
        self.release_from_outside(state);
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if self.owner {
            self.close();
        }
    }
}
