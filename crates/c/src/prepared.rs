//! A long delay in two calls, for callers that are slow after a rest: it begins, comes back a little before its end, and finishes.
//!
//! **Problem.** After some milliseconds asleep the code and data of an interpreter are cold in the caches, and its program would notice the
//! end of a delay tens of microseconds late.
//!
//! **Solution.** The first call returns [`OwnedPrepared::ahead`] before the end. The caller does for nothing what it is about to do, and the
//! second call polls the rest. How long the caller takes is learned: quickly that it takes longer, for then delays are late, and slowly
//! that it does not.
//!
//! **Why it is never early.** The second call returns when the kernel's clock reads at least the beginning plus the request less the lead,
//! or for a deadline as `hs_delay_until`.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]

use std::ffi::c_int;

use hairspring_machine::Machine;
use hairspring_time::{Host, Instant, Nanos, Report};

use crate::delay::hs_report;
use crate::error::{Failure, HS_E_ORDER, door};
use crate::handle::Alone;
use crate::long_delay::{OwnedLongDelay, hs_long_delay};
use crate::pointer::{Place, micros, read};
use crate::timebase::hs_instant;

/// How long before the end the first call returns, at least and at most: twice what the caller takes, some 40 us where all is cold.
const AHEAD_LEAST: Nanos = Nanos::from_micros(100);
const AHEAD_MOST: Nanos = Nanos::from_micros(500);

/// What a long delay knows of its caller, and of the delay that has begun.
#[derive(Default)]
pub(crate) struct OwnedPrepared {
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

impl OwnedPrepared {
    fn ahead(&self) -> Nanos {
        (self.takes * 2).max(AHEAD_LEAST).min(AHEAD_MOST)
    }

    fn note(&mut self, took: Nanos) {
        let share = if took > self.takes { 2 } else { 16 };
        self.takes = self.takes + Nanos::new((took.min(AHEAD_MOST) - self.takes).count() / share);
    }
}

/// Keeps what has begun, and tells how much of it is left.
fn keep(owned: &mut OwnedLongDelay, goal: Goal, request: Nanos, lead: Nanos, report: Report, place: &Place<i64>) {
    let back = Host.monotonic();
    let left = match &goal {
        Goal::Kernel(began) => *began + request - lead - back,
        Goal::Until(deadline) => (*deadline - lead).since(owned.timebase.now()).unwrap_or(Nanos::ZERO),
        Goal::Over => Nanos::ZERO,
    };
    place.put(left.max(Nanos::ZERO).count());
    if owned.prepared.begun.len() == DEPTH {
        owned.prepared.begun.remove(0);
    }
    owned.prepared.begun.push(Begun { goal, request, lead, back, report });
}

fn begin(owned: &mut OwnedLongDelay, since_ns: i64, request: Nanos, place: &Place<i64>) -> Result<(), Failure> {
    let began = if since_ns < 0 { Host.monotonic() } else { Instant::from_monotonic(Nanos::new(since_ns)) };
    let (ahead, lead) = (owned.prepared.ahead(), owned.delay()?.lead());
    if request <= ahead || request - ahead <= lead {
        let report = owned.delay()?.delay_since(began, request, |_| ())?;
        keep(owned, Goal::Over, request, lead, report, place);
        return Ok(());
    }
    let report = owned.delay()?.delay_since(began, request - ahead, |_| ())?;
    keep(owned, Goal::Kernel(began), request, lead, report, place);
    Ok(())
}

/// Begins a delay of at least so long (0 to 100 days) that hs_long_delay_finish() ends, and returns shortly before its end, asleep until
/// then: 100 to 500 us, twice what the caller took the last times. Meanwhile the caller does for nothing what it is about to do, so that its
/// code is in the caches; `left_ns` says how long there is, 0 where nothing is to be done. It is counted from `since_ns`, a reading of
/// CLOCK_MONOTONIC; negative: from now. Such delays nest, 16 deep; of more the outermost is forgotten. HS_E_NEGATIVE, HS_E_RANGE, HS_E_CANCELLED.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_begin_ns(
    long_delay: *mut hs_long_delay,
    request_ns: i64,
    since_ns: i64,
    left_ns: *mut i64,
) -> c_int {
    door(|| begin(&mut *Alone::of(long_delay)?, since_ns, Nanos::new(request_ns), &Place::new(left_ns)?))
}

/// The same in microseconds, rounded up to a nanosecond. HS_E_NAN besides.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_begin_us(
    long_delay: *mut hs_long_delay,
    request_us: f64,
    since_ns: i64,
    left_ns: *mut i64,
) -> c_int {
    door(|| begin(&mut *Alone::of(long_delay)?, since_ns, micros(request_us)?, &Place::new(left_ns)?))
}

/// The same until an instant of its time base. One that has passed returns at once. HS_E_EPOCH, HS_E_RANGE, HS_E_CANCELLED.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_begin_until(
    long_delay: *mut hs_long_delay,
    deadline: *const hs_instant,
    left_ns: *mut i64,
) -> c_int {
    door(|| {
        let (place, mut owned) = (Place::new(left_ns)?, Alone::of(long_delay)?);
        let deadline = read(deadline)?.on(&owned.timebase)?;
        let (ahead, lead) = (owned.prepared.ahead(), owned.delay()?.lead());
        let left = deadline.since(owned.timebase.now_ordered()).unwrap_or(Nanos::ZERO);
        let request = left.max(Nanos::ZERO);
        let (goal, report) = if left <= lead {
            (Goal::Over, owned.delay()?.delay_until(deadline)?)
        } else {
            (Goal::Until(deadline), owned.delay()?.delay_until(deadline - ahead)?)
        };
        keep(&mut owned, goal, request, lead, report, &place);
        Ok(())
    })
}

/// Ends the delay that hs_long_delay_begin_*() began last, and reports on the whole of it. HS_E_ORDER (none has begun).
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_finish(long_delay: *mut hs_long_delay, report: *mut hs_report) -> c_int {
    let now = Host.monotonic();
    door(|| {
        let (place, mut owned) = (Place::wanted(report)?, Alone::of(long_delay)?);
        let Some(begun) = owned.prepared.begun.pop() else {
            return Err(Failure::new(
                HS_E_ORDER,
                "end a long delay: none has begun; call hs_long_delay_begin_ns first",
            ));
        };
        let whole = finish(&mut owned, &begun, now)?;
        if let Some(place) = place {
            place.put(hs_report::new(&whole));
        }
        Ok(())
    })
}

fn finish(owned: &mut OwnedLongDelay, begun: &Begun, now: Instant) -> Result<Report, Failure> {
    let Begun { goal, request, lead, back, report } = begun;
    if !matches!(goal, Goal::Over) {
        owned.prepared.note(now - *back);
    }
    let timebase = &owned.timebase;
    let (late, slept, polled, mut verdict) = match goal {
        Goal::Over => return Ok(Report { requested: *request, ..*report }),
        Goal::Kernel(began) => {
            let last = timebase.delay_since(*began, *request - *lead)?;
            // What it polled is counted from the beginning of the whole.
            let polled = (last.actual - (now - *began)).max(Nanos::ZERO);
            (last.late - *lead, last.slept, polled, last.verdict)
        }
        Goal::Until(deadline) => {
            let last = timebase.delay_until(*deadline - *lead)?;
            (last.late - *lead, last.slept, last.polled, last.verdict)
        }
    };
    // What the caller did beyond the end.
    verdict.explain(late + *lead, timebase);
    let (slept, polled) = (report.slept + slept, report.polled + polled);
    Ok(Report { requested: *request, actual: *request + late, late, slept, polled, window: report.window, verdict })
}
