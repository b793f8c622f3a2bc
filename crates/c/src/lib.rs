//! `libhairspring`: the C interface, on which the other languages are built.
//!
//! Every function of `include/hairspring.h` is here, one file for each noun; the header repeats its documentation.
//! Arguments are checked first. An error becomes a code and a sentence, and no panic unwinds into the caller
//! ([`error`]). Handles carry their kind, count their users, and stay allocated for a while after they were freed
//! ([`handle`]).
//!
//! This crate has no timing logic, and no crate below it knows about C.

// In the order of the header.
pub mod error;

pub mod timebase;

pub mod delay;

pub mod long_delay;

pub mod profile;

pub mod real_time;

pub mod window;

pub mod sheet;

/// cbindgen:ignore
#[cfg(target_os = "linux")]
pub mod exec;

/// cbindgen:ignore
#[cfg(target_os = "linux")]
pub mod tap;

mod handle;
mod host;
mod pointer;
