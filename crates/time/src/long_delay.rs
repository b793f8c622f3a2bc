//! [`LongDelay`]: delays that sleep, and still end to the microsecond.
//!
//! # Problem
//! Polling for a second locks up a CPU; sleeping for a second misses by 100 µs; and a rate that is wrong by 1 ppm
//! misses by 1 µs even if all else is perfect.
//!
//! # Solution
//! Sleep most of the time, poll the end, and measure against the kernel's clock at both ends:
//!
//! ```text
//!  start                                        deadline − coarse     deadline − window            deadline
//!    │ read kernel clock                              │                     │                         │
//!    ├──────────────── first sleep ───────────────────┼──── second sleep ───┼─ poll ─ bracket ─ poll ─┤ confirm
//!    │                                                │ wakes late          │ wakes late              │ by kernel clock
//! ```
//!
//! * The *first sleep* may be long, so the CPU enters a deep idle state and wakes late; the coarse margin absorbs that
//!   lateness. The *second* is short, so it wakes almost on time.
//! * The *window* is learned. It is the lateness below which 99.5 % of the second sleeps stayed, per length of sleep
//!   and policy; the past fades. It is at least a twenty-thousandth of the request: long delays are few, so they teach
//!   little, and after a long rest a kernel sometimes wakes later than ever before. A budget limits it.
//! * In the window, 20 µs before the deadline, a bracket ties the counter to the kernel's clock anew, so that an error
//!   of the counter's rate acts over the last stretch only: 60 s is as exact as 1 ms.
//! * The poll ends by readings of the kernel's clock, the last of them at or after the deadline.
//! * The end is *rehearsed* 2 µs before: the delay makes its report once without effect, so that the code is in the
//!   caches.
//!
//! # Verdict
//! The verdict is on the last stretch, from the bracket on, because the end depends on it. A gap before it is as
//! harmless as a longer sleep; the verdict names it only if it cut the last stretch short. A wake-up after the deadline
//! counts as `overslept`.
//!
//! # Why it is never early
//! A delay reads `CLOCK_MONOTONIC` last. It returns only if that reading is at least the first one plus the request; on
//! a clock with steps (Windows), plus one step. No rate and no bracket enters that proof. A delay until an instant also
//! waits until our own scale has reached it. With a lead a delay may be early, as the caller asked.
//!
//! Method: Fermilab's "Precision Long Delay" (a coarse loop that releases to the kernel, a second calibration of how
//! late the release returns, a final poll, a tuning argument), with absolute deadlines and a learned window in place of
//! a fixed one.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::{Instant, Machine, Nanos, Policy};

use crate::ending::Ending;
use crate::goal::Goal;
use crate::held::HeldTimebase;
use crate::learned::Learned;
use crate::poll::Watch;
use crate::report::{DelayError, POLL_MOST, Report, check};
use crate::timebase::Timebase;
use crate::timer_slack::LeastSlack;

