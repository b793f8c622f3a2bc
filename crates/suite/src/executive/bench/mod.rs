//! The workbench of all scenarios: the clock, the board where tasks store stamps and proofs, the samples, the sweep through the
//! caches, and the reduction of samples to a value.

pub(crate) mod canary;
pub(crate) mod firing;
pub(crate) mod load;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hairspring_machine::{Clock as MachineClock, Host, Instant, Machine, Nanos, Ticks};
use hairspring_sheet::Absent;
use hairspring_time::{CounterStep, Timebase};

use super::port::{Ability, Calls, Placement, Port, RunOutcome};
use crate::caches::CacheSweep;
use crate::interleaving::median;
use crate::probe::{Reading, Taken, slope};

/// The most samples of a cell.
const SAMPLES_MOST: usize = 10_000;
/// The share of samples without proof above which a cell is absent.
const UNPROVEN_MOST: f64 = 0.05;
/// The longest time that a task polls for a proof.
const PATIENCE: Nanos = Nanos::from_millis(50);
/// Time for a task on another CPU to fall asleep: with hot caches, and if it sweeps first.
const SETTLE: [Nanos; 2] = [Nanos::from_micros(40), Nanos::from_millis(1)];
/// Time limit of a run beyond its sampling, so that a failure cannot hang the sheet.
const RUN_SPARE: Nanos = Nanos::from_millis(500);
/// The rest after a slice, as a part of it: more than the 5 % that the kernel reserves for ordinary threads.
const REST_PART: i64 = 12;
/// Rounds of a closed loop between two stamps.
const ROUNDS: u64 = 32;
/// Number of pairs of stamps, with hot caches and with dirty ones; the median counts.
const PAIRS: [usize; 2] = [501, 15];

/// The state of the caches before each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// As the previous round left them.
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

/// The load on the rest of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundLoad {
    /// No load.
    Idle,
    /// A thread on another CPU streams through memory.
    Loaded,
}

impl BackgroundLoad {
    pub(crate) const ALL: [Self; 2] = [Self::Idle, Self::Loaded];

    pub(crate) fn segment(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Loaded => "loaded",
        }
    }
}

/// The workbench: the state for measuring a cell, the same for all executives.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The source of stamps.
    pub timebase: Timebase<Host>,
    /// The CPUs of the executives.
    pub place: Placement,
    /// How long the sampling of one cell lasts.
    pub slice: Nanos,
    /// Rounds of a closed loop between two stamps, with hot caches.
    pub rounds: u64,
    /// What makes the caches dirty: all cells write through one buffer.
    pub sweep: CacheSweep,
    /// The step of the counter, in nanoseconds; infinite if it does not advance.
    pub step_ns: f64,
    /// The difference of two consecutive ordered stamps, in nanoseconds.
    pub pair_ns: f64,
    /// The same difference after a sweep.
    pub dirty_pair_ns: f64,
    /// Whether a sweep empties the caches.
    pub canary: canary::CanaryReport,
}

impl Bench {
    /// Makes a workbench; measures the counter's step and the pair of stamps.
    pub fn new(timebase: Timebase<Host>, place: Placement, slice: Nanos, sweep_bytes: usize) -> Self {
        let clock = Clock { timebase: timebase.clone() };
        let sweep = CacheSweep::new(sweep_bytes);
        let [pair_ns, dirty_pair_ns] = Cache::ALL.map(|cache| {
            let sweep = if cache == Cache::Dirty { sweep.clone() } else { CacheSweep::none() };
            let pairs = (0..PAIRS[cache as usize]).map(|_| {
                sweep.sweep();
                let before = clock.stamp();
                clock.ns_since(before)
            });
            median(&pairs.collect::<Vec<_>>())
        });
        let canary = canary::report(&clock, &sweep);
        let step = CounterStep::measure(&timebase);
        let step_ns = step.map_or(f64::INFINITY, |step| clock.ns(step.ticks));
        Self { timebase, place, slice, rounds: ROUNDS, sweep, step_ns, pair_ns, dirty_pair_ns, canary }
    }

    /// Rests after a slice, so that the kernel does not throttle real-time threads.
    pub fn rest(&self) {
        Host.sleep_until(Host.monotonic() + Nanos::new(self.slice.count() / REST_PART));
    }

    /// Rounds of a closed loop between two stamps: one if the caches are made dirty before each.
    pub(crate) fn rounds(&self, cache: Cache) -> u64 {
        if cache == Cache::Hot { self.rounds } else { 1 }
    }

    pub(crate) fn clock(&self) -> Clock {
        Clock { timebase: self.timebase.clone() }
    }

    /// A sweep for a cell with these caches; it does nothing for hot ones.
    pub(crate) fn sweep(&self, cache: Cache) -> CacheSweep {
        if cache == Cache::Dirty { self.sweep.clone() } else { CacheSweep::none() }
    }

