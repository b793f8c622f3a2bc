//! [`record`]: records cards on threads: runs their sources, rings and recorders.
//!
//! Each card has two threads: one serves the source, the other drives the recorder. They share only the ring and a few counters.
//! A series has a third, which makes and closes segments. One more thread asks the file systems for their free space, because that
//! may block, and another one reads the external clock, if there is one. The caller's thread waits, reports progress and passes a stop on. All threads have ended when `record` returns.
//!
//! A panic in any of them, or in the progress callback, ends the recording of all cards, in order where that is possible, and is
//! returned as [`RecordError::Panicked`].
//!
//! A stop drains: all data that the source has produced by then are recorded.

mod board;
mod bounds;
mod config;
mod error;
mod external;
mod guards;
mod segments;
mod serving;
mod threads;
mod watched;
mod writer;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hairspring_machine::{Clock, Host, Instant, Machine, Nanos};
use hairspring_time::Timebase;

use crate::recorder::{BlockPlacement, KeepWatch, Outcome, Recorder, Setup, Status, Step};
use crate::series::SeriesSummary;
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
use bounds::hand_over;
use external::{External, ExternalEnd, ExternalThread};
use guards::{Leaves, SpaceWatch, said, watch_space};
use serving::serve;
use writer::Writer;

/// Bytes after which the recorder syncs before the time is over.
const SYNC_BYTES: Bytes = Bytes::gib(1);
/// How much later than asked a source is stopped that ends by its own count of frames: see [`RecordConfig::by_frames`].
const LEAST_PATIENCE: Nanos = Nanos::from_millis(100);
const MOST_PATIENCE: Nanos = Nanos::from_secs(5);
/// How often the caller gets the progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// Stands for a file system that does not state its free space.
const NOT_SAID: u64 = u64::MAX;
/// Notes about time that wait for the recorder. It takes them at each step; a dozen come with the first data.
const MOST_NOTES: usize = 256;
/// How often a source that waits for room looks even if nothing has woken it.
const LOOK_AT_LEAST: Nanos = Nanos::from_millis(20);
/// A shorter time is not slept for, because the sleep would take longer.
const TOO_SHORT_TO_SLEEP: Nanos = Nanos::from_micros(5);

/// A card to be recorded.
pub struct Input {
    /// What produces the stream.
    pub source: Box<dyn Source>,
    /// The recording's name in each target directory, without an ending.
    pub targets: Vec<PathBuf>,
    /// What its channels measure: all of them, or none if nothing is known.
    pub channels: Vec<ChannelDescription>,
}

/// The progress of one card's recording.
#[derive(Clone, Debug)]
pub struct RecordProgress {
    /// What the stream is.
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
    /// A tap that shows the newest data without slowing anybody.
    pub tap: Option<Arc<Tap>>,
    /// Fires the external trigger, if the recording has one.
    pub external: Option<ExternalTrigger>,
}

/// One card's result.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// What the stream was.
    pub description: SourceDescription,
    /// The result of the recorder; of a series, the sums over its segments.
    pub outcome: Outcome,
    /// What became of the segments, if it is a series.
    pub series: Option<SeriesSummary>,
    /// The granted buffer, and what was refused.
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
    /// How often the source waited for several datagrams together: see [`SourceCounters::pauses`](hairspring_source::SourceCounters::pauses).
    pub pauses: u64,
    /// Datagrams that came later than ones with higher numbers, and were put in their places.
    pub reordered: u64,
    /// The settings of the threads that were asked for, and whether they were granted.
    pub grants: Vec<ThreadGrant>,
}

impl Recorded {
    /// The bytes stored per second, from the first frame to the end of the source. Those that were deleted since count, too.
    pub fn rate_reached(&self) -> Option<ByteRate> {
        let ledger = &self.outcome.ledger;
        ByteRate::of(Bytes(ledger.stored_bytes + ledger.dropped_bytes), self.elapsed)
    }
}

/// A card that is ready to start.
struct Ready {
    source: Box<dyn Source>,
    description: SourceDescription,
    producer: Producer,
    recorder: Writer,
    granted: Granted,
    /// How the buffer was placed.
    placed: Vec<ThreadGrant>,
    tap: Option<Arc<Tap>>,
    clock_page: Option<ClockPage>,
    external: Option<ExternalTrigger>,
    board: Arc<Board>,
    folders: Vec<PathBuf>,
    notes: (SyncSender<ClockNote>, Receiver<ClockNote>),
}

