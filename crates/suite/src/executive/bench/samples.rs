//! [`Samples`]: the measurements of a scenario's run, and their conversion to a reading of the sheet.

use std::sync::{Arc, Mutex};

use hairspring_machine::Nanos;
use hairspring_sheet::Absent;

use super::{Bench, Cache};
use crate::executive::port::RunOutcome;
use crate::interleaving::median;
use crate::probe::{Reading, Taken, slope};

/// The most samples of a cell.
const SAMPLES_MOST: usize = 10_000;
/// The share of samples without proof above which a cell is absent.
const UNPROVEN_MOST: f64 = 0.05;

/// The samples of one run, in as many series as the scenario has quantities.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    series: Vec<Vec<f64>>,
    taken: HowTaken,
    /// Rounds that have begun, counted up to three.
    begun: u8,
    pub(crate) attempted: u64,
    pub(crate) unproven: u64,
    /// CPU time of the process while it sampled.
    pub(crate) cpu: Nanos,
}

/// The meaning of a run's samples.
#[derive(Clone, Copy, Debug, Default)]
enum HowTaken {
    /// One event.
    #[default]
    Single,
    /// The mean of the given number of events.
    Mean(f64),
    /// The slope of two loops that differ by the given number of events.
    Slope(f64),
}

impl Samples {
    /// Room for `quantities` quantities, touched once so that no page fault occurs during a measurement.
    pub(crate) fn new(quantities: usize) -> Self {
        let room = || {
            // Not zeros: the system returns those as untouched pages.
            let mut room = vec![1.0; SAMPLES_MOST];
            room.clear();
            room
        };
        Self { series: (0..quantities).map(|_| room()).collect(), ..Self::default() }
    }

    /// Whether to take one more round. The first one runs code that the process may never have run, so page faults are
    /// in its times: it is forgotten, and another follows even if no time is left.
    pub(crate) fn go_on(&mut self, time_left: bool, cpu: impl FnOnce() -> Nanos) -> bool {
        self.begun = (self.begun + 1).min(3);
        if self.begun == 2 {
            self.series.iter_mut().for_each(Vec::clear);
            (self.attempted, self.unproven, self.cpu) = (0, 0, -cpu());
        }
        self.begun < 3 || (time_left && !self.is_full())
    }

    fn is_full(&self) -> bool {
        self.series.iter().any(|series| series.len() == SAMPLES_MOST)
    }

    /// One sample of each quantity, if it is proven that the more urgent task ran when it should have.
    #[inline]
    pub(crate) fn push<const QUANTITIES: usize>(&mut self, proven: bool, values: [f64; QUANTITIES]) {
        self.attempted += 1;
        if !proven {
            self.unproven += 1;
            return;
        }
        for (series, value) in self.series.iter_mut().zip(values) {
            series.push(value);
        }
    }

    /// One sample of a batch of `events` events, from their total time. One event is not a batch.
    #[inline]
    pub(crate) fn push_mean<const QUANTITIES: usize>(
        &mut self,
        proven: bool,
        events: u64,
        together: [f64; QUANTITIES],
    ) {
        let events = events as f64;
        self.taken = if events > 1.0 { HowTaken::Mean(events) } else { HowTaken::Single };
        self.push(proven, together.map(|together| together / events));
    }

    /// One sample of two loops that differ by `events` events: from four times, in the order fewer, more, more, fewer.
    #[inline]
    pub(crate) fn push_slope<const QUANTITIES: usize>(
        &mut self,
        proven: bool,
        events: u64,
        times: [[f64; 4]; QUANTITIES],
    ) {
        let events = events as f64;
        self.taken = HowTaken::Slope(events);
        self.push(proven, times.map(|times| slope(times, events)));
    }
}

/// Cell in which the measuring task leaves its samples; the program reads it after the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tray(Arc<Mutex<Option<Samples>>>);

impl Tray {
    pub(crate) fn put(&self, samples: Samples) {
        if let Ok(mut tray) = self.0.lock() {
            *tray = Some(samples);
        }
    }

    /// Takes the samples, with the outcome of the run.
    pub(crate) fn taken(&self, outcome: RunOutcome) -> Sampled {
        let samples = self.0.lock().ok().and_then(|mut tray| tray.take());
        Sampled { samples: samples.unwrap_or_default(), outcome }
    }
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Sampled {
    pub(crate) samples: Samples,
    pub(crate) outcome: RunOutcome,
}

/// The samples of one quantity, or why there are none.
pub(crate) type Found = Result<Series, Absent>;

/// One quantity of a run: its samples, and facts about the run.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    values: Vec<f64>,
    taken: HowTaken,
    pub(crate) attempted: u64,
    pub(crate) unproven: u64,
    /// CPU time of the process while it sampled.
    pub(crate) cpu: Nanos,
    void: Option<Absent>,
    caveat: Option<String>,
}

impl Sampled {
    /// One quantity.
    pub(crate) fn series(&self, quantity: usize) -> Series {
        Series {
            values: self.samples.series.get(quantity).cloned().unwrap_or_default(),
            taken: self.samples.taken,
            attempted: self.samples.attempted,
            unproven: self.samples.unproven,
            cpu: self.samples.cpu,
            void: self.outcome.void.clone(),
            caveat: self.outcome.caveat.clone(),
        }
    }
}

impl Series {
    /// The median, if there are samples.
    pub(crate) fn median(&self) -> Option<f64> {
        (!self.values.is_empty()).then(|| median(&self.values))
    }

