//! Waits without the GIL, and checks for Ctrl-C.
//!
//! **Problem.** A thread that releases the GIL must take it back. That takes 0.1 µs if no other thread wants it, but up
//! to the interpreter's switch interval (5 ms) for each thread that runs Python code. A delay of 1 µs would be late by
//! that.
//!
//! **Solution.** A delay of at most [`HELD_MOST`] keeps the GIL: it delays other threads by less than a hundredth of
//! the switch interval. A longer delay releases the GIL, and its report has the time that it waited to get the GIL back
//! ([`Waited::lock`]), which is not part of its lateness.
//!
//! **The end of a long delay.** After a sleep of milliseconds the interpreter's code and data are no longer in the
//! caches, and the caller would see the end some microseconds late. So the library ends the sleep earlier by
//! [`Ending::ahead`] and takes the GIL back. Python rehearses: it returns from a long delay of zero with a report,
//! reads a clock and subtracts. Then the library polls the rest with the GIL held. If the GIL comes back after the end,
//! the delay is over at once, and the time since its end is [`Waited::lock`]. A rehearsal that an interruption
//! stretches beyond the end makes the delay late.
//!
//! **Signals.** Python runs its handlers in the main thread, between two of its instructions. So long delays sleep in
//! pieces of [`PIECE`], which a signal ends early, until [`END`] is left, and wait for that in one piece. An exception
//! from a handler ends the delay.

use hairspring_time::{DelayError, Host, Instant, LongDelay, Machine, Nanos, REQUEST_MOST, Report};
use pyo3::prelude::*;

use crate::arguments::refused;

/// The longest delay that keeps the GIL.
pub(crate) const HELD_MOST: Nanos = Nanos::from_micros(50);

/// The shortest and longest time before the end of a long delay at which it takes the GIL back: twice the length of a
/// rehearsal, which takes 30 µs with cold caches and more on a slow machine. Holding the GIL that long delays other
/// threads by at most a tenth of the switch interval.
const AHEAD_LEAST: Nanos = Nanos::from_micros(100);
const AHEAD_MOST: Nanos = Nanos::from_micros(500);

/// Interval at which a long delay checks for signals.
const PIECE: Nanos = Nanos::from_millis(100);
/// The end of a long delay that it waits for in one piece: its two sleeps, with time to take the GIL back.
const END: Nanos = Nanos::from_millis(50);

/// The result of a delay.
#[derive(Clone, Copy)]
pub(crate) struct Waited {
    pub(crate) report: Report,
    /// From the end of the delay until the thread had the GIL; zero if it kept the GIL or had it back before.
    pub(crate) lock: Nanos,
}

/// The end of a wait: a span or an instant.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    For { began: Instant, request: Nanos },
    Until(Instant),
}

/// Runs a closure without the GIL, and returns how long it took to get the GIL back.
fn unlocked<R: Send>(
    py: Python<'_>,
    timebase: &hairspring_time::Timebase,
    run: impl FnOnce() -> R + Send,
) -> (R, Nanos) {
    let (result, end) = py.detach(|| {
        let result = run();
        (result, timebase.stamp_ordered())
    });
    (result, timebase.nanos(timebase.stamp_ordered().since(end)))
}

/// A delay that polls.
#[inline]
pub(crate) fn poll(py: Python<'_>, timebase: &hairspring_time::Timebase, request: Nanos) -> PyResult<Waited> {
    if request <= HELD_MOST {
        let report = timebase.delay(request).map_err(refused)?;
        return Ok(Waited { report, lock: Nanos::ZERO });
    }
    let (report, lock) = unlocked(py, timebase, || timebase.delay(request));
    Ok(Waited { report: report.map_err(refused)?, lock })
}

/// A delay that polls until an instant.
pub(crate) fn poll_until(py: Python<'_>, timebase: &hairspring_time::Timebase, deadline: Instant) -> PyResult<Waited> {
    let (report, lock) = unlocked(py, timebase, || timebase.delay_until(deadline));
    Ok(Waited { report: report.map_err(refused)?, lock })
}

/// End of an object's long delays.
#[derive(Clone, Copy)]
pub(crate) struct Ending {
    /// Time by which the delay ends earlier than requested.
    pub(crate) lead: Nanos,
    /// The longest time before the end at which a rehearsal may begin; zero for none.
    most: Nanos,
    /// The estimated length of a rehearsal.
    takes: Nanos,
}

impl Ending {
    /// With the part of the budget that is left for the rehearsal.
    pub(crate) fn new(lead: Nanos, budget: Option<Nanos>) -> (Self, Option<Nanos>) {
        let half = budget.map_or(AHEAD_MOST, |budget| Nanos::new(budget.count() / 2));
        let most = if half < AHEAD_LEAST { Nanos::ZERO } else { half.min(AHEAD_MOST) };
        (Self { lead, most, takes: Nanos::ZERO }, budget.map(|budget| budget - most))
    }

    /// Time by which the library ends its sleep earlier; zero for a delay that hardly sleeps.
    pub(crate) fn ahead(&self, request: Nanos) -> Nanos {
        let ahead = (self.takes * 2).max(AHEAD_LEAST).min(self.most);
        if request - self.lead > ahead * 2 { ahead } else { Nanos::ZERO }
    }

