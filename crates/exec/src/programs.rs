//! Three programs of the kind that a lab writes, each small enough to read at one sitting: examples of how the executive is
//! used, and something to run and to look at on every back-end.
//!
//! They use nothing but what any user of this crate has. What a program found out leaves the executive through a channel,
//! sent by tasks that are not urgent, and is put together after the run.
//!
//! ```
//! use hairspring_exec::programs::{self, sampler};
//! # fn main() -> Result<(), programs::Failed> {
//! let run = sampler::run(programs::backend("sim")?, &sampler::SamplerSetup::default(), None)?;
//! assert_eq!(run.report.lost, 0);
//! println!("{run}");
//! # Ok(())
//! # }
//! ```

pub mod inversion;
pub mod sampler;
pub mod shutter;

mod account;
mod catalogue;
mod run;

pub use catalogue::{Program, all};
pub use run::{BACKENDS, Failed, ProgramRun, backend, backends};
