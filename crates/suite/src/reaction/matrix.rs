//! Several processes, one CPU, one board, one event: the experiment of FESA's latency note.
//!
//! The thread that fires the event runs on the same CPU at the highest priority, as an interrupt does. It wakes all
//! processes and then sleeps long enough for all of them. So no process runs before all are ready, and only the
//! priorities decide which is first. Process 1 is started first, so it waits first.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hairspring_device::{AccessTimes, Device, Protocol};
use hairspring_machine::{Host, Machine, Nanos, Policy};
use hairspring_sheet::{Absent, Method, Unit};
use hairspring_station::{EventSource, Signal, Sleeper, Stop};
use hairspring_time::{RealTime, Timebase};
use tempfile::TempDir;

use super::chain::{Chain, signal};
use super::{board, folder, refused};
use crate::probe::{Context, Effort, PEAK_SAMPLES_LEAST, Probes, Reading, Row, Samples, Setting, Slot, policy_refused};

/// Computing time of each of the first two threads of a chain, and the time for which the last one holds the board: 590
/// µs in all, of which 250 µs on the board, as in the note.
const BEFORE: Nanos = Nanos::from_micros(170);
const HOLD: Nanos = Nanos::from_micros(250);
/// The priority of the thread that fires: the highest.
const FIRING: u8 = 99;
/// Events of a cell. Peaks of a distribution are looked for only if there are enough events.
const ROUNDS: u64 = 48;
const ROUNDS_QUICK: u64 = 15;
const ROUNDS_THOROUGH: u64 = 1000;
/// The number of rounds of the sheet that measure a cell: the least that shows how much a figure varies. These vary by
/// less than 1 %.
const SHEET_ROUNDS: usize = 3;
/// Time between two events, beyond the time of all processes: other threads get their turn, and the kernel does not
/// throttle.
const REST: Nanos = Nanos::from_micros(500);
/// Time limit of a process to start, and to react.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two checks.
const LOOK: Duration = Duration::from_micros(300);

/// The rows of that note's Table 1, and two with three processes; each label is a priority.
const ROWS: [&[u8]; 9] =
    [&[17, 17], &[50, 17], &[17, 50], &[100, 50], &[50, 50], &[100, 100], &[17, 100], &[50, 17, 25], &[17, 17, 17]];

/// The Linux priority for a label of the note.
fn priority(label: u8) -> u8 {
    label.min(99)
}

fn joined(labels: &[u8], by: &str) -> String {
    labels.iter().map(u8::to_string).collect::<Vec<_>>().join(by)
}

const LIMITS: &str = "48 events for each cell, 15 at the least effort, 1,000 at the greatest";

/// The probes: a cell for each row and lock, the inversions, and a chain alone.
pub(super) fn add<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>) {
    let matrix = Protocol::ALL.map(|protocol| (protocol, ROWS.map(|_| Vec::new())));
    let mut matrix: Vec<(Protocol, [Vec<Slot>; ROWS.len()])> = matrix.into();
    for (protocol, cells) in &mut matrix {
        *cells = processes(probes, *protocol);
    }
    let table =
        probes.table("reaction.inversion", "Priority inversion: an urgent process meets a board that is taken", LIMITS);
    let inversion = Protocol::ALL.map(|protocol| {
        let measures = "from the event until the most urgent process has driven the board, which a process of the lowest \
                        priority has for 1 ms, while one in the middle computes for 3 ms";
        let (suffix, label) = (format!("{protocol}.high"), format!("lock {protocol}"));
        probes.row(table, Row::new(suffix, label, Unit::Ns, Method::Stamp, measures))
    });
    for ((protocol, cells), inversion) in matrix.into_iter().zip(inversion) {
        for (labels, slots) in ROWS.into_iter().zip(cells) {
            let priorities: Vec<u8> = labels.iter().map(|label| priority(*label)).collect();
            let saying = format!("processes at {priorities:?}, lock {protocol}");
            cell(probes, slots, saying, move |experiment| experiment.equal(&priorities, protocol));
        }
        let saying = format!("priority inversion, lock {protocol}");
        cell(probes, vec![inversion], saying, move |experiment| experiment.inversion(protocol));
    }
    let table = probes.table("reaction.chain", "One chain alone: threads against a process", LIMITS);
    let alone = priority(50);
    let mut chain = |kind: &str, label: &str, measures: &str| {
        vec![probes.row(table, Row::new(format!("{kind}.total"), label, Unit::Ns, Method::Stamp, measures))]
    };
    let measures = "from the event until a chain alone, in a process of its own, has driven the board";
    let in_process = chain("process", "a process of its own", measures);
    let measures = "the same with its three threads in the process that fires the event";
    let in_threads = chain("thread", "threads of this process", measures);
    cell(probes, in_process, "a chain in a process".to_owned(), move |experiment| {
        experiment.equal(&[alone], Protocol::Inherit)
    });
    cell(probes, in_threads, "a chain in threads".to_owned(), move |experiment| experiment.in_threads(alone));
}

