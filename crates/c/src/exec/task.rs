//! Tasks: created, started, and what they do to themselves and each other.

#![expect(unsafe_code, reason = "functions and stacks of C; names of exported functions")]

use std::ffi::{c_char, c_int, c_void};

use hairspring_exec::{
    Bits, CallSite, CallStatus, Create, Ending, Inspect, Instant, Nanos, Priority, Services, StackMemory, TaskCtx,
    TaskId, TaskOptions, TaskState,
};

use super::context::{
    Argument, Context, Home, Who, create, current, in_task, in_task_with, limit, serve, serve_any, within,
};
use super::executive::{hs_exec, hs_exec_message};
use super::ids::{IdKind, hs_exec_task, id};
use super::outcome::{failure, negative, out_of_range};
use crate::error::{Failure, HS_E_NULL, HS_E_RANGE, door};
use crate::pointer::{Growing, GrowingPlace, Numbers, Place, optional_text, read_growing};

/// Options of a task. With zero in all fields except size, entry and priority, hs_exec_task_start() starts the task.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_exec_task_options {
    /// sizeof(struct hs_exec_task_options): by it a later library recognizes the header of this one.
    pub size: usize,
    /// Its name in reports; NULL: "task". Copied.
    pub name: *const c_char,
    /// The function of the task. It runs once for each start, and returns at the end of the run. `message` is the
    /// message that started the run, or NULL for a task without mailboxes; it lives until the function returns.
    pub entry: Option<extern "C" fn(argument: *mut c_void, message: *const hs_exec_message)>,
    /// Handed to the function.
    pub argument: *mut c_void,
    /// The room of its mailboxes by urgency, in messages. With any, the task is started by hs_exec_send() and by
    /// nothing else.
    pub mailboxes: [u16; 4],
    /// 0, the most urgent, to 63.
    pub priority: i32,
    /// Zero.
    pub reserved: u32,
    /// Its stack in bytes, rounded up to pages, with a guard page below; 0: that of the executive. Less than 16,384
    /// gets as much. With memory in `stack`: the bytes there.
    pub stack_bytes: usize,
    /// 1: each run begins with the threshold in the next field, as after hs_exec_set_threshold(); 0: with none.
    pub has_threshold: i32,
    /// 0 to 63. Looked at if has_threshold is 1.
    pub threshold: i32,
    /// Memory of the program for its stack, readable and writable; NULL: the library's. Its lowest whole page is the
    /// guard page, and what was in it is lost. It is the program's again when hs_exec_task_delete() returns HS_OK, or
    /// with the executive.
    pub stack: *mut c_void,
}

// SAFETY: numbers and pointers; a pointer to a function is not called before it is looked at for NULL.
unsafe impl Numbers for hs_exec_task_options {}

// SAFETY: `repr(C)`, with `size` before the name of the task.
unsafe impl Growing for hs_exec_task_options {
    const NAME: &'static str = "options of a task";
    const FIRST_BYTES: usize = 48;
}

/// Creates a task, idle. From outside before or between runs, and from a task of the executive. Allocates. HS_E_NULL
/// (no entry), HS_E_RANGE (also of a size that is not set, and of memory for the stack without 16,384 bytes above its
/// lowest whole page), HS_E_TOO_MANY (on threads also without memory for the stack; on fibers a stack is allocated at
/// the first start, and one that cannot be is a mishap of the run), HS_E_BUSY (it runs), HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_task_new(
    exec: *mut hs_exec,
    options: *const hs_exec_task_options,
    task: *mut hs_exec_task,
) -> c_int {
    door(|| {
        let (place, options) = (Place::new(task)?, read_growing(options)?);
        let Some(entry) = options.entry else {
            return Err(Failure::new(HS_E_NULL, "create a task: it has no function"));
        };
        let name = optional_text(options.name)?.unwrap_or("task");
        let Some(priority) = u8::try_from(options.priority).ok().and_then(Priority::new) else {
            return Err(Failure::new(HS_E_RANGE, format!("create a task of priority {}: 0 to 63", options.priority)));
        };
        let (argument, wishes) = (Argument::new(options.argument), wishes(&options)?);
        let stack_bytes = Some(options.stack_bytes).filter(|&bytes| bytes != 0);
        create(exec, |site, here| {
            let here = here.with_stack(stack_bytes);
            let created = if options.mailboxes == [0; 4] {
                let mut new = true;
                site.task_with(name, priority, wishes, move |ctx| {
                    run(here, ctx, &mut new, |context| within(context, || entry(argument.pointer(), std::ptr::null())));
                })
            } else {
                let mut new = true;
                let body = move |ctx: &TaskCtx<'_>, mailbox, message: hs_exec_message| {
                    run(here, ctx, &mut new, |context| {
                        context.mailbox = Some(mailbox);
                        within(context, || entry(argument.pointer(), &raw const message));
                    });
                };
                let made = site.mail_task_with(name, priority, options.mailboxes, wishes, body);
                made.map(hairspring_exec::Mailbox::id)
            };
            let created = created.map_err(|error| failure(error.into()))?;
            site.results().begin(created.number());
            place.put(hs_exec_task { id: id(IdKind::Task, here.home, created.number()) });
            Ok(())
        })
    })
}

