//! Lossless recording: from a source that keeps its own clock to disk, with nothing lost or everything lost accounted for.
//!
//! ```text
//!  Source ──→ Ring ──→ Recorder ──→ Store: data, metadata, journal        Recording ──→ verify, recover, join
//!    └─ Gaps ──┴────────→ Ledger: produced = stored + under way + declared lost
//! ```
//!
//! The [`Recorder`](recorder::Recorder) takes blocks from where they lie in the ring and writes them through a [`Store`] (io_uring with
//! registered buffers, past the page cache, and falling back to simpler calls where it must, which it reports), checks each with CRC-32C, and keeps a journal
//! from which the recording can be understood after any end. A recording is SigMF ([`sigmf`]), so numpy and others can read it; its
//! [`Ledger`] says what it is worth.
//!
//! The quickest way in is [`session::record`], which runs all of it on threads; the example `record` shows it whole. Every
//! part of it is a state machine that can also be driven through virtual time, on a disk that fails as a script says
//! (`store::scripted`, with the feature `testing`).
//!
//! # Conditions
//! Linux 5.11 for io_uring as it is used here (older: plain calls). A recording survives the end of its process at any moment; after
//! a power cut it is whole up to its last sync, on disks that keep what they have acknowledged.

mod account;
mod format;
pub mod recorder;
pub mod recording;
pub mod session;
pub mod store;
mod upkeep;

pub use account::{beginning, ledger, timeline};
pub use format::{journal, sigmf};
pub use ledger::{Ledger, RecordingVerdict};
pub use store::Store;
pub use upkeep::{join, recover, verify};
