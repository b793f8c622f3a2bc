//! Measures in rounds, in which every candidate runs every scenario once, and prints the tables.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use hairspring_exec::{Backend, ThreadProfile};
use hairspring_machine::Policy;
use hairspring_sheet::render::quantity;
use hairspring_sheet::{Absent, Unit};
use hairspring_suite::executive::bare::Bare;
use hairspring_suite::executive::ours::{Fiber, Ours, ThreadSmp, ThreadUp};
use hairspring_suite::executive::{Bench, Compared, Round};
use hairspring_suite::interleaving::interleave;

use super::embassy::Embassy;
use super::meter::Outcome;
use super::mq::Mq;
use super::tokio::Tokio;
use super::{Spread, direct, lower_bounds};

/// Repeats of each cell.
pub(crate) const REPEATS: usize = 9;

/// The text of a cell that is not measured.
const FLOOR: &str = "–";

/// One column: an executive, or a lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Candidate {
    FiberDirect,
    ThreadUpDirect,
    Fiber,
    ThreadUp,
    ThreadSmp,
    Tokio,
    Embassy,
    Mq,
    Pthread,
    Rt,
    Coroutine,
    Futex,
}

impl Candidate {
    /// Ours without the port.
    const DIRECT: [Self; 2] = [Self::FiberDirect, Self::ThreadUpDirect];
    const ALL: [Self; 10] = [
        Self::Fiber,
        Self::ThreadUp,
        Self::ThreadSmp,
        Self::Tokio,
        Self::Embassy,
        Self::Mq,
        Self::Pthread,
        Self::Rt,
        Self::Coroutine,
        Self::Futex,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::FiberDirect => "**fiber**, without the port",
            Self::ThreadUpDirect => "**thread_up**, without the port",
            Self::Fiber => "**fiber**",
            Self::ThreadUp => "**thread_up**",
            Self::ThreadSmp => "**thread_smp**",
            Self::Tokio => "tokio 1.54, cooperative",
            Self::Embassy => "embassy 0.10, cooperative",
            Self::Mq => "POSIX mq + sem, FIFO threads",
            Self::Pthread => "pthread_futex, FIFO threads",
            Self::Rt => "rt 0.20",
            Self::Coroutine => "bare corosensei",
            Self::Futex => "bare futex, FIFO threads",
        }
    }

    /// Our back-end that it is compared with: the one that works the same way.
    fn against(self) -> Self {
        match self {
            Self::FiberDirect | Self::Fiber | Self::Tokio | Self::Embassy | Self::Coroutine => Self::Fiber,
            _ => Self::ThreadUp,
        }
    }

    fn run(self, scenario: Compared, bench: &Bench) -> Outcome {
        match (self, scenario) {
            (Self::FiberDirect, _) => {
                let backend = Backend::Fiber { cpu: Some(bench.place.cpu), policy: Policy::Fifo(60) };
                direct::run(scenario, backend, bench).unwrap_or_else(|| Err(Absent::final_(FLOOR)))
            }
            (Self::ThreadUpDirect, _) => {
                let backend = Backend::Thread(ThreadProfile::Up { cpu: Some(bench.place.cpu) });
                direct::run(scenario, backend, bench).unwrap_or_else(|| Err(Absent::final_(FLOOR)))
            }
            (Self::Fiber, _) => scenario.take::<Ours<Fiber>>(bench),
            (Self::ThreadUp, _) => scenario.take::<Ours<ThreadUp>>(bench),
            (Self::ThreadSmp, _) => scenario.take::<Ours<ThreadSmp>>(bench),
            (Self::Tokio, _) => scenario.take::<Tokio>(bench),
            (Self::Embassy, _) => scenario.take::<Embassy>(bench),
            (Self::Mq, _) => scenario.take::<Mq>(bench),
            (Self::Pthread, _) => scenario.take::<Bare>(bench),
            (Self::Rt, _) => Err(Absent::final_(
                "n/a on rt 0.20: it needs Rust 1.97, newer than this project is built with, and libclang to be built",
            )),
            (Self::Coroutine, Compared::WakeWait) => lower_bounds::corosensei(bench),
            (Self::Futex, Compared::WakeWait) => lower_bounds::futex(bench),
            (Self::Coroutine | Self::Futex, _) => Err(Absent::final_(FLOOR)),
        }
    }
}

/// The batches of a cell.
enum Cell {
    Taken(Vec<Round>),
    Absent(String),
}

/// All cells, by row and column.
pub(crate) struct Results(BTreeMap<(usize, Candidate), Cell>);

/// Takes all cells in rounds.
pub(crate) fn take(bench: &Bench) -> Results {
    let candidates: Vec<Candidate> = Candidate::DIRECT.into_iter().chain(Candidate::ALL).collect();
    let mut cells: BTreeMap<(usize, Candidate), Vec<Outcome>> = BTreeMap::new();
    let complete = interleave(REPEATS, Compared::ALL.len() * candidates.len(), |turn| {
        if turn.first {
            eprintln!("executives, round {} of {REPEATS}", turn.round + 1);
        }
        let (row, candidate) = (turn.candidate / candidates.len(), candidates[turn.candidate % candidates.len()]);
        let outcome = candidate.run(Compared::ALL[row], bench);
        if outcome.is_ok() {
            bench.rest();
        }
        cells.entry((row, candidate)).or_default().push(outcome);
        ControlFlow::<()>::Continue(())
    });
    debug_assert!(complete.is_continue());
    let cell = |outcomes: Vec<Outcome>| {
        // If one repeat has no result, the cell has none and names the reason.
        match outcomes.into_iter().collect::<Result<Vec<_>, _>>() {
            Ok(batches) => Cell::Taken(batches),
            Err(absent) => Cell::Absent(absent.reason),
        }
    };
    Results(cells.into_iter().map(|(key, outcomes)| (key, cell(outcomes))).collect())
}