/// The parts of a running card that the caller sees.
struct Shown {
    description: SourceDescription,
    tap: Option<Arc<Tap>>,
    external: Option<ExternalTrigger>,
    board: Arc<Board>,
}

/// Records cards until they end, `stop` is set or the length is reached. Blocks; spawns two threads for each card, which end
/// within it. `progress` is called about ten times a second, with all cards in order.
///
/// # Errors
/// The recording could not begin, and nothing was recorded. Later failures are in the outcome, except panics: [`RecordError::Panicked`].
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
    let mut cards = Vec::new();
    for input in inputs {
        match ready(input, config, timebase.machine()) {
            Ok(card) => cards.push(card),
            Err(error) => {
                cards.into_iter().for_each(|card: Ready| card.recorder.abandon());
                return Err(error);
            }
        }
    }
    let reference = config
        .external
        .as_ref()
        .and_then(|clock| ExternalThread::begin(clock, cards.iter().map(|card| card.notes.0.clone()).collect()));
    let shared = External::default();
    let start = now();
    let mut watches = Vec::new();
    for card in &mut cards {
        let pair = ClockPair::take(timebase.machine());
        card.clock_page.iter_mut().for_each(|page| watched::note(page, &ClockNote::Pair(pair)));
        card.recorder.note(ClockNote::Pair(pair));
        watches.push(ClockWatch::new(&*card.source, pair));
        let beginning = Beginning::now(timebase.machine());
        card.source.start(beginning.monotonic);
        if !card.source.begins_with_data() {
            card.recorder.begins(beginning);
            let _ = card.board.started.set(beginning);
        }
    }
    let (ending, over, time_over) = (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
    let spaces: Vec<_> = cards.iter().map(|card| (Arc::clone(&card.board), card.folders.clone())).collect();
    std::thread::scope(|scope| {
        // If this thread is refused, the free space stays unknown.
        let space = std::thread::Builder::new().name("space".to_owned());
        let space = space.spawn_scoped(scope, || watch_space(&spaces, &over)).ok();
        let _watch = SpaceWatch { over: &over, thread: space.map(|thread| thread.thread().clone()) };
        let reference = reference.map(|reading| {
            let (builder, shared) = (std::thread::Builder::new().name("reference".to_owned()), &shared);
            // If this thread is refused, there is the first reading only, and `ask_last` waits for nobody.
            if builder.spawn_scoped(scope, move || reading.run(shared)).is_err() {
                shared.end();
            }
            ExternalEnd(shared)
        });
        let reference = reference.as_ref().map(|end| end.0);
        let mut running = Vec::new();
        for (card, watch) in cards.into_iter().zip(watches) {
            let Ready {
                mut source,
                description,
                mut producer,
                recorder,
                granted,
                placed,
                tap,
                mut clock_page,
                external,
                board,
                notes,
                ..
            } = card;
            let (to_recorder, notes) = notes;
            let shown = Shown { description, tap, external, board: Arc::clone(&board) };
            let (ours, theirs) = (Arc::clone(&board), board);
            let (ending, time_over, now, threads) = (&ending, &time_over, &now, &config.threads);
            let (length, wanted) = (config.length, shown.description.rate.map(|rate| (shown.description.layout, rate)));
            // The recorder is handed over when both threads exist, so that its files can be removed if one is refused.
            let (hand, take) = sync_channel::<Writer>(1);
            let recording = std::thread::Builder::new().name("recorder".to_owned()).spawn_scoped(scope, move || {
                let mut recorder = take.recv().ok()?;
                let _leaves = Leaves { board: Some(&theirs), ending };
                let placed = threads.place_recorder();
                let finished = drive(&mut recorder, &theirs, now, &notes);
                // Relaxed: it was set before the source was stopped, and the ring's end came after that.
                if let Some(length) = length.filter(|_| time_over.load(Ordering::Relaxed)) {
                    recorder.stopped_by(time_was_over(length, wanted, theirs.counters().produced_bytes));
                }
                let outcome = recorder.finish(now(), theirs.counters());
                Some((outcome, finished, thread_cpu(), placed.grants.clone()))
            });
            let recording = match recording {
                Ok(recording) => recording,
                Err(error) => {
                    recorder.abandon();
                    return Err(stop_all(ending, RecordError::Thread(error)));
                }
            };
            let serving = std::thread::Builder::new()
                .name("source".to_owned())
                .spawn_scoped(scope, move || {
                    let _leaves = Leaves { board: None, ending };
                    let placed = threads.place_source();
                    let mut hand_on = |note| {
                        clock_page.iter_mut().for_each(|page| watched::note(page, &note));
                        match note {
                            ClockNote::Frame0(beginning, _) => {
                                let _ = ours.frame0.set(beginning);
                            }
                            ClockNote::Count(count) => ours.count.show(count),
                            // A note that finds the queue full is left out: bounds become wider, never wrong.
                            note => {
                                let _ = to_recorder.try_send(note);
                            }
                        }
                    };
                    let cpu = serve(&mut *source, &mut producer, &ours, ending, now, (watch, reference), &mut hand_on);
                    (cpu, placed.grants.clone())
                })
                .map_err(RecordError::Thread);
            let serving = match serving {
                Ok(serving) => serving,
                Err(error) => {
                    recorder.abandon();
                    return Err(stop_all(ending, error));
                }
            };
            if hand.send(recorder).is_err() {
                unreachable!("the thread waits for it");
            }
            running.push((shown, granted, placed, serving, recording));
        }
        let mut panicked = None;
        loop {
            // Acquire: pairs with the Release when a recorder is done.
            let done = running.iter().all(|(shown, ..)| shown.board.done.load(Ordering::Acquire));
            let moment = now();
            let began = running.iter().map(|(shown, ..)| shown.board.began().map(|began| began.monotonic));
            let all_began = began.clone().collect::<Option<Vec<Instant>>>().and_then(|began| began.into_iter().max());
            let limit = match all_began {
                Some(began) => config.length.map(|length| began + length + config.patience(length)),
                None => config.wait.map(|wait| start + wait),
            };
            let over = limit.is_some_and(|limit| moment >= limit);
            // Relaxed: plain flags, nothing is handed over with them.
            if over || stop.load(Ordering::Relaxed) {
                // Relaxed: likewise. Whichever came first has ended it.
                if over && all_began.is_some() && !ending.load(Ordering::Relaxed) {
                    time_over.store(true, Ordering::Relaxed);
                }
                ending.store(true, Ordering::Relaxed);
            }
            let all: Vec<RecordProgress> =
                running.iter().map(|(shown, ..)| shown_progress(shown, start, moment)).collect();
            if panicked.is_none()
                && let Err(panic) = catch_unwind(AssertUnwindSafe(|| progress(&all)))
            {
                panicked = Some(RecordError::Panicked("progress callback", said(&*panic)));
                // Relaxed: a plain flag.
                ending.store(true, Ordering::Relaxed);
            }
            if done {
                break;
            }
            // The requested length is met to the millisecond.
            let left = limit.map_or(PROGRESS_EVERY, |limit| duration(limit - moment));
            std::thread::park_timeout(PROGRESS_EVERY.min(left.max(Duration::from_millis(1))));
        }
        let mut results = Vec::new();
        for (Shown { description, board, .. }, granted, buffer_grants, serving, recording) in running {
            let (serving, recording) = (serving.join(), recording.join());
            let ((source_cpu, source_grants), ((outcome, series), finished, recorder_cpu, recorder_grants)) =
                match (serving, recording) {
                    (Ok(serving), Ok(Some(recording))) => (serving, recording),
                    (Ok(_), Ok(None)) => unreachable!("it was handed over"),
                    (Err(panic), _) => {
                        panicked.get_or_insert(RecordError::Panicked("source", said(&*panic)));
                        continue;
                    }
                    (_, Err(panic)) => {
                        panicked.get_or_insert(RecordError::Panicked("recorder", said(&*panic)));
                        continue;
                    }
                };
            let ended = board.ended.get().copied().unwrap_or(finished);
            let began = board.began();
            let since = |moment: Instant| began.map_or(Nanos::ZERO, |began| moment - began.monotonic);
            results.push(Recorded {
                description,
                outcome,
                series,
                granted,
                began,
                elapsed: since(ended),
                finished: since(finished),
                recorder_cpu,
                source_cpu,
                pauses: board.counters().pauses,
                reordered: board.counters().reordered,
                grants: buffer_grants.into_iter().chain(source_grants).chain(recorder_grants).collect(),
            });
        }
        panicked.map_or(Ok(results), Err)
    })
}