/// The first sleep ends at least this long before the deadline: enough for its own lateness and a second sleep.
const COARSE_LEAST: Nanos = Nanos::from_micros(400);
/// The first sleep ends at most this long before the deadline, however late it tends to be.
const COARSE_MOST: Nanos = Nanos::from_millis(4);
/// The part of the coarse margin that is left for the second sleep when the first wakes as late as usual.
const SECOND_SLEEP: Nanos = Nanos::from_micros(250);
/// The share of wake-ups that the window covers. The others are late, and the report shows it.
const COVERED: f64 = 0.995;
/// The part of a request that a delay may always poll, and the upper limit of that part.
const FREE_PART: i64 = 20_000;
const FREE_MOST: Nanos = Nanos::from_millis(3);
/// The least window: a bracket and the entry to the poll must fit.
const WINDOW_LEAST: Nanos = Nanos::from_micros(5);
/// The window before anything was learned.
const WINDOW_UNKNOWN: Nanos = Nanos::from_micros(200);
/// The default limit on the CPU time that a delay polls, beside the free part.
const BUDGET: Nanos = Nanos::from_millis(1);
/// A delay polls at most this part of the request, so that a bad moment of the machine does not turn short delays into
/// mere polling,
const BUDGET_PART: i64 = 2;
/// but it may always poll this long, which most wake-ups need.
const BUDGET_LEAST: Nanos = Nanos::from_micros(200);
/// Sleeps from which a new `LongDelay` learns; about 10 ms in all.
const LESSONS: u32 = 12;
/// Length of the sleep that a lesson times: that of the second sleep.
const LESSON: Nanos = Nanos::from_micros(300);
/// The longest sleep between two looks at the flag that cancels a delay.
const CANCEL_LOOK: Nanos = Nanos::from_millis(100);
/// How long before the deadline the counter is tied to the kernel's clock for the last time.
const ANCHOR_AHEAD: Nanos = Nanos::from_micros(20);
/// How long before the deadline the loop that reads the kernel's clock takes over from the loop that reads the counter.
/// It is enough for the end of the first loop, the return into the caller's code and the error of a bracket, also if a
/// long sleep has left caches and page tables cold.
const CONFIRM_AHEAD: Nanos = Nanos::from_micros(5);
/// The number of delays that find a lead: as many as fit into [`TUNE_TIME`], between these two.
const TUNE_DELAYS: usize = 51;
const TUNE_DELAYS_LEAST: usize = 11;
const TUNE_TIME: Nanos = Nanos::from_secs(1);

/// Delays that sleep first and poll last, and learn how late this kernel wakes this thread.
#[derive(Debug)]
pub struct LongDelay<'t, M: Machine> {
    timebase: HeldTimebase<'t, M>,
    sleeper: Sleeper<'t>,
}

/// Everything of a long delay but its time base: what it has learned, and what the caller has asked for.
#[derive(Debug)]
struct Sleeper<'t> {
    learned: Learned,
    lead: Nanos,
    /// The caller's limit on polling; none for the default.
    budget: Option<Nanos>,
    cancel: Option<&'t AtomicBool>,
}

impl<'t, M: Machine> LongDelay<'t, M> {
    /// Learns how late the kernel wakes the calling thread under its present policy, in about 10 ms of short sleeps.
    /// Every later delay adds to what it has learned. The time base is lent, or given away: then the long delay borrows
    /// nothing.
    pub fn new(timebase: impl Into<HeldTimebase<'t, M>>) -> Self {
        let timebase = timebase.into();
        let mut sleeper = Sleeper { learned: Learned::new(), lead: Nanos::ZERO, budget: None, cancel: None };
        let machine = timebase.machine();
        let quiet = LeastSlack::begin(machine);
        for _ in 0..LESSONS {
            let until = machine.monotonic() + LESSON;
            machine.sleep_until(until);
            let late = machine.monotonic() - until;
            sleeper.learned.note(quiet.policy, LESSON, late);
        }
        drop(quiet);
        Self { timebase, sleeper }
    }

    /// Uses this successor of its time base from now on, see [`HeldTimebase`]; keeps what it has learned. Instants of a
    /// former epoch are then refused as deadlines. Allocates; not real-time safe.
    pub fn adopt(&mut self, successor: Timebase<M>) {
        self.timebase.adopt(successor);
    }

    /// Ends every delay earlier by `lead`, so that delays lie around the target instead of after it. A negative lead
    /// counts as none.
    #[must_use]
    pub fn with_lead(self, lead: Nanos) -> Self {
        Self { sleeper: Sleeper { lead: lead.max(Nanos::ZERO), ..self.sleeper }, ..self }
    }

    /// Limits the CPU time that one delay may spend polling; at least 5 µs. A small budget makes late returns more
    /// likely. The default is half of the request, at least 200 µs and at most 1 ms. For requests above 20 s it is a
    /// twenty-thousandth, at most 3 ms.
    #[must_use]
    pub fn with_budget(self, budget: Nanos) -> Self {
        let budget = Some(budget.max(WINDOW_LEAST).min(POLL_MOST));
        Self { sleeper: Sleeper { budget, ..self.sleeper }, ..self }
    }

