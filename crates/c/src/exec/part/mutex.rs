//! Mutexes, and conditions to wait for what they protect to change.
//!
//! A mutex is a resource of the core, which has the protocols, with the number of the run that owns it beside: a
//! resource nests and a mutex does not, and a run that ends as the owner leaves its number behind, from which the next
//! owner learns that the data may be half changed.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

use hairspring_exec::{CallStatus, Condition, Create, Limit, ResourceId, Services, TaskCtx};

use super::{Part, anywhere, in_executive, in_task_of, make_part};
use crate::error::HS_E_NULL;
use crate::exec::context::{current, limit};
use crate::exec::executive::hs_exec;
use crate::exec::object::protocol;
use crate::exec::outcome::{failure, foreign, negative};
use crate::handle::{Kind, peek};
use crate::pointer::Place;

/// A mutex: one task at a time owns it. Lives as long as its executive; only its tasks use it.
pub struct hs_exec_mutex(());

/// A condition: tasks wait for it, and leave a mutex while they wait. Lives as long as its executive; only its tasks
/// and procedures use it.
pub struct hs_exec_condition(());

impl Kind for hs_exec_mutex {
    type Owned = Part<OwnedMutex>;
    const WORD: u64 = u64::from_le_bytes(*b"execmutx");
    const NAME: &'static str = "mutex";
    const GOES_AT_ONCE: bool = false;
}

impl Kind for hs_exec_condition {
    type Owned = Part<Condition>;
    const WORD: u64 = u64::from_le_bytes(*b"execcond");
    const NAME: &'static str = "condition";
    const GOES_AT_ONCE: bool = false;
}

pub(crate) struct OwnedMutex {
    resource: ResourceId,
    /// The number of the run that owns the resource, or 0. The owner alone writes it, so Relaxed does: the executive
    /// orders one owner before the next.
    owner: AtomicU64,
}

impl OwnedMutex {
    /// Returns whether the owner before ended without unlocking.
    fn lock(&self, task: &TaskCtx<'_>, run: u64, limit: Limit) -> Result<bool, CallStatus> {
        if self.owner.load(Ordering::Relaxed) == run {
            return Err(CallStatus::Deadlock);
        }
        task.reserve_unguarded(self.resource, limit)?;
        Ok(self.owner.swap(run, Ordering::Relaxed) != 0)
    }

    fn unlock(&self, task: &TaskCtx<'_>, run: u64) -> Result<(), CallStatus> {
        if self.owner.load(Ordering::Relaxed) != run {
            return Err(CallStatus::NotOwner);
        }
        self.owner.store(0, Ordering::Relaxed);
        Ok(task.release(self.resource)?)
    }

    /// Locks again after a wait, without a limit: breaking the wait off does not break this off.
    fn lock_again(&self, task: &TaskCtx<'_>, run: u64) -> Result<bool, CallStatus> {
        loop {
            match self.lock(task, run, Limit::Forever) {
                Err(CallStatus::Cancelled) => {}
                other => return other,
            }
        }
    }
}

/// Creates a mutex with HS_EXEC_PROTOCOL_…; `ceiling` (0 to 63) is looked at with HS_EXEC_PROTOCOL_CEILING only. From
/// outside before or between runs, and from a task of the executive. Allocates. The mutex is freed with its executive.
/// HS_E_RANGE, HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_mutex_new(
    exec: *mut hs_exec,
    protocol_number: c_int,
    ceiling: c_int,
    mutex: *mut *mut hs_exec_mutex,
) -> c_int {
    make_part(exec, mutex, |site, _| {
        let made = site.resource(protocol(protocol_number, ceiling)?).map_err(|error| failure(error.into()))?;
        Ok(OwnedMutex { resource: made, owner: AtomicU64::new(0) })
    })
}

