//! A figure: one measured quantity with unit, count, spread and method, or the reason for its absence.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Histogram;
use crate::statistics::n_effective;

/// The unit of every number in a [`Figure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Parts per million.
    Ppm,
    /// Hertz.
    Hz,
    /// Operations per second.
    PerSecond,
    /// A dimensionless ratio; 1 is the whole.
    Ratio,
    /// A number of events or things.
    Count,
    /// Bytes; people read powers of two.
    Bytes,
    /// Bytes per second; people read powers of ten, and medians in powers of two as well.
    BytesPerS,
}

impl Unit {
    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Ns => "ns",
            Unit::Ppm => "ppm",
            Unit::Hz => "hz",
            Unit::PerSecond => "per_second",
            Unit::Ratio => "ratio",
            Unit::Count => "count",
            Unit::Bytes => "bytes",
            Unit::BytesPerS => "bytes_per_s",
        }
    }

    /// The unit of this name, as in JSON.
    pub fn named(name: &str) -> Option<Self> {
        let all =
            [Unit::Ns, Unit::Ppm, Unit::Hz, Unit::PerSecond, Unit::Ratio, Unit::Count, Unit::Bytes, Unit::BytesPerS];
        all.into_iter().find(|unit| unit.name() == name)
    }
}

/// How the samples of a figure were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// One pair of time stamps around one event; the cost of the pair is in the sample and stated as `overhead`.
    Stamp,
    /// One pair of time stamps around many events, divided by their number: every sample is a mean.
    Mean,
    /// Two loops that differ by some events, run in turns: the difference of their times divided by that number.
    Diff,
    /// A count divided by the time it took.
    Rate,
    /// Events were counted.
    Count,
    /// Computed from other figures or readings, as the row's label or note says.
    Derived,
}

impl Method {
    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Method::Stamp => "stamp",
            Method::Mean => "mean",
            Method::Diff => "diff",
            Method::Rate => "rate",
            Method::Count => "count",
            Method::Derived => "derived",
        }
    }

    /// A note below the rows of a table; `None` if none is needed.
    pub(crate) fn sentence(self) -> Option<&'static str> {
        match self {
            Method::Stamp => Some("stamped one by one"),
            Method::Mean => Some("means of batches between two stamps"),
            Method::Diff => Some("difference of two loops in turns, by event"),
            Method::Rate | Method::Count | Method::Derived => None,
        }
    }
}

/// The result of one round of a sheet for a figure. A round is a fresh process that measures every row of the sheet
/// once. So rounds vary as two runs vary: in placement, pages, layout, and the state of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureRound {
    /// The median of the round's samples, in the figure's unit.
    pub median: f64,
    /// How many samples it had.
    pub n: u64,
    /// When it was taken, in seconds from the start of the sheet.
    pub at_s: f64,
    /// The process that took it: equal numbers, one process.
    pub process: u32,
}

/// A measured quantity with its spread. All numbers are in `unit`; a statistic for which `n` is too small is null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The unit of every number here.
    pub unit: Unit,
    /// How many samples there are.
    pub n: u64,
    /// The smallest sample.
    pub min: Option<f64>,
    /// First percentile; null below 300 independent samples (`n_effective`), and for means of batches.
    pub p1: Option<f64>,
    /// First quartile; null below 4 samples.
    pub q1: Option<f64>,
    /// The median.
    pub median: Option<f64>,
    /// Third quartile; null below 4 samples.
    pub q3: Option<f64>,
    /// 99th percentile; null as the first.
    pub p99: Option<f64>,
    /// 99.9th percentile; null below 3,000 independent samples, and for means of batches.
    pub p999: Option<f64>,
    /// The largest sample.
    pub max: Option<f64>,
    /// Median absolute deviation from the median; null below 4 samples.
    pub mad: Option<f64>,
    /// The arithmetic mean.
    pub mean: Option<f64>,
    /// How the samples were taken.
    pub method: Method,
    /// Cost of the measurement itself, contained in every sample and not subtracted; null where it does not apply.
    pub overhead: Option<f64>,
    /// The limits of a 95 % interval for the median: from order statistics, null below 6 samples; for a derived figure
    /// by the method that its row names.
    pub median_interval: Option<[f64; 2]>,
    /// The result of each round, in the order of time; empty if the sheet was taken without rounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<FigureRound>,
    /// How much the rounds vary: the standard deviation of the logarithms of their medians (0.02 is 2 %), or of the
    /// medians themselves, in `unit`, where one is not positive. Null below 2 rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<f64>,
    /// The standard error of a round's median from its samples, as the mean over the rounds and on the same scale as
    /// `between`; null if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// The size of one step of the counter in this figure, in `unit`: smaller differences mean nothing. Null if
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum: Option<f64>,
    /// The equivalent number of independent samples; null if the order of the samples is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_effective: Option<f64>,
    /// An upper limit, if only that is known of the quantity: then there is no median. Null otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// The distribution of the samples; null for counts and derived figures.
    pub histogram: Option<Histogram>,
    /// Notes for reading this figure correctly; usually empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<String>,
    /// The number of samples with each verdict; empty if disturbances were not watched.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub verdicts: BTreeMap<String, u64>,
}