impl RecordConfig {
    /// How much later than the length this computer's clock ends the recording.
    fn patience(&self, length: Nanos) -> Nanos {
        let share = Nanos::new(length.count() / 100).max(LEAST_PATIENCE).min(MOST_PATIENCE);
        if self.by_frames { share } else { Nanos::ZERO }
    }
}

/// What ended a recording by its time, as a fragment. `wanted`: the layout and the rate of the source, if it has one.
fn time_was_over(length: Nanos, wanted: Option<(Layout, SampleRate)>, produced_bytes: u64) -> String {
    let Some((layout, rate)) = wanted else { return "its time was over".to_owned() };
    let (produced, all) = (layout.frames_in(Bytes(produced_bytes)), rate.frames_after(length));
    // A card's own clock differs from its nominal rate.
    if produced.0 >= all.0 - all.0 / 100 {
        return "its time was over".to_owned();
    }
    format!(
        "its time was over, and it is shorter than {length}: its source gave {} of {} frames and was silent or slow",
        produced.0, all.0
    )
}

/// Tells all threads to end. Returns the error that made it necessary.
fn stop_all(ending: &AtomicBool, error: RecordError) -> RecordError {
    // Relaxed: a plain flag.
    ending.store(true, Ordering::Relaxed);
    error
}

