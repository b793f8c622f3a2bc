//! Chapter *Executive*: the times of a multitasking executive's services, in the form of KADAK's AMX timing guide.
//!
//! Each scenario is written once against the [`port`] and measured on every executive: this project's on fibers and on
//! threads, and bare threads as the reference.

mod bench;
pub mod port;
mod remarks;
mod scenario;

use std::cell::RefCell;
use std::rc::Rc;

use hairspring_machine::{Machine, Nanos};
use hairspring_sheet::{Absent, Unit};

use crate::caches;
pub use crate::caches::CacheSweep;
use crate::probe::{Context, Effort, Probes, Setting, Slot, TableSlot};
pub use bench::canary::CanaryReport;
pub use bench::load::Streaming;
pub use bench::{BackgroundLoad, Bench, Cache};
use port::ours::{BackendKind, Fiber, Ours, ThreadSmp, ThreadUp};
use port::{Placement, Port};
pub use port::{bare, ours};
use remarks::Residual;
pub use scenario::{Compared, Round};

/// The executives: segment of the ids, name for people.
const EXECUTIVES: [(&str, &str); 4] = [
    ("fiber", "fibers"),
    ("thread_up", "threads on one CPU"),
    ("thread_smp", "threads on all CPUs"),
    ("pthread_futex", "bare threads on a futex"),
];
/// The first three are this project's.
const OURS: usize = 3;
/// Only the first has a row for the longest time between two polls for interrupts.
const POLLS: usize = 0;

/// The share of the chapter's time that one run samples for: about 255 runs fit, with their set-up and rests.
const SLICE_SHARE: f64 = 0.0027;
const SLICE_SHARE_QUICK: f64 = 0.0016;
/// The longest slice; after a longer one the kernel would throttle real-time threads before they rest.
const SLICE_MOST: Nanos = Nanos::from_millis(100);
/// The share of its own rate that the load must keep while cells are measured.
const LOAD_SHARE: f64 = 0.5;
const LIMITS: &str = "at most 10,000 samples of each cell and a fiftieth of a second; cells with more than 5 % of samples \
                      without proof are absent";
const LIMITS_LONGEST: &str =
    "eight runs of some ten thousand calls or fewer; each gives its longest time, which is one sample";

/// The probes of the chapter: every scenario on every executive, idle and loaded.
pub(crate) fn probes<M: Machine + Clone + Sync + 'static>() -> Probes<M> {
    let mut probes = Probes::new(
        "executive",
        "Executive",
        "The times of a multitasking executive's services: this project's on fibers, on threads of one CPU and \
         on threads of all, and bare threads on a futex as the reference. A and B are tasks; A is the more urgent. \
         The spans T1 to T4 are those of KADAK's AMX timing guide, and its diagrams are drawn beside; where the guide \
         leaves one open, the definition is ours and says so.",
    );
    probes.needs_core();
    probes.needs_host("the executives run on a real machine's threads and stacks; a simulated one has none");
    let stand = Rc::new(RefCell::new(Stand::default()));
    let tables = Tables::declare(&mut probes);
    let before = Rc::clone(&stand);
    probes.before(move |context| before.borrow_mut().set_up(context));
    let (fiber, fiber_rows) = add::<M, Ours<Fiber>>(&mut probes, &tables, &stand, 0);
    let (up, up_rows) = add::<M, Ours<ThreadUp>>(&mut probes, &tables, &stand, 1);
    let (smp, smp_rows) = probes.on_two_cpus(|probes| add::<M, Ours<ThreadSmp>>(probes, &tables, &stand, 2));
    let (bare, bare_rows) = add::<M, bare::Bare>(&mut probes, &tables, &stand, 3);
    add_services::<M, Fiber>(&mut probes, &tables, &stand, 0);
    add_services::<M, ThreadUp>(&mut probes, &tables, &stand, 1);
    add_services::<M, ThreadSmp>(&mut probes, &tables, &stand, 2);
    let loaded = BackgroundLoad::Loaded;
    under::<M, Ours<Fiber>>(&mut probes, &stand, fiber.name, loaded, &fiber_rows);
    under::<M, Ours<ThreadUp>>(&mut probes, &stand, up.name, loaded, &up_rows);
    under::<M, Ours<ThreadSmp>>(&mut probes, &stand, smp.name, loaded, &smp_rows);
    under::<M, bare::Bare>(&mut probes, &stand, bare.name, loaded, &bare_rows);
    let residuals = [fiber, up, smp, bare];
    probes.after(move |context| {
        let mut stand = stand.borrow_mut();
        stand.end_load();
        if let Some(rates) = load_sentence(&stand.rates) {
            context.remark(rates);
        }
        drop(stand);
        remarks::residuals(context, &residuals);
    });
    probes
}

