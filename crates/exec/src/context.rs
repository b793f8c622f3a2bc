//! What code in the executive may call: [`TaskCtx`] in tasks, [`TimerCtx`] in timer procedures, [`IspCtx`] in interrupt
//! service procedures, and [`Services`], the calls they share because none of them can wait.
//!
//! A context belongs to the code it was given to and cannot leave it. A call that may wait exists on `TaskCtx` alone, so an
//! interrupt procedure that would wait does not compile.

mod services;

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use hairspring_exec_core::{
    Bits, By, Call, EventsId, Moment, NO_ENVELOPE, Priority, Reply, ResourceId, SemaphoreId, Status, TaskId, TimerId,
    Until, Urgency,
};
use hairspring_machine::Nanos;

use crate::ending::{unwind_ended, unwind_killed};
use crate::engine::Kernel;
use crate::handle::{Exchange, Mailbox};
use crate::message::Bytes;

pub use services::{Caller, Services, Standing, Woken};

/// How long a call may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Not at all.
    NoWait,
    /// As long as it takes.
    Forever,
    /// For this long from now; reads the clock. Zero or less is over at once.
    For(Nanos),
    /// Until this moment; one that has passed is over at once.
    Until(Moment),
}

/// What a task may call. Given to its body; all calls act on, or for, that task.
pub struct TaskCtx<'k> {
    kernel: Kernel<'k>,
    me: TaskId,
    /// Neither sent nor shared: the task's thread or fiber is the only caller.
    here: PhantomData<*const ()>,
}

impl<'k> TaskCtx<'k> {
    #[inline]
    pub(crate) fn new(kernel: Kernel<'k>, me: TaskId) -> Self {
        Self { kernel, me, here: PhantomData }
    }

    /// The same context, for another run of the same task.
    #[inline(always)]
    pub(crate) fn again(&self) -> Self {
        Self::new(self.kernel, self.me)
    }

    #[inline(always)]
    fn call(&self, call: Call) -> Result<u32, Status> {
        let reply = self.kernel.call(By::Task(self.me), call);
        if reply.status == Status::Ok { Ok(reply.value) } else { Err(reply.status) }
    }

    #[inline(always)]
    fn until(&self, limit: Limit) -> Until {
        match limit {
            Limit::NoWait => Until::NoWait,
            Limit::Forever => Until::Forever,
            Limit::For(span) if span <= Nanos::ZERO => Until::NoWait,
            Limit::For(span) => Until::At(self.after(span)),
            Limit::Until(moment) => self.until_moment(moment),
        }
    }

    /// A moment that has passed is over at once: the task does not lose the CPU to find that out.
    fn until_moment(&self, moment: Moment) -> Until {
        if moment <= self.kernel.cold().now() { Until::NoWait } else { Until::At(moment) }
    }

    fn after(&self, span: Nanos) -> Moment {
        self.kernel.cold().now().after_nanos(u64::try_from(span.count()).unwrap_or(0))
    }

    /// This task.
    #[inline]
    pub fn id(&self) -> TaskId {
        self.me
    }

    /// Waits for a wake, or takes one that came before; one deep.
    ///
    /// # Errors
    /// [`Status::TimedOut`].
    #[inline(always)]
    pub fn wait(&self, limit: Limit) -> Result<(), Status> {
        self.call(Call::Wait { until: self.until(limit) }).map(drop)
    }

    /// Forgets a wake that came and was not waited for; whether there was one.
    pub fn wake_reset(&self) -> bool {
        self.call(Call::WakeReset) == Ok(1)
    }

    /// Waits this long; not less. Zero or a negative span returns at once.
    ///
    /// # Errors
    /// None but [`Status::Killed`], while the task unwinds.
    pub fn delay(&self, span: Nanos) -> Result<(), Status> {
        self.call(Call::Delay { until: self.until(Limit::For(span)) }).map(drop)
    }

