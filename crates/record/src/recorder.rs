//! [`Recorder`]: moves a stream from its ring into files, and accounts for every byte that is lost.
//!
//! **What it is.** A state machine without threads and without a clock: its caller passes the time and the source's
//! counts to [`Recorder::step`], which does all work possible now and returns when it must be called again. A thread
//! drives it on the host ([`session`](crate::session)); tests drive it through virtual time on a scripted disk.
//!
//! ```text
//!            ring                 in flight                    files
//!   ┌──────────────────┐   ┌──────────────────────┐   ┌──────────────────┐
//!   │ next ▸ ... head  │ 1 │ write of block k     │ 2 │ data ──────▸ 3   │
//!   └──────────────────┘──▸│ write of block k + 1 │──▸│ journal ───▸ 4   │
//!                          └──────────────────────┘   └──────────────────┘
//! ```
//!
//! 1. A full block is written directly from the ring, without a copy; its CRC-32C is computed while the disk writes it.
//!    Where data may be overwritten or left out (policy `overwrite`, a trigger) the recorder first copies them into
//!    blocks of its own. Gaps are entered into the journals as soon as they are seen, ahead of the block in which they
//!    lie.
//! 2. Writes complete in any order; each is entered into the journal when it is complete, and counts as stored when the
//!    journal's file has it. The ring gets its room back in order.
//! 3. From time to time the recorder syncs the data. Blocks that were complete when the sync was *submitted* are
//!    durable when it succeeds.
//! 4. Then the journal records that and is itself synced. Only then do the blocks count as durable.
//!
//! The state of each block stands in one place, `recorder/block_states.rs`. Ledger, verdict and metadata follow from
//! it.
//!
//! **Failures.** The recorder gives up a target that fails, and its unfinished blocks go to the others. If the target's
//! journal fails, blocks that are written but not yet in the journal become a gap. When the last target fails, the
//! recording ends in order and stays readable: data that could not be written are a gap whose cause is the error. After
//! a failed sync no data count as durable any more, because a later sync cannot make up for it.
//!
//! **The end.** All blocks are made durable; the files are cut to their lengths and synced; the verdict is settled; the
//! journals get their ends; the metadata are written.
//!
//! **Real-time behaviour.** No call sleeps or locks. It allocates only where lists of blocks and gaps grow.

mod block_states;
mod ends;
mod error;
mod feed;
mod gaps;
mod inlet;
mod look;
mod member;
mod notes;
mod pin_trigger;
mod present;
mod resume;
mod segment_cut;
mod write_settings;
mod writes;

use std::collections::VecDeque;
use std::path::PathBuf;

use hairspring_machine::{Instant, Nanos};

use hairspring_recording::MOST_BLOCK;
use hairspring_recording::beginning::Beginning;
use hairspring_recording::channels::ChannelDescription;
use hairspring_recording::clock::ClockRecord;
use hairspring_recording::journal::{GapBounds, KeptFrames, Record, RecordingId};
use hairspring_recording::ledger::{Ledger, RecordingVerdict};
use hairspring_recording::sigmf::SegmentOf;
use hairspring_recording::timeline::Timeline;
use hairspring_ring::gap::{Gap, Skip};
use hairspring_ring::units::{Bytes, Frames};
use hairspring_ring::{Consumer, End, OnOverrun};
use hairspring_source::trigger::{Gate, Missed};
use hairspring_source::{Ignored, SenderCount, SourceCounters, SourceDescription};
use hairspring_store::owner::{Ownership, Work};
use hairspring_store::{Completion, Direct, Fallback, MemoryId, Store, not_made};

pub use error::RecorderError;
pub use inlet::RingLoan;
pub use pin_trigger::{KeepOn, KeepWatch};
pub use resume::ResumeFrom;
pub use write_settings::WriteSettings;
pub use writes::BlockPlacement;

use block_states::BlockStates;
use feed::Staging;
use inlet::Inlet;
use member::Member;
use segment_cut::Place;
use writes::Write;

