//! What a run found for one row: numbers, and what is known beside them. The row adds its unit and its method.

use std::collections::BTreeMap;

use hairspring_sheet::{Absent, Figure, Method, Unit};

/// What a run found for a row, or the reason why there is nothing.
pub(crate) type Taken = Result<Reading, Absent>;

/// The numbers of one row, in the row's unit.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    numbers: Numbers,
    overhead: Option<f64>,
    caveats: Vec<String>,
    verdicts: BTreeMap<String, u64>,
}

#[derive(Clone, Debug)]
enum Numbers {
    Samples(Vec<f64>),
    Single(f64),
    /// Computed from so many samples, with the limits of a 95 % interval.
    Estimate(u64, f64, [f64; 2]),
}

impl Reading {
    /// Samples in any order.
    pub(crate) fn samples(samples: Vec<f64>) -> Self {
        Self::of(Numbers::Samples(samples))
    }

    /// One value without spread: a count, a ratio, something derived.
    pub(crate) fn single(value: f64) -> Self {
        Self::of(Numbers::Single(value))
    }

    /// A value computed from `n` samples, with the limits of its 95 % interval.
    pub(crate) fn estimate(n: u64, value: f64, limits: [f64; 2]) -> Self {
        Self::of(Numbers::Estimate(n, value, limits))
    }

    fn of(numbers: Numbers) -> Self {
        Self { numbers, overhead: None, caveats: Vec::new(), verdicts: BTreeMap::new() }
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

    /// The figure of a row with this unit and this method.
    pub(crate) fn figure(self, unit: Unit, method: Method) -> Figure {
        let figure = match self.numbers {
            Numbers::Samples(mut samples) => Figure::from_samples(unit, method, &mut samples),
            Numbers::Single(value) => Figure::single(unit, method, value),
            Numbers::Estimate(n, value, limits) => Figure { method, ..Figure::derived(unit, n, value, limits) },
        };
        let figure = self.overhead.into_iter().fold(figure, Figure::with_overhead);
        let figure = self.caveats.into_iter().fold(figure, Figure::with_caveat);
        Figure { verdicts: self.verdicts, ..figure }
    }
}
