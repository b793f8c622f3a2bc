//! Lossless recording: from a card that keeps its own clock to disk, and back, with nothing lost or everything lost accounted
//! for.
//!
//! ```text
//!  Source ──→ Ring ──→ Recorder ──→ data, metadata, journal        Recording ──→ Player ──→ Sink
//!    │         │ └──→ Tap ──→ Monitor                              verify, recover, join, export
//!    └─ Gaps ──┴────────→ Ledger: produced = stored + under way + declared lost
//! ```
//!
//! A [`Source`] is clocked and never waits: what does not fit is a [`Gap`] with its first frame, length and cause. The
//! [`ring`](mod@ring) is mapped twice in a row, so that blocks go to the disk from where they lie. The
//! [`Recorder`](recorder::Recorder) writes them through a [`Store`] (io_uring with registered buffers, past the page cache, and a ladder
//! of fallbacks that it reports), checks each with CRC-32C, and keeps a journal from which the recording can be understood
//! after any end. A recording is SigMF ([`sigmf`]), so numpy and others can read it; its [`Ledger`] says what it is worth.
//!
//! The quickest way in is [`session::record`], which runs all of it on threads; the example `record` shows it whole. Every
//! part of it is a state machine that can also be driven through virtual time, on a disk that fails as a script says
//! ([`store::scripted`]).
//!
//! # Conditions
//! Linux 5.11 for io_uring as it is used here (older: plain calls). A recording survives the end of its process at any moment; after
//! a power cut it is whole up to its last sync, on disks that keep what they have acknowledged.

pub mod beginning;
pub mod bell;
pub mod card;
pub mod export;
pub mod gap;
pub mod join;
pub mod journal;
pub mod layout;
pub mod ledger;
pub mod maxrate;
pub mod memory;
pub mod monitor;
pub mod pattern;
pub mod plan;
pub mod player;
pub mod recorder;
pub mod recording;
pub mod recover;
pub mod ring;
pub mod session;
pub mod sigmf;
pub mod sink;
pub mod source;
pub mod store;
pub mod timeline;
pub mod trigger;
pub mod units;
pub mod verify;

pub use card::{Card, CardError};
pub use gap::{Cause, Gap, Skip};
pub use layout::{Container, Layout};
pub use ledger::{Ledger, Verdict};
pub use memory::{Memory, Pages};
pub use pattern::Pattern;
pub use ring::{Consumer, Producer, ring};
pub use source::Source;
pub use store::Store;
pub use units::{ByteRate, Bytes, Frames, SampleRate, Samples};
