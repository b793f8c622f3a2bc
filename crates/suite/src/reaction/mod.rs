//! Chapter *Reaction*: from an event outside to the access of a device, stage by stage; and what priorities and locks do to it.

mod call;
pub mod chain;
mod fire;
mod matrix;
mod modes;
mod rows;
mod sources;
mod work;

use std::any::Any;

use hairspring_device::{AccessTimes, DeviceError, Lines, Protocol, VirtualBoard};
use hairspring_machine::{Host, Machine};
use hairspring_sheet::Absent;
use hairspring_time::Timebase;
use tempfile::TempDir;

pub use chain::Chain;
pub(crate) use rows::declare;

use crate::context::Context;

pub(crate) fn measure<M: Machine + Clone + Sync + 'static>(context: &mut Context<'_, M>) {
    // Threads and processes of this computer react, so the stamps must be its own.
    let Some(timebase) = (&context.timebase as &dyn Any).downcast_ref::<Timebase<Host>>().cloned() else {
        let absent = Absent::new(
            "threads and processes of a real machine react; a simulated one has none",
            "take the sheet on a real machine",
        );
        context.absent_under("reaction", &absent);
        return;
    };
    // Before this thread is pinned: then it would see its own CPU only.
    let other = context.machine.affinity().0.into_iter().find(|cpu| *cpu != context.cpu);
    if context.wants("reaction.call") {
        call::measure(context, &timebase);
    }
    sources::measure(context, &timebase, other);
    for (source, name, _) in rows::WIRED {
        let absent = Absent::new(
            format!("nothing on a machine drives the {name} by itself"),
            "wire something to the line and let `hairspring serve` act on it: its report has the same stages",
        );
        context.absent_under(&format!("reaction.{source}"), &absent);
    }
    matrix::measure(context, &timebase);
}

/// A folder for boards and signals, in memory where there is such a folder.
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

/// What a device did not do, as the reason for an absence.
fn refused(error: DeviceError) -> Absent {
    Absent::new(format!("failed to {}: {}", error.attempted, error.said), error.remedy)
}
