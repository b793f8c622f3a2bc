//! Objects that tasks share: semaphores, resources, groups of events.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]

use std::ffi::c_int;

use hairspring_exec::{
    CallStatus, Create, EventsId, Inspect, Priority, ResourceId, ResourceProtocol, SemaphoreId, Services,
};

use super::context::{at_once, create, in_task_with, limit, serve, serve_any};
use super::executive::hs_exec;
use super::ids::{IdKind, hs_exec_events, hs_exec_resource, hs_exec_semaphore, id};
use super::outcome::{failure, negative, out_of_range};
use super::task::{HS_EXEC_TAKE, bits};
use crate::error::{Failure, HS_E_NULL, HS_E_RANGE, HS_OK, door};
use crate::pointer::Place;

/// A resource without a protocol against priority inversion, as in AMX.
pub const HS_EXEC_PROTOCOL_NONE: c_int = 0;
/// The owner runs at the priority of its most urgent waiter.
pub const HS_EXEC_PROTOCOL_INHERIT: c_int = 1;
/// The owner runs at the ceiling from the moment it reserves.
pub const HS_EXEC_PROTOCOL_CEILING: c_int = 2;

/// The priority that a task waits at, from C.
pub(super) fn place_in_line(priority: c_int) -> Option<Priority> {
    u8::try_from(priority).ok().and_then(Priority::new)
}

/// The protocol of a resource or mutex, from C.
pub(super) fn protocol(number: c_int, ceiling: c_int) -> Result<ResourceProtocol, Failure> {
    match (number, place_in_line(ceiling)) {
        (HS_EXEC_PROTOCOL_NONE, _) => Ok(ResourceProtocol::None),
        (HS_EXEC_PROTOCOL_INHERIT, _) => Ok(ResourceProtocol::Inherit),
        (HS_EXEC_PROTOCOL_CEILING, Some(ceiling)) => Ok(ResourceProtocol::Ceiling(ceiling)),
        _ => {
            let text = format!("create a resource of protocol {number} and ceiling {ceiling}: 0 to 2, and 0 to 63");
            Err(Failure::new(HS_E_RANGE, text))
        }
    }
}

/// Creates a semaphore with a count of units and the limit that it may reach. From outside before or between runs, and
/// from a task of the executive. Allocates. HS_E_OVERFLOW (the count is above the limit), HS_E_TOO_MANY, HS_E_BUSY,
/// HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_semaphore_new(
    exec: *mut hs_exec,
    count: u32,
    limit: u32,
    semaphore: *mut hs_exec_semaphore,
) -> c_int {
    door(|| {
        let place = Place::new(semaphore)?;
        create(exec, |site, here| {
            let made = site.semaphore(count, limit).map_err(|error| failure(error.into()))?;
            place.put(hs_exec_semaphore { id: id(IdKind::Semaphore, here.home, made.number()) });
            Ok(())
        })
    })
}

/// Gives a semaphore one unit. From anywhere in its executive. HS_E_OVERFLOW (it is at its limit), HS_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_semaphore_signal(semaphore: hs_exec_semaphore) -> c_int {
    match at_once(semaphore.id, IdKind::Semaphore) {
        Some((task, number)) if task.signal_semaphore(SemaphoreId::from_number(number)) => HS_OK,
        _ => signal_semaphore(semaphore),
    }
}

#[inline(never)]
extern "C" fn signal_semaphore(semaphore: hs_exec_semaphore) -> c_int {
    serve!(semaphore.id, IdKind::Semaphore, |site, number| Ok(site.signal_semaphore(SemaphoreId::from_number(number))?))
}

/// Takes one unit of a semaphore; waiters get theirs in the order of their priorities. For tasks. HS_E_TIMED_OUT,
/// HS_E_KILLED, HS_E_NEGATIVE, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_semaphore_wait(semaphore: hs_exec_semaphore, limit_ns: i64) -> c_int {
    match at_once(semaphore.id, IdKind::Semaphore) {
        Some((task, number)) if limit_ns >= 0 && task.wait_semaphore(SemaphoreId::from_number(number)) => HS_OK,
        _ => wait_semaphore(semaphore, limit_ns),
    }
}

