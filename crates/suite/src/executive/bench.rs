//! What scenarios share: the clock, the board on which tasks leave stamps and proofs, the samples, the sweep through the
//! caches, and how samples become a value.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hairspring_machine::{Clock as MachineClock, Host, Machine, Nanos, Ticks};
use hairspring_sheet::{Absent, Figure, Method, Unit, Value};
use hairspring_time::Timebase;

use super::port::{Ability, Calls, Outcome, Place, Port};

/// The most samples of a cell.
const SAMPLES_MOST: usize = 10_000;
/// Below so many steps of the counter one stamp says little about one event.
pub(crate) const STEPS_LEAST: f64 = 10.0;
/// Readings among which the smallest step of the counter is looked for.
const STEPS_LOOKED_AT: usize = 20_000;
/// The share of samples without proof above which a cell is absent.
const UNPROVEN_MOST: f64 = 0.05;
/// How long whoever waits for a proof by polling waits at most.
const PATIENCE: Nanos = Nanos::from_millis(50);
/// How long a task on another CPU is given to go to sleep: with hot caches, and where it sweeps before.
const SETTLE: [Nanos; 2] = [Nanos::from_micros(40), Nanos::from_millis(1)];
/// What a run may take beyond its sampling: what goes wrong must not hang the sheet.
const RUN_SPARE: Nanos = Nanos::from_millis(500);
/// Of a slice, the part that is rested after it: more than the 5 % that the kernel leaves to others.
const REST_PART: i64 = 12;
/// A cache line.
const LINE_BYTES: usize = 64;

/// In which state the caches are before each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// As the round before left them.
    Hot,
    /// After a buffer larger than the second-level cache was written.
    Dirty,
}

impl Cache {
    pub(crate) const ALL: [Self; 2] = [Self::Hot, Self::Dirty];

    pub(crate) fn segment(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::Dirty => "dirty",
        }
    }
}

/// What the rest of the machine does meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Nothing of ours.
    Idle,
    /// A thread on another CPU streams through memory.
    Loaded,
}

impl Load {
    pub(crate) const ALL: [Self; 2] = [Self::Idle, Self::Loaded];

    pub(crate) fn segment(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Loaded => "loaded",
        }
    }
}

/// The workbench: everything that the measuring of a cell needs and that is the same for all executives.
#[derive(Clone, Debug)]
pub struct Bench {
    /// What stamps are taken from.
    pub timebase: Timebase<Host>,
    /// Where executives run.
    pub place: Place,
    /// How long the sampling of one cell lasts.
    pub slice: Nanos,
    /// What is written to make the caches dirty: more than the second-level cache.
    pub sweep_bytes: usize,
    /// The smallest step of the counter that two readings show, in nanoseconds.
    pub step_ns: f64,
    /// What a pair of ordered stamps shows with nothing between them, in nanoseconds.
    pub pair_ns: f64,
}

impl Bench {
    /// A workbench; measures step and pair of the counter.
    pub fn new(timebase: Timebase<Host>, place: Place, slice: Nanos, sweep_bytes: usize) -> Self {
        let clock = Clock { timebase: timebase.clone() };
        let median = |mut samples: Vec<f64>| {
            samples.sort_by(f64::total_cmp);
            samples.get(samples.len() / 2).copied().unwrap_or(0.0)
        };
        let pairs = (0..501).map(|_| {
            let before = clock.stamp();
            clock.ns_since(before)
        });
        let pair_ns = median(pairs.collect());
        let steps = (0..STEPS_LOOKED_AT).map(|_| {
            let before = timebase.stamp();
            clock.ns(timebase.stamp().since(before))
        });
        let step_ns = steps.filter(|step| *step > 0.0).fold(f64::INFINITY, f64::min);
        Self { timebase, place, slice, sweep_bytes, step_ns, pair_ns }
    }

    pub(crate) fn clock(&self) -> Clock {
        Clock { timebase: self.timebase.clone() }
    }

