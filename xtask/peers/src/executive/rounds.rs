//! The rounds: in each, every candidate has its turn at every scenario; and the tables of what came of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hairspring_exec::{Backend, Profile};
use hairspring_machine::Policy;
use hairspring_sheet::render::quantity;
use hairspring_sheet::{Absent, Unit};

use super::embassy::Embassy;
use super::mq::Mq;
use super::scenario::{Batch, Outcome, Scenario, Stand};
use super::tokio::Tokio;
use super::{Spread, direct, floor};
use hairspring_suite::executive::bare::Bare;
use hairspring_suite::executive::ours::{Fiber, Ours, ThreadSmp, ThreadUp};

/// Repeats of each cell.
pub(crate) const REPEATS: usize = 9;
/// What a batch is followed by, as a share of its length: real-time threads must leave the kernel its part of the CPU.
const REST: u32 = 8;

/// In a cell that nobody asks for.
const FLOOR: &str = "–";

/// One column: an executive, or what is below any.
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

    /// Which of ours it is held against: the one that works as it does.
    fn against(self) -> Self {
        match self {
            Self::FiberDirect | Self::Fiber | Self::Tokio | Self::Embassy | Self::Coroutine => Self::Fiber,
            _ => Self::ThreadUp,
        }
    }

    fn run(self, scenario: Scenario, stand: &Stand) -> Outcome {
        match (self, scenario) {
            (Self::FiberDirect, _) => {
                let backend = Backend::Fiber { cpu: Some(stand.place.cpu), policy: Policy::Fifo(60) };
                direct::run(scenario, backend, stand).unwrap_or_else(|| Err(Absent::final_(FLOOR)))
            }
            (Self::ThreadUpDirect, _) => {
                let backend = Backend::Thread(Profile::Up { cpu: Some(stand.place.cpu) });
                direct::run(scenario, backend, stand).unwrap_or_else(|| Err(Absent::final_(FLOOR)))
            }
            (Self::Fiber, _) => scenario.run::<Ours<Fiber>>(stand),
            (Self::ThreadUp, _) => scenario.run::<Ours<ThreadUp>>(stand),
            (Self::ThreadSmp, _) => scenario.run::<Ours<ThreadSmp>>(stand),
            (Self::Tokio, _) => scenario.run::<Tokio>(stand),
            (Self::Embassy, _) => scenario.run::<Embassy>(stand),
            (Self::Mq, _) => scenario.run::<Mq>(stand),
            (Self::Pthread, _) => scenario.run::<Bare>(stand),
            (Self::Rt, _) => Err(Absent::final_(
                "n/a on rt 0.20: it needs Rust 1.97, newer than this project is built with, and libclang to be built",
            )),
            (Self::Coroutine, Scenario::WakeWait) => floor::corosensei(stand),
            (Self::Futex, Scenario::WakeWait) => floor::futex(stand),
            (Self::Coroutine | Self::Futex, _) => Err(Absent::final_(FLOOR)),
        }
    }
}

/// What the batches of a cell say.
enum Cell {
    Taken(Vec<Batch>),
    Absent(String),
}

/// All cells, by row and column.
pub(crate) struct Results(BTreeMap<(usize, Candidate), Cell>);

/// Takes all cells in rounds.
pub(crate) fn take(stand: &Stand) -> Results {
    let mut cells: BTreeMap<(usize, Candidate), Vec<Outcome>> = BTreeMap::new();
    let rest = Duration::from(stand.span) / REST;
    for repeat in 1..=REPEATS {
        eprintln!("executives, round {repeat} of {REPEATS}");
        for (row, scenario) in Scenario::ALL.into_iter().enumerate() {
            for candidate in Candidate::DIRECT.into_iter().chain(Candidate::ALL) {
                let outcome = candidate.run(scenario, stand);
                if outcome.is_ok() {
                    std::thread::sleep(rest);
                }
                cells.entry((row, candidate)).or_default().push(outcome);
            }
        }
    }
    let cell = |outcomes: Vec<Outcome>| {
        // One repeat without a result, and there is none: whatever went wrong is worth more than a figure.
        match outcomes.into_iter().collect::<Result<Vec<_>, _>>() {
            Ok(batches) => Cell::Taken(batches),
            Err(absent) => Cell::Absent(absent.reason),
        }
    };
    Results(cells.into_iter().map(|(key, outcomes)| (key, cell(outcomes))).collect())
}

