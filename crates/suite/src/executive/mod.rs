//! Chapter *Executive*: how long the services of a multitasking executive take, in the form of KADAK's AMX timing guide.
//!
//! Each scenario is written once against the [`port`] and measured on every executive: this project's on fibers and on
//! threads, and bare threads as the reference. [`run_scenarios`] measures any other that implements the port.

pub mod bare;
mod bench;
mod clock_service;
mod diagrams;
mod firing;
mod interrupts;
mod load;
mod mailbox;
pub mod ours;
pub mod port;
mod remarks;
mod rhealstone;
mod rows;
mod scenarios;
mod switching;
mod thread_metric;
mod waitwake;

use std::any::Any;
use std::cell::RefCell;

use hairspring_machine::{Host, Machine, Nanos};
use hairspring_sheet::{Absent, Value};
use hairspring_time::Timebase;

use crate::caches;
use crate::context::{Context, Effort};
pub use bench::{Bench, Cache, Load};
pub use load::Streaming;
use ours::{Fiber, Ours, ThreadSmp, ThreadUp};
use port::{Place, Port};
pub(crate) use rows::declare;
pub use scenarios::run_scenarios;

/// The share of the chapter's time that one run samples for: about 230 runs, their making and their rests fit.
const SLICE_SHARE: f64 = 0.003;
const SLICE_SHARE_QUICK: f64 = 0.0018;
/// Longer, the kernel would stall real-time threads before they rest.
const SLICE_MOST: Nanos = Nanos::from_millis(100);
/// Written between samples where no size of the second-level cache is known.
const SWEEP_BYTES: usize = 4 << 20;
/// No second-level cache is larger.
const SWEEP_BYTES_MOST: usize = 32 << 20;

pub(crate) fn measure<M: Machine + Clone + Sync + 'static>(context: &mut Context<'_, M>) {
    // Tasks run on threads and stacks of this computer, so their stamps must be its own.
    let Some(timebase) = (&context.timebase as &dyn Any).downcast_ref::<Timebase<Host>>().cloned() else {
        let absent = Absent::new(
            "the executives run on a real machine's threads and stacks; a simulated one has none",
            "take the sheet on a real machine",
        );
        context.absent_under("executive", &absent);
        return;
    };
    context.say("what the executive is measured with");
    let other = context.machine.affinity().0.into_iter().find(|cpu| *cpu != context.cpu);
    let place = Place { cpu: context.cpu, other, measure_latency: false };
    let bench = Bench::new(timebase, place, slice(context), sweep_bytes(context));
    remarks::conditions(context, &bench);
    measure_port::<M, Ours<Fiber>>(context, &bench, rows::EXECUTIVES[0]);
    measure_port::<M, Ours<ThreadUp>>(context, &bench, rows::EXECUTIVES[1]);
    measure_port::<M, Ours<ThreadSmp>>(context, &bench, rows::EXECUTIVES[2]);
    measure_port::<M, bare::Bare>(context, &bench, rows::EXECUTIVES[3]);
    remarks::residuals(context);
}

fn slice<M: Machine + Clone + Sync>(context: &Context<'_, M>) -> Nanos {
    // What runs take besides sampling is the same at every effort, and weighs most when there is little time.
    let share = if context.effort == Effort::Quick { SLICE_SHARE_QUICK } else { SLICE_SHARE };
    context.share(share).min(SLICE_MOST)
}

/// Measures one executive, idle and loaded.
fn measure_port<M: Machine + Clone + Sync, P: Port>(
    context: &mut Context<'_, M>,
    bench: &Bench,
    (executive, name): (&str, &str),
) {
    let row = |cell: &str| match cell.split_once('.') {
        Some((suite @ ("rhealstone" | "thread_metric"), rest)) => format!("executive.{suite}.{executive}.{rest}"),
        _ => format!("executive.{executive}.{cell}"),
    };
    let prefixes = [
        format!("executive.{executive}"),
        format!("executive.rhealstone.{executive}"),
        format!("executive.thread_metric.{executive}"),
    ];
    if !prefixes.iter().any(|prefix| context.wants(prefix)) {
        return;
    }
    P::remarks().into_iter().for_each(|remark| context.remark(remark));
    for load in Load::ALL {
        let suffix = format!(".{}", load.segment());
        let wanted = |id: &String| prefixes[0] == *id || id.starts_with(&format!("{}.", prefixes[0]));
        let mut streaming = None;
        if load == Load::Loaded
            && context.rows.iter().any(|(id, value)| value.is_none() && wanted(id) && id.ends_with(&suffix))
        {
            match Streaming::start(bench.place) {
                Ok(started) => streaming = Some(started),
                Err(absent) => {
                    let rows: Vec<String> =
                        context.rows.keys().filter(|id| wanted(id) && id.ends_with(&suffix)).cloned().collect();
                    rows.iter().for_each(|id| context.absent(id, absent.clone()));
                }
            }
        }
        let shared = RefCell::new(&mut *context);
        let mut wanted = |cell: &str| {
            let mut context = shared.borrow_mut();
            let wanted = context.wants(&row(cell));
            if wanted {
                context.say(&format!("executive, {name}: {}", cell.replace(['.', '_'], " ")));
            }
            wanted
        };
        let mut enter = |cell: &str, value: Value| {
            let mut context = shared.borrow_mut();
            match value {
                Value::Figure(figure) => context.put(&row(cell), figure),
                Value::Absent(absent) => context.absent(&row(cell), absent),
            }
        };
        run_scenarios::<P>(bench, load, &mut wanted, &mut enter);
        drop(streaming);
    }
}

/// Twice the second-level cache of one CPU, as the facts have it.
fn sweep_bytes<M: Machine + Clone + Sync>(context: &Context<'_, M>) -> usize {
    let second = caches::second_level(&context.machine.facts()).and_then(|bytes| usize::try_from(bytes).ok());
    second.map_or(SWEEP_BYTES, |bytes| bytes.saturating_mul(2).clamp(SWEEP_BYTES / 4, SWEEP_BYTES_MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_of_every_executive_is_declared() {
        let declared: std::collections::BTreeSet<String> =
            declare().tables.into_iter().flat_map(|table| table.rows).map(|row| row.id).collect();
        assert_eq!(declared.len(), 4 * (24 + 8 + 12 + 8 + 16 + 4 + 1 + 6 + 8) + 1);
    }
}
