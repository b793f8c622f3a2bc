//! [`SegmentWorker`]: the thread that makes the next segment and closes the last one, so that the recorder's thread
//! need not wait for either.
//!
//! [`Inline`] does it where it is called, for tests in virtual time; [`session`](crate::session) does it on a thread.

use std::sync::{Arc, Mutex, PoisonError};

use hairspring_machine::{Instant, Nanos};

use super::RoomLeft;
use super::keeper::{Dropped, KeepWish, Keeper, SegmentEnd, StoreMaker};
use crate::recorder::{Outcome, Recorder, RecorderError, RingLoan, Setup, Step, WriteSettings};
use hairspring_recording::beginning::Beginning;
use hairspring_recording::channels::ChannelDescription;
use hairspring_recording::clock::ClockRecord;
use hairspring_recording::journal::{GapBounds, RecordingId};
use hairspring_recording::moment::ClockMoment;
use hairspring_recording::series::index::IndexRecord;
use hairspring_recording::series::segment_base;
use hairspring_recording::sigmf::SegmentOf;
use hairspring_ring::units::Frames;
use hairspring_source::{SourceCounters, SourceDescription};

/// The result of closing a segment.
#[derive(Clone, Debug)]
pub struct ClosedSegment {
    /// Its number.
    pub number: u32,
    /// Its result.
    pub outcome: Outcome,
    /// The amount that retention deleted up to now, of this run.
    pub dropped: Dropped,
    /// Number of closed segments that exist now.
    pub kept: usize,
    /// Number of segments pinned up to now because of a trigger, of this run.
    pub pinned: usize,
    /// How much room there is now.
    pub room: RoomLeft,
    /// Errors of the index, the collection or a deletion.
    pub troubles: Vec<String>,
}

/// The segment that goes on after a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextSegment {
    /// Its number.
    pub number: u32,
    /// The id of its recording.
    pub id: RecordingId,
    /// Its first frame.
    pub first: Frames,
}

/// Makes and closes segments. None of these calls waits, except [`SegmentWorker::finish`].
pub trait SegmentWorker: Send {
    /// Begins to make the segment with this number.
    fn prepare(&mut self, number: u32);

    /// The requested segment, once it is ready.
    fn prepared(&mut self) -> Option<Result<Box<Recorder>, RecorderError>>;

    /// Pins segments because of a trigger. Wishes made before a segment is closed are fulfilled before the index lists
    /// it as closed.
    fn keep(&mut self, wish: KeepWish);

    /// Closes a segment: drives its recorder to its end, describes it, and applies the retention. `next` is the segment
    /// that goes on.
    fn close(&mut self, number: u32, old: Box<Recorder>, next: Option<NextSegment>, counters: SourceCounters);

    /// A segment that was closed meanwhile.
    fn closed(&mut self, now: Instant) -> Option<ClosedSegment>;

    /// Waits until the segment under way is closed; `None` if there is none. Blocks.
    fn finish(&mut self, now: Instant) -> Option<ClosedSegment>;

    /// How much room there was at the last check.
    fn room(&mut self) -> RoomLeft;
}

/// The settings that all segments of a series share.
pub struct Template {
    /// The stream.
    pub description: SourceDescription,
    /// The ring.
    pub ring: RingLoan,
    /// The series. Its number and frames are those of the first segment of this run.
    pub of: SegmentOf,
    /// How data are written; the volume is that of a segment.
    pub write: WriteSettings,
    /// Whether a trigger chooses the data. Each segment passes the gate to the next.
    pub gated: bool,
    /// Quantities and units of the channels.
    pub channels: Vec<ChannelDescription>,
    /// Reads a clock.
    pub stopwatch: fn() -> Instant,
    /// Both clocks now.
    pub beginning: fn() -> Beginning,
    /// The present moment.
    pub moment: fn() -> ClockMoment,
    /// Makes an id.
    pub id: fn() -> RecordingId,
}

impl Template {
    /// The set-up of a segment with these targets.
    pub fn setup(&self, number: u32, targets: &[std::path::PathBuf]) -> Setup {
        Setup {
            targets: targets.iter().map(|base| segment_base(base, number)).collect(),
            id: (self.id)(),
            write: self.write.clone(),
            gate: None,
            gated: self.gated,
            keep_on: None,
            opened: (self.beginning)(),
            channels: self.channels.clone(),
            clock: ClockRecord::default(),
            series: Some(SegmentOf { number, first: None, previous: None, ..self.of.clone() }),
            resumed: None,
            stopwatch: self.stopwatch,
        }
    }
}

/// Makes and closes segments, one job after the other.
pub struct Workshop {
    template: Template,
    keeper: Keeper,
    /// Makes the stores of segments.
    stores: StoreMaker,
    /// Frames that a trigger asks to keep.
    wishes: Wishes,
}

/// A list that the recorder's thread fills and the workshop's thread empties.
pub(crate) type Wishes = Arc<Mutex<Vec<KeepWish>>>;

impl Workshop {
    /// A workshop for a series whose index is open.
    pub fn new(template: Template, keeper: Keeper, stores: StoreMaker) -> Self {
        Self { template, keeper, stores, wishes: Wishes::default() }
    }

    /// The list of wishes.
    pub(crate) fn wishes(&self) -> Wishes {
        Arc::clone(&self.wishes)
    }

    /// Pins the segments that a trigger asks to keep. Blocks.
    fn pin(&mut self) {
        let wishes = std::mem::take(&mut *self.wishes.lock().unwrap_or_else(PoisonError::into_inner));
        wishes.into_iter().for_each(|wish| self.keeper.keep(wish));
    }

