//! [`SeriesRecorder`]: drives the recorder of the present segment, and cuts when it is time.
//!
//! ```text
//!            1 prepare        2 cut                3 close
//!   next    ──────▸ ready ──────▸ present ... ──────▸ closing ──────▸ closed
//! ```
//!
//! 1. As soon as a segment begins and the one before is closed, the files of the next one are made, by a
//!    [`SegmentWorker`].
//! 2. When the present segment has its length, and the next is ready, the ring changes hands between two blocks. Blocks
//!    of the old segment under way are still written from the ring.
//! 3. The old segment goes to the worker, which drives it to its end and describes it.
//!
//! A recording that is not divided is a series without cuts: [`SeriesRecorder::undivided`].
//!
//! At most three segments have files open: one that is closed, the present one, and the next. A state machine like
//! [`Recorder`], with the same calls.

use hairspring_machine::{Instant, Nanos};
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Bytes, Frames};
use hairspring_source::SourceCounters;

use super::RoomLeft;
use super::keeper::KeepWish;
use super::segment_worker::{ClosedSegment, NextSegment, SegmentWorker, Undivided};
use crate::recorder::{Outcome, Recorder, RecorderError, Status, Step};
use hairspring_recording::beginning::Beginning;
use hairspring_recording::clock::ClockNote;
use hairspring_recording::journal::GapBounds;
use hairspring_recording::ledger::{Ledger, RecordingVerdict};
use hairspring_store::Direct;

/// Interval at which the worker is polled while it has work.
const ASK_EVERY: Nanos = Nanos::from_millis(5);
/// Silence of the source at a cut after which the segment is closed anyway. If shorter, a source that ends there leaves
/// an empty segment.
const SILENT: Nanos = Nanos::from_secs(1);
/// Interval between two queries of the free space.
const SPACE_EVERY: Nanos = Nanos::from_secs(1);
/// The most gaps in the result of a series; the segments list all.
const MOST_GAPS: usize = 10_000;
/// The most triggers in the result; the segments list all.
const MOST_TRIGGERS: usize = 100_000;
/// The most troubles in the result.
const MOST_TROUBLES: usize = 16;

/// The length of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentLength {
    /// No cuts: one segment.
    Undivided,
    /// This number of blocks.
    Blocks(u64),
    /// At least this time by this computer's clock, suspends included; for a source without a rate, and with a trigger
    /// that chooses the data.
    Time(Nanos),
}

impl SegmentLength {
    /// The whole blocks that are nearest to an amount of bytes; at least one.
    pub fn of_bytes(bytes: Bytes, block: Bytes) -> Self {
        Self::Blocks((bytes.0.saturating_add(block.0 / 2) / block.0.max(1)).max(1))
    }
}

/// The summary of a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesSummary {
    /// Segments of this run, including the last.
    pub segments: u32,
    /// Closed segments that exist now, including those of earlier runs.
    pub kept: usize,
    /// Segments and bytes of this run that retention deleted.
    pub dropped_segments: u32,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Segments that were pinned because of a trigger.
    pub pinned: usize,
    /// Cuts that came late, because the next segment was not ready or the previous one was not closed.
    pub overdue_cuts: u32,
    /// The most bytes in the ring from a cut until the old segment was written.
    pub cut_high_water: Bytes,
    /// The number of the first segment of this run.
    pub first_number: u32,
    /// The number of the last segment of this run.
    pub last_number: u32,
    /// Why the recording ended before its time, if it did.
    pub stopped: Option<String>,
    /// Whether it ended so because too little space was free.
    pub is_out_of_space: bool,
    /// The least free space that was seen, if it was less than twice the limit at any time.
    pub least_free: Option<Bytes>,
    /// Errors apart from the recording itself: of the index, the collection, a deletion.
    pub troubles: Vec<String>,
}

/// The sums over closed segments.
#[derive(Clone, Debug, Default)]
struct Totals {
    stored_bytes: u64,
    durable_bytes: u64,
    lost_bytes: u64,
    /// Left out by choice, not because of its place in the series.
    left_out_bytes: u64,
    gaps: Vec<hairspring_ring::Gap>,
    all_gaps: u64,
    triggers: Vec<(u64, Frames)>,
    all_shots: u64,
    worst_stall: Nanos,
    checksum_time: Nanos,
    verdict: Option<(RecordingVerdict, String)>,
    is_direct: Option<Direct>,
}

