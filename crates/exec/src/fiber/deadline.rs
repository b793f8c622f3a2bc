//! [`DeadlineCheck`]: whether the next deadline may have come. Every call asks it, for the price of one read of the
//! counter.
//!
//! Problem: a deadline is a time of `CLOCK_MONOTONIC`, and a call cannot afford to read that clock. If only some calls
//! read it, a deadline is late by the calls between, and milliseconds of computing may lie between two calls. Solution:
//! the processor's counter decides whether to read the clock. Only the clock decides whether the deadline has come, so
//! a wrong counter makes nothing early.
//!
//! ```text
//!   read the clock                          reads the clock again               deadline
//!   ├────────── three quarters of what is left ──────┤────── again ─────┤── … ──┤
//! ```
//! Conditions and why it works: the rate of the counter is a lower bound, measured between two looks. The reserve of a
//! quarter is more than the largest change of the kernel's rate (a tenth either way). No stretch is longer than
//! [`MOST_BLIND_NS`], so a counter with a changed rate delays the look by at most that. If the counter went back, the
//! next call reads the clock. If the counter is not trusted, or its rate is not known yet, every call reads the clock.

use std::cell::Cell;

use hairspring_exec_core::Moment;
use hairspring_machine::Machine;

/// The longest stretch without a look at the clock while a deadline is set. Long compared with a look (50 ns).
const MOST_BLIND_NS: u64 = 1_000_000;
/// The shortest stretch that measures the rate. Long compared with a reading of the clock (50 ns).
const LEAST_MEASURED_NS: u64 = 20_000;
/// The largest step of a counter, in nanoseconds; and in ticks, for slow counters.
const STEP_NS: u64 = 100;
const STEP_TICKS: u64 = 2;
/// Binary digits behind the point of the rate.
const FRACTION: u32 = 20;

/// One look at the clock: the counter before, the clock, the counter after.
#[derive(Clone, Copy)]
pub(super) struct Look {
    before: u64,
    pub(super) now: Moment,
    after: u64,
}

pub(super) struct DeadlineCheck {
    /// Whether the counter may replace the clock.
    trusted: bool,
    /// The counter at the last look, and the ticks from there to the next look.
    seen: Cell<u64>,
    span: Cell<u64>,
    /// The deadline that the span is for, in nanoseconds.
    due: Cell<u64>,
    /// The look at which the measurement of the rate began.
    base: Cell<Option<Look>>,
    /// Ticks per nanosecond, a lower bound; 0: not known. Not floating-point, because a task's own control words are in
    /// force.
    rate: Cell<u64>,
}

impl DeadlineCheck {
    /// Whether the machine's counter is `trusted`. If not, it is never read, because the process may be forbidden to
    /// read it.
    pub(super) fn new(trusted: bool) -> Self {
        Self {
            trusted,
            seen: Cell::new(0),
            span: Cell::new(0),
            due: Cell::new(u64::MAX),
            base: Cell::new(None),
            rate: Cell::new(0),
        }
    }

    /// Forgets the rate, because the machine may have slept or migrated between two runs.
    pub(super) fn forget(&self) {
        self.base.set(None);
        self.rate.set(0);
        self.expire();
    }

    /// Whether a call must read the clock.
    #[inline(always)]
    pub(super) fn is_due(&self, machine: &impl Machine) -> bool {
        !self.trusted || machine.ticks().raw().wrapping_sub(self.seen.get()) >= self.span.get()
    }

    /// A deadline was set. Returns true if it comes before all known ones: then the clock must be read.
    #[inline(always)]
    pub(super) fn heed(&self, deadline: Moment) -> bool {
        let sooner = deadline.as_nanos() < self.due.get();
        if sooner {
            self.expire();
        }
        sooner
    }

    /// Makes the next call read the clock.
    pub(super) fn expire(&self) {
        self.span.set(0);
    }

    /// Looks at the clock.
    pub(super) fn look(&self, machine: &impl Machine, read: impl FnOnce() -> Moment) -> Look {
        if !self.trusted {
            return Look { before: 0, now: read(), after: 0 };
        }
        let before = machine.ticks().raw();
        let now = read();
        Look { before, now, after: machine.ticks().raw() }
    }

    /// After a look at the clock: sets the check for the next deadline.
    pub(super) fn set(&self, look: Look, next: Moment) {
        self.due.set(next.as_nanos());
        self.seen.set(look.before);
        self.span.set(if self.trusted { self.span_until(look, next) } else { 0 });
    }

    /// The next look at the clock comes after this long, if not earlier.
    pub(super) fn look_within(&self, span_ns: u64) {
        let ticks = (u128::from(span_ns) * u128::from(self.rate.get())) >> FRACTION;
        self.span.set(self.span.get().min(ticks as u64));
    }

    /// No deadline is set.
    pub(super) fn unset(&self) {
        self.due.set(u64::MAX);
    }

    fn span_until(&self, look: Look, next: Moment) -> u64 {
        self.measure(look);
        let left = next.as_nanos().saturating_sub(look.now.as_nanos()).min(MOST_BLIND_NS);
        // At most 750,000 ns times a rate below 2⁴⁰: it fits.
        let safe = (left - left / 4).saturating_sub(STEP_NS);
        ((u128::from(safe) * u128::from(self.rate.get())) >> FRACTION).saturating_sub(u128::from(STEP_TICKS)) as u64
    }

    /// Measures a lower bound of the rate between two looks. It uses the counter after the first clock reading and
    /// before the second, so that it never counts too many ticks.
    fn measure(&self, look: Look) {
        let Some(base) = self.base.get() else { return self.base.set(Some(look)) };
        let passed_ns = look.now.as_nanos().saturating_sub(base.now.as_nanos());
        if passed_ns < LEAST_MEASURED_NS {
            return;
        }
        self.base.set(Some(look));
        let ticks = u128::from(look.before.saturating_sub(base.after));
        let rate = ((ticks << FRACTION) / u128::from(passed_ns)) as u64;
        // A larger rise means that the counter jumped, or that the last measurement was disturbed.
        let known = self.rate.get();
        self.rate.set(if known == 0 { rate } else { rate.min(known + known / 4) });
    }
}
