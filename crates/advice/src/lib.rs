//! What the figures of a machine mean: the first page of its sheet, and whether it can do a job.
//!
//! [`summarize`] makes the first page, on every system. [`job`] says whether this computer can do a job, and
//! [`doctor`] what would make it do so better: these need Linux. The crate knows no
//! formats: the command prints.

#[cfg(target_os = "linux")]
pub mod doctor;
#[cfg(target_os = "linux")]
pub mod job;
mod summary;

pub use summary::summarize;