/// The sums over the segments of a run.
struct Sums {
    layout: Layout,
    /// The first frame of this run.
    first: Frames,
    /// Bytes stored, lost and left out of the segment that is being closed; they count as under way until it is closed.
    closing_bytes: Option<[u64; 3]>,
    totals: Totals,
    summary: SeriesSummary,
    /// The free space, while it is less than twice the limit.
    low: Option<Bytes>,
}

impl Sums {
    /// Enters a segment that was closed.
    fn enter(&mut self, closed: ClosedSegment) {
        self.closing_bytes = None;
        let ClosedSegment { number, outcome, dropped, kept, pinned, room, troubles } = closed;
        let totals = &mut self.totals;
        let ledger = &outcome.ledger;
        totals.stored_bytes += ledger.stored_bytes;
        totals.durable_bytes += ledger.durable_bytes;
        totals.lost_bytes += ledger.lost_bytes;
        totals.left_out_bytes += ledger.left_out_bytes - ledger.earlier_bytes;
        totals.all_gaps += outcome.gaps.len() as u64;
        let more = MOST_GAPS.saturating_sub(totals.gaps.len());
        totals.gaps.extend(outcome.gaps.iter().take(more));
        totals.all_shots += outcome.triggers.len() as u64;
        let more = MOST_TRIGGERS.saturating_sub(totals.triggers.len());
        totals.triggers.extend(outcome.triggers.iter().take(more));
        totals.worst_stall = totals.worst_stall.max(outcome.worst_stall);
        totals.checksum_time += outcome.checksum_time;
        totals.is_direct = Some(match (totals.is_direct, outcome.direct) {
            (Some(Direct::No), _) | (_, Direct::No) => Direct::No,
            (Some(Direct::Claimed), _) | (_, Direct::Claimed) => Direct::Claimed,
            _ => Direct::Proven,
        });
        if totals.verdict.as_ref().is_none_or(|worst| outcome.verdict > worst.0) {
            totals.verdict = Some((outcome.verdict, format!("segment {number}: {}", outcome.reason)));
        }
        self.summary.segments += 1;
        self.summary.kept = kept;
        self.summary.pinned = pinned;
        (self.summary.dropped_segments, self.summary.dropped_bytes) = (dropped.segments, dropped.bytes);
        for trouble in troubles {
            if self.summary.troubles.len() < MOST_TROUBLES && !self.summary.troubles.contains(&trouble) {
                self.summary.troubles.push(trouble);
            }
        }
        self.enter_room(room);
    }

    /// Notes the free space, and ends the recording if it is too little.
    fn enter_room(&mut self, room: RoomLeft) {
        self.low = match room {
            RoomLeft::Enough => None,
            RoomLeft::Low(free) | RoomLeft::Short(free) => Some(free),
        };
        let summary = &mut self.summary;
        summary.least_free = summary.least_free.into_iter().chain(self.low).min();
        if let RoomLeft::Short(free) = room
            && summary.stopped.is_none()
        {
            summary.is_out_of_space = true;
            self.stop(format!("only {free} are free, less than asked for: free space, or allow to make room"));
        }
    }

    fn stop(&mut self, why: String) {
        self.summary.stopped.get_or_insert(why);
    }

    /// The account of the run, from that of the present segment, which may be closed by now.
    fn ledger(&self, current: Ledger, is_closed: bool) -> Ledger {
        let [closing, closing_lost, closing_left_out] = self.closing_bytes.unwrap_or_default();
        let (totals, dropped_bytes) = (&self.totals, self.summary.dropped_bytes);
        let earlier_bytes = self.layout.bytes_of(self.first).0;
        let own =
            if is_closed { Ledger { produced_bytes: current.produced_bytes, ..Ledger::default() } } else { current };
        Ledger {
            stored_bytes: (totals.stored_bytes + own.stored_bytes).saturating_sub(dropped_bytes),
            durable_bytes: (totals.durable_bytes + own.durable_bytes).saturating_sub(dropped_bytes),
            in_flight_bytes: closing + own.in_flight_bytes,
            lost_bytes: totals.lost_bytes + closing_lost + own.lost_bytes,
            left_out_bytes: earlier_bytes + totals.left_out_bytes + closing_left_out + own.left_out_bytes
                - own.earlier_bytes,
            earlier_bytes,
            dropped_bytes,
            ..own
        }
    }
}

