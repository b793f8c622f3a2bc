//! The finding of a run for one row: numbers with their context. The row adds its unit and its method.
//!
//! A reading travels from the process that measured it to the one that makes the sheet, so it keeps its samples in the
//! order in which they were taken.

use std::collections::BTreeMap;

use hairspring_machine::Nanos;
use hairspring_sheet::statistics::grouped_median;
use hairspring_sheet::{Absent, Method, STEPS_EXACT, Stamps};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::slopes::Slopes;
use super::stamps::StampCosts;
use crate::interleaving::median;

/// A run's reading for a row, or the reason why there is none.
pub(crate) type Taken = Result<Reading, Absent>;

/// A round's finding for one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Found {
    Reading(Reading),
    Absent(Absent),
    /// Measured in other rounds, because it takes too long to be measured in each.
    Elsewhere,
}

impl Found {
    /// The reason for an absence.
    pub(crate) fn absent(&self) -> Option<&Absent> {
        match self {
            Self::Absent(absent) => Some(absent),
            Self::Reading(_) | Self::Elsewhere => None,
        }
    }
}

/// The numbers of one row, in the row's unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reading {
    pub(crate) numbers: Numbers,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) overhead: Option<f64>,
    /// Size of one step of the counter in these numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) quantum: Option<f64>,
    /// Costs of the stamps around the samples, in the unit of the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stamps: Option<Stamps>,
    /// Number of events between two stamps, where the samples are means of batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<f64>,
    /// Events between the stamps of a sample.
    #[serde(skip)]
    between: Between,
    /// Time for which such events were watched. There may be no sample at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) watched_ns: Option<i64>,
    /// Time of the loop before or after the probe, the slower of the two, in nanoseconds: a neighbour on the core
    /// lengthens it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) company: Option<f64>,
    /// Whether the distribution of all samples may have several peaks that a reader wants to know.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) peaks: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) caveats: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) verdicts: BTreeMap<String, u64>,
}

/// Events between the stamps of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Between {
    /// One event.
    #[default]
    Event,
    /// One event after a request of this many nanoseconds: the sample is the time beyond it.
    Request(f64),
    /// This number of events: the sample is their mean.
    Batch(f64),
    /// Difference in events between two loops: the sample is a slope.
    Loops(f64),
}

