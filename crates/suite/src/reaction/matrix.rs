//! Several processes, one CPU, one board, one event: the experiment of FESA's latency note.
//!
//! The one who fires runs on the same CPU at the highest priority, as an interrupt does: it wakes all, and sleeps until all must be
//! done. So nobody runs before everybody is ready, and nothing but the priorities decides who is first. Process 1 is started
//! first, and so waits first.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hairspring_device::{AccessTimes, Device, EventSource, Protocol, Signal, Sleeper, Stop};
use hairspring_machine::{Clock, Host, Machine, Nanos, Policy};
use hairspring_sheet::{Absent, Method};
use hairspring_time::{RealTime, Timebase};
use tempfile::TempDir;

use super::chain::{Chain, signal};
use super::rows::{ROWS, priority, segment};
use super::{board, folder, modes, refused};
use crate::context::{Context, Effort, policy_refused};
use crate::samples::Samples;

/// How long each of the first two threads of a chain computes, and how long the last one has the board: 590 µs in all, of which
/// 250 µs on the board, as the note found.
const BEFORE: Nanos = Nanos::from_micros(170);
const HOLD: Nanos = Nanos::from_micros(250);
/// The priority of who fires: the highest there is.
const FIRING: u8 = 99;
/// Events of a cell. Peaks of a distribution are looked for only where there is the time for enough of them.
const ROUNDS: u64 = 100;
const ROUNDS_QUICK: u64 = 25;
const ROUNDS_THOROUGH: u64 = 1000;
/// Between two events, beyond what all processes need: others get their turn, and the kernel does not throttle.
const REST: Nanos = Nanos::from_micros(500);
/// A process is in its place by then, has reacted by then, and has ended by then.
const PATIENCE: Duration = Duration::from_secs(2);
/// Looks while waiting for one.
const LOOK: Duration = Duration::from_millis(2);

pub(super) fn measure<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, timebase: &Timebase<Host>) {
    let wanted = ["reaction.matrix", "reaction.inversion", "reaction.chain"].map(|prefix| context.wants(prefix));
    if !wanted.contains(&true) {
        return;
    }
    context.remark(format!(
        "Each process computes {BEFORE} in each of two threads and then has the board for {HOLD}, during which it reads once and \
         writes twice. Label 100 of the note is priority 99 here. The event is fired on the same CPU at priority {FIRING}."
    ));
    let rounds = match context.effort {
        Effort::Quick => ROUNDS_QUICK,
        Effort::Normal => ROUNDS,
        Effort::Thorough => ROUNDS_THOROUGH,
    };
    if rounds < modes::SAMPLES_LEAST as u64 {
        context.remark(format!(
            "Steps in a distribution are looked for from {} events on: `--thorough` takes {ROUNDS_THOROUGH}.",
            modes::SAMPLES_LEAST
        ));
    }
    let experiment = Experiment { program: context.program.clone(), cpu: context.cpu.0, rounds, timebase };
    for protocol in Protocol::ALL {
        for labels in ROWS {
            let ids: Vec<String> = (1..=labels.len())
                .map(|number| format!("reaction.matrix.{}.{protocol}.process{number}", segment(labels)))
                .collect();
            let priorities: Vec<u8> = labels.iter().map(|label| priority(*label)).collect();
            one(context, &ids, &format!("processes at {priorities:?}, lock {protocol}"), || {
                experiment.equal(&priorities, protocol)
            });
        }
        let id = format!("reaction.inversion.{protocol}.high");
        one(context, &[id], &format!("priority inversion, lock {protocol}"), || experiment.inversion(protocol));
    }
    let alone = priority(50);
    one(context, &["reaction.chain.process.total".to_owned()], "a chain in a process", || {
        experiment.equal(&[alone], Protocol::Inherit)
    });
    one(context, &["reaction.chain.thread.total".to_owned()], "a chain in threads", || experiment.in_threads(alone));
}

/// Measures the rows of one cell, if they are wanted.
fn one<M: Machine + Clone + Sync>(
    context: &mut Context<'_, M>,
    ids: &[String],
    saying: &str,
    act: impl FnOnce() -> Result<Vec<Samples>, Absent>,
) {
    if !ids.iter().any(|id| context.wants(id)) {
        return;
    }
    context.say(saying);
    match act() {
        Ok(samples) => {
            for (id, samples) in ids.iter().zip(samples) {
                if let Some(modes) = modes::named(samples.values()) {
                    context.remark(format!("{id}: {modes}"));
                }
                match samples.figure(Method::Stamp, &Absent::final_("no process reacted")) {
                    Ok(figure) => context.put(id, figure),
                    Err(absent) => context.absent(id, absent),
                }
            }
        }
        Err(absent) => ids.iter().for_each(|id| context.absent(id, absent.clone())),
    }
}

