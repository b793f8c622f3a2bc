//! Guaranteed-minimum delays: they poll, and never return early.
//!
//! # Problem
//! A program wants to wait some microseconds, at least that long and hardly longer. The operating system's sleeps miss by
//! 10–80 µs.
//!
//! # Solution
//! Poll the counter. The deadline is computed once, in ticks, rounded up, with the calibration's bound added; unless the
//! thread has certainly read the counter of the same CPU at both ends, the skew between their counters is added too. The
//! final read is ordered, so nothing that follows the call can have begun before the deadline.
//!
//! # Conditions
//! Polling uses the whole CPU, so more than [`POLL_MOST`] is refused unless asked for by
//! [`delay_polling`](Timebase::delay_polling); [`LongDelay`](crate::LongDelay) is the remedy. Under `SCHED_FIFO` the
//! kernel stalls whoever uses more than its share (by default 50 ms in each second); the report says when a gap looks
//! like that.
//!
//! # Why it is never early
//! `start` is an ordered read inside the call; the loop ends at the first read at or after
//! `start + ⌈request · rate · (1 + bound)⌉`. The true rate is at most `rate · (1 + bound)`, so by the kernel's clock at
//! least the request has passed. The watchdog cannot make it early: when the budget is spent, the rest is slept out.

use hairspring_machine::{Clock, Machine, Nanos, Policy, Ticks};

use crate::instant::Instant;
use crate::poll::{Watch, poll};
use crate::timebase::Timebase;
use crate::verdict::{Cause, Verdict};

/// The longest delay that polls without having been asked to: longer, and the machine seems to hang.
pub const POLL_MOST: Nanos = Nanos::from_millis(100);

/// The longest delay of any kind, 100 days: beyond it a request is taken for a mistake.
pub const REQUEST_MOST: Nanos = Nanos::from_secs(100 * 86_400);

/// What a delay did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// What was asked for.
    pub requested: Nanos,
    /// How long it took, from the first read inside the call to the last.
    pub actual: Nanos,
    /// `actual − requested`; negative only if a lead was asked for.
    pub late: Nanos,
    /// Time spent asleep in the kernel.
    pub slept: Nanos,
    /// Time spent polling.
    pub polled: Nanos,
    /// How long before the deadline the polling was meant to begin; zero for a delay that polls throughout.
    pub window: Nanos,
    /// What disturbed it.
    pub verdict: Verdict,
}

/// Why a delay was refused. Nothing was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayError {
    /// The request is negative.
    Negative(Nanos),
    /// The request is longer than may be polled.
    TooLongToPoll(Nanos),
    /// The request is longer than [`REQUEST_MOST`].
    Absurd(Nanos),
    /// The deadline is an instant of another epoch or another time base.
    OtherEpoch,
    /// It was cancelled by its flag after so much time.
    Cancelled(Nanos),
}

impl std::fmt::Display for DelayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Negative(span) => write!(f, "delay for {span}: a delay cannot be negative"),
            Self::TooLongToPoll(span) => {
                write!(f, "poll for {span}: more than {POLL_MOST} would lock up the machine; use LongDelay")
            }
            Self::Absurd(span) => write!(f, "delay for {span}: more than 100 days is taken for a mistake"),
            Self::OtherEpoch => {
                f.write_str("delay until an instant of another epoch: take the deadline from this time base")
            }
            Self::Cancelled(span) => write!(f, "finish the delay: cancelled after {span}"),
        }
    }
}

impl std::error::Error for DelayError {}

/// Refuses what no delay can mean.
pub(crate) fn check(request: Nanos) -> Result<Nanos, DelayError> {
    if request.is_negative() {
        Err(DelayError::Negative(request))
    } else if request > REQUEST_MOST {
        Err(DelayError::Absurd(request))
    } else {
        Ok(request)
    }
}

impl<M: Machine> Timebase<M> {
    /// Waits at least `request` by polling. Never early by the kernel's clock, within the calibration's bound; late by a
    /// poll step or two unless disturbed. Uses the whole CPU meanwhile; real-time safe; a request of zero returns at once.
    ///
    /// # Errors
    /// Negative requests and requests above [`POLL_MOST`].
    #[inline]
    pub fn delay(&self, request: Nanos) -> Result<Report, DelayError> {
        self.delay_polling(request, POLL_MOST)
    }

