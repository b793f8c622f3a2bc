//! Delays that poll, and the report of every delay.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]

use std::ffi::{CStr, c_char, c_int};

use hairspring_time::{Cause, Nanos, Report, Verdict};

use crate::error::{Failure, HS_E_NEGATIVE, door};
use crate::handle::Shared;
use crate::pointer::{Place, micros, read};
use crate::timebase::{hs_instant, hs_timebase};

/// No disturbance was detected.
pub const HS_VERDICT_CLEAN: c_int = 0;
/// The thread was moved to another CPU.
pub const HS_VERDICT_MIGRATED: c_int = 1;
/// The kernel woke the thread after the deadline.
pub const HS_VERDICT_OVERSLEPT: c_int = 2;
/// The polling budget was spent; the rest was slept out.
pub const HS_VERDICT_BUDGET_SPENT: c_int = 3;
/// An interrupt.
pub const HS_VERDICT_INTERRUPTED: c_int = 4;
/// An interrupt or the hypervisor: on a guest the two look alike.
pub const HS_VERDICT_INTERRUPTED_OR_STOLEN: c_int = 5;
/// The hypervisor.
pub const HS_VERDICT_STOLEN: c_int = 6;
/// A disturbance of unknown cause.
pub const HS_VERDICT_UNKNOWN: c_int = 7;
/// The thread was taken off its CPU, or handled a signal.
pub const HS_VERDICT_PREEMPTED: c_int = 8;
/// The kernel's clock did not run at the rate that the time base knows: refine it.
pub const HS_VERDICT_RERATED: c_int = 9;

/// The number of causes of gaps. `gaps` of a report has one entry for each, at the verdict's number minus
/// HS_VERDICT_INTERRUPTED.
pub const HS_CAUSES: usize = 5;

/// Gaps of one cause, in which the thread did not run.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_gaps {
    /// How many gaps,
    pub count: u32,
    /// their total length,
    pub total_ns: i64,
    /// and the length of the longest.
    pub longest_ns: i64,
}

/// The report of a delay.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_report {
    /// The requested time.
    pub requested_ns: i64,
    /// How long it took.
    pub actual_ns: i64,
    /// Actual minus requested; negative only if a lead was set.
    pub late_ns: i64,
    /// Time asleep in the kernel.
    pub slept_ns: i64,
    /// Time spent polling.
    pub polled_ns: i64,
    /// How long before the deadline polling was planned to begin; 0 for a delay that polls throughout.
    pub window_ns: i64,
    /// How late after the deadline the kernel woke the thread.
    pub overslept_ns: i64,
    /// HS_VERDICT_…: the gravest disturbance.
    pub verdict: c_int,
    /// The thread was moved to another CPU.
    pub migrated: bool,
    /// The polling budget was spent, and the rest was slept out.
    pub budget_spent: bool,
    /// The longest gap looks like the kernel's throttling of real-time threads.
    pub throttled: bool,
    /// The kernel's clock did not run at the rate that the time base knows: refine it.
    pub rerated: bool,
    /// The gaps by cause: interrupted, interrupted or stolen, stolen, unknown, preempted.
    pub gaps: [hs_gaps; HS_CAUSES],
}

impl hs_report {
    #[inline]
    pub(crate) fn new(report: &Report) -> Self {
        let verdict = &report.verdict;
        Self {
            requested_ns: report.requested.count(),
            actual_ns: report.actual.count(),
            late_ns: report.late.count(),
            slept_ns: report.slept.count(),
            polled_ns: report.polled.count(),
            window_ns: report.window.count(),
            overslept_ns: verdict.overslept.count(),
            verdict: number(verdict),
            migrated: verdict.migrated,
            budget_spent: verdict.budget_spent,
            throttled: verdict.throttled,
            rerated: verdict.rerated,
            gaps: Cause::ALL.map(|cause| {
                let gaps = verdict.gaps(cause);
                hs_gaps { count: gaps.count, total_ns: gaps.total.count(), longest_ns: gaps.longest.count() }
            }),
        }
    }
}

/// The verdicts that are causes, in the order of `Cause::ALL`.
const CAUSES: [c_int; HS_CAUSES] = [
    HS_VERDICT_INTERRUPTED,
    HS_VERDICT_INTERRUPTED_OR_STOLEN,
    HS_VERDICT_STOLEN,
    HS_VERDICT_UNKNOWN,
    HS_VERDICT_PREEMPTED,
];

/// The number of a verdict, as `Verdict::name` chooses its word.
fn number(verdict: &Verdict) -> c_int {
    let gravest = Cause::ALL.into_iter().zip(CAUSES).rev().find(|(cause, _)| verdict.gaps(*cause).count > 0);
    match gravest {
        Some((_, number)) => number,
        None if verdict.overslept > Nanos::ZERO => HS_VERDICT_OVERSLEPT,
        None if verdict.migrated => HS_VERDICT_MIGRATED,
        None if verdict.budget_spent => HS_VERDICT_BUDGET_SPENT,
        None if verdict.rerated => HS_VERDICT_RERATED,
        None => HS_VERDICT_CLEAN,
    }
}

