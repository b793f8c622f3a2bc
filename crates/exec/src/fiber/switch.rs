//! The path of a call: into the core, and then to the task that must run.
//!
//! Without optimisation each inlined call would add its locals to the frame of the task's function, which then outgrows
//! an ordinary stack. So debug builds inline nothing.
#![expect(unsafe_code, reason = "stacks that are switched")]

use corosensei::Yielder;
use hairspring_exec_core::{By, Call, CallStatus, Moment, Reply, TaskId};

use super::attention::TIMED;
use super::carrier::Carrier;
use super::fibers::{Fiber, Fibers, Stackful, between};
use crate::engine::gives_memory;
use crate::message::Bytes;

/// Whether the call gave the task a buffer or a block. Nothing else may happen before the task's guard owns it: a task
/// that unwound here would leak it.
#[inline(always)]
fn holds_buffer(call: Call, reply: Reply) -> bool {
    gives_memory(&call) && reply.status == CallStatus::Ok
}

/// A task's switch back to its resumer. The code of a task carries it along, because finding it by the task's number
/// takes three dependent loads at every switch.
///
/// Made by [`Fibers::way_back`] of the task that uses it.
#[derive(Clone, Copy)]
pub(crate) struct SwitchBack(*const Yielder<(), ()>);

impl SwitchBack {
    /// The way back of code outside of tasks, which never switches.
    pub(crate) const NONE: Self = Self(std::ptr::null());
}

impl<M: Carrier> Fibers<M> {
    /// The way back of a task whose fiber runs.
    #[inline]
    pub(crate) fn way_back(&self, me: TaskId) -> SwitchBack {
        SwitchBack(self.fiber(me).yielder.get())
    }

    /// The way back of a caller.
    pub(super) fn way_back_of(&self, by: By) -> SwitchBack {
        match by {
            By::Task(me) => self.way_back(me),
            _ => SwitchBack::NONE,
        }
    }

