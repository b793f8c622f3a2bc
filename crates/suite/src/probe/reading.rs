//! What a run found for one row: numbers, and what is known beside them. The row adds its unit and its method.
//!
//! A reading is what travels from the process that measured it to the one that makes the sheet, so it keeps its samples in the order in
//! which they were taken.

use std::collections::BTreeMap;

use hairspring_machine::Nanos;
use hairspring_sheet::statistics::grouped_median;
use hairspring_sheet::{Absent, STEPS_EXACT, Stamps};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::rounds::median;

/// What a run found for a row, or the reason why there is nothing.
pub(crate) type Taken = Result<Reading, Absent>;

/// The numbers of one row, in the row's unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reading {
    pub(crate) numbers: Numbers,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) overhead: Option<f64>,
    /// What one step of the counter is worth in these numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) quantum: Option<f64>,
    /// What is known of the stamps around the samples, in their unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stamps: Option<Stamps>,
    /// How many events lie between two stamps, where the samples are means of batches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<f64>,
    /// For how long such events were watched for. Then there may be no sample at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) watched_ns: Option<i64>,
    /// Whether the distribution of all samples may have several peaks that a reader wants to know.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) peaks: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) caveats: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) verdicts: BTreeMap<String, u64>,
}

/// What the samples of several rounds have in common decides how they are merged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Numbers {
    /// In the order in which they were taken.
    Samples(#[serde(with = "finite")] Vec<f64>),
    /// One value without spread.
    Single(#[serde(with = "finite")] [f64; 1]),
    /// Computed from so many samples, with the limits of a 95 % interval.
    Estimate(u64, #[serde(with = "finite")] [f64; 3]),
}

impl Reading {
    /// Samples in the order in which they were taken.
    pub(crate) fn samples(samples: Vec<f64>) -> Self {
        Self::of(Numbers::Samples(samples))
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
        let (overhead, quantum, stamps, events) = (None, None, None, None);
        Self { numbers, overhead, quantum, stamps, events, watched_ns: None, peaks: false, caveats, verdicts }
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

    /// Where the numbers lie; `None` if there are none.
    pub(crate) fn centre(&self) -> Option<f64> {
        let centre = match &self.numbers {
            Numbers::Samples(samples) => self.between_steps(samples).unwrap_or_else(|| median(samples)),
            Numbers::Single([value]) | Numbers::Estimate(_, [value, ..]) => *value,
        };
        centre.is_finite().then_some(centre)
    }

    /// The median between steps of the counter, of samples that are not many steps long.
    fn between_steps(&self, samples: &[f64]) -> Option<f64> {
        let Stamps { step, beside, .. } = self.stamps?;
        let step = step? / self.events.unwrap_or(1.0);
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        grouped_median(&sorted, step).filter(|median| median + beside < STEPS_EXACT * step)
    }

    /// How many samples there are.
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
}
