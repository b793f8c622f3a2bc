//! The parts that differ between systems: how a file is mapped, and what happens when it is truncated.
//!
//! The executive, which is for Linux, also asks for the stack pointer, for a word of the thread, and for forks and
//! cancelled threads.
//!
//! Both files of a system have `Mapped` with `open`, `bytes`, `read` and `write`. The caller makes sure that the word
//! lies in the file, and writes only if the file was opened for writing.

#[cfg(target_os = "linux")]
mod linux;
/// cbindgen:ignore
#[cfg(target_os = "linux")]
mod posix;
#[cfg(target_os = "linux")]
mod stack;
#[cfg(target_os = "windows")]
mod windows;
#[cfg(target_os = "linux")]
mod word;

#[cfg(target_os = "linux")]
pub(crate) use linux::Mapped;
#[cfg(target_os = "linux")]
pub(crate) use posix::{Uncancelled, in_each_child};
#[cfg(target_os = "linux")]
pub(crate) use stack::stack_pointer;
#[cfg(target_os = "windows")]
pub(crate) use windows::Mapped;
#[cfg(target_os = "linux")]
pub(crate) use word::{set_word, word};
