//! Series: recordings that last for weeks, in segments. Each segment is a recording of its own; frames are counted
//! through all of them.
//!
//! ```text
//!   x-000000 │ x-000001 │ x-000002 │ …       segments: three files each, in every target directory
//!   x.hairspring-series                      the index: which segments there are, and which were deleted
//!   x.sigmf-collection                       the closed segments, for every SigMF tool
//! ```
//!
//! **Problem.** A recording of weeks is one file that cannot be copied, verified or deleted in parts, and a disk holds
//! only part of it.
//!
//! **Solution.** The [`SeriesRecorder`] cuts the stream between two blocks. The files of the next segment are made and
//! reserved in advance, so a cut costs no more than another file name for the next block; another thread syncs, closes
//! and describes the old segment. [`Retention`] bounds the space: it deletes whole segments, the oldest first, and
//! never a pinned one.
//!
//! **Conditions.** A cut waits until the next segment is ready and the previous one is closed. Meanwhile the segment
//! becomes longer by whole blocks, which the report counts; nothing is lost by that.
//!
//! **What is not promised.** Deleted segments cannot be restored. Retention never touches a file that the index does
//! not list or whose journal has another id.

mod ages;
pub mod collection;
mod deletion;
pub mod keeper;
mod pins;
pub mod recorder;
pub mod recover;
pub mod retention;
pub mod segment_worker;

pub use keeper::KeepWish;
pub use pins::{Pinned, keep};
pub use recorder::{SegmentLength, SeriesRecorder, SeriesSummary};
pub use retention::{Retention, RoomLeft};