#[inline(never)]
extern "C" fn wait_semaphore(semaphore: hs_exec_semaphore, limit_ns: i64) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    in_task_with(semaphore.id, IdKind::Semaphore, |task, number| {
        Ok(task.wait_semaphore(SemaphoreId::from_number(number), limit)?)
    })
}

/// The same, but waits at a priority given for this wait, 0 to 63. HS_E_RANGE besides.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_semaphore_wait_at(semaphore: hs_exec_semaphore, priority: c_int, limit_ns: i64) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    let Some(at) = place_in_line(priority) else { return out_of_range() };
    in_task_with(semaphore.id, IdKind::Semaphore, |task, number| {
        Ok(task.wait_semaphore_at(SemaphoreId::from_number(number), at, limit)?)
    })
}

/// The units of a semaphore. From anywhere in its executive, and from outside between runs. HS_E_NULL, HS_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_semaphore_count(semaphore: hs_exec_semaphore, count: *mut u32) -> c_int {
    let Ok(place) = Place::new(count) else { return HS_E_NULL };
    serve_any(semaphore.id, IdKind::Semaphore, &|site, number| {
        place.put(site.semaphore_count(SemaphoreId::from_number(number)).ok_or(CallStatus::NoSuchObject)?);
        Ok(())
    })
}

/// Deletes a semaphore; its id is HS_E_FREED from then on. Tasks that wait for it get HS_E_FREED. From anywhere in its
/// executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_semaphore_delete(semaphore: hs_exec_semaphore) -> c_int {
    serve_any(semaphore.id, IdKind::Semaphore, &|site, number| {
        Ok(site.delete_semaphore(SemaphoreId::from_number(number))?)
    })
}

/// Creates a resource with HS_EXEC_PROTOCOL_…; `ceiling` (0 to 63) is looked at with HS_EXEC_PROTOCOL_CEILING only.
/// From outside before or between runs, and from a task of the executive. Allocates. HS_E_RANGE, HS_E_TOO_MANY,
/// HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_resource_new(
    exec: *mut hs_exec,
    protocol_number: c_int,
    ceiling: c_int,
    resource: *mut hs_exec_resource,
) -> c_int {
    door(|| {
        let place = Place::new(resource)?;
        let protocol = protocol(protocol_number, ceiling)?;
        create(exec, |site, here| {
            let made = site.resource(protocol).map_err(|error| failure(error.into()))?;
            place.put(hs_exec_resource { id: id(IdKind::Resource, here.home, made.number()) });
            Ok(())
        })
    })
}

/// Reserves a resource; reservations nest, and each needs its hs_exec_release(). For tasks. HS_E_TIMED_OUT,
/// HS_E_DEADLOCK, HS_E_CEILING, HS_E_OVERFLOW, HS_E_KILLED, HS_E_NEGATIVE, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_reserve(resource: hs_exec_resource, limit_ns: i64) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    in_task_with(resource.id, IdKind::Resource, |task, number| {
        Ok(task.reserve_unguarded(ResourceId::from_number(number), limit)?)
    })
}

/// The same, but waits at a priority given for this wait, 0 to 63. HS_E_RANGE besides.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_reserve_at(resource: hs_exec_resource, priority: c_int, limit_ns: i64) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    let Some(at) = place_in_line(priority) else { return out_of_range() };
    in_task_with(resource.id, IdKind::Resource, |task, number| {
        Ok(task.reserve_unguarded_at(ResourceId::from_number(number), at, limit)?)
    })
}

/// Releases a resource once. For tasks. HS_E_NOT_OWNER, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_release(resource: hs_exec_resource) -> c_int {
    in_task_with(resource.id, IdKind::Resource, |task, number| Ok(task.release(ResourceId::from_number(number))?))
}

/// Deletes a resource that no task owns; its id is HS_E_FREED from then on. From anywhere in its executive. HS_E_STATE
/// (a task owns it), HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_resource_delete(resource: hs_exec_resource) -> c_int {
    serve_any(resource.id, IdKind::Resource, &|site, number| Ok(site.delete_resource(ResourceId::from_number(number))?))
}