/// The settings of a recorder.
#[derive(Debug)]
pub struct Setup {
    /// The recording's name in each target directory, without an ending: `DIR/x`.
    pub targets: Vec<PathBuf>,
    /// The recording's id; random.
    pub id: RecordingId,
    /// How data are written.
    pub write: WriteSettings,
    /// Records only the frames that a trigger asks for.
    pub gate: Option<Gate>,
    /// Whether the previous segment hands on its gate. A setup with a gate may leave this `false`.
    pub gated: bool,
    /// Finds the frames that a trigger pins. In a series each segment hands the watch on to the next.
    pub keep_on: Option<KeepWatch>,
    /// When the recorder was made. The caller reports the time of the first frame by [`Recorder::begins`].
    pub opened: Beginning,
    /// Quantities and units of the channels: of all, or an empty list.
    pub channels: Vec<ChannelDescription>,
    /// Facts about the clocks from before the start.
    pub clock: ClockRecord,
    /// Its place in a series, if it is a segment. A segment that is made in advance has no first frame yet.
    pub series: Option<SegmentOf>,
    /// Where the earlier run of a resumed series ended. No data are taken from the ring before the caller has called
    /// [`Recorder::begins`].
    pub resumed: Option<ResumeFrom>,
    /// Reads a clock, to measure the time that the checksums take.
    pub stopwatch: fn() -> Instant,
}

/// Most writes under way at once.
pub const MOST_DEPTH: usize = 256;
/// Interval at which a recorder checks whether the previous one has written its blocks.
const LOOK_BEFORE: Nanos = Nanos::from_millis(1);
/// The least alignment of blocks in files and memory; a disk may require more.
const ALIGNMENT: u64 = 4096;

/// The next action of the caller after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Call again when an operation completes, the ring's notifier is set, or this time has come.
    Wait(Instant),
    /// Stop the source, because nothing more can or needs to be recorded, and keep calling.
    StopSource,
    /// Call [`Recorder::finish`]: everything is in the files.
    Done,
}

/// The present state of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Where every byte is.
    pub ledger: Ledger,
    /// Bytes in the ring now, the most up to now, and the ring's size.
    pub fill: hairspring_ring::Fill,
    /// The longest that one write took from submission to completion.
    pub worst_stall: Nanos,
    /// Number of gaps up to now.
    pub gaps: u64,
    /// Number of shots up to now, with a trigger.
    pub shots: u64,
    /// Free space in all targets' file systems plus the space reserved; `None` if a file system does not report it.
    pub free: Option<Bytes>,
}

/// The result of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The verdict.
    pub verdict: RecordingVerdict,
    /// Why, in a sentence.
    pub reason: String,
    /// How the source ended.
    pub end: End,
    /// Where every byte is.
    pub ledger: Ledger,
    /// The missing frames, in order.
    pub gaps: Vec<Gap>,
    /// The frames left out by a trigger, in order.
    pub skips: Vec<Skip>,
    /// Shots and the frames that triggered them.
    pub triggers: Vec<(u64, Frames)>,
    /// Triggers that made no shot, or an incomplete one.
    pub missed: Missed,
    /// Datagrams that are no part of the stream.
    pub ignored: Ignored,
    /// The longest that one write took.
    pub worst_stall: Nanos,
    /// The most bytes that were in the ring.
    pub high_water: Bytes,
    /// The size of the ring.
    pub buffer: Bytes,
    /// The ways to the disk: those in use, and those refused.
    pub fallbacks: Vec<Fallback>,
    /// Whether all data are proven to have bypassed the page cache.
    pub direct: Direct,
    /// Total time that the checksums took.
    pub checksum_time: Nanos,
    /// Size of a block.
    pub block: Bytes,
    /// The data files, metadata and journals.
    pub files: Vec<PathBuf>,
}

/// The phases of a recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Taking data and writing them.
    Streaming,
    /// All is taken; the last writes are under way.
    Draining,
    /// The last sync of the data.
    Syncing,
    /// The files are cut to their lengths and synced.
    Cutting,
    /// The last records, and the last sync of the journals.
    Closing,
    Done,
}

