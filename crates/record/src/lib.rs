//! Lossless recording: from a source that keeps its own clock to disk, with nothing lost or everything lost accounted for.
//!
//! ```text
//!  Source ──→ Ring ──→ Recorder ──→ Store: data, metadata, journal        Recording ──→ verify, recover, join
//!    └─ Gaps ──┴────────→ Ledger: produced = stored + under way + declared lost
//! ```
//!
//! The [`Recorder`](recorder::Recorder) takes blocks from the ring without a copy, computes the CRC-32C of each, and writes them
//! through a [`Store`]: io_uring with registered buffers that bypasses the page cache. Where that is unavailable the store falls
//! back to simpler calls and reports it. A journal makes the recording readable after any end. A recording is SigMF ([`sigmf`]),
//! so NumPy and other tools can read it. Its [`Ledger`] accounts for every byte.
//!
//! Start with [`session::record`], which runs everything on threads; the example `record` is a complete program. Every part is a
//! state machine, so tests also drive it through virtual time, on a disk that fails as scripted (`store::scripted`, with the
//! feature `testing`).
//!
//! # Conditions
//! Linux 5.11 for io_uring as it is used here (older: plain calls). A recording survives the end of its process at any moment; after
//! a power cut it is whole up to its last sync, on disks that keep what they have acknowledged.

mod account;
pub mod channels;
pub mod clock;
mod format;
pub mod recorder;
pub mod recording;
pub mod series;
pub mod session;
pub mod store;
mod upkeep;

pub use account::{beginning, ledger, moment, timeline};
pub use format::{journal, sigmf};
pub use ledger::{Ledger, RecordingVerdict};
pub use store::Store;
pub use upkeep::{compress, join, recover, verify};
