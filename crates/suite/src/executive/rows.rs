//! The rows of the chapter, declared: every scenario on every executive, with hot and dirty caches, idle and loaded.

use hairspring_sheet::{Method, Unit};

use super::bench::{Cache, Load};
use super::diagrams::diagram;
use super::{rhealstone, thread_metric};
use crate::registry::{ChapterDeclaration, RowDeclaration, TableDeclaration};

/// The executives: segment of the ids, name for people.
pub(super) const EXECUTIVES: [(&str, &str); 4] = [
    ("fiber", "fibers"),
    ("thread_up", "threads on one CPU"),
    ("thread_smp", "threads on all CPUs"),
    ("pthread_futex", "bare threads on a futex"),
];

/// A quantity: segment, label, what it measures.
type Quantity = (&'static str, &'static str, &'static str);

const WAITWAKE: [Quantity; 6] = [
    ("t1", "T1", "B calls trigger(A) until the first instruction of A, which is more urgent"),
    ("t2", "T2", "A calls wait until B continues"),
    ("t3", "T3", "B calls wake(A) until A continues after wait"),
    ("t4", "T4", "A ends until B continues"),
    ("sum", "T1+T2+T3+T4", "trigger, wait, wake and end in a closed loop"),
    ("roundtrip", "wake and wait", "wake and wait in a closed loop: a switch there and one back"),
];
const MAILBOX: [Quantity; 2] = [
    ("t1", "T1", "B calls send until A, which the message starts, runs with its copy of 12 bytes"),
    ("t2", "T2", "A ends until B continues after send"),
];
const TIMER: [Quantity; 3] = [
    ("t1", "T1", "a look at the clock with a timer set and nothing due"),
    ("t2", "T2", "the moment a timer is due until its procedure is entered, while a task computes"),
    ("t3", "T3", "the timer procedure returns until the interrupted task continues"),
];
const DELAY: [Quantity; 2] = [
    ("t1", "T1", "A calls delay until a less urgent task runs"),
    ("t2", "T2", "the moment a delay is due until its task continues, while a less urgent one computes"),
];
const ISP: [Quantity; 4] = [
    ("t1", "T1", "a source on another CPU writes until a raw interrupt procedure runs"),
    ("t2", "T2", "a raw interrupt procedure returns until the interrupted task continues"),
    ("t3", "T3", "a source on another CPU writes until an interrupt procedure with IspCtx runs"),
    ("t4", "T4", "an interrupt procedure with IspCtx returns until the interrupted task continues"),
];

const LIMITS: &str = "at most 10,000 samples of each cell and a fiftieth of a second; cells with more than 5 % of samples \
                      without proof are absent";
const LIMITS_LONGEST: &str =
    "eight runs of some ten thousand calls or fewer; each gives its longest time, which is one sample";

pub(crate) fn declare() -> ChapterDeclaration {
    let mut tables = Vec::new();
    let scenarios: [(&str, &str, &[Quantity]); 5] = [
        ("waitwake", "Wait/Wake", &WAITWAKE),
        ("mailbox", "Mailbox", &MAILBOX),
        ("timer", "Timers", &TIMER),
        ("delay", "Delay", &DELAY),
        ("isp", "ISP handler", &ISP),
    ];
    for (scenario, title, quantities) in scenarios {
        for (executive, name) in EXECUTIVES {
            tables.push(TableDeclaration {
                id: format!("executive.{executive}.{scenario}"),
                title: format!("{title}, {name}"),
                limits: LIMITS,
                rows: by_variant(executive, scenario, quantities),
                diagram: diagram(scenario),
            });
        }
    }
    for (executive, name) in EXECUTIVES {
        let switch = [("", "task switch", "yield between two equal tasks, less a yield with nobody to yield to")];
        tables.push(TableDeclaration {
            id: format!("executive.{executive}.task_switch"),
            title: format!("Task switch without the events that lead to it, {name}"),
            limits: LIMITS,
            rows: by_variant(executive, "task_switch", &switch),
            diagram: None,
        });
    }
    tables.extend(EXECUTIVES.map(|(executive, name)| interrupt_latency(executive, name)));
    tables.extend(EXECUTIVES.map(|(executive, name)| rhealstone(executive, name)));
    tables.extend(EXECUTIVES.map(|(executive, name)| thread_metric(executive, name)));
    ChapterDeclaration {
        id: "executive",
        title: "Executive",
        intro: "How long the services of a multitasking executive take: this project's on fibers, on threads of one CPU and \
                on threads of all, and bare threads on a futex as the reference. A and B are tasks; A is the more urgent. \
                The spans T1 to T4 are those of KADAK's AMX timing guide, and its diagrams are drawn beside; where the guide \
                leaves one open, the definition is ours and says so.",
        tables,
    }
}

/// Every quantity with each state of caches and load.
fn by_variant(executive: &str, scenario: &str, quantities: &[Quantity]) -> Vec<RowDeclaration> {
    let mut rows = Vec::new();
    for &(quantity, label, measures) in quantities {
        for load in Load::ALL {
            for cache in Cache::ALL {
                let between = if quantity.is_empty() { String::new() } else { format!("{quantity}.") };
                let (cache_segment, load_segment) = (cache.segment(), load.segment());
                rows.push(RowDeclaration::new(
                    format!("executive.{executive}.{scenario}.{between}{cache_segment}.{load_segment}"),
                    format!("{label} {cache_segment}, {load_segment}"),
                    Unit::Ns,
                    method(executive, scenario, quantity, cache),
                    format!("{measures}; {}, {}", meaning_of_cache(cache, quantity), meaning_of_load(load)),
                ));
            }
        }
    }
    rows
}

fn meaning_of_cache(cache: Cache, quantity: &str) -> &'static str {
    match cache {
        Cache::Hot => "caches as the round before left them",
        Cache::Dirty if matches!(quantity, "sum" | "roundtrip") => "caches written full before each round",
        Cache::Dirty => "caches written full before each event",
    }
}

