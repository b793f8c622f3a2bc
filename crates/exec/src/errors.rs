//! Why a call was refused: one small enum for each kind of call.
//!
//! The core answers every call with one [`CallStatus`], which traces record. Each kind of call has only a few of these
//! outcomes. The enums name them, each with its remedy. One table, written with the enums, maps a status to the error.

use hairspring_exec_core::{CallStatus, Reply};

/// An error that stands for some of the core's statuses.
pub(crate) trait Refusal: Copy + 'static {
    /// Every status that the error stands for.
    const TABLE: &'static [(CallStatus, Self)];
}

/// The value of a call that succeeded, or the error that its status stands for.
#[inline(always)]
pub(crate) fn accept<E: Refusal>(reply: Reply) -> Result<u32, E> {
    if reply.status == CallStatus::Ok { Ok(reply.value) } else { Err(refusal(reply.status)) }
}

/// The error that a status stands for.
///
/// # Panics
/// If the core answered the call with a status that it has not for such calls: a bug of this crate.
#[cold]
#[inline(never)]
pub(crate) fn refusal<E: Refusal>(status: CallStatus) -> E {
    match E::TABLE.iter().find(|(known, _)| *known == status) {
        Some((_, error)) => *error,
        None => panic!("the core answered `{status}` ({status:?}) to a call of the wrong kind"),
    }
}