/// The words for the verdicts, by number.
const WORDS: [&CStr; 10] = [
    c"clean",
    c"migrated",
    c"overslept",
    c"budget_spent",
    c"interrupted",
    c"interrupted_or_stolen",
    c"stolen",
    c"unknown",
    c"preempted",
    c"rerated",
];

/// The word for a verdict, such as "clean"; "" for an invalid number; never NULL. Lives as long as the process.
#[unsafe(no_mangle)]
pub extern "C" fn hs_verdict_name(verdict: c_int) -> *const c_char {
    usize::try_from(verdict).ok().and_then(|number| WORDS.get(number)).map_or(c"", |word| *word).as_ptr()
}

/// Runs a delay on a time base and writes its report.
#[inline(always)]
fn poll(
    timebase: *const hs_timebase,
    report: *mut hs_report,
    delay: impl FnOnce(&hairspring_time::Timebase) -> Result<Report, Failure>,
) -> c_int {
    door(|| {
        let place = Place::wanted(report)?;
        let result = delay(&Shared::of(timebase)?.timebase)?;
        if let Some(place) = place {
            place.put(hs_report::new(&result));
        }
        Ok(())
    })
}

/// Waits at least this long (0 to 100,000,000 ns) by polling: never early, late by a poll step unless disturbed. From
/// 20 us on, a reading of the kernel's clock confirms the end. Below that, a change of the kernel's rate since the
/// calibration can make the delay early by the change times the request, 10 ns at 500 ppm. Real-time safe; uses the
/// whole CPU. `report` may be NULL. HS_E_NEGATIVE, HS_E_TOO_LONG_TO_POLL, HS_E_RANGE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_delay_ns(timebase: *const hs_timebase, request_ns: i64, report: *mut hs_report) -> c_int {
    poll(timebase, report, |timebase| Ok(timebase.delay(Nanos::new(request_ns))?))
}

/// The same in microseconds (0 to 100,000), rounded up to a nanosecond. Also HS_E_NAN.
#[unsafe(no_mangle)]
pub extern "C" fn hs_delay_us(timebase: *const hs_timebase, request_us: f64, report: *mut hs_report) -> c_int {
    poll(timebase, report, |timebase| Ok(timebase.delay(micros(request_us)?)?))
}

/// Waits until an instant, at most 100 ms ahead, by polling; one that has passed returns at once, with its lateness.
/// Real-time safe. HS_E_EPOCH, HS_E_TOO_LONG_TO_POLL.
#[unsafe(no_mangle)]
pub extern "C" fn hs_delay_until(
    timebase: *const hs_timebase,
    deadline: *const hs_instant,
    report: *mut hs_report,
) -> c_int {
    poll(timebase, report, |timebase| Ok(timebase.delay_until(read(deadline)?.on(timebase)?)?))
}

/// Waits at least this long and polls for at most `budget_ns` (0 or more). Then it sleeps for the rest, and the report
/// says so. Set a budget above 100 ms to poll for long on purpose. HS_E_NEGATIVE, HS_E_TOO_LONG_TO_POLL, HS_E_RANGE.
#[unsafe(no_mangle)]
pub extern "C" fn hs_delay_polling_ns(
    timebase: *const hs_timebase,
    request_ns: i64,
    budget_ns: i64,
    report: *mut hs_report,
) -> c_int {
    poll(timebase, report, |timebase| {
        if budget_ns < 0 {
            return Err(Failure::new(HS_E_NEGATIVE, format!("poll for {budget_ns} ns at most: it is negative")));
        }
        Ok(timebase.delay_polling(Nanos::new(request_ns), Nanos::new(budget_ns))?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_words_are_those_of_the_time_crate() {
        assert_eq!(WORDS.map(|word| word.to_str().unwrap()), Verdict::NAMES);
        let (mut migrated, mut overslept, mut spent) = (Verdict::default(), Verdict::default(), Verdict::default());
        let mut rerated = Verdict::default();
        (migrated.migrated, migrated.budget_spent) = (true, true);
        rerated.rerated = true;
        assert_eq!((number(&rerated), rerated.name()), (HS_VERDICT_RERATED, "rerated"));
        (overslept.overslept, overslept.migrated) = (Nanos::new(1), true);
        spent.budget_spent = true;
        let verdicts = [Verdict::default(), migrated, overslept, spent];
        for (expected, verdict) in verdicts.iter().enumerate() {
            assert_eq!(usize::try_from(number(verdict)), Ok(expected));
            assert_eq!(WORDS[expected].to_str(), Ok(verdict.name()));
        }
    }

    #[test]
    fn causes_are_numbered_as_they_are_named() {
        for (cause, number) in Cause::ALL.into_iter().zip(CAUSES) {
            assert_eq!(WORDS[number as usize].to_str(), Ok(cause.name()));
        }
    }
}
