//! The commands that conclude: what figures mean for a job.

pub(crate) mod can;
pub(crate) mod doctor;
pub(crate) mod jobs;
pub(crate) mod recording;
pub(crate) mod soak;
pub(crate) mod watch;

use clap::Subcommand;

use crate::exit::{Exit, Failure};
use crate::page::Group;

/// The commands of this folder, in the order of the help.
pub(crate) const GROUP: Group =
    Group { heading: "Conclude", pages: &[can::PAGE, soak::PAGE, doctor::PAGE, watch::PAGE] };

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say whether this computer can do a job: yes, no or not shown
    ///
    /// Each requirement is watched on this computer, as it is and with idle states off, or looked up in a sheet. An answer has a
    /// confidence of 95 % and holds for the computer as it was while it was watched.
    Can(can::Arguments),
    /// Watch a job for hours, under a load, and keep what is known
    ///
    /// After each minute a sheet is written that is valid as it stands. It has the worst cases with the time of day, and a plot of extreme
    /// values that says how far it can be believed. The terminal may close meanwhile.
    Soak(Box<soak::Arguments>),
    /// Try the settings that could make a job better here
    ///
    /// Each setting has its turns in random order, beside turns without any. The best combination is confirmed on fresh turns. Only
    /// settings that end with a program are tried; with --allow machine also those of the machine, which are restored.
    Doctor(doctor::Arguments),
    /// Say who delays the threads of a program
    ///
    /// Reads the kernel's tracepoints: how long each wake-up took and how long each preemption, and which interrupt, task, softirq or
    /// hypervisor took the time. Signals and the exit code of CMD pass through.
    Watch(watch::Arguments),
}

impl Command {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Can(arguments) => can::run(arguments),
            Self::Soak(arguments) => soak::run(arguments),
            Self::Doctor(arguments) => doctor::run(arguments),
            Self::Watch(arguments) => watch::run(arguments),
        }
    }
}
