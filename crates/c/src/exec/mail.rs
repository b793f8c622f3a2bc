//! Messages: to the mailboxes of tasks, and to exchanges.

#![expect(unsafe_code, reason = "handles made of ids; names of exported functions")]

use std::ffi::c_int;

use hairspring_exec::{CallStatus, Create, Exchange, ExchangeId, Mailbox, Services, TaskId, Urgency};

use super::context::{create, in_task, in_task_with, limit, serve, serve_any};
use super::executive::{hs_exec, hs_exec_message};
use super::ids::{IdKind, hs_exec_exchange, hs_exec_task, id};
use super::object::place_in_line;
use super::outcome::{failure, negative, out_of_range};
use crate::error::{HS_E_NULL, door};
use crate::pointer::{Place, read};

/// Any urgency, in hs_exec_receive().
pub const HS_EXEC_ANY: c_int = -1;

#[inline(always)]
fn urgency(number: c_int) -> Option<Urgency> {
    u8::try_from(number).ok().and_then(Urgency::new)
}

/// Sends a message to a task's mailbox of an urgency, 0 to 3; starts the task if it is idle. From anywhere in its
/// executive. HS_E_FULL, HS_E_RANGE (it has no such mailbox), HS_E_NULL, HS_E_FREED, HS_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_send(task: hs_exec_task, urgency_number: c_int, message: *const hs_exec_message) -> c_int {
    let Some(urgency) = urgency(urgency_number) else { return out_of_range() };
    let message = match read(message) {
        Ok(message) => message,
        Err(failure) => return failure.tell(),
    };
    serve!(task.id, IdKind::Task, |site, number| {
        // SAFETY: all mailboxes of an executive of C are for messages of this type.
        let mailbox = unsafe { Mailbox::from_id(site, TaskId::from_number(number)) };
        Ok(site.send(mailbox, urgency, message)?)
    })
}

/// Sends a message and waits until the receiver has acknowledged it; `value` is that of the acknowledgement and may be
/// NULL. After a time-out the message stays in the mailbox. For tasks. HS_E_TIMED_OUT, HS_E_NOT_ACKNOWLEDGED,
/// HS_E_DEADLOCK (to itself), HS_E_KILLED, HS_E_NEGATIVE, HS_E_CALLER, and those of hs_exec_send().
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_send_wait(
    task: hs_exec_task,
    urgency_number: c_int,
    message: *const hs_exec_message,
    limit_ns: i64,
    value: *mut u32,
) -> c_int {
    let Some(urgency) = urgency(urgency_number) else { return out_of_range() };
    let Some(limit) = limit(limit_ns) else { return negative() };
    let Ok(place) = Place::wanted(value) else { return HS_E_NULL };
    let message = match read(message) {
        Ok(message) => message,
        Err(failure) => return failure.tell(),
    };
    in_task_with(task.id, IdKind::Task, |own, number| {
        // SAFETY: as in `hs_exec_send`.
        let mailbox = unsafe { Mailbox::from_id(own, TaskId::from_number(number)) };
        let value = own.send_wait(mailbox, urgency, message, limit)?;
        if let Some(place) = place {
            place.put(value);
        }
        Ok(())
    })
}

/// Waits for mail of one urgency, or of HS_EXEC_ANY, in the caller's own mailboxes; acknowledges the message before.
/// For tasks with mailboxes. HS_E_TIMED_OUT, HS_E_RANGE, HS_E_NULL, HS_E_KILLED, HS_E_NEGATIVE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_receive(urgency_number: c_int, limit_ns: i64, message: *mut hs_exec_message) -> c_int {
    let wanted = urgency(urgency_number);
    if wanted.is_none() && urgency_number != HS_EXEC_ANY {
        return out_of_range();
    }
    let Some(limit) = limit(limit_ns) else { return negative() };
    let Ok(place) = Place::new(message) else { return HS_E_NULL };
    in_task(|task, context| {
        let Some(mailbox) = context.mailbox else { return Err(CallStatus::NoMailbox) };
        place.put(task.receive(mailbox, wanted, limit)?);
        Ok(())
    })
}