    /// Lets a flag end a delay before its time. The delay looks at the flag before each sleep, when a signal wakes the
    /// thread, and ten times in each second of sleep. So a signal between the look and the sleep is not lost.
    #[must_use]
    pub fn cancelled_by(self, flag: &'t AtomicBool) -> Self {
        Self { sleeper: Sleeper { cancel: Some(flag), ..self.sleeper }, ..self }
    }

    /// The time base in use.
    pub fn timebase(&self) -> &Timebase<M> {
        &self.timebase
    }

    /// The lead in force.
    pub fn lead(&self) -> Nanos {
        self.sleeper.lead
    }

    /// How long before its deadline a delay of this length would begin to poll now, under the thread's present policy.
    pub fn window(&self, request: Nanos) -> Nanos {
        self.sleeper.window_for(self.timebase.machine().policy(), request.min(COARSE_LEAST), request)
    }

    /// Finds and sets the lead with which the median delay of this length is exact, as the caller sees it. Returns the
    /// lead. The length matters: the longer the thread has slept, the colder are its caches, and the later the caller
    /// sees the end. Takes 51 delays; above 20 ms as many as fit into a second, but at least 11.
    ///
    /// # Errors
    /// Negative and absurd requests; cancelled by its flag.
    pub fn tune(&mut self, request: Nanos) -> Result<Nanos, DelayError> {
        self.sleeper.lead = Nanos::ZERO;
        self.sleeper.lead = lead_for(request, || {
            let before = self.timebase.stamp_ordered();
            self.delay(request)?;
            let after = self.timebase.stamp_ordered();
            Ok(self.timebase.nanos(after.since(before)) - request)
        })?;
        Ok(self.sleeper.lead)
    }

    /// Waits at least `request` (without a lead) by the kernel's clock, asleep for all but the last stretch.
    ///
    /// # Errors
    /// Negative and absurd requests; cancelled by its flag.
    #[inline(always)]
    pub fn delay(&mut self, request: Nanos) -> Result<Report, DelayError> {
        self.wait(Wanted::Span { began: None, request }, &mut |_| ())
    }

    /// The same, counted from `began`: a reading of the kernel's clock ([`Machine::monotonic`]) that the caller took
    /// earlier. A binding reads it before it checks arguments and takes locks, which costs microseconds after a rest;
    /// the delay does not end later for that. `prepare` is called as by
    /// [`delay_until_prepared`](Self::delay_until_prepared).
    ///
    /// # Errors
    /// As [`delay`](Self::delay).
    #[inline(always)]
    pub fn delay_since(
        &mut self,
        began: Instant,
        request: Nanos,
        mut prepare: impl FnMut(Nanos),
    ) -> Result<Report, DelayError> {
        self.wait(Wanted::Span { began: Some(began), request }, &mut prepare)
    }

    /// Waits until `deadline` (minus the lead), asleep for all but the last stretch. Without a lead, `now()` is
    /// afterwards not before the deadline. Neither is the kernel's clock, corrected by the offset that was measured
    /// last. The lateness is by the clock that is further. If both have passed the deadline already, the call returns
    /// at once with the lateness.
    ///
    /// # Errors
    /// An instant of another epoch, absurdly distant deadlines; cancelled by its flag.
    #[inline(always)]
    pub fn delay_until(&mut self, deadline: Instant) -> Result<Report, DelayError> {
        self.delay_until_prepared(deadline, |_| ())
    }

    /// Waits as [`delay_until`](Self::delay_until) does, and calls `prepare` once between the last wake-up and the
    /// polled end, with the time that is left. `prepare` is for a rehearsal: the caller runs its action once, without
    /// effect, so that its code and data are in the caches. After seconds of sleep, fetching them can take 100 µs. If
    /// `prepare` takes longer than the time left, the delay is late and the report shows it. A deadline that has passed
    /// is not prepared.
    ///
    /// # Errors
    /// As [`delay_until`](Self::delay_until).
    #[inline(always)]
    pub fn delay_until_prepared(
        &mut self,
        deadline: Instant,
        mut prepare: impl FnMut(Nanos),
    ) -> Result<Report, DelayError> {
        self.wait(Wanted::Deadline(deadline), &mut prepare)
    }

