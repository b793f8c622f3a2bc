//! [`record`]: records cards on threads: runs their sources, rings and recorders.
//!
//! Each card has two threads: one serves the source, the other drives the recorder. They share only the ring and a few
//! counters. A series has a third, which makes and closes segments. One more thread asks the file systems for their
//! free space, because that may block, and another one reads the external clock, if there is one. The caller's thread
//! waits, reports progress and passes a stop on. All threads have ended when `record` returns.
//!
//! A panic in any of them, or in the progress callback, ends the recording of all cards, in order where that is
//! possible, and is returned as [`RecordError::Panicked`].
//!
//! A stop drains: all data that the source has produced by then are recorded.

mod board;
mod card;
mod config;
mod error;
mod external;
mod guards;
mod running;
mod segments;
mod serving;
mod tap_state;
mod threads;
mod time_notes;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hairspring_machine::{Clock, Host, Instant, Machine, Nanos};
use hairspring_time::Timebase;

use crate::recorder::{KeepWatch, Outcome, Recorder, Setup, Status, Step, WriteSettings};
use crate::series::{SeriesRecorder, SeriesSummary};
use hairspring_recording::beginning::Beginning;
use hairspring_recording::channels::{ChannelDescription, layout_of_codes};
use hairspring_recording::clock::watch::ClockWatch;
use hairspring_recording::clock::{BootId, ClockNote, ClockPair, ClockRecord};
use hairspring_recording::journal::RecordingId;
use hairspring_ring::OnOverrun;
use hairspring_ring::layout::Layout;
use hairspring_ring::memory::{Granted, Memory, Pages};
use hairspring_ring::page::ClockPage;
use hairspring_ring::units::{ByteRate, Bytes, Frames, SampleRate};
use hairspring_ring::{Consumer, Producer, Tap, ring};
use hairspring_source::external::ExternalClock;
use hairspring_source::trigger::{ExternalTrigger, Gate, Shots, Trigger};
use hairspring_source::{Source, SourceDescription};
use hairspring_store::{Ways, best};

pub use config::RecordConfig;
pub use error::RecordError;
pub use segments::{AskedLength, SeriesConfig};
pub use threads::{RecordingThreads, ThreadGrant, node_cpus};

use board::Board;
use card::{Ready, abandon, ready_all};
use external::{External, ExternalEnd, ExternalThread};
use guards::{Leaves, SpaceWatch, said, watch_space};
use running::{Flags, Session, results};
use serving::serve;
use time_notes::hand_over;

/// Least delay after which this computer's clock stops a source that ends by its own count of frames: see
/// [`RecordConfig::by_frames`].
const LEAST_PATIENCE: Nanos = Nanos::from_millis(100);
const MOST_PATIENCE: Nanos = Nanos::from_secs(5);
/// How often the caller gets the progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// Represents a file system that does not report its free space.
const NOT_SAID: u64 = u64::MAX;
/// Notes about time that wait for the recorder. It takes them at each step; a dozen come with the first data.
const MOST_NOTES: usize = 256;
/// Longest interval at which a source that waits for room checks, even without a wake-up.
const LOOK_AT_LEAST: Nanos = Nanos::from_millis(20);
/// Sleeps shorter than this are skipped, because the sleep would take longer.
const TOO_SHORT_TO_SLEEP: Nanos = Nanos::from_micros(5);

/// A card to be recorded.
pub struct Input {
    /// The producer of the stream.
    pub source: Box<dyn Source>,
    /// The recording's name in each target directory, without an ending.
    pub targets: Vec<PathBuf>,
    /// Quantities and units of its channels: of all, or an empty list if unknown.
    pub channels: Vec<ChannelDescription>,
}

/// The progress of one card's recording.
#[derive(Clone, Debug)]
pub struct RecordProgress {
    /// Layout, rate and name of the stream.
    pub description: SourceDescription,
    /// The present state of the recording.
    pub status: Status,
    /// The number of the present segment, if it is a series.
    pub segment: Option<u32>,
    /// The free space on the fullest target, while it is less than twice the limit at which the series ends.
    pub low_space: Option<Bytes>,
    /// The time since its first frame.
    pub elapsed: Nanos,
    /// How long it has been waiting for its first data; `None` once they have come.
    pub waits: Option<Nanos>,
    /// The rate of its clock; `None` if it has none.
    pub wanted: Option<ByteRate>,
    /// A tap that shows the newest data without delaying the source or the recorder.
    pub tap: Option<Arc<Tap>>,
    /// Fires the external trigger, if the recording has one.
    pub external: Option<ExternalTrigger>,
}

