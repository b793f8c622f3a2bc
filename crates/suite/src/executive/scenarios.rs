//! All scenarios on one executive, cell by cell. The ids of cells have no chapter and no executive in them:
//! `waitwake.t1.hot.idle`, `rhealstone.preemption`, `thread_metric.message`.

use hairspring_sheet::{Method, Unit, Value};

use super::bench::{Bench, Cache, Load};
use super::port::Port;
use super::{clock_service, interrupts, mailbox, rhealstone, switching, thread_metric, waitwake};

/// Measures those cells of one load that are wanted, and enters each as soon as it is known. Cells that belong together are
/// measured together if one of them is wanted. Rhealstone, Thread-Metric and the longest times belong to [`Load::Idle`].
pub fn run_scenarios<P: Port>(
    bench: &Bench,
    load: Load,
    wanted: &mut dyn FnMut(&str) -> bool,
    enter: &mut dyn FnMut(&str, Value),
) {
    for cache in Cache::ALL {
        let suffix = format!("{}.{}", cache.segment(), load.segment());
        for (scenario, quantities, measure) in scenarios::<P>() {
            let id = |quantity: &str| match quantity {
                "" => format!("{scenario}.{suffix}"),
                _ => format!("{scenario}.{quantity}.{suffix}"),
            };
            if quantities.iter().any(|quantity| wanted(&id(quantity))) {
                for (quantity, value) in measure(bench, cache) {
                    enter(&id(quantity), value);
                }
            }
        }
    }
    if load == Load::Loaded {
        return;
    }
    for (quantity, polling) in [("interrupt_latency.lock", false), ("interrupt_latency.poll", true)] {
        if wanted(quantity) {
            enter(quantity, interrupts::longest::<P>(bench, polling));
        }
    }
    for (component, _, _) in rhealstone::COMPONENTS {
        let id = format!("rhealstone.{component}");
        if wanted(&id) {
            enter(&id, rhealstone::component::<P>(bench, component));
        }
    }
    for (test, _, _) in thread_metric::TESTS {
        let id = format!("thread_metric.{test}");
        if wanted(&id) {
            enter(&id, thread_metric::test::<P>(bench, test));
        }
    }
}

/// A scenario: its segment, its quantities, and how they are measured.
type Scenario = (&'static str, &'static [&'static str], fn(&Bench, Cache) -> Vec<(&'static str, Value)>);

fn scenarios<P: Port>() -> [Scenario; 9] {
    [
        ("waitwake", &["t1", "t2", "t3", "t4"], waitwake::split::<P>),
        ("waitwake", &["sum"], |bench, cache| loops::<P>(bench, cache, "sum", true)),
        ("waitwake", &["roundtrip"], |bench, cache| loops::<P>(bench, cache, "roundtrip", false)),
        ("mailbox", &["t1", "t2"], mailbox::split::<P>),
        ("timer", &["t1", "t2", "t3"], clock_service::timers::<P>),
        ("delay", &["t1", "t2"], clock_service::delays::<P>),
        ("isp", &["t1", "t2"], interrupts::raw::<P>),
        ("isp", &["t3", "t4"], interrupts::conforming::<P>),
        ("task_switch", &[""], |bench, cache| vec![("", switching::task_switch::<P>(bench, cache))]),
    ]
}

fn loops<P: Port>(
    bench: &Bench,
    cache: Cache,
    quantity: &'static str,
    with_trigger: bool,
) -> Vec<(&'static str, Value)> {
    let taken = waitwake::closed::<P>(bench, cache, with_trigger);
    vec![(quantity, taken.map_or_else(Value::Absent, |mut taken| taken.value(0, Unit::Ns, Method::Diff, bench)))]
}
