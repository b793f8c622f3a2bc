//! The segments of a series on real disks: made and closed by a thread of their own.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use hairspring_machine::{Host, Instant, Machine as _};
use hairspring_ring::Consumer;
use hairspring_ring::units::{Bytes, Frames};
use hairspring_source::trigger::Gate;
use hairspring_source::{SourceCounters, SourceDescription};

use super::card::{clock_record, random_id};
use super::{RecordConfig, RecordError, monotonic};
use crate::recorder::{KeepOn, KeepWatch, Recorder, RecorderError, ResumeFrom, RingLoan, Step, WriteSettings};
use crate::recover::RecoverOptions;
use crate::series::keeper::{KeepWish, Keeper, lending};
use crate::series::recover::{InOrder, Look, put_in_order};
use crate::series::segment_worker::{ClosedSegment, NextSegment, SegmentWorker, Template, Wishes, Workshop};
use crate::series::{Retention, RoomLeft, SegmentLength, SeriesRecorder};
use hairspring_machine::Nanos;
use hairspring_recording::RecordingError;
use hairspring_recording::beginning::Beginning;
use hairspring_recording::channels::ChannelDescription;
use hairspring_recording::moment::ClockMoment;
use hairspring_recording::series::index::SeriesIndex;
use hairspring_recording::series::open::segment_file_from;
use hairspring_recording::sigmf::SegmentOf;
use hairspring_store::best;
use hairspring_store::owner::{Ownership, Work};
use hairspring_store::plain::PlainStore;

/// How often the retention is applied between two segments.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Reads under way at once while a series is put in order.
const READ_DEPTH: usize = 8;
/// Operations under way of a store for one small file.
const SMALL_DEPTH: usize = 2;

/// How to divide a recording, and how much of it to keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesConfig {
    /// The length of a segment; rounded to whole blocks.
    pub length: AskedLength,
    /// The limits of the series.
    pub retention: Retention,
    /// Pins the segments around a trigger, so that the retention does not delete them.
    pub keep_on: Option<KeepOn>,
    /// Continues the series of this name, after its last segment was recovered. If there is none, a new one begins.
    pub resume: bool,
}

/// The length of a segment as the user gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedLength {
    /// A time: by the source's own rate, or by this computer's clock if it has none.
    Time(Nanos),
    /// Bytes of samples.
    Bytes(Bytes),
}

impl AskedLength {
    /// The length in blocks, if it can be converted. `gated`: a trigger chooses the data.
    pub fn in_blocks(self, description: &SourceDescription, block: Bytes, gated: bool) -> SegmentLength {
        // In a triggered stream a time does not correspond to a byte count.
        match (self, description.rate.filter(|_| !gated)) {
            (Self::Bytes(bytes), _) => SegmentLength::of_bytes(bytes, block),
            (Self::Time(time), Some(rate)) => {
                SegmentLength::of_bytes(description.layout.bytes_of(rate.frames_after(time)), block)
            }
            (Self::Time(time), None) => SegmentLength::Time(time),
        }
    }
}