    /// Learns the length of a rehearsal: quickly if it took longer, because then delays are late, and slowly if it took
    /// less.
    pub(crate) fn note(&mut self, took: Nanos) {
        let (difference, share) = (took.min(AHEAD_MOST) - self.takes, if took > self.takes { 2 } else { 16 });
        self.takes += Nanos::new(difference.count() / share);
    }
}

/// Sleeps without the GIL until a time or a signal, which Python then handles; returns how long it slept.
pub(crate) fn nap(py: Python<'_>, until: Instant) -> PyResult<Nanos> {
    let slept = py.detach(|| {
        let begun = Host.monotonic();
        Host.sleep_until(until);
        Host.monotonic() - begun
    });
    py.check_signals()?;
    Ok(slept)
}

/// A long delay after its sleep: the thread has the GIL back, and the rest, if any, is left to rehearse and poll.
pub(crate) struct Slept {
    ending: Ending,
    goal: Goal,
    /// Time since the call.
    request: Nanos,
    /// When the delay ends, by the kernel's clock.
    end: Instant,
    /// Time since the end of the delay; negative before the end.
    over: Nanos,
    lock: Nanos,
    report: Report,
}

/// The part of a long delay that sleeps.
pub(crate) fn sleep(
    py: Python<'_>,
    timebase: &hairspring_time::Timebase,
    long: &mut LongDelay<'_, Host>,
    ending: Ending,
    goal: Goal,
) -> PyResult<Slept> {
    let (began, request) = match goal {
        Goal::For { began, request } => (began, request),
        Goal::Until(deadline) => (Host.monotonic(), left(timebase, deadline).max(Nanos::ZERO)),
    };
    if request.is_negative() {
        return Err(refused(DelayError::Negative(request)));
    }
    if request > REQUEST_MOST {
        return Err(refused(DelayError::Absurd(request)));
    }
    let (ahead, end, mut slept) = (ending.ahead(request), began + request - ending.lead, Nanos::ZERO);
    loop {
        let now = Host.monotonic();
        if end - now <= PIECE + END {
            break;
        }
        slept += nap(py, now + PIECE)?;
    }
    let mut run = || match goal {
        Goal::For { .. } => long.delay_since(began, (end - ahead - began).max(Nanos::ZERO), |_| ()),
        Goal::Until(deadline) => long.delay_until(deadline - ending.lead - ahead),
    };
    let (waited, lock) = if request <= HELD_MOST { (run(), Nanos::ZERO) } else { unlocked(py, timebase, run) };
    let mut report = waited.map_err(refused)?;
    let over = match goal {
        Goal::For { .. } => began + report.actual - end,
        Goal::Until(_) => report.late - ahead,
    };
    report.slept = slept + report.slept;
    report.window += ahead;
    report.verdict.overslept = (report.verdict.overslept - ahead).max(Nanos::ZERO);
    Ok(Slept { ending, goal, request, end, over, lock, report })
}

impl Slept {
    /// Whether to rehearse the end: true if the GIL came back before it.
    pub(crate) fn is_early(&self) -> bool {
        self.over + self.lock < Nanos::ZERO
    }

    /// Polls the rest, and reports the whole delay.
    pub(crate) fn end(self, timebase: &hairspring_time::Timebase) -> PyResult<Waited> {
        if !self.is_early() {
            // The wait for the GIL within the delay is part of the delay.
            let over =
                if self.ending.ahead(self.request) > Nanos::ZERO { self.over.max(Nanos::ZERO) } else { self.over };
            return Ok(self.told(over, self.over + self.lock - over, self.report));
        }
        let (over, last) = match self.goal {
            // Measured by the kernel's clock, however short the rest, so that the whole delay is never early.
            Goal::For { began, .. } => {
                let span = (self.end - began).max(Nanos::ZERO);
                let passed = Host.monotonic() - began;
                let last = timebase.delay_since(began, span).map_err(refused)?;
                // Counts the polling from the beginning of the whole delay.
                let polled = (last.actual - passed).max(Nanos::ZERO);
                (last.late, Report { polled, ..last })
            }
            Goal::Until(deadline) => {
                let last = timebase.delay_until(deadline - self.ending.lead).map_err(refused)?;
                (last.late, last)
            }
        };
        let (slept, polled) = (self.report.slept + last.slept, self.report.polled + last.polled);
        let mut verdict = last.verdict;
        // The rehearsal ended after the deadline.
        verdict.explain(over, timebase);
        Ok(self.told(over, Nanos::ZERO, Report { slept, polled, verdict, ..self.report }))
    }

    fn told(&self, over: Nanos, lock: Nanos, report: Report) -> Waited {
        // Nothing was waited for, so there is nothing to add.
        let none = matches!(self.goal, Goal::Until(_)) && self.request == Nanos::ZERO;
        let late = over - self.ending.lead;
        let actual = if none { report.actual } else { self.request + late };
        Waited { report: Report { requested: self.request, actual, late, ..report }, lock }
    }
}

/// The time until an instant; instants of this time base always have one.
fn left(timebase: &hairspring_time::Timebase, deadline: Instant) -> Nanos {
    deadline.since(timebase.now_ordered()).unwrap_or(Nanos::ZERO)
}
