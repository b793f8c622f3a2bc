//! The life of an executive: made, run, freed.

#![expect(unsafe_code, reason = "contexts of the running code; names of exported functions")]

use std::ffi::{CString, c_char, c_int};
use std::sync::atomic::{AtomicU32, Ordering};

use hairspring_exec::{
    Backend, Cpu, CpuSet, ExecConfig, ExecError, Executive, Finish, Misfortune, Nanos, Policy, RunLimit, Services,
    StopReason, ThreadProfile,
};

use super::context::{self, Who, current, disown, in_task, not_within, notice_forks, outside, own};
use super::executive::{OwnedExec, hs_exec, hs_exec_message};
use super::ids::{HOMES, IdKind, hs_exec_task, id};
use super::outcome::not_here;
use crate::error::{Failure, HS_E_NEGATIVE, HS_E_NOT_FOUND, HS_E_RANGE, HS_E_REFUSED, HS_OK, door};
use crate::handle::{Alone, free, make};
use crate::host::Uncancelled;
use crate::pointer::{Growing, GrowingPlace, Numbers, Place, read_growing};

/// Fibers on the calling thread: a switch takes nanoseconds, and happens in calls only.
pub const HS_EXEC_FIBERS: i32 = 0;
/// A thread of the kernel for each task, all on one CPU: a task is preempted anywhere.
pub const HS_EXEC_THREADS_UP: i32 = 1;
/// A thread of the kernel for each task, on all CPUs.
pub const HS_EXEC_THREADS_SMP: i32 = 2;
/// Virtual time: each run is the same to the nanosecond. For tests.
pub const HS_EXEC_SIM: i32 = 3;

/// A limit: do not wait.
pub const HS_EXEC_NO_WAIT: i64 = 0;
/// A limit: wait for as long as it takes.
pub const HS_EXEC_FOREVER: i64 = i64::MAX;

/// A run ended because it was asked to.
pub const HS_EXEC_ASKED: i32 = 0;
/// A run ended because its time was up.
pub const HS_EXEC_TIME_UP: i32 = 1;
/// A run ended because nothing could happen any more: all tasks are idle.
pub const HS_EXEC_FINISHED: i32 = 2;
/// A run ended because some task waits and nothing can end its wait.
pub const HS_EXEC_STUCK: i32 = 3;

/// The caller is outside of the executives' tasks and procedures.
pub const HS_EXEC_BY_OUTSIDE: c_int = 0;
/// The caller is a task.
pub const HS_EXEC_BY_TASK: c_int = 1;
/// The caller is a timer procedure.
pub const HS_EXEC_BY_TIMER: c_int = 2;
/// The caller is an interrupt procedure.
pub const HS_EXEC_BY_INTERRUPT: c_int = 3;

/// Options of an executive. Zero in all fields except size, and a cpu of -1, select fibers and the default sizes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_exec_options {
    /// sizeof(struct hs_exec_options): by it a later library recognizes the header of this one.
    pub size: usize,
    /// HS_EXEC_FIBERS to HS_EXEC_SIM.
    pub backend: i32,
    /// The CPU of fibers and of HS_EXEC_THREADS_UP; negative: any for fibers, the last one for threads.
    pub cpu: i32,
    /// With fibers the HS_POLICY_… of the calling thread during a run; HS_POLICY_KEEP stands for HS_POLICY_OTHER.
    pub policy: i32,
    /// 1 to 99 with HS_POLICY_FIFO and HS_POLICY_ROUND_ROBIN.
    pub priority: i32,
    /// The most messages in all mailboxes and exchanges together, up to 65,534; 0: 1,024.
    pub envelopes: u32,
    /// Zero.
    pub reserved: u32,
    /// The stack of each task, at least 4,096, with a guard page below; 0: 65,536.
    pub stack_bytes: usize,
    /// The CPU time that a task may use without a call before it loses its real-time priority; 0: 1 s; negative: no
    /// limit.
    pub watchdog_ns: i64,
    /// The time slice among ready tasks of equal priority, at least 100,000; 0: a task keeps the CPU until it waits,
    /// yields or returns. On fibers a slice ends at the first call after it.
    pub slice_ns: i64,
    /// 1: count the CPU time and the switches of each task for hs_exec_task_measure(); 0: do not. On fibers and in
    /// virtual time it costs a reading of the clock in each call. On threads the system counts them anyway.
    pub measure_usage: i32,
    /// Zero.
    pub padding: u32,
}

