//! Series: recordings that last for weeks, in segments. Each segment is a recording of its own; frames are counted through all of them.
//!
//! ```text
//!   x-000000 │ x-000001 │ x-000002 │ …       segments: three files each, in every target directory
//!   x.hairspring-series                      the index: which segments there are, and which were deleted
//!   x.sigmf-collection                       the closed segments, for every SigMF tool
//! ```
//!
//! **Problem.** A recording of weeks is one file that nobody can copy, prove or delete in parts, and a disk holds only so much of it.
//!
//! **Solution.** The [`SeriesRecorder`] cuts the stream between two blocks. The files of the next segment are made and reserved before, so a
//! cut costs no more than another file name for the next block; the old segment is synced, closed and described on another thread. What
//! keeps the space bounded is [`Retention`]: it deletes whole segments, the oldest first, and never one that is pinned.
//!
//! **Conditions.** A cut waits until the next segment is ready and the one before is closed. Then a segment becomes longer by whole blocks, which
//! the report counts; nothing is lost by that.
//!
//! **What is not promised.** What retention deletes is gone. It never touches a file that the index does not list or whose journal has
//! another id.

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
