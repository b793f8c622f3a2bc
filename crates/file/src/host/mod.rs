//! Chooses, once, how a new file becomes like another one on this system.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use linux::{Likeness, create_private};
#[cfg(not(target_os = "linux"))]
pub(crate) use windows::{Likeness, create_private};
