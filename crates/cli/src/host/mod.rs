//! Differences between systems: commands that only Linux has, disks to measure, and signals.
//!
//! Both files have the same names: `GROUPS`, `SystemCommand`, `before_measuring`, `DiskArguments`, `asking_to_end`,
//! `as_any_new_file`, `ignore_the_limit_of_files`.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "windows")]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(target_os = "windows")]
pub(crate) use windows::*;
