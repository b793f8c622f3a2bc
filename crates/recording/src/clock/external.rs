//! [`ExternalReading`]: a recording's facts about an external clock: how `CLOCK_MONOTONIC` ran against it, and when it
//! stepped or was silent.
//!
//! ```text
//!   external clock     t1 ────────── t2 ───── │ ───── t3 ─────────── t4        in ticks of its own
//!   CLOCK_MONOTONIC  [    ]        [    ]     step  [    ]         [    ]
//!                    least and most that passed      of the longest stretch
//! ```
//!
//! * **The rate is a mean with hard bounds.** Between two readings the external clock counted exactly `t4 − t3`.
//!   Meanwhile `CLOCK_MONOTONIC` advanced at least by the distance of the inner ends of the two intervals, and at most
//!   by that of the outer ones. No clock has to be steady for that.
//! * **Steadiness:** [`ExternalRate::off_line`] is the distance of the readings from any straight line. A time daemon
//!   that corrects the kernel's clock bends the line, and so does one that corrects the external clock.
//! * **A step** of more than 0.1 % of the time between two readings divides them into stretches, and the rate is that
//!   of the longest. Smaller ones are in the rate, and show as readings that are off the line.
//!
//! **Not claimed:** how far the external clock is from its own master, and on which scale it counts. Pulses mark the
//! beginnings of seconds, not their numbers.

pub mod watch;

use hairspring_machine::{Instant, Nanos};
use hairspring_ring::units::Frames;
use hairspring_source::external::{ExternalBracket, ExternalKind};

use super::hull::off_line;
use super::{ClockRecord, Mark, MarkSource, enter};

/// The part of the time between two readings by which the clocks can differ without a step: 1 in 1000. No discipline
/// corrects by more.
const STEP_OF: i128 = 1000;
const S: i128 = 1_000_000_000;

/// A reading of an external clock: it had counted `ticks` between these two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalReading {
    /// Nanoseconds of its own scale, or pulses since the recording began to wait for them.
    pub ticks: i64,
    /// Not before this.
    pub earliest: Instant,
    /// Not after this.
    pub latest: Instant,
    /// How the interval was determined.
    pub how: ExternalBracket,
}

/// A time in which an external clock returned no readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalSilence {
    /// The last reading was before this,
    pub after: Instant,
    /// and there was none until this.
    pub before: Instant,
    /// Whether its driver refused: the clock was removed, or failed. Otherwise it was there, and silent.
    pub is_gone: bool,
}

/// How `CLOCK_MONOTONIC` ran against an external clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExternalRate {
    /// How much faster `CLOCK_MONOTONIC` was on the average, at least and at most, in parts per billion (10⁻⁹).
    pub ppb: [f64; 2],
    /// From the first reading to the last of the longest stretch without a step.
    pub over: Nanos,
    /// Its readings.
    pub readings: usize,
    /// How far they are from any straight line. More than zero: one of the clocks was corrected, or a stamp was later
    /// than assumed.
    pub off_line: Nanos,
}

/// The external clock moved against `CLOCK_MONOTONIC` between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalStep {
    /// Forward by this amount. For pulses: by this number of extra seconds; negative if pulses are missing.
    pub by: Nanos,
    /// It happened after this,
    pub after: Instant,
    /// and before this.
    pub before: Instant,
}

impl ClockRecord {
    /// Enters a reading of the external clock, unless it is impossible.
    pub fn external_reading(&mut self, reading: ExternalReading) {
        if reading.earliest <= reading.latest {
            enter(&mut self.readings, reading);
        }
    }

    /// Enters a time in which the external clock returned no readings. A silence that has grown replaces its earlier
    /// entry.
    pub fn external_silence(&mut self, silence: ExternalSilence) {
        match self.silences.last_mut().filter(|last| last.after == silence.after) {
            Some(last) => *last = silence,
            None => enter(&mut self.silences, silence),
        }
    }

    /// The readings of the external clock, in the order in which they were taken.
    pub fn external_readings(&self) -> &[ExternalReading] {
        &self.readings
    }

    /// The times without readings.
    pub fn external_silences(&self) -> &[ExternalSilence] {
        &self.silences
    }

