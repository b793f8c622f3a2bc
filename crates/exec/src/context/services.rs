//! [`Services`]: the calls that cannot wait, for whoever makes them.

use hairspring_exec_core::{By, Call, EventsId, Moment, SemaphoreId, Status, TaskId, TimerId, Urgency};
use hairspring_machine::Nanos;

use super::accept;
use crate::engine::Kernel;
use crate::handle::{Buffer, Exchange, Mailbox, Parcel, Pool};
use crate::message::Bytes;

/// What a wake found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// The task waited; it runs on.
    Now,
    /// The task did not wait; its next wait returns at once.
    Pending,
}

/// Who calls, and in which executive.
#[derive(Clone, Copy)]
pub struct Caller<'k> {
    pub(crate) kernel: Kernel<'k>,
    pub(crate) by: By,
}

/// Whatever calls are made through. Sealed: only this crate can make a [`Caller`].
pub trait Standing {
    #[doc(hidden)]
    fn caller(&self) -> Caller<'_>;
}

/// Calls that cannot wait: for tasks, timer procedures, interrupt service procedures, and the program around them.
///
/// A call that readies a more urgent task switches to it before it returns, unless the caller is itself above all tasks;
/// then the switch takes place when it is done. Real-time safe; none allocates.
pub trait Services: Standing {
    /// The executive's time: `CLOCK_MONOTONIC`, or the simulated machine's.
    fn now(&self) -> Moment {
        self.caller().kernel.cold().now()
    }

    /// Starts an idle task; one that is not idle is started again when it ends, as often as it was triggered.
    ///
    /// # Errors
    /// [`Status::TriggerOverflow`], [`Status::Dead`], [`Status::NoSuchObject`].
    #[inline(always)]
    fn trigger(&self, task: TaskId) -> Result<(), Status> {
        let Caller { kernel, by } = self.caller();
        accept(kernel.call(by, Call::Trigger { task })).map(drop)
    }

    /// Wakes a task from its wait, or leaves it one wake.
    ///
    /// # Errors
    /// [`Status::WakeAlreadyPending`]: this wake is lost; [`Status::NotStarted`], [`Status::Dead`],
    /// [`Status::NoSuchObject`].
    #[inline(always)]
    fn wake(&self, task: TaskId) -> Result<Woken, Status> {
        let Caller { kernel, by } = self.caller();
        match kernel.call(by, Call::Wake { task }).status {
            Status::Ok => Ok(Woken::Now),
            Status::WakePending => Ok(Woken::Pending),
            refused => Err(refused),
        }
    }

    /// Sends a message to a task's mailbox; starts the task if it is idle.
    ///
    /// # Errors
    /// [`Status::MailboxFull`], [`Status::NoEnvelope`], [`Status::NoMailbox`], [`Status::Dead`],
    /// [`Status::NoSuchObject`].
    #[inline(always)]
    fn send<M: Copy>(&self, mailbox: Mailbox<M>, urgency: Urgency, message: M) -> Result<(), Status> {
        let Caller { kernel, by } = self.caller();
        at_home(kernel, mailbox.home)?;
        accept(kernel.send(by, Call::Send { task: mailbox.task, urgency }, Bytes::of(&message))).map(drop)
    }

    /// Sends a message to an exchange.
    ///
    /// # Errors
    /// [`Status::MailboxFull`], [`Status::NoEnvelope`], [`Status::NoMailbox`].
    #[inline(always)]
    fn post<M: Copy>(&self, exchange: Exchange<M>, urgency: Urgency, message: M) -> Result<(), Status> {
        let Caller { kernel, by } = self.caller();
        at_home(kernel, exchange.home)?;
        let call = Call::Post { exchange: exchange.exchange, urgency };
        accept(kernel.send(by, call, Bytes::of(&message))).map(drop)
    }

    /// Sets signal bits of a task.
    ///
    /// # Errors
    /// [`Status::NotStarted`], [`Status::Dead`], [`Status::NoSuchObject`].
    fn signal(&self, task: TaskId, bits: u32) -> Result<(), Status> {
        let Caller { kernel, by } = self.caller();
        accept(kernel.call(by, Call::Signal { task, bits })).map(drop)
    }

