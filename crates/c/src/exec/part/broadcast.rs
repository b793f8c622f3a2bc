//! Broadcasts: messages that every subscriber hears; with room for one, the latest value of something.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::c_int;

use hairspring_exec::{Broadcast, CallStatus, Create, Heard, Subscriber};

use super::{Part, alone_in_task, anywhere, in_executive, make_part};
use crate::error::{Failure, HS_E_NULL, HS_E_RANGE};
use crate::exec::context::limit;
use crate::exec::executive::{hs_exec, hs_exec_message};
use crate::exec::outcome::{failure, foreign, negative};
use crate::handle::{Kind, peek};
use crate::pointer::{Place, read};

/// The most messages that a broadcast keeps, so that a negative number converted to unsigned is refused.
const MOST_MESSAGES: u32 = 1 << 24;

/// The newest messages, for any number of subscribers. Lives as long as its executive; only its tasks and procedures
/// use it.
pub struct hs_exec_broadcast(());

/// A listener of a broadcast, with its own place among the messages. Lives as long as its executive; one task at a time
/// uses it.
pub struct hs_exec_subscriber(());

impl Kind for hs_exec_broadcast {
    type Owned = Part<Broadcast<hs_exec_message>>;
    const WORD: u64 = u64::from_le_bytes(*b"execbroa");
    const NAME: &'static str = "broadcast";
    const GOES_AT_ONCE: bool = false;
}

impl Kind for hs_exec_subscriber {
    type Owned = Part<Subscriber<hs_exec_message>>;
    const WORD: u64 = u64::from_le_bytes(*b"execsubs");
    const NAME: &'static str = "subscriber of a broadcast";
    const GOES_AT_ONCE: bool = false;
}

/// Creates a broadcast that keeps the newest 1 to 16,777,216 messages for slow subscribers. With 1 it is the latest
/// value of something. From outside before or between runs, and from a task of the executive. Allocates. The broadcast
/// is freed with its executive. HS_E_RANGE, HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_broadcast_new(
    exec: *mut hs_exec,
    messages: u32,
    broadcast: *mut *mut hs_exec_broadcast,
) -> c_int {
    make_part(exec, broadcast, |site, _| {
        if !(1..=MOST_MESSAGES).contains(&messages) {
            return Err(Failure::new(HS_E_RANGE, "create a broadcast: it keeps 1 to 16,777,216 messages"));
        }
        site.broadcast(messages as usize).map_err(|error| failure(error.into()))
    })
}

/// Sends a message to all subscribers; the oldest makes room. Never waits. From tasks and procedures of the executive.
/// HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_broadcast_send(broadcast: *mut hs_exec_broadcast, message: *const hs_exec_message) -> c_int {
    let message = match read(message) {
        Ok(message) => message,
        Err(failure) => return failure.tell(),
    };
    in_executive(broadcast, |site, broadcast| Ok(broadcast.send(&site, message)?))
}

/// The newest message. From tasks and procedures of the executive. HS_E_EMPTY (none has been sent), HS_E_NULL,
/// HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_broadcast_latest(broadcast: *mut hs_exec_broadcast, message: *mut hs_exec_message) -> c_int {
    let Ok(place) = Place::new(message) else { return HS_E_NULL };
    in_executive(broadcast, |site, broadcast| {
        place.put(broadcast.latest(&site).ok_or(CallStatus::Empty)?);
        Ok(())
    })
}

/// Deletes a broadcast. Its subscribers that wait get HS_E_FREED. It is HS_E_FREED from then on; the memory of the
/// handle is freed with the executive. From anywhere in its executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_broadcast_delete(broadcast: *mut hs_exec_broadcast) -> c_int {
    anywhere(broadcast, |site, broadcast| Ok(broadcast.delete(&site)?))
}

/// Creates a subscriber that hears what is sent from now on. From outside before or between runs, and from a task of
/// the executive. Allocates. The subscriber is freed with its executive. HS_E_HANDLE (also of a broadcast of another
/// executive), HS_E_FREED, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_subscriber_new(
    exec: *mut hs_exec,
    broadcast: *mut hs_exec_broadcast,
    subscriber: *mut *mut hs_exec_subscriber,
) -> c_int {
    make_part(exec, subscriber, |site, here| {
        let broadcast = peek(broadcast)?;
        if !broadcast.is_of(here.home) {
            return Err(Failure::told(foreign()));
        }
        broadcast.object.subscribe(&site).map_err(|error| failure(error.into()))
    })
}

/// Waits for the oldest message that the subscriber has not heard and that is still there. `missed` is the number of
/// messages before it that came too fast, and may be NULL. For tasks. HS_E_TIMED_OUT (also with HS_EXEC_NO_WAIT),
/// HS_E_BUSY (another task uses the subscriber), HS_E_CANCELLED, HS_E_KILLED, HS_E_NEGATIVE, HS_E_NULL, HS_E_FREED,
/// HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_subscriber_next(
    subscriber: *mut hs_exec_subscriber,
    limit_ns: i64,
    message: *mut hs_exec_message,
    missed: *mut u64,
) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    let (Ok(place), Ok(count)) = (Place::new(message), Place::wanted(missed)) else { return HS_E_NULL };
    alone_in_task(subscriber, |task, subscriber| {
        let Heard { value, missed } = subscriber.next(task, limit)?;
        place.put(value);
        if let Some(count) = count {
            count.put(missed);
        }
        Ok(())
    })
}