    /// How `CLOCK_MONOTONIC` ran against the external clock; `None` without one, or if it was not read twice.
    pub fn external_rate(&self) -> Option<ExternalRate> {
        let kind = self.external.as_ref()?.kind;
        let over = |stretch: &&[ExternalReading]| Some(stretch.last()?.latest - stretch.first()?.earliest);
        let stretch = self.readings.chunk_by(|one, next| step(kind, one, next).is_none()).max_by_key(over)?;
        let (first, last) = (stretch.first()?, stretch.last()?);
        let counted = external_ns(kind, first, last);
        let [least, most] = passed(first, last);
        // Divided exactly before rounding, and then widened by the possible rounding error.
        let ppb = |passed: i128| (passed - counted) as f64 / counted as f64 * 1e9;
        let wider = |ppb: f64| ppb.abs() * 4.0 * f64::EPSILON;
        let (low, high) = (ppb(least), ppb(most));
        (counted > 0 && least > 0).then(|| ExternalRate {
            ppb: [low - wider(low), high + wider(high)],
            over: last.latest - first.earliest,
            readings: stretch.len(),
            off_line: off_line(&marks(stretch)),
        })
    }

    /// The steps of the external clock against `CLOCK_MONOTONIC`, in order. A suspend of the computer looks the same.
    pub fn external_steps(&self) -> Vec<ExternalStep> {
        let Some(facts) = &self.external else { return Vec::new() };
        let stepped = |two: &[ExternalReading]| match two {
            [one, next] => step(facts.kind, one, next),
            _ => None,
        };
        self.readings.windows(2).filter_map(stepped).collect()
    }
}

/// The ticks that the external clock counted between two readings, in its nanoseconds.
fn external_ns(kind: ExternalKind, one: &ExternalReading, next: &ExternalReading) -> i128 {
    (i128::from(next.ticks) - i128::from(one.ticks)) * S / i128::from(kind.ticks_per_s())
}

/// The advance of `CLOCK_MONOTONIC` between two readings, at least and at most.
fn passed(one: &ExternalReading, next: &ExternalReading) -> [i128; 2] {
    let between = |from: Instant, to: Instant| i128::from((to - from).count());
    [between(one.latest, next.earliest), between(one.earliest, next.latest)]
}

fn step(kind: ExternalKind, one: &ExternalReading, next: &ExternalReading) -> Option<ExternalStep> {
    let counted = external_ns(kind, one, next);
    let [least, most] = passed(one, next);
    let allowed = most.max(0) / STEP_OF;
    let by = counted - (least + most) / 2;
    let is_step = counted < least - allowed || counted > most + allowed;
    let by = Nanos::new(i64::try_from(by).unwrap_or(if by < 0 { i64::MIN } else { i64::MAX }));
    is_step.then_some(ExternalStep { by, after: one.earliest, before: next.latest })
}

/// The readings as marks, whose frames are ticks since the first.
fn marks(stretch: &[ExternalReading]) -> Vec<Mark> {
    let first = stretch.first().map_or(0, |first| first.ticks);
    let mark = |reading: &ExternalReading| {
        let ticks = u64::try_from(reading.ticks.checked_sub(first)?).ok()?;
        let (earliest, latest) = (reading.earliest, reading.latest);
        Some(Mark { frame: Frames(ticks), earliest, latest, how: MarkSource::Card }).filter(Mark::is_possible)
    };
    stretch.iter().filter_map(mark).collect()
}

#[cfg(test)]
mod tests {
    use hairspring_source::external::ExternalFacts;
    use proptest::prelude::*;

    use super::*;

    fn at(ns: i64) -> Instant {
        Instant::from_monotonic(Nanos::new(ns))
    }

    fn record(kind: ExternalKind, readings: &[(i64, i64, i64)]) -> ClockRecord {
        let (id, name, late) = ("/dev/x".to_owned(), String::new(), Nanos::ZERO);
        let mut record =
            ClockRecord { external: Some(ExternalFacts { kind, id, name, late }), ..ClockRecord::default() };
        for (ticks, earliest, latest) in readings {
            let (earliest, latest, how) = (at(*earliest), at(*latest), ExternalBracket::Extended);
            record.external_reading(ExternalReading { ticks: *ticks, earliest, latest, how });
        }
        record
    }

    const SECOND: i64 = 1_000_000_000;
    /// TAI in 2026, which is beyond the greatest frame of a mark.
    const LATE: i64 = 1_795_000_000 * SECOND;

    #[test]
    fn two_readings_a_minute_apart_bound_the_rate_as_computed_by_hand() {
        // 60 µs more in 60 s is 1 ppm; ± 100 ns at both ends are ± 3.3 ppb.
        let minute = 60 * SECOND;
        let readings = [(LATE, -100, 100), (LATE + minute, minute + 59_900, minute + 60_100)];
        let rate = record(ExternalKind::Ptp, &readings).external_rate().expect("a rate");
        let [low, high] = rate.ppb;
        assert!((low - 996.667).abs() < 0.001 && (high - 1003.333).abs() < 0.001, "{low} {high}");
        assert_eq!((rate.readings, rate.off_line, rate.over), (2, Nanos::ZERO, Nanos::new(minute + 60_200)));
        // The same by pulses.
        let readings = [(7, -100, 100), (67, minute + 59_900, minute + 60_100)];
        assert_eq!(record(ExternalKind::Pps, &readings).external_rate(), Some(rate));
    }

