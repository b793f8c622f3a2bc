//! Timers: procedures that run above all tasks, at their times.

#![expect(unsafe_code, reason = "functions of C; names of exported functions")]

use std::ffi::{c_char, c_int, c_void};

use hairspring_exec::{CallSite, Create, Expiry, Instant, Nanos, Services, TimerCtx, TimerId};

use super::context::{Argument, Context, Who, create, serve, serve_any, within};
use super::executive::hs_exec;
use super::ids::{IdKind, hs_exec_timer, id};
use super::outcome::{failure, negative};
use crate::error::{Failure, HS_E_NULL, door};
use crate::pointer::{Place, optional_text};

/// Why a timer procedure runs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_exec_expiry {
    /// When the timer was due.
    pub deadline_ns: i64,
    /// Expirations before this one that had no run of their own.
    pub missed: u64,
    /// All that it missed since it was started.
    pub overruns: u64,
}

/// Creates a timer, stopped. Its procedure runs above all tasks, must be short, and may make the calls that are for
/// anywhere; `expiry` lives until it returns. From outside before or between runs, and from a task of the executive.
/// `name` may be NULL. Allocates. HS_E_NULL, HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_timer_new(
    exec: *mut hs_exec,
    name: *const c_char,
    procedure: Option<extern "C" fn(argument: *mut c_void, expiry: *const hs_exec_expiry)>,
    argument: *mut c_void,
    timer: *mut hs_exec_timer,
) -> c_int {
    door(|| {
        let place = Place::new(timer)?;
        let name = optional_text(name)?.unwrap_or("timer");
        let Some(procedure) = procedure else {
            return Err(Failure::new(HS_E_NULL, "create a timer: it has no procedure"));
        };
        let argument = Argument::new(argument);
        create(exec, |site, here| {
            let body = move |ctx: &TimerCtx<'_>, expiry: Expiry| {
                let own = std::ptr::from_ref(ctx).cast::<TimerCtx<'static>>();
                // SAFETY: `ctx` and its executive outlive this function.
                let context = unsafe { Context::new(here, Who::Timer(own), ctx.caller()) };
                let Expiry { deadline, missed, overruns } = expiry;
                let expiry = hs_exec_expiry { deadline_ns: deadline.as_monotonic().count(), missed, overruns };
                within(&context, || procedure(argument.pointer(), &raw const expiry));
            };
            let made = site.timer(name, body).map_err(|error| failure(error.into()))?;
            place.put(hs_exec_timer { id: id(IdKind::Timer, here.home, made.number()) });
            Ok(())
        })
    })
}

/// Starts a timer that expires once, when the executive's time is `at_ns`. From anywhere in its executive.
/// HS_E_NEGATIVE, HS_E_FREED, HS_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_timer_start_ns(timer: hs_exec_timer, at_ns: i64) -> c_int {
    if at_ns < 0 {
        return negative();
    }
    serve!(timer.id, IdKind::Timer, |site, number| {
        Ok(site.start_timer(TimerId::from_number(number), Instant::from_monotonic(Nanos::new(at_ns)))?)
    })
}

/// Starts a timer that expires at `first_ns` and then once per period (1 or more), without drift. From anywhere in its
/// executive. HS_E_NEGATIVE, HS_E_RANGE, HS_E_FREED, HS_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_timer_start_periodic_ns(timer: hs_exec_timer, first_ns: i64, period_ns: i64) -> c_int {
    if first_ns < 0 {
        return negative();
    }
    serve!(timer.id, IdKind::Timer, |site, number| {
        let first = Instant::from_monotonic(Nanos::new(first_ns));
        Ok(site.start_periodic(TimerId::from_number(number), first, Nanos::new(period_ns))?)
    })
}

/// Stops a timer, if it runs. From anywhere in its executive. HS_E_FREED, HS_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_timer_stop(timer: hs_exec_timer) -> c_int {
    serve!(timer.id, IdKind::Timer, |site, number| Ok(site.stop_timer(TimerId::from_number(number)).map(drop)?))
}

/// Deletes a timer; its id is refused from then on. From anywhere in its executive, also from its own procedure.
/// HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_timer_delete(timer: hs_exec_timer) -> c_int {
    serve_any(timer.id, IdKind::Timer, &|site, number| Ok(site.delete_timer(TimerId::from_number(number))?))
}
