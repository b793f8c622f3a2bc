//! [`Launch`]: starts a program under choices and waits for its end.
//!
//! Settings of a thread are applied to a thread of this process that starts the program and then ends: a program
//! inherits them from the thread that starts it. The program inherits a limit on idle states as an open descriptor, so
//! the limit lasts until the last process that inherited it has ended. [`Changes`] writes and restores files of the
//! machine.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};

use hairspring_machine::{Host, Machine, Refused};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::catalogue::{Interface, SettingScope};
use crate::choice::{Choice, Value};
use crate::idle::{IDLE_DEVICE, IdleLatency};
use crate::journal::{Changes, ChangesError, Restored};

/// A program to start, and its choices.
#[derive(Debug)]
pub struct Launch {
    command: Command,
    choices: Vec<Choice>,
}

/// Why the program was not started. All earlier changes have been restored.
#[derive(Debug)]
pub enum LaunchError {
    /// The system refused a setting: the choice, and why.
    Refused(Choice, Box<Refused>),
    /// A setting of the machine could not be changed: the choice, and why.
    Changes(Choice, Box<ChangesError>),
    /// A setting of the machine was chosen without permission to change the machine.
    MachineNotAllowed(Choice),
    /// The program could not be started.
    Start(PathBuf, io::Error),
    /// The thread that takes on the program's settings was refused.
    Thread(io::Error),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(choice, refused) => write!(f, "set {choice}: {refused}"),
            Self::Changes(choice, error) => write!(f, "set {choice}: {error}"),
            Self::MachineNotAllowed(choice) => {
                write!(f, "set {choice}: it changes the whole machine; add --allow machine to permit that")
            }
            Self::Start(program, error) => write!(f, "start {}: {error}", program.display()),
            Self::Thread(error) => write!(
                f,
                "start a thread that takes on the program's settings: {error}: raise the limit on processes (ulimit -u) or end some"
            ),
        }
    }
}

impl std::error::Error for LaunchError {}

/// A running program with its choices.
#[derive(Debug)]
pub struct Launched {
    /// The program.
    pub child: Child,
    /// Each choice, with the value in force as the system shows it.
    pub granted: Vec<(Choice, String)>,
    /// Changes of a killed process that were restored before the start.
    pub leftovers: Vec<Restored>,
    changes: Option<Changes>,
    _idle: Vec<IdleLatency>,
}

impl Launched {
    /// Restores the machine, once the program has ended. The settings of the program have ended with it.
    pub fn restore(mut self) -> Vec<Restored> {
        self.changes.take().map(Changes::restore).unwrap_or_default()
    }
}

impl Launch {
    /// A program to run under these choices. Of two choices for one setting, the later one counts.
    pub fn new(command: Command, choices: Vec<Choice>) -> Self {
        let mut kept: Vec<Choice> = Vec::new();
        for choice in choices {
            kept.retain(|other| !choice.replaces(other));
            kept.push(choice);
        }
        Self { command, choices: kept }
    }

    /// Applies the choices and starts the program. Settings of the machine are changed only if `machine_allowed`.
    ///
    /// # Errors
    /// The first choice that the system refused. The program was not started, and all changes are restored.
    pub fn start(mut self, machine_allowed: bool) -> Result<Launched, LaunchError> {
        let program = PathBuf::from(self.command.get_program());
        let (mut granted, mut idle, mut changes, mut leftovers) = (Vec::new(), Vec::new(), None, Vec::new());
        for choice in &self.choices {
            let refused = |refused| LaunchError::Refused(choice.clone(), Box::new(refused));
            let of_machine = |error| LaunchError::Changes(choice.clone(), Box::new(error));
            match (&choice.value, choice.tunable().interface) {
                (Value::IdleUs(most_us), _) => {
                    idle.push(hold_idle(*most_us).map_err(refused)?);
                    granted.push((choice.clone(), shown_idle()));
                }
                (Value::File(value), Interface::Files(_)) => {
                    if choice.tunable().scope == SettingScope::Machine && !machine_allowed {
                        return Err(LaunchError::MachineNotAllowed(choice.clone()));
                    }
                    if changes.is_none() {
                        let (begun, left) = Changes::begin(&program.display().to_string()).map_err(of_machine)?;
                        (changes, leftovers) = (Some(begun), left);
                    }
                    let Some(begun) = &mut changes else { unreachable!("begun above") };
                    let files = choice.files().unwrap_or_default();
                    let changed = begun.set(&files, value).map_err(of_machine)?;
                    let mut shown: Vec<String> = changed.into_iter().map(|(_, _, shows)| shows).collect();
                    shown.sort();
                    shown.dedup();
                    granted.push((choice.clone(), shown.join(", ")));
                }
                // The other settings belong to the thread that starts the program.
                _ => granted.push((choice.clone(), choice.value().to_owned())),
            }
        }
        let (command, choices) = (&mut self.command, &self.choices);
        let started = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("launch".to_owned());
            let thread = thread.spawn_scoped(scope, move || start_under(command, choices, program));
            thread.map(std::thread::ScopedJoinHandle::join)
        });
        let started = started.map_err(LaunchError::Thread)?;
        let child = started.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(Launched { child, granted, leftovers, changes, _idle: idle })
    }
}