fn duration(span: Nanos) -> Duration {
    Duration::from_nanos(u64::try_from(span.count()).unwrap_or(0))
}

fn shown_progress(shown: &Shown, start: Instant, now: Instant) -> RecordProgress {
    let Shown { description, tap, external, board } = shown;
    let status = board.status.lock().map_or_else(|poisoned| poisoned.into_inner().clone(), |status| status.clone());
    let wanted = description.rate.map(|rate| description.layout.byte_rate(rate));
    let (description, tap, external) = (description.clone(), tap.clone(), external.clone());
    let began = board.began();
    let elapsed = began.map_or(Nanos::ZERO, |began| now - began.monotonic);
    let waits = began.is_none().then(|| now - start);
    // Relaxed: a figure for people.
    let segment = board.segment.load(Ordering::Relaxed).checked_sub(1).and_then(|number| u32::try_from(number).ok());
    // Relaxed: likewise.
    let low_space = Some(board.low_bytes.load(Ordering::Relaxed)).filter(|low| *low != NOT_SAID).map(Bytes);
    RecordProgress { description, status, segment, low_space, elapsed, waits, wanted, tap, external }
}

/// Makes the ring and the recorder of a card.
fn ready(input: Input, config: &RecordConfig, machine: &Host) -> Result<Ready, RecordError> {
    let description = input.source.describe();
    if config.on_overrun == OnOverrun::Block && description.clocked {
        return Err(RecordError::CannotBlock(description.hardware));
    }
    if config.notify.0 == 0 || !config.buffer.0.is_multiple_of(config.notify.0) {
        return Err(RecordError::Notify(config.notify, config.buffer));
    }
    let codes = |trigger: Trigger| layout_of_codes(description.layout, &input.channels, trigger.channel());
    let gate = config.trigger.map(|(trigger, pre, post, shots)| {
        Gate::new(trigger, codes(trigger), pre, post, shots).map_err(RecordError::Trigger)
    });
    let gate = gate.transpose()?;
    let keep_on = config.series.and_then(|series| series.keep_on);
    let keep_on = keep_on.map(|keep| KeepWatch::new(keep, codes(keep.trigger)).map_err(RecordError::Trigger));
    let keep_on = keep_on.transpose()?;
    let external = gate.as_ref().and_then(Gate::external).or(keep_on.as_ref().and_then(KeepWatch::external));
    let least = Bytes(config.notify.0 * 2 + gate.as_ref().map_or(0, |gate| gate.must_hold().0));
    let buffer = config.threads.place_buffer();
    let memory = Memory::mirrored(config.buffer, least, config.pages).map_err(RecordError::Memory)?;
    let granted = memory.granted().clone();
    let placed = buffer.grants.clone();
    drop(buffer);
    let (mut producer, consumer): (Producer, Consumer) =
        ring(Arc::new(memory), config.notify, config.on_overrun).map_err(RecordError::Ring)?;
    let (id, source) = (random_id(), input.source);
    let clock_page = watched::state(&mut producer, &description, id, &input.channels);
    let tap = consumer.tap().map(Arc::new);
    let folders = input.targets.iter().map(|base| hairspring_file::folder_of(base).to_owned()).collect();
    let board = Arc::new(Board {
        free_bytes: AtomicU64::new(NOT_SAID),
        low_bytes: AtomicU64::new(NOT_SAID),
        ..Board::default()
    });
    let notes = sync_channel(MOST_NOTES);
    let recorder = match config.series {
        Some(series) => {
            let (targets, channels) = (&input.targets, &input.channels);
            segments::begin(targets, channels, consumer, &description, config, series, (gate, keep_on))?
        }
        None => {
            let setup = Setup {
                targets: input.targets,
                id,
                block: config.notify,
                depth: config.depth,
                placement: config.placement,
                volume: config.volume,
                sync_every: config.sync_every,
                sync_bytes: SYNC_BYTES,
                gate,
                gated: false,
                keep_on: None,
                opened: Beginning::now(machine),
                software: config.software.clone(),
                channels: input.channels,
                clock: clock_record(config),
                series: None,
                resumed: None,
                stopwatch: monotonic,
            };
            let store = best(config.depth + 8, config.ways);
            Writer::One(Box::new(Recorder::open(store, consumer, description.clone(), setup)?))
        }
    };
    Ok(Ready {
        source,
        description,
        producer,
        recorder,
        granted,
        placed,
        tap,
        clock_page,
        external,
        board,
        folders,
        notes,
    })
}

