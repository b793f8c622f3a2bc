//! Chapter *Reaction*: from an external event to the access of a device, stage by stage; and the effects of priorities
//! and locks.

pub mod chain;
mod device_calls;
mod fire;
mod matrix;
pub(crate) mod sources;
mod work;

use hairspring_device::{AccessTimes, DeviceError, Lines, Protocol, VirtualBoard};
use hairspring_machine::{Host, Machine};
use hairspring_sheet::Absent;
use hairspring_time::Timebase;
use tempfile::TempDir;

pub use chain::Chain;

use crate::probe::Probes;

/// The probes of the chapter: calls of a device, sources of events, and processes that share a CPU and a board.
pub(crate) fn probes<M: Machine + Clone + Sync + 'static>() -> Probes<M> {
    let mut probes = Probes::new(
        "reaction",
        "Reaction",
        "An event from outside releases an action that drives a device: how long each stage takes for each kind of \
         source, with the action on a thread of its own, pinned and under SCHED_FIFO (the polled source: SCHED_OTHER), \
         and a virtual board without access times. Then the experiment of FESA's latency note (2006): processes that \
         share one CPU and one board are released by one event, each a chain of three threads that hand over, of which \
         the last drives the board under its lock.",
    );
    probes.needs_host("threads and processes of a real machine react; a simulated one has none");
    probes.before(crate::idle::remark);
    device_calls::add(&mut probes);
    sources::add(&mut probes);
    matrix::add(&mut probes);
    probes
}

/// A folder for boards and signals, in memory if the system has such a folder.
fn folder() -> Result<TempDir, Absent> {
    let shared = std::path::Path::new("/dev/shm");
    let made = if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() };
    made.map_err(|error| Absent::final_(format!("failed to make a folder for a board: {error}")))
}

/// A board in this folder.
fn board<'t>(
    folder: &TempDir,
    times: AccessTimes,
    protocol: Protocol,
    timebase: &'t Timebase<Host>,
) -> Result<VirtualBoard<'t, Host>, Absent> {
    VirtualBoard::open(&folder.path().join(chain::BOARD), times, Lines(0), protocol, timebase).map_err(refused)
}

/// A device's error, as the reason for an absence.
fn refused(error: DeviceError) -> Absent {
    Absent::new(format!("failed to {}: {}", error.attempted, error.said), error.remedy)
}