/// Samples, counts or an estimate; the kind decides how rounds are merged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Numbers {
    /// In the order in which they were taken.
    Samples(#[serde(with = "finite")] Vec<f64>),
    /// One value without spread.
    Single(#[serde(with = "finite")] [f64; 1]),
    /// Computed from this number of samples, with the limits of a 95 % interval.
    Estimate(u64, #[serde(with = "finite")] [f64; 3]),
}

impl Reading {
    /// Samples in the order in which they were taken.
    pub(crate) fn samples(samples: Vec<f64>) -> Self {
        Self::of(Numbers::Samples(samples))
    }

    /// Samples that are means of `events` events each.
    pub(crate) fn means(samples: Vec<f64>, events: f64) -> Self {
        Self { between: Between::Batch(events), ..Self::samples(samples) }
    }

    /// The differences of two loops.
    pub(crate) fn difference(slopes: Slopes) -> Self {
        Self { between: Between::Loops(slopes.events()), ..Self::samples(slopes.into_values()) }
    }

    /// The differences of two loops, from samples made by [`slope`](super::slope) of loops that differ by `events`
    /// events.
    pub(crate) fn slopes(samples: Vec<f64>, events: f64) -> Self {
        Self { between: Between::Loops(events), ..Self::samples(samples) }
    }

    /// The same samples, as the time beyond this request.
    pub(crate) fn beyond(self, request: Nanos) -> Self {
        Self { between: Between::Request(request.count() as f64), ..self }
    }

    /// Samples of something that is waited for: there may be none in this time.
    pub(crate) fn watched(samples: Vec<f64>, watched: Nanos) -> Self {
        Self { watched_ns: Some(watched.count()), ..Self::samples(samples) }
    }

    /// One value without spread: a count, a ratio, something derived.
    pub(crate) fn single(value: f64) -> Self {
        Self::of(Numbers::Single([value]))
    }

    /// A value computed from `n` samples, with the limits of its 95 % interval.
    pub(crate) fn estimate(n: u64, value: f64, limits: [f64; 2]) -> Self {
        Self::of(Numbers::Estimate(n, [value, limits[0], limits[1]]))
    }

    fn of(numbers: Numbers) -> Self {
        let (caveats, verdicts) = (Vec::new(), BTreeMap::new());
        let (overhead, quantum, stamps, events, between) = (None, None, None, None, Between::Event);
        let (watched_ns, company, peaks) = (None, None, false);
        Self { numbers, overhead, quantum, stamps, events, between, watched_ns, company, peaks, caveats, verdicts }
    }

    /// The same with the cost of the measurement, which each sample contains.
    pub(crate) fn with_overhead(self, overhead: f64) -> Self {
        Self { overhead: Some(overhead), ..self }
    }

    /// The same with something that a reader must know.
    pub(crate) fn with_caveat(mut self, caveat: impl Into<String>) -> Self {
        self.caveats.push(caveat.into());
        self
    }

    /// The same with the number of samples under each verdict.
    pub(crate) fn with_verdicts(self, verdicts: BTreeMap<String, u64>) -> Self {
        Self { verdicts, ..self }
    }

    /// The same, whose figure names the peaks of the distribution if there are several.
    pub(crate) fn with_peaks(self) -> Self {
        Self { peaks: true, ..self }
    }

    /// Adds the facts of the stamps that the figure needs. The samples of a row must have been taken with its method.
    pub(crate) fn stamped(self, method: Method, costs: &StampCosts) -> Taken {
        let Numbers::Samples(_) = &self.numbers else { return Ok(self) };
        let beside = if let Between::Request(request) = self.between { request } else { 0.0 };
        let stamps = Stamps { step: costs.step_ns, overhead: self.overhead.unwrap_or(costs.pair_ns), beside };
        match (method, self.between) {
            (Method::Stamp, Between::Event | Between::Request(_)) => {
                Ok(Self { stamps: Some(stamps), overhead: None, ..self })
            }
            (Method::Mean, Between::Batch(events)) => {
                Ok(Self { stamps: Some(stamps), overhead: None, events: Some(events), ..self })
            }
            (Method::Diff, Between::Loops(events)) => {
                Ok(Self { quantum: costs.step_ns.map(|step| step / events), ..self })
            }
            (Method::Stamp | Method::Mean | Method::Diff, between) => {
                let (method, between) = (method.name(), format!("{between:?}").to_lowercase());
                let reason = format!("a row of the method {method} was taken as {between}: a defect of hairspring");
                Err(Absent::final_(reason))
            }
            _ => Ok(self),
        }
    }

    /// Median, value or estimate of the numbers; `None` if there are none.
    pub(crate) fn centre(&self) -> Option<f64> {
        let centre = match &self.numbers {
            Numbers::Samples(samples) => self.between_steps(samples).unwrap_or_else(|| median(samples)),
            Numbers::Single([value]) | Numbers::Estimate(_, [value, ..]) => *value,
        };
        centre.is_finite().then_some(centre)
    }

    /// The median between steps of the counter, of samples that are not many steps.
    fn between_steps(&self, samples: &[f64]) -> Option<f64> {
        let step = self.stamps?.step? / self.events.unwrap_or(1.0);
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        grouped_median(&sorted, step).filter(|median| *median < STEPS_EXACT * step)
    }

    /// Size of one step of the counter in these numbers, if known.
    pub(crate) fn step(&self) -> Option<f64> {
        let stamped = self.stamps.and_then(|stamps| Some(stamps.step? / self.events.unwrap_or(1.0)));
        self.quantum.or(stamped)
    }

    /// Number of samples.
    pub(crate) fn n(&self) -> u64 {
        match &self.numbers {
            Numbers::Samples(samples) => samples.len() as u64,
            Numbers::Single(_) => 1,
            Numbers::Estimate(n, _) => *n,
        }
    }
}

/// Numbers as JSON, which has none that are not finite: those are null there.
mod finite {
    use super::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(numbers: &(impl AsRef<[f64]> + ?Sized), to: S) -> Result<S::Ok, S::Error> {
        let finite: Vec<Option<f64>> = numbers.as_ref().iter().map(|n| n.is_finite().then_some(*n)).collect();
        finite.serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>, N: TryFrom<Vec<f64>>>(from: D) -> Result<N, D::Error> {
        let finite = Vec::<Option<f64>>::deserialize(from)?;
        let numbers: Vec<f64> = finite.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect();
        let given = numbers.len();
        N::try_from(numbers)
            .map_err(|_| serde::de::Error::custom(format!("{given} numbers are not as many as expected")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_comes_through_a_pipe_as_it_was() {
        let verdicts = BTreeMap::from([("clean".to_owned(), 2)]);
        for reading in [
            Reading::samples(vec![3.5, -1.0, 0.1]).with_overhead(21.0).with_verdicts(verdicts).with_caveat("warm"),
            Reading::watched(Vec::new(), Nanos::from_millis(5)),
            Reading::single(0.25),
            Reading::estimate(7, 1e9, [0.9e9, 1.1e9]),
        ] {
            let text = serde_json::to_string(&reading).expect("it can be written");
            assert_eq!(serde_json::from_str::<Reading>(&text).expect("it can be read"), reading, "{text}");
        }
        let text = serde_json::to_string(&Reading::samples(vec![f64::INFINITY, 2.0])).expect("it can be written");
        let Numbers::Samples(samples) = serde_json::from_str::<Reading>(&text).expect("it can be read").numbers else {
            panic!("{text}")
        };
        assert!(samples[0].is_nan() && samples[1] == 2.0, "{samples:?}");
    }

    const COSTS: StampCosts = StampCosts { step_ns: Some(10.0), pair_ns: 20.0, kernel_pair_ns: 40.0 };

    #[test]
    fn a_stamped_row_knows_its_step_and_its_overhead_whoever_took_it() {
        let of = |reading: Reading| reading.stamped(Method::Stamp, &COSTS).expect("stamped").stamps;
        let plain = Stamps { step: Some(10.0), overhead: 20.0, beside: 0.0 };
        assert_eq!(of(Reading::samples(vec![5_000.0; 20])), Some(plain));
        let own = Reading::samples(vec![5_000.0; 20]).with_overhead(33.0);
        assert_eq!(of(own), Some(Stamps { overhead: 33.0, ..plain }));
        let late = Reading::samples(vec![12.0; 20]).beyond(Nanos::from_micros(2));
        assert_eq!(of(late), Some(Stamps { beside: 2_000.0, ..plain }));
    }

    #[test]
    fn a_few_steps_of_lateness_have_their_middle_between_the_steps_however_long_the_request() {
        let centre = |request: Nanos, early: usize| {
            let late = [vec![41.0; early], vec![51.0; 100 - early]].concat();
            let reading = Reading::samples(late).beyond(request).stamped(Method::Stamp, &COSTS).expect("stamped");
            reading.centre().expect("samples")
        };
        for request in [Nanos::from_micros(1), Nanos::from_millis(10)] {
            let (a, b) = (centre(request, 52), centre(request, 48));
            assert!((a - 45.6).abs() < 0.1 && (b - 46.4).abs() < 0.1, "{request}: {a} and {b}");
        }
    }

    #[test]
    fn only_two_loops_make_a_difference_and_only_batches_a_mean() {
        let mut slopes = Slopes::new(100.0, 1);
        slopes.push([100.0, 400.0, 400.0, 100.0]);
        let difference = Reading::difference(slopes).stamped(Method::Diff, &COSTS).expect("loops");
        assert_eq!((difference.quantum, difference.stamps), (Some(0.1), None));
        let mean = Reading::means(vec![30.0; 20], 100.0).stamped(Method::Mean, &COSTS).expect("a batch");
        assert_eq!(mean.events, Some(100.0));
        for method in [Method::Diff, Method::Mean] {
            let defect = Reading::samples(vec![500.0; 20]).stamped(method, &COSTS).expect_err("single events");
            assert!(defect.reason.contains("defect"), "{}", defect.reason);
        }
        assert!(Reading::means(vec![500.0; 20], 8.0).stamped(Method::Stamp, &COSTS).is_err());
    }
}
