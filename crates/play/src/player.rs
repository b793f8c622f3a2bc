//! [`play`]: from the disk to an output at the recorded rate, and its result, [`Played`].
//!
//! ```text
//!   files ──reads──→ ring ──────→ sink ──→ output
//!         (Reader)         (Feed)      clock
//! ```
//!
//! The disk's half reads blocks straight into a ring, several at once, and publishes them in order when their checksums
//! are right. The sink's half takes them as its clock asks. The ring is filled before the clock starts (preroll).
//!
//! A frame that is not there when it is due is missing from the output and counted. Later frames are played at their
//! own time. Gaps of the recording are replayed as they were recorded, or as [`GapFill`] specifies. A damaged block is
//! a gap, too.
//!
//! Two threads: the caller reads, and a second thread serves the sink and ends before the call returns.

mod driver;
pub(crate) mod reader;
mod track;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hairspring_machine::{Instant, Nanos};

use crate::sink;
use crate::sink::feed::{Extent, Shared};
use crate::sink::{Feed, GapFill, Sink, Underrun};
use hairspring_recording::Unproven;
use hairspring_recording::ledger::RecordingVerdict;
use hairspring_ring::memory::{Granted, Memory, MemoryError, Pages};
use hairspring_ring::units::{ByteRate, Bytes, Frames, SampleRate};
use hairspring_ring::{End, OnOverrun};
use hairspring_ring::{Fill, RingError, ring};
use hairspring_store::{Fallback, Store, StoreError};

use driver::Driver;
use reader::{Reader, Way};

pub use driver::play;
pub use track::{Track, TrackBlock};

/// How a recording is played.
#[derive(Clone, Debug)]
pub struct PlayConfig {
    /// Size of the buffer.
    pub buffer: Bytes,
    /// The kind of its pages.
    pub pages: Pages,
    /// Blocks that are read at once.
    pub depth: usize,
    /// How full the buffer must be before the clock starts, in thousandths.
    pub preroll_promille: u64,
    /// The output during gaps.
    pub gaps: GapFill,
    /// The number of times that the recording is played; `None` until it is stopped.
    pub rounds: Option<u64>,
}

impl Default for PlayConfig {
    fn default() -> Self {
        Self {
            buffer: Bytes::mib(256),
            pages: Pages::Huge2M,
            depth: 8,
            preroll_promille: 1000,
            gaps: GapFill::Zero,
            rounds: Some(1),
        }
    }
}

/// Why playing did not begin.
#[derive(Debug)]
pub enum PlayError {
    /// The recording has no frames.
    Empty,
    /// No rounds.
    Rounds,
    /// The buffer does not hold two blocks.
    Buffer {
        /// The size of the buffer.
        buffer: Bytes,
        /// The smallest possible size.
        least: Bytes,
    },
    /// No memory for the buffer.
    Memory(MemoryError),
    /// The ring cannot be made.
    Ring(RingError),
    /// A file cannot be opened.
    Store(StoreError),
    /// A thread was refused.
    Thread(std::io::Error),
}

impl std::fmt::Display for PlayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str("the recording has no frames to play"),
            Self::Rounds => f.write_str("nothing to play in 0 rounds: choose 1 or more"),
            Self::Buffer { buffer, least } => {
                write!(f, "a buffer of {buffer} does not hold two blocks: choose {least} or more")
            }
            Self::Memory(error) => error.fmt(f),
            Self::Ring(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::Thread(error) => write!(f, "start a thread for the output: {error}"),
        }
    }
}

impl std::error::Error for PlayError {}

/// A block that was not played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadBlock {
    /// The index in the recording of its first frame.
    pub first: Frames,
    /// Frames in it.
    pub frames: Frames,
    /// The file.
    pub file: PathBuf,
    /// Its offset in the file.
    pub offset: u64,
    /// Why.
    pub why: Unproven,
}

/// The most bad blocks in the list.
pub const MOST_BAD_BLOCKS: usize = 1024;

/// Gaps and bad blocks that may be between disk and sink at once.
const PADDINGS: usize = 1024;

/// The present state of playing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayProgress {
    /// Whether the clock runs.
    pub playing: bool,
    /// The counts of the sink.
    pub counters: sink::SinkCounters,
    /// The fill of the buffer.
    pub ring: Fill,
    /// The least fill while the clock ran and data were to come.
    pub low_water: Option<Bytes>,
    /// Frames of the whole output; `None` if it has no end.
    pub length: Option<Frames>,
    /// Since the clock started.
    pub elapsed: Nanos,
}

/// The result of playing.
#[derive(Clone, Debug)]
pub struct Played {
    /// The verdict.
    pub verdict: RecordingVerdict,
    /// How it ended.
    pub end: End,
    /// Frames of the whole output; `None` if it had no end.
    pub length: Option<Frames>,
    /// The counts of the sink.
    pub counters: sink::SinkCounters,
    /// The first underruns; [`sink::SinkCounters::underruns`] counts all.
    pub underruns: Vec<Underrun>,
    /// Frames that were read and came too late.
    pub dropped: Frames,
    /// Frames that were not read because they would have been late.
    pub unread: Frames,
    /// Frames of gaps of the recording, all rounds together.
    pub gap_frames: Frames,
    /// Frames of blocks that were damaged, all rounds together.
    pub bad_frames: Frames,
    /// The number of damaged blocks.
    pub bad_blocks: u64,
    /// The first of them.
    pub bad: Vec<BadBlock>,
    /// Blocks that were played without proof: the recording has no checksums.
    pub unproven_blocks: u64,
    /// Bytes that were read.
    pub read: Bytes,
    /// Frames that are unaccounted for between disk and output. Other than 0, this is a bug of Hairspring.
    pub unaccounted_frames: i128,
    /// The rate of the sink's clock; `None` if it has none.
    pub wanted: Option<SampleRate>,
    /// The rate at which the output took data from the start of the clock to the end.
    pub reached: Option<ByteRate>,
    /// From the start of the clock to the end.
    pub elapsed: Nanos,
    /// From the beginning to the start of the clock.
    pub preroll: Nanos,
    /// The greatest lateness of serving the sink, after its requested time.
    pub worst_lateness: Nanos,
    /// The least fill of the buffer while the clock ran and data were to come.
    pub low_water: Option<Bytes>,
    /// The fill of the buffer at the end.
    pub ring: Fill,
    /// The granted buffer, and the refusals.
    pub granted: Granted,
    /// The ways to the disk.
    pub fallbacks: Vec<Fallback>,
    /// CPU time of the thread that read and checked the data.
    pub reader_cpu: Nanos,
    /// CPU time of the thread that served the sink.
    pub sink_cpu: Nanos,
}

