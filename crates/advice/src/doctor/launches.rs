//! [`Launches`]: turns as processes, each started under its settings.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hairspring_machine::{Host, Machine, Nanos};
use hairspring_settings::{Choice, Interface, Launch, current};

use super::Turns;

/// Starts a program for each turn. It does the job as it is placed, and prints the values of its events: nanoseconds, one a line.
#[derive(Debug)]
pub struct Launches {
    /// The program.
    pub program: PathBuf,
    /// What tells it to be a turn.
    pub words: Vec<String>,
    /// Whether settings of the machine may be changed for a turn. They are restored behind it.
    pub machine_allowed: bool,
}

impl Turns for Launches {
    fn take(&mut self, settings: &[Choice]) -> Result<Vec<f64>, String> {
        let mut command = Command::new(&self.program);
        command.args(&self.words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let launch = Launch::new(command, settings.to_vec());
        let mut launched = launch.start(self.machine_allowed).map_err(|error| error.to_string())?;
        let read = |pipe: Option<&mut dyn Read>| {
            let mut text = String::new();
            // What cannot be read is no value, which shows below.
            pipe.map(|pipe| pipe.read_to_string(&mut text));
            text
        };
        let said = read(launched.child.stdout.as_mut().map(|pipe| pipe as &mut dyn Read));
        let complained = read(launched.child.stderr.as_mut().map(|pipe| pipe as &mut dyn Read));
        let ended = launched.child.wait();
        let left = launched.restore();
        if let Some(left) = left.iter().find(|restored| !restored.is_good()) {
            return Err(left.to_string());
        }
        match ended {
            Ok(status) if status.success() => Ok(said.lines().filter_map(|line| line.parse().ok()).collect()),
            _ => Err(complained.trim().to_owned()),
        }
    }

    fn suspended(&self) -> Nanos {
        Host.suspended()
    }
}

/// What is tried for settings of a thread, a process or a descriptor.
const UNASKED: [&str; 4] = ["idle=off", "policy=fifo:80", "slack=1us", "nice=-20"];
/// What is tried for settings of the machine, where that is allowed. None of these can hang the machine.
const OF_THE_MACHINE: [&str; 9] = [
    "halt-poll=200000",
    "workqueue-cpus=1",
    "interrupt-cpus=0",
    "preemption=full",
    "stat-interval=120",
    "timer-migration=0",
    "nmi-watchdog=0",
    "numa-balancing=0",
    "compaction=0",
];
/// At most so many CPUs are tried.
const CPUS_MOST: usize = 4;

/// The settings that can be tried here: those that this computer has and does not have in force already.
pub fn candidates(machine_allowed: bool) -> Vec<Choice> {
    let cpus = Host.affinity().0;
    let cpus = cpus.iter().take(if cpus.len() > 1 { CPUS_MOST } else { 0 }).map(|cpu| format!("cpu={}", cpu.0));
    let of_the_machine = OF_THE_MACHINE.into_iter().filter(|_| machine_allowed).map(str::to_owned);
    let all = UNASKED.into_iter().map(str::to_owned).chain(cpus).chain(of_the_machine);
    let choices = all.filter_map(|text| text.parse::<Choice>().ok());
    choices.filter(is_a_change).collect()
}

/// A file that is not there, or shows the value already, is nothing to try.
fn is_a_change(choice: &Choice) -> bool {
    match choice.tunable().interface {
        Interface::Files(_) => current(Path::new("/"), choice.tunable()).is_ok_and(|now| now != choice.value()),
        Interface::Call(_) | Interface::Advice(_) => true,
    }
}