/// The table of one lock, with a row for each process of each cell.
fn processes<M: Machine + Clone + Sync + 'static>(
    probes: &mut Probes<M>,
    protocol: Protocol,
) -> [Vec<Slot>; ROWS.len()] {
    let table = probes.table(
        "reaction.matrix",
        format!("Processes of different priority on one CPU and one board, lock {protocol}"),
        LIMITS,
    );
    ROWS.map(|labels| {
        let mut row = |number: usize| {
            let suffix = format!("{}.{protocol}.process{number}", joined(labels, "_"));
            let label = format!("{}: process {number}", joined(labels, "/"));
            let priorities: Vec<u8> = labels.iter().map(|label| priority(*label)).collect();
            let measures = format!(
                "from the event until process {number} of {} has driven the board; priorities {}",
                labels.len(),
                joined(&priorities, ", ")
            );
            probes.row(table, Row::new(suffix, label, Unit::Ns, Method::Stamp, measures))
        };
        (1..=labels.len()).map(&mut row).collect()
    })
}

/// A probe of one cell.
fn cell<M: Machine + Clone + Sync + 'static>(
    probes: &mut Probes<M>,
    slots: Vec<Slot>,
    saying: String,
    act: impl FnOnce(&Experiment<'_>) -> Result<Vec<Samples>, Absent> + 'static,
) {
    probes.several_on_host(Setting::AsStarted, slots.clone(), move |context, timebase| {
        // Starting the processes takes longer than measuring, so only some rounds of the sheet start them.
        let in_these = SHEET_ROUNDS.min(context.rounds as usize);
        if context.turns(in_these) == 0 {
            return context.elsewhere(slots);
        }
        let experiment = Experiment::begin(context, timebase, in_these as u64);
        context.say(&saying);
        match act(&experiment) {
            Ok(samples) => {
                for (slot, samples) in slots.into_iter().zip(samples) {
                    let taken = samples.taken(&Absent::final_("no process reacted"));
                    context.enter(slot, taken.map(Reading::with_peaks));
                }
            }
            Err(absent) => slots.into_iter().for_each(|slot| context.absent(slot, absent.clone())),
        }
    });
}

/// Parameters of all cells.
struct Experiment<'t> {
    program: Option<PathBuf>,
    cpu: u32,
    rounds: u64,
    timebase: &'t Timebase<Host>,
}

/// A running cell.
struct Cell<'t> {
    folder: TempDir,
    timebase: &'t Timebase<Host>,
}

/// A reacting process, for the thread that fires.
struct Process<'t> {
    child: Option<Child>,
    done: Sleeper<'t, Host>,
    fired: Signal,
}

impl<'t> Experiment<'t> {
    /// The experiment with this effort; adds the note about its set-up once.
    fn begin<M: Machine + Clone + Sync>(
        context: &mut Context<'_, M>,
        timebase: &'t Timebase<Host>,
        sheet_rounds: u64,
    ) -> Self {
        context.remark_once(format!(
            "Each process computes {BEFORE} in each of two threads and then has the board for {HOLD}, during which it reads once and \
             writes twice. Label 100 of the note is priority 99 here. The event is fired on the same CPU at priority {FIRING}."
        ));
        if events(context.effort, 1) < PEAK_SAMPLES_LEAST as u64 {
            context.remark_once(format!(
                "Steps in a distribution are looked for from {PEAK_SAMPLES_LEAST} events on: `--thorough` takes {ROUNDS_THOROUGH}."
            ));
        }
        let rounds = events(context.effort, sheet_rounds);
        Self { program: context.program.clone(), cpu: context.cpu.0, rounds, timebase }
    }

