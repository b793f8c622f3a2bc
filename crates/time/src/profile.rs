//! [`Profile`]: how long a piece of code takes, call by call, without averaging.
//!
//! The first call has a field of its own, because cold caches make it longer. The others go into a histogram of fixed
//! size. The profile measures the cost of a pair of stamps and states it beside the raw figures; it never subtracts
//! that cost.

use hairspring_machine::{Machine, Nanos, Ticks};
use hdrhistogram::Histogram;

use crate::held::HeldTimebase;
use crate::timebase::Timebase;

/// The longest span in the histogram, in ticks: 2⁴⁴, an hour and a half at 3 GHz. Longer spans count as this long.
const LONGEST_TICKS: u64 = 1 << 44;
/// Significant decimal digits that the histogram keeps.
const DIGITS: u8 = 3;
/// Pairs of stamps that measure the cost.
const COST_PAIRS: usize = 101;

/// How the stamps at both ends of a span are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// Each stamp waits for every earlier instruction: the span holds just the code between.
    Ordered,
    /// Cheaper; the CPU may move code across the stamps. For spans that are long against that.
    Unordered,
}

/// The spans of one piece of code.
#[derive(Debug)]
pub struct Profile<'t, M: Machine> {
    timebase: HeldTimebase<'t, M>,
    ordering: Ordering,
    first: Option<i64>,
    rest: Histogram<u64>,
    sum_ticks: i128,
    cost: Nanos,
}

/// The beginning of a span.
#[derive(Clone, Copy, Debug)]
pub struct Start(Ticks);

/// The figures of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Spans in all, the first included.
    pub count: u64,
    /// The first span.
    pub first: Option<Nanos>,
    /// The shortest of the rest.
    pub min: Option<Nanos>,
    /// The median of the rest.
    pub median: Option<Nanos>,
    /// The longest of the rest.
    pub max: Option<Nanos>,
    /// The arithmetic mean of the rest, computed from exact sums.
    pub mean: Option<Nanos>,
    /// Median cost of a pair of stamps with nothing between them; contained in every figure above.
    pub stamp_cost: Nanos,
}

impl<'t, M: Machine> Profile<'t, M> {
    /// A profile without spans. Allocates the histogram (about 300 KiB) once and measures the stamps' own cost. The
    /// time base is lent, or given away: then the profile borrows nothing.
    pub fn new(timebase: impl Into<HeldTimebase<'t, M>>, ordering: Ordering) -> Self {
        let mut rest = match Histogram::new_with_bounds(1, LONGEST_TICKS, DIGITS) {
            Ok(histogram) => histogram,
            Err(_) => unreachable!("the bounds are constants that the histogram accepts"),
        };
        rest.auto(false);
        let timebase = timebase.into();
        let mut profile = Self { timebase, ordering, first: None, rest, sum_ticks: 0, cost: Nanos::ZERO };
        let mut pairs = [0; COST_PAIRS];
        for pair in &mut pairs {
            *pair = profile.pair_ticks();
        }
        pairs.sort_unstable();
        profile.cost = profile.timebase.nanos(pairs[COST_PAIRS / 2]);
        profile
    }

    /// Uses this successor of its time base from now on, see [`HeldTimebase`]. Spans are kept in ticks, so the
    /// successor's rate converts the recorded ones, too. A span that began before must have ended, because the
    /// successor may take time from another source. Allocates; not real-time safe.
    pub fn adopt(&mut self, successor: Timebase<M>) {
        if successor.source() != self.timebase.source() {
            self.convert(successor.calibration().rate_hz / self.timebase.calibration().rate_hz);
        }
        self.timebase.adopt(successor);
    }

    /// Converts the recorded spans into the ticks of another source, of which there are `ratio` to a tick of the
    /// former.
    fn convert(&mut self, ratio: f64) {
        let converted = |ticks: u64| (ticks as f64 * ratio).round() as u64;
        self.first = self.first.map(|ticks| (ticks as f64 * ratio).round() as i64);
        self.sum_ticks = (self.sum_ticks as f64 * ratio).round() as i128;
        let empty = Histogram::new_from(&self.rest);
        let former = std::mem::replace(&mut self.rest, empty);
        for spans in former.iter_recorded() {
            self.rest.saturating_record_n(converted(spans.value_iterated_to()), spans.count_since_last_iteration());
        }
    }

    /// The time base in use.
    pub fn timebase(&self) -> &Timebase<M> {
        &self.timebase
    }

    /// Begins a span. Real-time safe.
    #[inline(always)]
    pub fn start(&self) -> Start {
        Start(self.stamp())
    }

    /// Ends a span and records it. Real-time safe: nothing is allocated. Returns its length.
    #[inline(always)]
    pub fn stop(&mut self, start: Start) -> Nanos {
        let ticks = self.ticks_since(start);
        self.record(ticks);
        self.timebase.nanos(ticks)
    }

    /// The ticks between two stamps with nothing between them: the cost of the measurement. Real-time safe.
    #[inline(always)]
    pub fn pair_ticks(&self) -> i64 {
        let start = self.start();
        self.ticks_since(start)
    }

    /// Profiles one call.
    #[inline(always)]
    pub fn span<R>(&mut self, code: impl FnOnce() -> R) -> R {
        let start = self.start();
        let result = code();
        self.stop(start);
        result
    }

    #[inline(always)]
    fn stamp(&self) -> Ticks {
        match self.ordering {
            Ordering::Ordered => self.timebase.stamp_ordered(),
            Ordering::Unordered => self.timebase.stamp(),
        }
    }

    #[inline(always)]
    fn ticks_since(&self, start: Start) -> i64 {
        self.stamp().since(start.0)
    }

    fn record(&mut self, ticks: i64) {
        if self.first.is_none() {
            self.first = Some(ticks);
            return;
        }
        self.sum_ticks += i128::from(ticks);
        // A migration to a CPU with a lagging counter can make a span negative; it counts as the shortest.
        self.rest.saturating_record(u64::try_from(ticks).unwrap_or(0));
    }

    /// The figures until now.
    pub fn summary(&self) -> Summary {
        let count = self.rest.len();
        let some = count > 0;
        let nanos = |ticks: u64| self.timebase.nanos(i64::try_from(ticks).unwrap_or(i64::MAX));
        let mean = some.then(|| self.sum_ticks / i128::from(count.max(1)));
        Summary {
            count: count + u64::from(self.first.is_some()),
            first: self.first.map(|ticks| self.timebase.nanos(ticks)),
            min: some.then(|| nanos(self.rest.min())),
            median: some.then(|| nanos(self.rest.value_at_quantile(0.5))),
            max: some.then(|| nanos(self.rest.max())),
            mean: mean.and_then(|ticks| i64::try_from(ticks).ok()).map(|ticks| self.timebase.nanos(ticks)),
            stamp_cost: self.cost,
        }
    }
}
