//! The commands that measure this computer and compare the results.

pub(crate) mod ab;
pub(crate) mod archive;
pub(crate) mod clock;
pub(crate) mod compare;
pub(crate) mod delay;
pub(crate) mod destination;
pub(crate) mod drift;
pub(crate) mod historic;
pub(crate) mod historic_pairs;
pub(crate) mod progress;
pub(crate) mod round;
pub(crate) mod sheet;

use clap::Subcommand;

use crate::exit::{Exit, Failure};
use crate::page::Group;

/// Texts of the commands for help and manual.
pub(crate) const GROUP: Group = Group {
    heading: "Measure",
    pages: &[sheet::PAGE, compare::PAGE, archive::PAGE, ab::PAGE, delay::PAGE, clock::PAGE],
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure this computer and print its timing data sheet
    ///
    /// A figure that cannot be measured here is reported as absent, with the reason and the remedy.
    Sheet(Box<sheet::Arguments>),
    /// Compare sheets: what differs, and what cannot be decided
    ///
    /// A verdict on a row needs three sheets a side, a ledger of this machine's sheets, or two builds that `ab` measured in
    /// turns. Two single sheets have ratios without verdicts, because two sheets of one build differ, too.
    Compare(compare::Arguments),
    /// Keep sheets for years, and show what changed
    ///
    /// One file has the sheets of all machines, each as it was written. `sheet --archive` adds at once, and `compare --ledger` takes the
    /// file, too.
    Archive(archive::Arguments),
    /// Measure two builds in turns and say what differs
    ///
    /// Chapter by chapter, in fresh processes and in balanced random order, so that a drift of the machine cancels. Pairs during which the
    /// machine was disturbed do not count. JSON has all pairs.
    Ab(Box<ab::Arguments>),
    /// Make delays and show how late each returned
    ///
    /// A delay never returns early. The report shows the distribution of the lateness and what disturbed the delays.
    Delay(delay::Arguments),
    /// Calibrate the processor's counter and say whether to trust it
    Clock(clock::Arguments),
    /// Measure one round of a sheet; `sheet` starts it
    #[command(hide = true)]
    Round,
}

impl Command {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Sheet(arguments) => sheet::run(arguments),
            Self::Compare(arguments) => compare::run(arguments),
            Self::Archive(arguments) => archive::run(arguments),
            Self::Ab(arguments) => ab::run(arguments),
            Self::Delay(arguments) => delay::run(arguments),
            Self::Clock(arguments) => clock::run(arguments),
            Self::Round => round::run(),
        }
    }
}
