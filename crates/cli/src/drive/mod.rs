//! The commands that drive something on time: lines of devices, front ends, tasks.

pub(crate) mod drawing;
pub(crate) mod expose;
pub(crate) mod pulse;
pub(crate) mod scope;
pub(crate) mod serve;
pub(crate) mod top;
pub(crate) mod trace;

use crate::page::commands;

/// The file of a virtual board, for the manual.
const BOARD: (&str, &str) =
    ("/dev/shm/board", "file of a virtual board: its registers and its lock, which processes share");

commands! { "Drive":
    Pulse(pulse),
    Expose(expose),
    Scope(scope),
    Serve(serve),
    Trace(trace),
    Top(top),
}
