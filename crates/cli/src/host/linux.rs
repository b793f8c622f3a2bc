//! Linux: every command.

#[path = "../account.rs"]
pub(crate) mod account;
#[path = "../caller.rs"]
pub(crate) mod caller;
#[path = "../chain.rs"]
pub(crate) mod chain;
#[path = "../arguments/device.rs"]
mod device_arguments;
#[path = "../drawing.rs"]
pub(crate) mod drawing;
#[path = "../export.rs"]
pub(crate) mod export;
#[path = "../expose/mod.rs"]
pub(crate) mod expose;
#[path = "../join.rs"]
pub(crate) mod join;
#[path = "../listing.rs"]
pub(crate) mod listing;
#[path = "../live.rs"]
pub(crate) mod live;
#[path = "../maxrate/mod.rs"]
pub(crate) mod maxrate;
#[path = "../plan/mod.rs"]
pub(crate) mod plan;
#[path = "../arguments/plan.rs"]
mod plan_arguments;
#[path = "../play/mod.rs"]
pub(crate) mod play;
#[path = "../pulse.rs"]
pub(crate) mod pulse;
#[path = "../record/mod.rs"]
pub(crate) mod record;
#[path = "../recording.rs"]
pub(crate) mod recording;
#[path = "../recover.rs"]
pub(crate) mod recover;
#[path = "../scope.rs"]
pub(crate) mod scope;
#[path = "../serve/mod.rs"]
pub(crate) mod serve;
#[path = "../arguments/stream.rs"]
mod stream_arguments;
#[path = "../table.rs"]
pub(crate) mod table;
#[path = "../target.rs"]
pub(crate) mod target;
#[path = "../trace.rs"]
pub(crate) mod trace;
#[path = "../arguments/trace.rs"]
mod trace_arguments;
#[path = "../verify.rs"]
pub(crate) mod verify;
#[path = "../way.rs"]
pub(crate) mod way;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use hairspring_stream::{Bytes, Verdict};
use hairspring_suite::{Disks, Effort};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::exit::{Exit, Failure};
pub(crate) use device_arguments::{ExposeArguments, PulseArguments, ScopeArguments, ServeArguments};
pub(crate) use plan_arguments::{PlanArguments, Units};
pub(crate) use stream_arguments::*;
pub(crate) use trace_arguments::TraceArguments;

/// The commands that only this system has.
#[derive(Debug, Subcommand)]
pub(crate) enum SystemCommand {
    /// Run an example on the executive and show who ran and who waited when
    Trace(TraceArguments),
    /// Record cards to disk, with nothing lost or everything lost accounted for
    Record(Box<RecordArguments>),
    /// Play a recording at its rate, or as fast as the output takes it
    Play(Box<PlayArguments>),
    /// Prove every byte of a recording
    Verify(VerifyArguments),
    /// Put a recording in order after a crash, a power cut or damage
    Recover(RecoverArguments),
    /// Join the parts of a stripe into one recording
    Join(JoinArguments),
    /// Show a recording to other programs: HDF5, NumPy, CSV
    Export(ExportArguments),
    /// Plan a recording: whether a set-up carries it, what limits it, which sizes it needs
    Plan(PlanArguments),
    /// Find the highest rate at which nothing is lost, by recording, and say how sure that is
    Maxrate(Box<MaxrateArguments>),
    /// Make pulses on a line of a device, never shorter than asked
    Pulse(PulseArguments),
    /// Watch the lines of a virtual board from another CPU
    Scope(ScopeArguments),
    /// Open a shutter for an exact time, with an instrument read in the middle
    Expose(ExposeArguments),
    /// Run a front end: what happens outside releases actions that drive devices
    Serve(ServeArguments),
    /// Be a process of the chapter Reaction; `sheet` starts it
    #[command(hide = true)]
    Chain {
        /// What it must know
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<std::ffi::OsString>,
    },
    /// Make the calls of the chapter Callers from Rust; `sheet` starts it
    #[command(hide = true)]
    Caller {
        /// What is mapped
        mapped: PathBuf,
        /// Later calls
        calls: usize,
    },
}

impl SystemCommand {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Trace(arguments) => trace::run(&arguments),
            Self::Record(arguments) => record::run(&arguments),
            Self::Play(arguments) => play::run(&arguments),
            Self::Verify(arguments) => verify::run(&arguments),
            Self::Recover(arguments) => recover::run(&arguments),
            Self::Join(arguments) => join::run(&arguments),
            Self::Export(arguments) => export::run(&arguments),
            Self::Plan(arguments) => plan::run(&arguments),
            Self::Maxrate(arguments) => maxrate::run(&arguments),
            Self::Pulse(arguments) => pulse::run(&arguments),
            Self::Scope(arguments) => scope::run(&arguments),
            Self::Expose(arguments) => expose::run(&arguments),
            Self::Serve(arguments) => serve::run(&arguments),
            Self::Chain { words } => chain::run(&words),
            Self::Caller { mapped, calls } => caller::run(&mapped, calls),
        }
    }
}

/// Where `sheet` measures disks.
#[derive(Args, Debug)]
pub(crate) struct DiskArguments {
    /// Also measure the disk under this folder, which is written to; several folders are several targets
    #[arg(long, value_name = "DIR", value_delimiter = ',')]
    pub(crate) dir: Vec<PathBuf>,
    /// The most that is written there altogether [default: 16GiB, with --quick 4GiB, with --thorough 128GiB]
    #[arg(long, value_name = "SIZE", requires = "dir")]
    pub(crate) volume: Option<Bytes>,
}

impl DiskArguments {
    /// The folders, and how much is written there.
    pub(crate) fn disks(&self, effort: Effort) -> Result<Option<Disks>, Failure> {
        if self.dir.is_empty() {
            return Ok(None);
        }
        if let Some(missing) = self.dir.iter().find(|folder| !folder.is_dir()) {
            let text = format!("{} is no folder: --dir names one that exists", missing.display());
            return Err(Failure::bad_request(text));
        }
        let usual = match effort {
            Effort::Quick => Bytes::gib(4),
            Effort::Normal => Bytes::gib(16),
            Effort::Thorough => Bytes::gib(128),
        };
        Ok(Some(Disks { folders: self.dir.clone(), volume: self.volume.unwrap_or(usual) }))
    }
}

impl From<Verdict> for Exit {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Complete | Verdict::Stopped => Self::Success,
            Verdict::Incomplete => Self::Loss,
            Verdict::Unaccounted => Self::Unreadable,
        }
    }
}

/// The signals that ask the command to end: Ctrl-C, SIGTERM, Ctrl-\\, and that its terminal has gone, unless whoever started it wants
/// it to go on without (`nohup`).
pub(crate) fn asking_to_end() -> impl Iterator<Item = i32> {
    let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    [SIGINT, SIGTERM, SIGQUIT].into_iter().chain(hangup)
}

/// Whether this process ignores a signal.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Gives a new file what the caller's umask leaves, as to any other.
pub(crate) fn as_any_new_file<'b, 'n>(builder: &'b mut tempfile::Builder<'n, 'n>) -> &'b mut tempfile::Builder<'n, 'n> {
    builder.permissions(std::fs::Permissions::from_mode(0o666))
}
