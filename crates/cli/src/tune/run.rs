//! `hairspring run`: runs a program under settings. Signals and the exit code pass through; the settings end with the
//! program.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};

use clap::{Args, ValueEnum};
use hairspring_advice::job::JobNeed;
use hairspring_settings::{Choice, IDLE_DEVICE, JOURNAL, Launch, LaunchError, Launched, SettingScope};
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use super::{best, restore};
use crate::arguments::parsed;
use crate::conclude::jobs;
use crate::exit::{Exit, Failure};
use crate::page::{Example, Page};
use crate::{host, output};

pub(crate) const PAGE: Page = Page {
    name: "run",
    examples: &[
        Example {
            does: "Run a control loop at real-time priority, with idle states off",
            line: "hairspring run --set idle=off,policy=fifo:80,cpu=1 -- ./control-loop --rate 1000",
        },
        Example {
            does: "Run a program under the settings for a servo loop",
            line: "hairspring run --as cnc-servo -- ./control-loop",
        },
        Example {
            does: "Run a program under the settings that the last doctor confirmed",
            line: "hairspring run --best -- ./control-loop",
        },
        Example {
            does: "Let ordinary sleeps end on time; needs no permission",
            line: "hairspring run --set slack=1us -- ./control-loop",
        },
        Example {
            does: "Change a setting of the whole machine until the program ends",
            line: "hairspring run --set stat-interval=120 --allow machine -- ./control-loop",
        },
    ],
    files: &[
        (JOURNAL, "old values of settings of the machine, while they are changed"),
        (IDLE_DEVICE, "the limit on idle states, held open for the setting idle"),
        best::FILE,
    ],
    environment: &[best::ENVIRONMENT],
};

/// Run a program under settings that improve its timing
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Settings and their values, for instance idle=off,policy=fifo:80,cpu=1. `hairspring settings` lists them. May be
    /// repeated
    #[arg(long, value_name = "ID=VALUE", value_delimiter = ',', required_unless_present_any = ["job", "best"])]
    #[arg(value_parser = parsed::<Choice>)]
    set: Vec<Choice>,
    /// Settings for a job: one of `hairspring can --list`, a requirement as for `can`, or a TOML file of jobs
    #[arg(long = "as", value_name = "JOB", conflicts_with = "best")]
    job: Option<String>,
    /// Settings that the last `hairspring doctor` confirmed on this machine. Values of --set take precedence over these
    /// and those of --as
    #[arg(long)]
    best: bool,
    /// Permit changes beyond the program
    #[arg(long, value_name = "WHAT")]
    allow: Option<Allowed>,
    /// Do not report the settings on standard error
    #[arg(long)]
    quiet: bool,
    /// Program and its arguments
    #[arg(value_name = "CMD", required = true, last = true)]
    program: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Allowed {
    /// Settings of the whole machine, until the program has ended
    Machine,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut command = Command::new(&arguments.program[0]);
    command.args(&arguments.program[1..]);
    // Caught from here on, so that a signal during the start reaches the program afterwards.
    let signals = Signals::new(forwarded())
        .map_err(|error| failure(Exit::NotSet, format!("failed to watch for signals: {error}")))?;
    let (mut choices, source) = match (&arguments.job, arguments.best) {
        (Some(job), _) => (for_job(job)?, None),
        (None, true) => best::Best::last().map(|(choices, told)| (choices, Some(told)))?,
        (None, false) => (Vec::new(), None),
    };
    choices.extend(arguments.set.iter().cloned());
    let launch = Launch::new(command, choices);
    let mut launched = launch.start(arguments.allow == Some(Allowed::Machine)).map_err(|error| not_started(&error))?;
    restore::tell(&launched.leftovers);
    if launched.granted.iter().any(|(choice, _)| choice.tunable().scope == SettingScope::Machine) {
        start_guardian();
    }
    if !arguments.quiet {
        source.iter().for_each(|told| output::complain(told));
        output::complain(&told(&launched));
    }
    forward(signals, launched.child.id());
    let ended = launched.child.wait();
    let left: Vec<_> = launched.restore().into_iter().filter(|restored| !restored.is_good()).collect();
    for restored in &left {
        output::complain(&restored.to_string());
    }
    let status = ended.map_err(|error| failure(Exit::NotSet, format!("failed to wait for the program: {error}")))?;
    Ok(Exit::Program(code(status)))
}