    /// How much a sweep writes, in MiB.
    pub(crate) fn sweep_mib(&self) -> f64 {
        self.sweep.bytes() as f64 / f64::from(1 << 20)
    }

    /// The difference of a pair of stamps with these caches.
    fn pair_ns(&self, cache: Cache) -> f64 {
        if cache == Cache::Hot { self.pair_ns } else { self.dirty_pair_ns }
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

    /// The time from a stamp until now.
    #[inline(always)]
    pub(crate) fn ns_since(&self, earlier: Ticks) -> f64 {
        self.ns(self.stamp().since(earlier))
    }

    #[inline]
    pub(crate) fn ns(&self, ticks: i64) -> f64 {
        ticks as f64 * 1e9 / self.timebase.calibration().rate_hz
    }

    /// The stamp at a time after now.
    pub(crate) fn after(&self, span: Nanos) -> Ticks {
        self.stamp().plus(self.timebase.ticks_for_at_least(span))
    }

    /// `CLOCK_MONOTONIC`.
    #[inline(always)]
    pub(crate) fn monotonic(&self) -> Instant {
        Host.monotonic()
    }

    /// CPU time of the process.
    pub(crate) fn process_cpu(&self) -> Nanos {
        Host.read(MachineClock::ProcessCpu)
    }

    /// Gives a task on another CPU time to fall asleep.
    pub(crate) fn settle(&self, cache: Cache) {
        let end = self.after(SETTLE[usize::from(cache == Cache::Dirty)]);
        while end.since(self.stamp()) > 0 {
            Host.relax();
        }
    }
}

/// Where tasks store stamps and proofs for each other.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Board {
    /// The proof: a count that the more urgent task raises.
    word: AtomicU64,
    marks: [AtomicU64; 4],
}

impl Board {
    /// Stores a stamp. Relaxed: the proof that follows publishes it.
    #[inline(always)]
    pub(crate) fn mark(&self, index: usize, stamp: Ticks) {
        self.marks[index].store(stamp.raw(), Ordering::Relaxed);
    }

    /// Reads a stamp. Relaxed: read after the proof.
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

/// Polls for a proof and lets other tasks run meanwhile. Returns false if the proof does not come in time.
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

/// The parts of every run: an executive, a board, a tray.
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

    /// Starts the measuring task, runs until it is done, and then rests, so that the kernel does not throttle real-time threads.
    pub(crate) fn run(mut self, measuring: P::Task) -> Result<Sampled, Absent> {
        self.port.start(measuring)?;
        let slice = self.bench.slice;
        let outcome = self.port.run(slice * 4 + RUN_SPARE);
        drop(self.port);
        self.bench.rest();
        Ok(self.tray.taken(outcome))
    }
}

/// The samples of one run, in as many series as the scenario has quantities.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    series: Vec<Vec<f64>>,
    taken: HowTaken,
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
    /// The mean of so many events.
    Mean(f64),
    /// The slope of two loops that differ by so many events.
    Slope(f64),
}

impl Samples {
    /// Room for so many quantities, touched once so that no page fault occurs during a measurement.
    pub(crate) fn new(quantities: usize) -> Self {
        let room = || {
            // Zeros would come from the system as pages that nobody has touched.
            let mut room = vec![1.0; SAMPLES_MOST];
            room.clear();
            room
        };
        Self { series: (0..quantities).map(|_| room()).collect(), ..Self::default() }
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

    /// One sample of a batch of so many events, from their total time. One event is not a batch.
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

    /// One sample of two loops that differ by so many events: from four times, in the order fewer, more, more, fewer.
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

/// Where the measuring task puts its samples, for the program to read after the run.
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

/// Whether a chain of tasks measures a quantity: if calls are too short for stamps, which they never are with dirty caches.
pub(crate) fn chained<P: Port>(cache: Cache) -> bool {
    P::BELOW_STAMPS && cache == Cache::Hot && P::unable(Ability::PreemptsCaller).is_none()
}

/// The same absence for several quantities.
pub(crate) fn all_absent<const QUANTITIES: usize>(absent: &Absent) -> Vec<Found> {
    vec![Err(absent.clone()); QUANTITIES]
}

/// The measuring loop of every scenario, in the body of the task that measures: takes rounds until the slice is over or the room
/// is full, puts the samples into the tray and stops the run. A round pushes its sample, or breaks the loop.
macro_rules! sampling {
    ($($label:lifetime:)? $calls:ident, ($clock:ident, $slice:ident, $tray:ident), $samples:ident: $quantities:literal => $round:block) => {{
        let mut $samples = $crate::executive::bench::Samples::new($quantities);
        let cpu = $clock.process_cpu();
        let end = $clock.after($slice);
        $($label:)? while end.since($clock.stamp()) > 0 && !$samples.is_full() $round
        $samples.cpu = $clock.process_cpu() - cpu;
        $tray.put($samples);
        $calls.stop().await;
    }};
}
pub(crate) use sampling;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executive::port::RunOutcome;
    use hairspring_machine::Cpu;

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