/// Makes the recorder of the first segment, and the thread that makes the others. Also returns the index and
/// collection, and whether they are new.
pub(super) fn begin(
    bases: &[PathBuf],
    channels: &[ChannelDescription],
    consumer: Consumer,
    description: &SourceDescription,
    config: &RecordConfig,
    series: SeriesConfig,
    (gate, keep_on): (Option<Gate>, Option<KeepWatch>),
) -> Result<(SeriesRecorder, Vec<PathBuf>, bool), RecordError> {
    let bases = bases.to_vec();
    let before = if series.resume { resumed(&bases, description, config)? } else { None };
    refuse_what_it_would_meet(&bases, before.as_ref().map_or(0, |before| before.index.next))?;
    let name = bases.first().and_then(|base| base.file_name()).unwrap_or_default().to_string_lossy().into_owned();
    let new = SegmentOf {
        id: random_id(),
        name,
        number: 0,
        first: Some(Frames(0)),
        previous: None,
        epoch: 0,
        epoch_first: Frames(0),
    };
    let of = before.as_ref().map_or(new, |before| before.of.clone());
    let number = of.number;
    let mut template = Template {
        description: description.clone(),
        ring: RingLoan::of(&consumer),
        of: of.clone(),
        write: WriteSettings { volume: None, ..config.write.clone() },
        gated: gate.is_some(),
        channels: channels.to_vec(),
        stopwatch: monotonic,
        beginning: || Beginning::now(&Host),
        moment: || ClockMoment::now(&Host),
        id: random_id,
    };
    let opened = Beginning::now(&Host);
    let ways = config.ways;
    let small = Box::new(move || Box::new(PlainStore::new(SMALL_DEPTH, ways)) as Box<dyn hairspring_store::Store>);
    let (index, from, block) =
        before.map_or((None, None, None), |before| (Some((before.index, before.ownership)), before.from, before.block));
    let is_new = index.is_none();
    let keeper = match index {
        Some((index, ownership)) => {
            ownership.turn(Work::Records).map_err(|error| RecordError::Series(error.to_string()))?;
            Keeper::resume(bases.clone(), index, series.retention, lending(small, &ownership))
        }
        None => Keeper::begin(bases.clone(), of.id, series.retention, opened.realtime, small),
    };
    let mut keeper = keeper.map_err(refused)?;
    let files = keeper.files();
    let first_frame = of.first.unwrap_or_default();
    let (depth, ways) = (config.write.depth + 8, config.ways);
    let mut setup = template.setup(number, &bases);
    setup.series = Some(of);
    setup.resumed = from;
    setup.gate = gate;
    setup.keep_on = keep_on;
    setup.clock = clock_record(config);
    let made = Recorder::open(best(depth, ways), consumer, description.clone(), setup);
    let first = match made {
        Ok(first) => Box::new(first),
        Err(error) => {
            if is_new {
                remove(&files);
            }
            return Err(error.into());
        }
    };
    if let Some(block) = block.filter(|block| *block != first.block()) {
        let made = first.block();
        first.abandon();
        return Err(RecordError::Series(format!(
            "its blocks have {block}, and now they would have {made}: record with --notify {block}"
        )));
    }
    let length = series.length.in_blocks(description, first.block(), template.gated);
    if let SegmentLength::Blocks(blocks) = length {
        template.write.volume = Some(Bytes(blocks * first.block().0));
    }
    keeper.opened(number, first.id(), first_frame, opened.realtime);
    let workshop = Workshop::new(template, keeper, Box::new(move || best(depth, ways)));
    let worker = match WorkerThread::start(workshop) {
        Ok(worker) => worker,
        Err(error) => {
            first.abandon();
            if is_new {
                remove(&files);
            }
            return Err(RecordError::Thread(error));
        }
    };
    let recorder = SeriesRecorder::new(first, number, Box::new(worker), length, description.layout);
    let recorder = recorder.with_suspends(|| Host.suspended().max(Nanos::ZERO));
    Ok((recorder, files, is_new))
}

/// A series to resume.
struct Before {
    index: SeriesIndex,
    /// The place of the next segment.
    of: SegmentOf,
    from: Option<ResumeFrom>,
    block: Option<Bytes>,
    /// The ownership of the index, taken before it was read.
    ownership: Ownership,
}

/// Puts a series in order, so that it can be resumed; `None` if there is none of this name.
fn resumed(
    bases: &[PathBuf],
    description: &SourceDescription,
    config: &RecordConfig,
) -> Result<Option<Before>, RecordError> {
    let refused = |why: String| RecordError::Series(why);
    let ways = config.ways;
    let stores = Box::new(move || best(READ_DEPTH, ways));
    let base = bases.first().map_or(Path::new(""), PathBuf::as_path);
    let found =
        put_in_order(stores, bases, RecoverOptions::default(), Look::AtTheEnd, &mut |_| {}).map_err(self::refused)?;
    let Some(InOrder { index, bases: theirs, last, ownership, .. }) = found else { return Ok(None) };
    let names = |bases: &[PathBuf]| bases.iter().map(|base| std::path::absolute(base).ok()).collect::<BTreeSet<_>>();
    if names(&theirs) != names(bases) {
        let theirs: Vec<String> = theirs.iter().map(|base| base.display().to_string()).collect();
        return Err(refused(format!("it is at {}: name the same", theirs.join(","))));
    }
    let next = index.next;
    let mut of = SegmentOf {
        id: index.id.unwrap_or_else(random_id),
        name: base.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        number: next,
        first: Some(Frames(0)),
        previous: None,
        epoch: index.epoch,
        epoch_first: Frames(0),
    };
    let Some(last) = last else {
        return Ok(Some(Before { index, of, from: None, block: None, ownership }));
    };
    let about = last.about();
    if (about.layout, about.rate) != (description.layout, description.rate) {
        return Err(refused(
            "its layout or rate is another than that of this card: record under another name".to_owned(),
        ));
    }
    let produced = last.ended().map_or(0, |ended| ended.produced_bytes);
    let end = about.layout.frames_in(Bytes(produced));
    of.first = Some(end);
    of.previous = Some(about.id);
    of.epoch = index.epoch + 1;
    of.epoch_first = end;
    let from = ResumeFrom::of(about, end);
    Ok(Some(Before { index, of, from: Some(from), block: Some(about.block), ownership }))
}

/// The error of a series that cannot begin or be resumed.
fn refused(error: RecordingError) -> RecordError {
    match error {
        RecordingError::Owned(error) => RecordError::Recorder(RecorderError::Owned(error)),
        error => RecordError::Series(error.to_string()),
    }
}

