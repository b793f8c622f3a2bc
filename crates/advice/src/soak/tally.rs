//! [`SoakTally`]: the results of hours of watching one job, in bounded memory.

use std::collections::{BTreeMap, BTreeSet};

use hairspring_culprit::CulpritKind;
use hairspring_machine::{Instant, Nanos};
use hairspring_sheet::{Figure, Histogram, Method, Unit};
use hairspring_suite::workload::Observed;

/// A part of the time that was watched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoakBlock {
    /// When it began, from the begin of the soak.
    pub at: Nanos,
    /// For how long events could be seen in it.
    pub watched: Nanos,
    /// Number of events.
    pub events: u64,
    /// The greatest; zero without events.
    pub greatest: Nanos,
    /// The greatest of those that each kind of culprit made, as far as they are among the worst cases.
    pub by_kind: BTreeMap<CulpritKind, Nanos>,
    /// Least value from which on the culprit of every event was looked up.
    pub asked_from: Nanos,
}

/// One of the greatest events.
#[derive(Clone, Debug, PartialEq)]
pub struct WorstCase {
    /// Its value.
    pub value: Nanos,
    /// When it ended, on `CLOCK_MONOTONIC`.
    pub ended: Instant,
    /// The time of day at which it ended.
    pub when: String,
    /// The culprit, or the reason why none is named.
    pub culprit: Result<CaseCulprit, String>,
}

/// The culprit that took most of the time of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseCulprit {
    /// Its kind.
    pub kind: CulpritKind,
    /// Its name, with its share of the time where that is not all.
    pub said: String,
}

/// Counts, distribution, blocks and worst cases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoakTally {
    /// Limits, in nanoseconds: the distribution counts exactly how many events are beyond each.
    limits: Vec<f64>,
    histogram: Histogram,
    sum: f64,
    least: Option<f64>,
    /// For how long events could be seen.
    pub watched: Nanos,
    /// In the order of time, all of the same number of blocks as they were entered, but for the last.
    pub blocks: Vec<SoakBlock>,
    /// The greatest first.
    pub worst: Vec<WorstCase>,
    /// `each` entered blocks make one of `blocks`; `filled` of them are in the last one.
    each: u32,
    filled: u32,
}

/// At this number of blocks neighbours are merged, so that a month takes no more memory than a day.
pub const BLOCKS_MOST: usize = 2000;
/// Number of worst cases that are kept.
pub const CASES_MOST: usize = 10;

impl SoakTally {
    /// Nothing yet.
    pub fn new(limits: impl IntoIterator<Item = Nanos>) -> Self {
        Self { limits: limits.into_iter().map(|limit| limit.count() as f64).collect(), each: 1, ..Self::default() }
    }

    /// The greatest events of the blocks that are full, in nanoseconds, in the order of time.
    pub fn maxima(&self) -> Vec<f64> {
        let full = self.blocks.len() - usize::from(self.filled < self.each);
        self.blocks[..full.min(self.blocks.len())].iter().map(|block| block.greatest.count() as f64).collect()
    }

    /// The greatest event of each full block that a kind of culprit made, in nanoseconds, in the order of time; `None`
    /// where the worst cases of the block do not show it.
    pub fn maxima_of(&self, kind: CulpritKind) -> Vec<Option<f64>> {
        let of = |block: &SoakBlock| {
            let greatest = block.by_kind.get(&kind).filter(|greatest| **greatest >= block.asked_from)?;
            Some(greatest.count() as f64)
        };
        self.blocks[..self.maxima().len()].iter().map(of).collect()
    }

    /// The kinds of culprits of which any case is known.
    pub fn kinds(&self) -> BTreeSet<CulpritKind> {
        self.blocks.iter().flat_map(|block| block.by_kind.keys().copied()).collect()
    }

