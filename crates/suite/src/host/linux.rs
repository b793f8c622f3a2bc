//! Linux: all chapters, and the clocks and sleeps by their names there.

use std::path::PathBuf;

use hairspring_machine::{Clock, ClockCall, Machine, SleepCall};
use hairspring_ring::Bytes;
use hairspring_sheet::{Conditions, Note};
use serde::{Deserialize, Serialize};

use crate::callers::{Program, Start};
use crate::clocks::Read;
use crate::probe::Probes;
pub use crate::transfer::Disks;
use crate::{culprits, executive, reaction, remedies, sound, transfer};

/// The clocks: segment of the id, name for people, and the call.
pub(crate) const READS: &[(&str, &str, Read)] = &[
    ("counter", "counter, bare", Read::Counter),
    ("counter_ordered", "counter, ordered", Read::CounterOrdered),
    ("now", "Timebase::now", Read::Now),
    ("now_ordered", "Timebase::now_ordered", Read::NowOrdered),
    ("std_instant", "std::time::Instant::now", Read::Call(ClockCall::StdInstant)),
    ("clock_monotonic", "clock_gettime MONOTONIC", Read::Call(ClockCall::ClockGettime(Clock::Monotonic))),
    ("clock_monotonic_raw", "clock_gettime MONOTONIC_RAW", Read::Call(ClockCall::ClockGettime(Clock::MonotonicRaw))),
    (
        "clock_monotonic_coarse",
        "clock_gettime MONOTONIC_COARSE",
        Read::Call(ClockCall::ClockGettime(Clock::MonotonicCoarse)),
    ),
    ("clock_boottime", "clock_gettime BOOTTIME", Read::Call(ClockCall::ClockGettime(Clock::Boottime))),
    ("clock_realtime", "clock_gettime REALTIME", Read::Call(ClockCall::ClockGettime(Clock::Realtime))),
    ("clock_tai", "clock_gettime TAI", Read::Call(ClockCall::ClockGettime(Clock::Tai))),
    ("clock_thread_cpu", "clock_gettime THREAD_CPUTIME", Read::Call(ClockCall::ClockGettime(Clock::ThreadCpu))),
    ("clock_process_cpu", "clock_gettime PROCESS_CPUTIME", Read::Call(ClockCall::ClockGettime(Clock::ProcessCpu))),
    ("gettimeofday", "gettimeofday", Read::Call(ClockCall::Gettimeofday)),
];

/// The clocks whose smallest step is measured.
pub(crate) const STEPS: &[(&str, &str, Option<Clock>)] = &[
    ("counter", "counter", None),
    ("clock_monotonic", "CLOCK_MONOTONIC", Some(Clock::Monotonic)),
    ("clock_monotonic_raw", "CLOCK_MONOTONIC_RAW", Some(Clock::MonotonicRaw)),
    ("clock_monotonic_coarse", "CLOCK_MONOTONIC_COARSE", Some(Clock::MonotonicCoarse)),
    ("clock_boottime", "CLOCK_BOOTTIME", Some(Clock::Boottime)),
    ("clock_realtime", "CLOCK_REALTIME", Some(Clock::Realtime)),
    ("clock_thread_cpu", "CLOCK_THREAD_CPUTIME_ID", Some(Clock::ThreadCpu)),
];

/// The system's sleeps: segment of the id, name for people, and the call.
pub(crate) const METHODS: &[(&str, &str, Option<SleepCall>)] = &[
    ("nanosleep", "nanosleep", Some(SleepCall::Nanosleep)),
    ("usleep", "usleep", Some(SleepCall::Usleep)),
    ("std_sleep", "std::thread::sleep", Some(SleepCall::StdSleep)),
    ("clock_nanosleep", "clock_nanosleep absolute", Some(SleepCall::ClockNanosleep)),
    ("hairspring", "hairspring", None),
];

/// The remedy for an untrusted counter.
pub(crate) const UNTRUSTED: &str =
    "see `hairspring clock`; a kernel started with `clocksource=tsc tsc=reliable` uses it nevertheless";