    fn cell(&self, protocol: Protocol) -> Result<Cell<'_>, Absent> {
        let cell = Cell { folder: folder()?, timebase: self.timebase };
        board(&cell.folder, AccessTimes::FESA, protocol, self.timebase)?.init().map_err(refused)?;
        Ok(cell)
    }

    fn chain(&self, cell: &Cell<'_>, number: usize, priority: u8) -> Chain {
        Chain {
            folder: cell.folder.path().to_owned(),
            number: u32::try_from(number).unwrap_or(u32::MAX),
            event: "event".to_owned(),
            priority,
            cpu: self.cpu,
            anchors: self.timebase.anchors(),
            before: BEFORE,
            hold: HOLD,
        }
    }

    fn program(&self) -> Result<&Path, Absent> {
        self.program.as_deref().ok_or_else(|| {
            Absent::new(
                "several processes need a program that runs as them",
                "use `hairspring sheet`, or give a program",
            )
        })
    }

    /// Processes that differ only in their priority.
    fn equal(&self, priorities: &[u8], protocol: Protocol) -> Result<Vec<Samples>, Absent> {
        let (program, cell, stop) = (self.program()?, self.cell(protocol)?, Stop::new().map_err(refused)?);
        let mut processes = Processes::default();
        for (index, priority) in priorities.iter().enumerate() {
            processes.start(program, &self.chain(&cell, index + 1, *priority), &cell, &stop)?;
        }
        self.rounds(&cell, &mut processes.all, &[("event", Nanos::ZERO)], 0)
    }

    /// The least urgent process holds the board; then the most urgent wants it, and one in the middle computes.
    fn inversion(&self, protocol: Protocol) -> Result<Vec<Samples>, Absent> {
        let (program, cell, stop) = (self.program()?, self.cell(protocol)?, Stop::new().map_err(refused)?);
        let (soon, long, middle) = (Nanos::from_micros(10), Nanos::from_millis(1), Nanos::from_micros(1500));
        let named = |event: &str| event.to_owned();
        let urgent = Chain { before: soon, hold: soon, event: named("later"), ..self.chain(&cell, 1, 90) };
        let computing = Chain { before: middle, hold: Nanos::ZERO, event: named("later"), ..self.chain(&cell, 2, 50) };
        let least = Chain { before: soon, hold: long, ..self.chain(&cell, 3, 17) };
        let mut processes = Processes::default();
        for chain in [&urgent, &computing, &least] {
            processes.start(program, chain, &cell, &stop)?;
        }
        // By then the last thread of the least urgent process holds the board.
        let later = [("event", Nanos::ZERO), ("later", Nanos::from_micros(300))];
        self.rounds(&cell, &mut processes.all, &later, 1)
    }

    /// A chain in threads of this process.
    fn in_threads(&self, priority: u8) -> Result<Vec<Samples>, Absent> {
        let (cell, stop) = (self.cell(Protocol::Inherit)?, Stop::new().map_err(refused)?);
        let chain = self.chain(&cell, 1, priority);
        std::thread::scope(|scope| {
            let mut all = vec![Process::follow(None, &chain, &cell, &stop)?];
            let running = scope.spawn(|| chain.run(&stop));
            let ready = signal(cell.folder.path(), "ready-1").map_err(refused)?;
            let is_ready = wait_for(|| ready.fired() > 0 || running.is_finished());
            let taken = if is_ready && !running.is_finished() {
                self.rounds(&cell, &mut all, &[("event", Nanos::ZERO)], 0)
            } else {
                Err(Absent::final_("the threads of a chain did not start"))
            };
            stop.set();
            // Wakes its threads, one after the other, so that they see the flag.
            drop(signal(cell.folder.path(), "event").map(|event| event.fire(None, self.timebase)));
            match running.join() {
                Ok(Ok(())) => taken,
                Ok(Err(error)) => Err(Absent::final_(error.to_string())),
                Err(_) => Err(Absent::final_("a thread of a chain panicked")),
            }
        })
    }

    /// Fires the events of each round at their offsets from its beginning. The times of all processes count from the
    /// event with this index.
    fn rounds(
        &self,
        cell: &Cell<'_>,
        processes: &mut [Process<'_>],
        events: &[(&str, Nanos)],
        counted_from: usize,
    ) -> Result<Vec<Samples>, Absent> {
        let signals: Vec<(Signal, Nanos)> = events
            .iter()
            .map(|(name, after)| signal(cell.folder.path(), name).map(|signal| (signal, *after)))
            .collect::<Result<_, _>>()
            .map_err(refused)?;
        let mut samples: Vec<Samples> = processes.iter().map(|_| Samples::new()).collect();
        let cpu = Some(hairspring_machine::Cpu(self.cpu));
        let place = RealTime { policy: Some(Policy::Fifo(FIRING)), cpu, lock_memory: true, slack: None, idle: None };
        let guard = place.apply(&Host);
        if let Some(absent) = policy_refused(&guard) {
            return Err(absent);
        }
        let needed = needed(processes.len());
        for round in 0..self.rounds {
            let begun = Host.monotonic();
            let mut counted = self.timebase.now();
            for (index, (signal, after)) in signals.iter().enumerate() {
                Host.sleep_until(begun + *after);
                let stamp = self.timebase.stamp();
                signal.fire_at(stamp, Some(round)).map_err(refused)?;
                if index == counted_from {
                    counted = self.timebase.instant(stamp);
                }
            }
            Host.sleep_until(Host.monotonic() + needed);
            for (process, samples) in processes.iter_mut().zip(&mut samples) {
                if !wait_for(|| process.fired.fired() > round) {
                    return Err(Absent::final_(format!("event {round} was not reacted to within {PATIENCE:?}")));
                }
                match process.done.wait().map_err(refused)? {
                    Some(event) if event.cycle == Some(round) && event.missed == 0 => {
                        let took = event.at.since(counted);
                        samples.push_nanos(took.map_err(|error| Absent::final_(error.to_string()))?);
                    }
                    other => {
                        return Err(Absent::final_(format!("event {round} is unaccounted for: {other:?}")));
                    }
                }
            }
            Host.sleep_until(Host.monotonic() + REST);
        }
        Ok(samples)
    }
}