    /// Enters the results of a block, with its worst cases in any order. From the value `asked_from` on, all cases are
    /// among them.
    pub fn enter(&mut self, at: Nanos, observed: &Observed, cases: Vec<WorstCase>, asked_from: Nanos) {
        let mut values: Vec<f64> = observed.values.iter().copied().filter(|value| value.is_finite()).collect();
        values.sort_unstable_by(f64::total_cmp);
        let mut histogram = Histogram::from_sorted(&values);
        // The greatest limit first: a bucket with several is cut from above.
        self.limits.sort_unstable_by(|a, b| b.total_cmp(a));
        for limit in &self.limits {
            let beyond = |value: f64| (values.len() - values.partition_point(|other| *other <= value)) as u64;
            let bucket = histogram.buckets.iter().find(|bucket| bucket.from <= *limit && *limit < bucket.to);
            if let Some(bucket) = bucket.copied() {
                histogram.cut(*limit, beyond(*limit) - beyond(bucket.to.next_down()));
            }
        }
        self.histogram.merge(&histogram);
        self.sum += values.iter().sum::<f64>();
        self.least = values.first().copied().into_iter().chain(self.least).min_by(f64::total_cmp);
        self.watched += observed.watched;
        let greatest = Nanos::new(values.last().map_or(0, |value| *value as i64));
        let mut by_kind = BTreeMap::<CulpritKind, Nanos>::new();
        for case in &cases {
            if let Ok(culprit) = &case.culprit {
                let greatest = by_kind.entry(culprit.kind).or_default();
                *greatest = case.value.max(*greatest);
            }
        }
        let events = values.len() as u64;
        let block = SoakBlock { at, watched: observed.watched, events, greatest, by_kind, asked_from };
        match self.blocks.last_mut().filter(|_| self.filled < self.each) {
            Some(last) => (*last, self.filled) = (joined(&[last.clone(), block]), self.filled + 1),
            None => {
                self.blocks.push(block);
                self.filled = 1;
            }
        }
        if self.blocks.len() == BLOCKS_MOST && self.filled == self.each {
            self.blocks = self.blocks.chunks(2).map(joined).collect();
            (self.each, self.filled) = (self.each * 2, self.each * 2);
        }
        self.worst.extend(cases);
        self.worst.sort_by_key(|case| std::cmp::Reverse(case.value));
        self.worst.truncate(CASES_MOST);
    }

    /// The greatest event.
    pub fn greatest(&self) -> Option<Nanos> {
        self.blocks.iter().filter(|block| block.events > 0).map(|block| block.greatest).max()
    }

    /// The events as a figure; none without events.
    pub fn figure(&self) -> Option<Figure> {
        let (greatest, least) = (self.greatest()?.count() as f64, self.least?);
        let n = self.histogram.count();
        let at_most = |share: f64| self.histogram.at_most(share).map(|value| value.clamp(least, greatest));
        let tail = |share: f64, events: u64| if n >= events { at_most(share) } else { None };
        let mut figure = Figure {
            n,
            min: Some(least),
            p1: tail(0.01, 300),
            q1: at_most(0.25),
            median: at_most(0.5),
            q3: at_most(0.75),
            p99: tail(0.99, 300),
            p999: tail(0.999, 3_000),
            max: Some(greatest),
            mad: None,
            mean: Some(self.sum / n as f64),
            histogram: Some(self.histogram.clone()),
            median_interval: None,
            ..Figure::single(Unit::Ns, Method::Stamp, greatest)
        };
        figure.n_effective = None;
        let edges =
            "percentiles are upper edges of logarithmic buckets, at most 6.3 % too great; least and greatest are exact";
        Some(figure.with_caveat(edges))
    }
}