    /// Waits until `deadline` on this time base's scale by polling: afterwards `now()` is not before it. A deadline that
    /// has passed returns at once, with its lateness.
    ///
    /// # Errors
    /// An instant of another epoch, or one that lies more than [`POLL_MOST`] ahead.
    #[inline]
    pub fn delay_until(&self, deadline: Instant) -> Result<Report, DelayError> {
        let (watch, start) = Watch::open(self);
        let ahead = deadline.since(self.instant(start)).map_err(|_| DelayError::OtherEpoch)?;
        if ahead > POLL_MOST {
            return Err(DelayError::TooLongToPoll(ahead));
        }
        if ahead.is_negative() {
            let verdict = Verdict::default();
            let none = Nanos::ZERO;
            return Ok(Report {
                requested: none,
                actual: none,
                late: -ahead,
                slept: none,
                polled: none,
                window: none,
                verdict,
            });
        }
        Ok(self.poll_out(watch, start, ahead, POLL_MOST))
    }

    /// Waits at least `request`, polling for at most `budget` of it; whatever is left then is slept out, late by a wake-up
    /// of the kernel, and the verdict says so. With a budget above [`POLL_MOST`] this is the way to poll for long on
    /// purpose.
    ///
    /// # Errors
    /// Negative and absurd requests, and requests above [`POLL_MOST`] with a budget that does not exceed it.
    #[inline]
    pub fn delay_polling(&self, request: Nanos, budget: Nanos) -> Result<Report, DelayError> {
        check(request)?;
        if request > POLL_MOST && budget <= POLL_MOST {
            return Err(DelayError::TooLongToPoll(request));
        }
        let (watch, start) = Watch::open(self);
        Ok(self.poll_out(watch, start, request, budget))
    }

    #[inline]
    fn poll_out(&self, mut watch: Watch<'_, M>, start: Ticks, request: Nanos, budget: Nanos) -> Report {
        let deadline = start.plus(self.ticks_for_at_least(request));
        let polled = poll(&mut watch, start, deadline, self.ticks_for_at_least(budget).max(1), self.skew());
        let mut report = self.report(start, request, polled.end, watch.end());
        if !polled.reached {
            self.sleep_out(start, polled.deadline, polled.end, &mut report);
        }
        if report.verdict.gaps(Cause::Preempted).count > 0 {
            report.verdict.throttled = self.looks_throttled(&report.verdict);
        }
        report
    }

    fn report(&self, start: Ticks, requested: Nanos, end: Ticks, verdict: Verdict) -> Report {
        let actual = self.nanos(end.since(start));
        Report {
            requested,
            actual,
            late: actual - requested,
            slept: Nanos::ZERO,
            polled: actual,
            window: Nanos::ZERO,
            verdict,
        }
    }

    /// The watchdog's second half: the budget is spent, so the kernel waits for the rest.
    #[cold]
    fn sleep_out(&self, start: Ticks, deadline: Ticks, polled_end: Ticks, report: &mut Report) {
        let machine = self.machine();
        let left = self.nanos(deadline.since(polled_end)) + Nanos::new(1);
        // A guard for the rate, as the kernel's clock and ours may differ by the bound.
        let left = left + Nanos::new((left.count() as f64 * self.calibration().bound_ppm * 1e-6).ceil() as i64);
        // A counter that was set back asks for ages; from here on the whole request is always enough.
        let left = left.min(report.requested);
        let from = machine.read(Clock::Monotonic);
        let until = from + left;
        let mut now = from;
        while now < until {
            machine.sleep_until(until);
            now = machine.read(Clock::Monotonic);
        }
        report.slept = now - from;
        // A counter that stands still or was set back shows no time; the kernel's clock has seen it pass.
        report.polled = report.polled.max(Nanos::ZERO);
        let least = report.requested.max(report.polled + report.slept);
        report.actual = self.nanos(self.stamp_ordered().since(start)).max(least);
        report.late = report.actual - report.requested;
    }

    /// Whether the longest preemption looks like the kernel's stall of real-time threads. Opens files, after the delay.
    #[cold]
    fn looks_throttled(&self, verdict: &Verdict) -> bool {
        let machine = self.machine();
        if !matches!(machine.policy(), Policy::Fifo(_) | Policy::RoundRobin(_)) {
            return false;
        }
        machine.real_time_throttle().is_some_and(|(runtime, period)| {
            let stall = (period - runtime).count();
            let longest = verdict.gaps(Cause::Preempted).longest.count();
            longest > stall * 4 / 5 && longest < stall * 6 / 5
        })
    }
}