/// One card's result.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Layout, rate and name of the stream.
    pub description: SourceDescription,
    /// The result of the recorder; for a series, the sums over its segments.
    pub outcome: Outcome,
    /// The summary of its segments, if it is a series.
    pub series: Option<SeriesSummary>,
    /// The granted buffer, and the refusals.
    pub granted: Granted,
    /// When its first frame was taken; `None` if no data came.
    pub began: Option<Beginning>,
    /// From the first frame to the end of the source.
    pub elapsed: Nanos,
    /// From the first frame until everything was durable.
    pub finished: Nanos,
    /// CPU time of the thread that moved and wrote the data, checksums included.
    pub recorder_cpu: Nanos,
    /// CPU time of the thread that served the source.
    pub source_cpu: Nanos,
    /// How often the source waited for several datagrams together: see
    /// [`SourceCounters::pauses`](hairspring_source::SourceCounters::pauses).
    pub pauses: u64,
    /// Datagrams that came later than ones with higher numbers, and were put in their places.
    pub reordered: u64,
    /// The settings of the threads that were asked for, and whether they were granted.
    pub grants: Vec<ThreadGrant>,
}

impl Recorded {
    /// The bytes stored per second, from the first frame to the end of the source, including bytes deleted since.
    pub fn rate_reached(&self) -> Option<ByteRate> {
        let ledger = &self.outcome.ledger;
        ByteRate::of(Bytes(ledger.stored_bytes + ledger.dropped_bytes), self.elapsed)
    }
}

/// Records cards until they end, `stop` is set or the length is reached. Blocks; spawns two threads for each card,
/// which end within it. `progress` is called about ten times a second, with all cards in order.
///
/// # Errors
/// The recording could not begin, and nothing was recorded. Later failures are in the outcome, except panics:
/// [`RecordError::Panicked`].
pub fn record(
    inputs: Vec<Input>,
    config: &RecordConfig,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&[RecordProgress]),
) -> Result<Vec<Recorded>, RecordError> {
    if inputs.is_empty() {
        return Err(RecordError::NoCard);
    }
    let timebase = Timebase::calibrate(Host).map_err(RecordError::Calibration)?;
    let now = || timebase.now();
    let mut cards = ready_all(inputs, config, timebase.machine())?;
    let reference = config
        .external
        .as_ref()
        .and_then(|clock| ExternalThread::begin(clock, cards.iter().map(|card| card.notes.0.clone()).collect()));
    let shared = External::default();
    let start = now();
    let watches: Vec<ClockWatch> = cards.iter_mut().map(|card| card.start(timebase.machine())).collect();
    let flags = Flags::default();
    let spaces: Vec<_> = cards.iter().map(|card| (Arc::clone(&card.board), card.folders.clone())).collect();
    std::thread::scope(|scope| {
        // If the system refuses this thread, the free space stays unknown.
        let space = std::thread::Builder::new().name("space".to_owned());
        let space = space.spawn_scoped(scope, || watch_space(&spaces, &flags.over)).ok();
        let _watch = SpaceWatch { over: &flags.over, thread: space.map(|thread| thread.thread().clone()) };
        let reference = reference.map(|reading| {
            let (builder, shared) = (std::thread::Builder::new().name("reference".to_owned()), &shared);
            // If the system refuses this thread, only the first reading exists, and `ask_last` waits for no thread.
            if builder.spawn_scoped(scope, move || reading.run(shared)).is_err() {
                shared.end();
            }
            ExternalEnd(shared)
        });
        let session = Session { config, flags: &flags, now: &now, external: reference.as_ref().map(|end| end.0) };
        let mut waiting = cards.into_iter().zip(watches);
        let mut running = Vec::new();
        while let Some((card, watch)) = waiting.next() {
            match session.run(scope, card, watch) {
                Ok(card) => running.push(card),
                Err(error) => {
                    waiting.for_each(|(card, _)| card.abandon());
                    return Err(error);
                }
            }
        }
        let panicked = session.wait(&running, start, stop, progress);
        results(running, panicked)
    })
}

fn duration(span: Nanos) -> Duration {
    Duration::from_nanos(u64::try_from(span.count()).unwrap_or(0))
}

fn monotonic() -> Instant {
    Host.monotonic()
}

fn thread_cpu() -> Nanos {
    Host.read(Clock::ThreadCpu)
}
