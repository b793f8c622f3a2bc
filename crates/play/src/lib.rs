//! Plays recordings to a [`Sink`] on time, and exports them as NumPy, CSV and HDF5.
//!
//! ```text
//!  Recording ──→ Player ──→ Ring ──→ Feed ──→ Sink
//!       └──────→ export
//! ```
//!
//! The [`player`] reads the blocks of a recording ahead, checks each, and feeds a sink that has a clock of its own and
//! never waits. An [`export`] holds the same samples in a form that other programs read.

pub mod export;
pub mod player;
pub mod sink;

pub use player::{Track, play};
pub use sink::Sink;
