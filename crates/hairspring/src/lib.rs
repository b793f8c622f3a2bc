//! Hairspring in one crate: exact delays, a multitasking executive, front ends, lossless recording, and timing data
//! sheets.
//!
//! This crate has no code. It re-exports the crates of the project under the names of their nouns, and the nouns of
//! [`time`] at its root. All crates have the same version, so that a program names one dependency and gets parts that
//! fit each other.
//!
//! # Modules
//! | module | what it has | feature | systems |
//! |---|---|---|---|
//! | [`time`] | time base, delays, long delays, profiles, real-time rights | always | Linux, Windows |
//! | [`machine`] | this computer, and a simulated one | always | Linux, Windows |
//! | `exec` | the executive: tasks, mailboxes, timers, interrupts | `exec` | Linux |
//! | `device`, `station` | digital lines, pulses, exposures; units that act on events | `device` | Linux |
//! | `source`, `ring`, `store`, `recording`, `record`, `tap`, `play`, `plan` | streams, recordings of them, and a look at one that runs | `record` | Linux |
//! | `sheet` | the data sheet as a document | `sheet` | Linux, Windows |
//! | `suite`, `advice` | taking a sheet, and judging a machine by it | `measure` | Linux, Windows |
//! | `archive` | sheets of many machines in one SQLite file | `archive` | Linux, Windows |
//! | `settings`, `culprit` | settings of the machine; who took a thread's time | `tune` | Linux |
//!
//! The features `exec`, `device`, `record` and `sheet` are on by default. With `default-features = false` only `time`
//! and `machine` remain, which need few other crates. A feature whose crates are for Linux adds nothing on Windows.
//!
//! # Example
//! ```
//! use hairspring::{Host, Nanos, Timebase};
//!
//! let timebase = Timebase::calibrate(Host)?;
//! let before = timebase.now();
//! let report = timebase.delay(Nanos::from_micros(50))?;
//! // Never early; how late it was is in the report.
//! assert!(timebase.now().since(before)? >= Nanos::from_micros(50));
//! assert!(report.late >= Nanos::ZERO);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod host;

#[cfg(feature = "measure")]
pub use hairspring_advice as advice;
#[cfg(feature = "archive")]
pub use hairspring_archive as archive;
pub use hairspring_machine as machine;
#[cfg(feature = "sheet")]
pub use hairspring_sheet as sheet;
#[cfg(feature = "measure")]
pub use hairspring_suite as suite;
pub use hairspring_time as time;
#[doc(no_inline)]
pub use hairspring_time::{
    Cause, Continuity, Cpu, DelayError, Epoch, EpochMismatch, Gaps, Grant, HeldTimebase, Host, Instant, LongDelay,
    Machine, Nanos, Policy, Profile, RealTime, RealTimeGuard, Report, Sim, Summary, Ticks, Timebase, Trust, Verdict,
    Watch,
};
pub use host::*;
