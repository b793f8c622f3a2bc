//! What differs from one system to the next: the commands that only Linux has, and where disks are measured.
//!
//! Equal names in both files: `SystemCommand`, `DiskArguments`, `as_any_new_file`.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
pub(crate) mod system;
#[cfg(target_os = "windows")]
#[path = "windows.rs"]
pub(crate) mod system;
