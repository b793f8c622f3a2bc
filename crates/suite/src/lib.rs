//! The probes: each measures one thing on a machine and yields figures; together they take the timing data sheet.
//!
//! [`registry`] lists every row that a sheet can have; [`select`] picks some; [`take_sheet`] measures them on any
//! [`Machine`](hairspring_machine::Machine), this computer or a simulated one.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//! use hairspring_machine::Host;
//! use hairspring_sheet::Build;
//! use hairspring_suite::{Effort, Request, select, take_sheet};
//!
//! let build = Build { version: "0.1.0".into(), commit: None, compiler: "rustc".into(), flags: "release".into() };
//! let rows = select(&["clocks".to_owned()])?;
//! let request =
//!     Request { rows, effort: Effort::Quick, cpu: None, priority: 80, redact: false, build, disks: None, program: None };
//! let sheet = take_sheet(&Host, &request, &AtomicBool::new(false), &mut |_| {})?;
//! println!("{} rows", sheet.rows().count());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod callers;
mod clocks;
mod conditions;
mod context;
mod delays;
mod disturbance;
mod host;
mod registry;
mod samples;
mod sheet_run;
mod sleeps;

pub use context::{Effort, Progress};
pub use host::system::*;
pub use registry::{ChapterDeclaration, RowDeclaration, TableDeclaration, UnknownProbe, is_under, registry, select};
pub use sheet_run::{Request, SheetError, take_sheet};