/// Moves a stream from its ring into files.
pub struct Recorder {
    store: Box<dyn Store>,
    inlet: Inlet,
    /// The ring's memory in the store.
    ring: MemoryId,
    description: SourceDescription,
    setup: Setup,
    members: Vec<Member>,
    block: u64,
    phase: Phase,
    /// Buffers for copies, if data are copied before they are written.
    staging: Option<Staging>,
    /// Writes under way, by slot.
    writes: Vec<Option<Write>>,
    /// The blocks that were taken from the ring and not released, oldest first: where each ends in the ring, and
    /// whether it is written.
    taken: VecDeque<(u64, bool)>,
    /// Where the stream begins, and the account of earlier segments.
    place: Place,
    /// Bytes of the source's gaps that were entered here.
    source_lost_bytes: u64,
    /// How many blocks are taken before the cut; `None` if no cut is due.
    cut_after: Option<u64>,
    /// The gap with which a resumed series begins again, once it is known.
    resumed: Option<GapBounds>,
    /// The sender's counter, held until the start of a resumed series is known.
    first_count: Option<SenderCount>,
    /// The source's counts at the cut. Later counts belong to later segments.
    sealed: Option<SourceCounters>,
    /// The state of each block.
    block_states: BlockStates,
    /// Position in the stored stream after the last byte that has a place in a block, written or not.
    stored_position: u64,
    /// Ring position up to which gaps and frames are accounted for, and the frame there.
    position: u64,
    frame: Frames,
    timeline: Timeline,
    gaps: Vec<Gap>,
    /// The lengths of those that are known as intervals only.
    bounds: Vec<GapBounds>,
    skips: Vec<Skip>,
    /// Frames left out most recently; entered before the next kept frames or gap.
    pending_skip: Option<Skip>,
    triggers: Vec<(u64, Frames)>,
    /// Frames to pin, held until the caller takes them.
    kept: Vec<KeptFrames>,
    /// Bytes lost on this side of the ring: evicted, or not writable.
    lost_bytes: u64,
    left_out_bytes: u64,
    /// The first block that no target could take, once no target is left; and whether the account was ended there.
    failed: Option<u64>,
    failure_is_settled: bool,
    /// Files that could not be cut to their lengths, and why.
    uncut: Vec<String>,
    /// Paths that no longer lead to the files written there: which, and how they differ.
    astray: Vec<String>,
    /// Keeps other processes from changing the files.
    ownership: Ownership,
    /// Gaps that began elsewhere than at the end of the frames before them: the source's account and ours differ.
    misplaced: u64,
    /// A sync failed, so no more data count as durable.
    sync_failed: bool,
    /// Errors for the report, in order, in words.
    troubles: Vec<String>,
    /// Why the source was stopped, if not by the user; a fragment for the report.
    stopped_by: Option<String>,
    worst_stall: Nanos,
    checksum_time: Nanos,
    beginning: Option<Beginning>,
    clock: ClockRecord,
    completions: Vec<Completion>,
}

impl Recorder {
    /// Makes the files and reserves space. Blocks.
    ///
    /// # Errors
    /// See [`RecorderError`]; nothing was recorded then.
    pub fn open(
        store: Box<dyn Store>,
        consumer: Consumer,
        description: SourceDescription,
        setup: Setup,
    ) -> Result<Self, RecorderError> {
        Self::made(store, RingLoan::of(&consumer), Some(consumer), description, setup)
    }

    /// Makes the files of the next segment of a series and reserves space, before the segment begins. [`Recorder::cut`]
    /// of the present segment's recorder gives it the ring. Blocks.
    ///
    /// # Errors
    /// As [`Recorder::open`].
    pub fn prepare(
        store: Box<dyn Store>,
        ring: RingLoan,
        description: SourceDescription,
        setup: Setup,
    ) -> Result<Self, RecorderError> {
        Self::made(store, ring, None, description, setup)
    }

