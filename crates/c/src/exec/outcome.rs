//! Outcome of a call: the code of a status, with its sentence.

use std::ffi::{CStr, c_int};

use hairspring_exec::CallStatus;

use crate::error::{
    Failure, HS_E_CALLER, HS_E_CANCELLED, HS_E_CEILING, HS_E_DEADLOCK, HS_E_EMPTY, HS_E_FREED, HS_E_FULL, HS_E_HANDLE,
    HS_E_KILLED, HS_E_NEGATIVE, HS_E_NOT_ACKNOWLEDGED, HS_E_NOT_OWNER, HS_E_OVERFLOW, HS_E_PANIC, HS_E_RANGE,
    HS_E_STATE, HS_E_TIMED_OUT, HS_E_TOO_MANY, say,
};

/// The code of a status that is no success, and what to do about it. Neither allocates nor formats: a time-out is an
/// ordinary outcome.
pub(super) fn meaning(status: CallStatus) -> (c_int, &'static CStr) {
    use CallStatus as S;
    match status {
        S::TimedOut => (HS_E_TIMED_OUT, c"failed to wait: the limit passed first"),
        S::Killed => {
            (HS_E_KILLED, c"failed to wait: the task has been killed, or the run ends; return from the task's function")
        }
        S::Cancelled => (HS_E_CANCELLED, c"failed to wait: another task broke off the wait"),
        S::WakeAlreadyPending => (
            HS_E_OVERFLOW,
            c"failed to wake a task: a wake is already kept for it; use a semaphore where wakes are to be counted",
        ),
        S::TriggerOverflow => {
            (HS_E_OVERFLOW, c"failed to start a task: its pending starts are as many as can be counted")
        }
        S::Overflow => (
            HS_E_OVERFLOW,
            c"failed to count further: the semaphore is at its limit, or the resource is nested too deep",
        ),
        S::MailboxFull => {
            (HS_E_FULL, c"failed to send: this queue, pipe or list is full; give it more room, or let its reader run")
        }
        S::NoEnvelope => (
            HS_E_FULL,
            c"failed to send a message: all envelopes of the executive are in use; raise hs_exec_options.envelopes",
        ),
        S::NoMailbox => {
            (HS_E_RANGE, c"failed to find a mailbox of this urgency: give it a capacity when its owner is created")
        }
        S::NotAcknowledged => (
            HS_E_NOT_ACKNOWLEDGED,
            c"failed to get an acknowledgement: the receiver was killed, or returned without one",
        ),
        S::NoSuchObject => (HS_E_FREED, c"failed to use an object: it has been deleted"),
        S::NotStarted => (HS_E_STATE, c"failed to act on a task: it is idle; start it first"),
        S::Dead => (HS_E_STATE, c"failed to act on a task: it is dead; delete it and create another"),
        S::Running => {
            (HS_E_STATE, c"failed to delete a task: it is in the middle of a run; kill it, or wait for its end")
        }
        S::AlreadySuspended => (HS_E_STATE, c"failed to suspend a task: it is suspended already"),
        S::NotSuspended => (HS_E_STATE, c"failed to resume a task: it is not suspended"),
        S::NotOwner => {
            (HS_E_NOT_OWNER, c"failed to release a resource or mutex: it belongs to another task, or to none")
        }
        S::Deadlock => {
            (HS_E_DEADLOCK, c"failed to wait: it would never end, because what is waited for waits for this task")
        }
        S::AboveCeiling => (
            HS_E_CEILING,
            c"failed to use a resource: a task is more urgent than its ceiling; raise it to its most urgent user",
        ),
        S::NoBits => (HS_E_RANGE, c"failed to wait for bits: none are asked for"),
        S::Empty => (
            HS_E_EMPTY,
            c"failed to take one: no block is free, no sender waits, the list is empty, or nothing has been sent",
        ),
        S::TooLarge => (HS_E_RANGE, c"failed to get a block: it is larger than the heap; make a larger heap"),
        S::InUse => (
            HS_E_STATE,
            c"failed to delete an object: a task owns it, or holds a block of it; wait until it is released",
        ),
        S::NotInUse => (HS_E_STATE, c"failed to give a block back: it is not in use"),
        S::TooMany => {
            (HS_E_TOO_MANY, c"failed to create an object: the executive has as many as it may, or the system no thread")
        }
        S::BadInterval => (HS_E_RANGE, c"failed to start a timer: a period of zero or less"),
        S::NotATask => (HS_E_CALLER, NOT_HERE),
        _ => (HS_E_PANIC, c"failed to go on: a bug in the library, please report it: a status without a meaning"),
    }
}

const NOT_HERE: &CStr =
    c"failed to make a call of the executive: not allowed here; see which callers the function is for";

/// Refuses a call that its caller may not make.
#[cold]
pub(super) fn not_here() -> c_int {
    say(HS_E_CALLER, NOT_HERE)
}

/// The refusal of an id.
#[cold]
pub(super) fn foreign() -> c_int {
    say(HS_E_HANDLE, c"failed to use an id: it is of another kind or another executive, or none")
}

#[cold]
pub(super) fn negative() -> c_int {
    say(HS_E_NEGATIVE, c"failed to take a time: it is negative")
}

#[cold]
pub(super) fn out_of_range() -> c_int {
    say(HS_E_RANGE, c"failed to take a number: it is outside of its range")
}

/// A status as the failure of a call that may format.
pub(super) fn failure(status: CallStatus) -> Failure {
    let (code, sentence) = meaning(status);
    Failure::told(say(code, sentence))
}
