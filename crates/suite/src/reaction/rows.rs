//! The rows of the chapter, declared.

use hairspring_device::Protocol;
use hairspring_sheet::{Method, Unit};

use crate::registry::{ChapterDeclaration, RowDeclaration, TableDeclaration};

/// What events come from: segment, name for people, what is stamped as the event.
pub(super) const SOURCES: [(&str, &str, &str); 9] = [
    ("timer", "kernel timer", "the time it was due"),
    ("precise", "precise timer", "the time it was due"),
    ("eventfd", "eventfd", "just before the write"),
    ("pipe", "pipe", "just before the write"),
    ("udp", "UDP datagram", "when the kernel took the packet"),
    ("multicast", "UDP to a group", "when the kernel took the packet"),
    ("software", "signal, asleep", "when it was fired"),
    ("polled", "signal, polled", "when it was fired"),
    (PPS, "pulse of a clock", "when the kernel took the interrupt"),
];

/// The source whose events come once in a second.
pub(super) const PPS: &str = "pps";

/// Lines of real devices, which nothing on a machine drives by itself.
pub(super) const WIRED: [(&str, &str, &str); 3] = [
    ("gpio", "edge of a GPIO line", "when the kernel took the interrupt"),
    ("parport", "interrupt of a parallel port", "when the thread had it"),
    ("uio", "interrupt of a card", "when the thread had it"),
];

/// The stages: segment, label, what lies in it.
pub(super) const STAGES: [(&str, &str, &str); 5] = [
    ("total", "event → I/O done", "from the event until the access of the device is done"),
    ("wake", "event → wake", "from the event until the waiting thread has it"),
    ("start", "wake → action", "until the first instruction of the action"),
    ("lock", "lock", "from the request of the device's lock until it is granted"),
    ("io", "I/O", "from the lock until the access of the device is done"),
];

/// The labels of FESA's latency note, with the priority that Linux has for them.
pub(super) fn priority(label: u8) -> u8 {
    label.min(99)
}

/// The rows of that note's Table 1, and two with three processes.
pub(super) const ROWS: [&[u8]; 9] =
    [&[17, 17], &[50, 17], &[17, 50], &[100, 50], &[50, 50], &[100, 100], &[17, 100], &[50, 17, 25], &[17, 17, 17]];

/// A row of the matrix in ids.
pub(super) fn segment(labels: &[u8]) -> String {
    labels.iter().map(u8::to_string).collect::<Vec<_>>().join("_")
}

const LIMITS_CALL: &str = "at most 20,000 samples, and a fiftieth of the chapter's time";
const LIMITS_SOURCE: &str = "events at least 0.2 ms apart for a share of the chapter's time, at most 4,096";
const LIMITS_PULSES: &str = "the pulses of /dev/pps0 for a share of the chapter's time, at least 5 s";
const LIMITS_MATRIX: &str = "100 events for each cell, 25 at the least effort, 1,000 at the greatest";

pub(crate) fn declare() -> ChapterDeclaration {
    let mut tables = vec![calls()];
    tables.extend(SOURCES.iter().chain(&WIRED).map(|source| by_source(*source)));
    tables.extend(Protocol::ALL.iter().map(|protocol| by_lock(*protocol)));
    tables.push(inversion());
    tables.push(chains());
    ChapterDeclaration {
        id: "reaction",
        title: "Reaction",
        intro: "An event from outside releases an action that drives a device: how long each stage takes for each kind of \
                source, with the action on a thread of its own, pinned and under SCHED_FIFO (the polled source: SCHED_OTHER), \
                and a virtual board without access times. Then the experiment of FESA's latency note (2006): processes that \
                share one CPU and one board are released by one event, each a chain of three threads that hand over, of which \
                the last drives the board under its lock.",
        tables,
    }
}

fn calls() -> TableDeclaration {
    let calls = [
        ("read", "read the input lines"),
        ("write", "write the output lines"),
        ("init", "initialise the board"),
        (
            "dispatch",
            "all that a unit does for an event that has come already: take it, stamp every stage, lock and unlock an \
                      idle board that is not accessed, and put the stamps into the ring",
        ),
    ];
    let rows = calls.map(|(call, measures)| {
        let method = if call == "dispatch" { Method::Diff } else { Method::Stamp };
        RowDeclaration::new(format!("reaction.call.{call}"), call.to_owned(), Unit::Ns, method, measures)
    });
    TableDeclaration {
        id: "reaction.call".to_owned(),
        title: "Device calls, on a virtual board with the access times of FESA's (1.25, 1.25 and 3.75 µs)".to_owned(),
        limits: LIMITS_CALL,
        rows: rows.into(),
        diagram: None,
    }
}

fn by_source((source, name, event): (&str, &str, &str)) -> TableDeclaration {
    let rows = STAGES.map(|(stage, label, measures)| {
        let id = format!("reaction.{source}.{stage}");
        let measures = format!("{measures}; the event is stamped {event}");
        RowDeclaration::new(id, label.to_owned(), Unit::Ns, Method::Stamp, measures)
    });
    TableDeclaration {
        id: format!("reaction.{source}"),
        title: format!("Event to I/O, {name}"),
        limits: if source == PPS { LIMITS_PULSES } else { LIMITS_SOURCE },
        rows: rows.into(),
        diagram: None,
    }
}

fn by_lock(protocol: Protocol) -> TableDeclaration {
    let mut rows = Vec::new();
    for labels in ROWS {
        for number in 1..=labels.len() {
            let id = format!("reaction.matrix.{}.{protocol}.process{number}", segment(labels));
            let all: Vec<String> = labels.iter().map(u8::to_string).collect();
            let label = format!("{}: process {number}", all.join("/"));
            let measures = format!(
                "from the event until process {number} of {} has driven the board; priorities {}",
                labels.len(),
                labels.iter().map(|label| priority(*label).to_string()).collect::<Vec<_>>().join(", ")
            );
            rows.push(RowDeclaration::new(id, label, Unit::Ns, Method::Stamp, measures));
        }
    }
    TableDeclaration {
        id: "reaction.matrix".to_owned(),
        title: format!("Processes of different priority on one CPU and one board, lock {protocol}"),
        limits: LIMITS_MATRIX,
        rows,
        diagram: None,
    }
}

fn inversion() -> TableDeclaration {
    let rows = Protocol::ALL.map(|protocol| {
        RowDeclaration::new(
            format!("reaction.inversion.{protocol}.high"),
            format!("lock {protocol}"),
            Unit::Ns,
            Method::Stamp,
            "from the event until the most urgent process has driven the board, which a process of the lowest priority has \
             for 1 ms, while one in the middle computes for 3 ms",
        )
    });
    TableDeclaration {
        id: "reaction.inversion".to_owned(),
        title: "Priority inversion: an urgent process meets a board that is taken".to_owned(),
        limits: LIMITS_MATRIX,
        rows: rows.into(),
        diagram: None,
    }
}

fn chains() -> TableDeclaration {
    let kinds = [
        (
            "process",
            "a process of its own",
            "from the event until a chain alone, in a process of its own, has driven the board",
        ),
        ("thread", "threads of this process", "the same with its three threads in the process that fires the event"),
    ];
    let rows = kinds.map(|(kind, label, measures)| {
        RowDeclaration::new(format!("reaction.chain.{kind}.total"), label.to_owned(), Unit::Ns, Method::Stamp, measures)
    });
    TableDeclaration {
        id: "reaction.chain".to_owned(),
        title: "One chain alone: thread against process".to_owned(),
        limits: LIMITS_MATRIX,
        rows: rows.into(),
        diagram: None,
    }
}