    fn made(
        mut store: Box<dyn Store>,
        ring: RingLoan,
        consumer: Option<Consumer>,
        description: SourceDescription,
        mut setup: Setup,
    ) -> Result<Self, RecorderError> {
        setup.gated |= setup.gate.is_some();
        if setup.targets.is_empty() {
            return Err(RecorderError::Setup("a recording needs a target"));
        }
        if setup.write.depth == 0 || setup.write.depth > MOST_DEPTH {
            return Err(RecorderError::Setup("the number of writes under way must be 1 to 256"));
        }
        let inlet = Inlet::new(ring, consumer).map_err(|error| ends::no_descriptor(&error))?;
        let files: Vec<PathBuf> = setup.targets.iter().flat_map(|base| member::files_of(base)).collect();
        // Own the names before the files are made, so that the store locks each new file.
        let ownership = store.own(&files, Work::Records)?;
        let mut members = Vec::new();
        let mut alignment = ALIGNMENT;
        for base in &setup.targets {
            let member = match Member::open(&mut *store, base) {
                Ok(member) => member,
                Err(error) => {
                    ends::remove_files(&mut *store, &members);
                    return Err(not_made(&*store, error).into());
                }
            };
            alignment = alignment.max(store.facts(member.data).alignment);
            members.push(member);
        }
        let layout = description.layout;
        let grain = layout.grain();
        let step = lcm(grain.bytes, alignment);
        let block = (setup.write.block.0.min(MOST_BLOCK.0) / step).max(1) * step;
        let ring_size = inlet.memory_bytes();
        let held = setup.gate.as_ref().map_or(0, |gate| gate.must_hold().0);
        let refused = match block {
            _ if block > MOST_BLOCK.0 => Some(RecorderError::LargeBlock(Bytes(block))),
            _ if ring_size < block * 2 + held => Some(RecorderError::SmallRing(Bytes(block), Bytes(block * 2 + held))),
            _ => None,
        };
        if let Some(refused) = refused {
            ends::remove_files(&mut *store, &members);
            return Err(refused);
        }
        let copies = setup.gated || inlet.on_overrun() == OnOverrun::Overwrite;
        let staging = copies.then(|| Staging::new(&mut *store, block, setup.write.depth + 1)).transpose();
        let staging = staging.inspect_err(|_| ends::remove_files(&mut *store, &members));
        let staging = staging.map_err(RecorderError::Memory)?;
        let ring = hairspring_store::lent_memory::attach(inlet.memory(), &mut *store);
        let mut recorder = Self {
            ring,
            block,
            phase: Phase::Streaming,
            staging,
            writes: (0..setup.write.depth).map(|_| None).collect(),
            taken: VecDeque::with_capacity(setup.write.depth + 1),
            place: Place::default(),
            source_lost_bytes: 0,
            cut_after: None,
            resumed: None,
            first_count: None,
            sealed: None,
            block_states: BlockStates::new(members.len()),
            stored_position: 0,
            position: inlet.next(),
            frame: Frames(0),
            timeline: Timeline::new(layout),
            gaps: Vec::with_capacity(1024),
            bounds: Vec::new(),
            skips: Vec::new(),
            pending_skip: None,
            triggers: Vec::new(),
            kept: Vec::new(),
            lost_bytes: 0,
            left_out_bytes: 0,
            failed: None,
            failure_is_settled: false,
            uncut: Vec::new(),
            astray: Vec::new(),
            ownership,
            misplaced: 0,
            sync_failed: false,
            troubles: Vec::new(),
            stopped_by: None,
            worst_stall: Nanos::ZERO,
            checksum_time: Nanos::ZERO,
            beginning: None,
            clock: setup.clock.clone(),
            completions: Vec::with_capacity(setup.write.depth * 2),
            store,
            inlet,
            description,
            setup,
            members,
        };
        if let Err(error) = recorder.begin(grain) {
            ends::remove_files(&mut *recorder.store, &recorder.members);
            return Err(error);
        }
        Ok(recorder)
    }

    /// Size of the blocks that are written.
    pub fn block(&self) -> Bytes {
        Bytes(self.block)
    }

    /// Removes the files, before anything was recorded. Blocks.
    pub fn abandon(mut self) {
        ends::remove_files(&mut *self.store, &self.members);
    }

    /// Sets the time at which the first frame was taken, for the journals and the metadata; the last call counts.
    /// External triggers go by the first call, because shots may have been taken by it.
    pub fn begins(&mut self, beginning: Beginning) {
        let is_first = self.beginning.replace(beginning).is_none();
        self.settle_place(beginning);
        let Beginning { realtime, monotonic, within } = beginning;
        self.enter_note(&Record::Begun { realtime, monotonic, within });
        if let (true, Some(gate), Some(rate)) = (is_first, &mut self.setup.gate, self.description.rate) {
            gate.starts(beginning.monotonic - rate.time_of(self.place.origin), rate);
        }
    }

    /// The time of the first frame, as passed to the last call of [`begins`](Self::begins).
    pub fn beginning(&self) -> Option<Beginning> {
        self.beginning
    }

    /// Does all work possible now. `counters` are recent counts of the source.
    pub fn step(&mut self, now: Instant, counters: SourceCounters) -> Step {
        let counters = self.sealed.unwrap_or(counters);
        let owes = self.inlet.owes();
        let mut completions = std::mem::take(&mut self.completions);
        self.store.reap(&mut completions);
        for completion in completions.drain(..) {
            self.completed(completion, now, counters);
        }
        self.completions = completions;
        if self.phase == Phase::Streaming && self.has_place() {
            self.feed(now);
        }
        self.advance_phase(now, counters);
        self.write_journals();
        self.give_up_full_journals(now);
        self.sync_when_due(now);
        self.store.flush();
        if self.phase == Phase::Done {
            Step::Done
        } else if self.wants_the_end() {
            Step::StopSource
        } else if owes {
            // No event wakes this recorder when the previous one has written a block.
            Step::Wait(now + LOOK_BEFORE)
        } else {
            Step::Wait(self.next_due(now))
        }
    }

