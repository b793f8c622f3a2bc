//! What differs from one system to the next: the commands that only Linux has, where disks are measured, and signals.
//!
//! Equal names in both files: `SystemCommand`, `DiskArguments`, `asking_to_end`, `as_any_new_file`.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
pub(crate) mod system;
#[cfg(target_os = "windows")]
#[path = "windows.rs"]
pub(crate) mod system;