/// Options of a task beside its name and its priority.
fn wishes(options: &hs_exec_task_options) -> Result<TaskOptions, Failure> {
    let refused = |text: String| Err(Failure::new(HS_E_RANGE, text));
    let mut wishes = TaskOptions::default();
    if !options.stack.is_null() {
        // SAFETY: the header asks the program for memory that is the task's alone until it is deleted.
        let memory = unsafe { StackMemory::from_raw(options.stack.cast(), options.stack_bytes) };
        wishes = wishes.with_stack(memory.map_err(|error| Failure::new(HS_E_RANGE, error.to_string()))?);
    } else if options.stack_bytes != 0 {
        wishes = wishes.with_stack_bytes(options.stack_bytes);
    }
    match (options.has_threshold, u8::try_from(options.threshold).ok().and_then(Priority::new)) {
        (0, _) => Ok(wishes),
        (1, Some(threshold)) => Ok(wishes.with_threshold(threshold)),
        (1, None) => refused(format!("create a task with the threshold {}: 0 to 63", options.threshold)),
        (other, _) => refused(format!("create a task whose has_threshold is {other}: 0 or 1")),
    }
}

/// Runs a task once in a context of its own; `new` is true if it has not run before.
#[inline(always)]
fn run(here: Home, ctx: &TaskCtx<'_>, new: &mut bool, body: impl FnOnce(&mut Context)) {
    if std::mem::take(new) {
        ctx.refuse_when_killed();
    }
    let own = std::ptr::from_ref(ctx).cast::<TaskCtx<'static>>();
    // SAFETY: `ctx` and its executive outlive this function.
    let mut context = unsafe { Context::new(here, Who::Task(own), ctx.caller()) };
    body(&mut context);
}

/// Starts an idle task. A task that is not idle runs again after its run, once for each start. From anywhere in its
/// executive, and from outside between runs. HS_E_OVERFLOW, HS_E_FREED, HS_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_task_start(task: hs_exec_task) -> c_int {
    serve!(task.id, IdKind::Task, |site, number| Ok(site.trigger(TaskId::from_number(number))?))
}

/// Wakes a task from hs_exec_wait(). If it does not wait, one wake is kept for it. From anywhere in its executive.
/// HS_E_OVERFLOW (one is kept already), HS_E_STATE (it is idle), HS_E_FREED, HS_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_wake(task: hs_exec_task) -> c_int {
    serve!(task.id, IdKind::Task, |site, number| Ok(site.wake(TaskId::from_number(number)).map(drop)?))
}

/// Waits for hs_exec_wake(). A wake that came before is taken at once. For tasks. HS_E_TIMED_OUT, HS_E_KILLED,
/// HS_E_NEGATIVE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_wait(limit_ns: i64) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    in_task(|task, _| Ok(task.wait(limit)?))
}

/// Discards a kept wake. For tasks. HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_wake_reset() -> c_int {
    in_task(|task, _| {
        task.wake_reset();
        Ok(())
    })
}

/// Waits for this long, never less; 0 returns at once. For tasks. HS_E_NEGATIVE, HS_E_KILLED, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_delay_ns(span_ns: i64) -> c_int {
    if span_ns < 0 {
        return negative();
    }
    in_task(|task, _| Ok(task.delay(Nanos::new(span_ns))?))
}

/// Waits until the executive's time is `at_ns`, never less; a time that has passed returns at once. For tasks.
/// HS_E_NEGATIVE, HS_E_KILLED, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_delay_until_ns(at_ns: i64) -> c_int {
    if at_ns < 0 {
        return negative();
    }
    in_task(|task, _| Ok(task.delay_until(Instant::from_monotonic(Nanos::new(at_ns)))?))
}

/// Gives the CPU to the other ready tasks of the same priority. For tasks. HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_yield() -> c_int {
    in_task(|task, _| {
        task.yield_now();
        Ok(())
    })
}

/// Serves what is due and lets more urgent tasks run: for long computations on fibers. For tasks. HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_preempt_point() -> c_int {
    in_task(|task, _| {
        task.preempt_point();
        Ok(())
    })
}