/// Applies the settings of a thread to this thread, which ends afterwards, and starts the program.
fn start_under(command: &mut Command, choices: &[Choice], program: PathBuf) -> Result<Child, LaunchError> {
    // Set the policy last, so that the work before it does not run at high priority.
    let (policies, others): (Vec<&Choice>, Vec<&Choice>) =
        choices.iter().partition(|choice| matches!(choice.value, Value::Policy(_)));
    for choice in others.into_iter().chain(policies) {
        apply(&choice.value).map_err(|refused| LaunchError::Refused(choice.clone(), Box::new(refused)))?;
    }
    command.spawn().map_err(|error| LaunchError::Start(program, error))
}

fn apply(value: &Value) -> Result<(), Refused> {
    match value {
        Value::Slack(slack) => {
            Host.set_timer_slack(*slack);
            Ok(())
        }
        Value::Policy(policy) => Host.set_policy(*policy),
        Value::Cpus(cpus) => Host.set_affinity(cpus),
        // On Linux the nice value is the thread's, and 0 is the caller.
        Value::Nice(nice) => rustix::process::setpriority_process(None, *nice).map_err(|error| Refused {
            attempted: format!("set the nice value to {nice}"),
            said: io::Error::from(error).to_string(),
            remedy: "run it as root, or raise RLIMIT_NICE".to_owned(),
        }),
        Value::PriorityLimit(most) => limit(Resource::Rtprio, Some(*most), "real-time priority"),
        Value::LockLimit(most) => limit(Resource::Memlock, *most, "locked memory"),
        Value::NoHugePages(off) => rustix::thread::disable_transparent_huge_pages(*off).map_err(|error| Refused {
            attempted: "keep huge pages away".to_owned(),
            said: io::Error::from(error).to_string(),
            remedy: "leave it out: the kernel has no transparent huge pages".to_owned(),
        }),
        Value::IdleUs(_) | Value::File(_) => Ok(()),
    }
}

/// Sets a limit of this process, which the program inherits.
fn limit(resource: Resource, most: Option<u64>, of: &str) -> Result<(), Refused> {
    setrlimit(resource, Rlimit { current: most, maximum: most }).map_err(|error| Refused {
        attempted: format!("set the limit on {of}"),
        said: io::Error::from(error).to_string(),
        remedy: "run it as root, or raise the limit in /etc/security/limits.conf".to_owned(),
    })
}

fn hold_idle(most_us: u32) -> Result<IdleLatency, Refused> {
    let held = IdleLatency::hold(most_us)?;
    held.let_children_inherit().map_err(|error| Refused {
        attempted: format!("let the program inherit {IDLE_DEVICE}"),
        said: error.to_string(),
        remedy: "report it, with the kernel's version".to_owned(),
    })?;
    Ok(held)
}

fn shown_idle() -> String {
    match IdleLatency::in_force() {
        Ok(Some(most_us)) => format!("{most_us} µs at most"),
        Ok(None) => "no limit".to_owned(),
        Err(error) => format!("in force, but not readable ({error})"),
    }
}
