//! Chapter *Transfer*: rates of data through memory and from one thread to another, and the cost of one word.
//!
//! Each sweep is a module with its declaration and its measurement. [`Arena`] and [`Operation`] let other programs set
//! their own ways of moving through memory beside these.

mod arena;
mod cell;
mod disk;
mod disk_limits;
mod fits;
mod hockney;
mod memory;
mod operation;
mod play;
mod repeats;
mod ring;
mod stream;
mod word;

use hairspring_machine::Machine;
use hairspring_ring::{Bytes, Pages};
use hairspring_sheet::Absent;

use crate::probe::{Context, Probes, Slot};
pub use arena::Arena;
pub use disk_limits::Disks;
pub use operation::Operation;

/// The probes of the chapter: sweeps through memory and the ring, single words, disks and streams.
pub(crate) fn probes<M: Machine + Clone + Sync + 'static>() -> Probes<M> {
    let mut probes = Probes::new(
        "transfer",
        "Transfer",
        "How fast data move through memory and through the ring from one thread to another, by block size and by the \
         pages they lie on, and what one access to a mapped word costs. Each sweep is also fitted to T(n) = n/r∞ + t₀: \
         r∞ is the rate of large blocks, t₀ what every block costs, n½ the block at which half of r∞ is reached.",
    );
    // The memory is this computer's, so the stamps must be its own.
    probes.needs_core();
    probes.needs_host("data move through a real machine's memory; a simulated one has none");
    memory::add(&mut probes);
    ring::add(&mut probes);
    word::add(&mut probes);
    disk::add(&mut probes);
    stream::add(&mut probes);
    probes
}

/// Huge pages to set aside for all sweeps of the chapter.
fn set_aside<M: Machine + Clone + Sync>(context: &Context<'_, M>) -> u64 {
    arena::huge_pages(memory::most(context).max(ring::most()))
}

/// The folders that may be written to; without any, these rows are absent.
fn disks<M: Machine + Clone + Sync>(
    context: &mut Context<'_, M>,
    slots: impl IntoIterator<Item = Slot>,
) -> Option<Disks> {
    if context.means.disks.is_none() {
        let remedy = "name a folder on the disk in question: `--dir DIR`; `--volume` limits what is written there";
        context.absent_all(slots, &Absent::new("no disk is written to unless a folder is named", remedy));
    }
    context.means.disks.clone()
}

/// The instructions that [`Operation::CopyNt`] uses on this processor.
pub fn non_temporal_stores() -> &'static str {
    crate::host::stores()
}

/// A row's label: a block size on some pages.
fn label(block: Bytes, pages: Pages) -> String {
    format!("{block} on {pages}")
}
