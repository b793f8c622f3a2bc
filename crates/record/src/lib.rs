//! Lossless recording: from a source that keeps its own clock to disk, with nothing lost or everything lost accounted
//! for.
//!
//! ```text
//!  Source ──→ Ring ──→ Recorder ──→ Store: data, metadata, journal ──→ recover, compress, join
//!    └─ Gaps ──┴────────→ Ledger: produced = stored + under way + declared lost
//! ```
//!
//! The [`Recorder`](recorder::Recorder) takes blocks from the ring without a copy, computes the CRC-32C of each, and
//! writes them through a [`Store`](hairspring_store::Store): io_uring with registered buffers that bypasses the page
//! cache. Where that is unavailable the store falls back to simpler calls and reports it. A journal makes the recording
//! readable after any end. A recording is SigMF, so NumPy and other tools can read it. Its
//! [`Ledger`](hairspring_recording::Ledger) accounts for every byte. The crate `hairspring-recording` reads recordings;
//! only this crate changes their files.
//!
//! Start with [`session::record`], which runs everything on threads; the example `record` is a complete program. Every
//! part is a state machine, so tests also drive it through virtual time, on a disk that fails as scripted
//! (`hairspring_store::scripted`, with the feature `testing`).
//!
//! # Conditions
//! Linux 5.11 for io_uring as it is used here (older: plain calls). A recording survives the end of its process at any
//! moment; after a power cut it is whole up to its last sync, on disks that keep what they have acknowledged.

pub mod recorder;
pub mod series;
pub mod session;
mod upkeep;

pub use upkeep::{compress, join, recover};
