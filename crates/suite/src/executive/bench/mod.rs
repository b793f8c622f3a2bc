//! [`Bench`]: the workbench of all scenarios, with the sweep through the caches; [`Rig`], the parts of a run; and the
//! loop that measures.

mod board;
pub(crate) mod canary;
pub(crate) mod firing;
pub(crate) mod load;
mod samples;

use std::sync::Arc;

use hairspring_machine::{Host, Machine, Nanos};
use hairspring_sheet::Absent;
use hairspring_time::{CounterStep, Timebase};

use super::port::{Ability, Placement, Port};
use crate::caches::CacheSweep;
use crate::interleaving::median;

pub(crate) use board::{Board, Clock, proof_comes};
pub(crate) use samples::{Found, Sampled, Samples, Tray};

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
    /// Sampling time of one cell.
    pub slice: Nanos,
    /// Rounds of a closed loop between two stamps, with hot caches.
    pub rounds: u64,
    /// Buffer that makes the caches dirty; all cells share it.
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

    /// Size of a sweep in MiB.
    pub(crate) fn sweep_mib(&self) -> f64 {
        self.sweep.bytes() as f64 / f64::from(1 << 20)
    }

    /// The difference of a pair of stamps with these caches.
    fn pair_ns(&self, cache: Cache) -> f64 {
        if cache == Cache::Hot { self.pair_ns } else { self.dirty_pair_ns }
    }
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

    /// Starts the measuring task, runs until it is done, and then rests, so that the kernel does not throttle real-time
    /// threads.
    pub(crate) fn run(mut self, measuring: P::Task) -> Result<Sampled, Absent> {
        self.port.start(measuring)?;
        let slice = self.bench.slice;
        let outcome = self.port.run(slice * 4 + RUN_SPARE);
        drop(self.port);
        self.bench.rest();
        Ok(self.tray.taken(outcome))
    }
}

/// Whether a chain of tasks measures a quantity: if calls are too short for stamps, which they never are with dirty
/// caches.
pub(crate) fn chained<P: Port>(cache: Cache) -> bool {
    P::BELOW_STAMPS && cache == Cache::Hot && P::unable(Ability::PreemptsCaller).is_none()
}

/// The same absence for several quantities.
pub(crate) fn all_absent<const QUANTITIES: usize>(absent: &Absent) -> Vec<Found> {
    vec![Err(absent.clone()); QUANTITIES]
}

/// The measuring loop of every scenario, in the body of the task that measures: takes rounds until the slice is over or
/// the room is full, puts the samples into the tray and stops the run. A round pushes its sample, or breaks the loop.
/// The first round does not count.
macro_rules! sampling {
    ($($label:lifetime:)? $calls:ident, ($clock:ident, $slice:ident, $tray:ident), $samples:ident: $quantities:literal => $round:block) => {{
        let mut $samples = $crate::executive::bench::Samples::new($quantities);
        let end = $clock.after($slice);
        $($label:)? while $samples.go_on(end.since($clock.stamp()) > 0, || $clock.process_cpu()) $round
        $samples.cpu += $clock.process_cpu();
        $tray.put($samples);
        $calls.stop().await;
    }};
}
pub(crate) use sampling;
