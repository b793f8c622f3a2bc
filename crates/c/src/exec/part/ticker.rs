//! Tickers: periodic work without drift, in a task's own loop.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::c_int;

use hairspring_exec::{CallStatus, Nanos, Ticker};

use super::{Part, alone_in_task, make_part};
use crate::error::{HS_E_STATE, say};
use crate::exec::executive::hs_exec;
use crate::handle::Kind;
use crate::pointer::{Growing, GrowingPlace, Numbers};

/// The ticks of a task's loop. Lives as long as its executive; one task at a time uses it.
pub struct hs_exec_ticker(());

impl Kind for hs_exec_ticker {
    type Owned = Part<Option<Ticker>>;
    const WORD: u64 = u64::from_le_bytes(*b"execticr");
    const NAME: &'static str = "ticker";
    const GOES_AT_ONCE: bool = false;
}

/// A tick that has come.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_exec_tick {
    /// sizeof(struct hs_exec_tick), set by the caller.
    pub size: usize,
    /// Its number, from 1.
    pub number: u64,
    /// When it was due.
    pub due_ns: i64,
    /// Ticks before it that passed while the task did something else.
    pub missed: u64,
    /// How long after it was due the task runs.
    pub late_ns: i64,
}

// SAFETY: a size, two counts and two times: each pattern of bits is one.
unsafe impl Numbers for hs_exec_tick {}

// SAFETY: `repr(C)`, with `size` before the number of the tick.
unsafe impl Growing for hs_exec_tick {
    const NAME: &'static str = "a tick";
    const FIRST_BYTES: usize = 40;
}

/// Creates a ticker, stopped. From outside before or between runs, and from a task of the executive. Allocates. The
/// ticker is freed with its executive. HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_ticker_new(exec: *mut hs_exec, ticker: *mut *mut hs_exec_ticker) -> c_int {
    make_part(exec, ticker, |_, _| Ok(None))
}

/// Starts a ticker, or starts it anew: its first tick is one period from now, and tick n is due n periods from now. For
/// tasks. HS_E_RANGE (a period of zero or less), HS_E_BUSY (another task uses it), HS_E_FREED, HS_E_HANDLE,
/// HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_ticker_start(ticker: *mut hs_exec_ticker, period_ns: i64) -> c_int {
    alone_in_task(ticker, |task, ticker| {
        *ticker = Some(task.ticker(Nanos::new(period_ns))?);
        Ok(())
    })
}

/// Waits for the next tick, never less. Of those that have passed meanwhile it returns the last, at once. `tick` may be
/// NULL. After an error the tick is still to come. For tasks. HS_E_STATE (it is not started), HS_E_RANGE (the size in
/// `tick` is not set), HS_E_BUSY (another task uses it), HS_E_CANCELLED, HS_E_KILLED, HS_E_NULL, HS_E_FREED,
/// HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_ticker_next(ticker: *mut hs_exec_ticker, tick: *mut hs_exec_tick) -> c_int {
    let place = match GrowingPlace::wanted(tick) {
        Ok(place) => place,
        Err(failure) => return failure.tell(),
    };
    let code = alone_in_task(ticker, |task, ticker| {
        let ticked = ticker.as_mut().ok_or(CallStatus::NotStarted)?.next(task)?;
        if let Some(place) = place {
            place.put(hs_exec_tick {
                size: size_of::<hs_exec_tick>(),
                number: ticked.number,
                due_ns: ticked.due.as_monotonic().count(),
                missed: ticked.missed,
                late_ns: ticked.late.count(),
            });
        }
        Ok(())
    });
    if code == HS_E_STATE { say(code, c"failed to wait for a tick: the ticker is not started") } else { code }
}
