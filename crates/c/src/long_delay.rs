//! The long delay: sleeps, polls the end, can be tuned and cancelled.

#![expect(unsafe_code, reason = "a delay borrows the flag of its handle; names of exported functions")]
#![expect(non_camel_case_types, reason = "names of C")]

mod prepared;

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::{Instant, Machine};
use hairspring_time::{Host, LongDelay, Nanos, Report, Verdict, lead_for};

use crate::delay::hs_report;
use crate::error::{Failure, HS_E_NEGATIVE, HS_E_PANIC, HS_OK, door};
use crate::handle::{Alone, Kind, Shared, free, look, make};
use crate::pointer::{Place, micros, read};
use crate::timebase::{hs_instant, hs_timebase};
use prepared::Prepared;

/// Delays that sleep first and poll at the end, and learn how late the kernel wakes the thread. One thread at a time.
pub struct hs_long_delay(());

pub(crate) struct OwnedLongDelay {
    /// Borrows the flag of the handle. `None` only while it is rebuilt.
    delay: Option<LongDelay<'static, Host>>,
    prepared: Prepared,
}

impl Kind for hs_long_delay {
    type Owned = OwnedLongDelay;
    const WORD: u64 = u64::from_le_bytes(*b"longdely");
    const NAME: &'static str = "long delay";
}

impl OwnedLongDelay {
    #[inline(always)]
    pub(crate) fn delay(&mut self) -> Result<&mut LongDelay<'static, Host>, Failure> {
        self.delay.as_mut().ok_or_else(half_made)
    }

    /// The state of a delay in two calls.
    fn parts(&mut self) -> Result<(&mut LongDelay<'static, Host>, &mut Prepared), Failure> {
        let Self { delay, prepared } = self;
        Ok((delay.as_mut().ok_or_else(half_made)?, prepared))
    }

    fn begin(&mut self, since_ns: i64, request: Nanos) -> Result<Nanos, Failure> {
        let began = if since_ns < 0 { Host.monotonic() } else { Instant::from_monotonic(Nanos::new(since_ns)) };
        let (delay, prepared) = self.parts()?;
        prepared.begin(delay, began, request)
    }

    /// Applies one of its builder methods.
    fn rebuild(&mut self, build: impl FnOnce(LongDelay<'static, Host>) -> LongDelay<'static, Host>) {
        self.delay = self.delay.take().map(build);
    }
}

#[cold]
fn half_made() -> Failure {
    Failure::new(HS_E_PANIC, "use a long delay: a bug left it half made")
}

/// Makes a long delay. It learns how late the kernel wakes this thread, by some 10 ms of short sleeps. Free it with
/// hs_long_delay_free(); the time base may be freed before.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_new(timebase: *const hs_timebase, long_delay: *mut *mut hs_long_delay) -> c_int {
    door(|| {
        let place = Place::new(long_delay)?;
        let timebase = Shared::of(timebase)?.timebase.clone();
        let delay = Some(LongDelay::new(timebase));
        let handle = make::<hs_long_delay>(OwnedLongDelay { delay, prepared: Prepared::default() });
        let mut owned = Alone::of(handle)?;
        // SAFETY: the flag lies in the memory of the handle, which is given back only after what the handle owns is
        // gone.
        let flag: &'static AtomicBool = unsafe { &*std::ptr::from_ref(&owned.handle().flag) };
        owned.rebuild(|delay| delay.cancelled_by(flag));
        drop(owned);
        place.put(handle);
        Ok(())
    })
}

/// Lets a long delay use the successor that hs_timebase_refine() made of its time base. Its lead, its budget and what
/// it has learned stay. The successor may be freed afterwards. Deadlines of a former epoch are then refused. HS_E_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_adopt(long_delay: *mut hs_long_delay, successor: *const hs_timebase) -> c_int {
    door(|| {
        let successor = Shared::of(successor)?.timebase.clone();
        Alone::of(long_delay)?.delay()?.adopt(successor);
        Ok(())
    })
}

/// Gives a long delay back. NULL is allowed. HS_E_FREED, HS_E_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_free(long_delay: *mut hs_long_delay) -> c_int {
    door(|| free(long_delay))
}

/// Writes a report, if requested. Not inlined, so that the rehearsal before the end and the real call run the same
/// code, which is then in the caches.
#[inline(never)]
fn tell(report: &Report, place: Option<&Place<hs_report>>) {
    if let Some(place) = place {
        place.put(hs_report::new(report));
    }
}

/// The report of the rehearsal. Nothing can fail after it, so no failed call has written a report.
fn rehearse(place: Option<&Place<hs_report>>) {
    let (none, verdict) = (Nanos::ZERO, Verdict::default());
    tell(
        &Report { requested: none, actual: none, late: none, slept: none, polled: none, window: none, verdict },
        place,
    );
}

