//! Waiting without the interpreter's lock, and with an ear for Ctrl-C.
//!
//! **Problem.** Whoever gives the lock up must get it back: 0.1 µs if nobody wants it, but up to the interpreter's switch interval
//! (5 ms) for each thread that runs Python code meanwhile. A delay of 1 µs would be late by that.
//!
//! **Solution.** A delay of at most [`HELD_MOST`] keeps the lock: it holds up other threads for less than a hundredth of what any
//! of them may hold it itself. A longer one gives it up, and its report says how long it took to come back
//! ([`Waited::lock`]), which is not part of its lateness.
//!
//! **Signals.** Python runs its handlers in the main thread, between two of its instructions. So long delays sleep in pieces of
//! [`PIECE`], woken early by a signal, until [`END`] is left, and then wait that out in one. What a handler raises ends the delay.

use hairspring_machine::Clock;
use hairspring_time::{DelayError, Host, Instant, LongDelay, Machine, Nanos, REQUEST_MOST, Report, Timebase};
use pyo3::prelude::*;

use crate::arguments::refused;

/// The longest delay that keeps the interpreter's lock.
pub(crate) const HELD_MOST: Nanos = Nanos::from_micros(50);

/// How often a long delay looks for signals.
const PIECE: Nanos = Nanos::from_millis(100);
/// What is waited out in one: the two sleeps of a long delay, with room for the lock to come back before.
const END: Nanos = Nanos::from_millis(50);

/// A delay that is over.
#[derive(Clone, Copy)]
pub(crate) struct Waited {
    pub(crate) report: Report,
    /// From the end of the delay until the interpreter's lock was back; zero if it was kept.
    pub(crate) lock: Nanos,
}

/// What is waited for.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    For(Nanos),
    Until(Instant),
}

/// Runs without the interpreter's lock, and says how long it took to get it back.
fn unlocked<R: Send>(py: Python<'_>, timebase: &Timebase, run: impl FnOnce() -> R + Send) -> (R, Nanos) {
    let (result, end) = py.detach(|| {
        let result = run();
        (result, timebase.stamp_ordered())
    });
    (result, timebase.nanos(timebase.stamp_ordered().since(end)))
}

/// A delay that polls.
#[inline]
pub(crate) fn poll(py: Python<'_>, timebase: &Timebase, request: Nanos) -> PyResult<Waited> {
    if request <= HELD_MOST {
        let report = timebase.delay(request).map_err(refused)?;
        return Ok(Waited { report, lock: Nanos::ZERO });
    }
    let (report, lock) = unlocked(py, timebase, || timebase.delay(request));
    Ok(Waited { report: report.map_err(refused)?, lock })
}

/// A delay that polls until an instant.
pub(crate) fn poll_until(py: Python<'_>, timebase: &Timebase, deadline: Instant) -> PyResult<Waited> {
    let (report, lock) = unlocked(py, timebase, || timebase.delay_until(deadline));
    Ok(Waited { report: report.map_err(refused)?, lock })
}

/// A delay that sleeps.
pub(crate) fn sleep(
    py: Python<'_>,
    timebase: &Timebase,
    long: &mut LongDelay<'_, Host>,
    goal: Goal,
) -> PyResult<Waited> {
    let began = Host.read(Clock::Monotonic);
    let request = match goal {
        Goal::For(request) => request,
        Goal::Until(deadline) => ahead(timebase, deadline).max(Nanos::ZERO),
    };
    if request.is_negative() {
        return Err(refused(DelayError::Negative(request)));
    }
    if request > REQUEST_MOST {
        return Err(refused(DelayError::Absurd(request)));
    }
    let (end, mut now, mut slept) = (began + request, began, Nanos::ZERO);
    while end - now > PIECE + END {
        let until = now + PIECE;
        let (woken, lock) = unlocked(py, timebase, || {
            Host.sleep_until(until);
            Host.read(Clock::Monotonic)
        });
        slept = slept + (woken - now);
        py.check_signals()?;
        now = woken + lock;
    }
    let (waited, lock) = unlocked(py, timebase, || {
        let begun = Host.read(Clock::Monotonic);
        let report = match goal {
            // Counted from the first reading, and not from this one, it ends on time; the kernel's clock sees to it either way.
            Goal::For(_) => long.delay((end - begun).max(Nanos::ZERO)),
            Goal::Until(deadline) => long.delay_until(deadline),
        };
        report.map(|report| (begun, report))
    });
    let (begun, report) = waited.map_err(refused)?;
    let (actual, late) = match goal {
        Goal::For(_) => (begun - began + report.actual, begun - began + report.actual - request),
        // Without a wait there is nothing to add up.
        Goal::Until(_) if request == Nanos::ZERO => (report.actual, report.late),
        Goal::Until(_) => (request + report.late, report.late),
    };
    let report = Report { requested: request, actual, late, slept: slept + report.slept, ..report };
    Ok(Waited { report, lock })
}

/// How far ahead an instant is; an instant of this time base has a distance from now.
fn ahead(timebase: &Timebase, deadline: Instant) -> Nanos {
    deadline.since(timebase.now_ordered()).unwrap_or(Nanos::ZERO)
}