    /// Waits for the events that [`Step::Wait`] names. Blocks.
    pub fn wait(&mut self, until: Instant) {
        self.store.wait(self.inlet.notifier(), until);
        self.inlet.notifier().clear();
    }

    /// Whether nothing more can or needs to be recorded though the source goes on.
    fn wants_the_end(&self) -> bool {
        let done = self.setup.gate.as_ref().is_some_and(Gate::is_done);
        self.inlet.closed().is_none() && (self.failed.is_some() || done)
    }

    fn next_due(&self, now: Instant) -> Instant {
        // Often enough, because completions and the notifier wake the recorder in any case.
        const AT_LEAST_EVERY: Nanos = Nanos::from_millis(100);
        let wanting = (0..self.members.len()).filter(|number| self.block_states.wants_sync(*number));
        let sync = wanting.filter_map(|number| self.members[number].next_sync(self.setup.write.sync_every)).min();
        let latest = now + AT_LEAST_EVERY;
        sync.map_or(latest, |sync| sync.clamp(now, latest))
    }

    /// Goes through the phases of the end.
    fn advance_phase(&mut self, now: Instant, counters: SourceCounters) {
        let idle = self.writes.iter().all(Option::is_none);
        if self.failed.is_some() && !self.failure_is_settled && idle && self.phase < Phase::Closing {
            // Also after all data are taken, because a journal can fail at the very end.
            self.settle_failure(now);
            self.failure_is_settled = true;
        }
        if self.phase == Phase::Draining && idle {
            self.phase = Phase::Syncing;
        }
        if self.phase == Phase::Syncing {
            // Also a second time, because the sync under way may not cover blocks that were withdrawn since.
            for number in 0..self.members.len() {
                if self.block_states.wants_sync(number) {
                    self.begin_sync(number, now);
                }
            }
        }
        if self.phase == Phase::Syncing
            && (0..self.members.len()).all(|number| self.is_synced(number))
            && !self.is_reserving()
        {
            self.cut_files();
            self.look();
            self.phase = Phase::Cutting;
        }
        if self.phase == Phase::Cutting && self.members.iter().all(|member| !member.is_syncing()) {
            let verdict = self.verdict(counters).0;
            let ledger = self.ledger(counters);
            self.record_all(&Record::End {
                verdict,
                recovered: false,
                produced_bytes: ledger.produced_bytes,
                stored_bytes: ledger.stored_bytes,
                lost_bytes: ledger.lost_bytes,
                left_out_bytes: ledger.left_out_bytes,
            });
            for member in &mut self.members {
                member.close();
            }
            self.phase = Phase::Closing;
        }
        if self.phase == Phase::Closing && self.members.iter().all(Member::is_closed) {
            self.phase = Phase::Done;
        }
    }

    /// Whether all blocks of a member are in its journal and durable, or never will be.
    fn is_synced(&self, number: usize) -> bool {
        let member = &self.members[number];
        let is_durable = !self.block_states.wants_sync(number) || !member.may_sync();
        !self.block_states.has_entered(number) && !member.is_syncing() && is_durable
    }

    /// Enters a record into every journal.
    fn record_all(&mut self, record: &Record) {
        for member in &mut self.members {
            member.append(record);
        }
    }

    /// Whether space is being reserved, which would make a file longer again after it was cut.
    fn is_reserving(&self) -> bool {
        self.members.iter().any(Member::is_reserving)
    }

    /// Whether every journal has room for the records of one block.
    fn journals_have_room(&self) -> bool {
        self.members.iter().all(Member::has_room)
    }

    /// Position in the stored stream of the next byte to come.
    fn end_of_stored(&self) -> u64 {
        self.stored_position + self.staging.as_ref().map_or(0, Staging::waiting_bytes)
    }
}

fn lcm(a: u64, b: u64) -> u64 {
    let mut pair = (a, b);
    while pair.1 != 0 {
        pair = (pair.1, pair.0 % pair.1);
    }
    a / pair.0 * b
}
