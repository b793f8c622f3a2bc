//! What the figures of a machine mean: the first page of its sheet, and whether it can do a job.
//!
//! [`summarize`] makes the first page, on every system. [`job`] says whether this computer can do a job, [`soak`] watches it for hours, and
//! [`doctor`] says what would make it better: these need Linux. The crate knows no
//! formats: the command prints.

#[cfg(target_os = "linux")]
pub mod doctor;
#[cfg(target_os = "linux")]
pub mod job;
#[cfg(target_os = "linux")]
pub mod soak;
mod summary;

pub use summary::summarize;