/// The calling languages.
pub(crate) const PROGRAMS: [Program; 6] = [
    Program { language: "rust", start: Ok(Start { program: None, ..CALLERS_C }) },
    Program { language: "c", start: Ok(CALLERS_C) },
    Program { language: "c_pointer", start: Ok(Start { last: Some("pointer"), ..CALLERS_C }) },
    Program {
        language: "python",
        start: Ok(Start {
            program: Some("python3"),
            script: Some(include_str!("../../callers/callers.py")),
            last: None,
            remedy: "`pip install ./bindings/python` in the project",
        }),
    },
    Program {
        language: "tcl",
        start: Ok(Start {
            program: Some("tclsh"),
            script: Some(include_str!("../../callers/callers.tcl")),
            last: None,
            remedy: "`cargo xtask install --prefix DIR`, and DIR/lib in TCLLIBPATH",
        }),
    },
    Program { language: "dll", start: Err("the DLL is called on Windows") },
];
const CALLERS_C: Start = Start {
    program: Some("callers-c"),
    script: None,
    last: None,
    remedy: "`cargo xtask install --prefix DIR` and take the sheet by DIR/bin/hairspring",
};

/// The means of the chapters that only this system has.
#[derive(Default)]
pub(crate) struct Means {
    /// Folders and limits for measuring disks.
    pub(crate) disks: Option<Disks>,
}

impl Means {
    pub(crate) fn of(disks: Option<SentDisks>) -> Self {
        Self { disks: disks.map(|SentDisks { folders, volume }| Disks { folders, volume: Bytes(volume) }) }
    }
}

/// Disks in the request for a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SentDisks {
    folders: Vec<PathBuf>,
    volume: u64,
}

impl SentDisks {
    pub(crate) fn of(disks: &Disks) -> Self {
        Self { folders: disks.folders.clone(), volume: disks.volume.0 }
    }
}

/// The chapters that only this system has.
pub(crate) fn chapters<M: Machine + Clone + Sync + 'static>() -> Vec<Probes<M>> {
    vec![executive::probes(), reaction::probes(), transfer::probes(), sound::probes(), remedies::probes()]
}

/// Notes at the head of a sheet made on this system: none.
pub(crate) fn notes(_conditions: &Conditions) -> Vec<Note> {
    Vec::new()
}

/// Adds the culprits to the chapter *Disturbance*, which only this system can name.
pub(crate) fn disturbance<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>) {
    culprits::declare(probes);
}

/// Minor and major page faults of this thread so far; `None` if unknown.
pub(crate) fn page_faults() -> Option<[u64; 2]> {
    use std::io::Read as _;
    // On the stack, because an allocation could cause a page fault itself.
    let mut buffer = [0; 1024];
    let length = std::fs::File::open("/proc/thread-self/stat").and_then(|mut file| file.read(&mut buffer)).ok()?;
    let text = std::str::from_utf8(buffer.get(..length)?).ok()?;
    // The name, in parentheses, may hold spaces; the state comes after it.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(7);
    let minor = fields.next()?.parse().ok()?;
    let major = fields.nth(1)?.parse().ok()?;
    Some([minor, major])
}

/// The idle states of the first CPU with their driver; `None` if the kernel names none.
pub(crate) fn idle_states() -> Option<String> {
    let read = |path: String| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let name = |state| read(format!("/sys/devices/system/cpu/cpu0/cpuidle/state{state}/name"));
    let states: Vec<String> = (0..).map_while(name).collect();
    let driver = read("/sys/devices/system/cpu/cpuidle/current_driver".to_owned())?;
    (!states.is_empty()).then(|| format!("{} (driver {driver})", states.join(", ")))
}

/// Keeps all CPUs out of their idle states until it is dropped; `None` if that is not permitted.
pub(crate) fn hold_awake() -> Option<hairspring_settings::IdleLatency> {
    hairspring_settings::IdleLatency::hold(0).ok()
}
