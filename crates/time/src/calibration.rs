//! [`Calibration`]: the counter's rate against the kernel's clock, with a bound that holds.
//!
//! # Problem
//! The rate of the counter is not known, or known only to whoever set up the machine. It must be measured, in no time,
//! without burning CPU, and the result must say how wrong it can be.
//!
//! # Solution
//! At both ends of a baseline the kernel's clock is read between two ordered counter reads (a *bracket*):
//!
//! ```text
//!      counter   kernel   counter            counter   kernel   counter
//!   ──────┼─────────┼────────┼─── (sleeping) ───┼─────────┼────────┼──────► true time
//!         a₁        m₁       b₁                 a₂        m₂       b₂
//!         └── w₁ ───┴────────┘                  └── w₂ ───┴────────┘
//! ```
//!
//! Of [`BRACKETS`] brackets the narrowest is kept. `rate = (mid₂ − mid₁) / (m₂ − m₁)`.
//!
//! # Why the bound holds
//! The kernel looked at its clock somewhere between `a` and `b`, so the counter's value at that moment is wrong by at
//! most half the width, and a tick and a half because readings and middle are whole ticks. Both ends together:
//! `(w₁ + w₂)/2` and two ticks over the baseline, plus one step of the kernel's clock (a nanosecond on Linux, 100 on
//! Windows) because its reading is cut to whole ones. A counter that counts in steps makes its brackets a step wider. No statistics are needed. The bound is against the *kernel's clock during the
//! baseline*; how far that clock is from the SI second is the kernel's affair (`adjtimex`), stated apart.
//!
//! # Conditions
//! The kernel's clock runs at one rate during the baseline (NTP slews by at most 500 ppm), and the counter too. A bracket
//! may be disturbed; then it is wide, and so is the bound.

use hairspring_machine::{Clock, Machine, Nanos, Ticks};

use crate::scale::Scale;
use crate::trust::TimeSource;

/// Brackets taken at each end. Fifty take 3 µs, and one of them is as narrow as the machine can make it.
pub const BRACKETS: u32 = 50;

/// The bound that is stated when the brackets are wider than the baseline is long: nothing is known.
const BOUND_MOST: f64 = 0.5;

/// A reading of a kernel clock between two readings of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bracket {
    /// The counter before.
    pub before: Ticks,
    /// The kernel's clock.
    pub clock: Nanos,
    /// The counter after.
    pub after: Ticks,
}

impl Bracket {
    /// Takes [`BRACKETS`] brackets of `clock` and keeps the narrowest. Real-time safe.
    ///
    /// A counter that stands still across a reading of the clock counts in steps, so its reading may be as old as one: the
    /// bracket is as much wider.
    pub fn narrowest<M: Machine>(machine: &M, source: TimeSource, clock: Clock) -> Self {
        Self::narrowest_and_lag(machine, source, clock).0
    }

    /// The narrowest bracket, and by how many ticks a reading can be older than the one tick that every reading may be.
    fn narrowest_and_lag<M: Machine>(machine: &M, source: TimeSource, clock: Clock) -> (Self, i64) {
        let best = Self::narrowest_of(machine, source, clock, BRACKETS);
        let lag = if best.width() == 0 { (step(machine, source) - 1).max(0) } else { 0 };
        (Self { after: best.after.plus(lag), ..best }, lag)
    }

    /// Takes so many brackets (at least one) and keeps the narrowest.
    pub(crate) fn narrowest_of<M: Machine>(machine: &M, source: TimeSource, clock: Clock, brackets: u32) -> Self {
        let mut best = Self::take(machine, source, clock);
        for _ in 1..brackets {
            let next = Self::take(machine, source, clock);
            if next.width() < best.width() {
                best = next;
            }
        }
        best
    }

    #[inline]
    fn take<M: Machine>(machine: &M, source: TimeSource, clock: Clock) -> Self {
        let before = raw_ordered(machine, source);
        let clock = machine.read(clock);
        let after = raw_ordered(machine, source);
        Self { before, clock, after }
    }

    /// Its width in ticks.
    pub fn width(&self) -> i64 {
        self.after.since(self.before)
    }

    /// The counter in the middle, which is at most [`half_width`](Self::half_width) from the moment of the kernel's reading.
    pub fn middle(&self) -> Ticks {
        self.before.plus(self.width() / 2)
    }

    /// How far the middle can be from the moment of the kernel's reading, in ticks: half the width rounded up, and the tick
    /// that had not passed when `after` was read.
    pub fn half_width(&self) -> i64 {
        (self.width() + 3) / 2
    }
}

/// Reads what time is taken from, unordered.
#[inline(always)]
pub(crate) fn raw<M: Machine>(machine: &M, source: TimeSource) -> Ticks {
    match source {
        TimeSource::Counter => machine.ticks(),
        TimeSource::KernelClock => Ticks::new(machine.read(Clock::Monotonic).count().cast_unsigned()),
    }
}

/// Reads what time is taken from, after all earlier instructions.
#[inline(always)]
pub(crate) fn raw_ordered<M: Machine>(machine: &M, source: TimeSource) -> Ticks {
    match source {
        TimeSource::Counter => machine.ticks_ordered(),
        // The kernel orders its own read.
        TimeSource::KernelClock => raw(machine, source),
    }
}

/// Looks at a counter until it moves: more than there are in the longest step that is looked for, some 30 µs.
const STEP_LOOKS: u32 = 4_096;
/// Steps that are looked at; the least of them was not interrupted.
const STEP_TRIES: u32 = 3;