impl Results {
    fn cell(&self, scenario: Compared, candidate: Candidate) -> Option<&Cell> {
        let row = Compared::ALL.iter().position(|each| *each == scenario)?;
        self.0.get(&(row, candidate))
    }

    fn spread(
        &self,
        scenario: Compared,
        candidate: Candidate,
        value: impl Fn(&Round) -> Option<f64>,
    ) -> Option<Spread> {
        match self.cell(scenario, candidate)? {
            Cell::Taken(batches) => Spread::of(batches.iter().map(value).collect::<Option<Vec<_>>>()?),
            Cell::Absent(_) => None,
        }
    }

    /// Nanoseconds of a round, wall time.
    pub(crate) fn wall(&self, scenario: Compared, candidate: Candidate) -> Option<Spread> {
        self.spread(scenario, candidate, |batch| Some(batch.wall_ns))
    }

    /// Operations per second.
    pub(crate) fn rate(&self, scenario: Compared, candidate: Candidate) -> Option<Spread> {
        let counted = scenario.counted()?;
        self.spread(scenario, candidate, |batch| Some(counted * 1e9 / batch.wall_ns))
    }

    /// Prints the tables.
    pub(crate) fn print(&self) {
        let times = || Compared::ALL.into_iter().filter(|scenario| scenario.counted().is_none());
        let counts = || Compared::ALL.into_iter().filter(|scenario| scenario.counted().is_some());
        println!("### Wall time of a round: min / median / max of {REPEATS}\n");
        self.table(&Candidate::ALL, times(), |scenario, candidate| {
            Some(self.wall(scenario, candidate)?.cell(Unit::Ns))
        });
        println!("### Ours without the port: min / median / max of {REPEATS}\n");
        println!(
            "The same loops with the calls in the task's body, as a user writes them; the port's bodies are asynchronous and \
             keep what they count in memory.\n"
        );
        let direct = [Compared::WakeWait, Compared::FourTs, Compared::SendRun];
        self.table(&Candidate::DIRECT, direct.into_iter(), |scenario, candidate| {
            Some(self.wall(scenario, candidate)?.cell(Unit::Ns))
        });
        println!("### CPU time of the process for a round, median\n");
        println!("Less than the wall time where others took the CPU meanwhile; more where several CPUs work.\n");
        self.table(
            &Candidate::ALL,
            times().filter(|scenario| !matches!(scenario, Compared::SendRun | Compared::Delay)),
            |scenario, candidate| {
                Some(quantity(self.spread(scenario, candidate, |batch| batch.cpu_ns)?.median, Unit::Ns).to_string())
            },
        );
        println!("### Thread-Metric, operations per second: min / median / max of {REPEATS}\n");
        println!(
            "Resume and suspend are wake and wait; a message is 12 bytes (Thread-Metric: 16, on 64 bits 32). Message and \
             synchronisation switch no task.\n"
        );
        self.table(&Candidate::ALL, counts(), |scenario, candidate| {
            Some(self.rate(scenario, candidate)?.cell(Unit::PerSecond))
        });
        println!("### Ratios of the medians\n");
        println!(
            "Time of a round over ours: tokio, embassy and corosensei over fiber, the others over thread_up. Above 1 is \
             slower than ours.\n"
        );
        self.table(&Candidate::ALL, Compared::ALL.into_iter(), |scenario, candidate| {
            let ours = self.wall(scenario, candidate.against())?.median;
            Some(format!("{:.2}", self.wall(scenario, candidate)?.median / ours))
        });
        println!("Samples without their proof; ours through the port are left out, the others are in the figures:\n");
        for ((row, candidate), cell) in &self.0 {
            let Cell::Taken(batches) = cell else { continue };
            let sum = |count: fn(&Round) -> u64| batches.iter().map(count).sum::<u64>();
            let (unproven, rounds) = (sum(|batch| batch.unproven), sum(|batch| batch.samples));
            if unproven > 0 {
                let (who, what) = (candidate.name().replace('*', ""), Compared::ALL[*row].name());
                println!("* {who}: {what}: {unproven} of {rounds}");
            }
        }
        println!("\nAbsent:\n");
        let mut reasons: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for ((row, candidate), cell) in &self.0 {
            if let Cell::Absent(reason) = cell
                && reason != FLOOR
            {
                let (who, what) = (candidate.name().replace('*', ""), Compared::ALL[*row].name());
                let place = if reason.starts_with("n/a") { who } else { format!("{who}: {what}") };
                reasons.entry(reason).or_default().insert(place);
            }
        }
        for (reason, places) in reasons {
            println!("* {}: {reason}", places.into_iter().collect::<Vec<_>>().join("; "));
        }
        println!();
    }

    fn table(
        &self,
        columns: &[Candidate],
        rows: impl Iterator<Item = Compared>,
        cell: impl Fn(Compared, Candidate) -> Option<String>,
    ) {
        println!("| scenario | {} |", columns.iter().map(|each| each.name()).collect::<Vec<_>>().join(" | "));
        println!("| --- |{}", " ---: |".repeat(columns.len()));
        for scenario in rows {
            let cells = columns.iter().map(|&candidate| {
                cell(scenario, candidate).unwrap_or_else(|| match self.cell(scenario, candidate) {
                    Some(Cell::Absent(reason)) if reason == FLOOR => FLOOR.to_owned(),
                    Some(Cell::Absent(reason)) if !reason.starts_with("n/a") => "no result".to_owned(),
                    _ => "n/a".to_owned(),
                })
            });
            println!("| {} | {} |", scenario.name(), cells.collect::<Vec<_>>().join(" | "));
        }
        println!();
    }
}
