//! Windows: the chapters that need only the machine, and the clocks and sleeps by their names there.
//!
//! The ids are those of Linux if the meaning is the same: `clock_monotonic` is the reference, under any name.

use hairspring_machine::{Clock, ClockCall, Machine, SleepCall};
use hairspring_sheet::{Conditions, Note, NoteKind};
use serde::{Deserialize, Serialize};

use crate::callers::{Program, Start};
use crate::clocks::Read;
use crate::probe::Probes;

/// The clocks: segment of the id, name for people, and the call.
pub(crate) const READS: &[(&str, &str, Read)] = &[
    ("counter", "counter, bare", Read::Counter),
    ("counter_ordered", "counter, ordered", Read::CounterOrdered),
    ("now", "Timebase::now", Read::Now),
    ("now_ordered", "Timebase::now_ordered", Read::NowOrdered),
    ("std_instant", "std::time::Instant::now", Read::Call(ClockCall::StdInstant)),
    ("clock_monotonic", "QueryPerformanceCounter", Read::Call(ClockCall::ClockGettime(Clock::Monotonic))),
    ("clock_monotonic_coarse", "GetTickCount64", Read::Call(ClockCall::ClockGettime(Clock::MonotonicCoarse))),
    ("clock_realtime", "GetSystemTimePreciseAsFileTime", Read::Call(ClockCall::ClockGettime(Clock::Realtime))),
    ("clock_thread_cpu", "GetThreadTimes", Read::Call(ClockCall::ClockGettime(Clock::ThreadCpu))),
    ("clock_process_cpu", "GetProcessTimes", Read::Call(ClockCall::ClockGettime(Clock::ProcessCpu))),
];

/// The clocks whose smallest step is measured.
pub(crate) const STEPS: &[(&str, &str, Option<Clock>)] = &[
    ("counter", "counter", None),
    ("clock_monotonic", "QueryPerformanceCounter", Some(Clock::Monotonic)),
    ("clock_monotonic_coarse", "GetTickCount64", Some(Clock::MonotonicCoarse)),
    ("clock_realtime", "GetSystemTimePreciseAsFileTime", Some(Clock::Realtime)),
    ("clock_thread_cpu", "GetThreadTimes", Some(Clock::ThreadCpu)),
];

/// The system's sleeps: segment of the id, name for people, and the call.
pub(crate) const METHODS: &[(&str, &str, Option<SleepCall>)] = &[
    ("sleep", "Sleep", Some(SleepCall::Nanosleep)),
    ("std_sleep", "std::thread::sleep", Some(SleepCall::StdSleep)),
    ("waitable_timer", "waitable timer, high resolution", Some(SleepCall::ClockNanosleep)),
    ("hairspring", "hairspring", None),
];

/// The remedy for an untrusted counter.
pub(crate) const UNTRUSTED: &str =
    "see `hairspring clock`; `bcdedit /deletevalue useplatformclock` lets Windows choose the counter again";

/// The calling languages: `callers.c`, linked to the DLL. Rust's program needs `hairspring-device`, which is for Linux.
pub(crate) const PROGRAMS: [Program; 6] = [
    Program { language: "rust", start: Err("mapped devices in Rust are for Linux; see clocks.read and delays") },
    Program { language: "c", start: Err(DLL) },
    Program { language: "c_pointer", start: Err(DLL) },
    Program { language: "python", start: Err("the Python package is for Linux") },
    Program { language: "tcl", start: Err("the Tcl package is for Linux") },
    Program {
        language: "dll",
        start: Ok(Start {
            program: Some("callers-c.exe"),
            script: None,
            last: None,
            remedy: "compile `crates/suite/callers/callers.c` against hairspring.dll, and put both beside hairspring.exe",
        }),
    },
];
const DLL: &str = "on Windows C calls the DLL: see callers.dll";

/// Disks to measure: none on this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disks {}

/// The means of the chapters that only this system has: none.
#[derive(Clone, Copy, Default)]
pub(crate) struct Means;

impl Means {
    pub(crate) fn of(_disks: Option<SentDisks>) -> Self {
        Self
    }
}

/// Disks in the request for a round: none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum SentDisks {}

impl SentDisks {
    pub(crate) fn of(disks: &Disks) -> Self {
        match *disks {}
    }
}

/// The chapters that only this system has.
pub(crate) fn chapters<M: Machine + Clone + Sync + 'static>() -> Vec<Probes<M>> {
    Vec::new()
}

/// Notes at the head of a sheet made on this system.
pub(crate) fn notes(conditions: &Conditions) -> Vec<Note> {
    let mut notes = vec![Note {
        kind: NoteKind::Remark,
        text: "In this sheet CLOCK_MONOTONIC is QueryPerformanceCounter, SCHED_FIFO a level of the real-time priority class, \
               SCHED_OTHER the normal class, and clock_nanosleep a waitable timer of high resolution. Programs that call the library run on any CPU."
            .to_owned(),
        remedy: None,
    }];
    if let Some(wine) = conditions.value("host.wine") {
        notes.push(Note {
            kind: NoteKind::Warning,
            text: format!(
                "Made under {wine}: the figures say what programs for Windows get there, and nothing about Windows."
            ),
            remedy: Some("take the sheet on Windows".to_owned()),
        });
    }
    notes
}

/// Adds no culprits to the chapter *Disturbance*: a program cannot read such records on Windows.
pub(crate) fn disturbance<M: Machine>(_probes: &mut Probes<M>) {}

/// Page faults of this thread so far: Windows counts those of processes only.
pub(crate) fn page_faults() -> Option<[u64; 2]> {
    None
}

/// The idle states of a CPU: Windows does not name them.
pub(crate) fn idle_states() -> Option<String> {
    None
}

/// Keeping CPUs out of their idle states is not possible from a program here.
pub(crate) fn hold_awake() -> Option<std::fs::File> {
    None
}