    /// Gives a semaphore one unit.
    ///
    /// # Errors
    /// [`Status::Overflow`] at its limit; [`Status::NoSuchObject`].
    #[inline(always)]
    fn signal_semaphore(&self, semaphore: SemaphoreId) -> Result<(), Status> {
        let Caller { kernel, by } = self.caller();
        accept(kernel.call(by, Call::SignalSemaphore { semaphore })).map(drop)
    }

    /// Sets bits of an event group.
    ///
    /// # Errors
    /// [`Status::NoSuchObject`].
    fn signal_events(&self, events: EventsId, bits: u32) -> Result<(), Status> {
        let Caller { kernel, by } = self.caller();
        accept(kernel.call(by, Call::SignalEvents { events, bits })).map(drop)
    }

    /// Clears bits of an event group.
    ///
    /// # Errors
    /// [`Status::NoSuchObject`].
    fn clear_events(&self, events: EventsId, bits: u32) -> Result<(), Status> {
        let Caller { kernel, by } = self.caller();
        accept(kernel.call(by, Call::ClearEvents { events, bits })).map(drop)
    }

    /// Takes a buffer of a pool.
    ///
    /// # Errors
    /// [`Status::Empty`]: all are in use.
    fn buffer<T: Send + 'static>(&self, pool: &Pool<T>) -> Result<Buffer<'_, T>, Status> {
        let Caller { kernel, by } = self.caller();
        at_home(kernel, pool.home)?;
        let number = accept(kernel.call(by, Call::GetBuffer { pool: pool.pool }))?;
        Ok(pool.buffer(kernel, by, number))
    }

    /// Opens a buffer that came in a message.
    ///
    /// # Errors
    /// [`Status::NotInUse`] if it was opened before or is of another pool.
    fn open_parcel<T: Send + 'static>(&self, pool: &Pool<T>, parcel: Parcel) -> Result<Buffer<'_, T>, Status> {
        let Caller { kernel, by } = self.caller();
        at_home(kernel, pool.home)?;
        if !pool.unpack(parcel) {
            return Err(Status::NotInUse);
        }
        Ok(pool.buffer(kernel, by, u32::from(parcel.number)))
    }

    /// Starts a timer: goes off once at `at`.
    ///
    /// # Errors
    /// [`Status::NoSuchObject`].
    fn start_timer(&self, timer: TimerId, at: Moment) -> Result<(), Status> {
        let Caller { kernel, by } = self.caller();
        accept(kernel.call(by, Call::StartTimer { timer, at, period_ns: 0 })).map(drop)
    }

    /// Starts a timer: goes off at `first` and then each `period` after that, without drift.
    ///
    /// # Errors
    /// [`Status::BadInterval`] if the period is zero or negative; [`Status::NoSuchObject`].
    fn start_periodic(&self, timer: TimerId, first: Moment, period: Nanos) -> Result<(), Status> {
        let Caller { kernel, by } = self.caller();
        let Some(period_ns) = u64::try_from(period.count()).ok().filter(|&ns| ns > 0) else {
            return Err(Status::BadInterval);
        };
        accept(kernel.call(by, Call::StartTimer { timer, at: first, period_ns })).map(drop)
    }

    /// Stops a timer; whether it ran.
    ///
    /// # Errors
    /// [`Status::NoSuchObject`].
    fn stop_timer(&self, timer: TimerId) -> Result<bool, Status> {
        let Caller { kernel, by } = self.caller();
        accept(kernel.call(by, Call::StopTimer { timer })).map(|ran| ran == 1)
    }
}

impl<S: Standing> Services for S {}

/// Refuses a handle of another executive, whose number means another object here.
#[inline(always)]
pub(super) fn at_home(kernel: Kernel<'_>, home: u32) -> Result<(), Status> {
    if kernel.home() == home { Ok(()) } else { Err(Status::NoSuchObject) }
}
