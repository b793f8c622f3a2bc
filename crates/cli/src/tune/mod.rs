//! The commands that change settings, and restore them.

pub(crate) mod best;
pub(crate) mod restore;
pub(crate) mod run;
pub(crate) mod settings;

use clap::Subcommand;

use crate::exit::{Exit, Failure};
use crate::page::Group;

/// The commands of this folder, in the order of the help.
pub(crate) const GROUP: Group = Group { heading: "Tune", pages: &[run::PAGE, settings::PAGE, restore::PAGE] };

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program under settings that improve its timing
    Run(run::Arguments),
    /// List settings that affect timing, with their present values
    Settings(settings::Arguments),
    /// Restore settings that a killed command left changed
    Restore(restore::Arguments),
}

impl Command {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Run(arguments) => run::run(arguments),
            Self::Settings(arguments) => settings::run(arguments),
            Self::Restore(arguments) => restore::run(arguments),
        }
    }
}