macro_rules! errors {
    ($($(#[$text:meta])* $name:ident { $($(#[$meaning:meta])* $variant:ident,)+ })+) => {$(
        $(#[$text])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$meaning])* $variant,)+
        }

        impl Refusal for $name {
            const TABLE: &'static [(CallStatus, Self)] = &[$((CallStatus::$variant, Self::$variant)),+];
        }

        impl From<$name> for CallStatus {
            fn from(error: $name) -> Self {
                match error {
                    $($name::$variant => Self::$variant,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                CallStatus::from(*self).fmt(f)
            }
        }

        impl std::error::Error for $name {}
    )+

        #[cfg(test)]
        mod tests {
            use super::*;

            /// Each error comes back as itself from the status that it stands for.
            #[test]
            fn every_error_is_the_one_that_its_status_stands_for() {
                $(
                    assert!(!$name::TABLE.is_empty());
                    for &(status, error) in $name::TABLE {
                        assert_eq!((CallStatus::from(error), refusal::<$name>(status)), (status, error));
                        assert_eq!(error.to_string(), status.to_string());
                        assert_eq!(format!("{error:?}"), format!("{status:?}"), "they share a name");
                    }
                )+
            }
        }
    };
}

errors! {
    /// Why an object could not be made.
    CreateError {
        /// The executive has 65,535 objects of this kind. Delete those that are done, or use one for several purposes.
        TooMany,
        /// The message type is larger than an envelope. Raise
        /// [`ExecConfig::message_bytes`](crate::ExecConfig::message_bytes), or send a [`Parcel`](crate::Parcel).
        MessageTooBig,
        /// The semaphore's count is above its limit: raise the limit. Or a heap is larger than
        /// [`MOST_HEAP_BYTES`](crate::MOST_HEAP_BYTES), or for more than [`MOST_BLOCKS`](crate::MOST_BLOCKS): make
        /// several.
        Overflow,
    }

    /// Why a task was not started.
    TriggerError {
        /// The task has as many pending starts as can be counted; this one is lost. Trigger less often, or let the task
        /// run.
        TriggerOverflow,
        /// The task panicked and cannot be started again. Delete it and create another.
        Dead,
        /// The task was deleted. Keep no ids of deleted tasks.
        NoSuchObject,
    }

    /// Why a task was not woken.
    WakeError {
        /// A wake is already kept for the task; this one is lost. Use a semaphore if wakes are to be counted.
        WakeAlreadyPending,
        /// The task is idle. Trigger it first.
        NotStarted,
        /// The task panicked. Delete it and create another.
        Dead,
        /// The task was deleted. Keep no ids of deleted tasks.
        NoSuchObject,
    }

    /// Why signals were not delivered to a task.
    SignalError {
        /// The task is idle. Trigger it first.
        NotStarted,
        /// The task panicked. Delete it and create another.
        Dead,
        /// The task was deleted. Keep no ids of deleted tasks.
        NoSuchObject,
    }

    /// Why a message was not sent.
    SendError {
        /// The mailbox, or this queue of the exchange, is full. Give it more room, or let its reader run.
        MailboxFull,
        /// All envelopes of the executive are in use. Raise [`ExecConfig::envelopes`](crate::ExecConfig::envelopes), or
        /// receive sooner.
        NoEnvelope,
        /// The receiver has no mailbox of this urgency. Give it a capacity when it is created.
        NoMailbox,
        /// The receiver panicked. Delete it and create another.
        Dead,
        /// The receiver was deleted, or belongs to another executive. Use a handle that this executive returned.
        NoSuchObject,
    }

    /// Why a message that waits for its acknowledgement was not sent, or not acknowledged.
    SendWaitError {
        /// The mailbox is full. Give it more room, or let its reader run.
        MailboxFull,
        /// All envelopes of the executive are in use. Raise [`ExecConfig::envelopes`](crate::ExecConfig::envelopes), or
        /// receive sooner.
        NoEnvelope,
        /// The receiver has no mailbox of this urgency. Give it a capacity when it is created.
        NoMailbox,
        /// The receiver panicked. Delete it and create another.
        Dead,
        /// The receiver was deleted, or belongs to another executive. Use a handle that this executive returned.
        NoSuchObject,
        /// The limit passed first. The message stays in its mailbox. Wait longer, or find out why the receiver is late.
        TimedOut,
        /// The receiver was killed, panicked, or put the message down unopened. Send it again, or give up.
        NotAcknowledged,
        /// The receiver is the sender, which would wait for itself. Use [`send`](crate::Services::send).
        Deadlock,
        /// The sender is being killed and waits for nothing any more. Only a destructor can see this.
        Killed,
        /// Another task broke off the wait. Find out why it did.
        Cancelled,
    }

    /// Why no message was received.
    ReceiveError {
        /// The limit passed first. Wait longer, or do without.
        TimedOut,
        /// The mailbox belongs to another task. Receive from the mailbox that the task was given.
        NoMailbox,
        /// The mailbox belongs to another executive. Use a handle that this executive returned.
        NoSuchObject,
        /// The task is being killed and waits for nothing any more. Only a destructor can see this.
        Killed,
        /// Another task broke off the wait. Find out why it did.
        Cancelled,
    }

    /// Why no message was acknowledged.
    AcknowledgeError {
        /// The sender of the message taken last does not wait for it. Nothing is to be done.
        Empty,
    }

    /// Why a wait ended without what was waited for.
    WaitError {
        /// The limit passed first. Wait longer, or do without.
        TimedOut,
        /// The object was deleted, also during the wait; or it belongs to another executive. Use what this executive
        /// returned.
        NoSuchObject,
        /// The task is being killed and waits for nothing any more. Only a destructor can see this.
        Killed,
        /// Another task broke off the wait. Find out why it did.
        Cancelled,
    }

    /// Why a delay was cut short.
    DelayError {
        /// The task is being killed and waits for nothing any more. Only a destructor can see this.
        Killed,
        /// Another task broke off the delay: its time has not come.
        Cancelled,
    }

    /// Why a wait for signals or events ended without them.
    BitsError {
        /// The limit passed first. Wait longer, or do without.
        TimedOut,
        /// No bits are asked for, so nothing could end the wait. Ask for at least one.
        NoBits,
        /// The event group was deleted, also during the wait, or never was. Use what this executive returned.
        NoSuchObject,
        /// The task is being killed and waits for nothing any more. Only a destructor can see this.
        Killed,
        /// Another task broke off the wait. Find out why it did.
        Cancelled,
    }

    /// Why a semaphore took no unit back.
    SemaphoreError {
        /// The semaphore is at its limit; the unit is lost. Raise the limit, or signal less often.
        Overflow,
        /// The semaphore was deleted, or never was. Use what this executive returned.
        NoSuchObject,
    }

    /// Why an object was not reached.
    ObjectError {
        /// The object was deleted, or its id was never handed out. Use what this executive returned.
        NoSuchObject,
    }

    /// Why a resource, a mutex, a pool or a heap was not deleted.
    InUseError {
        /// A task owns it, or has a buffer or block of it. Delete it when it is released everywhere.
        InUse,
        /// It was deleted before, or belongs to another executive. Keep no handles of deleted objects.
        NoSuchObject,
    }

    /// Why a resource was not reserved.
    ReserveError {
        /// The limit passed first. Wait longer, or do without.
        TimedOut,
        /// The owner waits for the caller, directly or through others: the wait would never end. Reserve resources in
        /// one order everywhere.
        Deadlock,
        /// The task is more urgent than the ceiling of the resource. Raise the ceiling to its most urgent user.
        AboveCeiling,
        /// The resource is nested too deep. Release it as often as it is reserved.
        Overflow,
        /// The resource was deleted, or never was. Use what this executive returned.
        NoSuchObject,
        /// The task is being killed and waits for nothing any more. Only a destructor can see this.
        Killed,
        /// Another task broke off the wait. Find out why it did.
        Cancelled,
    }

    /// Why a resource was not released.
    ReleaseError {
        /// The resource belongs to another task or to none. Release only what was reserved, once for each time.
        NotOwner,
        /// The resource was deleted, or never was. Use what this executive returned.
        NoSuchObject,
    }

    /// Why no buffer was taken.
    BufferError {
        /// All buffers are in use. Make a larger pool, or give buffers back sooner.
        Empty,
        /// The pool belongs to another executive. Use a handle that this executive returned.
        NoSuchObject,
    }

    /// Why no block of a heap was given at once.
    BlockError {
        /// No free area is large enough, as many blocks are in use as may be, or a task waits for a block. Make a
        /// larger heap, free blocks sooner, or wait.
        Empty,
        /// The block is larger than the heap. Ask for less, or make a larger heap.
        TooLarge,
        /// The heap was deleted, or belongs to another executive. Use a handle that this executive returned.
        NoSuchObject,
    }

    /// Why no block of a heap came.
    BlockWaitError {
        /// The limit passed first. Wait longer, or do without.
        TimedOut,
        /// The block is larger than the heap. Ask for less, or make a larger heap.
        TooLarge,
        /// The heap was deleted, or belongs to another executive. Use a handle that this executive returned.
        NoSuchObject,
        /// The task is being killed and waits for nothing any more. Only a destructor can see this.
        Killed,
        /// Another task broke off the wait. Find out why it did.
        Cancelled,
    }

    /// Why a parcel was not opened, or a block not freed.
    ParcelError {
        /// The parcel was opened before, or is of another pool or heap. Open each parcel once, with its own pool or
        /// heap. Or no block in use begins at this address: free each block once.
        NotInUse,
        /// The pool or heap was deleted, or belongs to another executive. Use a handle that this executive returned.
        NoSuchObject,
    }

    /// Why a periodic timer was not started.
    PeriodError {
        /// The period is zero or negative. Use [`start_timer`](crate::Services::start_timer) for a timer that goes off
        /// once.
        BadInterval,
        /// The timer was deleted. Keep no ids of deleted timers.
        NoSuchObject,
    }

    /// Why a task was not suspended.
    SuspendError {
        /// The task is suspended already. Nothing is to be done.
        AlreadySuspended,
        /// The task is idle. Trigger it first.
        NotStarted,
        /// The task panicked. Delete it and create another.
        Dead,
        /// The task was deleted. Keep no ids of deleted tasks.
        NoSuchObject,
        /// The task has been killed and is about to unwind. Wait for the end of its run.
        Killed,
    }

    /// Why a task was not resumed.
    ResumeError {
        /// The task is not suspended. Nothing is to be done.
        NotSuspended,
        /// The task is idle: a run that ends is not suspended any more. Nothing is to be done.
        NotStarted,
        /// The task panicked. Delete it and create another.
        Dead,
        /// The task was deleted. Keep no ids of deleted tasks.
        NoSuchObject,
    }

    /// Why the priority of a task was not changed.
    PriorityError {
        /// The task owns, or waits for, a resource whose ceiling is less urgent. Raise the ceiling, or wait until it is
        /// released.
        AboveCeiling,
        /// The task was deleted. Keep no ids of deleted tasks.
        NoSuchObject,
    }

    /// Why a task was not killed.
    KillError {
        /// The task panicked and has no run to end. Delete it.
        Dead,
        /// The task was deleted. Keep no ids of deleted tasks.
        NoSuchObject,
        /// The task killed itself and unwinds already. Only a destructor can see this.
        Killed,
    }

    /// Why a wait was not broken off.
    CancelError {
        /// The task is idle and waits for nothing. Nothing is to be done.
        NotStarted,
        /// The task panicked. Delete it and create another.
        Dead,
        /// The task was deleted. Keep no ids of deleted tasks.
        NoSuchObject,
    }

    /// Why the end of a task's run brought no result.
    JoinError {
        /// The limit passed first. Wait longer, or do without.
        TimedOut,
        /// The run was killed or panicked (see [`Finish::mishaps`](crate::Finish::mishaps)), or its result was taken
        /// before.
        Empty,
        /// The task would wait for its own end.
        Deadlock,
        /// The task was deleted, or belongs to another executive. Use a handle that this executive returned.
        NoSuchObject,
        /// The task is being killed and waits for nothing any more. Only a destructor can see this.
        Killed,
        /// Another task broke off the wait. Find out why it did.
        Cancelled,
    }

    /// Why a wait for a future ended without its output.
    FutureError {
        /// The limit passed first. Wait longer, or do without.
        TimedOut,
        /// The executive has 65,535 semaphores, and the task needs one. Make fewer.
        TooMany,
        /// The task is being killed and waits for nothing any more. Only a destructor can see this.
        Killed,
        /// Another task broke off the wait. Find out why it did.
        Cancelled,
    }

    /// Why no object of a selection became ready.
    SelectError {
        /// The limit passed first. Wait longer, or do without.
        TimedOut,
        /// Another selector waits for one of these objects. Give each object to one selector.
        NotOwner,
        /// An object belongs to another executive. Use what this executive returned.
        NoSuchObject,
        /// The task is being killed and waits for nothing any more. Only a destructor can see this.
        Killed,
        /// Another task broke off the wait. Find out why it did.
        Cancelled,
    }

    /// Why a task was not deleted.
    DeleteError {
        /// The task is in the middle of a run. Kill it, or wait for the end of its run.
        Running,
        /// The task was deleted before. Keep no ids of deleted tasks.
        NoSuchObject,
    }
}
