//! [`DayTimer`]: a timer on the time-of-day clock, which people and NTP set.
//!
//! Problem: the executive's clock, `CLOCK_MONOTONIC`, is never set. The time of day, `CLOCK_REALTIME`, is: by NTP after
//! a start, by an operator, by a leap second; and it goes on while the computer is suspended. A deadline that was
//! converted once would be early or late by all of that.
//!
//! Solution: a timer of the core that looks at the time of day. If the time has not come, it sets itself again, to the
//! rest or to [`LOOK`], whichever is less. Why it works: both clocks run at one rate between two steps, so without a
//! step the first look at the rest is exact. A clock that was set back is seen at a look, before the procedure runs;
//! one that was set forward is seen at the next look. The core knows nothing of it: a trace holds the starts of an
//! ordinary timer, and replays.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hairspring_exec_core::{Call, Moment, TimerId};
use hairspring_machine::Nanos;

use super::guarded::{ExclusiveStep, Guarded};
use crate::calls::{CallSite, Caller, Create, Services, TimerCtx};
use crate::engine::Engine;
use crate::errors::{CreateError, ObjectError, PeriodError, accept};

/// The longest time between two looks at the time of day while a timer runs. A clock that is set forward makes the
/// timer at most this late.
const LOOK: Nanos = Nanos::from_secs(1);

/// A timer that goes off at a time of day. Made by [`Create::day_timer`]. Small; clones are the same timer.
///
/// It is never early by the clock of the time of day (`CLOCK_REALTIME`, or the simulated machine's). If that clock is
/// set back, the timer waits until it shows the time. If it is set forward past the time, or the computer was suspended
/// over it, the timer goes off within one second. A periodic timer goes off at `first + n·p` by that clock; what it
/// passes is not made up for, and nothing comes twice. While a timer runs, the executive looks at the clock once a
/// second.
///
/// ```
/// use std::time::Duration;
/// use hairspring_exec::{Backend, Create, ExecConfig, Executive, Nanos, RunLimit, Services};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut executive = Executive::new(Backend::sim(), &ExecConfig::default())?;
/// let noon = executive.time_of_day() + Duration::from_secs(3600);
/// let timer = executive.day_timer("noon", move |ctx, expiry| {
///     assert_eq!((expiry.due, expiry.missed), (noon, 0));
///     assert!(ctx.time_of_day() >= noon);
///     ctx.stop();
/// })?;
/// timer.start_periodic(&executive, noon, Nanos::from_secs(24 * 3600))?;
/// executive.run(RunLimit::Forever);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DayTimer {
    timer: TimerId,
    plan: Arc<Guarded<Option<Plan>>>,
    home: u32,
}

/// Why the procedure of a [`DayTimer`] runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DayExpiry {
    /// When it was due; the last time, if more than one has passed.
    pub due: SystemTime,
    /// How late it is, by the clock of the time of day.
    pub late: Nanos,
    /// How far that clock was set forward (or back, negative) since the start of the timer or its last run, at least. A
    /// suspend counts, too. Zero if no step was seen.
    pub stepped: Nanos,
    /// Expirations before this one that had no run of their own.
    pub missed: u64,
    /// All expirations that the timer missed since it was started.
    pub overruns: u64,
}

/// Due time and period of a running timer. All times of day are in nanoseconds since 1970.
#[derive(Clone, Copy)]
struct Plan {
    due_ns: i64,
    /// 0: once.
    period_ns: i64,
    overruns: u64,
    /// At the start or the last run.
    since: Offset,
}

/// The time of day less the executive's time, between two bounds: the three readings take time.
#[derive(Clone, Copy)]
struct Offset {
    least: i64,
    most: i64,
}

/// A look at both clocks.
struct Look {
    /// The executive's clock after the other.
    now: Moment,
    day_ns: i64,
    offset: Offset,
}

impl Look {
    fn take(engine: &dyn Engine) -> Self {
        let before = engine.now();
        let day_ns = engine.time_of_day().count();
        let now = engine.now();
        let less = |moment: Moment| day_ns.saturating_sub(i64::try_from(moment.as_nanos()).unwrap_or(i64::MAX));
        Self { now, day_ns, offset: Offset { least: less(now), most: less(before) } }
    }

    /// When to look again: at the time, or before it.
    fn next(&self, due_ns: i64) -> Moment {
        let left = due_ns.saturating_sub(self.day_ns).clamp(0, LOOK.count());
        self.now.after_nanos(left.unsigned_abs())
    }
}

impl Offset {
    /// By how much it has certainly changed since another.
    fn change_since(self, other: Self) -> Nanos {
        let (up, down) = (self.least.saturating_sub(other.most), self.most.saturating_sub(other.least));
        Nanos::new(if up > 0 { up } else { down.min(0) })
    }
}

