//! Linux: all commands, disks to measure, and its signals.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use hairspring_ring::Bytes;
use hairspring_suite::{Disks, Effort};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::exit::{Exit, Failure};
use crate::page::Group;
use crate::{conclude, drive, hidden, record, tune};

/// The groups of commands that only this system has.
pub(crate) const GROUPS: &[&Group] = &[&conclude::GROUP, &record::GROUP, &drive::GROUP, &tune::GROUP];

/// The commands that only this system has.
#[derive(Debug, Subcommand)]
pub(crate) enum SystemCommand {
    #[command(flatten)]
    Conclude(conclude::Command),
    #[command(flatten)]
    Record(record::Command),
    #[command(flatten)]
    Drive(drive::Command),
    #[command(flatten)]
    Tune(tune::Command),
    /// Run as a process of the chapter Reaction; `sheet` starts it
    #[command(hide = true)]
    Chain {
        /// Its settings
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Do a job under the settings of this process; `doctor` starts it
    #[command(hide = true)]
    Turn {
        /// The job
        job: String,
        /// How long to work
        span_ns: i64,
        /// Where events are fired from
        fire_from: u32,
    },
    /// Produce load beside a soak; `soak` starts it
    #[command(hide = true)]
    Load {
        /// Kind of load
        #[arg(value_parser = crate::arguments::parsed::<hairspring_suite::soak_load::SoakLoad>)]
        load: hairspring_suite::soak_load::SoakLoad,
        /// Folder for the load on a disk
        folder: PathBuf,
    },
    /// Make the calls of the chapter Callers from Rust; `sheet` starts it
    #[command(hide = true)]
    Caller {
        /// File to map
        #[arg(required_unless_present = "first")]
        mapped: Option<PathBuf>,
        /// Number of calls after the first
        #[arg(default_value_t = 1)]
        calls: usize,
        /// Make nothing but the first call to this clock
        #[arg(long, conflicts_with = "mapped")]
        first: Option<String>,
    },
}

impl SystemCommand {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        if !matches!(self, Self::Tune(tune::Command::Restore(_))) {
            before_measuring();
        }
        match self {
            Self::Conclude(command) => command.run(),
            Self::Record(command) => command.run(),
            Self::Drive(command) => command.run(),
            Self::Tune(command) => command.run(),
            Self::Turn { job, span_ns, fire_from } => conclude::doctor::turn(job, *span_ns, *fire_from),
            Self::Load { load, folder } => conclude::soak::load(*load, folder),
            Self::Chain { words } => hidden::chain(words),
            Self::Caller { mapped, calls, first } => hidden::caller(mapped.as_deref(), *calls, first.as_deref()),
        }
    }
}

/// Restores settings of the machine that a killed command left changed, and reports that.
pub(crate) fn before_measuring() {
    tune::restore::leftovers();
}

/// Where `sheet` measures disks.
#[derive(Args, Debug)]
pub(crate) struct DiskArguments {
    /// Measure the disk under this folder, too, by writing to it. May be repeated
    #[arg(long, value_name = "DIR", value_delimiter = ',')]
    pub(crate) dir: Vec<PathBuf>,
    /// Most data to write to all folders together [default: 16GiB, with --quick 4GiB, with --thorough 128GiB]
    #[arg(long, value_name = "SIZE", requires = "dir")]
    pub(crate) volume: Option<Bytes>,
}

impl DiskArguments {
    /// The folders, and how much data to write there.
    pub(crate) fn disks(&self, effort: Effort) -> Result<Option<Disks>, Failure> {
        if self.dir.is_empty() {
            return Ok(None);
        }
        if let Some(missing) = self.dir.iter().find(|folder| !folder.is_dir()) {
            let text = format!("--dir {} is not a folder: name one that exists", missing.display());
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

/// The signals that ask the command to end: Ctrl-C, SIGTERM, Ctrl-\\, and SIGHUP unless it is ignored (`nohup`).
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

/// Lets a write that reaches the limit of files fail, instead of ending the process.
pub(crate) fn ignore_the_limit_of_files() {
    // The flag is never read: with a handler the kernel does not end the process, and the write fails.
    let unread = std::sync::Arc::default();
    // Refused for no reason that could be met here; without the handler the default stays.
    drop(signal_hook::flag::register(signal_hook::consts::SIGXFSZ, unread));
}