/// Uses this much CPU time; in virtual time, lets it pass. More urgent tasks preempt it. For tasks. HS_E_NEGATIVE,
/// HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_work_ns(span_ns: i64) -> c_int {
    if span_ns < 0 {
        return negative();
    }
    in_task(|task, _| {
        task.work(Nanos::new(span_ns));
        Ok(())
    })
}

/// Keeps the floating-point control words of this run apart from those of other code. A task calls it before it changes
/// them. For tasks. HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_keep_control_words() -> c_int {
    in_task(|task, _| {
        task.keep_control_words();
        Ok(())
    })
}

/// The calling task. HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_self(task: *mut hs_exec_task) -> c_int {
    let Ok(place) = Place::new(task) else { return crate::error::HS_E_NULL };
    in_task(|own, context| {
        place.put(hs_exec_task { id: id(IdKind::Task, context.home, own.id().number()) });
        Ok(())
    })
}

/// Suspends a task, or the caller, until hs_exec_task_resume(). On threads another task goes on until its next call.
/// For tasks. HS_E_STATE, HS_E_FREED, HS_E_KILLED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_task_suspend(task: hs_exec_task) -> c_int {
    in_task_with(task.id, IdKind::Task, |own, number| Ok(own.suspend(TaskId::from_number(number))?))
}

/// Resumes a suspended task. From anywhere in its executive. HS_E_STATE, HS_E_FREED, HS_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_task_resume(task: hs_exec_task) -> c_int {
    serve!(task.id, IdKind::Task, |site, number| Ok(site.resume(TaskId::from_number(number))?))
}

/// Sets the priority of a task, 0 to 63; it goes to the end of the list of its new one. For tasks. HS_E_RANGE,
/// HS_E_CEILING, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_task_set_priority(task: hs_exec_task, priority: c_int) -> c_int {
    let Some(priority) = u8::try_from(priority).ok().and_then(Priority::new) else { return out_of_range() };
    in_task_with(task.id, IdKind::Task, |own, number| Ok(own.set_priority(TaskId::from_number(number), priority)?))
}

/// Kills a task: its waits return HS_E_KILLED, and its function must return. It can be started again. A task that kills
/// itself gets HS_E_KILLED from this call. For tasks. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_task_kill(task: hs_exec_task) -> c_int {
    in_task_with(task.id, IdKind::Task, |own, number| Ok(own.kill(TaskId::from_number(number))?))
}

/// Waits until the present run of another task is over, and stores in `how` how it ended: HS_EXEC_RETURNED to
/// HS_EXEC_PANICKED. Returns at once if the task is idle, with HS_EXEC_RETURNED: how earlier runs ended,
/// hs_exec_mishap() returns. `how` may be NULL. For tasks. HS_E_TIMED_OUT, HS_E_DEADLOCK (the caller itself),
/// HS_E_CANCELLED, HS_E_KILLED, HS_E_FREED, HS_E_NEGATIVE, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_task_join(task: hs_exec_task, limit_ns: i64, how: *mut i32) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    let Ok(place) = Place::wanted(how) else { return HS_E_NULL };
    in_task_with(task.id, IdKind::Task, |own, number| {
        let ending = own.wait_for_end(TaskId::from_number(number), limit)?;
        if let Some(place) = place {
            place.put(match ending {
                Ending::Returned => HS_EXEC_RETURNED,
                Ending::Killed => HS_EXEC_KILLED,
                Ending::Panicked => HS_EXEC_PANICKED,
            });
        }
        Ok(())
    })
}

/// Breaks off the wait of another task: its call returns HS_E_CANCELLED. `waited` is 0 if it did not wait, and may be
/// NULL. For tasks. HS_E_STATE (it is idle), HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_task_cancel_wait(task: hs_exec_task, waited: *mut i32) -> c_int {
    let Ok(place) = Place::wanted(waited) else { return HS_E_NULL };
    in_task_with(task.id, IdKind::Task, |own, number| {
        let did = own.cancel_wait(TaskId::from_number(number))?;
        if let Some(place) = place {
            place.put(i32::from(did));
        }
        Ok(())
    })
}

/// The run returned.
pub const HS_EXEC_RETURNED: i32 = 0;
/// The run was killed.
pub const HS_EXEC_KILLED: i32 = 1;
/// The run panicked: a task in Rust.
pub const HS_EXEC_PANICKED: i32 = 2;