    /// The delay: two calls of [`Sleeper::advance`]. Only their loop is inlined into the caller's code. The first call
    /// returns after the rehearsal, so the code to which the delay returns is in the caches before the goal. The second
    /// call enters as the first did, so the way in is in the caches when the caller's next delay begins.
    #[inline(always)]
    fn wait(&mut self, wanted: Wanted, prepare: &mut dyn FnMut(Nanos)) -> Result<Report, DelayError> {
        // One variable and one return: so it is the caller's variable, and no copy is made after the end. The first
        // call writes it; this is what takes the fewest instructions.
        let mut told = Err(DelayError::OtherEpoch);
        let mut near = None;
        while !self.sleeper.advance(&self.timebase, wanted, prepare, &mut near, &mut told) {}
        told
    }
}

impl Sleeper<'_> {
    /// Brings a delay further. The first call sleeps, polls until just before the goal and rehearses the end; the
    /// second ends the delay. Returns whether the delay is over.
    #[inline(never)]
    fn advance<'h, M: Machine>(
        &mut self,
        timebase: &'h HeldTimebase<'_, M>,
        wanted: Wanted,
        prepare: &mut dyn FnMut(Nanos),
        near: &mut Option<Near<'h, M>>,
        told: &mut Result<Report, DelayError>,
    ) -> bool {
        // First of all, before anything is fetched from memory: the time that passes before this reading is not in the
        // delay.
        let now = timebase.machine().monotonic();
        // The compiler must not know the answer, or it would make two copies of the end.
        let rehearsal = black_box(near.is_none());
        if rehearsal {
            // The compiler must not look up who holds the time base for this before the reading.
            *near = self.try_come_near(black_box(timebase), now, wanted, prepare, told);
        }
        let (Some(near), Ok(report)) = (near, told) else { return true };
        near.pass(rehearsal, report);
        !rehearsal
    }

    /// The goal of a delay that begins now, with the request and the distance of the goal from it.
    fn aim<M: Machine>(&self, timebase: &Timebase<M>, now: Instant, wanted: Wanted) -> Result<Aim, DelayError> {
        match wanted {
            Wanted::Span { began, request } => {
                let (request, began) = (check(request)?, began.unwrap_or(now));
                let span = (request - self.lead).max(Nanos::ZERO);
                Ok(Aim { goal: Goal::after(timebase, began, span), began, request, shift: span - request })
            }
            Wanted::Deadline(deadline) => {
                let deadline = timebase.deadline(deadline);
                let ahead = deadline.since(timebase.now_ordered()).map_err(|_| DelayError::OtherEpoch)?;
                let goal = Goal::until(timebase, now, deadline - self.lead, ahead - self.lead);
                Ok(Aim { goal, began: now, request: check(ahead.max(Nanos::ZERO))?, shift: -self.lead })
            }
        }
    }

    /// The delay without its end: sleeps, and polls until just before the goal.
    fn come_near<'t, M: Machine>(
        &mut self,
        timebase: &'t Timebase<M>,
        Aim { goal, began, request, shift }: Aim,
        prepare: &mut dyn FnMut(Nanos),
    ) -> Result<Near<'t, M>, DelayError> {
        let machine = timebase.machine();
        let mut now = machine.monotonic();
        let mut left = goal.left(timebase, now);
        let (mut asleep_from, mut window) = (now, Nanos::ZERO);
        if left > Nanos::ZERO {
            let quiet = LeastSlack::begin(machine);
            now = machine.monotonic();
            asleep_from = now;
            left = goal.left(timebase, now);
            let coarse = self.coarse(quiet.policy, request);
            // This runs more than once only if our scale and the kernel's clock run at different rates.
            while left > coarse + SECOND_SLEEP {
                now = self.sleep(machine, &quiet, now, now + left - coarse, began)?;
                left = goal.left(timebase, now);
            }
            window = self.window_for(quiet.policy, left, request);
            while left > window {
                now = self.sleep(machine, &quiet, now, now + left - window, began)?;
                left = goal.left(timebase, now);
            }
        }
        if left > Nanos::ZERO {
            prepare(left);
        }
        let (slept, awake_from) = (now - asleep_from, now);
        // Time that passed without a sleep is no wake-up.
        let overslept = if slept > Nanos::ZERO { (-left).max(Nanos::ZERO) } else { Nanos::ZERO };
        let (mut watch, waited) = approach(timebase, goal);
        watch.note(|verdict| verdict.overslept = overslept);
        let ending = Ending::new(goal, timebase, watch, waited);
        Ok(Near { ending, request, shift, slept, awake_from, window })
    }

    /// [`come_near`](Self::come_near), with its error in the report. None also if the deadline has passed already; the
    /// report contains how long ago.
    #[inline(never)]
    fn try_come_near<'t, M: Machine>(
        &mut self,
        timebase: &'t Timebase<M>,
        now: Instant,
        wanted: Wanted,
        prepare: &mut dyn FnMut(Nanos),
        told: &mut Result<Report, DelayError>,
    ) -> Option<Near<'t, M>> {
        let aim = self.aim(timebase, now, wanted);
        if let (Wanted::Deadline(_), Ok(Aim { goal, request, .. })) = (wanted, aim)
            && goal.left(timebase, now) <= Nanos::ZERO
        {
            let passed = goal.passed(timebase);
            *told = Ok(Report { requested: request, late: passed.late - self.lead, ..passed });
            return None;
        }
        match aim.and_then(|aim| self.come_near(timebase, aim, prepare)) {
            Ok(near) => {
                *told = Ok(Report { requested: near.request, window: near.window, ..Report::NONE });
                Some(near)
            }
            Err(error) => {
                *told = Err(error);
                None
            }
        }
    }

    /// Sleeps until `until` by the kernel's clock, learns from it, and returns the reading after it.
    fn sleep<M: Machine>(
        &mut self,
        machine: &M,
        quiet: &LeastSlack<'_, M>,
        from: Instant,
        until: Instant,
        began: Instant,
    ) -> Result<Instant, DelayError> {
        let mut now = from;
        loop {
            // Relaxed: the flag carries no data.
            if self.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                return Err(DelayError::Cancelled(now - began));
            }
            let step = if self.cancel.is_some() { until.min(now + CANCEL_LOOK) } else { until };
            let length = step - now;
            machine.sleep_until(step);
            now = machine.monotonic();
            if now >= until {
                self.learned.note(quiet.policy, length, now - until);
                return Ok(now);
            }
        }
    }

    /// How long before the deadline the first sleep ends.
    fn coarse(&self, policy: Policy, length: Nanos) -> Nanos {
        let late = self.learned.quantile(policy, length, COVERED).unwrap_or(Nanos::ZERO);
        (late.max(self.free_for(length)) + SECOND_SLEEP).max(COARSE_LEAST).min(COARSE_MOST)
    }

    /// How long a delay for this request may always poll.
    fn free_for(&self, request: Nanos) -> Nanos {
        free(request).min(self.budget_for(request))
    }

    /// How long a delay for this request may poll.
    fn budget_for(&self, request: Nanos) -> Nanos {
        let usual = || Nanos::new(request.count() / BUDGET_PART).max(BUDGET_LEAST).min(BUDGET).max(free(request));
        self.budget.unwrap_or_else(usual)
    }

    /// How long before the deadline a sleep of this length ends.
    fn window_for(&self, policy: Policy, length: Nanos, request: Nanos) -> Nanos {
        let late = self.learned.quantile(policy, length, COVERED).unwrap_or(WINDOW_UNKNOWN);
        // An eighth more: the quantile of some dozens of sleeps is itself uncertain.
        let wanted = late + Nanos::new(late.count() / 8);
        wanted.max(self.free_for(request)).max(WINDOW_LEAST).min(self.budget_for(request))
    }
}

