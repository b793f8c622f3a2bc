//! The buffer between the producer and the consumer of a stream: memory that is mapped twice in a row, and its cursors.
//!
//! ```text
//!  Producer ──→ Ring ──→ Consumer
//!    │           ├─────→ Tap ──→ Monitor
//!    │           └─────→ RingPage, for other processes
//!    └─ Gap: first frame, length and cause of what is missing
//! ```
//!
//! The [`ring`](fn@ring) is mapped twice in a row, so that each block is contiguous and goes to the disk without a
//! copy. Data that do not fit become a [`Gap`]. Amounts and rates have types ([`Bytes`], [`Frames`], [`SampleRate`]). A
//! [`Layout`] states how samples are stored in bytes.

mod end;
pub mod gap;
pub mod layout;
pub mod memory;
pub mod monitor;
pub mod notifier;
pub mod page;
mod polling;
mod ring;
pub mod sequenced;
pub mod units;

pub use end::{End, OnOverrun};
pub use gap::{Gap, GapBounds, GapCause, Skip};
pub use layout::{Container, Layout};
pub use memory::{Memory, Pages};
pub use polling::WaitCounts;
pub use ring::{Consumer, Fill, Producer, RingError, SharedRing, Tap, ring};
pub use units::{ByteRate, Bytes, Frames, SampleRate, Samples};
