//! `libhairspring`: the C interface, which the other languages stand on.
//!
//! Every function of `include/hairspring.h` is here, one file for each noun, with the text that the header repeats. What comes in
//! is checked at the door; what goes wrong becomes a code and a sentence; nothing unwinds into the caller ([`error`]). Handles are
//! told apart, counted and, after their end, remembered for a while ([`handle`]).
//!
//! No logic of time is here. Nothing below knows of C.

// In the order of the header.
pub mod error;

pub mod timebase;

pub mod delay;

pub mod long_delay;

pub mod prepared;

pub mod profile;

pub mod real_time;

pub mod window;

pub mod sheet;

mod handle;
mod host;
mod pointer;
