//! [`Tally`]: a unit's counts, and the distributions of its reactions in bounded memory.

use hairspring_station::publish::LatencyHistogram;
use hairspring_station::{Counts, Stages, Stamped};
use hairspring_time::Nanos;
use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// The longest reaction that is distinguished: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Values are kept to one part in a thousand.
const DIGITS: u8 = 3;

/// Spans in nanoseconds.
pub(crate) struct Spans(Histogram<u64>);

impl Default for Spans {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
        // The bounds are valid constants.
        Self(histogram.unwrap_or_else(|error| unreachable!("{error}")))
    }
}

impl Spans {
    fn add(&mut self, span: Nanos) {
        self.0.saturating_record(u64::try_from(span.count()).unwrap_or(0));
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// The quantile; `None` if there are too few values.
    pub(crate) fn quantile(&self, share: f64) -> Option<Nanos> {
        let is_supported = self.0.len() as f64 * share.min(1.0 - share) >= 1.0;
        let nanos = |value: u64| Nanos::new(i64::try_from(value).unwrap_or(i64::MAX));
        is_supported.then(|| nanos(self.0.value_at_quantile(share)))
    }

    pub(crate) fn range(&self) -> Option<(Nanos, Nanos)> {
        let nanos = |value: u64| Nanos::new(i64::try_from(value).unwrap_or(i64::MAX));
        (!self.0.is_empty()).then(|| (nanos(self.0.min()), nanos(self.0.max())))
    }

    pub(crate) fn json(&self) -> Value {
        let range = self.range();
        let count = |span: Option<Nanos>| span.map(Nanos::count);
        json!({
            "n": self.count(),
            "min": count(range.map(|(least, _)| least)),
            "median": count(self.quantile(0.5)),
            "p99": count(self.quantile(0.99)),
            "p999": count(self.quantile(0.999)),
            "max": count(range.map(|(_, most)| most)),
        })
    }
}

/// The counts and reactions of a unit so far.
#[derive(Default)]
pub(crate) struct Tally {
    /// The counts as of the latest stamps.
    pub(crate) counts: Counts,
    /// The source of the events' stamps.
    pub(crate) stamped: Option<Stamped>,
    pub(crate) wake: Spans,
    pub(crate) start: Spans,
    pub(crate) lock: Spans,
    pub(crate) io: Spans,
    pub(crate) total: Spans,
    /// The same in bins, for other processes.
    pub(crate) histogram: LatencyHistogram,
    /// The stages of the latest activation.
    pub(crate) latest: Option<Stages>,
}

impl Tally {
    pub(crate) fn add(&mut self, stages: &Stages) {
        self.counts = stages.counts;
        self.stamped = Some(stages.stamped);
        self.latest = Some(*stages);
        if stages.skipped {
            return;
        }
        let access = stages.access;
        let spans = [
            (&mut self.wake, Some((stages.event, stages.wake))),
            (&mut self.start, Some((stages.wake, stages.start))),
            (&mut self.lock, access.map(|access| (access.requested, access.granted))),
            (&mut self.io, access.map(|access| (access.granted, access.done))),
        ];
        for (spans, ends) in spans {
            if let Some(Ok(span)) = ends.map(|(from, to)| to.since(from)) {
                spans.add(span);
            }
        }
        if let Some(total) = stages.total() {
            self.total.add(total);
            self.histogram.add(total);
        }
    }
}