/// Both halves, ready to begin.
struct Player {
    reader: Reader,
    driver: Driver,
    granted: Granted,
    gaps: GapFill,
}

impl Player {
    fn new(
        track: &Track,
        sink: Box<dyn Sink>,
        store: Box<dyn Store>,
        config: &PlayConfig,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, PlayError> {
        let round = track.frames();
        if round == Frames(0) || track.blocks.is_empty() {
            return Err(PlayError::Empty);
        }
        if config.rounds == Some(0) {
            return Err(PlayError::Rounds);
        }
        let memory = Memory::mirrored(config.buffer, Bytes(1), config.pages).map_err(PlayError::Memory)?;
        let granted = memory.granted().clone();
        // The ring wakes the sink for each block; otherwise the sink waits by its clock.
        let (producer, consumer) = ring(Arc::new(memory), Bytes(1), OnOverrun::Block).map_err(PlayError::Ring)?;
        let (padding, padded) = rtrb::RingBuffer::new(PADDINGS);
        let shared = Arc::new(Shared::default());
        let each = if config.gaps == GapFill::Skip { track.stored_frames() } else { round };
        let length = config.rounds.map(|rounds| Frames(rounds.saturating_mul(each.0)));
        let extent = Extent { layout: track.layout, origin: track.origin(), round, length };
        let feed = Feed::new(consumer, padded, extent, config.gaps, Arc::clone(&shared));
        let way = Way {
            rounds: config.rounds,
            // With gaps left out, the place of a block in the output is known only when all data before it are.
            leaves_out_late: config.gaps != GapFill::Skip && sink.describe().rate.is_some(),
            depth: config.depth,
        };
        let reader = Reader::new(store, producer, padding, track.clone(), &way, Arc::clone(&shared))?;
        let threshold = u128::from(granted.size.0) * u128::from(config.preroll_promille.min(1000)) / 1000;
        let driver = Driver::new(sink, feed, Bytes(threshold as u64), shared, stop);
        Ok(Self { reader, driver, granted, gaps: config.gaps })
    }

    /// The result, when both halves have ended.
    fn played(
        self,
        begun: Instant,
        ended: Instant,
        reader_cpu: Nanos,
        sink_cpu: Nanos,
        layout: hairspring_ring::Layout,
    ) -> Played {
        let read = self.reader.counters().clone();
        let driver = self.driver;
        let counters = driver.sink.counters();
        let end = driver.end.unwrap_or(End::Failed(0));
        let start = driver.started.unwrap_or(ended);
        let output = counters.recorded_frames + counters.filled_frames + counters.missing_frames;
        let length = driver.feed.length().map(|length| match self.gaps {
            // A damaged block that would have been skipped, but was found only after its frames were due, counts as
            // missing.
            GapFill::Skip => length.max(Frames(output)),
            GapFill::Zero | GapFill::Hold => length,
        });
        let unaccounted_frames = match (end, length) {
            // All of the output's frames were played or missing; missing frames came too late or never.
            (End::Finished, Some(length)) if length.0 == output => {
                let never = length.0.saturating_sub(driver.feed.at().0);
                i128::from(counters.missing_frames) - i128::from(driver.feed.dropped().0) - i128::from(never)
            }
            (End::Finished, Some(length)) => i128::from(length.0) - i128::from(output),
            _ => 0,
        };
        let lost = counters.missing_frames + read.bad_frames;
        let verdict = match end {
            _ if unaccounted_frames != 0 => RecordingVerdict::Unaccounted,
            _ if lost > 0 => RecordingVerdict::Incomplete,
            End::Finished => RecordingVerdict::Complete,
            End::Stopped => RecordingVerdict::Stopped,
            End::Overrun | End::Failed(_) => RecordingVerdict::Incomplete,
        };
        let taken = Frames(counters.recorded_frames + counters.filled_frames - counters.fifo_frames);
        Played {
            verdict,
            end,
            length,
            counters,
            underruns: driver.sink.underruns().to_vec(),
            dropped: driver.feed.dropped(),
            unread: Frames(read.unread_frames),
            gap_frames: Frames(read.gap_frames),
            bad_frames: Frames(read.bad_frames),
            bad_blocks: read.bad_blocks,
            bad: read.bad,
            unproven_blocks: read.unproven_blocks,
            read: self.reader.read(),
            unaccounted_frames,
            wanted: driver.sink.describe().rate,
            reached: ByteRate::of(layout.bytes_of(taken), ended - start),
            elapsed: ended - start,
            preroll: start - begun,
            worst_lateness: driver.worst_lateness,
            low_water: driver.low_water,
            ring: driver.feed.ring(),
            granted: self.granted,
            fallbacks: self.reader.fallbacks(),
            reader_cpu,
            sink_cpu,
        }
    }
}

#[cfg(test)]
mod tests;
