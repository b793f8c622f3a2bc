//! [`Services`]: the calls that cannot wait, open to tasks, procedures and the program around them.

use std::time::SystemTime;

use crate::system::clock::{instant_of, moment_of};
use hairspring_exec_core::{By, Call, CallStatus, EventsId, ResourceId, SemaphoreId, TaskId, TimerId, Urgency};
use hairspring_machine::{Instant, Nanos};

use crate::back_end::BackEnd;
use crate::errors::{
    BufferError, InUseError, ObjectError, ParcelError, PeriodError, Refusal, ResumeError, SemaphoreError, SendError,
    SignalError, TriggerError, WakeError, accept, refusal,
};
use crate::message::Bytes;
use crate::objects::day_timer::from_nanos;
use crate::objects::{Buffer, Exchange, Mailbox, Parcel, Pool};

/// Outcome of a wake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakeOutcome {
    /// The task was waiting and runs on.
    Now,
    /// The task was not waiting. Its next wait returns at once.
    Pending,
}

/// The caller, and the executive that it calls.
#[derive(Clone, Copy)]
pub struct Caller<'k> {
    pub(crate) back_end: BackEnd<'k>,
    pub(crate) by: By,
}

/// A context through which calls are made. Sealed: only this crate can make a [`Caller`].
pub trait CallSite {
    #[doc(hidden)]
    fn caller(&self) -> Caller<'_>;
}

/// Calls that cannot wait: for tasks, timer procedures, interrupt service procedures, and the program around them.
///
/// A call that readies a more urgent task switches to it before it returns, unless the caller is itself above all
/// tasks; then the switch takes place when it is done. Real-time safe; none allocates.
pub trait Services: CallSite {
    /// The executive's time: `CLOCK_MONOTONIC`, or the simulated machine's.
    fn now(&self) -> Instant {
        instant_of(self.caller().back_end.cold().now())
    }

    /// The time of day: `CLOCK_REALTIME`, or the simulated machine's. It can be set; spans are measured with
    /// [`now`](Self::now).
    fn time_of_day(&self) -> SystemTime {
        from_nanos(self.caller().back_end.cold().time_of_day().count())
    }

    /// Starts an idle task. A task that is not idle starts again after its run, once for each trigger.
    ///
    /// # Errors
    /// [`TriggerError`] names the reasons, each with what to do.
    #[inline(always)]
    fn trigger(&self, task: TaskId) -> Result<(), TriggerError> {
        let Caller { back_end, by } = self.caller();
        if let (BackEnd::Fiber(fibers, back), By::Task(me)) = (back_end, by)
            && fibers.trigger_shortly(me, task, back)
        {
            return Ok(());
        }
        accept(back_end.call_rarely(by, Call::Trigger { task })).map(drop)
    }

    /// Wakes a task from its wait. If the task does not wait, one wake is kept for it.
    ///
    /// # Errors
    /// [`WakeError`] names the reasons, each with what to do.
    #[inline(always)]
    fn wake(&self, task: TaskId) -> Result<WakeOutcome, WakeError> {
        let Caller { back_end, by } = self.caller();
        if let (BackEnd::Fiber(fibers, back), By::Task(me)) = (back_end, by)
            && fibers.wake_shortly(me, task, back)
        {
            return Ok(WakeOutcome::Now);
        }
        match back_end.call_rarely(by, Call::Wake { task }).status {
            CallStatus::Ok => Ok(WakeOutcome::Now),
            CallStatus::WakePending => Ok(WakeOutcome::Pending),
            status => Err(refusal(status)),
        }
    }

    /// Resumes a suspended task.
    ///
    /// # Errors
    /// [`ResumeError`] names the reasons, each with what to do.
    fn resume(&self, task: TaskId) -> Result<(), ResumeError> {
        let Caller { back_end, by } = self.caller();
        accept(back_end.call(by, Call::Resume { task })).map(drop)
    }

    /// Sends a message to a task's mailbox; starts the task if it is idle.
    ///
    /// # Errors
    /// [`SendError`] names the reasons, each with what to do.
    #[inline(always)]
    fn send<M: Copy>(&self, mailbox: Mailbox<M>, urgency: Urgency, message: M) -> Result<(), SendError> {
        let Caller { back_end, by } = self.caller();
        at_home(back_end, mailbox.home)?;
        if let (BackEnd::Fiber(fibers, back), By::Task(me)) = (back_end, by)
            && fibers.send_shortly(me, mailbox.task, urgency, message, back)
        {
            return Ok(());
        }
        let call = Call::Send { task: mailbox.task, urgency };
        // A copy for this way only, so that for the short way the message may be in registers.
        let copied = message;
        accept(back_end.send_rarely(by, call, Bytes::of(&copied))).map(drop)
    }