    /// [`Engine::call`](crate::engine::Engine::call) of an executive that is not observed, compiled into its caller.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn call_inline(&self, by: By, call: Call, back: SwitchBack) -> Reply {
        // Asked before the call is consumed, so that it need not be kept in memory.
        let asks_for_buffer = gives_memory(&call);
        let deadline = call.deadline();
        let reply = self.core.borrow().apply(by, call);
        self.heed(deadline);
        match by {
            By::Task(me) if !(asks_for_buffer && reply.status == CallStatus::Ok) => self.settle(me, reply, back),
            _ => reply,
        }
    }

    /// [`Engine::send`](crate::engine::Engine::send) of an executive that is not observed, compiled into its caller.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn send_inline(&self, by: By, call: Call, message: Bytes<'_>, back: SwitchBack) -> Reply {
        let deadline = call.deadline();
        let reply = self.core.borrow().apply(by, call);
        self.heed(deadline);
        if matches!(reply.status, CallStatus::Ok | CallStatus::Blocked) {
            self.slots.write(reply.value, message);
        }
        match by {
            By::Task(me) => self.settle(me, reply, back),
            _ => reply,
        }
    }

    /// [`Engine::take`](crate::engine::Engine::take), compiled into its caller. Taking readies at most the sender of
    /// the message before.
    ///
    /// # Safety
    /// As there.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) unsafe fn take_inline(&self, me: TaskId, envelope: u32, to: *mut u8, bytes: usize, observed: bool) {
        // SAFETY: the caller's promise; the core handed the envelope to `me`, which has not taken it yet.
        unsafe { self.slots.read(envelope, to, bytes) };
        if observed {
            self.call_observed(By::Task(me), Call::Take, None);
            return;
        }
        // Usually it readies no task and nothing is due, so there is nothing to settle.
        let simple = self.core.borrow().take_simply(me);
        let reply = if simple { CallStatus::Ok.into() } else { self.core.borrow().apply(By::Task(me), Call::Take) };
        if reply.value != 0 || self.needs_attention() {
            self.settle_cold(me, reply);
        }
    }

    /// [`Engine::started_with`](crate::engine::Engine::started_with), compiled into its caller.
    #[inline(always)]
    pub(crate) fn started_with_inline(&self, me: TaskId) -> u32 {
        self.core.borrow().outcome(me).value
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn preempt_point_inline(&self, me: TaskId, back: SwitchBack) {
        self.settle(me, CallStatus::Ok.into(), back);
    }

    /// Whether anything may be due. Costs one load, and a read of the counter while a deadline is set.
    #[inline(always)]
    pub(super) fn needs_attention(&self) -> bool {
        let bits = self.attention.bits();
        bits != 0 && (bits != TIMED || self.deadline_check.is_due(&self.machine))
    }

    /// A deadline was set.
    #[inline(always)]
    fn heed(&self, deadline: Option<Moment>) {
        if let Some(deadline) = deadline
            && self.deadline_check.heed(deadline)
        {
            self.attention.set(TIMED);
        }
    }

    /// After a call of a task: serves everything that is due and lets the right task run.
    #[inline(always)]
    pub(super) fn settle(&self, me: TaskId, reply: Reply, back: SwitchBack) -> Reply {
        if self.needs_attention() {
            self.attend(Some(me));
            if self.core.borrow().is_first(me) {
                // The look may have ended the wait that the call just began, or the run and with it the task.
                return self.resumed_reply(me, reply);
            }
        } else if self.core.borrow().is_first(me) {
            return reply;
        }
        if std::thread::panicking() {
            self.note_panic(me);
        }
        self.give_way(me, reply.status == CallStatus::Blocked, back);
        self.resumed_reply(me, reply)
    }

    /// [`settle`](Self::settle) after a call that came out as it should and did not block the caller.
    #[inline(always)]
    pub(super) fn settle_done(&self, me: TaskId, back: SwitchBack) {
        if self.needs_attention() {
            return self.settle_done_cold(me);
        }
        if !self.core.borrow().is_first(me) {
            if self.is_switch_remarkable() {
                return self.settle_done_cold(me);
            }
            match self.above() {
                Some(next) => self.resume(next),
                None => self.suspend(back),
            }
            if !self.core.borrow().is_first(me) {
                let waits = !self.core.borrow().may_run(me);
                self.switch_away_cold(me, waits, back);
            }
        }
        if self.core.borrow().is_killed(me) {
            self.killed(me, CallStatus::Ok.into());
        }
    }

    /// The same after a call that readied no task, while no task was killed.
    #[inline(always)]
    pub(super) fn settle_still(&self, me: TaskId) {
        if self.needs_attention() {
            self.settle_done_cold(me);
        }
    }

    /// [`settle`](Self::settle) after a call that blocked the caller.
    #[inline(always)]
    pub(super) fn settle_blocked(&self, me: TaskId, back: SwitchBack) -> Reply {
        if self.needs_attention() || self.is_switch_remarkable() {
            return self.settle_cold(me, CallStatus::Blocked.into());
        }
        self.suspend(back);
        if !self.core.borrow().is_first(me) {
            let waits = !self.core.borrow().may_run(me);
            self.switch_away_cold(me, waits, back);
        }
        if self.core.borrow().is_killed(me) {
            self.killed(me, CallStatus::Blocked.into())
        } else {
            self.core.borrow().outcome(me)
        }
    }

    /// Whether a switch has to do more than switch.
    #[inline(always)]
    fn is_switch_remarkable(&self) -> bool {
        self.keepers.get() != 0 || std::thread::panicking()
    }

    /// The outcome of a call when its task runs again.
    #[inline(always)]
    fn resumed_reply(&self, me: TaskId, reply: Reply) -> Reply {
        // The status cannot replace this check: `Killed` may be about another task.
        if self.core.borrow().is_killed(me) { self.killed(me, reply) } else { self.core.borrow().resumed(me, reply) }
    }

    #[cold]
    #[inline(never)]
    fn settle_cold(&self, me: TaskId, reply: Reply) -> Reply {
        self.settle(me, reply, self.way_back(me))
    }

    #[cold]
    #[inline(never)]
    fn settle_done_cold(&self, me: TaskId) {
        self.settle(me, CallStatus::Ok.into(), self.way_back(me));
    }

    #[cold]
    #[inline(never)]
    pub(super) fn switch_away_cold(&self, me: TaskId, waits: bool, back: SwitchBack) {
        self.switch_away(me, waits, back);
    }

    /// Gives the CPU back to the resumer of the running task.
    #[inline(always)]
    pub(super) fn suspend(&self, back: SwitchBack) {
        // SAFETY: this code runs on the fiber's own stack, and `back` is its own way back (see `SwitchBack`), so the
        // yielder is live.
        unsafe { &*back.0 }.suspend(());
    }

    /// Gives the CPU away until this task is first again. `waits` means that the task is not ready.
    ///
    /// Inlined into its caller, like all code from here to the switch. A processor predicts the target of a `ret` from
    /// the calls before, and a switch inside a call makes every return up to the next switch mispredict. Without a call
    /// between a task's body and the switch there is nothing to predict. (Measured: mispredictions cost ten times the
    /// switch.)
    #[inline(always)]
    pub(super) fn give_way(&self, me: TaskId, waits: bool, back: SwitchBack) {
        if self.keepers.get() == 0 {
            self.switch_away(me, waits, back);
        } else {
            self.give_way_with_keepers(me, waits, back);
        }
    }

    /// The switch itself, and the switch back.
    #[inline(always)]
    pub(super) fn switch_away(&self, me: TaskId, mut waits: bool, back: SwitchBack) {
        loop {
            match if waits { None } else { self.above() } {
                Some(next) => self.resume(next),
                None => self.suspend(back),
            }
            if self.core.borrow().is_first(me) {
                break;
            }
            waits = !self.core.borrow().may_run(me);
        }
    }

    /// The fiber that must run, if it is not on the chain of resumes.
    #[inline(always)]
    pub(super) fn above(&self) -> Option<&Fiber<M>> {
        let index = self.core.borrow().first_index()?;
        let next: *const Fiber<M> = &raw const *self.fibers.borrow()[index];
        // SAFETY: as in `fiber`.
        let next = unsafe { &*next };
        (!next.on_chain.get()).then_some(next)
    }

    /// Runs a task on top of the present one until it gives the CPU back.
    #[inline(always)]
    pub(super) fn resume(&self, fiber: &Fiber<M>) {
        let coroutine: *mut Option<Stackful> = fiber.coroutine.as_ptr();
        // SAFETY: the fiber is not on the chain, so no code is inside this coroutine or holds a reference to it.
        let coroutine = unsafe { &mut *coroutine };
        let Some(stackful) = coroutine else { return self.equip(fiber, coroutine) };
        fiber.on_chain.set(true);
        let finished = stackful.resume(()).as_return().is_some();
        fiber.on_chain.set(false);
        if finished {
            // The fiber finished instead of giving the CPU away.
            self.retire(coroutine);
        }
    }

    /// Applies a call without switching, and records it if there is a trace.
    pub(super) fn apply(&self, by: By, call: Call) -> Reply {
        let reply = self.core.borrow().apply(by, call);
        self.heed(call.deadline());
        self.record(by, call, reply);
        reply
    }

    fn record(&self, by: By, call: Call, reply: Reply) {
        if self.observed
            && let Some(log) = &mut *self.log.borrow()
        {
            log.record(self.machine.monotonic(), by, call, reply);
        }
    }

    /// A recorded and measured call.
    #[cold]
    #[inline(never)]
    pub(super) fn call_observed(&self, by: By, call: Call, message: Option<Bytes<'_>>) -> Reply {
        let before = self.config.measure_latency.then(|| self.machine.moment());
        let reply = self.apply(by, call);
        if let Some(message) = message
            && matches!(reply.status, CallStatus::Ok | CallStatus::Blocked)
        {
            self.slots.write(reply.value, message);
        }
        if let Some(before) = before {
            let after = self.machine.moment();
            self.longest_call.set(self.longest_call.get().max(between(before, after)));
        }
        match by {
            By::Task(me) if !holds_buffer(call, reply) => {
                let reply = self.settle(me, reply, self.way_back(me));
                self.leave(me);
                reply
            }
            _ => reply,
        }
    }

    /// The task's own code continues. Nothing is looked at until its next call.
    #[inline(always)]
    pub(crate) fn leave(&self, me: TaskId) {
        if self.observed {
            self.note_leaving(me);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_leaving(&self, me: TaskId) {
        self.account(Some(me));
        if self.config.measure_latency {
            self.left_at.set(self.machine.moment());
        }
    }
}