    /// Waits until this moment; not less.
    ///
    /// # Errors
    /// As [`delay`](Self::delay).
    pub fn delay_until(&self, moment: Moment) -> Result<(), Status> {
        self.call(Call::Delay { until: self.until_moment(moment) }).map(drop)
    }

    /// Lets others of the same priority run first.
    #[inline(always)]
    pub fn yield_now(&self) {
        let _ = self.call(Call::Yield);
    }

    /// Lets whoever is more urgent run now. Fibers need it in long computations; for threads it costs next to nothing.
    #[inline]
    pub fn preempt_point(&self) {
        match self.kernel {
            Kernel::Fiber(fibers) => fibers.preempt_point_inline(self.me),
            other => other.cold().preempt_point(self.me),
        }
    }

    /// Computes for this long: burns CPU time (in virtual time, lets it pass) and can be preempted meanwhile.
    pub fn work(&self, span: Nanos) {
        self.kernel.cold().work(self.me, span);
    }

    /// Ends this run of the task here: everything on its stack is dropped. Not for destructors: one that runs because the
    /// task unwinds already would end the process.
    pub fn end(&self) -> ! {
        self.kernel.cold().begin_unwinding(self.me);
        unwind_ended()
    }

    /// Ends the run of the whole executive, and with it of this task.
    pub fn stop(&self) {
        self.kernel.cold().stop(By::Task(self.me));
    }

    /// Takes the right to run from a task (or this one) until it is resumed. In the thread back-end another task goes on
    /// until its next call.
    ///
    /// # Errors
    /// [`Status::AlreadySuspended`], [`Status::NotStarted`], [`Status::Dead`], [`Status::NoSuchObject`].
    pub fn suspend(&self, task: TaskId) -> Result<(), Status> {
        self.call(Call::Suspend { task }).map(drop)
    }

    /// Gives it back.
    ///
    /// # Errors
    /// [`Status::NotSuspended`], [`Status::NotStarted`], [`Status::Dead`], [`Status::NoSuchObject`].
    pub fn resume(&self, task: TaskId) -> Result<(), Status> {
        self.call(Call::Resume { task }).map(drop)
    }

    /// Sets a task's own priority; it goes to the end of its new list. One that it has already changes nothing.
    ///
    /// # Errors
    /// [`Status::AboveCeiling`] while it owns a resource with a lower ceiling; [`Status::NoSuchObject`].
    pub fn set_priority(&self, task: TaskId, priority: Priority) -> Result<(), Status> {
        self.call(Call::SetPriority { task, priority }).map(drop)
    }

    /// Ends a task from outside: its stack is unwound when it runs next, its pending starts and mail are discarded. It can
    /// be started again. In the thread back-end a task that is computing goes on until its next call.
    ///
    /// # Errors
    /// [`Status::Dead`], [`Status::NoSuchObject`]. A task that kills itself unwinds here.
    pub fn kill(&self, task: TaskId) -> Result<(), Status> {
        match self.call(Call::Kill { task }) {
            Err(Status::Killed) if task == self.me && self.kernel.cold().begin_unwinding(task) => unwind_killed(),
            other => other.map(drop),
        }
    }

    /// Removes a task that is idle or dead, with all that it captured; its id is refused from then on.
    ///
    /// # Errors
    /// [`Status::Running`], [`Status::NoSuchObject`].
    pub fn delete_task(&self, task: TaskId) -> Result<(), Status> {
        accept(self.kernel.cold().delete_task(By::Task(self.me), task)).map(drop)
    }

    /// Waits for any or all of these signals of its own, and takes them; the bits.
    ///
    /// # Errors
    /// [`Status::TimedOut`], [`Status::NoBits`].
    pub fn wait_signals(&self, bits: Bits, limit: Limit) -> Result<u32, Status> {
        self.call(Call::WaitSignals { bits, until: self.until(limit) })
    }