/// Polls until just before the goal, in two stretches. The first, to [`ANCHOR_AHEAD`] before it, uses the time that the
/// sleep has left and brings the code and data of the end back into the caches. Then the counter is tied to the
/// kernel's clock anew, and the second stretch ends the delay.
///
/// The verdict is on the second. A gap in the first is as harmless as a longer sleep; the verdict names it only if it
/// cut the second short.
fn approach<M: Machine>(timebase: &Timebase<M>, goal: Goal) -> (Watch<'_, M>, Nanos) {
    let budget = timebase.ticks_for_at_least(POLL_MOST);
    let stretch = |ahead| {
        let (mut watch, _) = Watch::open(timebase);
        let first = goal.tie(timebase);
        // Cold caches may have delayed the tie.
        watch.start_at(first.after);
        let left = goal.left(timebase, first.at());
        let (last, near) = goal.approach(timebase, &mut watch, first, ahead, budget);
        let waited = if near { Nanos::ZERO } else { goal.wait_out(timebase, &mut watch) };
        (watch, left, waited, last)
    };
    let (filler, _, waited_first, _) = stretch(ANCHOR_AHEAD);
    let earlier = filler.end();
    let (mut watch, left, waited, _) = stretch(CONFIRM_AHEAD);
    if left < Nanos::new(ANCHOR_AHEAD.count() / 2) {
        watch.note(|verdict| *verdict = earlier.and(*verdict));
    }
    (watch, waited_first + waited)
}