/// Records a series.
pub struct SeriesRecorder {
    current: Box<Recorder>,
    next: Option<Box<Recorder>>,
    worker: Box<dyn SegmentWorker>,
    length: SegmentLength,
    number: u32,
    /// Whether the worker is making the next segment.
    asked: bool,
    /// Why the next segment could not be made, whether space was missing, and when to try again.
    refused: Option<(String, bool, Instant)>,
    /// When the present segment began, plus the time for which the computer had been suspended by then.
    since: Option<Instant>,
    /// The time for which the computer has been suspended since boot.
    suspended: fn() -> Nanos,
    /// Since when a cut is possible with no data after it.
    silent_since: Option<Instant>,
    /// Whether the present cut is overdue.
    overdue: bool,
    asked_space: Instant,
    sums: Sums,
}

impl SeriesRecorder {
    /// Goes on from the recorder of the first segment of this run, with this number.
    pub fn new(
        first: Box<Recorder>,
        number: u32,
        worker: Box<dyn SegmentWorker>,
        length: SegmentLength,
        layout: Layout,
    ) -> Self {
        let summary = SeriesSummary { first_number: number, last_number: number, ..SeriesSummary::default() };
        let first_frame = first.first_frame();
        let sums =
            Sums { layout, first: first_frame, closing_bytes: None, totals: Totals::default(), summary, low: None };
        Self {
            current: first,
            next: None,
            worker,
            length,
            number,
            asked: false,
            refused: None,
            since: None,
            suspended: || Nanos::ZERO,
            silent_since: None,
            overdue: false,
            asked_space: Instant::BOOT,
            sums,
        }
    }

    /// Drives one recorder, and never cuts.
    pub fn undivided(recorder: Box<Recorder>, layout: Layout) -> Self {
        Self::new(recorder, 0, Box::new(Undivided::default()), SegmentLength::Undivided, layout)
    }

    /// Counts suspends of the computer into the length of segments that is given as a time.
    #[must_use]
    pub fn with_suspends(self, suspended: fn() -> Nanos) -> Self {
        Self { suspended, ..self }
    }

    /// Like [`Recorder::begins`].
    pub fn begins(&mut self, beginning: Beginning) {
        self.current.begins(beginning);
        if self.number == self.sums.summary.first_number {
            self.sums.first = self.current.first_frame();
        }
    }

    /// Like [`Recorder::beginning`].
    pub fn beginning(&self) -> Option<Beginning> {
        self.current.beginning()
    }

    /// Like [`Recorder::note`].
    pub fn note(&mut self, note: ClockNote) {
        self.current.note(note);
    }

    /// Like [`Recorder::bound_gaps`].
    pub fn bound_gaps(&mut self, bounds: &[GapBounds]) {
        self.current.bound_gaps(bounds);
    }

    /// Like [`Recorder::stopped_by`].
    pub fn stopped_by(&mut self, what: String) {
        self.current.stopped_by(what);
    }

    /// Like [`Recorder::step`].
    pub fn step(&mut self, now: Instant, counters: SourceCounters) -> Step {
        self.ask(now);
        let awake = now + (self.suspended)();
        let since = *self.since.get_or_insert(awake);
        let is_stopped = self.sums.summary.stopped.is_some();
        let may_ask = self.refused.as_ref().is_none_or(|(.., again)| now >= *again);
        let divides = self.length != SegmentLength::Undivided;
        if divides && !self.asked && may_ask && self.next.is_none() && self.sums.closing_bytes.is_none() && !is_stopped
        {
            self.asked = true;
            self.worker.prepare(self.number + 1);
        }
        self.arm(awake - since);
        let mut step = self.step_current(now, counters);
        if self.current.ends_at_cut() {
            self.current.do_not_cut();
            step = self.step_current(now, counters);
        }
        if self.cut(now, counters) {
            self.arm(Nanos::ZERO);
            step = self.step_current(now, counters);
        }
        let sums = &mut self.sums;
        if sums.closing_bytes.is_some() {
            sums.summary.cut_high_water.0 = sums.summary.cut_high_water.0.max(self.current.fill().now.0);
        }
        match step {
            Step::Wait(_) if sums.summary.stopped.is_some() && !self.current.is_ending() => {
                sums.summary.stopped.iter().for_each(|why| self.current.stopped_by(why.clone()));
                Step::StopSource
            }
            Step::Wait(until) if self.asked || sums.closing_bytes.is_some() => Step::Wait(until.min(now + ASK_EVERY)),
            step => step,
        }
    }