// SAFETY: numbers.
unsafe impl Numbers for hs_exec_options {}

// SAFETY: `repr(C)`, with `size` before the back-end.
unsafe impl Growing for hs_exec_options {
    const NAME: &'static str = "options of an executive";
    const FIRST_BYTES: usize = 48;
}

/// The report of a run.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_exec_finish {
    /// sizeof(struct hs_exec_finish), set by the caller.
    pub size: usize,
    /// HS_EXEC_ASKED to HS_EXEC_STUCK.
    pub stopped: i32,
    /// Whether strict priority held: 1, or 0 if the system refused real-time priority or a CPU.
    pub strict: i32,
    /// Number of mishaps; hs_exec_mishap() returns the first 64 or more.
    pub mishaps: u64,
    /// Interrupts that found their ring full and were lost.
    pub interrupts_lost: u64,
    /// Periods of timers that passed without a run of their procedure.
    pub timer_overruns: u64,
    /// The longest time that a procedure kept the CPU, if the watchdog did not allow it; else 0. On fibers.
    pub procedure_ran_away_ns: i64,
}

// SAFETY: numbers.
unsafe impl Numbers for hs_exec_finish {}

// SAFETY: `repr(C)`, with `size` before the reason of the end.
unsafe impl Growing for hs_exec_finish {
    const NAME: &'static str = "a report of a run";
    const FIRST_BYTES: usize = 48;
}

fn failed(error: ExecError) -> Failure {
    let code = if matches!(error, ExecError::ExecConfig(_)) { HS_E_RANGE } else { HS_E_REFUSED };
    Failure::new(code, error.to_string())
}

fn backend(options: &hs_exec_options) -> Result<Backend, Failure> {
    use crate::real_time::{HS_POLICY_FIFO, HS_POLICY_KEEP, HS_POLICY_OTHER, HS_POLICY_ROUND_ROBIN};
    let cpu = u32::try_from(options.cpu).ok().map(Cpu);
    let priority = || {
        u8::try_from(options.priority)
            .ok()
            .filter(|priority| (1..=99).contains(priority))
            .ok_or_else(|| Failure::new(HS_E_RANGE, "make an executive: the priority of its thread must be 1 to 99"))
    };
    Ok(match options.backend {
        HS_EXEC_FIBERS => {
            let policy = match options.policy {
                HS_POLICY_KEEP | HS_POLICY_OTHER => Policy::Other,
                HS_POLICY_FIFO => Policy::Fifo(priority()?),
                HS_POLICY_ROUND_ROBIN => Policy::RoundRobin(priority()?),
                _ => return Err(Failure::new(HS_E_RANGE, "make an executive: unknown policy")),
            };
            Backend::Fiber { cpu, policy }
        }
        HS_EXEC_THREADS_UP => Backend::Thread(ThreadProfile::Up { cpu }),
        HS_EXEC_THREADS_SMP => Backend::Thread(ThreadProfile::Smp { cpus: CpuSet::default() }),
        HS_EXEC_SIM => Backend::sim(),
        other => {
            return Err(Failure::new(HS_E_RANGE, format!("make an executive on back-end {other}: write 0 to 3")));
        }
    })
}