/// State of all runs: the workbench, and the load while it runs.
#[derive(Default)]
struct Stand {
    bench: Option<Bench>,
    streaming: Option<Streaming>,
    /// The rates of the load, alone at its beginning and while cells were measured, in bytes per second.
    rates: Vec<[f64; 2]>,
}

impl Stand {
    fn set_up<M: Machine + Clone + Sync + 'static>(&mut self, context: &mut Context<'_, M>) {
        // Tasks run on threads of this computer, so their stamps must come from its counter.
        let Some(timebase) = context.host_timebase() else { return };
        context.say("set-up of the executive's measurements");
        let place = Placement { cpu: context.cpu, other: context.other, measure_latency: false };
        let bench = Bench::new(timebase, place, slice(context), caches::sweep_bytes(&context.machine.facts()));
        remarks::conditions(context, &bench);
        crate::idle::remark(context);
        self.bench = Some(bench);
    }

    /// The workbench, with this load from now on.
    fn under(&mut self, load: BackgroundLoad) -> Result<&Bench, Absent> {
        let bench =
            self.bench.as_ref().ok_or_else(|| Absent::final_("there is no workbench: a defect of hairspring"))?;
        match load {
            BackgroundLoad::Idle => self.rates.extend(self.streaming.take().map(Streaming::rates)),
            BackgroundLoad::Loaded if self.streaming.is_none() => self.streaming = Some(Streaming::start(bench.place)?),
            BackgroundLoad::Loaded => {}
        }
        Ok(bench)
    }

    fn end_load(&mut self) {
        self.rates.extend(self.streaming.take().map(Streaming::rates));
    }
}

/// The tables, each for every executive.
struct Tables {
    groups: Vec<[TableSlot; EXECUTIVES.len()]>,
    latency: [TableSlot; EXECUTIVES.len()],
    rhealstone: [TableSlot; EXECUTIVES.len()],
    thread_metric: [TableSlot; EXECUTIVES.len()],
    services: [TableSlot; OURS],
}

impl Tables {
    fn declare<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>) -> Self {
        let groups = scenario::groups::<bare::Bare>().map(|group| {
            EXECUTIVES.map(|(executive, name)| {
                let (id, title) =
                    (format!("executive.{executive}.{}", group.segment), format!("{}, {name}", group.title));
                let table = probes.table(id, title, LIMITS);
                probes.draw(table, group.diagram.clone());
                table
            })
        });
        let latency = EXECUTIVES.map(|(executive, name)| {
            let id = format!("executive.{executive}.interrupt_latency");
            probes.table(id, format!("Interrupt latency, {name}"), LIMITS_LONGEST)
        });
        let rhealstone = EXECUTIVES.map(|(executive, name)| {
            let id = format!("executive.rhealstone.{executive}");
            probes.table(id, format!("Rhealstone components, {name}"), LIMITS)
        });
        let thread_metric = EXECUTIVES.map(|(executive, name)| {
            let id = format!("executive.thread_metric.{executive}");
            probes.table(id, format!("Thread-Metric, {name}"), LIMITS)
        });
        let services = [0, 1, 2].map(|place: usize| {
            let (executive, name) = EXECUTIVES[place];
            let id = format!("executive.service.{executive}");
            probes.table(id, format!("Mutex, select, pipe, heap, broadcast and others, {name}"), LIMITS)
        });
        Self { groups: groups.into(), latency, rhealstone, thread_metric, services }
    }
}

