//! Waiting without the interpreter's lock, and with an ear for Ctrl-C.
//!
//! **Problem.** Whoever gives the lock up must get it back: 0.1 µs if nobody wants it, but up to the interpreter's switch interval
//! (5 ms) for each thread that runs Python code meanwhile. A delay of 1 µs would be late by that.
//!
//! **Solution.** A delay of at most [`HELD_MOST`] keeps the lock: it holds up other threads for less than a hundredth of what any
//! of them may hold it itself. A longer one gives it up, and its report says how long it took to come back
//! ([`Waited::lock`]), which is not part of its lateness.
//!
//! **The end of a long delay.** After some milliseconds asleep the interpreter's code and data are cold in the caches, and the caller would
//! see the end some microseconds late. So the library ends the delay [`Ending::ahead`] before, the lock comes back, Python does for nothing what
//! it is about to do (returns from a long delay of nothing with a report, reads a clock, subtracts), and the rest is polled with the lock
//! kept. If the lock comes back after the end, the delay is over at once; from its end on it is [`Waited::lock`]. A rehearsal that was
//! interrupted beyond the end makes it late.
//!
//! **Signals.** Python runs its handlers in the main thread, between two of its instructions. So long delays sleep in pieces of
//! [`PIECE`], woken early by a signal, until [`END`] is left, and then wait that out in one. What a handler raises ends the delay.

use hairspring_time::{DelayError, Host, Instant, LongDelay, Machine, Nanos, REQUEST_MOST, Report};
use pyo3::prelude::*;

use crate::arguments::refused;

/// The longest delay that keeps the interpreter's lock.
pub(crate) const HELD_MOST: Nanos = Nanos::from_micros(50);

/// How long before the end of a long delay the lock is to be back, at least and at most: twice what rehearsals take, which is 30 µs where
/// all is cold, and more on a slow machine. Keeping it so long holds up others for a tenth of what any of them may hold it, at most.
const AHEAD_LEAST: Nanos = Nanos::from_micros(100);
const AHEAD_MOST: Nanos = Nanos::from_micros(500);

/// How often a long delay looks for signals.
const PIECE: Nanos = Nanos::from_millis(100);
/// What is waited out in one: the two sleeps of a long delay, with room for the lock to come back before.
const END: Nanos = Nanos::from_millis(50);

/// A delay that is over.
#[derive(Clone, Copy)]
pub(crate) struct Waited {
    pub(crate) report: Report,
    /// From the end of the delay until the interpreter's lock was back; zero if it was kept or back before.
    pub(crate) lock: Nanos,
}

/// What is waited for.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    For { began: Instant, request: Nanos },
    Until(Instant),
}

/// Runs without the interpreter's lock, and says how long it took to get it back.
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

/// How the long delays of an object end.
#[derive(Clone, Copy)]
pub(crate) struct Ending {
    /// How much earlier than asked.
    pub(crate) lead: Nanos,
    /// The longest time before that at which a rehearsal may begin; zero for none.
    most: Nanos,
    /// What rehearsals take.
    takes: Nanos,
}

impl Ending {
    /// With what a budget leaves for the polling before the rehearsal.
    pub(crate) fn new(lead: Nanos, budget: Option<Nanos>) -> (Self, Option<Nanos>) {
        let half = budget.map_or(AHEAD_MOST, |budget| Nanos::new(budget.count() / 2));
        let most = if half < AHEAD_LEAST { Nanos::ZERO } else { half.min(AHEAD_MOST) };
        (Self { lead, most, takes: Nanos::ZERO }, budget.map(|budget| budget - most))
    }

    /// How much earlier the library is to end a delay; zero for one that hardly sleeps.
    pub(crate) fn ahead(&self, request: Nanos) -> Nanos {
        let ahead = (self.takes * 2).max(AHEAD_LEAST).min(self.most);
        if request - self.lead > ahead * 2 { ahead } else { Nanos::ZERO }
    }

    /// Learns from a rehearsal: quickly that they take longer, for then delays are late, and slowly that they do not.
    pub(crate) fn note(&mut self, took: Nanos) {
        let (difference, share) = (took.min(AHEAD_MOST) - self.takes, if took > self.takes { 2 } else { 16 });
        self.takes += Nanos::new(difference.count() / share);
    }
}

/// Sleeps without the lock until then or until a signal, which Python then handles; returns how long it slept.
pub(crate) fn nap(py: Python<'_>, until: Instant) -> PyResult<Nanos> {
    let slept = py.detach(|| {
        let begun = Host.monotonic();
        Host.sleep_until(until);
        Host.monotonic() - begun
    });
    py.check_signals()?;
    Ok(slept)
}

/// A long delay that has slept: the lock is back, and what is left of it, if anything, is to be rehearsed and polled.
pub(crate) struct Slept {
    ending: Ending,
    goal: Goal,
    /// From the call.
    request: Nanos,
    /// When it is to end, by the kernel's clock.
    end: Instant,
    /// How far beyond its end it is; negative before.
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
    /// Whether its end is to be rehearsed: the lock came back before it.
    pub(crate) fn is_early(&self) -> bool {
        self.over + self.lock < Nanos::ZERO
    }

    /// Polls what is left, and tells the whole.
    pub(crate) fn end(self, timebase: &hairspring_time::Timebase) -> PyResult<Waited> {
        if !self.is_early() {
            // What the lock took within the delay is part of it.
            let over =
                if self.ending.ahead(self.request) > Nanos::ZERO { self.over.max(Nanos::ZERO) } else { self.over };
            return Ok(self.told(over, self.over + self.lock - over, self.report));
        }
        let (over, last) = match self.goal {
            // By the kernel's clock, however short what is left: the whole is never early.
            Goal::For { began, .. } => {
                let span = (self.end - began).max(Nanos::ZERO);
                let passed = Host.monotonic() - began;
                let last = timebase.delay_since(began, span).map_err(refused)?;
                // What it polled is counted from the beginning of the whole.
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
        // A rehearsal that went beyond the end.
        verdict.explain(over, timebase);
        Ok(self.told(over, Nanos::ZERO, Report { slept, polled, verdict, ..self.report }))
    }

    fn told(&self, over: Nanos, lock: Nanos, report: Report) -> Waited {
        // Without a wait there is nothing to add up.
        let none = matches!(self.goal, Goal::Until(_)) && self.request == Nanos::ZERO;
        let late = over - self.ending.lead;
        let actual = if none { report.actual } else { self.request + late };
        Waited { report: Report { requested: self.request, actual, late, ..report }, lock }
    }
}

/// How far ahead an instant is; an instant of this time base has a distance from now.
fn left(timebase: &hairspring_time::Timebase, deadline: Instant) -> Nanos {
    deadline.since(timebase.now_ordered()).unwrap_or(Nanos::ZERO)
}