    /// A sweep for a cell with these caches; one that does nothing where they are hot.
    pub(crate) fn sweep(&self, cache: Cache) -> Sweep {
        Sweep { memory: vec![1; if cache == Cache::Dirty { self.sweep_bytes } else { 0 }] }
    }
}

/// The stamps of a task.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    timebase: Timebase<Host>,
}

impl Clock {
    /// An ordered stamp.
    #[inline(always)]
    pub(crate) fn stamp(&self) -> Ticks {
        self.timebase.stamp_ordered()
    }

    /// From that stamp until now.
    #[inline(always)]
    pub(crate) fn ns_since(&self, earlier: Ticks) -> f64 {
        self.ns(self.stamp().since(earlier))
    }

    #[inline]
    pub(crate) fn ns(&self, ticks: i64) -> f64 {
        ticks as f64 * 1e9 / self.timebase.calibration().rate_hz
    }

    /// The stamp so much later than now.
    pub(crate) fn after(&self, span: Nanos) -> Ticks {
        self.stamp().plus(self.timebase.ticks_for_at_least(span))
    }

    /// `CLOCK_MONOTONIC`.
    #[inline(always)]
    pub(crate) fn monotonic(&self) -> Nanos {
        Host.read(MachineClock::Monotonic)
    }

    /// Gives a task on another CPU the time to go to sleep.
    pub(crate) fn settle(&self, cache: Cache) {
        let end = self.after(SETTLE[usize::from(cache == Cache::Dirty)]);
        while end.since(self.stamp()) > 0 {
            Host.relax();
        }
    }
}

/// Where tasks leave stamps and proofs for each other.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Board {
    /// The proof: how often the more urgent task came to where it says so.
    word: AtomicU64,
    marks: [AtomicU64; 4],
}

impl Board {
    /// Leaves a stamp. Relaxed: the proof that follows publishes it.
    #[inline(always)]
    pub(crate) fn mark(&self, index: usize, stamp: Ticks) {
        self.marks[index].store(stamp.raw(), Ordering::Relaxed);
    }

    /// The stamp left there. Relaxed: read after the proof.
    #[inline(always)]
    pub(crate) fn at(&self, index: usize) -> Ticks {
        Ticks::new(self.marks[index].load(Ordering::Relaxed))
    }

    /// Gives the proof with this number. Release pairs with the Acquire in `proof`.
    #[inline(always)]
    pub(crate) fn prove(&self, number: u64) {
        self.word.store(number, Ordering::Release);
    }

    /// The latest proof. Acquire pairs with the Release in `prove`.
    #[inline(always)]
    pub(crate) fn proof(&self) -> u64 {
        self.word.load(Ordering::Acquire)
    }
}

/// Polls for a proof, and lets whoever should give it do so; false if it does not come in time.
pub(crate) async fn proof_comes<P: Port>(calls: &P::Calls<'_>, board: &Board, number: u64, clock: &Clock) -> bool {
    if board.proof() >= number {
        return true;
    }
    let end = clock.after(PATIENCE);
    let mut rounds = 0_u32;
    while board.proof() < number {
        rounds += 1;
        if rounds.is_multiple_of(256) && end.since(clock.stamp()) < 0 {
            return false;
        }
        calls.preempt_point().await;
        Host.relax();
    }
    true
}

/// What every run has: an executive, a board, a tray.
pub(crate) struct Rig<'b, P: Port> {
    pub(crate) port: P,
    pub(crate) board: Arc<Board>,
    pub(crate) tray: Tray,
    pub(crate) bench: &'b Bench,
}

impl<'b, P: Port> Rig<'b, P> {
    pub(crate) fn new(bench: &'b Bench) -> Result<Self, Absent> {
        Ok(Self { port: P::make(bench.place)?, board: Arc::default(), tray: Tray::default(), bench })
    }

    /// Board and clock of one task.
    pub(crate) fn share(&self) -> (Arc<Board>, Clock) {
        (Arc::clone(&self.board), self.bench.clock())
    }

