//! Queues of messages whose senders wait for room.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::c_int;

use hairspring_exec::{Create, Limit, MessageQueue};

use super::{Part, anywhere, in_executive, in_task_of, make_part};
use crate::error::{Failure, HS_E_NULL, HS_E_RANGE};
use crate::exec::context::limit;
use crate::exec::executive::{hs_exec, hs_exec_message};
use crate::exec::outcome::{failure, negative};
use crate::handle::Kind;
use crate::pointer::{Place, read};

/// The longest queue, so that a negative number converted to unsigned is refused.
const MOST_MESSAGES: u32 = 1 << 24;

/// A queue of messages, first in, first out. Lives as long as its executive; only its tasks and procedures use it.
pub struct hs_exec_queue(());

impl Kind for hs_exec_queue {
    type Owned = Part<MessageQueue<hs_exec_message>>;
    const WORD: u64 = u64::from_le_bytes(*b"execqueu");
    const NAME: &'static str = "queue of messages";
    const GOES_AT_ONCE: bool = false;
}

/// Creates a queue with room for 1 to 16,777,216 messages. From outside before or between runs, and from a task of the
/// executive. Allocates. The queue is freed with its executive. HS_E_RANGE, HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD,
/// HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_queue_new(exec: *mut hs_exec, messages: u32, queue: *mut *mut hs_exec_queue) -> c_int {
    make_part(exec, queue, |site, _| {
        if !(1..=MOST_MESSAGES).contains(&messages) {
            return Err(Failure::new(HS_E_RANGE, "create a queue: it has room for 1 to 16,777,216 messages"));
        }
        site.message_queue(messages as usize).map_err(|error| failure(error.into()))
    })
}

/// Sends a message; a task waits for room, up to the limit. Procedures use HS_EXEC_NO_WAIT. HS_E_FULL (no room, and
/// HS_EXEC_NO_WAIT), HS_E_TIMED_OUT, HS_E_CANCELLED, HS_E_KILLED, HS_E_NEGATIVE, HS_E_NULL, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_queue_send(
    queue: *mut hs_exec_queue,
    message: *const hs_exec_message,
    limit_ns: i64,
) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    let message = match read(message) {
        Ok(message) => message,
        Err(failure) => return failure.tell(),
    };
    if limit == Limit::NoWait {
        return in_executive(queue, |site, queue| queue.try_send(&site, message).map_err(|unsent| unsent.why.into()));
    }
    in_task_of(queue, |task, _, queue| queue.send(task, message, limit).map_err(|unsent| unsent.why.into()))
}

/// Takes the first message; a task waits for one, up to the limit. Procedures use HS_EXEC_NO_WAIT. HS_E_TIMED_OUT,
/// HS_E_CANCELLED, HS_E_KILLED, HS_E_NEGATIVE, HS_E_NULL, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_queue_receive(
    queue: *mut hs_exec_queue,
    limit_ns: i64,
    message: *mut hs_exec_message,
) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    let Ok(place) = Place::new(message) else { return HS_E_NULL };
    if limit == Limit::NoWait {
        return in_executive(queue, |site, queue| {
            place.put(queue.try_receive(&site)?);
            Ok(())
        });
    }
    in_task_of(queue, |task, _, queue| {
        place.put(queue.receive(task, limit)?);
        Ok(())
    })
}

/// How many messages are in a queue. From tasks and procedures of the executive. HS_E_NULL, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_queue_count(queue: *mut hs_exec_queue, count: *mut u32) -> c_int {
    let Ok(place) = Place::new(count) else { return HS_E_NULL };
    in_executive(queue, |site, queue| {
        place.put(queue.len(&site) as u32);
        Ok(())
    })
}

/// Drops the messages in a queue, and lets the tasks go on that wait for room. From tasks and procedures of the
/// executive. HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_queue_clear(queue: *mut hs_exec_queue) -> c_int {
    in_executive(queue, |site, queue| {
        queue.clear(&site);
        Ok(())
    })
}

/// Deletes a queue and its messages. Tasks that wait for it get HS_E_FREED. It is HS_E_FREED from then on; the memory
/// of the handle is freed with the executive. From anywhere in its executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_queue_delete(queue: *mut hs_exec_queue) -> c_int {
    anywhere(queue, |site, queue| Ok(queue.delete(&site)?))
}