    /// Sends a message to an exchange.
    ///
    /// # Errors
    /// [`SendError`] names the reasons, each with what to do.
    #[inline(always)]
    fn post<M: Copy>(&self, exchange: Exchange<M>, urgency: Urgency, message: M) -> Result<(), SendError> {
        let Caller { back_end, by } = self.caller();
        at_home(back_end, exchange.home)?;
        let call = Call::Post { exchange: exchange.exchange, urgency };
        accept(back_end.send(by, call, Bytes::of(&message))).map(drop)
    }

    /// Sets signal bits of a task.
    ///
    /// # Errors
    /// [`SignalError`] names the reasons, each with what to do.
    fn signal(&self, task: TaskId, bits: u32) -> Result<(), SignalError> {
        let Caller { back_end, by } = self.caller();
        accept(back_end.call(by, Call::Signal { task, bits })).map(drop)
    }

    /// Gives a semaphore one unit.
    ///
    /// # Errors
    /// [`SemaphoreError`] names the reasons, each with what to do.
    #[inline(always)]
    fn signal_semaphore(&self, semaphore: SemaphoreId) -> Result<(), SemaphoreError> {
        let Caller { back_end, by } = self.caller();
        if let (BackEnd::Fiber(fibers, _), By::Task(me)) = (back_end, by)
            && fibers.give_unit_shortly(me, semaphore)
        {
            return Ok(());
        }
        accept(back_end.call(by, Call::SignalSemaphore { semaphore })).map(drop)
    }

    /// Sets bits of an event group.
    ///
    /// # Errors
    /// [`ObjectError`] names the reasons, each with what to do.
    fn signal_events(&self, events: EventsId, bits: u32) -> Result<(), ObjectError> {
        let Caller { back_end, by } = self.caller();
        accept(back_end.call(by, Call::SignalEvents { events, bits })).map(drop)
    }

    /// Clears bits of an event group.
    ///
    /// # Errors
    /// [`ObjectError`] names the reasons, each with what to do.
    fn clear_events(&self, events: EventsId, bits: u32) -> Result<(), ObjectError> {
        let Caller { back_end, by } = self.caller();
        accept(back_end.call(by, Call::ClearEvents { events, bits })).map(drop)
    }

    /// Takes a buffer of a pool.
    ///
    /// # Errors
    /// [`BufferError`] names the reasons, each with what to do.
    fn buffer<T: Send + 'static>(&self, pool: &Pool<T>) -> Result<Buffer<'_, T>, BufferError> {
        let Caller { back_end, by } = self.caller();
        at_home(back_end, pool.home)?;
        let number = accept(back_end.call(by, Call::GetBuffer { pool: pool.pool }))?;
        Ok(pool.buffer(back_end, by, number))
    }

    /// Takes a buffer without a guard, as C programs do: its number, from zero. For pools of `()`, whose numbers stand
    /// for memory of the program. Each needs its [`give_back`](Self::give_back).
    ///
    /// # Errors
    /// [`BufferError`] names the reasons, each with what to do.
    #[inline(always)]
    fn buffer_unguarded(&self, pool: &Pool<()>) -> Result<u16, BufferError> {
        let Caller { back_end, by } = self.caller();
        at_home(back_end, pool.home)?;
        accept(back_end.call(by, Call::GetBuffer { pool: pool.pool })).map(|number| number as u16)
    }

    /// Gives back a buffer that was taken without a guard.
    ///
    /// # Errors
    /// [`ParcelError`] names the reasons, each with what to do.
    #[inline(always)]
    fn give_back(&self, pool: &Pool<()>, number: u16) -> Result<(), ParcelError> {
        let Caller { back_end, by } = self.caller();
        at_home(back_end, pool.home)?;
        accept(back_end.call(by, Call::FreeBuffer { pool: pool.pool, buffer: number })).map(drop)
    }

    /// Opens a buffer that came in a message.
    ///
    /// # Errors
    /// [`ParcelError`] names the reasons, each with what to do.
    fn open_parcel<T: Send + 'static>(&self, pool: &Pool<T>, parcel: Parcel) -> Result<Buffer<'_, T>, ParcelError> {
        let Caller { back_end, by } = self.caller();
        at_home(back_end, pool.home)?;
        if !pool.unpack(parcel) {
            return Err(ParcelError::NotInUse);
        }
        Ok(pool.buffer(back_end, by, u32::from(parcel.number)))
    }

