//! Day timers: procedures that run above all tasks, at times of day.

#![expect(unsafe_code, reason = "functions of C; names of exported functions")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::{c_char, c_int, c_void};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hairspring_exec::{CallSite, Create, DayExpiry, DayTimer, Nanos, Services, TimerCtx};

use super::{Part, anywhere, make_part};
use crate::error::{Failure, HS_E_NULL};
use crate::exec::context::{Argument, Context, Who, within};
use crate::exec::executive::hs_exec;
use crate::exec::outcome::{failure, negative};
use crate::handle::Kind;
use crate::pointer::optional_text;

/// A timer on the time of day. Lives as long as its executive.
pub struct hs_exec_day_timer(());

impl Kind for hs_exec_day_timer {
    type Owned = Part<DayTimer>;
    const WORD: u64 = u64::from_le_bytes(*b"execdayt");
    const NAME: &'static str = "day timer";
    const GOES_AT_ONCE: bool = false;
}

/// Why the procedure of a day timer runs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_exec_day_expiry {
    /// When it was due, in ns since 1970 (UTC); the last time, if more than one has passed.
    pub due_unix_ns: i64,
    /// How late it is, by the clock of the time of day.
    pub late_ns: i64,
    /// How far that clock was set forward, or back (negative), since the start of the timer or its last run, at least;
    /// a suspend counts, too. 0: no step was seen.
    pub stepped_ns: i64,
    /// Expirations before this one that had no run of their own.
    pub missed: u64,
    /// All that it missed since it was started.
    pub overruns: u64,
}

/// The procedure of a day timer.
type Procedure = extern "C" fn(argument: *mut c_void, expiry: *const hs_exec_day_expiry);

/// Creates a timer on the time of day (CLOCK_REALTIME), stopped. Its procedure runs above all tasks, must be short, and
/// may make the calls that are for anywhere; `expiry` lives until it returns. From outside before or between runs, and
/// from a task of the executive. `name` may be NULL. Allocates. The timer is freed with its executive. HS_E_NULL,
/// HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_day_timer_new(
    exec: *mut hs_exec,
    name: *const c_char,
    procedure: Option<extern "C" fn(argument: *mut c_void, expiry: *const hs_exec_day_expiry)>,
    argument: *mut c_void,
    timer: *mut *mut hs_exec_day_timer,
) -> c_int {
    let argument = Argument::new(argument);
    make_part(exec, timer, |site, here| {
        let name = optional_text(name)?.unwrap_or("day timer");
        let procedure: Procedure =
            procedure.ok_or_else(|| Failure::new(HS_E_NULL, "create a day timer: it has no procedure"))?;
        let body = move |ctx: &TimerCtx<'_>, expiry: DayExpiry| {
            let own = std::ptr::from_ref(ctx).cast::<TimerCtx<'static>>();
            // SAFETY: the executive lends `ctx` to this procedure until it returns, and does not end before.
            let context = unsafe { Context::new(here, Who::Timer(own), ctx.caller()) };
            let DayExpiry { due, late, stepped, missed, overruns } = expiry;
            let expiry = hs_exec_day_expiry {
                due_unix_ns: unix_nanos(due),
                late_ns: late.count(),
                stepped_ns: stepped.count(),
                missed,
                overruns,
            };
            within(&context, || procedure(argument.pointer(), &raw const expiry));
        };
        site.day_timer(name, body).map_err(|error| failure(error.into()))
    })
}

/// Starts a day timer, or starts it anew: it expires when the clock of the time of day shows `first_unix_ns` (ns since
/// 1970, UTC), and then once per period; a period of 0: once. A time that has passed comes at once. It is never early
/// by that clock. A clock that is set back makes it wait; one that is set forward past the time lets it expire within a
/// second. From anywhere in its executive. HS_E_NEGATIVE, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_day_timer_start_ns(
    timer: *mut hs_exec_day_timer,
    first_unix_ns: i64,
    period_ns: i64,
) -> c_int {
    if first_unix_ns < 0 || period_ns < 0 {
        return negative();
    }
    let first = UNIX_EPOCH + Duration::from_nanos(first_unix_ns.unsigned_abs());
    anywhere(timer, |site, timer| match period_ns {
        0 => Ok(timer.start(&site, first)?),
        _ => Ok(timer.start_periodic(&site, first, Nanos::new(period_ns))?),
    })
}

/// Stops a day timer, if it runs. From anywhere in its executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_day_timer_stop(timer: *mut hs_exec_day_timer) -> c_int {
    anywhere(timer, |site, timer| Ok(timer.stop(&site).map(drop)?))
}

/// Deletes a day timer, also from its own procedure. It is HS_E_FREED from then on; the memory of the handle is freed
/// with the executive. From anywhere in its executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_day_timer_delete(day_timer: *mut hs_exec_day_timer) -> c_int {
    anywhere(day_timer, |site, day_timer| Ok(site.delete_timer(day_timer.timer())?))
}

/// Nanoseconds since 1970; the end of the range for times that it does not reach.
pub(in crate::exec) fn unix_nanos(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).map(|since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX));
    since.unwrap_or_else(|before| -i64::try_from(before.duration().as_nanos()).unwrap_or(i64::MAX))
}