/// Refuses a series whose later segments would have the names of existing files: no file is overwritten, so the series
/// would end there.
fn refuse_what_it_would_meet(bases: &[PathBuf], next: u32) -> Result<(), RecordError> {
    match bases.iter().find_map(|base| segment_file_from(base, next)) {
        None => Ok(()),
        Some(file) => Err(RecordError::Series(format!(
            "{} exists already, a segment that is none of this series, and recordings are never overwritten: choose another name, or move it away",
            file.display()
        ))),
    }
}

pub(super) fn remove(files: &[PathBuf]) {
    for file in files {
        // They were made a moment ago; a file that stays is reported when the name is used again.
        drop(std::fs::remove_file(file as &Path));
    }
}

enum Job {
    Make(u32),
    Close(u32, Box<Recorder>, Option<NextSegment>, SourceCounters),
}

enum Done {
    Made(Result<Box<Recorder>, RecorderError>),
    Closed(Box<ClosedSegment>),
}

/// A thread that makes and closes segments.
pub(super) struct WorkerThread {
    jobs: Option<Sender<Job>>,
    done: Receiver<Done>,
    made: Option<Result<Box<Recorder>, RecorderError>>,
    closed: Option<ClosedSegment>,
    /// Jobs whose result has not come.
    under_way: usize,
    room: Arc<Mutex<RoomLeft>>,
    wishes: Wishes,
    thread: Option<JoinHandle<()>>,
}

impl WorkerThread {
    fn start(workshop: Workshop) -> std::io::Result<Self> {
        let (jobs, work) = channel();
        let (results, done) = channel();
        let room = Arc::new(Mutex::new(RoomLeft::Enough));
        let told = Arc::clone(&room);
        let wishes = workshop.wishes();
        let thread = std::thread::Builder::new()
            .name("segments".to_owned())
            .spawn(move || work_on(workshop, &work, &results, &told))?;
        Ok(Self { jobs: Some(jobs), done, made: None, closed: None, under_way: 0, room, wishes, thread: Some(thread) })
    }

    fn give(&mut self, job: Job) {
        if let Some(jobs) = &self.jobs {
            self.under_way += usize::from(jobs.send(job).is_ok());
        }
    }

    fn take(&mut self, done: Done) {
        self.under_way -= 1;
        match done {
            Done::Made(made) => self.made = Some(made),
            Done::Closed(closed) => self.closed = Some(*closed),
        }
    }

    /// Takes the finished jobs. A panic of the thread is resumed in the caller's.
    fn look(&mut self) {
        loop {
            match self.done.try_recv() {
                Ok(done) => self.take(done),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => return self.propagate(),
            }
        }
    }

    fn propagate(&mut self) {
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            resume_unwind(panic);
        }
    }
}

/// The thread: one job after the other, and the retention in between.
fn work_on(mut workshop: Workshop, jobs: &Receiver<Job>, done: &Sender<Done>, room: &Mutex<RoomLeft>) {
    loop {
        let result = match jobs.recv_timeout(SWEEP_EVERY) {
            Ok(Job::Make(number)) => Done::Made(workshop.make(number)),
            Ok(Job::Close(number, mut old, next, counters)) => {
                while let Step::Wait(until) = old.step(monotonic(), counters) {
                    old.wait(until);
                }
                let closed = workshop.close(number, old, next, monotonic(), counters);
                *room.lock().unwrap_or_else(PoisonError::into_inner) = closed.room;
                Done::Closed(Box::new(closed))
            }
            Err(RecvTimeoutError::Timeout) => {
                let now = workshop.sweep();
                *room.lock().unwrap_or_else(PoisonError::into_inner) = now;
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if done.send(result).is_err() {
            return;
        }
    }
}

impl SegmentWorker for WorkerThread {
    fn prepare(&mut self, number: u32) {
        self.give(Job::Make(number));
    }

    fn prepared(&mut self) -> Option<Result<Box<Recorder>, RecorderError>> {
        self.look();
        self.made.take()
    }

    fn keep(&mut self, wish: KeepWish) {
        // The thread holds the lock for no longer than it takes to take the list.
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner).push(wish);
    }

    fn close(&mut self, number: u32, old: Box<Recorder>, next: Option<NextSegment>, counters: SourceCounters) {
        self.give(Job::Close(number, old, next, counters));
    }

    fn closed(&mut self, _now: Instant) -> Option<ClosedSegment> {
        self.look();
        self.closed.take()
    }

    fn finish(&mut self, _now: Instant) -> Option<ClosedSegment> {
        while self.under_way > 0 {
            match self.done.recv() {
                Ok(done) => self.take(done),
                Err(_) => {
                    self.propagate();
                    break;
                }
            }
        }
        self.closed.take()
    }

    fn room(&mut self) -> RoomLeft {
        // The thread holds the lock for no longer than it takes to store a value.
        *self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WorkerThread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // Its panic was passed on by now, or another panic is on its way.
            drop(thread.join());
        }
    }
}
