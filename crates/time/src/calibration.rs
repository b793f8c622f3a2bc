//! [`Calibration`]: the counter's rate against the kernel's clock, with a bound that holds.
//!
//! # Problem
//! The rate of the counter is not known to a program. It must be measured in a few milliseconds and with little CPU
//! time, and the result must state its error bound.
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
//! The calibration keeps the narrowest of [`BRACKETS`] brackets. `rate = (mid₂ − mid₁) / (m₂ − m₁)`.
//!
//! # Why the bound holds
//! The kernel read its clock somewhere between `a` and `b`. So the counter's value at that moment is wrong by at most
//! half the width plus a tick and a half, because readings and middle are whole ticks. Both ends together:
//! `(w₁ + w₂)/2` and two ticks over the baseline, plus one step of the kernel's clock (a nanosecond on Linux, 100 on
//! Windows) because its reading is cut to whole ones. A counter that counts in steps makes its brackets a step wider.
//! No statistics are needed. The bound is against the *kernel's clock during the baseline*; the distance of that clock
//! from the SI second depends on the kernel (`adjtimex`) and is stated separately.
//!
//! # Conditions
//! The kernel's clock runs at one rate during the baseline (NTP slews by at most 500 ppm), and so does the counter. A
//! disturbed bracket is wide, and then the bound is wide, too.

use std::fmt;
use std::str::FromStr;

use hairspring_machine::{Clock, Instant, Machine, Nanos, Ticks};

use crate::scale::Scale;
use crate::trust::TimeSource;

/// Brackets taken at each end. Fifty take 3 µs, and the narrowest of them is undisturbed.
pub const BRACKETS: u32 = 50;

/// The bound if the brackets are wider than the baseline is long, so that the rate is unknown.
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
    /// A counter that stands still across a reading of the clock counts in steps. Its reading may be as old as one
    /// step, so the bracket is a step wider.
    pub fn narrowest<M: Machine>(machine: &M, source: TimeSource, clock: Clock) -> Self {
        Self::narrowest_and_lag(machine, source, clock).0
    }

    /// The narrowest bracket, and the granularity of the counter in ticks beyond the first.
    fn narrowest_and_lag<M: Machine>(machine: &M, source: TimeSource, clock: Clock) -> (Self, i64) {
        let best = Self::narrowest_of(machine, source, clock, BRACKETS);
        let lag = if best.width() == 0 { (step(machine, source) - 1).max(0) } else { 0 };
        (Self { after: best.after.plus(lag), ..best }, lag)
    }

    /// Takes `count` brackets (at least one) and keeps the narrowest.
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

    /// The reading of a bracket around `CLOCK_MONOTONIC`.
    pub(crate) fn at(&self) -> Instant {
        Instant::from_monotonic(self.clock)
    }

    /// The width of the bracket in ticks.
    pub fn width(&self) -> i64 {
        self.after.since(self.before)
    }

    /// The counter in the middle of the bracket, at most [`half_width`](Self::half_width) from the kernel's reading.
    pub fn middle(&self) -> Ticks {
        self.before.plus(self.width() / 2)
    }

    /// The largest distance of the middle from the kernel's reading, in ticks: half the width rounded up, plus the tick
    /// that had not passed when `after` was read.
    pub fn half_width(&self) -> i64 {
        (self.width() + 3) / 2
    }
}

/// Reads the time source, unordered.
#[inline(always)]
pub(crate) fn raw<M: Machine>(machine: &M, source: TimeSource) -> Ticks {
    match source {
        TimeSource::Counter => machine.ticks(),
        TimeSource::KernelClock => Ticks::new(machine.read(Clock::Monotonic).count().cast_unsigned()),
    }
}

/// Reads the time source, after all earlier instructions.
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

/// The rate of the counter, with its bound and its method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// The source of time; the kernel's clock has a rate of exactly 1 GHz by definition.
    pub source: TimeSource,
    /// The rate, in hertz.
    pub rate_hz: f64,
    /// The largest error of the rate against the kernel's clock during the baseline, in parts per million. A hard
    /// bound.
    pub bound_ppm: f64,
    /// Length of the baseline.
    pub baseline: Nanos,
    /// The rate of `CLOCK_MONOTONIC_RAW` against `CLOCK_MONOTONIC` over the baseline, in parts per million: the present
    /// correction by NTP. Known to about twice the bound.
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
        // Divided by the shortest possible baseline, so that no product of small errors is missing.
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

    /// The same rate with a bound that is wider by this relative error: the clock or the counter changed its rate
    /// during the baseline.
    pub(crate) fn widened(self, by: f64) -> Self {
        let relative = (self.bound_ppm * 1e-6 + by).min(BOUND_MOST);
        Self { bound_ppm: relative * 1e6, bound: parts_of_2_64(relative), ..self }
    }
}

/// A relative error in parts of 2⁶⁴, rounded up; one part is far below the rounding of the slope.
fn parts_of_2_64(relative: f64) -> u64 {
    (relative * 2f64.powi(64)).ceil() as u64
}

/// Both kernel clocks against the counter at one end of a baseline, and the time spent in suspend until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) monotonic: Bracket,
    pub(crate) raw: Bracket,
    /// The granularity of the source in ticks beyond the first.
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

    fn numbers(self) -> [i64; ANCHOR_NUMBERS] {
        let Self { monotonic, raw, lag, suspended } = self;
        let [[a, b, c], [d, e, f]] =
            [monotonic, raw].map(|of| [of.before.raw().cast_signed(), of.clock.count(), of.after.raw().cast_signed()]);
        [a, b, c, d, e, f, lag, suspended.count()]
    }

    fn of([a, b, c, d, e, f, lag, suspended]: [i64; ANCHOR_NUMBERS]) -> Self {
        let [monotonic, raw] = [[a, b, c], [d, e, f]].map(|[before, clock, after]| Bracket {
            before: Ticks::new(before.cast_unsigned()),
            clock: Nanos::new(clock),
            after: Ticks::new(after.cast_unsigned()),
        });
        Self { monotonic, raw, lag, suspended: Nanos::new(suspended) }
    }
}