/// Locks a mutex; waiters get it in the order of their priorities. It does not nest. `abandoned` is 1 if the owner
/// before returned, or was killed, without hs_exec_mutex_unlock(): what the mutex protects may be half changed.
/// `abandoned` may be NULL. For tasks. HS_E_TIMED_OUT (also with HS_EXEC_NO_WAIT), HS_E_DEADLOCK (the caller owns it,
/// or its owner waits for the caller), HS_E_CEILING, HS_E_CANCELLED, HS_E_KILLED, HS_E_NEGATIVE, HS_E_NULL, HS_E_FREED,
/// HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_mutex_lock(mutex: *mut hs_exec_mutex, limit_ns: i64, abandoned: *mut i32) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    let Ok(place) = Place::wanted(abandoned) else { return HS_E_NULL };
    in_task_of(mutex, |task, context, mutex| {
        let left = mutex.lock(task, context.run(), limit)?;
        if let Some(place) = place {
            place.put(i32::from(left));
        }
        Ok(())
    })
}

/// Unlocks a mutex. A more urgent task that waits for it runs before this returns. For tasks. HS_E_NOT_OWNER,
/// HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_mutex_unlock(mutex: *mut hs_exec_mutex) -> c_int {
    in_task_of(mutex, |task, context, mutex| mutex.unlock(task, context.run()))
}

/// Deletes a mutex that no task has locked. It is HS_E_FREED from then on; the memory of the handle is freed with the
/// executive. From anywhere in its executive. HS_E_STATE (a task has it locked), HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_mutex_delete(mutex: *mut hs_exec_mutex) -> c_int {
    anywhere(mutex, |site, mutex| Ok(site.delete_resource(mutex.resource)?))
}

/// Creates a condition. From outside before or between runs, and from a task of the executive. Allocates. The condition
/// is freed with its executive. HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_condition_new(exec: *mut hs_exec, condition: *mut *mut hs_exec_condition) -> c_int {
    make_part(exec, condition, |site, _| site.condition().map_err(|error| failure(error.into())))
}

/// Unlocks the mutex, waits for hs_exec_condition_notify(), and locks the mutex again; `limit_ns` is for the wait
/// alone. No notification that comes after the unlocking is missed. Look again at what was waited for: another task may
/// have been faster. The caller owns the mutex again after HS_OK, HS_E_TIMED_OUT and HS_E_CANCELLED, and after no other
/// code. `abandoned` is as in hs_exec_mutex_lock(), and may be NULL. For tasks. HS_E_NOT_OWNER (the caller does not own
/// the mutex, which stays as it is), HS_E_DEADLOCK and HS_E_CEILING (of the locking), HS_E_KILLED, HS_E_NEGATIVE,
/// HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_condition_wait(
    condition: *mut hs_exec_condition,
    mutex: *mut hs_exec_mutex,
    limit_ns: i64,
    abandoned: *mut i32,
) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    let Ok(place) = Place::wanted(abandoned) else { return HS_E_NULL };
    let mutex = match peek(mutex) {
        Ok(mutex) => mutex,
        Err(failure) => return failure.tell(),
    };
    if current().is_some_and(|context| !mutex.is_of(context.home)) {
        return foreign();
    }
    in_task_of(condition, |task, context, condition| {
        let run = context.run();
        // While the mutex is locked, so that no change is missed.
        let seen = condition.changes(task)?;
        mutex.object.unlock(task, run)?;
        let waited = condition.wait_for_change(task, seen, limit).map_err(CallStatus::from);
        if matches!(waited, Err(CallStatus::Killed)) {
            return waited;
        }
        let left = mutex.object.lock_again(task, run)?;
        if let Some(place) = place {
            place.put(i32::from(left));
        }
        waited
    })
}

/// Lets all tasks go on that wait for a condition; each locks its mutex in turn. From tasks and procedures of the
/// executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_condition_notify(condition: *mut hs_exec_condition) -> c_int {
    in_executive(condition, |site, condition| Ok(condition.notify_all(&site)?))
}

/// Deletes a condition. Tasks that wait for it get HS_E_FREED. It is HS_E_FREED from then on; the memory of the handle
/// is freed with the executive. From anywhere in its executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_condition_delete(condition: *mut hs_exec_condition) -> c_int {
    anywhere(condition, |site, condition| Ok(condition.delete(&site)?))
}