    /// Clock, length of the sampling and tray of the task that measures.
    pub(crate) fn measuring(&self) -> (Clock, Nanos, Tray) {
        (self.bench.clock(), self.bench.slice, self.tray.clone())
    }

    /// Starts the task that measures, runs until it has, and leaves the machine to others for a while, so that the kernel
    /// has no reason to stall real-time threads.
    pub(crate) fn run(mut self, measuring: P::Task) -> Result<Taken, Absent> {
        self.port.start(measuring)?;
        let slice = self.bench.slice;
        let outcome = self.port.run(slice.times(4) + RUN_SPARE);
        drop(self.port);
        Host.sleep_until(Host.read(MachineClock::Monotonic) + Nanos::new(slice.count() / REST_PART));
        Ok(self.tray.taken(outcome))
    }
}

/// Writes through a buffer, so that the caches hold nothing else.
#[derive(Debug)]
pub(crate) struct Sweep {
    memory: Vec<u8>,
}

impl Sweep {
    #[inline(never)]
    pub(crate) fn sweep(&mut self) {
        for line in self.memory.iter_mut().step_by(LINE_BYTES) {
            *line = line.wrapping_add(1);
        }
        black_box(&mut self.memory);
    }
}

/// The samples of one run, in as many series as the scenario has quantities.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    series: Vec<Vec<f64>>,
    pub(crate) attempted: u64,
    pub(crate) unproven: u64,
}

impl Samples {
    /// Room for so many quantities, touched once so that no page fault falls into a measurement.
    pub(crate) fn new(quantities: usize) -> Self {
        let room = || {
            let mut room = vec![0.0; SAMPLES_MOST];
            room.clear();
            room
        };
        Self { series: (0..quantities).map(|_| room()).collect(), attempted: 0, unproven: 0 }
    }

    pub(crate) fn is_full(&self) -> bool {
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
}

/// Where the measuring task puts its samples, and the program finds them after the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tray(Arc<Mutex<Option<Samples>>>);

impl Tray {
    pub(crate) fn put(&self, samples: Samples) {
        if let Ok(mut tray) = self.0.lock() {
            *tray = Some(samples);
        }
    }

    /// What was put there, with how the run was.
    pub(crate) fn taken(&self, outcome: Outcome) -> Taken {
        let samples = self.0.lock().ok().and_then(|mut tray| tray.take());
        Taken { samples: samples.unwrap_or_default(), outcome }
    }
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) samples: Samples,
    pub(crate) outcome: Outcome,
}

impl Taken {
    /// The median of one quantity.
    pub(crate) fn median(&self, quantity: usize) -> Option<f64> {
        let mut sorted = self.samples.series.get(quantity)?.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }

    /// Takes the control's median off each sample of a quantity.
    #[must_use]
    pub(crate) fn less(mut self, control: f64) -> Self {
        for sample in self.samples.series.iter_mut().flatten() {
            *sample -= control;
        }
        self
    }

    /// One quantity as the sheet has it: a figure, or why there is none.
    pub(crate) fn value(&mut self, quantity: usize, unit: Unit, method: Method, bench: &Bench) -> Value {
        match self.figure(quantity, unit, method, bench) {
            Ok(figure) => Value::Figure(figure),
            Err(absent) => Value::Absent(absent),
        }
    }

