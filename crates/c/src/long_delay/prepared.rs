//! A long delay in two calls, for callers that are slow after a rest: the first returns shortly before the end, the
//! second finishes.
//!
//! **Problem.** After some milliseconds asleep the code and data of an interpreter are cold in the caches, and its
//! program would notice the end of a delay tens of microseconds late.
//!
//! **Solution.** The first call returns [`Prepared::ahead`] before the end. The caller rehearses its next action
//! without effect, and the second call polls the rest. The time that the caller needs is learned: an increase quickly,
//! because it makes delays late, and a decrease slowly.
//!
//! **Why it is never early.** The second call returns when the kernel's clock reads at least the beginning plus the
//! request less the lead, or for a deadline as `hs_delay_until`.

use hairspring_machine::Machine;
use hairspring_time::{Host, Instant, LongDelay, Nanos, Report, Timebase};

use crate::error::{Failure, HS_E_ORDER};

/// Limits of the time before the end at which the first call returns. It is twice the time that the caller takes, some
/// 40 us with cold caches.
const AHEAD_LEAST: Nanos = Nanos::from_micros(100);
const AHEAD_MOST: Nanos = Nanos::from_micros(500);

/// The learned time of the caller, and the delays that have begun.
#[derive(Default)]
pub(crate) struct Prepared {
    takes: Nanos,
    /// The latest comes last. Delays nest, because the rehearsed action may itself be such a delay.
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

/// The rest of the delay.
enum Goal {
    /// The request minus the lead, counted from a reading of the kernel's clock.
    Kernel(Instant),
    /// Until the instant minus the lead.
    Until(Instant),
    /// Nothing: there was no room for two calls, or the deadline had passed.
    Over,
}

impl Prepared {
    /// Waits until shortly before the end of a delay that began at `began`. Returns the time left.
    pub(crate) fn begin(
        &mut self,
        delay: &mut LongDelay<'_, Host>,
        began: Instant,
        request: Nanos,
    ) -> Result<Nanos, Failure> {
        let (ahead, lead) = (self.ahead(), delay.lead());
        if request <= ahead || request - ahead <= lead {
            let report = delay.delay_since(began, request, |_| ())?;
            return Ok(self.keep(delay.timebase(), Goal::Over, request, lead, report));
        }
        let report = delay.delay_since(began, request - ahead, |_| ())?;
        Ok(self.keep(delay.timebase(), Goal::Kernel(began), request, lead, report))
    }

    /// The same until a deadline.
    pub(crate) fn begin_until(&mut self, delay: &mut LongDelay<'_, Host>, deadline: Instant) -> Result<Nanos, Failure> {
        let (ahead, lead) = (self.ahead(), delay.lead());
        let left = deadline.since(delay.timebase().now_ordered()).unwrap_or(Nanos::ZERO);
        let (goal, report) = if left <= lead {
            (Goal::Over, delay.delay_until(deadline)?)
        } else {
            (Goal::Until(deadline), delay.delay_until(deadline - ahead)?)
        };
        Ok(self.keep(delay.timebase(), goal, left.max(Nanos::ZERO), lead, report))
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
                // The polled time counts from the beginning of the whole delay.
                let polled = (last.actual - (now - began)).max(Nanos::ZERO);
                (last.late - lead, last.slept, polled, last.verdict)
            }
            Goal::Until(deadline) => {
                let last = timebase.delay_until(deadline - lead)?;
                (last.late - lead, last.slept, last.polled, last.verdict)
            }
        };
        // Time that the caller's action took beyond the end.
        verdict.explain(late + lead, timebase);
        let (slept, polled) = (report.slept + slept, report.polled + polled);
        Ok(Report { requested: request, actual: request + late, late, slept, polled, window: report.window, verdict })
    }

    /// Notes a delay that has begun. Returns the time left.
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