    /// Starts a timer that expires once, at `at`.
    ///
    /// # Errors
    /// [`ObjectError`] names the reasons, each with what to do.
    fn start_timer(&self, timer: TimerId, at: Instant) -> Result<(), ObjectError> {
        let Caller { back_end, by } = self.caller();
        accept(back_end.call(by, Call::StartTimer { timer, at: moment_of(at), period_ns: 0 })).map(drop)
    }

    /// Starts a timer that expires at `first` and then once per `period`, without drift.
    ///
    /// # Errors
    /// [`PeriodError`] names the reasons, each with what to do.
    fn start_periodic(&self, timer: TimerId, first: Instant, period: Nanos) -> Result<(), PeriodError> {
        let Caller { back_end, by } = self.caller();
        let Some(period_ns) = u64::try_from(period.count()).ok().filter(|&ns| ns > 0) else {
            return Err(PeriodError::BadInterval);
        };
        accept(back_end.call(by, Call::StartTimer { timer, at: moment_of(first), period_ns })).map(drop)
    }

    /// Stops a timer. Returns whether it was running.
    ///
    /// # Errors
    /// [`ObjectError`] names the reasons, each with what to do.
    fn stop_timer(&self, timer: TimerId) -> Result<bool, ObjectError> {
        let Caller { back_end, by } = self.caller();
        accept(back_end.call(by, Call::StopTimer { timer })).map(|ran| ran == 1)
    }

    /// Deletes a timer and drops its procedure; its id is refused from then on. A procedure may delete its own timer,
    /// which is dropped when it returns.
    ///
    /// # Errors
    /// [`ObjectError`] names the reasons, each with what to do.
    fn delete_timer(&self, timer: TimerId) -> Result<(), ObjectError> {
        let Caller { back_end, by } = self.caller();
        accept(back_end.cold().delete_timer(by, timer)).map(drop)
    }

    /// Deletes a semaphore; its id is refused from then on. Tasks that wait for it get
    /// [`NoSuchObject`](crate::errors::WaitError::NoSuchObject).
    ///
    /// # Errors
    /// [`ObjectError`] names the reasons, each with what to do.
    fn delete_semaphore(&self, semaphore: SemaphoreId) -> Result<(), ObjectError> {
        let Caller { back_end, by } = self.caller();
        accept(back_end.cold().call(by, Call::DeleteSemaphore { semaphore })).map(drop)
    }

    /// Deletes an event group, as [`delete_semaphore`](Self::delete_semaphore) does.
    ///
    /// # Errors
    /// [`ObjectError`] names the reasons, each with what to do.
    fn delete_events(&self, events: EventsId) -> Result<(), ObjectError> {
        let Caller { back_end, by } = self.caller();
        accept(back_end.cold().call(by, Call::DeleteEvents { events })).map(drop)
    }

    /// Deletes an exchange, as [`delete_semaphore`](Self::delete_semaphore) does. Its messages are discarded.
    ///
    /// # Errors
    /// [`ObjectError`] names the reasons, each with what to do.
    fn delete_exchange<M: Copy>(&self, exchange: Exchange<M>) -> Result<(), ObjectError> {
        let Caller { back_end, by } = self.caller();
        at_home(back_end, exchange.home)?;
        accept(back_end.cold().call(by, Call::DeleteExchange { exchange: exchange.exchange })).map(drop)
    }

    /// Deletes a resource that no task owns; its id is refused from then on.
    ///
    /// # Errors
    /// [`InUseError`] names the reasons, each with what to do.
    fn delete_resource(&self, resource: ResourceId) -> Result<(), InUseError> {
        let Caller { back_end, by } = self.caller();
        accept(back_end.cold().call(by, Call::DeleteResource { resource })).map(drop)
    }

    /// Deletes a pool of which no buffer is in use. The contents of the buffers are dropped with the last handle of the
    /// pool.
    ///
    /// # Errors
    /// [`InUseError`] names the reasons, each with what to do.
    fn delete_pool<T: Send + 'static>(&self, pool: &Pool<T>) -> Result<(), InUseError> {
        let Caller { back_end, by } = self.caller();
        at_home(back_end, pool.home)?;
        accept(back_end.cold().call(by, Call::DeletePool { pool: pool.pool })).map(drop)
    }
}

impl<S: CallSite> Services for S {}

/// Refuses a handle of another executive: here its number means another object.
#[inline(always)]
pub(super) fn at_home<E: Refusal>(back_end: BackEnd<'_>, home: u32) -> Result<(), E> {
    if back_end.home() == home { Ok(()) } else { Err(refusal(CallStatus::NoSuchObject)) }
}