/// Runs a delay and writes its report.
#[inline(always)]
fn wait(
    long_delay: *mut hs_long_delay,
    report: *mut hs_report,
    delay: impl FnOnce(&mut OwnedLongDelay, Instant, Option<&Place<hs_report>>) -> Result<Report, Failure>,
) -> c_int {
    // Read first, because after a rest the code up to the delay is slow.
    let began = Host.monotonic();
    door(|| {
        let place = Place::wanted(report)?;
        let result = delay(&mut *Alone::of(long_delay)?, began, place.as_ref())?;
        tell(&result, place.as_ref());
        Ok(())
    })
}

/// Waits at least this long (0 to 100 days) by the kernel's clock. Sleeps, and polls only the end. Never early without
/// a lead. `report` may be NULL. HS_E_NEGATIVE, HS_E_RANGE, HS_E_CANCELLED.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_ns(long_delay: *mut hs_long_delay, request_ns: i64, report: *mut hs_report) -> c_int {
    wait(long_delay, report, |owned, began, place| {
        Ok(owned.delay()?.delay_since(began, Nanos::new(request_ns), |_| rehearse(place))?)
    })
}

/// The same in microseconds, rounded up to a nanosecond. Also HS_E_NAN.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_us(long_delay: *mut hs_long_delay, request_us: f64, report: *mut hs_report) -> c_int {
    wait(long_delay, report, |owned, began, place| {
        let request = micros(request_us)?;
        Ok(owned.delay()?.delay_since(began, request, |_| rehearse(place))?)
    })
}

/// Waits until an instant of its time base (minus the lead). Returns at once, with the lateness, if the instant has
/// passed. HS_E_EPOCH, HS_E_RANGE, HS_E_CANCELLED.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_until(
    long_delay: *mut hs_long_delay,
    deadline: *const hs_instant,
    report: *mut hs_report,
) -> c_int {
    wait(long_delay, report, |owned, _, place| {
        let delay = owned.delay()?;
        let deadline = read(deadline)?.on(delay.timebase())?;
        Ok(delay.delay_until_prepared(deadline, |_| rehearse(place))?)
    })
}

/// Finds the lead with which the median of delays of this length is exact for their caller, and sets it. Delays then
/// lie around the target instead of after it. After a longer sleep the thread sees the end later, so a lead is valid
/// for its length only. Takes 51 delays; above 20 ms as many as fit into a second, at least 11. `lead_ns` may be NULL.
/// HS_E_NEGATIVE, HS_E_RANGE, HS_E_CANCELLED.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_tune(long_delay: *mut hs_long_delay, request_ns: i64, lead_ns: *mut i64) -> c_int {
    door(|| {
        let place = Place::wanted(lead_ns)?;
        // Measured with the calls that C makes, because their cost is part of the result.
        let done = |code| if code == HS_OK { Ok(()) } else { Err(Failure::told(code)) };
        done(hs_long_delay_set_lead_ns(long_delay, 0))?;
        let mut report = MaybeUninit::uninit();
        let lead = lead_for::<Failure>(Nanos::new(request_ns), || {
            let before = Host.monotonic();
            done(hs_long_delay_ns(long_delay, request_ns, report.as_mut_ptr()))?;
            Ok(Host.monotonic() - before - Nanos::new(request_ns))
        })?;
        done(hs_long_delay_set_lead_ns(long_delay, lead.count()))?;
        if let Some(place) = place {
            place.put(lead.count());
        }
        Ok(())
    })
}

/// Ends every delay earlier by this lead (0 or more), so delays may be early. 0 makes them guaranteed minima again.
/// HS_E_NEGATIVE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_set_lead_ns(long_delay: *mut hs_long_delay, lead_ns: i64) -> c_int {
    door(|| {
        let lead = not_negative(lead_ns, "lead")?;
        Alone::of(long_delay)?.rebuild(|delay| delay.with_lead(lead));
        Ok(())
    })
}

/// The present lead.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_lead_ns(long_delay: *const hs_long_delay, lead_ns: *mut i64) -> c_int {
    door(|| {
        let place = Place::new(lead_ns)?;
        place.put(Alone::of(long_delay)?.delay()?.lead().count());
        Ok(())
    })
}

/// Limits the CPU time that one delay may spend polling, to 5,000 to 100,000,000 ns; values outside are clamped. The
/// default is half of the request, 200 us to 1 ms. HS_E_NEGATIVE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_set_budget_ns(long_delay: *mut hs_long_delay, budget_ns: i64) -> c_int {
    door(|| {
        let budget = not_negative(budget_ns, "budget")?;
        Alone::of(long_delay)?.rebuild(|delay| delay.with_budget(budget));
        Ok(())
    })
}

