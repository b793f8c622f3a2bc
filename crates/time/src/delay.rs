//! Guaranteed-minimum delays: they poll, and never return early.
//!
//! # Problem
//! A program wants to wait some microseconds, at least that long and hardly longer. The operating system's sleeps miss
//! by 10–80 µs.
//!
//! # Solution
//! Poll the counter; from [`CONFIRMED_FROM`] on, end by readings of the kernel's clock.
//!
//! * *Short* delays: the deadline is computed once, in ticks, rounded up, with the calibration's bound added; unless
//!   the thread has certainly read the counter of the same CPU at both ends, the skew between their counters is added
//!   too. A fence ends the call, so nothing that follows the call can have begun before the deadline.
//! * *Confirmed* delays: the kernel's clock is read first, the counter is polled until about a microsecond before the
//!   end, and the kernel's clock is read until it shows that the request has passed.
//!
//! # Conditions
//! Polling uses the whole CPU, so a delay refuses more than [`POLL_MOST`] unless the caller uses
//! [`delay_polling`](Timebase::delay_polling). Use [`LongDelay`](crate::LongDelay) for longer waits. Under `SCHED_FIFO`
//! the kernel stalls a thread that uses more than its share (by default for 50 ms in each second). The report marks a
//! gap that looks like that.
//!
//! # Why it is never early
//! *Short*: `start` is an ordered read inside the call; the loop ends at the first read at or after
//! `start + ⌈request · rate · (1 + bound)⌉`. The true rate is at most `rate · (1 + bound)`, so by the kernel's clock at
//! least the request has passed. **This holds while the kernel's clock runs at the rate at which it ran during the
//! calibration.** If its rate has changed since, a short delay can be early by the change times the request. `adjtimex`
//! changes the rate by at most 500 ppm, which makes 10 ns in 20 µs. chrony changes it by at most 100,000 ppm, if it is
//! so configured, which makes 2 µs. [`Timebase::refine`] learns the new rate.
//!
//! *Confirmed*: no rate enters. The delay ends after a reading of `CLOCK_MONOTONIC` that is at least the first one plus
//! the request. If the delay finds that the rate has changed, its verdict contains `rerated`.
//!
//! The watchdog cannot make either early: when the budget is spent, the thread sleeps for the rest.

use std::hint::black_box;

use hairspring_machine::{Instant, Machine, Nanos, Ticks};

use crate::calibration::Bracket;
use crate::ending::Ending;
use crate::goal::Goal;
use crate::poll::{Polled, Watch, poll};
use crate::report::{DelayError, POLL_MOST, Report, check};
use crate::timebase::Timebase;
use crate::trust::TimeSource;

/// The shortest request at whose end the delay reads the kernel's clock. In a shorter one a change of the kernel's rate
/// by `adjtimex` makes at most 10 ns, and two readings of that clock would take a large part of the request.
pub const CONFIRMED_FROM: Nanos = Nanos::from_micros(20);

/// How long before its end a confirmed delay changes from the counter to the kernel's clock: a few readings of that
/// clock.
const CONFIRM_AHEAD: Nanos = Nanos::from_micros(1);

impl<M: Machine> Timebase<M> {
    /// Waits at least `request` by polling. It is never early by the kernel's clock: from [`CONFIRMED_FROM`] on in any
    /// case, and below it if that clock runs as it did during the calibration. Undisturbed, it is late by a poll step.
    /// It uses the whole CPU and is real-time safe. A request of zero returns at once.
    ///
    /// # Errors
    /// Negative requests and requests above [`POLL_MOST`].
    #[inline]
    pub fn delay(&self, request: Nanos) -> Result<Report, DelayError> {
        self.delay_polling(request, POLL_MOST)
    }

    /// Waits until `deadline` by polling. Afterwards `now()` is not before the deadline. Neither is the kernel's clock,
    /// corrected by the offset that was measured last. If both have passed the deadline already, the call returns at
    /// once with the lateness.
    ///
    /// # Errors
    /// An instant of another epoch, or one that lies more than [`POLL_MOST`] ahead. Readings of the kernel's clock
    /// ([`Epoch::KERNEL`](crate::Epoch::KERNEL)) are accepted.
    #[inline]
    pub fn delay_until(&self, deadline: Instant) -> Result<Report, DelayError> {
        self.poll_confirmed(Wanted::Deadline(deadline))
    }

    /// Waits at least `request`, counted from `began`: a reading of the kernel's clock ([`Machine::monotonic`]) that
    /// the caller took before. The kernel's clock always confirms the end, however little of the request is left. For
    /// callers that build a delay from parts.
    ///
    /// # Errors
    /// Negative requests, and requests of which more than [`POLL_MOST`] is left.
    #[inline]
    pub fn delay_since(&self, began: Instant, request: Nanos) -> Result<Report, DelayError> {
        self.poll_confirmed(Wanted::Since { began, request })
    }

