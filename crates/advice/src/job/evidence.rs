//! [`Evidence`]: watched events, counted against the limit of a requirement.

use hairspring_describe::exact_span;
use hairspring_machine::Nanos;
use hairspring_sheet::{Bucket, Figure, Histogram, Method, Row, Sheet, Unit, Value};
use hairspring_suite::workload::Workload;

use super::requirement::Requirement;
use crate::soak::soak_id;

/// The watched events for a requirement.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Its source: the id of a row, or a live watch.
    pub source: String,
    /// Number of events.
    pub events: u64,
    /// Number of events certainly beyond the limit.
    pub misses: u64,
    /// The most that can have been beyond the limit: the histogram's bucket around the limit may hold events on both
    /// sides.
    pub misses_at_most: u64,
    /// The watched time; none if only the number of events is known.
    pub watched: Option<Nanos>,
    /// The median of the events.
    pub median: Nanos,
    /// The greatest event.
    pub worst: Nanos,
    /// The distribution of the events.
    pub histogram: Histogram,
}

/// The source of evidence that does not come from a sheet.
const WATCHED_NOW: &str = "watched now";

impl Evidence {
    /// The evidence of single events, in nanoseconds, in any order. Those that are not finite do not count.
    pub fn of_samples(requirement: &Requirement, samples: &[f64], watched: Nanos) -> Self {
        let figure = Figure::from_samples(Unit::Ns, Method::Stamp, &mut samples.to_vec());
        let misses = samples.iter().filter(|sample| sample.is_finite() && **sample > limit(requirement)).count() as u64;
        Self { misses, misses_at_most: misses, ..Self::of_figure(requirement, WATCHED_NOW, &figure, Some(watched)) }
    }

    pub(crate) fn of_figure(requirement: &Requirement, source: &str, figure: &Figure, watched: Option<Nanos>) -> Self {
        let limit = limit(requirement);
        let histogram = match &figure.histogram {
            Some(histogram) => histogram.clone(),
            // One event has no histogram.
            None => Histogram::from_sorted(&figure.median.into_iter().collect::<Vec<_>>()),
        };
        let count = |is: fn(&Bucket, f64) -> bool| {
            histogram.buckets.iter().filter(|bucket| is(bucket, limit)).map(|bucket| bucket.count).sum()
        };
        let misses = count(|bucket, limit| bucket.from > limit);
        // The greatest event is known exactly.
        let none = figure.max.is_some_and(|max| max <= limit);
        let misses_at_most = if none { 0 } else { count(|bucket, limit| bucket.to > limit.next_up()) };
        // Rounded up, so that no event lies beyond the greatest.
        let nanos = |value: Option<f64>| Nanos::new(value.unwrap_or(0.0).ceil() as i64);
        Self {
            source: source.to_owned(),
            events: figure.n,
            misses,
            misses_at_most,
            watched,
            median: nanos(figure.median),
            worst: nanos(figure.max),
            histogram,
        }
    }

    /// The evidence in a sheet for a requirement.
    ///
    /// # Errors
    /// Why the sheet has no evidence.
    pub fn of_sheet(requirement: &Requirement, sheet: &Sheet) -> Result<Self, String> {
        let soaked = soak_id(requirement.workload, requirement.ordinary);
        if let Some(figure) = sheet.row(&format!("{soaked}.late")).and_then(Row::figure) {
            let watched =
                sheet.row(&format!("{soaked}.watched")).and_then(Row::figure).and_then(|figure| figure.median);
            let watched = watched.map(|ns| Nanos::new(ns as i64));
            return Ok(Self::of_figure(requirement, &format!("{soaked}.late"), figure, watched));
        }
        let ids = rows(requirement)?;
        let row = ids.iter().find_map(|id| sheet.row(id));
        let Some(row) = row else { return Err(format!("the sheet has no row {}", ids.join(" or "))) };
        match &row.value {
            Value::Absent(absent) => Err(format!("{} is absent in the sheet: {}", row.id, absent.reason)),
            Value::Figure(figure) if figure.median.is_none() => Err(format!("{} has no distribution", row.id)),
            Value::Figure(figure) => {
                let watched = match requirement.workload {
                    Workload::Loop(period) => i64::try_from(figure.n).ok().map(|periods| period * periods),
                    Workload::Reaction(_) | Workload::Delay(_) | Workload::Gaps => None,
                };
                Ok(Self::of_figure(requirement, &row.id, figure, watched))
            }
        }
    }

    /// A value that at most this many events exceed; none if there are not more events.
    pub(crate) fn reach(&self, beyond: impl Fn(u64) -> bool) -> Option<Nanos> {
        let mut above = 0;
        let mut reach = None;
        for bucket in self.histogram.buckets.iter().rev() {
            if !beyond(above) {
                break;
            }
            let edge = if above == 0 { self.worst } else { Nanos::new(bucket.to.ceil() as i64) };
            reach = Some(edge.min(self.worst));
            above += bucket.count;
        }
        reach
    }
}