/// How long before its deadline a delay of this length would now begin to poll. HS_E_NEGATIVE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_window_ns(
    long_delay: *const hs_long_delay,
    request_ns: i64,
    window_ns: *mut i64,
) -> c_int {
    door(|| {
        let place = Place::new(window_ns)?;
        let request = not_negative(request_ns, "request")?;
        place.put(Alone::of(long_delay)?.delay()?.window(request).count());
        Ok(())
    })
}

/// Cancels the delay under way, and every delay until hs_long_delay_resume(), with HS_E_CANCELLED. May be called from
/// any thread or from a signal handler; it returns a code and leaves hs_last_error() as it is. The delay ends at most
/// 100 ms later, or at once if a signal wakes its thread. A delay that already polls ends regularly. HS_E_HANDLE,
/// HS_E_FREED.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_cancel(long_delay: *const hs_long_delay) -> c_int {
    // Without the guard of other calls, because nothing here can panic and a signal handler may do no more.
    flag(long_delay, true)
}

/// Allows delays again after hs_long_delay_cancel(). May be called from any thread or from a signal handler.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_resume(long_delay: *const hs_long_delay) -> c_int {
    flag(long_delay, false)
}

fn flag(long_delay: *const hs_long_delay, cancelled: bool) -> c_int {
    match look(long_delay) {
        Ok(handle) => {
            // Relaxed: the flag carries no data.
            handle.flag.store(cancelled, Ordering::Relaxed);
            HS_OK
        }
        // Without a sentence, because the interrupted code may hold the allocator's lock.
        Err(code) => code,
    }
}

fn not_negative(ns: i64, what: &str) -> Result<Nanos, Failure> {
    if ns < 0 {
        return Err(Failure::new(HS_E_NEGATIVE, format!("take a {what} of {ns} ns: it is negative")));
    }
    Ok(Nanos::new(ns))
}

/// Begins a delay of at least this long (0 to 100 days) that hs_long_delay_finish() ends. Sleeps, and returns shortly
/// before the end: 100 to 500 us, twice the time that the caller took recently. The caller then rehearses its next
/// action without effect, so that its code is in the caches. `left_ns` is the time left, 0 if there is no time to
/// rehearse. The delay counts from `since_ns`, a reading of CLOCK_MONOTONIC, or from now if that is negative. Such
/// delays nest 16 deep; beyond that the outermost is forgotten. HS_E_NEGATIVE, HS_E_RANGE, HS_E_CANCELLED.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_begin_ns(
    long_delay: *mut hs_long_delay,
    request_ns: i64,
    since_ns: i64,
    left_ns: *mut i64,
) -> c_int {
    begin(long_delay, left_ns, |owned| owned.begin(since_ns, Nanos::new(request_ns)))
}

/// The same in microseconds, rounded up to a nanosecond. HS_E_NAN besides.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_begin_us(
    long_delay: *mut hs_long_delay,
    request_us: f64,
    since_ns: i64,
    left_ns: *mut i64,
) -> c_int {
    begin(long_delay, left_ns, |owned| owned.begin(since_ns, micros(request_us)?))
}

/// The same until an instant of its time base. Returns at once if the instant has passed. HS_E_EPOCH, HS_E_RANGE,
/// HS_E_CANCELLED.
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_begin_until(
    long_delay: *mut hs_long_delay,
    deadline: *const hs_instant,
    left_ns: *mut i64,
) -> c_int {
    begin(long_delay, left_ns, |owned| {
        let (delay, prepared) = owned.parts()?;
        prepared.begin_until(delay, read(deadline)?.on(delay.timebase())?)
    })
}

/// Ends the delay that hs_long_delay_begin_*() began last, and reports on the whole delay. HS_E_ORDER (none has begun).
#[unsafe(no_mangle)]
pub extern "C" fn hs_long_delay_finish(long_delay: *mut hs_long_delay, report: *mut hs_report) -> c_int {
    let now = Host.monotonic();
    door(|| {
        let (place, mut owned) = (Place::wanted(report)?, Alone::of(long_delay)?);
        let (delay, prepared) = owned.parts()?;
        let whole = prepared.finish(delay.timebase(), now)?;
        if let Some(place) = place {
            place.put(hs_report::new(&whole));
        }
        Ok(())
    })
}

/// Begins a delay, and returns the time left.
fn begin(
    long_delay: *mut hs_long_delay,
    left_ns: *mut i64,
    begin: impl FnOnce(&mut OwnedLongDelay) -> Result<Nanos, Failure>,
) -> c_int {
    door(|| {
        let place = Place::new(left_ns)?;
        place.put(begin(&mut *Alone::of(long_delay)?)?.count());
        Ok(())
    })
}
