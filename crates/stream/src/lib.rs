//! Lossless recording: `Source → Ring → Recorder → files`, and back through a `Player`.

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

pub use gap::{Cause, Gap, Skip};
pub use layout::{Container, Layout};
pub use ledger::{Ledger, Verdict};
pub use memory::{Memory, Pages};
pub use ring::{Consumer, Producer, ring};
pub use source::Source;
pub use store::Store;
pub use units::{ByteRate, Bytes, Frames, SampleRate, Samples};