    /// Lets the present recorder work, and hands on the frames to keep.
    fn step_current(&mut self, now: Instant, counters: SourceCounters) -> Step {
        let step = self.current.step(now, counters);
        let (number, first) = (self.number, self.current.first_frame());
        for kept in self.current.take_kept() {
            self.worker.keep(KeepWish { kept, number, first });
        }
        step
    }

    /// Takes the worker's results.
    fn ask(&mut self, now: Instant) {
        match self.worker.prepared() {
            Some(Ok(next)) => (self.next, self.asked, self.refused) = (Some(next), false, None),
            // The present segment goes on to its end; there may be space by then.
            Some(Err(error)) => {
                let is_for_space = match &error {
                    RecorderError::NoSpace(..) => true,
                    // No inodes, or no quota, for the files.
                    RecorderError::Store(error) => matches!(error.errno.0, libc::ENOSPC | libc::EDQUOT),
                    _ => false,
                };
                (self.asked, self.refused) = (false, Some((error.to_string(), is_for_space, now + SPACE_EVERY)));
            }
            None => {}
        }
        if let Some(closed) = self.worker.closed(now) {
            self.sums.enter(closed);
        }
        if now - self.asked_space >= SPACE_EVERY {
            self.asked_space = now;
            let room = self.worker.room();
            self.sums.enter_room(room);
        }
    }

    /// Sets the cut of the present recorder, if the next one can take over.
    fn arm(&mut self, open_for: Nanos) {
        let due = match self.length {
            SegmentLength::Blocks(blocks) => Some(blocks),
            SegmentLength::Time(time) if open_for >= time => Some(1),
            SegmentLength::Time(_) | SegmentLength::Undivided => None,
        };
        let sums = &mut self.sums;
        let may = self.next.is_some() && sums.closing_bytes.is_none() && sums.summary.stopped.is_none();
        match due {
            Some(blocks) if may => self.current.cut_after(blocks),
            due => {
                let late = due.is_some_and(|blocks| self.current.blocks_taken() >= blocks);
                if let (true, Some((why, is_for_space, _))) = (late, &self.refused) {
                    sums.summary.is_out_of_space |= *is_for_space && sums.summary.stopped.is_none();
                    sums.stop(format!("the next segment could not be made: {why}"));
                }
                if late && !std::mem::replace(&mut self.overdue, true) {
                    sums.summary.overdue_cuts += 1;
                }
                self.current.do_not_cut();
            }
        }
    }

    /// Cuts, if it is time.
    fn cut(&mut self, now: Instant, counters: SourceCounters) -> bool {
        if !self.current.is_at_cut() && !self.is_silent(now) {
            return false;
        }
        let Some(mut next) = self.next.take() else { return false };
        if !self.current.cut(&mut next, now, counters) {
            self.next = Some(next);
            return false;
        }
        let ledger = self.current.ledger(counters);
        let (stored, left_out) =
            (ledger.stored_bytes + ledger.in_flight_bytes, ledger.left_out_bytes - ledger.earlier_bytes);
        self.sums.closing_bytes = Some([stored, ledger.lost_bytes, left_out]);
        let old = std::mem::replace(&mut self.current, next);
        let (id, first) = (self.current.id(), self.current.first_frame());
        let following = NextSegment { number: self.number + 1, id, first };
        self.worker.close(self.number, old, Some(following), counters);
        self.number += 1;
        self.sums.summary.last_number = self.number;
        (self.since, self.silent_since, self.overdue) = (Some(now + (self.suspended)()), None, false);
        true
    }

