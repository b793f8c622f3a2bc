//! Reads recordings: the contents of their files, which frames exist, which are missing and why, and when each was
//! taken.
//!
//! ```text
//!   metadata (SigMF) ──┐
//!   journals ──────────┼──► Recording ──► blocks, excerpts, verify      a program that only reads needs nothing else
//!   index of a series ─┘
//! ```
//!
//! [`Recording`] opens all members of a recording, or all segments of a [`series`]. It trusts journals and checksums,
//! never sizes of files. [`verify`] proves every byte. The formats of the files are [`journal`], [`sigmf`] and
//! [`series::index`]; programs that write them (`hairspring-record`) use them from here. No function in this crate
//! changes a file.

mod account;
pub mod channels;
pub mod clock;
mod format;
mod recording;
pub mod series;
pub mod verify;

pub use account::{beginning, ledger, moment, timeline};
pub use format::{journal, sigmf};
pub use ledger::{Ledger, RecordingVerdict};
pub use recording::*;
