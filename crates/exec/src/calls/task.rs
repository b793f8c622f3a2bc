//! [`TaskCtx`]: what a task may call. The calls that cannot wait are in [`Services`].
//!
//! A context belongs to the code it was given to and cannot leave it. A call that may wait exists on `TaskCtx` alone,
//! so an interrupt procedure that would wait does not compile.

use crate::system::clock::{instant_of, moment_of};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use hairspring_exec_core::{
    Bits, By, Call, Ending, EventsId, Moment, NO_ENVELOPE, Priority, Reply, ResourceId, SemaphoreId, TaskId, Until,
    Urgency,
};
use hairspring_machine::{Instant, Nanos};

use super::services::{CallSite, Caller, Services, at_home};
use super::ticker::Ticker;
use crate::back_end::BackEnd;
use crate::errors::{
    AcknowledgeError, BitsError, CancelError, DelayError, DeleteError, JoinError, KillError, PeriodError,
    PriorityError, ReceiveError, Refusal, ReleaseError, ReserveError, SendWaitError, SuspendError, WaitError, accept,
};
use crate::message::Bytes;
use crate::objects::guarded::{Calls, ExclusiveStep};
use crate::objects::{Exchange, Mailbox};
use crate::unwind::{unwind_ended, unwind_killed};

/// How long a call may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Not at all.
    NoWait,
    /// Without a limit.
    Forever,
    /// For this long from now; reads the clock. Zero or less times out at once.
    For(Nanos),
    /// Until this instant. An instant in the past times out at once.
    Until(Instant),
}

/// The calls of a task. Given to its body; all calls act on, or for, that task.
pub struct TaskCtx<'k> {
    back_end: BackEnd<'k>,
    me: TaskId,
    /// Makes the context neither `Send` nor `Sync`: the task's thread or fiber is the only caller.
    here: PhantomData<*const ()>,
}

impl<'k> TaskCtx<'k> {
    #[inline]
    pub(crate) fn new(back_end: BackEnd<'k>, me: TaskId) -> Self {
        Self { back_end, me, here: PhantomData }
    }

    /// The same context, for another run of the same task.
    #[inline(always)]
    pub(crate) fn again(&self) -> Self {
        Self::new(self.back_end, self.me)
    }