/// The settings for the requirements of a job, each once.
fn for_job(job: &str) -> Result<Vec<Choice>, Failure> {
    let needs = jobs::of(job)?;
    let choices: Vec<Choice> = needs
        .iter()
        .flat_map(|asked| match &asked.need {
            JobNeed::OnTime(requirement) => requirement.settings(),
            JobNeed::Record(_) => Vec::new(),
        })
        .collect();
    if choices.is_empty() {
        return Err(Failure::bad_request(format!("{job}: a recording needs no settings; leave out --as")));
    }
    Ok(choices)
}

/// The codes of env(1), nice(1) and timeout(1) for failures before the program runs.
fn failure(exit: Exit, text: String) -> Failure {
    Failure { exit, text }
}

fn not_started(error: &LaunchError) -> Failure {
    let exit = match error {
        LaunchError::Start(_, error) if error.kind() == ErrorKind::NotFound => Exit::NotFound,
        LaunchError::Start(..) => Exit::CannotRun,
        _ => Exit::NotSet,
    };
    failure(exit, format!("failed to {error}; the program was not started"))
}

/// The settings in force, as the system shows them.
fn told(launched: &Launched) -> String {
    if launched.granted.is_empty() {
        return "set nothing".to_owned();
    }
    let one = |(choice, shown): &(Choice, String)| match shown == choice.value() {
        true => choice.to_string(),
        false => format!("{choice} ({shown})"),
    };
    format!("set {}", launched.granted.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// A shell's exit code for the end of a program.
pub(crate) fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// The signals that are passed on. A signal that is ignored here stays ignored, and the program inherits that.
pub(crate) fn forwarded() -> impl Iterator<Item = i32> {
    let asking = host::asking_to_end();
    asking.chain([SIGUSR1, SIGUSR2])
}

/// Passes signals on to the program, as long as this process lives.
pub(crate) fn forward(mut signals: Signals, program: u32) {
    let Some(program) = i32::try_from(program).ok().and_then(Pid::from_raw) else { return };
    // Not joined: the thread ends with the process, which exits after the program has ended.
    std::thread::spawn(move || {
        for signal in signals.forever() {
            // The terminal also sends these to the program, which is in the same process group.
            let from_terminal = matches!(signal, SIGINT | SIGQUIT | SIGHUP) && is_in_foreground();
            if let Some(signal) = Signal::from_named_raw(signal).filter(|_| !from_terminal) {
                // Fails only if the program has already ended.
                let _ = rustix::process::kill_process(program, signal);
            }
        }
    });
}

/// Whether this process is in the foreground process group of its terminal.
fn is_in_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    let job = terminal.ok().and_then(|terminal| rustix::termios::tcgetpgrp(terminal).ok());
    job == Some(rustix::process::getpgrp())
}

/// Starts a process that restores the machine if this one is killed. Without that process the next command restores it.
fn start_guardian() {
    let own = std::env::current_exe().map(|program| {
        let mut guardian = Command::new(program);
        guardian.args(["restore", "--wait"]).process_group(0);
        guardian.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        guardian.spawn()
    });
    if let Err(error) = own.and_then(|started| started.map(drop)) {
        output::complain(&format!(
            "no guardian process could be started ({error}): if this process is killed, run `hairspring restore`"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_end_with_the_codes_of_a_shell() {
        assert_eq!(code(ExitStatus::from_raw(0)), 0);
        assert_eq!(code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(code(ExitStatus::from_raw(signal_hook::consts::SIGTERM)), 143);
    }
}