/// The statistic for the centre of a figure: the median, unless its source kept less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Centre {
    /// The median.
    Median,
    /// The mean, if there is no median.
    Mean,
    /// The greatest sample, if there is neither.
    Max,
}

impl Centre {
    /// All of them, best first.
    pub(crate) const ALL: [Centre; 3] = [Centre::Median, Centre::Mean, Centre::Max];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Centre::Median => "median",
            Centre::Mean => "mean",
            Centre::Max => "max",
        }
    }

    /// Its name for several.
    pub fn plural(self) -> &'static str {
        match self {
            Centre::Median => "medians",
            Centre::Mean => "means",
            Centre::Max => "maxima",
        }
    }

    /// Its value in a figure.
    pub fn of(self, figure: &Figure) -> Option<f64> {
        match self {
            Centre::Median => figure.median,
            Centre::Mean => figure.mean,
            Centre::Max => figure.max,
        }
    }
}

/// Why there is no figure, and how to get one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Absent {
    /// Why it could not be measured correctly.
    pub reason: String,
    /// How to get it; the exact command if there is one. Null if there is no remedy.
    pub remedy: Option<String>,
}

/// The largest magnitude of a sample, in any unit: far beyond any measurement, while sums of samples stay finite.
pub const LARGEST: f64 = 1e200;

/// Whether a number can be a sample.
fn usable(sample: f64) -> bool {
    sample.abs() <= LARGEST
}

/// The caveat about samples that were not finite numbers.
fn left_out(count: usize) -> Vec<String> {
    match count {
        0 => Vec::new(),
        1 => vec!["1 sample was not a finite number and is left out".to_owned()],
        _ => vec![format!("{count} samples were not finite numbers and are left out")],
    }
}

impl Absent {
    /// An absence with a remedy.
    pub fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: Some(remedy.into()) }
    }

    /// An absence without a remedy on this machine.
    pub fn final_(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: None }
    }
}