/// The foundation of a time base: the source and the looks at the kernel's clocks at both ends of its baseline. As text
/// it can be handed to another process of this computer, which then need not calibrate: see
/// [`Timebase::resume`](crate::Timebase::resume).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchors {
    pub(crate) source: TimeSource,
    pub(crate) first: Anchor,
    pub(crate) last: Anchor,
}

/// Numbers of an anchor, and of a pair of them with their source.
const ANCHOR_NUMBERS: usize = 8;
const ANCHORS_NUMBERS: usize = 2 * ANCHOR_NUMBERS + 1;

impl fmt::Display for Anchors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", i64::from(self.source == TimeSource::Counter))?;
        [self.first, self.last].iter().flat_map(|anchor| anchor.numbers()).try_for_each(|number| write!(f, ",{number}"))
    }
}

impl FromStr for Anchors {
    type Err = AnchorsError;

    fn from_str(text: &str) -> Result<Self, AnchorsError> {
        let numbers: Result<Vec<i64>, _> = text.split(',').map(str::parse).collect();
        let numbers: [i64; ANCHORS_NUMBERS] = numbers.ok().and_then(|all| all.try_into().ok()).ok_or(AnchorsError)?;
        let source = if numbers[0] == 1 { TimeSource::Counter } else { TimeSource::KernelClock };
        let anchor = |from: usize| Anchor::of(std::array::from_fn(|index| numbers[from + index]));
        Ok(Self { source, first: anchor(1), last: anchor(1 + ANCHOR_NUMBERS) })
    }
}

/// A text is not that of [`Anchors`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnchorsError;

impl fmt::Display for AnchorsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("read the anchors of a time base: they are 17 whole numbers with commas between them")
    }
}

impl std::error::Error for AnchorsError {}

/// Tries for the difference of two clocks; the least of them was not interrupted.
const SUSPEND_TRIES: u32 = 3;

fn suspended<M: Machine>(machine: &M) -> Nanos {
    let difference = || {
        let monotonic = machine.read(Clock::Monotonic);
        machine.read(Clock::Boottime) - monotonic
    };
    (0..SUSPEND_TRIES).map(|_| difference()).min().unwrap_or(Nanos::ZERO)
}

#[cfg(test)]
mod tests {
    use hairspring_machine::Sim;
    use hairspring_machine::sim::Script;

    use super::*;

    fn bracket(before: u64, clock: i64, after: u64) -> Bracket {
        Bracket { before: Ticks::new(before), clock: Nanos::new(clock), after: Ticks::new(after) }
    }

    #[test]
    fn the_middle_of_a_bracket_is_half_a_width_from_both_ends() {
        for (before, after, middle, half_width) in [(100, 107, 103, 5), (100, 106, 103, 4), (100, 100, 100, 1)] {
            let bracket = bracket(before, 0, after);
            assert_eq!((bracket.middle(), bracket.half_width()), (Ticks::new(middle), half_width), "{bracket:?}");
        }
    }

    /// A counter that counts in steps stands still across a reading: the reading may be as old as a step.
    #[test]
    fn the_bracket_of_a_counter_that_counts_in_steps_is_a_step_wide() {
        for counter_step in [1_000, 26_000] {
            let sim = Sim::new(Script { counter_step, ..Script::default() });
            let bracket = Bracket::narrowest(&sim, TimeSource::Counter, Clock::Monotonic);
            assert_eq!(bracket.width(), counter_step as i64 - 1);
        }
    }

    fn anchor(monotonic: Bracket) -> Anchor {
        Anchor { monotonic, raw: monotonic, lag: 0, suspended: Nanos::ZERO }
    }

    /// A bound that is too narrow makes delays early, one that is too wide makes them late.
    #[test]
    fn the_bound_is_half_of_both_widths_and_two_ticks_and_a_step_of_the_clock() {
        let (first, last) = (bracket(0, 0, 10), bracket(2_599_995, 1_000_000, 2_600_015));
        for (step, uncertain) in [(1, 15.0 + 2.0 + 2.6), (100, 15.0 + 2.0 + 260.0)] {
            let found = Calibration::between(TimeSource::Counter, Nanos::new(step), anchor(first), anchor(last));
            let (found, _) = found.expect("in order");
            let expected = uncertain / (2_600_000.0 - uncertain);
            assert!((found.bound_ppm * 1e-6 / expected - 1.0).abs() < 1e-9, "{found:?}");
            for widened in [found, found.widened(1e-3)] {
                let guard = widened.bound as f64 / 2f64.powi(64);
                assert!((guard / (widened.bound_ppm * 1e-6) - 1.0).abs() < 1e-9, "{widened:?}");
            }
            assert!((found.widened(1e-3).bound_ppm - found.bound_ppm - 1e3).abs() < 1e-6);
        }
    }

    #[test]
    fn a_text_that_is_no_anchors_is_told_what_anchors_are() {
        let error = "1,2".parse::<Anchors>().expect_err("two numbers");
        assert!(error.to_string().contains("17 whole numbers"), "{error}");
    }
}
