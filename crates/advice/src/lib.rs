//! What the figures of a machine mean: the first page of its sheet, and whether it can do a job.
//!
//! [`summarize`] makes the first page, on every system. [`job`] says whether this computer can do a job, [`soak`] watches it for hours,
//! [`doctor`] says what would make it better, and [`watch`] who delays the threads of another program: these need Linux. The crate knows no
//! formats: the command prints.

#[cfg(target_os = "linux")]
pub mod doctor;
#[cfg(target_os = "linux")]
pub mod job;
#[cfg(target_os = "linux")]
pub mod soak;
mod summary;
#[cfg(target_os = "linux")]
pub mod watch;

pub use summary::summarize;