/// What is known of time before the recording begins.
fn clock_record(config: &RecordConfig) -> ClockRecord {
    let external = config.external.as_ref().and_then(|clock| Some(clock.lock().ok()?.facts()));
    let mut record = ClockRecord::begin(&Host, BootId::read());
    record.external = external;
    record
}

/// Drives a recorder to its end. Returns when that was.
fn drive(recorder: &mut Writer, board: &Board, now: &dyn Fn() -> Instant, notes: &Receiver<ClockNote>) -> Instant {
    let mut shown = Instant::BOOT;
    loop {
        let moment = now();
        hand_over(recorder, board, notes);
        let step = recorder.step(moment, board.counters());
        if moment - shown > Nanos::from_millis(50) {
            shown = moment;
            // If the caller is reading now, it gets the next status.
            if let Ok(mut status) = board.status.try_lock() {
                *status = status_of(recorder, board);
            }
        }
        match step {
            Step::Done => {
                hand_over(recorder, board, notes);
                if let Ok(mut status) = board.status.lock() {
                    *status = status_of(recorder, board);
                }
                return now();
            }
            Step::StopSource => {
                // Relaxed: a plain flag.
                board.enough.store(true, Ordering::Relaxed);
                recorder.wait(moment + Nanos::from_millis(1));
            }
            Step::Wait(until) => recorder.wait(until),
        }
    }
}

fn status_of(recorder: &Writer, board: &Board) -> Status {
    // Relaxed: as below.
    board.segment.store(recorder.segment().map_or(0, |number| u64::from(number) + 1), Ordering::Relaxed);
    // Relaxed: likewise.
    board.low_bytes.store(recorder.low_space().map_or(NOT_SAID, |low| low.0), Ordering::Relaxed);
    // Relaxed: a figure for people.
    let free = Some(board.free_bytes.load(Ordering::Relaxed)).filter(|free| *free != NOT_SAID);
    recorder.status(board.counters(), free.map(Bytes))
}

fn monotonic() -> Instant {
    Host.monotonic()
}

fn thread_cpu() -> Nanos {
    Host.read(Clock::ThreadCpu)
}

/// Makes a random id.
fn random_id() -> RecordingId {
    use std::hash::{BuildHasher, RandomState};
    let half = || RandomState::new().hash_one(std::process::id()).to_le_bytes();
    let mut id = [0; 16];
    id[..8].copy_from_slice(&half());
    id[8..].copy_from_slice(&half());
    RecordingId(id)
}