impl Results {
    fn cell(&self, scenario: Scenario, candidate: Candidate) -> Option<&Cell> {
        let row = Scenario::ALL.iter().position(|each| *each == scenario)?;
        self.0.get(&(row, candidate))
    }

    fn spread(
        &self,
        scenario: Scenario,
        candidate: Candidate,
        value: impl Fn(&Batch) -> Option<f64>,
    ) -> Option<Spread> {
        match self.cell(scenario, candidate)? {
            Cell::Taken(batches) => Spread::of(batches.iter().map(value).collect::<Option<Vec<_>>>()?),
            Cell::Absent(_) => None,
        }
    }

    /// Nanoseconds of a round, wall time.
    pub(crate) fn wall(&self, scenario: Scenario, candidate: Candidate) -> Option<Spread> {
        self.spread(scenario, candidate, |batch| Some(batch.wall_ns))
    }

    /// Operations per second.
    pub(crate) fn rate(&self, scenario: Scenario, candidate: Candidate) -> Option<Spread> {
        let counted = scenario.counted()?;
        self.spread(scenario, candidate, |batch| Some(counted * 1e9 / batch.wall_ns))
    }

    /// Prints the tables.
    pub(crate) fn print(&self) {
        let times = || Scenario::ALL.into_iter().filter(|scenario| scenario.counted().is_none());
        let counts = || Scenario::ALL.into_iter().filter(|scenario| scenario.counted().is_some());
        println!("### Wall time of a round: min / median / max of {REPEATS}\n");
        self.table(&Candidate::ALL, times(), |scenario, candidate| {
            Some(self.wall(scenario, candidate)?.cell(Unit::Ns))
        });
        println!("### Ours without the port: min / median / max of {REPEATS}\n");
        println!(
            "The same loops with the calls in the task's body, as a user writes them; the port's bodies are asynchronous and \
             keep what they count in memory.\n"
        );
        let direct = [Scenario::WakeWait, Scenario::FourTs, Scenario::SendRun];
        self.table(&Candidate::DIRECT, direct.into_iter(), |scenario, candidate| {
            Some(self.wall(scenario, candidate)?.cell(Unit::Ns))
        });
        println!("### CPU time of the process for a round, median\n");
        println!("Less than the wall time where others took the CPU meanwhile; more where several CPUs work.\n");
        self.table(
            &Candidate::ALL,
            times().filter(|scenario| *scenario != Scenario::SendRun),
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
        self.table(&Candidate::ALL, Scenario::ALL.into_iter(), |scenario, candidate| {
            let ours = self.wall(scenario, candidate.against())?.median;
            Some(format!("{:.2}", self.wall(scenario, candidate)?.median / ours))
        });
        println!("Rounds without their proof; their time is in the figures:\n");
        for ((row, candidate), cell) in &self.0 {
            let Cell::Taken(batches) = cell else { continue };
            let sum = |count: fn(&Batch) -> u64| batches.iter().map(count).sum::<u64>();
            let (unproven, rounds) = (sum(|batch| batch.unproven), sum(|batch| batch.rounds));
            if unproven > 0 {
                let (who, what) = (candidate.name().replace('*', ""), Scenario::ALL[*row].name());
                println!("* {who}: {what}: {unproven} of {rounds}");
            }
        }
        println!("\nAbsent:\n");
        let mut reasons: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for ((row, candidate), cell) in &self.0 {
            if let Cell::Absent(reason) = cell
                && reason != FLOOR
            {
                let (who, what) = (candidate.name().replace('*', ""), Scenario::ALL[*row].name());
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
        rows: impl Iterator<Item = Scenario>,
        cell: impl Fn(Scenario, Candidate) -> Option<String>,
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