fn limit(requirement: &Requirement) -> f64 {
    requirement.limit.count() as f64
}

/// The period of the loop that a sheet watches.
const SHEET_PERIOD: Nanos = Nanos::from_millis(1);

/// The periods of a sound card that a sheet watches, in frames at 48 kHz.
const SOUND_FRAMES: [i64; 3] = [64, 128, 256];

/// Length of a period of `frames` frames at 48 kHz, to the nanosecond.
fn sound_period(frames: i64) -> Nanos {
    Nanos::new((frames as f64 * 1e9 / 48_000.0).round() as i64)
}

/// The rows that hold the evidence, best first.
fn rows(requirement: &Requirement) -> Result<Vec<String>, String> {
    let class = if requirement.ordinary { "other" } else { "fifo" };
    Ok(match requirement.workload {
        Workload::Loop(SHEET_PERIOD) if requirement.ordinary => vec!["disturbance.wakeup_other.late".to_owned()],
        Workload::Loop(SHEET_PERIOD) => vec!["disturbance.wakeup.late".to_owned()],
        Workload::Loop(period) => {
            // A sound card's periods are such loops, if there is a card.
            let frames = SOUND_FRAMES.into_iter().find(|frames| sound_period(*frames) == period);
            let Some(frames) = frames.filter(|_| !requirement.ordinary) else {
                return Err(format!("a sheet has only a loop with a period of {SHEET_PERIOD}, not of {period}"));
            };
            vec![format!("sound.period.48khz_{frames}.late")]
        }
        Workload::Reaction(source) => vec![format!("reaction.{}.total", source.segment())],
        Workload::Gaps => return Err("a sheet lists gaps only by cause".to_owned()),
        Workload::Delay(request) => {
            let request = exact_span(request.count());
            // The lateness timed by the caller, if the sheet has it beside the delay's own report.
            let tables = ["minimum", "long"];
            let of = |quantity: &str| tables.map(|table| format!("delays.{table}.{class}.{request}.{quantity}"));
            of("seen").into_iter().chain(of("late")).collect()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement() -> Requirement {
        "loop 1kHz jitter 50us".parse().expect("a requirement")
    }

    #[test]
    fn a_buffer_of_a_sound_card_is_answered_by_its_own_row() {
        let rows = |text: &str| super::rows(&text.parse().expect("a requirement"));
        assert_eq!(rows("audio 48kHz/64").as_deref(), Ok(&["sound.period.48khz_64.late".to_owned()][..]));
        assert_eq!(rows("audio 48kHz/256").as_deref(), Ok(&["sound.period.48khz_256.late".to_owned()][..]));
        assert!(rows("audio 44.1kHz/64").is_err() && rows("audio 48kHz/64 ordinary").is_err());
    }

    #[test]
    fn misses_are_counted_exactly_in_samples() {
        let samples: Vec<f64> = (0..1000).map(|n| f64::from(n) * 100.0).collect();
        let evidence = Evidence::of_samples(&requirement(), &samples, Nanos::from_secs(1));
        assert_eq!((evidence.events, evidence.misses, evidence.misses_at_most), (1000, 499, 499));
        assert_eq!((evidence.median, evidence.worst), (Nanos::new(49_900), Nanos::new(99_900)));
    }

    #[test]
    fn misses_of_a_figure_lie_between_two_counts() {
        let mut samples: Vec<f64> = (0..1000).map(|n| f64::from(n) * 100.0).collect();
        let figure = Figure::from_samples(Unit::Ns, Method::Stamp, &mut samples);
        let evidence = Evidence::of_figure(&requirement(), "row", &figure, None);
        assert!(evidence.misses < 499 && 499 < evidence.misses_at_most, "{evidence:?}");
        let mut all_below = vec![49_999.0; 100];
        let figure = Figure::from_samples(Unit::Ns, Method::Stamp, &mut all_below);
        assert_eq!(Evidence::of_figure(&requirement(), "row", &figure, None).misses_at_most, 0);
    }

    #[test]
    fn a_reach_leaves_as_many_beyond_as_it_may() {
        let samples: Vec<f64> = (1..=1000).map(|n| f64::from(n) * 100.0).collect();
        let evidence = Evidence::of_samples(&requirement(), &samples, Nanos::from_secs(1));
        for most in [0, 1, 10, 100, 500] {
            let reach = evidence.reach(|above| above <= most).expect("enough events");
            let above = samples.iter().filter(|sample| **sample > reach.count() as f64).count() as u64;
            assert!(above <= most, "{above} of at most {most} above {reach}");
        }
        assert_eq!(evidence.reach(|above| above == 0), Some(Nanos::new(100_000)));
        assert_eq!(evidence.reach(|_| false), None);
    }
}