/// The rows of one quantity: by load, then by caches.
type RowOf = [[Slot; 2]; 2];

/// For each scenario of a group, and each of its quantities, the rows.
type GroupRows = (scenario::Group, Vec<Vec<RowOf>>);

/// Adds the rows of one executive, and its probes without load: the scenarios, then the probes without variants.
fn add<M: Machine + Clone + Sync + 'static, P: Port>(
    probes: &mut Probes<M>,
    tables: &Tables,
    stand: &Rc<RefCell<Stand>>,
    executive: usize,
) -> (Residual, Vec<GroupRows>) {
    let name = EXECUTIVES[executive].1;
    let groups: Vec<GroupRows> = scenario::groups::<P>()
        .into_iter()
        .zip(&tables.groups)
        .map(|(group, table)| {
            let mut row = |quantity: &scenario::Quantity| {
                BackgroundLoad::ALL
                    .map(|load| Cache::ALL.map(|cache| probes.row(table[executive], quantity.row::<P>(cache, load))))
            };
            let rows = group.scenarios.iter().map(|scenario| scenario.quantities.iter().map(&mut row).collect());
            let rows = rows.collect();
            (group, rows)
        })
        .collect();
    under::<M, P>(probes, stand, name, BackgroundLoad::Idle, &groups);
    for longest in scenario::longest::<P>(executive == POLLS) {
        let (stand, what) = (Rc::clone(stand), format!("executive, {name}: interrupt latency {}", longest.segment));
        probes.one(Setting::AsStarted, tables.latency[executive], longest.row, move |context| {
            begin::<M, P>(context, &what);
            (longest.run)(stand.borrow_mut().under(BackgroundLoad::Idle)?)
        });
    }
    let (rhealstone, thread_metric) = (tables.rhealstone[executive], tables.thread_metric[executive]);
    add_components::<M, P>(probes, stand, name, "rhealstone", (rhealstone, Unit::Ns), scenario::components::<P>());
    add_components::<M, P>(
        probes,
        stand,
        name,
        "thread metric",
        (thread_metric, Unit::PerSecond),
        scenario::tests::<P>(),
    );
    let hot_idle = |scenario: usize, quantity: usize| groups[0].1[scenario][quantity][0][0];
    let residual = Residual { name, split: [0, 1, 2, 3].map(|t| hot_idle(0, t)), sum: hot_idle(1, 0) };
    (residual, groups)
}

/// Adds rows without variants, and their probes.
fn add_components<M: Machine + Clone + Sync + 'static, P: Port>(
    probes: &mut Probes<M>,
    stand: &Rc<RefCell<Stand>>,
    name: &str,
    suite: &str,
    (table, unit): (TableSlot, Unit),
    components: impl IntoIterator<Item = scenario::Component>,
) {
    for component in components {
        let what = format!("executive, {name}: {suite} {}", component.segment.replace('_', " "));
        let stand = Rc::clone(stand);
        let slot = probes.row(table, component.row::<P>(unit));
        probes.several(Setting::AsStarted, [slot], move |context| {
            begin::<M, P>(context, &what);
            // The run may lengthen the events of rows that this one is not the first of.
            context.lengthen(&vec![slot; component.place + 1]);
            let taken = stand.borrow_mut().under(BackgroundLoad::Idle).and_then(|bench| component.take(bench));
            context.enter(slot, taken);
        });
    }
}

/// Adds the services that only this project's executive has, on one back-end.
fn add_services<M: Machine + Clone + Sync + 'static, K: BackendKind>(
    probes: &mut Probes<M>,
    tables: &Tables,
    stand: &Rc<RefCell<Stand>>,
    executive: usize,
) {
    let (name, table) = (EXECUTIVES[executive].1, tables.services[executive]);
    add_components::<M, Ours<K>>(probes, stand, name, "service", (table, Unit::Ns), scenario::services::<K>());
}

