//! Interrupts: procedures that threads, signal handlers and descriptors set off.

#![expect(unsafe_code, reason = "functions and descriptors of C; names of exported functions")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::{c_char, c_int, c_void};
use std::os::fd::{BorrowedFd, OwnedFd};

use hairspring_exec::{Arrival, CallSite, InterruptSource, Isp, IspCtx};

use super::context::{Argument, Context, Who, not_within, within};
use super::executive::hs_exec;
use super::part::keep;
use crate::error::{Failure, HS_E_FULL, HS_E_NULL, HS_E_RANGE, HS_E_REFUSED, HS_OK, door};
use crate::handle::{Alone, Kind, look, make, peek};
use crate::pointer::{Place, optional_text};

/// Set off by hs_exec_interrupt_post() alone; `descriptor` is not looked at.
pub const HS_EXEC_SOFTWARE: c_int = 0;
/// Set off for each read of at most 4 KiB from a descriptor; the data are dropped.
pub const HS_EXEC_READABLE: c_int = 1;
/// Set off for each read of an eventfd or timerfd, with the count that was read.
pub const HS_EXEC_COUNTER: c_int = 2;

/// An interrupt procedure that is attached to its source. Lives as long as its executive; any thread may post it.
pub struct hs_exec_interrupt(());

impl Kind for hs_exec_interrupt {
    type Owned = PostedIsp;
    const WORD: u64 = u64::from_le_bytes(*b"execintr");
    const NAME: &'static str = "interrupt of an executive";
    const GOES_AT_ONCE: bool = false;
}

pub(crate) struct PostedIsp(Isp);

/// Why an interrupt procedure runs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_exec_arrival {
    /// The time of the post, or when a descriptor had been read.
    pub at_ns: i64,
    /// How often its source fired.
    pub count: u64,
}

/// Attaches an interrupt procedure to HS_EXEC_SOFTWARE, or to a descriptor, which is duplicated. It runs above all
/// tasks, must be short, and may make the calls that are for anywhere; `arrival` lives until it returns. `name` may be
/// NULL. From outside before or between runs. It is freed with its executive. HS_E_NULL, HS_E_RANGE, HS_E_REFUSED (no
/// thread or descriptor), HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_interrupt_new(
    exec: *mut hs_exec,
    name: *const c_char,
    source: c_int,
    descriptor: c_int,
    procedure: Option<extern "C" fn(argument: *mut c_void, arrival: *const hs_exec_arrival)>,
    argument: *mut c_void,
    interrupt: *mut *mut hs_exec_interrupt,
) -> c_int {
    door(|| {
        let place = Place::new(interrupt)?;
        let name = optional_text(name)?.unwrap_or("interrupt");
        not_within()?;
        let Some(procedure) = procedure else {
            return Err(Failure::new(HS_E_NULL, "attach an interrupt: it has no procedure"));
        };
        let source = match source {
            HS_EXEC_SOFTWARE => InterruptSource::Software,
            HS_EXEC_READABLE => InterruptSource::Readable(duplicate(descriptor)?),
            HS_EXEC_COUNTER => InterruptSource::Counter(duplicate(descriptor)?),
            other => return Err(Failure::new(HS_E_RANGE, format!("attach an interrupt to source {other}: 0 to 2"))),
        };
        let mut owned = Alone::of(exec)?;
        owned.is_own()?;
        let (argument, here) = (Argument::new(argument), owned.place(exec));
        let body = move |ctx: &IspCtx<'_>, arrival: Arrival| {
            let own = std::ptr::from_ref(ctx).cast::<IspCtx<'static>>();
            // SAFETY: `ctx` and its executive outlive this function.
            let context = unsafe { Context::new(here, Who::Interrupt(own), ctx.caller()) };
            let arrival = hs_exec_arrival { at_ns: arrival.at.as_monotonic().count(), count: arrival.count };
            within(&context, || procedure(argument.pointer(), &raw const arrival));
        };
        let attached = owned.executive().attach(name, source, body);
        let isp = attached.map_err(|error| Failure::new(HS_E_REFUSED, error.to_string()))?;
        let handle = make::<hs_exec_interrupt>(PostedIsp(isp));
        keep(owned.results(), handle);
        place.put(handle);
        Ok(())
    })
}

fn duplicate(descriptor: c_int) -> Result<OwnedFd, Failure> {
    if descriptor < 0 {
        return Err(Failure::new(HS_E_RANGE, "attach an interrupt: the descriptor is negative"));
    }
    // SAFETY: not -1; the caller promises that it is open during the call, and the kernel returns an error if it is
    // not.
    let lent = unsafe { BorrowedFd::borrow_raw(descriptor) };
    lent.try_clone_to_owned()
        .map_err(|error| Failure::new(HS_E_REFUSED, format!("duplicate descriptor {descriptor}: {error}")))
}

/// Sets an interrupt off. Never blocks. From anywhere: tasks, other threads, signal handlers; it returns a code and
/// leaves hs_last_error() as it is. HS_E_FULL (its ring is full; the arrival is lost and counted), HS_E_HANDLE,
/// HS_E_FREED.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_interrupt_post(interrupt: *const hs_exec_interrupt) -> c_int {
    // Without a sentence, because what a signal interrupted may hold the allocator's lock.
    if let Err(code) = look(interrupt) {
        return code;
    }
    match peek(interrupt) {
        Ok(posted) => posted.0.post().map_or(HS_E_FULL, |()| HS_OK),
        Err(_) => HS_E_FULL,
    }
}