/// Makes an executive. `options` may be NULL: fibers. Free it with hs_exec_free() in the same thread. From a task of
/// another executive, too. HS_E_RANGE (also of a size that is not set), HS_E_NEGATIVE (of the time slice), HS_E_REFUSED
/// (no threads or memory; or a shadow stack, which threads alone work with).
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_new(options: *const hs_exec_options, exec: *mut *mut hs_exec) -> c_int {
    static MADE: AtomicU32 = AtomicU32::new(0);
    door(|| {
        let place = Place::new(exec)?;
        let (mut config, mut chosen) = (ExecConfig::default(), Backend::fiber());
        if !options.is_null() {
            let options = read_growing(options)?;
            chosen = backend(&options)?;
            if options.envelopes != 0 {
                config.envelopes = u16::try_from(options.envelopes).unwrap_or(u16::MAX);
            }
            if options.stack_bytes != 0 {
                config.stack_bytes = options.stack_bytes;
            }
            match options.watchdog_ns {
                0 => {}
                ns => config.watchdog = Nanos::new(ns.max(0)),
            }
            config.slice = match options.slice_ns {
                0 => None,
                ns if ns < 0 => {
                    return Err(Failure::new(HS_E_NEGATIVE, "make an executive: the time slice is negative"));
                }
                ns => Some(Nanos::new(ns)),
            };
            config.measure_usage = match options.measure_usage {
                measure @ (0 | 1) => measure == 1,
                other => {
                    let text = format!("make an executive whose measure_usage is {other}: 0 or 1");
                    return Err(Failure::new(HS_E_RANGE, text));
                }
            };
        }
        config.message_bytes = size_of::<hs_exec_message>();
        notice_forks()?;
        let stack_bytes = (!matches!(chosen, Backend::Thread(_))).then_some(config.stack_bytes);
        let executive = Executive::new(chosen, &config).map_err(failed)?;
        // Relaxed: only uniqueness matters.
        let home = MADE.fetch_add(1, Ordering::Relaxed) % HOMES + 1;
        let handle = make::<hs_exec>(OwnedExec::new(executive, home, stack_bytes));
        own(home, handle);
        place.put(handle);
        Ok(())
    })
}

/// Runs the tasks until hs_exec_stop(), for `limit_ns` (HS_EXEC_FOREVER: no limit), or until nothing can happen any
/// more. Blocks. Tasks in the middle of a run are killed at the end: their calls return HS_E_KILLED, and they must
/// return. Tasks and objects stay for another run. `finish` may be NULL. From outside, in the thread that made it.
/// HS_E_NEGATIVE, HS_E_THREAD, HS_E_BUSY (it runs), HS_E_RANGE (the size in `finish` is not set).
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_run(exec: *mut hs_exec, limit_ns: i64, finish: *mut hs_exec_finish) -> c_int {
    door(|| {
        let place = GrowingPlace::wanted(finish)?;
        let limit = match limit_ns {
            HS_EXEC_FOREVER => RunLimit::Forever,
            ns if ns < 0 => return Err(Failure::new(HS_E_NEGATIVE, "run an executive: the limit is negative")),
            ns => RunLimit::For(Nanos::new(ns)),
        };
        let mut owned = Alone::of(exec)?;
        owned.is_own()?;
        let uncancelled = Uncancelled::new();
        let report = outside(|| owned.executive().run(limit));
        drop(uncancelled);
        let told = hs_exec_finish {
            size: size_of::<hs_exec_finish>(),
            stopped: match report.stopped {
                StopReason::Asked => HS_EXEC_ASKED,
                StopReason::TimeUp => HS_EXEC_TIME_UP,
                StopReason::Finished => HS_EXEC_FINISHED,
                StopReason::Stuck => HS_EXEC_STUCK,
            },
            strict: i32::from(report.strict),
            mishaps: 0,
            interrupts_lost: report.interrupts_lost,
            timer_overruns: report.timer_overruns,
            procedure_ran_away_ns: report.procedure_ran_away.map_or(0, Nanos::count),
        };
        let home = owned.home;
        owned.mishaps = mishaps(&report, home);
        if let Some(place) = place {
            place.put(hs_exec_finish { mishaps: owned.mishaps.len() as u64 + report.more_mishaps, ..told });
        }
        Ok(())
    })
}

/// The mishaps of a run, in words.
fn mishaps(report: &Finish, home: u32) -> Vec<(hs_exec_task, CString)> {
    let text = |text: String| CString::new(text.replace('\0', " ")).unwrap_or_default();
    let tasks = report.mishaps.iter().map(|mishap| {
        let what = match &mishap.what {
            Misfortune::Ended(how, why) if why.is_empty() => format!("{how:?}").to_lowercase(),
            Misfortune::Ended(how, why) => format!("{}: {why}", format!("{how:?}").to_lowercase()),
            Misfortune::HeldResources => "returned while it owned resources".to_owned(),
            Misfortune::RanAway(time) => format!("computed for {} ns without a call", time.count()),
        };
        let task = hs_exec_task { id: id(IdKind::Task, home, mishap.task.number()) };
        (task, text(format!("{}: {what}", mishap.name)))
    });
    let sources = report.sources.iter().map(|trouble| {
        let ended = trouble.ended.as_ref().map(|why| format!("; it ended: {why}")).unwrap_or_default();
        let what = format!("{}: {} arrivals lost, {} reads failed{ended}", trouble.name, trouble.lost, trouble.errors);
        (hs_exec_task { id: 0 }, text(what))
    });
    let refused = report.refused.iter().map(|refused| (hs_exec_task { id: 0 }, text(refused.to_string())));
    tasks.chain(sources).chain(refused).collect()
}