impl Figure {
    /// Reduces samples (in `unit`, in the order of time) to a figure with its histogram.
    ///
    /// Percentiles are by nearest rank: each is an observed value. Percentiles of the tails need enough independent
    /// samples for three beyond them, so that the greatest sample lies above with 95 % ([`n_effective`]). The slice is
    /// sorted in place. With no samples every statistic is null; prefer an [`Absent`] then. Samples that are not
    /// finite, or beyond [`LARGEST`], are not measurements: they are left out, and a caveat gives their number.
    pub fn from_samples(unit: Unit, method: Method, samples: &mut [f64]) -> Self {
        let order: Vec<f64> = samples.iter().copied().filter(|sample| usable(*sample)).collect();
        let independent = n_effective(&order);
        samples.sort_unstable_by(f64::total_cmp);
        let all = samples.len();
        // In the total order the usable samples are contiguous, between the infinities.
        let first = samples.iter().position(|s| usable(*s)).unwrap_or(all);
        let last = samples.iter().rposition(|s| usable(*s)).map_or(first, |i| i + 1);
        let samples = &samples[first..last];
        let n = samples.len();
        let rank = |q: f64, least: usize| {
            (n >= least && n > 0).then(|| samples[((q * n as f64).ceil() as usize).clamp(1, n) - 1])
        };
        // A batch has no single events.
        let tail = |q: f64, least: f64| rank(q, 1).filter(|_| independent >= least && method != Method::Mean);
        let median = rank(0.5, 1);
        let mad = median.filter(|_| n >= 4).map(|m| {
            let mut deviations: Vec<f64> = samples.iter().map(|s| (s - m).abs()).collect();
            deviations.sort_by(f64::total_cmp);
            deviations[n.div_ceil(2) - 1]
        });
        // Binomial order statistics: the samples of rank l and n + 1 − l, counted from 1, enclose the median in at
        // least 95 % with l = ⌊n/2 − 0.98·√n⌋, the normal approximation rounded outwards. Below 6 no interval does.
        let median_interval = (n >= 6).then(|| {
            let rank = (n as f64 / 2.0 - 0.98 * (n as f64).sqrt()).floor().max(1.0) as usize;
            [samples[rank - 1], samples[n - rank]]
        });
        Self {
            unit,
            n: n as u64,
            min: samples.first().copied(),
            p1: tail(0.01, 300.0),
            q1: rank(0.25, 4),
            median,
            q3: rank(0.75, 4),
            p99: tail(0.99, 300.0),
            p999: tail(0.999, 3_000.0),
            max: samples.last().copied(),
            mad,
            mean: (n > 0).then(|| samples.iter().sum::<f64>() / n as f64),
            method,
            overhead: None,
            median_interval,
            rounds: Vec::new(),
            between: None,
            within: None,
            quantum: None,
            n_effective: (n > 1).then_some(independent),
            at_most: None,
            histogram: (n > 1).then(|| Histogram::from_sorted(samples)),
            caveats: left_out(all - n),
            verdicts: BTreeMap::new(),
        }
    }

    /// Whether it was computed with an interval: one number without a spread, but with limits.
    pub(crate) fn is_interval(&self) -> bool {
        self.method == Method::Derived && self.median_interval.is_some() && self.histogram.is_none()
    }

    /// A figure computed from `n` samples, with the limits between which it lies in 95 %.
    pub fn derived(unit: Unit, n: u64, value: f64, limits: [f64; 2]) -> Self {
        let single = Self::single(unit, Method::Derived, value);
        let n_effective = None;
        Self { n, min: None, max: None, mean: None, median_interval: Some(limits), n_effective, ..single }
    }

    /// Whether there is only one value, so that statistics of spread mean nothing.
    pub fn is_single(&self) -> bool {
        self.n == 1 && self.median.is_some()
    }

    /// The median; the mean or the greatest sample where a document has no median, as historic ones do.
    pub fn centre(&self) -> Option<(Centre, f64)> {
        Centre::ALL.into_iter().find_map(|centre| Some((centre, centre.of(self)?)))
    }

    /// A figure of one value: a count, a rate, or a derived number. `min`, `median`, `max` and `mean` are all that
    /// value; there is no spread.
    pub fn single(unit: Unit, method: Method, value: f64) -> Self {
        Self { histogram: None, ..Self::from_samples(unit, method, &mut [value]) }
    }

    /// The verdicts in one line, most frequent first: `490 clean, 9 preempted`. None if nothing was watched.
    pub(crate) fn verdict_line(&self) -> Option<String> {
        let mut verdicts: Vec<(&String, &u64)> = self.verdicts.iter().collect();
        verdicts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let named: Vec<String> =
            verdicts.iter().map(|(name, count)| format!("{count} {}", name.replace('_', " "))).collect();
        (!named.is_empty()).then(|| named.join(", "))
    }

    /// Adds the cost of the measurement (in `unit`). A cost that is not finite becomes a caveat.
    #[must_use]
    pub fn with_overhead(mut self, overhead: f64) -> Self {
        if usable(overhead) {
            self.overhead = Some(overhead);
            return self;
        }
        self.overhead = None;
        self.with_caveat("the cost of the measurement is not known")
    }

    /// Adds a note for the reader.
    #[must_use]
    pub fn with_caveat(mut self, caveat: impl Into<String>) -> Self {
        self.caveats.push(caveat.into());
        self
    }
}
