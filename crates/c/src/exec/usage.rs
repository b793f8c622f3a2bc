//! Resources that a task has used: CPU time, switches, and its stack.

#![expect(unsafe_code, reason = "names of exported functions; a structure of C that is numbers")]

use std::ffi::c_int;

use hairspring_exec::{CallStatus, Inspect, TaskId};

use super::context::serve_any;
use super::ids::{IdKind, hs_exec_task};
use crate::pointer::{Growing, GrowingPlace, Numbers};

/// CPU time and stack that a task has used since it was created. -1 in a field: not known.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_exec_task_usage {
    /// sizeof(struct hs_exec_task_usage), set by the caller.
    pub size: usize,
    /// The time for which it had the CPU. On fibers and in virtual time with the procedures that its calls served; -1
    /// there, unless hs_exec_options.measure_usage is 1.
    pub cpu_ns: i64,
    /// How often it was given the CPU; on threads, how often its thread left it. -1 as above.
    pub switches: i64,
    /// The size of its stack, on threads with what the library needs of it; -1 before its first run.
    pub stack_bytes: i64,
    /// The most of it that was ever used, to the page; -1 before its first run. A page that the system has swapped out
    /// does not count.
    pub stack_used_bytes: i64,
}

// SAFETY: a size, times and counts: each pattern of bits is one.
unsafe impl Numbers for hs_exec_task_usage {}

// SAFETY: `repr(C)`, with `size` before the CPU time.
unsafe impl Growing for hs_exec_task_usage {
    const NAME: &'static str = "an account of what a task has used";
    const FIRST_BYTES: usize = 40;
}

/// Returns the CPU time and the stack that a task has used. Makes system calls: one for each 64 pages of the stack.
/// From anywhere in its executive, and from outside between runs. HS_E_RANGE (the size is not set), HS_E_NULL,
/// HS_E_FREED, HS_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_task_measure(task: hs_exec_task, usage: *mut hs_exec_task_usage) -> c_int {
    let place = match GrowingPlace::new(usage) {
        Ok(place) => place,
        Err(failure) => return failure.tell(),
    };
    serve_any(task.id, IdKind::Task, &|site, number| {
        let task = TaskId::from_number(number);
        site.task_info(task).ok_or(CallStatus::NoSuchObject)?;
        let (used, stack) = (site.task_usage(task), site.stack_use(task));
        let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        place.put(hs_exec_task_usage {
            size: size_of::<hs_exec_task_usage>(),
            cpu_ns: used.map_or(-1, |used| used.cpu.count()),
            switches: used.map_or(-1, |used| count(used.switches)),
            stack_bytes: stack.map_or(-1, |stack| count(stack.bytes as u64)),
            stack_used_bytes: stack.map_or(-1, |stack| count(stack.used_bytes as u64)),
        });
        Ok(())
    })
}