/// What all cells have in common.
struct Experiment<'t> {
    program: Option<PathBuf>,
    cpu: u32,
    rounds: u64,
    timebase: &'t Timebase<Host>,
}

/// A cell that is set up.
struct Cell<'t> {
    folder: TempDir,
    timebase: &'t Timebase<Host>,
}

/// One who reacts, as the one who fires sees it.
struct Process<'t> {
    child: Option<Child>,
    done: Sleeper<'t, Host>,
    fired: Signal,
}

impl Experiment<'_> {
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
            before: BEFORE,
            hold: HOLD,
        }
    }

    fn program(&self) -> Result<&Path, Absent> {
        self.program.as_deref().ok_or_else(|| {
            Absent::new(
                "several processes take a program that becomes them",
                "use `hairspring sheet`, or name a program",
            )
        })
    }

    /// Processes that differ in nothing but their priority.
    fn equal(&self, priorities: &[u8], protocol: Protocol) -> Result<Vec<Samples>, Absent> {
        let (program, cell, stop) = (self.program()?, self.cell(protocol)?, Stop::new().map_err(refused)?);
        let mut processes = Processes::default();
        for (index, priority) in priorities.iter().enumerate() {
            processes.start(program, &self.chain(&cell, index + 1, *priority), &cell, &stop)?;
        }
        self.rounds(&cell, &mut processes.all, &[("event", Nanos::ZERO)], 0)
    }

    /// The least urgent has the board; then the most urgent wants it, and one in the middle computes.
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
        // By then the last link of the least urgent is on the board.
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
                Err(Absent::final_("the threads of a chain did not get to their places"))
            };
            stop.set();
            match running.join() {
                Ok(Ok(())) => taken,
                Ok(Err(error)) => Err(Absent::final_(error.to_string())),
                Err(_) => Err(Absent::final_("a thread of a chain panicked")),
            }
        })
    }

    /// Fires the events of each round, each so long after its beginning, and takes the time of every process from the one with
    /// this index.
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
        let place = RealTime { policy: Some(Policy::Fifo(FIRING)), cpu, lock_memory: true, slack: None };
        let guard = place.apply(&Host);
        if let Some(absent) = policy_refused(&guard) {
            return Err(absent);
        }
        // All of them one after the other, and a quarter.
        let needed = (BEFORE + BEFORE + HOLD).times(i64::try_from(processes.len()).unwrap_or(1) * 5);
        let needed = Nanos::new(needed.count() / 4);
        for round in 0..self.rounds {
            let begun = Host.read(Clock::Monotonic);
            let mut counted = self.timebase.now();
            for (index, (signal, after)) in signals.iter().enumerate() {
                Host.sleep_until(begun + *after);
                let stamp = self.timebase.stamp();
                signal.fire_at(stamp, Some(round)).map_err(refused)?;
                if index == counted_from {
                    counted = self.timebase.instant(stamp);
                }
            }
            Host.sleep_until(Host.read(Clock::Monotonic) + needed);
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
            Host.sleep_until(Host.read(Clock::Monotonic) + REST);
        }
        Ok(samples)
    }
}

/// Looks until it is so; `false` if it is not for too long.
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
    /// Starts one, and waits until it is in its place.
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
                let said = if said.is_empty() { "it is not in its place".to_owned() } else { said.trim().to_owned() };
                return Err(Absent::new(
                    format!("a process did not begin: {said}"),
                    "see whether the program runs alone",
                ));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Processes<'_> {
    fn drop(&mut self) {
        for child in self.all.iter_mut().filter_map(|process| process.child.as_mut()) {
            // The end of its input tells it to stop.
            drop(child.stdin.take());
            let begun = std::time::Instant::now();
            while matches!(child.try_wait(), Ok(None)) && begun.elapsed() < PATIENCE {
                std::thread::sleep(LOOK);
            }
            // No more than a wait if it has ended.
            drop(child.kill());
            drop(child.wait());
        }
    }
}
