//! A long delay in two calls, for callers that are slow after a rest: it begins, comes back a little before its end, and finishes.
//!
//! **Problem.** After some milliseconds asleep the code and data of an interpreter are cold in the caches, and its program would notice the
//! end of a delay tens of microseconds late.
//!
//! **Solution.** The first call returns [`Prepared::ahead`] before the end. The caller does for nothing what it is about to do, and the
//! second call polls the rest. How long the caller takes is learned: quickly that it takes longer, for then delays are late, and slowly
//! that it does not.
//!
//! **Why it is never early.** The second call returns when the kernel's clock reads at least the beginning plus the request less the lead,
//! or for a deadline as `hs_delay_until`.

use hairspring_machine::Machine;
use hairspring_time::{Host, Instant, LongDelay, Nanos, Report, Timebase};

use crate::error::{Failure, HS_E_ORDER};

/// How long before the end the first call returns, at least and at most: twice what the caller takes, some 40 us where all is cold.
const AHEAD_LEAST: Nanos = Nanos::from_micros(100);
const AHEAD_MOST: Nanos = Nanos::from_micros(500);

/// What a long delay knows of its caller, and of the delays that have begun.
#[derive(Default)]
pub(crate) struct Prepared {
    takes: Nanos,
    /// The latest last: what the caller does for nothing may be such a delay itself.
    begun: Vec<Begun>,
}

/// Delays that may have begun within each other.
const DEPTH: usize = 16;

/// A delay between its two calls.
struct Begun {
    goal: Goal,
    request: Nanos,
    lead: Nanos,
    /// When the first call returned.
    back: Instant,
    report: Report,
}

/// What is left of it.
enum Goal {
    /// The request less the lead, counted from a reading of the kernel's clock.
    Kernel(Instant),
    /// Until the instant less the lead.
    Until(Instant),
    /// Nothing: there was no room for two calls, or the deadline had passed.
    Over,
}

impl Prepared {
    /// Waits until shortly before the end of a delay that began then; how much of it is left.
    pub(crate) fn begin(
        &mut self,
        delay: &mut LongDelay<'_, Host>,
        timebase: &Timebase<Host>,
        began: Instant,
        request: Nanos,
    ) -> Result<Nanos, Failure> {
        let (ahead, lead) = (self.ahead(), delay.lead());
        if request <= ahead || request - ahead <= lead {
            let report = delay.delay_since(began, request, |_| ())?;
            return Ok(self.keep(timebase, Goal::Over, request, lead, report));
        }
        let report = delay.delay_since(began, request - ahead, |_| ())?;
        Ok(self.keep(timebase, Goal::Kernel(began), request, lead, report))
    }

    /// The same until a deadline.
    pub(crate) fn begin_until(
        &mut self,
        delay: &mut LongDelay<'_, Host>,
        timebase: &Timebase<Host>,
        deadline: Instant,
    ) -> Result<Nanos, Failure> {
        let (ahead, lead) = (self.ahead(), delay.lead());
        let left = deadline.since(timebase.now_ordered()).unwrap_or(Nanos::ZERO);
        let (goal, report) = if left <= lead {
            (Goal::Over, delay.delay_until(deadline)?)
        } else {
            (Goal::Until(deadline), delay.delay_until(deadline - ahead)?)
        };
        Ok(self.keep(timebase, goal, left.max(Nanos::ZERO), lead, report))
    }

    /// Polls the rest of the delay that began last. `now` is when the caller came back.
    pub(crate) fn finish(&mut self, timebase: &Timebase<Host>, now: Instant) -> Result<Report, Failure> {
        let Some(Begun { goal, request, lead, back, report }) = self.begun.pop() else {
            return Err(Failure::new(
                HS_E_ORDER,
                "end a long delay: none has begun; call hs_long_delay_begin_ns first",
            ));
        };
        if !matches!(goal, Goal::Over) {
            self.note(now - back);
        }
        let (late, slept, polled, mut verdict) = match goal {
            Goal::Over => return Ok(Report { requested: request, ..report }),
            Goal::Kernel(began) => {
                let last = timebase.delay_since(began, request - lead)?;
                // What it polled is counted from the beginning of the whole.
                let polled = (last.actual - (now - began)).max(Nanos::ZERO);
                (last.late - lead, last.slept, polled, last.verdict)
            }
            Goal::Until(deadline) => {
                let last = timebase.delay_until(deadline - lead)?;
                (last.late - lead, last.slept, last.polled, last.verdict)
            }
        };
        // What the caller did beyond the end.
        verdict.explain(late + lead, timebase);
        let (slept, polled) = (report.slept + slept, report.polled + polled);
        Ok(Report { requested: request, actual: request + late, late, slept, polled, window: report.window, verdict })
    }

    /// Keeps what has begun; how much of it is left.
    fn keep(&mut self, timebase: &Timebase<Host>, goal: Goal, request: Nanos, lead: Nanos, report: Report) -> Nanos {
        let back = Host.monotonic();
        let left = match &goal {
            Goal::Kernel(began) => *began + request - lead - back,
            Goal::Until(deadline) => (*deadline - lead).since(timebase.now()).unwrap_or(Nanos::ZERO),
            Goal::Over => Nanos::ZERO,
        };
        if self.begun.len() == DEPTH {
            self.begun.remove(0);
        }
        self.begun.push(Begun { goal, request, lead, back, report });
        left.max(Nanos::ZERO)
    }

    fn ahead(&self) -> Nanos {
        (self.takes * 2).max(AHEAD_LEAST).min(AHEAD_MOST)
    }

    fn note(&mut self, took: Nanos) {
        let share = if took > self.takes { 2 } else { 16 };
        self.takes = self.takes + Nanos::new((took.min(AHEAD_MOST) - self.takes).count() / share);
    }
}
