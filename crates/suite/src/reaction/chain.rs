//! [`Chain`]: the action of FESA's latency note as three threads that release each other in turn, the last of which
//! drives a board.
//!
//! The note's processes react to one event, and share one CPU and one board. A single thread could not reproduce its
//! table: under `SCHED_FIFO` the first of two equal processes would run to its end undelayed. Here three threads of one
//! priority release each other, each after some work. At every release the other process gets its turn, which
//! reproduces the note's order.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use hairspring_device::{AccessTimes, Device, DeviceError, Guarded, Lines, Protocol, VirtualBoard};
use hairspring_machine::{Cpu, Host, Nanos, Policy};
use hairspring_station::{Activation, SchedulingUnit, Signal, Sleeper, Stop};
use hairspring_time::{Anchors, RealTime, Timebase};

use super::work::work;

/// The file of the board.
pub(super) const BOARD: &str = "board";
/// Threads of a chain.
const LINKS: usize = 3;
/// Their stacks, which are locked in memory: the system's usual ones would take longer to make present than the process
/// runs.
const STACK_BYTES: usize = 256 << 10;

/// One process of the experiment, with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The folder of the board and the signals.
    pub folder: PathBuf,
    /// Its number, from 1.
    pub number: u32,
    /// The signal that releases it.
    pub event: String,
    /// The priority of its threads under `SCHED_FIFO`.
    pub priority: u8,
    /// Their CPU.
    pub cpu: u32,
    /// The calibration of the time base of the process that starts it.
    pub anchors: Anchors,
    /// Computing time of each of the first two threads before they hand over.
    pub before: Nanos,
    /// Time for which the last thread holds the board; zero for a process that only computes.
    pub hold: Nanos,
}

/// Why a process did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainError(String);

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ChainError {}

impl From<DeviceError> for ChainError {
    fn from(error: DeviceError) -> Self {
        Self(error.to_string())
    }
}

impl Chain {
    /// The arguments that make a program run as this process.
    pub fn words(&self) -> Vec<OsString> {
        let Self { folder, number, event, priority, cpu, anchors, before, hold } = self;
        let numbers = [number.to_string(), event.clone(), priority.to_string(), cpu.to_string(), anchors.to_string()];
        let spans = [before, hold].map(|span| span.count().to_string());
        std::iter::once(folder.clone().into_os_string())
            .chain(numbers.into_iter().chain(spans).map(OsString::from))
            .collect()
    }

    /// The process that these arguments describe.
    pub fn from_words(words: &[OsString]) -> Option<Self> {
        let [folder, number, event, priority, cpu, anchors, before, hold] = words else { return None };
        let span = |text: &OsString| text.to_str()?.parse().ok().map(Nanos::new);
        Some(Self {
            folder: folder.into(),
            number: number.to_str()?.parse().ok()?,
            event: event.to_str()?.to_owned(),
            priority: priority.to_str()?.parse().ok()?,
            cpu: cpu.to_str()?.parse().ok()?,
            anchors: anchors.to_str()?.parse().ok()?,
            before: span(before)?,
            hold: span(hold)?,
        })
    }

    /// Reacts until `stop` is raised. Starts three threads, which end before it returns. Fires `ready-N` when they
    /// wait, and `done-N` with the stamp of the end of each access, or of its work.
    ///
    /// # Errors
    /// No permission for the priority; the board or a signal is gone.
    pub fn run(&self, stop: &Stop) -> Result<(), ChainError> {
        let timebase = Timebase::resume(Host, self.anchors).map_err(|error| ChainError(error.to_string()))?;
        let open = || {
            // The signal exists already, so these parameters do not matter.
            let board = self.folder.join(BOARD);
            VirtualBoard::open(&board, AccessTimes::FESA, Lines(0), Protocol::Inherit, &timebase)
        };
        let device = Guarded::new(Box::new(open()?), Box::new(open()?));
        let (ready, done) = (self.signal("ready")?, self.signal("done")?);
        let (ready, done) = (&ready, &done);
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            let (placed, in_place) = std::sync::mpsc::channel();
            for link in 0..LINKS {
                let source = Sleeper::new(self.link(link)?, &timebase, stop);
                let next = self.link(link + 1)?;
                let (timebase, device, placed) = (&timebase, &device, placed.clone());
                let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
                let thread = thread.spawn_scoped(scope, move || {
                    let settings = RealTime {
                        policy: Some(Policy::Fifo(self.priority)),
                        cpu: Some(Cpu(self.cpu)),
                        lock_memory: true,
                        slack: None,
                        idle: None,
                    };
                    let guard = settings.apply(&Host);
                    let refused = guard.refused().map(|refused| ChainError(format!("failed to {refused}")));
                    // Fails only if the caller has gone.
                    drop(placed.send(refused));
                    let action = |activation: &mut Activation<'_, '_, Host>| {
                        let cycle = activation.event().cycle;
                        if link + 1 < LINKS {
                            work(&Host, self.before);
                            return next.fire(cycle, timebase).map(drop);
                        }
                        if self.hold > Nanos::ZERO {
                            activation.device(|device| self.drive(device))?;
                        }
                        done.fire(cycle, timebase).map(drop)
                    };
                    let (mut unit, _log) =
                        SchedulingUnit::new(Box::new(source), Box::new(action), Some(device), timebase, 1);
                    unit.run()
                });
                threads.push(thread.map_err(|error| ChainError(format!("failed to start a thread: {error}")))?);
            }
            let refused = (0..LINKS).find_map(|_| in_place.recv().ok().flatten());
            let refused = refused.or_else(|| ready.fire(None, &timebase).err().map(ChainError::from));
            if refused.is_some() {
                stop.set();
            }
            let ended = threads.into_iter().map(|thread| {
                let ended = thread.join().map_err(|_| ChainError("a thread of the chain panicked".to_owned()))?;
                ended.map_err(ChainError::from)
            });
            let ended = ended.collect::<Result<Vec<()>, ChainError>>();
            refused.map_or(ended.map(drop), Err)
        })
    }

    /// The action of the note: reads the lines, sets one and resets it; and holds the board for the given time.
    fn drive(&self, device: &mut dyn Device) -> Result<(), DeviceError> {
        let line = Lines::one(self.number % u32::BITS);
        device.read()?;
        device.write(line, line)?;
        work(&Host, self.hold);
        device.write(line, Lines(0))
    }

    fn signal(&self, name: &str) -> Result<Signal, DeviceError> {
        signal(&self.folder, &format!("{name}-{}", self.number))
    }

    /// The signal that releases a thread of the chain: the event, or the signal of the previous thread.
    fn link(&self, link: usize) -> Result<Signal, DeviceError> {
        if link == 0 { signal(&self.folder, &self.event) } else { self.signal(&format!("link{link}")) }
    }
}

/// A signal of the experiment.
pub(super) fn signal(folder: &Path, name: &str) -> Result<Signal, DeviceError> {
    Signal::open(&folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_read_from_the_words_that_tell_of_it() {
        let chain = Chain {
            folder: "/dev/shm/a folder".into(),
            number: 2,
            event: "event".to_owned(),
            priority: 50,
            cpu: 1,
            anchors: Timebase::calibrate(Host).expect("a time base").anchors(),
            before: Nanos::from_micros(170),
            hold: Nanos::from_micros(250),
        };
        let words = chain.words();
        assert_eq!(Chain::from_words(&words), Some(chain));
        assert_eq!(Chain::from_words(&words[1..]), None);
        let mut wrong = words;
        wrong[3] = "urgent".into();
        assert_eq!(Chain::from_words(&wrong), None);
    }
}