/// Time that `processes` processes need for an event: all of them one after the other, and a quarter.
fn needed(processes: usize) -> Nanos {
    let all = (BEFORE + BEFORE + HOLD) * (i64::try_from(processes).unwrap_or(1) * 5);
    Nanos::new(all.count() / 4)
}

/// The number of events of a cell in each of `sheet_rounds` rounds of the sheet.
fn events(effort: Effort, sheet_rounds: u64) -> u64 {
    let events = match effort {
        Effort::Quick => ROUNDS_QUICK,
        Effort::Normal => ROUNDS,
        Effort::Thorough => ROUNDS_THOROUGH,
    };
    events.div_ceil(sheet_rounds.max(1))
}

/// Checks until a condition holds; `false` after a time limit.
fn wait_for(is_so: impl Fn() -> bool) -> bool {
    let begun = std::time::Instant::now();
    while !is_so() {
        if begun.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}

impl<'t> Process<'t> {
    fn follow(child: Option<Child>, chain: &Chain, cell: &Cell<'t>, stop: &'t Stop) -> Result<Self, Absent> {
        let open = || signal(&chain.folder, &format!("done-{}", chain.number)).map_err(refused);
        Ok(Self { child, done: Sleeper::new(open()?, cell.timebase, stop), fired: open()? })
    }
}

/// The processes of a cell; they end when it is dropped.
#[derive(Default)]
struct Processes<'t> {
    all: Vec<Process<'t>>,
}

impl<'t> Processes<'t> {
    /// Starts one, and waits until it is ready.
    fn start(&mut self, program: &Path, chain: &Chain, cell: &Cell<'t>, stop: &'t Stop) -> Result<(), Absent> {
        let mut command = Command::new(program);
        command.arg("chain").args(chain.words());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn();
        let child = child.map_err(|error| Absent::final_(format!("failed to start {}: {error}", program.display())))?;
        self.all.push(Process::follow(Some(child), chain, cell, stop)?);
        let ready = signal(&chain.folder, &format!("ready-{}", chain.number)).map_err(refused)?;
        let begun = std::time::Instant::now();
        while ready.fired() == 0 {
            let Some(child) = self.all.last_mut().and_then(|process| process.child.as_mut()) else { break };
            let ended = child.try_wait().ok().flatten();
            if ended.is_some() || begun.elapsed() > PATIENCE {
                let mut said = String::new();
                if let (Some(_), Some(errors)) = (ended, &mut child.stderr) {
                    drop(errors.read_to_string(&mut said));
                }
                let said = if said.is_empty() { "it is not ready".to_owned() } else { said.trim().to_owned() };
                return Err(Absent::new(
                    format!("a process did not begin: {said}"),
                    "check that the program runs when it is started alone",
                ));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Processes<'_> {
    fn drop(&mut self) {
        // The processes own only files in the folder, which is removed. A request to stop would take up to 100 ms for
        // each, which is longer than they measure.
        let mut children: Vec<_> = self.all.iter_mut().filter_map(|process| process.child.as_mut()).collect();
        children.iter_mut().for_each(|child| drop(child.kill()));
        children.iter_mut().for_each(|child| drop(child.wait()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_events_of_all_cells_fit_the_time_of_the_chapter() {
        for effort in [Effort::Quick, Effort::Normal] {
            let each = SHEET_ROUNDS as i64 * i64::try_from(events(effort, SHEET_ROUNDS as u64)).expect("few");
            let of = |processes: usize| (needed(processes) + REST) * each;
            let equal: Nanos = ROWS.iter().map(|labels| of(labels.len())).sum();
            let all = (equal + of(3)) * i64::try_from(Protocol::ALL.len()).expect("few") + of(1) * 2;
            assert!(all <= effort.chapter_budget(), "{}: {all}", effort.name());
        }
    }
}