    fn figure(&mut self, quantity: usize, unit: Unit, method: Method, bench: &Bench) -> Result<Figure, Absent> {
        if let Some(void) = &self.outcome.void {
            return Err(void.clone());
        }
        let (attempted, unproven) = (self.samples.attempted, self.samples.unproven);
        if unproven as f64 > attempted as f64 * UNPROVEN_MOST {
            let reason = format!("{unproven} of {attempted} samples were not preempted before the call returned");
            return Err(Absent::final_(reason));
        }
        let Some(samples) = self.samples.series.get_mut(quantity).filter(|series| !series.is_empty()) else {
            let remedy = "take the sheet on a machine that is less busy";
            return Err(Absent::new("the run brought no sample in its time", remedy));
        };
        let mut figure = Figure::from_samples(unit, method, samples);
        if method == Method::Stamp {
            let (median, least) = (figure.median.unwrap_or(0.0), STEPS_LEAST * bench.step_ns);
            if median < least {
                return Err(Absent::final_(format!(
                    "too short for a stamp: {median:.0} ns is below {STEPS_LEAST:.0} steps of the counter, and no chain of \
                     tasks expresses it"
                )));
            }
            figure = figure.with_overhead(bench.pair_ns);
        }
        if unproven > 0 {
            let verdicts = [("proven".to_owned(), attempted - unproven), ("not_preempted".to_owned(), unproven)];
            figure.verdicts = verdicts.into_iter().collect();
        }
        Ok(match &self.outcome.caveat {
            Some(caveat) => figure.with_caveat(caveat.clone()),
            None => figure,
        })
    }
}

/// Whether a quantity is taken by a chain of tasks: where calls are too short for stamps. With dirty caches they never are.
pub(crate) fn chained<P: Port>(cache: Cache) -> bool {
    P::BELOW_STAMPS && cache == Cache::Hot && P::unable(Ability::PreemptsCaller).is_none()
}

/// The same absence for several quantities.
pub(crate) fn all_absent<'q>(quantities: impl IntoIterator<Item = &'q str>, absent: &Absent) -> Vec<(&'q str, Value)> {
    quantities.into_iter().map(|quantity| (quantity, Value::Absent(absent.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executive::port::Outcome;
    use hairspring_machine::Cpu;

    fn bench() -> Bench {
        let timebase = Timebase::calibrate(Host).expect("the host has a clock");
        let place = Place { cpu: Cpu(0), other: None, measure_latency: false };
        Bench { step_ns: 10.0, pair_ns: 25.0, ..Bench::new(timebase, place, Nanos::from_millis(1), 1 << 20) }
    }

    fn taken(ns: f64, proven: u64, unproven: u64, outcome: Outcome) -> Taken {
        let mut samples = Samples::new(1);
        (0..proven).for_each(|_| samples.push(true, [ns]));
        (0..unproven).for_each(|_| samples.push(false, [ns]));
        Taken { samples, outcome }
    }

    #[track_caller]
    fn absent(mut taken: Taken, method: Method) -> String {
        match taken.value(0, Unit::Ns, method, &bench()) {
            Value::Figure(figure) => panic!("there is a figure of {} samples", figure.n),
            Value::Absent(absent) => absent.reason,
        }
    }

    #[test]
    fn samples_without_proof_are_dropped_counted_and_make_the_cell_absent_when_they_are_many() {
        let few = taken(500.0, 97, 3, Outcome::default()).value(0, Unit::Ns, Method::Stamp, &bench());
        let Value::Figure(few) = few else { panic!("three in a hundred are few") };
        assert_eq!((few.n, few.verdicts["not_preempted"], few.overhead), (97, 3, Some(25.0)));
        let reason = absent(taken(500.0, 90, 10, Outcome::default()), Method::Stamp);
        assert_eq!(reason, "10 of 100 samples were not preempted before the call returned");
    }

    #[test]
    fn what_is_below_ten_steps_is_no_stamp_but_may_be_a_difference() {
        assert!(
            absent(taken(99.0, 50, 0, Outcome::default()), Method::Stamp).starts_with("too short for a stamp: 99 ns")
        );
        let value = taken(99.0, 50, 0, Outcome::default()).value(0, Unit::Ns, Method::Diff, &bench());
        assert!(matches!(value, Value::Figure(figure) if figure.overhead.is_none()));
    }

    #[test]
    fn a_run_that_is_void_or_empty_gives_its_reason() {
        let void = Outcome { void: Some(Absent::final_("not permitted")), ..Outcome::default() };
        assert_eq!(absent(taken(500.0, 50, 0, void), Method::Stamp), "not permitted");
        assert!(absent(taken(500.0, 0, 0, Outcome::default()), Method::Stamp).contains("no sample"));
    }
}