    #[inline(always)]
    pub(super) fn back_end(&self) -> BackEnd<'k> {
        self.back_end
    }

    #[inline(always)]
    fn call<E: Refusal>(&self, call: Call) -> Result<u32, E> {
        accept(self.back_end.call(By::Task(self.me), call))
    }

    #[inline(always)]
    pub(crate) fn until(&self, limit: Limit) -> Until {
        match limit {
            Limit::NoWait => Until::NoWait,
            Limit::Forever => Until::Forever,
            Limit::For(span) if span <= Nanos::ZERO => Until::NoWait,
            Limit::For(span) => Until::At(self.after(span)),
            Limit::Until(instant) => self.until_instant(instant),
        }
    }

    /// An instant in the past does not wait: the task keeps the CPU.
    fn until_instant(&self, instant: Instant) -> Until {
        let moment = moment_of(instant);
        if moment <= self.back_end.cold().now() { Until::NoWait } else { Until::At(moment) }
    }

    fn after(&self, span: Nanos) -> Moment {
        self.back_end.cold().now().after_nanos(u64::try_from(span.count()).unwrap_or(0))
    }

    /// The same limit, which does not begin anew when it is used again.
    pub(crate) fn fixed(&self, limit: Limit) -> Limit {
        match limit {
            Limit::For(span) if span > Nanos::ZERO => Limit::Until(instant_of(self.after(span))),
            other => other,
        }
    }

    /// One step: see [`Engine::step`](crate::engine::Engine::step).
    pub(crate) fn step(&self, decide: &mut dyn FnMut(&mut ExclusiveStep) -> Option<Calls>) -> Option<Reply> {
        self.back_end.cold().step(By::Task(self.me), decide)
    }

    /// Makes a call whose reply does not matter.
    pub(crate) fn tell(&self, call: Call) {
        self.back_end.call(By::Task(self.me), call);
    }

    /// This task.
    #[inline]
    pub fn id(&self) -> TaskId {
        self.me
    }

    /// Waits for a wake. A wake that came before is taken at once; one is kept.
    ///
    /// # Errors
    /// [`WaitError`] names the reasons, each with what to do.
    #[inline(always)]
    pub fn wait(&self, limit: Limit) -> Result<(), WaitError> {
        if let (Limit::Forever, BackEnd::Fiber(fibers, back)) = (limit, self.back_end)
            && let Some(reply) = fibers.wait_shortly(self.me, back)
        {
            return accept(reply).map(drop);
        }
        self.call(Call::Wait { until: self.until(limit) }).map(drop)
    }

    /// Discards a kept wake. Returns whether there was one.
    pub fn wake_reset(&self) -> bool {
        self.back_end.call(By::Task(self.me), Call::WakeReset).value == 1
    }

    /// Waits for this long, never less. Zero or a negative span returns at once.
    ///
    /// # Errors
    /// [`DelayError`] names the reasons, each with what to do.
    pub fn delay(&self, span: Nanos) -> Result<(), DelayError> {
        self.call(Call::Delay { until: self.until(Limit::For(span)) }).map(drop)
    }

    /// Waits until `deadline`; never returns before it.
    ///
    /// # Errors
    /// [`DelayError`] names the reasons, each with what to do.
    pub fn delay_until(&self, deadline: Instant) -> Result<(), DelayError> {
        self.call(Call::Delay { until: self.until_instant(deadline) }).map(drop)
    }

    /// Yields the CPU to the other ready tasks of the same priority.
    #[inline(always)]
    pub fn yield_now(&self) {
        self.back_end.call(By::Task(self.me), Call::Yield);
    }

    /// A preemption point: serves what is due and lets more urgent tasks run. Fibers need it in long computations; with
    /// threads it costs next to nothing.
    #[inline]
    pub fn preempt_point(&self) {
        match self.back_end {
            BackEnd::Fiber(fibers, back) => fibers.preempt_point_inline(self.me, back),
            other => other.cold().preempt_point(self.me),
        }
    }

    /// Keeps the floating-point control words of this run apart from those of all other code: rounding, exception
    /// masks, flush to zero. A task calls it before it changes them. On fibers each switch of this task then costs some
    /// nanoseconds more; on threads they are always kept. The next run begins with the default words and calls it
    /// again.
    pub fn keep_control_words(&self) {
        self.back_end.cold().keep_control_words(self.me);
    }

    /// For code that cannot be unwound, such as a function in C: from now on a kill unwinds no run of this task. Its
    /// calls that wait return `Killed` at once instead, and the code must return. Called at the beginning of the first
    /// run.
    pub fn refuse_when_killed(&self) {
        self.back_end.cold().refuse_when_killed(self.me);
    }

    /// Computes for this long: uses CPU time (in virtual time, lets it pass). More urgent tasks preempt it.
    pub fn work(&self, span: Nanos) {
        self.back_end.cold().work(self.me, span);
    }

    /// Breaks off the wait of another task, whatever it waits for: its call returns `Cancelled`. Returns whether it
    /// waited.
    ///
    /// # Errors
    /// [`CancelError`] names the reasons, each with what to do.
    pub fn cancel_wait(&self, task: TaskId) -> Result<bool, CancelError> {
        self.call(Call::Cancel { task }).map(|waited| waited == 1)
    }

    /// Waits until the present run of another task is over, however it ends. Returns at once if the task is idle.
    ///
    /// # Errors
    /// [`JoinError`] names the reasons, each with what to do.
    pub fn wait_for_end(&self, task: TaskId, limit: Limit) -> Result<Ending, JoinError> {
        let how = self.call(Call::Join { task, until: self.until(limit) })?;
        Ok([Ending::Returned, Ending::Killed, Ending::Panicked][how as usize])
    }

    /// A ticker whose first tick is one period from now.
    ///
    /// # Errors
    /// [`PeriodError::BadInterval`] if the period is zero or negative.
    pub fn ticker(&self, period: Nanos) -> Result<Ticker, PeriodError> {
        if period <= Nanos::ZERO {
            return Err(PeriodError::BadInterval);
        }
        Ok(Ticker::new(self.now() + period, period))
    }

    /// Takes all messages out of this task's own mailbox and drops them. Acknowledges each. Returns how many there
    /// were.
    ///
    /// # Errors
    /// As [`receive`](Self::receive), but for a time-out.
    pub fn clear_mailbox<M: Copy>(&self, mailbox: Mailbox<M>) -> Result<usize, ReceiveError> {
        let mut count = 0;
        loop {
            match self.receive(mailbox, None, Limit::NoWait) {
                Ok(_) => count += 1,
                Err(ReceiveError::TimedOut) => return Ok(count),
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends this run of the task here by unwinding its stack. Must not be called by a destructor while the task
    /// unwinds: that aborts the process.
    pub fn end(&self) -> ! {
        self.back_end.cold().begin_unwinding(self.me);
        unwind_ended()
    }

    /// Ends the run of the whole executive, and with it of this task.
    pub fn stop(&self) {
        self.back_end.cold().stop(By::Task(self.me));
    }

    /// Suspends a task, or this one, until it is resumed. In the thread back-end another task continues until its next
    /// call.
    ///
    /// # Errors
    /// [`SuspendError`] names the reasons, each with what to do.
    pub fn suspend(&self, task: TaskId) -> Result<(), SuspendError> {
        self.call(Call::Suspend { task }).map(drop)
    }

    /// Sets a task's base priority. The task goes to the end of the list of its new priority. Setting the same priority
    /// again changes nothing.
    ///
    /// # Errors
    /// [`PriorityError`] names the reasons, each with what to do.
    pub fn set_priority(&self, task: TaskId, priority: Priority) -> Result<(), PriorityError> {
        self.call(Call::SetPriority { task, priority }).map(drop)
    }

    /// Kills a task: its stack unwinds when it runs next; its pending starts and mail are discarded. It can be started
    /// again. In the thread back-end a task that is computing continues until its next call.
    ///
    /// # Errors
    /// [`KillError`] names the reasons, each with what to do. A task that kills itself does not return: it unwinds.
    pub fn kill(&self, task: TaskId) -> Result<(), KillError> {
        match self.call(Call::Kill { task }) {
            Err(KillError::Killed) if task == self.me && self.back_end.cold().begin_unwinding(task) => unwind_killed(),
            other => other.map(drop),
        }
    }

    /// Removes a task that is idle or dead, with all that it captured; its id is refused from then on.
    ///
    /// # Errors
    /// [`DeleteError`] names the reasons, each with what to do.
    pub fn delete_task(&self, task: TaskId) -> Result<(), DeleteError> {
        accept(self.back_end.cold().delete_task(By::Task(self.me), task)).map(drop)
    }

    /// Waits for any or all of these signals of this task, and clears them. Returns the bits.
    ///
    /// # Errors
    /// [`BitsError`] names the reasons, each with what to do.
    pub fn wait_signals(&self, bits: Bits, limit: Limit) -> Result<u32, BitsError> {
        self.call(Call::WaitSignals { bits, until: self.until(limit) })
    }

    /// Sends a message and waits until the receiver has acknowledged it. Returns the value of the acknowledgement.
    /// After a time-out the message stays in the mailbox.
    ///
    /// # Errors
    /// [`SendWaitError`] names the reasons, each with what to do.
    pub fn send_wait<M: Copy>(
        &self,
        mailbox: Mailbox<M>,
        urgency: Urgency,
        message: M,
        limit: Limit,
    ) -> Result<u32, SendWaitError> {
        at_home(self.back_end, mailbox.home)?;
        let call = Call::SendWait { task: mailbox.task, urgency, until: self.until(limit) };
        accept(self.back_end.send(By::Task(self.me), call, Bytes::of(&message)))
    }

    /// Waits for mail of one urgency, or any, in this task's own mailbox. Acknowledges the message received before.
    ///
    /// # Errors
    /// [`ReceiveError`] names the reasons, each with what to do.
    #[inline(always)]
    pub fn receive<M: Copy>(
        &self,
        mailbox: Mailbox<M>,
        urgency: Option<Urgency>,
        limit: Limit,
    ) -> Result<M, ReceiveError> {
        at_home(self.back_end, mailbox.home)?;
        if mailbox.task != self.me {
            return Err(ReceiveError::NoMailbox);
        }
        if let Some(message) = self.letter(urgency) {
            return Ok(message);
        }
        let envelope = self.call(Call::Receive { urgency, until: self.until(limit) })?;
        Ok(self.open(envelope))
    }

    /// The message of a letter that lies in this task's mailbox already, where that is simple. The mailbox is of type
    /// M.
    #[inline(always)]
    #[expect(unsafe_code, reason = "messages of any Copy type are moved as bytes")]
    fn letter<M: Copy>(&self, urgency: Option<Urgency>) -> Option<M> {
        let BackEnd::Fiber(fibers, _) = self.back_end else { return None };
        // SAFETY: the mailbox is of type M, so a whole M was written to the envelope before it was handed over.
        unsafe { fibers.receive_shortly(self.me, urgency) }
    }

    /// Acknowledges the message received last with a value, if its sender waits.
    ///
    /// # Errors
    /// [`AcknowledgeError`] names the reasons, each with what to do.
    pub fn acknowledge(&self, value: u32) -> Result<(), AcknowledgeError> {
        self.call(Call::Acknowledge { value }).map(drop)
    }

    /// Waits for a message of an exchange.
    ///
    /// # Errors
    /// [`WaitError`] names the reasons, each with what to do.
    pub fn fetch<M: Copy>(&self, exchange: Exchange<M>, limit: Limit) -> Result<M, WaitError> {
        self.fetch_in_line(exchange, None, limit)
    }

    /// The same, but waits at a priority given for this wait (as in AMX).
    ///
    /// # Errors
    /// [`WaitError`] names the reasons, each with what to do.
    pub fn fetch_at<M: Copy>(&self, exchange: Exchange<M>, at: Priority, limit: Limit) -> Result<M, WaitError> {
        self.fetch_in_line(exchange, Some(at), limit)
    }

    fn fetch_in_line<M: Copy>(
        &self,
        exchange: Exchange<M>,
        at: Option<Priority>,
        limit: Limit,
    ) -> Result<M, WaitError> {
        let until = self.until(limit);
        at_home(self.back_end, exchange.home)?;
        let envelope = self.call(Call::Fetch { exchange: exchange.exchange, until, at })?;
        Ok(self.open(envelope))
    }

    /// The message that this run was started with, if it was started by one. Once, at the beginning of a run.
    #[inline(always)]
    pub(crate) fn started_with<M: Copy>(&self) -> Option<M> {
        let envelope = match self.back_end {
            BackEnd::Fiber(fibers, _) => fibers.started_with_inline(self.me),
            other => other.cold().started_with(self.me),
        };
        // Not by a closure, which would be a call (see `Fibers::give_way`).
        if envelope == NO_ENVELOPE { None } else { Some(self.open(envelope)) }
    }

    /// The message in an envelope that this task was handed.
    #[inline(always)]
    #[expect(unsafe_code, reason = "messages of any Copy type are moved as bytes")]
    pub(crate) fn open<M: Copy>(&self, envelope: u32) -> M {
        // SAFETY: the mailbox or exchange is of type M, so a whole M was written to the envelope before it was handed
        // over.
        unsafe {
            match self.back_end {
                BackEnd::Fiber(fibers, _) => fibers.open_inline(self.me, envelope),
                other => {
                    let mut message = MaybeUninit::<M>::uninit();
                    other.cold().take(self.me, envelope, message.as_mut_ptr().cast(), size_of::<M>());
                    message.assume_init()
                }
            }
        }
    }

    /// Takes one unit of a semaphore. Waits in the order of this task's priority.
    ///
    /// # Errors
    /// [`WaitError`] names the reasons, each with what to do.
    #[inline(always)]
    pub fn wait_semaphore(&self, semaphore: SemaphoreId, limit: Limit) -> Result<(), WaitError> {
        if let BackEnd::Fiber(fibers, _) = self.back_end
            && fibers.take_unit_shortly(self.me, semaphore)
        {
            return Ok(());
        }
        self.call(Call::WaitSemaphore { semaphore, until: self.until(limit), at: None }).map(drop)
    }

    /// The same, but waits at a priority given for this wait (as in AMX).
    ///
    /// # Errors
    /// [`WaitError`] names the reasons, each with what to do.
    pub fn wait_semaphore_at(&self, semaphore: SemaphoreId, at: Priority, limit: Limit) -> Result<(), WaitError> {
        self.call(Call::WaitSemaphore { semaphore, until: self.until(limit), at: Some(at) }).map(drop)
    }

    /// Reserves a resource. Dropping the guard releases it. Reservations nest.
    ///
    /// # Errors
    /// [`ReserveError`] names the reasons, each with what to do.
    pub fn reserve(&self, resource: ResourceId, limit: Limit) -> Result<Reserved<'_, 'k>, ReserveError> {
        self.reserve_in_line(resource, None, limit)?;
        Ok(Reserved { ctx: self, resource })
    }

    /// The same, but waits at a priority given for this wait (as in AMX). Under
    /// [`ResourceProtocol::Inherit`](crate::ResourceProtocol) the owner inherits this task's own priority, not the
    /// given one.
    ///
    /// # Errors
    /// [`ReserveError`] names the reasons, each with what to do.
    pub fn reserve_at(
        &self,
        resource: ResourceId,
        at: Priority,
        limit: Limit,
    ) -> Result<Reserved<'_, 'k>, ReserveError> {
        self.reserve_in_line(resource, Some(at), limit)?;
        Ok(Reserved { ctx: self, resource })
    }

    /// Reserves without a guard, as C programs do; each needs its [`release`](Self::release).
    ///
    /// # Errors
    /// [`ReserveError`] names the reasons, each with what to do.
    pub fn reserve_unguarded(&self, resource: ResourceId, limit: Limit) -> Result<(), ReserveError> {
        self.reserve_in_line(resource, None, limit)
    }

    /// The same, but waits at a priority given for this wait.
    ///
    /// # Errors
    /// [`ReserveError`] names the reasons, each with what to do.
    pub fn reserve_unguarded_at(&self, resource: ResourceId, at: Priority, limit: Limit) -> Result<(), ReserveError> {
        self.reserve_in_line(resource, Some(at), limit)
    }

    #[inline(always)]
    fn reserve_in_line(&self, resource: ResourceId, at: Option<Priority>, limit: Limit) -> Result<(), ReserveError> {
        self.call(Call::Reserve { resource, until: self.until(limit), at }).map(drop)
    }

    /// Releases a resource once.
    ///
    /// # Errors
    /// [`ReleaseError`] names the reasons, each with what to do.
    pub fn release(&self, resource: ResourceId) -> Result<(), ReleaseError> {
        self.call(Call::Release { resource }).map(drop)
    }

    /// Waits for bits of an event group. Returns the bits that satisfied the wait; `take` clears them.
    ///
    /// # Errors
    /// [`BitsError`] names the reasons, each with what to do.
    pub fn wait_events(&self, events: EventsId, bits: Bits, take: bool, limit: Limit) -> Result<u32, BitsError> {
        self.call(Call::WaitEvents { events, bits, take, until: self.until(limit), at: None })
    }

    /// The same, but waits at a priority given for this wait (as in AMX).
    ///
    /// # Errors
    /// [`BitsError`] names the reasons, each with what to do.
    pub fn wait_events_at(
        &self,
        events: EventsId,
        bits: Bits,
        take: bool,
        at: Priority,
        limit: Limit,
    ) -> Result<u32, BitsError> {
        self.call(Call::WaitEvents { events, bits, take, until: self.until(limit), at: Some(at) })
    }
}

/// A reserved resource. Released when dropped.
pub struct Reserved<'c, 'k> {
    ctx: &'c TaskCtx<'k>,
    resource: ResourceId,
}

impl Drop for Reserved<'_, '_> {
    fn drop(&mut self) {
        // The guard owns what it releases; a task being killed may have lost it already.
        let _ = self.ctx.release(self.resource);
    }
}

impl CallSite for TaskCtx<'_> {
    #[inline(always)]
    fn caller(&self) -> Caller<'_> {
        Caller { back_end: self.back_end, by: By::Task(self.me) }
    }
}