    /// Waits at least `request` and polls for at most `budget` of it. Then the thread sleeps for the rest, which is
    /// late by a wake-up of the kernel; the verdict reports it. A budget above [`POLL_MOST`] polls for long on purpose.
    ///
    /// # Errors
    /// Negative and absurd requests, and requests above [`POLL_MOST`] with a budget that does not exceed it.
    #[inline]
    pub fn delay_polling(&self, request: Nanos, budget: Nanos) -> Result<Report, DelayError> {
        if request.is_negative() || request >= CONFIRMED_FROM || budget < request {
            return self.poll_confirmed(Wanted::Span { request, budget });
        }
        // One variable and one return: so it is the caller's variable, and no copy is made after the end.
        let mut told = Ok(Report::NONE);
        self.poll_short(request, &mut told);
        told
    }

    /// A delay by the counter alone. It writes the report into the caller's variable, and none of it is a copy: a copy
    /// of a report written just before would cost more than the call.
    ///
    /// Its end is rehearsed, see [`Ending`]. An interrupt in the rehearsal that is over before the deadline is not in
    /// the verdict.
    #[inline(never)]
    fn poll_short(&self, request: Nanos, told: &mut Result<Report, DelayError>) {
        let (mut watch, start) = Watch::open(self);
        let deadline = start.plus(self.ticks_for_at_least(request));
        *told = Ok(Report { requested: request, ..Report::NONE });
        let Ok(report) = told else { return };
        // The compiler must not know the answer, or it would make two copies of the code.
        let mut rehearsal = black_box(request >= self.gap_least());
        loop {
            let (until, skew) = if rehearsal { (start, Nanos::ZERO) } else { (deadline, self.skew()) };
            let polled = poll(&mut watch, start, until, i64::MAX, Instant::END, skew);
            if !polled.reached {
                return *report = self.sleep_out(watch, start, polled, request);
            }
            let actual = self.nanos(polled.end.since(start));
            (report.actual, report.late, report.polled) = (actual, actual - request, actual);
            // The poll has seen every disturbance that began before the last reading as a gap.
            if watch.has_news(Nanos::ZERO) {
                report.verdict = watch.explain(Nanos::ZERO, false);
            }
            if !rehearsal {
                drop(watch);
                // Nothing that follows has begun before the deadline.
                self.machine().fence();
                return;
            }
            rehearsal = black_box(false);
            // Fetching cold code is no gap, unless it took until after the deadline.
            let now = self.stamp();
            if deadline.since(now) > 0 {
                watch.pass_over_to(now);
            }
        }
    }

    /// A delay that ends by the kernel's clock, or is refused: two calls of [`advance`](Self::advance), of which only
    /// the loop is inlined into the caller's code. The first returns after the rehearsal, so the code to which the
    /// delay returns has run just before the goal.
    #[inline(always)]
    fn poll_confirmed(&self, wanted: Wanted) -> Result<Report, DelayError> {
        let mut told = Ok(Report::NONE);
        let mut near = None;
        while !self.advance(wanted, &mut near, &mut told) {}
        told
    }