    /// Sends a message and waits until the receiver has acknowledged it; the value it acknowledged with. A time-out leaves
    /// the message where it is.
    ///
    /// # Errors
    /// [`Status::MailboxFull`], [`Status::NoEnvelope`], [`Status::NoMailbox`], [`Status::Dead`], [`Status::TimedOut`],
    /// [`Status::NotAcknowledged`]; [`Status::Deadlock`] when sent to itself.
    pub fn send_wait<M: Copy>(
        &self,
        mailbox: Mailbox<M>,
        urgency: Urgency,
        message: M,
        limit: Limit,
    ) -> Result<u32, Status> {
        services::at_home(self.kernel, mailbox.home)?;
        let call = Call::SendWait { task: mailbox.task, urgency, until: self.until(limit) };
        accept(self.kernel.send(By::Task(self.me), call, Bytes::of(&message)))
    }

    /// Waits for mail of one urgency, or any, in this task's own mailbox. Acknowledges the message received before.
    ///
    /// # Errors
    /// [`Status::TimedOut`]; [`Status::NoMailbox`] if `mailbox` is another task's.
    pub fn receive<M: Copy>(&self, mailbox: Mailbox<M>, urgency: Option<Urgency>, limit: Limit) -> Result<M, Status> {
        services::at_home(self.kernel, mailbox.home)?;
        if mailbox.task != self.me {
            return Err(Status::NoMailbox);
        }
        let envelope = self.call(Call::Receive { urgency, until: self.until(limit) })?;
        Ok(self.open(envelope))
    }

    /// Acknowledges the message received last with a value, if its sender waits.
    ///
    /// # Errors
    /// [`Status::Empty`] if nobody waits for it.
    pub fn acknowledge(&self, value: u32) -> Result<(), Status> {
        self.call(Call::Acknowledge { value }).map(drop)
    }

    /// Waits for a message of an exchange.
    ///
    /// # Errors
    /// [`Status::TimedOut`].
    pub fn fetch<M: Copy>(&self, exchange: Exchange<M>, limit: Limit) -> Result<M, Status> {
        let until = self.until(limit);
        services::at_home(self.kernel, exchange.home)?;
        let envelope = self.call(Call::Fetch { exchange: exchange.exchange, until, at: None })?;
        Ok(self.open(envelope))
    }

    /// The message that this run was started with, if it was started by one. Once, at the beginning of a run.
    #[inline(always)]
    pub(crate) fn started_with<M: Copy>(&self) -> Option<M> {
        let envelope = match self.kernel {
            Kernel::Fiber(fibers) => fibers.started_with_inline(self.me),
            other => other.cold().started_with(self.me),
        };
        (envelope != NO_ENVELOPE).then(|| self.open(envelope))
    }

    /// The message in an envelope that this task was handed.
    #[inline(always)]
    #[expect(unsafe_code, reason = "messages of any Copy type are moved as bytes")]
    pub(crate) fn open<M: Copy>(&self, envelope: u32) -> M {
        let mut message = MaybeUninit::<M>::uninit();
        // SAFETY: the mailbox or exchange is of type M, so a whole M was written to the envelope before it was handed over.
        unsafe {
            match self.kernel {
                Kernel::Fiber(fibers) => {
                    fibers.take_inline(self.me, envelope, message.as_mut_ptr().cast(), size_of::<M>());
                }
                other => other.cold().take(self.me, envelope, message.as_mut_ptr().cast(), size_of::<M>()),
            }
            message.assume_init()
        }
    }

    /// Takes one unit of a semaphore, standing in line at this task's priority.
    ///
    /// # Errors
    /// [`Status::TimedOut`].
    #[inline(always)]
    pub fn wait_semaphore(&self, semaphore: SemaphoreId, limit: Limit) -> Result<(), Status> {
        self.call(Call::WaitSemaphore { semaphore, until: self.until(limit), at: None }).map(drop)
    }

    /// The same, standing in line at a priority given for this wait (as AMX has it).
    ///
    /// # Errors
    /// [`Status::TimedOut`].
    pub fn wait_semaphore_at(&self, semaphore: SemaphoreId, at: Priority, limit: Limit) -> Result<(), Status> {
        self.call(Call::WaitSemaphore { semaphore, until: self.until(limit), at: Some(at) }).map(drop)
    }

