//! The live tap: other processes read a running recording without disturbing it.
//!
//! ```text
//!   recorder                                    reader
//!   Producer ──► Ring ──────────────────────►  View    mapped read-only
//!           └──► RingPage ──────────────────────►  RingPage    mapped read-only
//!   TapOffer ──  Unix socket, SCM_RIGHTS ───►  TapReader: copies, checks, counts what it missed
//! ```
//!
//! A [`TapOffer`] hands two sealed descriptors to every process that may open its socket. A [`TapReader`] maps them,
//! copies frames, and checks afterwards whether the producer wrote there meanwhile. The producer does not know its
//! readers, makes no call for them and never waits for one: a stopped or dead reader costs the recording nothing. A
//! [`TapTrace`] reduces a stream to the smallest and largest value of each piece of time, so that no spike is lost in a
//! picture.
//!
//! The layout of the memory is documented in `docs/live-tap.md`.

mod greeting;
pub mod offer;
pub mod place;
pub mod reader;
pub mod trace;

pub use offer::{TapCounts, TapOffer};
pub use place::TapPlace;
pub use reader::{TapError, TapPiece, TapReader, TapState};
pub use trace::TapTrace;