/// How many ticks the source moves at a time, as far as its readings show; 1 if it does not move while it is looked at.
fn step<M: Machine>(machine: &M, source: TimeSource) -> i64 {
    let next = |from: Ticks| {
        let mut readings = (0..STEP_LOOKS).map(|_| raw_ordered(machine, source));
        readings.find(|reading| reading.since(from) != 0)
    };
    let mut least = None;
    let mut edge = next(raw_ordered(machine, source));
    for _ in 0..STEP_TRIES {
        let Some(from) = edge else { break };
        edge = next(from);
        let step = edge.map(|to| to.since(from));
        least = least.into_iter().chain(step).min();
    }
    least.unwrap_or(1)
}

/// The rate of the counter with its bound and how they were found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// What time is taken from; with the kernel's clock the rate is 1 GHz and exact by definition.
    pub source: TimeSource,
    /// The rate, in hertz.
    pub rate_hz: f64,
    /// How wrong the rate can be against the kernel's clock during the baseline, in parts per million. A hard bound.
    pub bound_ppm: f64,
    /// Length of the baseline.
    pub baseline: Nanos,
    /// How far `CLOCK_MONOTONIC_RAW` ran from `CLOCK_MONOTONIC` over the baseline, in parts per million: what NTP does
    /// to the kernel's clock at the moment. Known to about twice the bound.
    pub discipline_ppm: f64,
    pub(crate) bound: u64,
}

impl Calibration {
    /// The rate between two pairs of brackets, (monotonic, raw) at each end. None if they are not in order.
    /// `step` is that of the kernel's clock.
    pub(crate) fn between(source: TimeSource, step: Nanos, first: Anchor, last: Anchor) -> Option<(Self, Scale)> {
        let nanos = last.monotonic.clock - first.monotonic.clock;
        if source == TimeSource::KernelClock {
            let origin = (Ticks::new(last.monotonic.clock.count().cast_unsigned()), last.monotonic.clock);
            let calibration =
                Self { source, rate_hz: 1e9, bound_ppm: 0.0, baseline: nanos, discipline_ppm: 0.0, bound: 0 };
            return Scale::through(origin, 1, Nanos::new(1)).map(|scale| (calibration, scale));
        }
        let ticks = last.monotonic.middle().since(first.monotonic.middle());
        let scale = Scale::through((last.monotonic.middle(), last.monotonic.clock), ticks, nanos)?;
        let half_widths = (first.monotonic.width() + last.monotonic.width()) as f64 / 2.0;
        // An odd and an even width are a tick and a half worse than their half widths; and what passes in a step.
        let uncertain = half_widths + 2.0 + step.count() as f64 * ticks as f64 / nanos.count() as f64;
        // Against the least that the baseline can have been, so that no product of small errors is missing.
        let least = ticks as f64 - uncertain;
        let relative = if least > uncertain { (uncertain / least).min(BOUND_MOST) } else { BOUND_MOST };
        let raw_ticks = last.raw.middle().since(first.raw.middle()) as f64;
        let raw_rate = raw_ticks / (last.raw.clock - first.raw.clock).count().max(1) as f64;
        let rate = ticks as f64 / nanos.count() as f64;
        let calibration = Self {
            source,
            rate_hz: scale.rate_hz(),
            bound_ppm: relative * 1e6,
            baseline: nanos,
            discipline_ppm: (raw_rate / rate - 1.0) * 1e6,
            bound: parts_of_2_64(relative),
        };
        Some((calibration, scale))
    }

    /// The same rate with a bound that is wider by this relative error: the clock or the counter changed its rate during
    /// the baseline.
    pub(crate) fn widened(self, by: f64) -> Self {
        let relative = (self.bound_ppm * 1e-6 + by).min(BOUND_MOST);
        Self { bound_ppm: relative * 1e6, bound: parts_of_2_64(relative), ..self }
    }
}

/// A relative error in parts of 2⁶⁴, rounded up; one part is far below the rounding of the slope.
fn parts_of_2_64(relative: f64) -> u64 {
    (relative * 2f64.powi(64)).ceil() as u64
}

/// Both kernel clocks seen against the counter at one end of a baseline, and the time spent in suspend so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor {
    pub(crate) monotonic: Bracket,
    pub(crate) raw: Bracket,
    /// By how many ticks a reading of the source can be older than one tick.
    pub(crate) lag: i64,
    /// Boot time minus monotonic time, read in one go.
    pub(crate) suspended: Nanos,
}

impl Anchor {
    pub(crate) fn take<M: Machine>(machine: &M, source: TimeSource) -> Self {
        let raw = Bracket::narrowest(machine, source, Clock::MonotonicRaw);
        let (monotonic, lag) = Bracket::narrowest_and_lag(machine, source, Clock::Monotonic);
        Self { monotonic, raw, lag, suspended: suspended(machine) }
    }
}

/// Tries for the difference of two clocks; the least of them was not interrupted.
const SUSPEND_TRIES: u32 = 3;

fn suspended<M: Machine>(machine: &M) -> Nanos {
    let difference = || {
        let monotonic = machine.read(Clock::Monotonic);
        machine.read(Clock::Boottime) - monotonic
    };
    (0..SUSPEND_TRIES).map(|_| difference()).min().unwrap_or(Nanos::ZERO)
}