    /// Whether the source has been silent long enough where a cut is due.
    fn is_silent(&mut self, now: Instant) -> bool {
        if !self.current.may_cut() || self.current.is_ending() {
            self.silent_since = None;
            return false;
        }
        now - *self.silent_since.get_or_insert(now) >= SILENT
    }

    /// Like [`Recorder::wait`].
    pub fn wait(&mut self, until: Instant) {
        self.current.wait(until);
    }

    /// The account of this run. Frames before its first one count as left out.
    pub fn ledger(&self, counters: SourceCounters) -> Ledger {
        self.sums.ledger(self.current.ledger(counters), false)
    }

    /// Like [`Recorder::status`], for the whole run.
    pub fn status(&self, counters: SourceCounters, free: Option<Bytes>) -> Status {
        let (status, totals) = (self.current.status(counters, free), &self.sums.totals);
        Status {
            ledger: self.ledger(counters),
            worst_stall: status.worst_stall.max(totals.worst_stall),
            gaps: status.gaps + totals.all_gaps,
            shots: status.shots + totals.all_shots,
            ..status
        }
    }

    /// The free space, while it is less than twice the limit at which the recording ends.
    pub fn low_space(&self) -> Option<Bytes> {
        self.sums.low
    }

    /// The number of the present segment; `None` if the recording is not divided.
    pub fn number(&self) -> Option<u32> {
        (self.length != SegmentLength::Undivided).then_some(self.number)
    }

    /// Removes the files of all segments, before anything was recorded. Blocks.
    pub fn abandon(self) {
        self.next.into_iter().chain([self.current]).for_each(|recorder| recorder.abandon());
    }

    /// Closes the last segment, after [`Step::Done`], and removes the one that was made in advance. Blocks.
    ///
    /// # Panics
    /// If the worker panicked, with its message.
    pub fn finish(self, now: Instant, counters: SourceCounters) -> (Outcome, SeriesSummary) {
        let Self { current, next, mut worker, number, asked, mut sums, .. } = self;
        if let Some(closed) = worker.finish(now) {
            sums.enter(closed);
        }
        let own = current.ledger(counters);
        worker.close(number, current, None, counters);
        let closed = worker.finish(now).unwrap_or_else(|| unreachable!("a segment that was given to the worker"));
        let made = if asked { worker.prepared().and_then(Result::ok) } else { None };
        next.into_iter().chain(made).for_each(|unused| unused.abandon());
        let last = closed.outcome.clone();
        sums.enter(closed);
        let ledger = sums.ledger(own, true);
        let (verdict, reason) = judged(&last, &sums, &ledger);
        let Sums { totals, summary, .. } = sums;
        // A single segment has all of them.
        let only = (summary.segments == 1).then(|| (last.gaps.clone(), last.triggers.clone()));
        let Totals { gaps, triggers, worst_stall, checksum_time, is_direct, .. } = totals;
        let (gaps, triggers) = only.unwrap_or((gaps, triggers));
        let direct = is_direct.unwrap_or(last.direct);
        let outcome = Outcome { verdict, reason, ledger, gaps, triggers, worst_stall, checksum_time, direct, ..last };
        (outcome, summary)
    }
}

/// The verdict on the whole run, and its reason.
fn judged(last: &Outcome, sums: &Sums, ledger: &Ledger) -> (RecordingVerdict, String) {
    let worst = sums.totals.verdict.as_ref().filter(|worst| worst.0 > last.verdict);
    let (mut verdict, mut reason) = worst.cloned().unwrap_or_else(|| (last.verdict, last.reason.clone()));
    // A segment that was cut is complete; the user ended the run, not the segment.
    if verdict <= RecordingVerdict::Stopped {
        (verdict, reason) = (last.verdict, last.reason.clone());
    }
    if !ledger.holds() {
        let difference = ledger.unaccounted_bytes();
        (verdict, reason) =
            (RecordingVerdict::Unaccounted, format!("{difference} bytes of the series are unaccounted for; {reason}"));
    }
    if let Some(why) = &sums.summary.stopped {
        reason = if verdict == RecordingVerdict::Stopped { why.clone() } else { format!("{why}; {reason}") };
    }
    (verdict, reason)
}