/// One thing that went wrong in the latest run, from 0: a task that was killed, returned as an owner or ran away; an
/// interrupt source that lost arrivals; a setting that the system refused. `task` is all zero if it is not about a
/// task; it may be NULL. The text lives until the next run. HS_E_NOT_FOUND after the last.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_mishap(
    exec: *const hs_exec,
    index: usize,
    task: *mut hs_exec_task,
    text: *mut *const c_char,
) -> c_int {
    door(|| {
        let (task, place) = (Place::wanted(task)?, Place::new(text)?);
        let owned = Alone::of(exec)?;
        owned.is_own()?;
        let Some((whose, what)) = owned.mishaps.get(index) else {
            return Err(Failure::new(
                HS_E_NOT_FOUND,
                format!("find mishap {index}: there are {}", owned.mishaps.len()),
            ));
        };
        if let Some(task) = task {
            task.put(*whose);
        }
        place.put(what.as_ptr());
        Ok(())
    })
}

/// Ends the run. From a task, which then must return; from a timer or interrupt procedure. HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_stop() -> c_int {
    match current().map(|context| context.who) {
        Some(Who::Task(_)) => in_task(|task, _| {
            task.stop();
            Ok(())
        }),
        Some(Who::Timer(timer)) => {
            // SAFETY: a context's own context lives as long as it does.
            unsafe { &*timer }.stop();
            HS_OK
        }
        Some(Who::Interrupt(isp)) => {
            // SAFETY: the same holds for the context of an interrupt procedure.
            unsafe { &*isp }.stop();
            HS_OK
        }
        None => not_here(),
    }
}

/// Returns the kind of the caller, HS_EXEC_BY_OUTSIDE to HS_EXEC_BY_INTERRUPT. From anywhere.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_by() -> c_int {
    match current().map(|context| context.who) {
        None => HS_EXEC_BY_OUTSIDE,
        Some(Who::Task(_)) => HS_EXEC_BY_TASK,
        Some(Who::Timer(_)) => HS_EXEC_BY_TIMER,
        Some(Who::Interrupt(_)) => HS_EXEC_BY_INTERRUPT,
    }
}

/// The time of the caller's executive: CLOCK_MONOTONIC, or virtual time with HS_EXEC_SIM. From outside:
/// CLOCK_MONOTONIC.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_now_ns() -> i64 {
    use hairspring_machine::Machine;
    let now = match current() {
        Some(context) => context.site().now(),
        None => hairspring_machine::Host.monotonic(),
    };
    now.as_monotonic().count()
}

/// The time of day of the caller's executive, in ns since 1970 (UTC): CLOCK_REALTIME, or virtual time with HS_EXEC_SIM.
/// From outside: CLOCK_REALTIME. It can be set; spans are those of hs_exec_now_ns().
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_time_of_day_ns() -> i64 {
    use hairspring_machine::{Clock, Host, Machine};
    match current() {
        Some(context) => super::part::day_timer::unix_nanos(context.site().time_of_day()),
        None => Host.read(Clock::Realtime).count(),
    }
}

/// Frees an executive with all its tasks and objects. From outside, in the thread that made it. NULL is allowed.
/// HS_E_FREED, HS_E_BUSY (it runs), HS_E_THREAD, HS_E_CALLER (a task calls).
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_free(exec: *mut hs_exec) -> c_int {
    door(|| {
        if exec.is_null() {
            return Ok(());
        }
        not_within()?;
        Alone::of(exec)?.is_own()?;
        disown(exec);
        context::outside(|| free(exec))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fibers_with_a_shadow_stack_are_refused_with_a_sentence_of_their_own() {
        let refused = failed(ExecError::ShadowStack);
        assert!(format!("{refused:?}").contains("shadow stack"), "{refused:?}");
        assert_eq!(refused.tell(), HS_E_REFUSED);
    }
}
