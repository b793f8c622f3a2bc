//! The probes: each measures one quantity on a machine and returns figures; together they take the timing data sheet.
//!
//! [`registry`] lists every row that a sheet can have; [`select`] picks some; [`take_sheet`] measures them on any
//! [`Machine`](hairspring_machine::Machine), this computer or a simulated one.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//! use hairspring_machine::Host;
//! use hairspring_sheet::Build;
//! use hairspring_suite::{Effort, SheetRequest, select, take_sheet};
//!
//! let build = Build { version: "0.1.0".into(), commit: None, compiler: "rustc".into(), flags: "release".into() };
//! let rows = select(&["clocks".to_owned()])?;
//! let effort = Effort::Quick;
//! let request = SheetRequest {
//!     rows, effort, cpu: None, priority: 80, redact: false, build, disks: None, rounds: effort.rounds(), seed: 1, program: None,
//! };
//! let sheet = take_sheet(&Host, &request, &AtomicBool::new(false), &mut |_| {})?;
//! println!("{} rows", sheet.rows().count());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod ab;
mod caches;
#[cfg(target_os = "linux")]
pub mod caller;
mod callers;
mod clocks;
mod conditions;
#[cfg(target_os = "linux")]
mod culprits;
mod delays;
mod disturbance;
#[cfg(target_os = "linux")]
pub mod executive;
mod host;
mod idle;
pub mod interleaving;
#[cfg(target_os = "linux")]
pub mod lost_time;
mod merge;
mod probe;
#[cfg(target_os = "linux")]
pub mod reaction;
#[cfg(target_os = "linux")]
mod remedies;
mod request;
mod round;
mod sheet_run;
mod sleeps;
#[cfg(target_os = "linux")]
pub mod soak_load;
#[cfg(target_os = "linux")]
mod sound;
#[cfg(target_os = "linux")]
pub mod transfer;
#[cfg(target_os = "linux")]
pub mod workload;

pub use ab::{AbError, AbOutcome, AbRequest, take_ab};
pub use conditions::read_conditions;
pub use host::system::Disks;
pub use probe::{
    ChapterDeclaration, Effort, RowDeclaration, SheetProgress, TableDeclaration, UnknownProbe, is_under, registry,
    select, similar_ids,
};
pub use request::{SheetError, SheetRequest};
pub use round::process::{COMMAND, serve as serve_round};
pub use sheet_run::{take_sheet, time_of_day, timestamp};