    #[test]
    fn one_reading_or_none_or_a_clock_that_stands_has_no_rate() {
        for readings in [&[][..], &[(5, 0, 1)], &[(5, 0, 1), (5, 2, 3)]] {
            assert_eq!(record(ExternalKind::Ptp, readings).external_rate(), None, "{readings:?}");
        }
        let mut unknown = record(ExternalKind::Ptp, &[(0, 0, 1), (SECOND, SECOND, SECOND + 1)]);
        unknown.external = None;
        assert_eq!((unknown.external_rate(), unknown.external_steps()), (None, vec![]));
    }

    #[test]
    fn a_step_divides_the_readings_and_the_rate_is_of_the_longest_stretch() {
        let readings: Vec<_> = (0..10)
            .map(|n| {
                let stepped = if n < 3 { 0 } else { -37 * SECOND };
                (LATE + n * 10 * SECOND + stepped, n * 10 * SECOND - 50, n * 10 * SECOND + 50)
            })
            .collect();
        let record = record(ExternalKind::Ptp, &readings);
        let [step] = record.external_steps()[..] else { panic!("{:?}", record.external_steps()) };
        assert_eq!(
            step,
            ExternalStep { by: Nanos::from_secs(-37), after: at(20 * SECOND - 50), before: at(30 * SECOND + 50) }
        );
        let rate = record.external_rate().expect("a rate");
        assert_eq!((rate.readings, rate.over), (7, Nanos::new(60 * SECOND + 100)));
        assert!(rate.ppb[0] < 0.0 && rate.ppb[1] > 0.0 && rate.ppb[1] < 2.0, "{rate:?}");
    }

    #[test]
    fn a_pulse_that_is_missing_and_one_too_many_are_steps_of_a_second() {
        let readings =
            [(1, 0, 9), (2, SECOND, SECOND + 9), (3, 3 * SECOND, 3 * SECOND + 9), (5, 4 * SECOND, 4 * SECOND + 9)];
        let by: Vec<_> =
            record(ExternalKind::Pps, &readings).external_steps().iter().map(|step| step.by.count()).collect();
        assert_eq!(by, [-SECOND, SECOND]);
    }

    #[test]
    fn what_is_corrected_meanwhile_is_off_the_line_and_the_mean_holds() {
        // The second half runs 10 ppm faster.
        let readings: Vec<_> = (0..=20)
            .map(|n| {
                let faster = (n - 10).max(0) * 10_000;
                (n * SECOND, n * SECOND + faster - 20, n * SECOND + faster + 20)
            })
            .collect();
        let record = record(ExternalKind::Ptp, &readings);
        assert_eq!(record.external_steps(), []);
        let rate = record.external_rate().expect("a rate");
        assert!(rate.ppb[0] <= 5000.0 && 5000.0 <= rate.ppb[1] && rate.ppb[1] - rate.ppb[0] < 4.1, "{rate:?}");
        assert!(rate.off_line > Nanos::from_micros(20) && rate.off_line < Nanos::from_micros(30), "{rate:?}");
    }

    #[test]
    fn a_silence_that_grows_is_one() {
        let mut record = record(ExternalKind::Pps, &[]);
        let silence = |after, before| ExternalSilence { after: at(after), before: at(before), is_gone: false };
        for (after, before) in [(0, 3), (0, 5), (9, 12)] {
            record.external_silence(silence(after, before));
        }
        assert_eq!(record.external_silences(), [silence(0, 5), silence(9, 12)]);
    }

    proptest! {
        /// The true mean is never excluded, at any rate and any width.
        #[test]
        fn the_true_mean_is_within_the_bounds(
            ppb in -90_000..90_000_i64,
            widths in prop::collection::vec((0..100_000_i64, 0..100_000_i64, 1..20_000_i64), 2..40),
        ) {
            let (mut counted, mut readings) = (LATE, Vec::new());
            for (below, above, ms) in widths {
                let since = counted - LATE;
                let true_at = since + (i128::from(since) * i128::from(ppb) / S) as i64;
                readings.push((counted, true_at - below - 1, true_at + above + 1));
                counted += ms * 1_000_000;
            }
            let record = record(ExternalKind::Ptp, &readings);
            prop_assert_eq!(record.external_steps(), []);
            let rate = record.external_rate().expect("a rate");
            prop_assert!(rate.ppb[0] <= ppb as f64 && ppb as f64 <= rate.ppb[1], "{:?}", rate);
            prop_assert_eq!(rate.off_line, Nanos::ZERO);
        }
    }
}
