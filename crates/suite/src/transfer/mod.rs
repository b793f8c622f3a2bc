//! Chapter *Transfer*: how fast data move through memory and from one thread to another, and what one word costs.
//!
//! Each sweep is a module: what it declares, how it measures. [`Arena`] and [`Operation`] let other programs set their own
//! ways of moving through memory beside these.

mod arena;
mod disk;
mod disks;
mod fits;
mod hockney;
mod memory;
mod operation;
mod play;
mod repeats;
mod ring;
mod stream;
mod word;

use std::any::Any;

use hairspring_machine::{Host, Machine};
use hairspring_sheet::Absent;
use hairspring_stream::{Bytes, Pages};
use hairspring_time::Timebase;

use crate::context::{Class, Context};
use crate::registry::ChapterDeclaration;
pub use arena::Arena;
pub use disks::Disks;
pub use operation::Operation;

pub(crate) fn declare() -> ChapterDeclaration {
    let mut tables = memory::declare();
    tables.extend(ring::declare());
    tables.push(word::declare());
    tables.extend(disk::declare());
    tables.extend(stream::declare());
    ChapterDeclaration {
        id: "transfer",
        title: "Transfer",
        intro: "How fast data move through memory and through the ring from one thread to another, by block size and by the \
                pages they lie on, and what one access to a mapped word costs. Each sweep is also fitted to T(n) = n/r∞ + t₀: \
                r∞ is the rate of large blocks, t₀ what every block costs, n½ the block at which half of r∞ is reached.",
        tables,
    }
}

pub(crate) fn measure<M: Machine + Clone + Sync + 'static>(context: &mut Context<'_, M>) {
    // The memory is this computer's, so the stamps must be its own.
    let Some(timebase) = (&context.timebase as &dyn Any).downcast_ref::<Timebase<Host>>().cloned() else {
        let absent = Absent::new(
            "data move through a real machine's memory; a simulated one has none",
            "take the sheet on a real machine",
        );
        context.absent_under("transfer", &absent);
        return;
    };
    // Before this thread is pinned: then it would see its own CPU only.
    let other = context.machine.affinity().0.into_iter().find(|cpu| *cpu != context.cpu);
    let machine = context.machine.clone();
    let pinned = context.settings(Class::Other).apply(&machine);
    let set_aside = arena::huge_pages(memory::most(context).max(ring::most()));
    if context.wants("transfer.memory") {
        memory::measure(context, &timebase, set_aside);
    }
    if context.wants("transfer.ring") {
        ring::measure(context, &timebase, other, set_aside);
    }
    if context.wants("transfer.word") {
        word::measure(context, &timebase);
    }
    drop(pinned);
    measure_disks(context, &timebase);
}

/// What needs folders to write to. Not pinned: a recorder has threads of its own.
fn measure_disks<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, timebase: &Timebase<Host>) {
    let wanted = ["transfer.disk", "transfer.stream"].map(|prefix| context.wants(prefix));
    if let Some(disks) = context.means.disks.clone() {
        if wanted[0] {
            disk::measure(context, timebase, &disks);
        }
        if wanted[1] {
            stream::measure(context, &disks);
        }
        return;
    }
    let remedy = "name a folder on the disk in question: `--dir DIR`; `--volume` limits what is written there";
    for prefix in ["transfer.disk", "transfer.stream"] {
        context.absent_under(prefix, &Absent::new("no disk is written to unless a folder is named", remedy));
    }
}

/// The instructions that [`Operation::CopyNt`] uses on this processor.
pub fn non_temporal_stores() -> &'static str {
    crate::host::stores()
}

/// A row's label: a block size on some pages.
fn label(block: Bytes, pages: Pages) -> String {
    format!("{block} on {pages}")
}
