//! Cost and resolution of stamps, measured in the measuring process, on its CPU, just before each probe.

use hairspring_machine::{Clock, Machine};
use hairspring_time::{CounterStep, Timebase};

use crate::interleaving::median;

/// Number of pairs; the median counts.
const PAIRS: usize = 101;

/// The step of the counter, and the cost of two kinds of stamps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StampCosts {
    /// `None` if the counter does not advance.
    pub(crate) step_ns: Option<f64>,
    /// Two ordered stamps of the time base.
    pub(crate) pair_ns: f64,
    /// Two readings of `CLOCK_MONOTONIC`.
    pub(crate) kernel_pair_ns: f64,
}

impl StampCosts {
    /// Measures the step and both pairs. Takes some milliseconds.
    pub(crate) fn measure<M: Machine>(timebase: &Timebase<M>) -> Self {
        let step = CounterStep::measure(timebase);
        let step_ns = step.map(|step| step.ticks as f64 * 1e9 / timebase.calibration().rate_hz);
        Self { step_ns, pair_ns: 0.0, kernel_pair_ns: 0.0 }.again(timebase)
    }

    /// The same step with pairs measured now by the calling thread.
    pub(crate) fn again<M: Machine>(self, timebase: &Timebase<M>) -> Self {
        let machine = timebase.machine();
        let ticks = |_| {
            let before = timebase.stamp_ordered();
            timebase.stamp_ordered().since(before) as f64 * 1e9 / timebase.calibration().rate_hz
        };
        let nanos = |_| {
            let before = machine.read(Clock::Monotonic);
            (machine.read(Clock::Monotonic) - before).count() as f64
        };
        let pair_ns = median(&(0..PAIRS).map(ticks).collect::<Vec<_>>());
        let kernel_pair_ns = median(&(0..PAIRS).map(nanos).collect::<Vec<_>>());
        Self { pair_ns, kernel_pair_ns, ..self }
    }
}
