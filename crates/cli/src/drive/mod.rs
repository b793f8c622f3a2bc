//! The commands that drive something on time: lines of devices, front ends, tasks.

pub(crate) mod drawing;
pub(crate) mod expose;
pub(crate) mod pulse;
pub(crate) mod scope;
pub(crate) mod serve;
pub(crate) mod top;
pub(crate) mod trace;

use clap::Subcommand;

use crate::exit::{Exit, Failure};
use crate::page::Group;

/// Texts of the commands for help and manual.
pub(crate) const GROUP: Group =
    Group { heading: "Drive", pages: &[pulse::PAGE, expose::PAGE, scope::PAGE, serve::PAGE, trace::PAGE, top::PAGE] };

/// The file of a virtual board, for the manual.
const BOARD: (&str, &str) =
    ("/dev/shm/board", "file of a virtual board: its registers and its lock, which processes share");

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make pulses on a line of a device, never shorter than requested
    Pulse(pulse::Arguments),
    /// Open a shutter for an exact time, and read an instrument
    ///
    /// The shutter is never open for less than the requested time. The report gives the measured exposure time and its parts.
    Expose(expose::Arguments),
    /// Watch the lines of a virtual board, or a recording that runs
    ///
    /// A recording is drawn while it runs, from its ring: wave forms, spectrum and levels. That costs the recording nothing.
    Scope(Box<scope::Arguments>),
    /// Run a front end that a station file describes
    ///
    /// Each unit waits for events and reacts with an action on a device. The report counts every event as acted upon or missed, and
    /// shows how long the reactions took.
    Serve(serve::Arguments),
    /// Run an example on the executive and show who ran when
    Trace(trace::Arguments),
    /// Watch the tasks of a running executive
    ///
    /// The program publishes its executive under a name; see Executive::publish. On fibers CPU shares are samples, and no more exact.
    Top(top::Arguments),
}

impl Command {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Pulse(arguments) => pulse::run(arguments),
            Self::Scope(arguments) => scope::run(arguments),
            Self::Expose(arguments) => expose::run(arguments),
            Self::Serve(arguments) => serve::run(arguments),
            Self::Trace(arguments) => trace::run(arguments),
            Self::Top(arguments) => top::run(arguments),
        }
    }
}
