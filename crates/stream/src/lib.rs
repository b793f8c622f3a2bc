//! Lossless recording: `Source → Ring → Recorder → files`, and back through a `Player`.

pub mod bell;
pub mod gap;
pub mod layout;
pub mod ledger;
pub mod memory;
pub mod pattern;
pub mod ring;
pub mod source;
pub mod store;
pub mod units;

pub use gap::{Cause, Gap, Skip};
pub use layout::{Container, Layout};
pub use ledger::{Ledger, Verdict};
pub use memory::{Memory, Pages};
pub use ring::{Consumer, Producer, ring};
pub use source::Source;
pub use store::Store;
pub use units::{ByteRate, Bytes, Frames, SampleRate, Samples};