    /// Reserves a resource; dropping the guard releases it. Nests.
    ///
    /// # Errors
    /// [`Status::TimedOut`], [`Status::Deadlock`], [`Status::AboveCeiling`].
    pub fn reserve(&self, resource: ResourceId, limit: Limit) -> Result<Reserved<'_, 'k>, Status> {
        self.call(Call::Reserve { resource, until: self.until(limit), at: None })?;
        Ok(Reserved { ctx: self, resource })
    }

    /// Reserves without a guard, as C programs do; each needs its [`release`](Self::release).
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    pub fn reserve_unguarded(&self, resource: ResourceId, limit: Limit) -> Result<(), Status> {
        self.call(Call::Reserve { resource, until: self.until(limit), at: None }).map(drop)
    }

    /// Releases a resource once.
    ///
    /// # Errors
    /// [`Status::NotOwner`].
    pub fn release(&self, resource: ResourceId) -> Result<(), Status> {
        self.call(Call::Release { resource }).map(drop)
    }

    /// Waits for bits of an event group; the bits that satisfied it, which `take` clears.
    ///
    /// # Errors
    /// [`Status::TimedOut`], [`Status::NoBits`].
    pub fn wait_events(&self, events: EventsId, bits: Bits, take: bool, limit: Limit) -> Result<u32, Status> {
        self.call(Call::WaitEvents { events, bits, take, until: self.until(limit), at: None })
    }
}

/// A resource in this task's hands. Released when dropped.
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

/// What a timer procedure may call. It runs in the kernel task, above all tasks, and must be short.
pub struct TimerCtx<'k> {
    kernel: Kernel<'k>,
    timer: TimerId,
    here: PhantomData<*const ()>,
}

impl<'k> TimerCtx<'k> {
    pub(crate) fn new(kernel: Kernel<'k>, timer: TimerId) -> Self {
        Self { kernel, timer, here: PhantomData }
    }

    /// The timer that went off.
    pub fn timer(&self) -> TimerId {
        self.timer
    }

    /// Removes a timer and what its procedure captured; may be the one that runs.
    ///
    /// # Errors
    /// [`Status::NoSuchObject`].
    pub fn delete_timer(&self, timer: TimerId) -> Result<(), Status> {
        accept(self.kernel.cold().delete_timer(By::Kernel, timer)).map(drop)
    }

    /// Ends the run of the executive.
    pub fn stop(&self) {
        self.kernel.cold().stop(By::Kernel);
    }
}

/// What a conforming interrupt service procedure may call: nothing that waits.
pub struct IspCtx<'k> {
    kernel: Kernel<'k>,
    isp: u16,
    here: PhantomData<*const ()>,
}

impl<'k> IspCtx<'k> {
    #[inline]
    pub(crate) fn new(kernel: Kernel<'k>, isp: u16) -> Self {
        Self { kernel, isp, here: PhantomData }
    }

    /// Ends the run of the executive.
    pub fn stop(&self) {
        self.kernel.cold().stop(By::Interrupt(self.isp));
    }
}

impl Standing for TaskCtx<'_> {
    #[inline(always)]
    fn caller(&self) -> Caller<'_> {
        Caller { kernel: self.kernel, by: By::Task(self.me) }
    }
}

impl Standing for TimerCtx<'_> {
    fn caller(&self) -> Caller<'_> {
        Caller { kernel: self.kernel, by: By::Kernel }
    }
}

impl Standing for IspCtx<'_> {
    #[inline(always)]
    fn caller(&self) -> Caller<'_> {
        Caller { kernel: self.kernel, by: By::Interrupt(self.isp) }
    }
}

/// The value of a call that came out as asked.
#[inline]
pub(crate) fn accept(reply: Reply) -> Result<u32, Status> {
    if reply.status == Status::Ok { Ok(reply.value) } else { Err(reply.status) }
}
