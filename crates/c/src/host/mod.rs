//! What differs from one system to the next: how a file is mapped, and what becomes of it when the file is cut.
//!
//! Equal names in both files: `Mapped`, with `open`, `bytes`, `read` and `write`. Who calls them has seen that the word lies in the file,
//! and writes only to what was opened for writing.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "windows")]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use linux::Mapped;
#[cfg(target_os = "windows")]
pub(crate) use windows::Mapped;