/// The task is idle.
pub const HS_EXEC_IDLE: i32 = 0;
/// The task runs, or could if no more urgent one did.
pub const HS_EXEC_READY: i32 = 1;
/// The task waits.
pub const HS_EXEC_WAITING: i32 = 2;
/// The task is dead.
pub const HS_EXEC_DEAD: i32 = 3;

/// A task as it is now.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_exec_task_info {
    /// sizeof(struct hs_exec_task_info), set by the caller.
    pub size: usize,
    /// HS_EXEC_IDLE to HS_EXEC_DEAD.
    pub state: i32,
    /// 1 if it is suspended.
    pub suspended: i32,
    /// 1 if it was killed and has not returned yet.
    pub killed: i32,
    /// Its own priority.
    pub priority: i32,
    /// The priority that it runs at: its own, or a more urgent one because of a resource.
    pub effective: i32,
    /// Starts that are pending.
    pub starts: u32,
    /// Messages that wait in its mailboxes.
    pub messages: u64,
    /// When its wait ends by time, or -1.
    pub wait_ends_ns: i64,
}

// SAFETY: a size, flags, counts and a time: each pattern of bits is one.
unsafe impl Numbers for hs_exec_task_info {}

// SAFETY: `repr(C)`, with `size` before the state of the task.
unsafe impl Growing for hs_exec_task_info {
    const NAME: &'static str = "an account of a task";
    const FIRST_BYTES: usize = 48;
}

/// Returns the state of a task. From anywhere in its executive, and from outside between runs. HS_E_RANGE (the size is
/// not set), HS_E_NULL, HS_E_FREED, HS_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_task_look(task: hs_exec_task, info: *mut hs_exec_task_info) -> c_int {
    let place = match GrowingPlace::new(info) {
        Ok(place) => place,
        Err(failure) => return failure.tell(),
    };
    serve_any(task.id, IdKind::Task, &|site, number| {
        let found = site.task_info(TaskId::from_number(number)).ok_or(CallStatus::NoSuchObject)?;
        place.put(hs_exec_task_info {
            size: size_of::<hs_exec_task_info>(),
            state: match found.state {
                TaskState::Ready => HS_EXEC_READY,
                TaskState::Waiting => HS_EXEC_WAITING,
                TaskState::Dead => HS_EXEC_DEAD,
                TaskState::Idle | TaskState::Deleted => HS_EXEC_IDLE,
            },
            suspended: i32::from(found.suspended),
            killed: i32::from(found.killed),
            priority: found.priority.number().into(),
            effective: found.effective.number().into(),
            starts: found.starts.into(),
            messages: found.messages as u64,
            wait_ends_ns: found.wait_ends.map_or(-1, |ends| ends.as_monotonic().count()),
        });
        Ok(())
    })
}

/// Deletes an idle task; its id is refused from then on. For tasks. HS_E_STATE (it is in the middle of a run),
/// HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_task_delete(task: hs_exec_task) -> c_int {
    in_task_with(task.id, IdKind::Task, |own, number| {
        own.delete_task(TaskId::from_number(number))?;
        if let Some(context) = current() {
            context.results().end(number);
        }
        Ok(())
    })
}

/// In `how` of a wait for bits: all of them, not any.
pub const HS_EXEC_ALL: c_int = 1;
/// In `how` of a wait for the bits of a group: clear those that ended the wait.
pub const HS_EXEC_TAKE: c_int = 2;

/// The bits of a wait, from C.
pub(super) fn bits(bits: u32, how: c_int) -> Option<Bits> {
    (how & !(HS_EXEC_ALL | HS_EXEC_TAKE) == 0).then_some(if how & HS_EXEC_ALL == 0 {
        Bits::Any(bits)
    } else {
        Bits::All(bits)
    })
}

/// Sets signal bits of a task. From anywhere in its executive. HS_E_STATE (it is idle), HS_E_FREED, HS_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_signal(task: hs_exec_task, bits: u32) -> c_int {
    serve!(task.id, IdKind::Task, |site, number| Ok(site.signal(TaskId::from_number(number), bits)?))
}

/// Waits for any of these signals of the caller, or with HS_EXEC_ALL in `how` for all, and clears them. `came` may be
/// NULL. For tasks. HS_E_TIMED_OUT, HS_E_RANGE (no bits), HS_E_KILLED, HS_E_NEGATIVE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_signals_wait(mask: u32, how: c_int, limit_ns: i64, came: *mut u32) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    let Some(bits) = bits(mask, how) else { return out_of_range() };
    let Ok(place) = Place::wanted(came) else { return crate::error::HS_E_NULL };
    in_task(|task, _| {
        let got = task.wait_signals(bits, limit)?;
        if let Some(place) = place {
            place.put(got);
        }
        Ok(())
    })
}