/// The probes of one executive under this load. The load takes long to start, so all executives are measured under it
/// one after the other.
fn under<M: Machine + Clone + Sync + 'static, P: Port>(
    probes: &mut Probes<M>,
    stand: &Rc<RefCell<Stand>>,
    name: &str,
    load: BackgroundLoad,
    groups: &[GroupRows],
) {
    for (cache_index, cache) in Cache::ALL.into_iter().enumerate() {
        for (group, rows) in groups {
            for (scenario, rows) in group.scenarios.iter().zip(rows) {
                let slots: Vec<Slot> = rows.iter().map(|row| row[load as usize][cache_index]).collect();
                let names: Vec<&str> = scenario.quantities.iter().map(|quantity| quantity.segment).collect();
                let what = format!(
                    "executive, {name}: {} {} {} {}",
                    group.segment.replace('_', " "),
                    names.join(" "),
                    cache.segment(),
                    load.segment()
                );
                let (stand, run) = (Rc::clone(stand), scenario.run);
                probes.several(Setting::AsStarted, slots.clone(), move |context| {
                    begin::<M, P>(context, &what);
                    let mut stand = stand.borrow_mut();
                    let bench = match stand.under(load) {
                        Ok(bench) => bench,
                        Err(absent) => return context.absent_all(slots, &absent),
                    };
                    for (slot, found) in slots.into_iter().zip(run(bench, cache)) {
                        context.enter(slot, found.and_then(|series| series.reading(cache, bench)));
                    }
                });
            }
        }
    }
}

/// The note about the word *loaded*: verified if the load always kept half of its own rate.
fn load_sentence(rates: &[[f64; 2]]) -> Option<String> {
    let [alone, meanwhile] = rates.iter().copied().min_by(|a, b| (a[1] / a[0]).total_cmp(&(b[1] / b[0])))?;
    let verdict = if meanwhile >= LOAD_SHARE * alone { "Loaded is verified" } else { "Loaded is not verified" };
    Some(format!(
        "{verdict}: the load streamed {:.1} GB/s while cells were measured and {:.1} GB/s just before.",
        meanwhile / 1e9,
        alone / 1e9
    ))
}

/// Reports the progress, and adds the remarks of the executive once.
fn begin<M: Machine + Clone + Sync, P: Port>(context: &mut Context<'_, M>, what: &str) {
    P::remarks().into_iter().for_each(|remark| context.remark_once(remark));
    context.say(what);
}

fn slice<M: Machine + Clone + Sync>(context: &Context<'_, M>) -> Nanos {
    // The set-up of runs takes the same time at every effort, so it weighs most in a short sheet.
    let share = if context.effort == Effort::Quick { SLICE_SHARE_QUICK } else { SLICE_SHARE };
    context.share(share).min(SLICE_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaded_is_verified_only_if_the_load_kept_half_its_speed_all_the_time() {
        assert_eq!(load_sentence(&[]), None);
        assert!(load_sentence(&[[8e9, 7e9], [8e9, 4e9]]).is_some_and(|said| said.starts_with("Loaded is verified")));
        let slow = load_sentence(&[[8e9, 7e9], [8e9, 3.9e9]]).expect("there was a load");
        assert!(slow.starts_with("Loaded is not verified") && slow.contains("3.9 GB/s"), "{slow}");
    }

    #[test]
    fn every_cell_of_every_executive_is_declared() {
        let probes = probes::<hairspring_machine::Host>();
        let declared: std::collections::BTreeSet<&str> =
            probes.declaration().tables.iter().flat_map(|table| &table.rows).map(|row| row.id.as_str()).collect();
        assert_eq!(declared.len(), 4 * (24 + 8 + 12 + 8 + 16 + 4 + 1 + 6 + 8) + 1 + 3 * 12);
    }
}
