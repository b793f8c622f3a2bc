//! [`Sink`]: takes a played stream; the counterpart of [`Source`](hairspring_source::Source).
//!
//! A clocked sink never waits. A frame that is not there when it is due is missing from the output and counted; it is
//! played neither later nor twice. Later frames are played at their own time.
//!
//! ```text
//! recording   0 1 2 3 4 5 6 7 8 9
//! disk        0 1 2 3 · · · 4 5 6 7 8 9      (a stall)
//! output      0 1 2 3 _ _ 6 7 8 9            (4 and 5 are missing; 6 is where it belongs)
//! ```
//!
//! Like a source, a sink is a state machine without threads: its caller passes the time, and the sink returns when it
//! must be called again. It takes its frames from a [`Feed`], which has filled the gaps of the recording.

pub mod feed;
pub mod output;
pub mod sound;
pub mod unclocked;
pub mod virtual_output;

use hairspring_machine::Instant;

use hairspring_ring::End;
use hairspring_ring::units::{Bytes, Frames, SampleRate};

pub use feed::{Feed, FeedPiece, GapFill};
pub use output::{Checked, Checker, Null, Output, Writer};
pub use sound::SoundOutput;
pub use unclocked::Unclocked;
pub use virtual_output::VirtualOutput;

/// The properties of a sink.
#[derive(Clone, Debug, PartialEq)]
pub struct SinkDescription {
    /// Frames per second; `None` if it takes them as fast as they come.
    pub rate: Option<SampleRate>,
    /// Size of its FIFO; 0 if it has none.
    pub fifo: Bytes,
    /// The name of the device.
    pub hardware: String,
}

/// The counters of a sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinkCounters {
    /// Frames of the recording that it took.
    pub recorded_frames: u64,
    /// Frames that it took in place of ones that are missing in the recording.
    pub filled_frames: u64,
    /// Frames that were not there when they were due.
    pub missing_frames: u64,
    /// Runs of such frames.
    pub underruns: u64,
    /// Frames that it took and that are in its FIFO, not yet played.
    pub fifo_frames: u64,
    /// Frames that it took before its clock started.
    pub primed_frames: u64,
}

/// Why frames were not there when they were due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// The buffer was empty: the disk was slower than the output for longer than the buffer lasts.
    BufferEmpty,
    /// The frames were in the buffer, but the hardware's FIFO was not filled in time: the machine was busy or stalled.
    ServedLate,
}

impl Late {
    /// Its stable name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::BufferEmpty => "buffer_empty",
            Self::ServedLate => "served_late",
        }
    }
}

/// A run of frames that were not there when they were due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Underrun {
    /// The index in the output of the first one: the number of frames that were due before it.
    pub first: Frames,
    /// Their number.
    pub frames: Frames,
    /// The cause, as far as it was known when the first was found missing.
    pub late: Late,
    /// When it was found.
    pub found: Instant,
}

/// When a sink must be served again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkNext {
    /// At this time.
    At(Instant),
    /// When there are data in the feed, or at this time at the latest.
    Data(Instant),
    /// Never: all is played, it was stopped, or it failed.
    Ended(End),
}

/// Takes a stream.
pub trait Sink: Send {
    /// The properties of this sink.
    fn describe(&self) -> SinkDescription;

    /// Fills the FIFO before the clock starts.
    fn prime(&mut self, feed: &mut Feed);

    /// Starts the clock: the first frame is played at `now`.
    fn start(&mut self, now: Instant);

    /// Takes as many frames as fit. Blocks only if the output does; takes time in proportion to the frames moved.
    fn service(&mut self, now: Instant, feed: &mut Feed) -> SinkNext;

    /// Ends at `now`; frames in the FIFO are not played.
    fn stop(&mut self, now: Instant);

    /// The counts up to now.
    fn counters(&self) -> SinkCounters;

    /// The first runs of missing frames, [`MOST_UNDERRUNS`] at most; [`SinkCounters::underruns`] counts all.
    fn underruns(&self) -> &[Underrun] {
        &[]
    }
}

/// The most underruns in the list.
pub const MOST_UNDERRUNS: usize = 1024;

/// The system's number of an error of an output.
fn errno(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}
