//! The parts that differ between systems: how a file is mapped, and what happens when it is truncated.
//!
//! Both files have `Mapped` with `open`, `bytes`, `read` and `write`. The caller makes sure that the word lies in the file, and
//! writes only if the file was opened for writing.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "windows")]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use linux::Mapped;
#[cfg(target_os = "windows")]
pub(crate) use windows::Mapped;