fn meaning_of_load(load: Load) -> &'static str {
    match load {
        Load::Idle => "no load of ours",
        Load::Loaded => "another CPU streams through memory",
    }
}

/// How the cells of a quantity are taken.
fn method(executive: &str, scenario: &str, quantity: &str, cache: Cache) -> Method {
    let chained = executive == "fiber" && cache == Cache::Hot;
    match (scenario, quantity) {
        ("waitwake", "sum" | "roundtrip") | ("timer", "t1") | ("task_switch", _) => Method::Diff,
        ("waitwake" | "mailbox", _) | ("delay", "t1") if chained => Method::Diff,
        _ => Method::Stamp,
    }
}

fn interrupt_latency(executive: &str, name: &str) -> TableDeclaration {
    let row = |quantity: &str, label: &str, measures: &str| {
        let id = format!("executive.{executive}.interrupt_latency.{quantity}");
        RowDeclaration::new(id, label.to_owned(), Unit::Ns, Method::Stamp, measures)
    };
    let mut rows = vec![row(
        "lock",
        "longest time locked",
        "the longest time in which the executive keeps others out of its state while tasks trigger, wait, wake and end",
    )];
    if executive == "fiber" {
        rows.push(row(
            "poll",
            "longest time unpolled",
            "the longest time between two looks at interrupts in the same runs, the code of tasks included",
        ));
    }
    TableDeclaration {
        id: format!("executive.{executive}.interrupt_latency"),
        title: format!("Interrupt latency, {name}"),
        limits: LIMITS_LONGEST,
        rows,
        diagram: None,
    }
}

fn rhealstone(executive: &str, name: &str) -> TableDeclaration {
    let row = |&(component, label, measures): &(&str, &str, &str)| {
        let method = match component {
            "interrupt_latency" => Method::Stamp,
            "preemption" | "message_latency" if executive != "fiber" => Method::Stamp,
            _ => Method::Diff,
        };
        let id = format!("executive.rhealstone.{executive}.{component}");
        RowDeclaration::new(id, label.to_owned(), Unit::Ns, method, measures)
    };
    TableDeclaration {
        id: format!("executive.rhealstone.{executive}"),
        title: format!("Rhealstone components, {name}"),
        limits: LIMITS,
        rows: rhealstone::COMPONENTS.iter().map(row).collect(),
        diagram: None,
    }
}

fn thread_metric(executive: &str, name: &str) -> TableDeclaration {
    let row = |&(test, label, measures): &(&str, &str, &str)| {
        let id = format!("executive.thread_metric.{executive}.{test}");
        RowDeclaration::new(id, label.to_owned(), Unit::PerSecond, Method::Rate, measures)
    };
    TableDeclaration {
        id: format!("executive.thread_metric.{executive}"),
        title: format!("Thread-Metric, {name}"),
        limits: LIMITS,
        rows: thread_metric::TESTS.iter().map(row).collect(),
        diagram: None,
    }
}
