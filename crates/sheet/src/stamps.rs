//! [`Stamps`]: the cost and the step of stamps, and the figures that samples make by their method: between two stamps,
//! as the mean of a batch, or as the difference of two loops.
//!
//! A pair of stamps resolves nothing below the counter's step and contains its own cost, so its error is large for an
//! event of that size. This file makes these figures and applies the rule, so that probes cannot forget it.

use serde::{Deserialize, Serialize};

use crate::statistics::grouped_median;
use crate::{Absent, Figure, LARGEST, Method, Unit};

/// The least length of an event, in steps of the counter, for a pair of stamps.
pub(crate) const STEPS_LEAST: f64 = 10.0;
/// If the median of the samples is below this many steps, it is interpolated between them.
pub const STEPS_EXACT: f64 = 100.0;
/// From this share of the median on, a caveat states the cost of the stamps.
const OVERHEAD_MARKED: f64 = 0.2;
/// Above this share of the median there is no figure.
const OVERHEAD_MOST: f64 = 0.5;
/// The least number of standard errors by which a difference must exceed zero.
const ERRORS_LEAST: f64 = 3.0;

/// Cost and resolution of the stamps around the samples, in the unit of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stamps {
    /// The step of the counter; `None` if unknown.
    pub step: Option<f64>,
    /// The difference of two consecutive stamps, on the same CPU and with caches in the same state.
    pub overhead: f64,
    /// The time between the stamps beside a sample: the request of a delay whose sample is its lateness.
    pub beside: f64,
}

impl Figure {
    /// A figure of single events, each between two stamps, in the order of time.
    ///
    /// Its quantum is the counter's step. If the median is less than 100 steps, it is interpolated between steps and
    /// its interval is half a step wider. A cost of the stamps of more than a fifth of the median is a caveat.
    ///
    /// # Errors
    /// The events are too short for stamps: less than 10 steps of the counter, or less than twice the cost of the
    /// stamps.
    pub fn stamped(unit: Unit, samples: &mut [f64], stamps: &Stamps) -> Result<Self, Absent> {
        let mut figure = Self::from_samples(unit, Method::Stamp, samples);
        figure.quantum = stamps.step;
        let Some(median) = figure.median else { return Ok(figure.with_overhead(stamps.overhead)) };
        let span = median + stamps.beside;
        let batch = "measure a batch of these events between two stamps, and divide";
        if let Some(step) = stamps.step {
            if span < STEPS_LEAST * step {
                let reason = "too short for a pair of stamps: less than 10 steps of the counter";
                return Err(Absent::new(reason, batch));
            }
            let usable: Vec<f64> = samples.iter().copied().filter(|sample| sample.abs() <= LARGEST).collect();
            if median < STEPS_EXACT * step
                && let Some(median) = grouped_median(&usable, step)
            {
                let widened = figure.median_interval.map(|[low, high]| [low - step / 2.0, high + step / 2.0]);
                figure.median_interval = widened.map(|[low, high]| [low.min(median), high.max(median)]);
                figure.median = Some(median);
            }
        }
        let share = stamps.overhead / span;
        if share > OVERHEAD_MOST {
            let reason = "too short for a pair of stamps: their own cost is more than half of the measured time";
            return Err(Absent::new(reason, batch));
        }
        let figure = figure.with_overhead(stamps.overhead);
        let marked = share > OVERHEAD_MARKED;
        let caveat = || format!("{:.0} % of it is the pair of stamps itself", share * 100.0);
        Ok(if marked { figure.with_caveat(caveat()) } else { figure })
    }

    /// A figure of batches: each sample is the time between two stamps divided by the `events` between them, so it is a
    /// mean without information on single events. Step and overhead are those of the stamps; a batch has its share of
    /// them.
    ///
    /// # Errors
    /// As [`Self::stamped`], for whole batches.
    pub fn batched(unit: Unit, samples: &mut [f64], stamps: &Stamps, events: f64) -> Result<Self, Absent> {
        let mut whole: Vec<f64> = samples.iter().map(|mean| mean * events).collect();
        let whole = Self::stamped(unit, &mut whole, stamps)?;
        let figure = Self {
            median: whole.median.map(|median| median / events),
            median_interval: whole.median_interval.map(|limits| limits.map(|limit| limit / events)),
            quantum: stamps.step.map(|step| step / events),
            caveats: whole.caveats,
            ..Self::from_samples(unit, Method::Mean, samples)
        };
        Ok(figure.with_overhead(stamps.overhead / events))
    }

    /// The figure of a difference between two loops: each sample is the slope of one pair of them, time by event.
    ///
    /// Below 4 samples the spread is unknown, and they are shown unchanged. A slope within three standard errors of 0
    /// is indistinguishable from zero: the figure has no statistics except its number of samples and
    /// [`Figure::at_most`]. A negative slope is shown with a caveat.
    pub fn difference(unit: Unit, slopes: &mut [f64], quantum: Option<f64>) -> Self {
        let figure = Self { quantum, ..Self::from_samples(unit, Method::Diff, slopes) };
        let (Some(median), Some(mad)) = (figure.median, figure.mad) else { return figure };
        let independent = figure.n_effective.unwrap_or(figure.n as f64).max(1.0);
        // The standard error of a median is 1.2533 times that of a mean; 1.4826 times the median absolute deviation is
        // a standard deviation (normal samples). Both are at least the error of rounding to a step, and at least the
        // distance between two values that alternate in the samples.
        let deviation = 1.4826 * mad;
        let rounding = quantum.unwrap_or(0.0) / 12_f64.sqrt();
        let limits = figure.median_interval.map_or(0.0, |[low, high]| (high - low) / 2.0 / 1.96);
        let by_limits = limits * (figure.n as f64 / independent).sqrt();
        let error = (1.2533 * deviation.max(rounding) / independent.sqrt()).max(by_limits);
        if median.abs() < ERRORS_LEAST * error || error == 0.0 && median == 0.0 {
            let at_most = median.max(0.0) + ERRORS_LEAST * error;
            let n_effective = figure.n_effective;
            return Self {
                n: figure.n,
                n_effective,
                quantum,
                at_most: Some(at_most),
                ..Self::from_samples(unit, Method::Diff, &mut [])
            };
        }
        let caveat = "below zero: the loop with more events was faster, so this is not the cost of an event";
        if median < 0.0 { figure.with_caveat(caveat) } else { figure }
    }
}