/// Creates a group of 32 event bits with these set. From outside before or between runs, and from a task of the
/// executive. Allocates. HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_events_new(exec: *mut hs_exec, set: u32, events: *mut hs_exec_events) -> c_int {
    door(|| {
        let place = Place::new(events)?;
        create(exec, |site, here| {
            let made = site.events(set).map_err(|error| failure(error.into()))?;
            place.put(hs_exec_events { id: id(IdKind::Events, here.home, made.number()) });
            Ok(())
        })
    })
}

/// Sets bits of a group. From anywhere in its executive. HS_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_events_signal(events: hs_exec_events, bits: u32) -> c_int {
    match at_once(events.id, IdKind::Events) {
        Some((task, number)) if task.signal_events(EventsId::from_number(number), bits) => HS_OK,
        _ => signal_events(events, bits),
    }
}

#[inline(never)]
extern "C" fn signal_events(events: hs_exec_events, bits: u32) -> c_int {
    serve!(events.id, IdKind::Events, |site, number| Ok(site.signal_events(EventsId::from_number(number), bits)?))
}

/// Clears bits of a group. From anywhere in its executive. HS_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_events_clear(events: hs_exec_events, bits: u32) -> c_int {
    serve!(events.id, IdKind::Events, |site, number| Ok(site.clear_events(EventsId::from_number(number), bits)?))
}

/// Deletes a group of events; its id is HS_E_FREED from then on. Tasks that wait for it get HS_E_FREED. From anywhere
/// in its executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_events_delete(events: hs_exec_events) -> c_int {
    serve_any(events.id, IdKind::Events, &|site, number| Ok(site.delete_events(EventsId::from_number(number))?))
}

/// Waits for any of these bits of a group, with HS_EXEC_ALL in `how` for all; HS_EXEC_TAKE clears those that ended the
/// wait. `came` may be NULL. For tasks. HS_E_TIMED_OUT, HS_E_RANGE (no bits), HS_E_KILLED, HS_E_NEGATIVE, HS_E_HANDLE,
/// HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_events_wait(
    events: hs_exec_events,
    mask: u32,
    how: c_int,
    limit_ns: i64,
    came: *mut u32,
) -> c_int {
    let place = Place::found(came);
    if limit_ns >= 0
        && (place.is_some() || came.is_null())
        && let Some(bits) = bits(mask, how)
        && let Some((task, number)) = at_once(events.id, IdKind::Events)
        && let Some(got) = task.wait_events(EventsId::from_number(number), bits, how & HS_EXEC_TAKE != 0)
    {
        if let Some(place) = place {
            place.put(got);
        }
        return HS_OK;
    }
    wait_for_events(events, mask, how, limit_ns, came)
}

#[inline(never)]
extern "C" fn wait_for_events(events: hs_exec_events, mask: u32, how: c_int, limit_ns: i64, came: *mut u32) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    let Some(bits) = bits(mask, how) else { return out_of_range() };
    let Ok(place) = Place::wanted(came) else { return HS_E_NULL };
    in_task_with(events.id, IdKind::Events, |task, number| {
        let got = task.wait_events(EventsId::from_number(number), bits, how & HS_EXEC_TAKE != 0, limit)?;
        if let Some(place) = place {
            place.put(got);
        }
        Ok(())
    })
}

/// The same, but waits at a priority given for this wait, 0 to 63.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_events_wait_at(
    events: hs_exec_events,
    mask: u32,
    how: c_int,
    priority: c_int,
    limit_ns: i64,
    came: *mut u32,
) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    let (Some(bits), Some(at)) = (bits(mask, how), place_in_line(priority)) else { return out_of_range() };
    let Ok(place) = Place::wanted(came) else { return HS_E_NULL };
    in_task_with(events.id, IdKind::Events, |task, number| {
        let got = task.wait_events_at(EventsId::from_number(number), bits, how & HS_EXEC_TAKE != 0, at, limit)?;
        if let Some(place) = place {
            place.put(got);
        }
        Ok(())
    })
}
