//! Judges a machine by its figures: the first page of its sheet, and whether it can do a job.
//!
//! [`summarize`] makes the first page, on every system. [`job`] answers whether this computer can do a job, [`soak`]
//! watches the job for hours, [`doctor`] finds settings that help, and [`watch`] names the culprits that delay the
//! threads of another program: these need Linux. The crate knows no formats: the command prints.

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
