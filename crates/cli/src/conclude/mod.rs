//! The commands that judge: whether the computer can do a job, and what would help.

mod answer;
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
    /// Watches each requirement on this computer, unchanged and with idle states off, or looks it up in a sheet. An answer has a
    /// confidence of 95 % and holds for the computer as it was while it was watched.
    Can(can::Arguments),
    /// Watch a job for hours, under a load, and keep the result
    ///
    /// Writes a sheet after each minute, which is always valid. The sheet has the worst cases with the time of day, and a plot of
    /// extreme values that says how far to trust it. The terminal may close meanwhile.
    Soak(Box<soak::Arguments>),
    /// Try the settings that could make a job better here
    ///
    /// Compares turns under each setting with turns without any, in random order, and confirms the best combination on fresh
    /// turns. Tries only settings that end with a program; with --allow machine also those of the machine, which are restored.
    Doctor(doctor::Arguments),
    /// Say who delays the threads of a program
    ///
    /// Reads from the kernel's tracepoints how long each wake-up and each preemption took, and which interrupt, softirq, task or
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