/// Two neighbours as one block; one alone stays as it is.
fn joined(blocks: &[SoakBlock]) -> SoakBlock {
    let [first, rest @ ..] = blocks else { unreachable!("chunks are not empty") };
    rest.iter().fold(first.clone(), |mut sum, block| {
        for (kind, greatest) in &block.by_kind {
            let known = sum.by_kind.entry(*kind).or_default();
            *known = (*known).max(*greatest);
        }
        SoakBlock {
            watched: sum.watched + block.watched,
            events: sum.events + block.events,
            greatest: sum.greatest.max(block.greatest),
            asked_from: sum.asked_from.max(block.asked_from),
            ..sum
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::job::{Evidence, Requirement};

    fn observed(values: Vec<f64>) -> Observed {
        let mut worst: Vec<_> =
            values.iter().map(|value| (Nanos::new(*value as i64), Instant::from_monotonic(Nanos::ZERO))).collect();
        worst.sort_by_key(|(value, _)| std::cmp::Reverse(*value));
        worst.truncate(8);
        Observed { values, watched: Nanos::from_secs(1), worst }
    }

    fn tally(limits: &[i64], blocks: &[Vec<f64>]) -> SoakTally {
        let mut tally = SoakTally::new(limits.iter().map(|limit| Nanos::new(*limit)));
        for (number, values) in blocks.iter().enumerate() {
            let observed = observed(values.clone());
            let case = |&(value, ended)| WorstCase { value, ended, when: String::new(), culprit: Err(String::new()) };
            let cases = observed.worst.iter().map(case).collect();
            tally.enter(Nanos::from_secs(number as i64), &observed, cases, Nanos::ZERO);
        }
        tally
    }

    fn blocks() -> impl Strategy<Value = Vec<Vec<f64>>> {
        let value = (0_i64..200_000).prop_map(|value| value as f64);
        proptest::collection::vec(proptest::collection::vec(value, 1..60), 1..12)
    }

    proptest! {
        #[test]
        fn a_tally_of_blocks_counts_as_all_events_at_once_do(blocks in blocks(), limits in proptest::collection::vec(1_i64..200_000, 1..4)) {
            let tally = tally(&limits, &blocks);
            let all: Vec<f64> = blocks.concat();
            let figure = tally.figure().expect("events");
            prop_assert_eq!(figure.n, all.len() as u64);
            prop_assert_eq!(figure.max, all.iter().copied().max_by(f64::total_cmp));
            prop_assert_eq!(figure.min, all.iter().copied().min_by(f64::total_cmp));
            for limit in limits {
                let requirement: Requirement = format!("loop 1kHz jitter {limit}ns").parse().expect("a requirement");
                let evidence = Evidence::of_figure(&requirement, "row", &figure, None);
                let misses = all.iter().filter(|value| **value > limit as f64).count() as u64;
                prop_assert_eq!((evidence.misses, evidence.misses_at_most), (misses, misses));
            }
            // No bucket is wider than a sixteenth, so that a quantile is no more than that too great.
            let mut sorted = all.clone();
            sorted.sort_by(f64::total_cmp);
            let median = sorted[sorted.len().div_ceil(2) - 1];
            let shown = figure.median.expect("events");
            prop_assert!(median <= shown && shown <= (median * 17.0 / 16.0).next_up(), "{} {}", median, shown);
            let mut worst: Vec<i64> = all.iter().map(|value| *value as i64).collect();
            worst.sort_unstable_by_key(|value| std::cmp::Reverse(*value));
            let kept: Vec<i64> = tally.worst.iter().map(|case| case.value.count()).collect();
            // Each block hands over its eight greatest.
            prop_assert_eq!(kept.first(), worst.first());
            prop_assert!(kept.iter().zip(&worst).all(|(kept, worst)| kept <= worst));
        }
    }

    #[test]
    fn a_week_takes_no_more_blocks_than_a_day() {
        let many: Vec<Vec<f64>> = (0..5_000).map(|number| vec![f64::from(number % 777)]).collect();
        let tally = tally(&[], &many);
        assert!((BLOCKS_MOST / 2..BLOCKS_MOST).contains(&tally.blocks.len()), "{}", tally.blocks.len());
        assert_eq!(tally.blocks.iter().map(|block| block.events).sum::<u64>(), 5_000);
        assert_eq!(tally.blocks.iter().fold(Nanos::ZERO, |sum, block| sum + block.watched), Nanos::from_secs(5_000));
        assert!(tally.blocks.is_sorted_by_key(|block| block.at));
        assert_eq!(tally.greatest(), Some(Nanos::new(776)));
    }
}