/// Acknowledges the message received last with a value, if its sender waits. For tasks. HS_E_EMPTY (it does not wait),
/// HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_acknowledge(value: u32) -> c_int {
    in_task(|task, _| Ok(task.acknowledge(value)?))
}

/// Creates an exchange with room for `urgency_0` to `urgency_3` messages. From outside before or between runs, and from
/// a task of the executive. Allocates. HS_E_NULL, HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_exchange_new(
    exec: *mut hs_exec,
    urgency_0: u16,
    urgency_1: u16,
    urgency_2: u16,
    urgency_3: u16,
    exchange: *mut hs_exec_exchange,
) -> c_int {
    door(|| {
        let place = Place::new(exchange)?;
        create(exec, |site, here| {
            let made: Exchange<hs_exec_message> =
                site.exchange([urgency_0, urgency_1, urgency_2, urgency_3]).map_err(|error| failure(error.into()))?;
            place.put(hs_exec_exchange { id: id(IdKind::Exchange, here.home, made.id().number()) });
            Ok(())
        })
    })
}

/// Deletes an exchange and its messages; its id is HS_E_FREED from then on. Tasks that wait for it get HS_E_FREED. From
/// anywhere in its executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_exchange_delete(exchange: hs_exec_exchange) -> c_int {
    serve_any(exchange.id, IdKind::Exchange, &|site, number| {
        // SAFETY: as in `hs_exec_post`.
        let exchange = unsafe { Exchange::<hs_exec_message>::from_id(site, ExchangeId::from_number(number)) };
        Ok(site.delete_exchange(exchange)?)
    })
}

/// Sends a message to an exchange: the first waiter gets it, or else the next task that fetches. Never waits. From
/// anywhere in its executive. HS_E_FULL, HS_E_RANGE, HS_E_NULL, HS_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_post(
    exchange: hs_exec_exchange,
    urgency_number: c_int,
    message: *const hs_exec_message,
) -> c_int {
    let Some(urgency) = urgency(urgency_number) else { return out_of_range() };
    let message = match read(message) {
        Ok(message) => message,
        Err(failure) => return failure.tell(),
    };
    serve!(exchange.id, IdKind::Exchange, |site, number| {
        // SAFETY: all exchanges of an executive of C are for messages of this type.
        let exchange = unsafe { Exchange::from_id(site, ExchangeId::from_number(number)) };
        Ok(site.post(exchange, urgency, message)?)
    })
}

/// Waits for a message of an exchange, the most urgent first. For tasks. HS_E_TIMED_OUT, HS_E_NULL, HS_E_KILLED,
/// HS_E_NEGATIVE, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_fetch(exchange: hs_exec_exchange, limit_ns: i64, message: *mut hs_exec_message) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    let Ok(place) = Place::new(message) else { return HS_E_NULL };
    in_task_with(exchange.id, IdKind::Exchange, |task, number| {
        // SAFETY: as in `hs_exec_post`.
        let exchange = unsafe { Exchange::from_id(task, ExchangeId::from_number(number)) };
        place.put(task.fetch::<hs_exec_message>(exchange, limit)?);
        Ok(())
    })
}

/// The same, but waits at a priority given for this wait, 0 to 63. HS_E_RANGE besides.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_fetch_at(
    exchange: hs_exec_exchange,
    priority: c_int,
    limit_ns: i64,
    message: *mut hs_exec_message,
) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    let Some(at) = place_in_line(priority) else { return out_of_range() };
    let Ok(place) = Place::new(message) else { return HS_E_NULL };
    in_task_with(exchange.id, IdKind::Exchange, |task, number| {
        // SAFETY: as in `hs_exec_post`.
        let exchange = unsafe { Exchange::from_id(task, ExchangeId::from_number(number)) };
        place.put(task.fetch_at::<hs_exec_message>(exchange, at, limit)?);
        Ok(())
    })
}