    /// The samples, if enough of them have a proof.
    pub(crate) fn proven(self) -> Result<Self, Absent> {
        if let Some(void) = self.void {
            return Err(void);
        }
        let (attempted, unproven) = (self.attempted, self.unproven);
        if unproven as f64 > attempted as f64 * UNPROVEN_MOST {
            let reason = format!("{unproven} of {attempted} samples were not preempted before the call returned");
            return Err(Absent::final_(reason));
        }
        if self.values.is_empty() {
            let remedy = "take the sheet on a machine that is less busy";
            return Err(Absent::new("the run produced no sample in its time", remedy));
        }
        Ok(self)
    }

    /// The reading for the sheet: samples with the cost of their stamps, or why there are none.
    pub(crate) fn reading(self, cache: Cache, bench: &Bench) -> Taken {
        let series = self.proven()?;
        let mut reading = match series.taken {
            HowTaken::Single => Reading::samples(series.values).with_overhead(bench.pair_ns(cache)),
            HowTaken::Mean(events) => Reading::means(series.values, events).with_overhead(bench.pair_ns(cache)),
            HowTaken::Slope(events) => Reading::slopes(series.values, events),
        };
        if series.unproven > 0 {
            let proven = series.attempted - series.unproven;
            let verdicts = [("proven".to_owned(), proven), ("not_preempted".to_owned(), series.unproven)];
            reading = reading.with_verdicts(verdicts.into_iter().collect());
        }
        Ok(series.caveat.into_iter().fold(reading, Reading::with_caveat))
    }
}

#[cfg(test)]
mod tests {
    use hairspring_machine::{Cpu, Host};
    use hairspring_time::Timebase;

    use super::*;
    use crate::executive::port::Placement;

    fn bench() -> Bench {
        let timebase = Timebase::calibrate(Host).expect("the host has a clock");
        let place = Placement { cpu: Cpu(0), other: None, measure_latency: false };
        Bench { step_ns: 10.0, pair_ns: 25.0, ..Bench::new(timebase, place, Nanos::from_millis(1), 1 << 20) }
    }

    fn series(ns: f64, proven: u64, unproven: u64, outcome: RunOutcome) -> Series {
        let mut samples = Samples::new(1);
        (0..proven).for_each(|_| samples.push(true, [ns]));
        (0..unproven).for_each(|_| samples.push(false, [ns]));
        Sampled { samples, outcome }.series(0)
    }

    fn reading(series: Series) -> Result<String, Absent> {
        series.reading(Cache::Hot, &bench()).map(|reading| format!("{reading:?}"))
    }

    #[test]
    fn the_first_round_is_forgotten_and_another_follows_without_time_for_it() {
        for rounds in [2, 5] {
            let mut samples = Samples::new(1);
            let (mut begun, mut cpu) = (0, Nanos::ZERO);
            while samples.go_on(begun < rounds, || cpu) {
                begun += 1;
                cpu += Nanos::new(100);
                samples.push(begun > 1, [f64::from(begun)]);
            }
            samples.cpu += cpu;
            assert_eq!(samples.series, [(2..=rounds).map(f64::from).collect::<Vec<_>>()]);
            let counted = u64::try_from(rounds - 1).expect("positive");
            assert_eq!((samples.attempted, samples.unproven), (counted, 0));
            assert_eq!(samples.cpu, Nanos::new(100) * i64::from(rounds - 1));
        }
    }

    #[test]
    fn samples_without_proof_are_dropped_counted_and_make_the_cell_absent_when_they_are_many() {
        let few = series(500.0, 97, 3, RunOutcome::default());
        assert_eq!(few.values.len(), 97);
        let few = reading(few).expect("three in a hundred are few");
        assert!(few.contains(r#""not_preempted": 3, "proven": 97"#), "{few}");
        let reason =
            reading(series(500.0, 90, 10, RunOutcome::default())).expect_err("ten in a hundred are many").reason;
        assert_eq!(reason, "10 of 100 samples were not preempted before the call returned");
    }

    #[test]
    fn a_batch_a_slope_and_an_event_each_say_what_they_are() {
        let taken = |push: &dyn Fn(&mut Samples)| {
            let mut samples = Samples::new(1);
            push(&mut samples);
            let series = Sampled { samples, outcome: RunOutcome::default() }.series(0);
            (series.values.clone(), reading(series).expect("it is proven"))
        };
        let (values, event) = taken(&|samples| samples.push(true, [320.0]));
        assert!(values == [320.0] && event.contains("Event") && event.contains("overhead: Some(25.0)"), "{event}");
        let (values, batch) = taken(&|samples| samples.push_mean(true, 32, [320.0]));
        assert!(values == [10.0] && batch.contains("Batch(32.0)"), "{batch}");
        let (values, single) = taken(&|samples| samples.push_mean(true, 1, [320.0]));
        assert!(values == [320.0] && single.contains("Event"), "{single}");
        let (values, slope) = taken(&|samples| samples.push_slope(true, 4, [[40.0, 80.0, 80.0, 40.0]]));
        assert!(values == [10.0] && slope.contains("Loops(4.0)") && slope.contains("overhead: None"), "{slope}");
    }

    #[test]
    fn a_run_that_is_void_or_empty_gives_its_reason() {
        let void = RunOutcome { void: Some(Absent::final_("not permitted")), ..RunOutcome::default() };
        assert_eq!(reading(series(500.0, 50, 0, void)).expect_err("void").reason, "not permitted");
        let empty = reading(series(500.0, 0, 0, RunOutcome::default())).expect_err("empty");
        assert!(empty.reason.contains("no sample"));
    }
}
