//! Preemption thresholds, and the scheduler's lock.
//!
//! The lock is the threshold 0 with a count. The last unlock restores the threshold from before the first lock, so a
//! threshold that is set meanwhile is kept for then.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]

use std::cell::Cell;
use std::ffi::c_int;

use hairspring_exec::{CallStatus, Priority};

use super::context::{Who, current, in_task};
use super::outcome::out_of_range;
use crate::error::{HS_E_NULL, HS_E_STATE, say};
use crate::pointer::Place;

/// In hs_exec_set_threshold(): any more urgent task preempts the caller.
pub const HS_EXEC_NO_THRESHOLD: c_int = 63;

/// How often a run has locked the scheduler, and its threshold beneath.
pub(super) struct SchedulerLock {
    times: Cell<u32>,
    beneath: Cell<Priority>,
}

impl Default for SchedulerLock {
    fn default() -> Self {
        Self { times: Cell::new(0), beneath: Cell::new(Priority::LOWEST) }
    }
}

/// Lets only tasks more urgent than `priority` (0 to 63) preempt the calling task, until it sets another threshold or
/// its run ends; HS_EXEC_NO_THRESHOLD: any more urgent task. `before` gets the threshold that was in force, and may be
/// NULL. While the scheduler is locked by the caller, the threshold takes effect at the last unlock. Procedures run as
/// ever. While the task waits, other tasks run; it is ready again at its threshold, if that is more urgent than its
/// priority. On several CPUs the others run on. For tasks. HS_E_RANGE, HS_E_NULL, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_set_threshold(priority: c_int, before: *mut c_int) -> c_int {
    let Some(priority) = u8::try_from(priority).ok().and_then(Priority::new) else { return out_of_range() };
    let Ok(place) = Place::wanted(before) else { return HS_E_NULL };
    in_task(|task, context| {
        let former = match context.lock.times.get() {
            0 => task.set_threshold(priority),
            _ => context.lock.beneath.replace(priority),
        };
        if let Some(place) = place {
            place.put(former.number().into());
        }
        Ok(())
    })
}

/// Lets no other task preempt the calling task, until hs_exec_scheduler_unlock() or the end of its run. Locks nest:
/// each needs its unlock. Procedures run as ever. While the task waits, other tasks run. On several CPUs the others run
/// on. For tasks. HS_E_OVERFLOW (locked 4,294,967,295 times), HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_scheduler_lock() -> c_int {
    in_task(|task, context| {
        let lock = &context.lock;
        let times = lock.times.get().checked_add(1).ok_or(CallStatus::Overflow)?;
        if times == 1 {
            lock.beneath.set(task.set_threshold(Priority::HIGHEST));
        }
        lock.times.set(times);
        Ok(())
    })
}

/// Undoes one hs_exec_scheduler_lock(). With the last, more urgent tasks that became ready meanwhile run before this
/// returns. For tasks. HS_E_STATE (this run has not locked the scheduler), HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_scheduler_unlock() -> c_int {
    if current().is_some_and(|context| matches!(context.who, Who::Task(_)) && context.lock.times.get() == 0) {
        return say(HS_E_STATE, c"failed to unlock the scheduler: this run of the task has not locked it");
    }
    in_task(|task, context| {
        let lock = &context.lock;
        lock.times.set(lock.times.get() - 1);
        if lock.times.get() == 0 {
            task.set_threshold(lock.beneath.get());
        }
        Ok(())
    })
}