/// Finds the lead with which the median delay is exact, as [`LongDelay::tune`] does. `late` makes one delay and returns
/// how much longer than `request` it took. For callers that make and time their delays in their own way.
///
/// # Errors
/// The error of a delay.
pub fn lead_for<E>(request: Nanos, late: impl FnMut() -> Result<Nanos, E>) -> Result<Nanos, E> {
    let fitting = TUNE_TIME.count() / request.count().max(1);
    let delays = usize::try_from(fitting).unwrap_or(0).clamp(TUNE_DELAYS_LEAST, TUNE_DELAYS);
    let mut late: Vec<Nanos> = std::iter::repeat_with(late).take(delays).collect::<Result<_, E>>()?;
    late.sort_unstable();
    Ok(late[delays / 2].max(Nanos::ZERO))
}

fn free(request: Nanos) -> Nanos {
    Nanos::new(request.count() / FREE_PART).min(FREE_MOST)
}

/// The end of a delay.
#[derive(Clone, Copy)]
enum Wanted {
    /// A time from this reading of the kernel's clock on, or from the beginning of the call.
    Span { began: Option<Instant>, request: Nanos },
    /// An instant of the time base.
    Deadline(Instant),
}

/// Where a delay is to end.
#[derive(Clone, Copy)]
struct Aim {
    goal: Goal,
    began: Instant,
    request: Nanos,
    /// The distance of the goal from the request.
    shift: Nanos,
}

/// A delay just before its goal.
struct Near<'t, M: Machine> {
    ending: Ending<'t, M>,
    request: Nanos,
    shift: Nanos,
    slept: Nanos,
    /// When the last sleep ended, by the kernel's clock.
    awake_from: Instant,
    window: Nanos,
}

impl<M: Machine> Near<'_, M> {
    /// One pass of the end.
    #[inline(always)]
    fn pass(&mut self, rehearsal: bool, told: &mut Report) {
        let Self { ending, request, shift, slept, awake_from, .. } = self;
        ending.pass(rehearsal, told, |report, reached, waited| {
            report.late = reached.over + *shift;
            report.actual = *request + report.late;
            report.slept = *slept + waited;
            report.polled = reached.at - *awake_from - waited;
        });
    }
}
