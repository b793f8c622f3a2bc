//! [`Launches`]: turns as processes, each started under its settings.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hairspring_machine::{Host, Machine, Nanos};
use hairspring_settings::{Choice, Interface, Launch, current};

use super::Turns;

/// Starts a program for each turn. The program does the job under its settings and prints the values of its events:
/// nanoseconds, one a line.
#[derive(Debug)]
pub struct Launches {
    /// The program.
    pub program: PathBuf,
    /// The arguments that make it run as a turn.
    pub words: Vec<String>,
    /// Whether a turn may change settings of the machine. They are restored after it.
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
            // A line that cannot be read is left out; a turn without values fails below.
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

/// Candidates among the settings of a thread, a process or a descriptor.
const UNASKED: [&str; 4] = ["idle=off", "policy=fifo:80", "slack=1us", "nice=-20"];
/// Candidates among the settings of the machine, if allowed. None of these can hang the machine.
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
/// The most CPUs that are tried.
const CPUS_MOST: usize = 4;

/// The candidates on this computer: settings that exist here and are not in force already.
pub fn candidates(machine_allowed: bool) -> Vec<Choice> {
    let cpus = Host.affinity().0;
    let cpus = cpus.iter().take(if cpus.len() > 1 { CPUS_MOST } else { 0 }).map(|cpu| format!("cpu={}", cpu.0));
    let of_the_machine = OF_THE_MACHINE.into_iter().filter(|_| machine_allowed).map(str::to_owned);
    let all = UNASKED.into_iter().map(str::to_owned).chain(cpus).chain(of_the_machine);
    let choices = all.filter_map(|text| text.parse::<Choice>().ok());
    choices.filter(is_a_change).collect()
}

/// A setting whose file is missing, or shows the value already, is no candidate.
fn is_a_change(choice: &Choice) -> bool {
    match choice.tunable().interface {
        Interface::Files(_) => current(Path::new("/"), choice.tunable()).is_ok_and(|now| now != choice.value()),
        Interface::Call(_) | Interface::Advice(_) => true,
    }
}