    /// Brings a delay further. The first call polls until just before the goal and rehearses the end; the second ends
    /// the delay. Returns whether the delay is over.
    #[inline(never)]
    fn advance<'t>(
        &'t self,
        wanted: Wanted,
        near: &mut Option<Near<'t, M>>,
        told: &mut Result<Report, DelayError>,
    ) -> bool {
        // First of all: the time that passes before this reading is not in the delay.
        let now = self.machine().monotonic();
        // The compiler must not know the answer, or it would make two copies of the end.
        let rehearsal = black_box(near.is_none());
        if rehearsal {
            match self.come_near(now, wanted, told) {
                Ok(at) => *near = at,
                Err(refused) => *told = Err(refused),
            }
        }
        let (Some(near), Ok(report)) = (near, told) else { return true };
        let request = near.request;
        near.ending.pass(rehearsal, report, |report, reached, slept| {
            report.actual = request + reached.over;
            report.late = reached.over;
            report.slept = slept;
            report.polled = report.actual - slept;
        });
        !rehearsal
    }

    /// A confirmed delay without its end: polls until just before the goal. None if the delay is over already; then its
    /// report is complete.
    #[inline(never)]
    fn come_near<'t>(
        &'t self,
        now: Instant,
        wanted: Wanted,
        told: &mut Result<Report, DelayError>,
    ) -> Result<Option<Near<'t, M>>, DelayError> {
        let mut watch = Watch::begin_by_clock(self, now);
        let left_to_poll = |goal: Goal| match goal.left(self, now) {
            left if left > POLL_MOST => Err(DelayError::TooLongToPoll(left)),
            left => Ok(left),
        };
        let (goal, request, budget) = match wanted {
            Wanted::Span { request, budget } => {
                check(request)?;
                if request > POLL_MOST && budget <= POLL_MOST {
                    return Err(DelayError::TooLongToPoll(request));
                }
                if self.source() == TimeSource::KernelClock && budget >= request {
                    // Every reading confirms.
                    self.poll_short(request, told);
                    return Ok(None);
                }
                (Goal::after(self, now, request), request, budget)
            }
            Wanted::Since { began, request } => {
                check(request)?;
                let goal = Goal::after(self, began, request);
                left_to_poll(goal)?;
                (goal, request, POLL_MOST)
            }
            Wanted::Deadline(deadline) => {
                let deadline = self.deadline(deadline);
                let ahead = deadline.since(self.now_ordered()).map_err(|_| DelayError::OtherEpoch)?;
                let goal = Goal::until(self, now, deadline, ahead);
                if left_to_poll(goal)? <= Nanos::ZERO {
                    *told = Ok(goal.passed(self));
                    return Ok(None);
                }
                (goal, ahead.max(Nanos::ZERO), POLL_MOST)
            }
        };
        let first = goal.tie(self);
        watch.start_at(first.before);
        watch.look(first.after);
        let budget = self.ticks_for_at_least(budget).max(1);
        let (last, near) = goal.approach(self, &mut watch, first, CONFIRM_AHEAD, budget);
        if !watch.may_have_moved() && !self.agrees(&first, &last) {
            watch.note(|verdict| verdict.rerated = true);
        }
        let slept = if near { Nanos::ZERO } else { goal.wait_out(self, &mut watch) };
        *told = Ok(Report { requested: request, ..Report::NONE });
        Ok(Some(Near { ending: Ending::new(goal, self, watch, slept), request }))
    }

    /// The second half of the watchdog: the counter does not reach the deadline, so the thread sleeps in the kernel.
    /// The time that has passed is unknown, so it sleeps for the whole request.
    #[cold]
    fn sleep_out(&self, mut watch: Watch<'_, M>, start: Ticks, polled: Polled, request: Nanos) -> Report {
        let from = self.machine().monotonic();
        let slept = Goal::after(self, from, request).wait_out(self, &mut watch);
        // A counter that stands still or was set back shows no time; the kernel's clock shows the time that passed.
        let before = self.nanos(polled.end.since(start)).max(Nanos::ZERO);
        let (actual, verdict) = (before + slept, watch.end());
        Report {
            requested: request,
            actual,
            late: actual - request,
            slept,
            polled: before,
            window: Nanos::ZERO,
            verdict,
        }
    }

    /// Whether the kernel's clock ran at the rate that the time base knows between two ties.
    fn agrees(&self, first: &Bracket, last: &Bracket) -> bool {
        let passed = last.clock - first.clock;
        let slack = self.drift_in(passed) + self.machine().clock_step() * 2 + Nanos::new(2);
        let least = self.nanos(last.before.since(first.after)) - slack;
        let most = self.nanos(last.after.since(first.before)) + slack;
        (least..=most).contains(&passed)
    }
}

/// The end of a confirmed delay.
#[derive(Clone, Copy)]
enum Wanted {
    /// A time from now on, of which at most `budget` may be polled.
    Span { request: Nanos, budget: Nanos },
    /// A time from this reading of the kernel's clock on.
    Since { began: Instant, request: Nanos },
    /// An instant of the time base.
    Deadline(Instant),
}

/// A confirmed delay just before its goal.
struct Near<'t, M: Machine> {
    ending: Ending<'t, M>,
    request: Nanos,
}

#[cfg(test)]
mod tests {
    use hairspring_machine::sim::Script;
    use hairspring_machine::{Sim, Ticks};

    use super::*;

    /// At 1 GHz a tick is a nanosecond. The clock is read 20 ticks after the first reading of each bracket, and 10
    /// before the last.
    #[test]
    fn the_clocks_agree_as_far_as_brackets_the_bound_of_the_rate_and_steps_allow() {
        let timebase = Timebase::calibrate(Sim::new(Script { rate_hz: 1_000_000_000, ..Script::default() }));
        let timebase = timebase.expect("it advances");
        let bracket = |at: i64, clock: i64| Bracket {
            before: Ticks::new(at as u64),
            clock: Nanos::new(clock),
            after: Ticks::new(at as u64 + 30),
        };
        let span = 10_000_000;
        let allowed = timebase.drift_in(Nanos::new(span)).count() + 2 * timebase.machine().clock_step().count() + 2;
        assert!(allowed > 20, "the rate is less sure than steps and rounding: {allowed} ns");
        let agrees = |passed: i64| timebase.agrees(&bracket(5_000, 1_000), &bracket(5_000 + span, 1_000 + passed));
        let (least, most) = (timebase.nanos(span - 30).count() - allowed, timebase.nanos(span + 30).count() + allowed);
        for (passed, expected) in [(span, true), (most, true), (most + 1, false), (least, true), (least - 1, false)] {
            assert_eq!(agrees(passed), expected, "{passed} ns in {span}, and {allowed} beside the brackets");
        }
    }
}
