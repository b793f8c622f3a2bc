//! Windows: no additional commands, and no disks to measure.

use clap::{Args, Subcommand};
use hairspring_suite::{Disks, Effort};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::exit::{Exit, Failure};
use crate::page::Group;

/// The groups of commands that only this system has: none.
pub(crate) const GROUPS: &[&Group] = &[];

/// The commands that only this system has: none.
#[derive(Debug, Subcommand)]
pub(crate) enum SystemCommand {}

impl SystemCommand {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match *self {}
    }
}

/// Restores settings of the machine. No command changes them on this system.
pub(crate) fn before_measuring() {}

/// Where `sheet` measures disks: nowhere on this system.
#[derive(Args, Debug)]
pub(crate) struct DiskArguments {}

impl DiskArguments {
    pub(crate) fn disks(&self, _effort: Effort) -> Result<Option<Disks>, Failure> {
        Ok(None)
    }
}

/// The signals that ask the command to end: Ctrl-C, and the C library's SIGTERM.
pub(crate) fn asking_to_end() -> impl Iterator<Item = i32> {
    [SIGINT, SIGTERM].into_iter()
}

/// Windows has no limit of the size of files.
pub(crate) fn ignore_the_limit_of_files() {}