impl Plan {
    /// The expiry at a look, and the remaining plan; none: the time has not come.
    fn expire(self, look: &Look) -> Option<(DayExpiry, Option<Self>)> {
        let late = look.day_ns.checked_sub(self.due_ns).filter(|&late| late >= 0)?;
        let passed = late.checked_div(self.period_ns).unwrap_or(0);
        let last = self.due_ns.saturating_add(passed.saturating_mul(self.period_ns));
        let missed = passed.unsigned_abs();
        let overruns = self.overruns.saturating_add(missed);
        let expiry = DayExpiry {
            due: from_nanos(last),
            late: Nanos::new(look.day_ns - last),
            stepped: look.offset.change_since(self.since),
            missed,
            overruns,
        };
        let next = last.checked_add(self.period_ns).filter(|_| self.period_ns > 0);
        Some((expiry, next.map(|due_ns| Self { due_ns, overruns, since: look.offset, ..self })))
    }
}

impl DayTimer {
    pub(crate) fn new(
        site: &(impl Create + ?Sized),
        name: &str,
        mut procedure: impl FnMut(&TimerCtx<'_>, DayExpiry) + Send + 'static,
    ) -> Result<Self, CreateError> {
        let home = site.caller().back_end.home();
        let plan = Arc::new(Guarded::new(home, None::<Plan>));
        let own = Arc::clone(&plan);
        let timer = site.timer(name, move |ctx, _| {
            if let Some(expiry) = look_at(ctx, &own) {
                procedure(ctx, expiry);
            }
        })?;
        Ok(Self { timer, plan, home })
    }

    /// The timer of the executive below it, for [`Services::delete_timer`]. It is not to be started by other calls than
    /// those of this type.
    pub fn timer(&self) -> TimerId {
        self.timer
    }

    /// Starts it to go off once, when the clock shows `at`; at once, if it shows more already. A running timer starts
    /// anew. From anywhere.
    ///
    /// # Errors
    /// [`ObjectError`] names the reasons, each with what to do.
    pub fn start(&self, site: &(impl Services + ?Sized), at: SystemTime) -> Result<(), ObjectError> {
        self.start_plan(site, at, 0).then_some(()).ok_or(ObjectError::NoSuchObject)
    }

    /// Starts it to go off when the clock shows `first`, and then once per period.
    ///
    /// # Errors
    /// [`PeriodError`] names the reasons, each with what to do.
    pub fn start_periodic(
        &self,
        site: &(impl Services + ?Sized),
        first: SystemTime,
        period: Nanos,
    ) -> Result<(), PeriodError> {
        if period <= Nanos::ZERO {
            return Err(PeriodError::BadInterval);
        }
        self.start_plan(site, first, period.count()).then_some(()).ok_or(PeriodError::NoSuchObject)
    }

    /// Stops it. Returns whether it was running.
    ///
    /// # Errors
    /// [`ObjectError`] names the reasons, each with what to do.
    pub fn stop(&self, site: &(impl Services + ?Sized)) -> Result<bool, ObjectError> {
        let Caller { back_end, by } = site.caller();
        let mut ran = false;
        let reply = back_end.cold().step(by, &mut |step| {
            ran = self.plan.open(step)?.take().is_some();
            Some([Some(Call::StopTimer { timer: self.timer }), None, None])
        });
        reply.map_or(Err(ObjectError::NoSuchObject), |reply| accept(reply).map(|_| ran))
    }

    /// False if the timer is of another executive or deleted.
    fn start_plan(&self, site: &(impl Services + ?Sized), at: SystemTime, period_ns: i64) -> bool {
        let Caller { back_end, by } = site.caller();
        let engine = back_end.cold();
        if engine.home() != self.home {
            return false;
        }
        let due_ns = nanos_of(at);
        let reply = engine.step(by, &mut |step| {
            let look = Look::take(engine);
            *self.plan.open(step)? = Some(Plan { due_ns, period_ns, overruns: 0, since: look.offset });
            Some(start(self.timer, look.next(due_ns)))
        });
        reply.is_some_and(|reply| accept::<ObjectError>(reply).is_ok())
    }
}

/// Looks at the clock, sets the timer again if there is more to come, and returns what is due.
fn look_at(ctx: &TimerCtx<'_>, plan: &Guarded<Option<Plan>>) -> Option<DayExpiry> {
    let Caller { back_end, by } = ctx.caller();
    let engine = back_end.cold();
    let mut due = None;
    engine.step(by, &mut |step: &mut ExclusiveStep| {
        let slot = plan.open(step)?;
        // Stopped between the expiry and its procedure.
        let running = (*slot)?;
        let look = Look::take(engine);
        if let Some((expiry, rest)) = running.expire(&look) {
            (due, *slot) = (Some(expiry), rest);
        }
        Some(start(ctx.timer(), look.next((*slot)?.due_ns)))
    });
    due
}

fn start(timer: TimerId, at: Moment) -> [Option<Call>; 3] {
    [Some(Call::StartTimer { timer, at, period_ns: 0 }), None, None]
}

/// Nanoseconds since 1970. A time outside of the years 1678 to 2262 becomes the end of that range.
pub(crate) fn nanos_of(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanos| -nanos),
    }
}

/// The time `nanos_ns` nanoseconds after the beginning of 1970.
pub(crate) fn from_nanos(nanos_ns: i64) -> SystemTime {
    let span = Duration::from_nanos(nanos_ns.unsigned_abs());
    if nanos_ns < 0 { UNIX_EPOCH - span } else { UNIX_EPOCH + span }
}
