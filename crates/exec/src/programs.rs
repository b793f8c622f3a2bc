//! Three programs of the kind that a lab writes, each small enough to read at one sitting. They are examples of how to
//! use the executive, and run on every back-end.
//!
//! They use public items of this crate only. Tasks that are not urgent send a program's findings out of the executive
//! through a channel; the program puts the findings together after the run.
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

mod catalogue;
mod finish;
mod run;

pub use catalogue::{Program, all};
pub use run::{BACKENDS, Failed, ProgramRun, backend, backends};