    /// Makes the segment with this number. Blocks.
    ///
    /// # Errors
    /// See [`Recorder::prepare`].
    pub fn make(&mut self, number: u32) -> Result<Box<Recorder>, RecorderError> {
        let setup = self.template.setup(number, self.keeper.bases());
        let (ring, description) = (self.template.ring.clone(), self.template.description.clone());
        Recorder::prepare((self.stores)(), ring, description, setup).map(Box::new)
    }

    /// Writes the metadata of a segment whose recorder is done, enters it into the index and applies the retention.
    /// Blocks.
    pub fn close(
        &mut self,
        number: u32,
        done: Box<Recorder>,
        next: Option<NextSegment>,
        now: Instant,
        counters: SourceCounters,
    ) -> ClosedSegment {
        // Before the index lists it as closed, because after a crash only the other segments are checked.
        self.pin();
        let (id, first, end) = (done.id(), done.first_frame(), done.end_frame());
        let resumed = done.resumed();
        let outcome = done.finish(now, counters);
        let at = (self.template.moment)();
        if let Some((epoch, GapBounds { first, least, most })) = resumed {
            let first = Frames(first.0 + least.0);
            self.keeper.resumed(IndexRecord::Resumed { epoch, first, least, most, at: at.realtime });
        }
        if let Some(NextSegment { number, id, first }) = next {
            self.keeper.opened(number, id, first, at.realtime);
        }
        let (stored_bytes, lost_bytes) = (outcome.ledger.stored_bytes, outcome.ledger.lost_bytes);
        let verdict = outcome.verdict;
        self.keeper.closed(&SegmentEnd { number, id, first, end, stored_bytes, lost_bytes, verdict, at });
        // Sweep as of the closing time: even with a slow disk the newest segment still exists when the recording ends.
        let room = self.sweep_as_of(&at);
        if next.is_none() {
            self.keeper.describe_now();
            self.keeper.tell_busy();
        }
        let (dropped, kept, pinned) = (self.keeper.dropped(), self.keeper.kept(), self.keeper.pinned());
        ClosedSegment { number, outcome, dropped, kept, pinned, room, troubles: self.keeper.troubles() }
    }

    /// Applies the retention. Returns how much room there is. Blocks.
    pub fn sweep(&mut self) -> RoomLeft {
        let room = self.sweep_as_of(&(self.template.moment)());
        self.keeper.describe_if_quiet();
        room
    }

    fn sweep_as_of(&mut self, now: &ClockMoment) -> RoomLeft {
        self.pin();
        self.keeper.sweep(now)
    }

    /// The index and the collection.
    pub fn files(&self) -> Vec<std::path::PathBuf> {
        self.keeper.files()
    }
}

/// A segment that is being closed.
struct Closing {
    number: u32,
    old: Box<Recorder>,
    next: Option<NextSegment>,
    counters: SourceCounters,
}

/// Makes and closes segments on the calling thread.
pub struct Inline {
    workshop: Workshop,
    ready: Option<Result<Box<Recorder>, RecorderError>>,
    closing: Option<Closing>,
}

impl Inline {
    /// A worker with this workshop.
    pub fn new(workshop: Workshop) -> Self {
        Self { workshop, ready: None, closing: None }
    }
}

impl SegmentWorker for Inline {
    fn prepare(&mut self, number: u32) {
        self.ready = Some(self.workshop.make(number));
    }

    fn prepared(&mut self) -> Option<Result<Box<Recorder>, RecorderError>> {
        self.ready.take()
    }

    fn keep(&mut self, wish: KeepWish) {
        self.workshop.keeper.keep(wish);
    }

    fn close(&mut self, number: u32, old: Box<Recorder>, next: Option<NextSegment>, counters: SourceCounters) {
        self.closing = Some(Closing { number, old, next, counters });
    }

    fn closed(&mut self, now: Instant) -> Option<ClosedSegment> {
        let Closing { number, mut old, next, counters } = self.closing.take()?;
        if old.step(now, counters) == Step::Done {
            return Some(self.workshop.close(number, old, next, now, counters));
        }
        self.closing = Some(Closing { number, old, next, counters });
        None
    }

    fn finish(&mut self, now: Instant) -> Option<ClosedSegment> {
        self.closing.as_ref()?;
        loop {
            if let Some(closed) = self.closed(now) {
                return Some(closed);
            }
            if let Some(Closing { old, .. }) = &mut self.closing {
                old.wait(now + Nanos::from_secs(1));
            }
        }
    }

    fn room(&mut self) -> RoomLeft {
        self.workshop.sweep()
    }
}

/// Closes the one segment of a recording that is not divided.
#[derive(Default)]
pub struct Undivided {
    ending: Option<(u32, Box<Recorder>, SourceCounters)>,
}

impl SegmentWorker for Undivided {
    fn prepare(&mut self, number: u32) {
        unreachable!("segment {number} of a recording that is not divided");
    }

    fn prepared(&mut self) -> Option<Result<Box<Recorder>, RecorderError>> {
        None
    }

    fn keep(&mut self, _wish: KeepWish) {}

    fn close(&mut self, number: u32, old: Box<Recorder>, _next: Option<NextSegment>, counters: SourceCounters) {
        self.ending = Some((number, old, counters));
    }

    fn closed(&mut self, _now: Instant) -> Option<ClosedSegment> {
        None
    }

    fn finish(&mut self, now: Instant) -> Option<ClosedSegment> {
        let (number, recorder, counters) = self.ending.take()?;
        let outcome = recorder.finish(now, counters);
        let (dropped, room) = (Dropped::default(), RoomLeft::Enough);
        Some(ClosedSegment { number, outcome, dropped, kept: 1, pinned: 0, room, troubles: Vec::new() })
    }

    fn room(&mut self) -> RoomLeft {
        RoomLeft::Enough
    }
}
