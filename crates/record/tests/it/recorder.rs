//! The recorder, step by step: how it divides a stream into blocks, how much it reserves, when it syncs, and which
//! status it reports. Frames are bytes here, and a disk without a script completes everything at once.

mod handed_on;
mod targets;
mod verdicts;

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;

use hairspring_machine::{Instant, Nanos};
use hairspring_record::recorder::{
    BlockPlacement, Outcome, Recorder, RecorderError, RingLoan, Setup, Step, WriteSettings,
};
use hairspring_recording::MOST_BLOCK;
use hairspring_recording::beginning::Beginning;
use hairspring_recording::clock::ClockRecord;
use hairspring_recording::journal::{Journal, Record, RecordingId};
use hairspring_recording::ledger::Ledger;
use hairspring_ring::gap::{Gap, GapCause};
use hairspring_ring::layout::Layout;
use hairspring_ring::memory::{Memory, Pages};
use hairspring_ring::units::{Bytes, Frames, SampleRate};
use hairspring_ring::{Consumer, End, OnOverrun, Producer, ring};
use hairspring_source::pattern::Pattern;
use hairspring_source::trigger::{Gate, Shots};
use hairspring_source::{SourceCounters, SourceDescription};
use hairspring_store::scripted::{DiskScript, Fault, OpKind, Pace, ScriptedDisk, What, When};
use hairspring_store::{Direct, Errno};

use crate::oracle;

const PATTERN: Pattern = Pattern::Noise { seed: 7 };
const BLOCK: u64 = 4096;
const RING: u64 = 64 << 10;
const MILLISECOND: Nanos = Nanos::from_millis(1);
/// The bytes reserved if the volume is unknown, and for a journal beyond its blocks.
const AHEAD: u64 = 1 << 30;
const JOURNAL_SPARE: u64 = 4 << 20;

fn bytes() -> Layout {
    Layout::analogue(1, 8).expect("exists")
}

fn at_once() -> DiskScript {
    DiskScript { pace: Pace::Leaping, ..DiskScript::default() }
}

fn failing(kind: OpKind, file: &str, when: When, errno: i32) -> DiskScript {
    let fault = Fault { kind: Some(kind), file: Some(file.to_owned()), when, what: What::Error(Errno(errno)) };
    DiskScript { faults: vec![fault], ..at_once() }
}

/// A clock that advances by 3 ns at each reading.
fn stopwatch() -> Instant {
    thread_local!(static READ: Cell<i64> = const { Cell::new(0) });
    READ.set(READ.get() + 3);
    Instant::BOOT + Nanos::new(READ.get())
}

fn write() -> WriteSettings {
    WriteSettings {
        block: Bytes(BLOCK),
        depth: 4,
        placement: BlockPlacement::LeastLoaded,
        volume: None,
        sync_every: Nanos::from_secs(3600),
        sync_bytes: Bytes::gib(1),
        software: "test".to_owned(),
    }
}

/// The usual set-up, written like this.
fn writing(write: WriteSettings) -> Setup {
    Setup { write, ..setup() }
}

fn setup() -> Setup {
    Setup {
        targets: vec!["a/x".into()],
        id: RecordingId([3; 16]),
        write: write(),
        gate: None,
        gated: false,
        keep_on: None,
        opened: Beginning { realtime: Nanos::from_secs(1_700_000_000), monotonic: Instant::BOOT, within: Nanos::ZERO },
        channels: Vec::new(),
        clock: ClockRecord::default(),
        series: None,
        resumed: None,
        stopwatch,
    }
}

fn description(layout: Layout) -> SourceDescription {
    let rate = SampleRate::hz(1_000_000);
    SourceDescription {
        layout,
        rate,
        clocked: false,
        fifo: Bytes(0),
        hardware: "test".to_owned(),
        pattern: Some(PATTERN),
    }
}

fn ring_of(size: u64, on_overrun: OnOverrun) -> (Producer, Consumer) {
    let memory = Memory::mirrored(Bytes(size), Bytes(size), Pages::Small).expect("memory");
    ring(Arc::new(memory), Bytes(BLOCK), on_overrun).expect("a ring")
}

/// A gate that triggers on a level, with `pre` frames before and `post` from the trigger on.
fn gate(level: &str, pre: u64, post: u64) -> Gate {
    let trigger = level.parse().expect("a trigger");
    Gate::new(trigger, bytes(), Frames(pre), Frames(post), Shots::Repeated(None)).expect("a gate")
}

/// A recorder and its source.
struct Rig {
    disk: ScriptedDisk,
    recorder: Recorder,
    producer: Producer,
    counters: SourceCounters,
    now: Instant,
}

impl Rig {
    fn new(script: DiskScript, setup: Setup) -> Self {
        Self::with(script, RING, OnOverrun::Gap, setup).expect("a recorder")
    }

    fn with(script: DiskScript, size: u64, on_overrun: OnOverrun, setup: Setup) -> Result<Self, RecorderError> {
        let disk = ScriptedDisk::new(script);
        let (producer, consumer) = ring_of(size, on_overrun);
        let recorder = Recorder::open(Box::new(disk.store(64)), consumer, description(bytes()), setup)?;
        let now = disk.now();
        Ok(Self { disk, recorder, producer, counters: SourceCounters::default(), now })
    }

    /// The source delivers `length` more bytes.
    fn put(&mut self, length: u64) {
        let room = self.producer.reserve(length as usize).expect("room");
        PATTERN.fill(bytes(), Frames(self.counters.produced_bytes), room);
        self.producer.commit(length as usize);
        self.counters.produced_bytes += length;
    }

    /// The source loses `frames` frames.
    fn lose(&mut self, frames: u64, cause: GapCause) {
        let first = Frames(self.counters.produced_bytes);
        self.producer.gap(Gap { first, frames: Frames(frames), cause, found: self.now });
        self.counters.produced_bytes += frames;
        self.counters.lost_bytes += frames;
        let _ = self.producer.room();
    }

    fn step(&mut self) -> Step {
        self.recorder.step(self.now, self.counters)
    }

    fn pass(&mut self, time: Nanos) {
        self.now += time;
        self.disk.advance(self.now);
    }

    /// Lets the recorder do all work that needs no time to pass.
    fn settle(&mut self) -> Step {
        (0..8).map(|_| self.step()).last().expect("steps")
    }

    fn ledger(&self) -> Ledger {
        self.recorder.ledger(self.counters)
    }

    fn end(mut self, end: End) -> (Outcome, ScriptedDisk) {
        self.producer.close(end);
        for _ in 0..100_000 {
            if self.step() == Step::Done {
                return (self.recorder.finish(self.now, self.counters), self.disk);
            }
            self.pass(Nanos::from_micros(10));
        }
        panic!("the recording does not end: {:?}", self.recorder.ledger(self.counters));
    }
}

fn length(disk: &ScriptedDisk, file: &str) -> Option<u64> {
    disk.length(Path::new(file))
}

/// The syncs in a journal: times, and bytes covered. Each record is compared with the earlier ones.
#[track_caller]
fn syncs(disk: &ScriptedDisk, base: &str) -> Vec<(Nanos, u64)> {
    let journal = disk.image_after_kill(0).read(format!("{base}.hairspring-journal")).expect("a journal");
    let (mut syncs, mut blocks, mut data_end) = (Vec::new(), Vec::new(), 0);
    for (record, sequence) in Journal::read(&journal).records.iter().zip(0_u64..) {
        match *record {
            Record::Block { file_offset, length, .. } => {
                assert_eq!(file_offset, data_end, "blocks lie one behind the other");
                data_end += u64::from(length);
                blocks.push((sequence, u64::from(length)));
            }
            Record::Sync { before, durable_bytes, at } => {
                assert!(before <= sequence, "a sync covers what comes after it");
                let covered = blocks.iter().filter(|block| block.0 < before);
                assert_eq!(durable_bytes, covered.map(|block| block.1).sum::<u64>(), "the sync before {before}");
                syncs.push((at - Instant::BOOT, durable_bytes));
            }
            _ => {}
        }
    }
    syncs
}

#[test]
fn blocks_are_whole_frames_and_sectors_and_as_large_as_asked_where_that_is_possible() {
    for (layout, alignment, asked) in [
        (Layout::analogue(1, 8), 512, 4096),
        (Layout::analogue(1, 8), 512, 10_000),
        (Layout::analogue(1, 8), 16_384, 40_000),
        (Layout::analogue(1, 8), 512, 1),
        (Layout::analogue(3, 16), 512, 24_576),
        (Layout::analogue(3, 16), 512, 24_575),
        (Layout::analogue(5, 14), 8192, 100_000),
        (Layout::digital(12), 512, 9000),
    ] {
        let layout = layout.expect("exists");
        let disk = ScriptedDisk::new(DiskScript { alignment, ..at_once() });
        let setup = writing(WriteSettings { block: Bytes(asked), ..write() });
        let consumer = ring_of(1 << 20, OnOverrun::Gap).1;
        let recorder = Recorder::open(Box::new(disk.store(8)), consumer, description(layout), setup).expect("opens");
        let (block, grain) = (recorder.block().0, layout.grain().bytes);
        let fits = |size: u64| size > 0 && size.is_multiple_of(grain) && size.is_multiple_of(alignment.max(4096));
        let largest = (1..=asked).rev().find(|size| fits(*size)).or_else(|| (1..).find(|size| fits(*size)));
        assert_eq!(Some(block), largest, "{layout:?}, sectors of {alignment}, asked for {asked}");
    }
    let asked = writing(WriteSettings { block: Bytes(2 * MOST_BLOCK.0), ..write() });
    let consumer = ring_of(2 * MOST_BLOCK.0, OnOverrun::Gap).1;
    let disk = ScriptedDisk::new(at_once());
    let recorder = Recorder::open(Box::new(disk.store(8)), consumer, description(bytes()), asked).expect("opens");
    assert_eq!(recorder.block(), MOST_BLOCK, "the largest that readers take");
}

#[test]
fn a_recording_that_cannot_begin_leaves_no_files() {
    let held = || Some(gate("level:ch0>0.5", 10_000, 10));
    let cases: [(&str, u64, Setup, bool); 8] = [
        ("no target", RING, Setup { targets: Vec::new(), ..setup() }, false),
        ("no write may be under way", RING, writing(WriteSettings { depth: 0, ..write() }), false),
        ("257 writes", RING, writing(WriteSettings { depth: 257, ..write() }), false),
        ("256 writes", RING, writing(WriteSettings { depth: 256, ..write() }), true),
        ("two blocks", RING, writing(WriteSettings { block: Bytes(RING / 2), ..write() }), true),
        ("less than two", RING, writing(WriteSettings { block: Bytes(RING / 2 + BLOCK), ..write() }), false),
        (
            "a shot beside two blocks",
            RING,
            Setup { write: WriteSettings { block: Bytes(BLOCK * 6), ..write() }, gate: held(), ..setup() },
            true,
        ),
        (
            "no room for a shot",
            RING,
            Setup { write: WriteSettings { block: Bytes(BLOCK * 7), ..write() }, gate: held(), ..setup() },
            false,
        ),
    ];
    for (what, size, setup, begins) in cases {
        let disk = ScriptedDisk::new(at_once());
        let consumer = ring_of(size, OnOverrun::Gap).1;
        let made = Recorder::open(Box::new(disk.store(8)), consumer, description(bytes()), setup);
        assert_eq!(made.is_ok(), begins, "{what}: {:?}", made.err());
        assert!(begins || disk.names() == 0, "{what}: files are left");
        if let Err(RecorderError::SmallRing(block, least)) = made {
            let held = if what == "no room for a shot" { held().map_or(0, |gate| gate.must_hold().0) } else { 0 };
            assert_eq!(least.0, 2 * block.0 + held, "{what}");
        }
    }
    // The file at the path of the metadata cannot be examined: that is no reason to overwrite it.
    let script = failing(OpKind::Open, ".sigmf-meta", When::Nth(1), libc::EACCES);
    let disk = ScriptedDisk::new(script);
    let made = Recorder::open(Box::new(disk.store(8)), ring_of(RING, OnOverrun::Gap).1, description(bytes()), setup());
    let said = made.err().expect("refused").to_string();
    assert!(said.contains("Permission denied") && !said.contains("exists"), "{said}");
    assert_eq!(disk.names(), 0, "files are left");
    // The first target exists, the second is another recording.
    let mut image = hairspring_store::scripted::Image::default();
    image.put("b/x.sigmf-meta", b"theirs");
    let disk = ScriptedDisk::with(at_once(), image);
    let two = Setup { targets: vec!["a/x".into(), "b/x".into()], ..setup() };
    let made = Recorder::open(Box::new(disk.store(8)), ring_of(RING, OnOverrun::Gap).1, description(bytes()), two);
    assert!(made.err().expect("refused").to_string().contains("exists already"));
    assert_eq!((disk.names(), length(&disk, "b/x.sigmf-meta")), (1, Some(6)));
}

/// The journal was reserved for all blocks of the expected volume at once: gigabytes for a long recording of small
/// blocks, which no reader took.
#[test]
fn a_journal_is_reserved_in_pieces_however_large_the_volume_is() {
    let rig = Rig::new(at_once(), writing(WriteSettings { volume: Some(Bytes(1 << 40)), ..write() }));
    assert_eq!(length(&rig.disk, "a/x.hairspring-journal"), Some(64 << 20));
    let mut rig = Rig::new(at_once(), writing(WriteSettings { volume: Some(Bytes(BLOCK)), ..write() }));
    let first = 2 * 64 + JOURNAL_SPARE;
    assert_eq!(length(&rig.disk, "a/x.hairspring-journal"), Some(first));
    rig.put(3 * BLOCK);
    rig.settle();
    assert_eq!(length(&rig.disk, "a/x.hairspring-journal"), Some(first + 2 * JOURNAL_SPARE));
}

#[test]
fn what_is_reserved_is_the_expected_volume_in_whole_blocks_and_an_eighth_more_where_targets_share_it() {
    let two = || vec!["a/x".into(), "b/x".into()];
    let cases = [
        (writing(WriteSettings { volume: Some(Bytes(1_000_000)), ..write() }), 245 * BLOCK),
        // Half of it is 500,000.
        (
            Setup { write: WriteSettings { volume: Some(Bytes(1_000_000)), ..write() }, targets: two(), ..setup() },
            138 * BLOCK,
        ),
        (setup(), AHEAD),
        // With a trigger the volume is unknown.
        (
            Setup {
                write: WriteSettings { volume: Some(Bytes(1_000_000)), ..write() },
                gate: Some(gate("level:ch0>0.5", 1, 1)),
                ..setup()
            },
            AHEAD,
        ),
    ];
    for (setup, expected) in cases {
        let rig = Rig::new(at_once(), setup);
        assert_eq!(length(&rig.disk, "a/x.sigmf-data"), Some(expected));
        let journal = (expected / BLOCK + 1) * 64 + JOURNAL_SPARE;
        assert_eq!(length(&rig.disk, "a/x.hairspring-journal"), Some(journal));
        assert_eq!(rig.recorder.status(rig.counters, Some(Bytes(7))).free.map(|free| free.0 % AHEAD), {
            let all = expected * if length(&rig.disk, "b/x.sigmf-data").is_some() { 2 } else { 1 };
            Some((all + 7) % AHEAD)
        });
    }
    // Nothing is reserved beyond an expected volume.
    let mut rig = Rig::new(at_once(), writing(WriteSettings { volume: Some(Bytes(10 * BLOCK)), ..write() }));
    rig.put(3 * BLOCK);
    rig.settle();
    assert_eq!(length(&rig.disk, "a/x.sigmf-data"), Some(10 * BLOCK));
    // The journal of a volume that just fits finds no room, which is no reason to refuse.
    let fits = DiskScript { capacity: Some(Bytes(245 * BLOCK + 100_000)), ..at_once() };
    let volume = Some(Bytes(1_000_000));
    assert_eq!(
        length(&Rig::new(fits, writing(WriteSettings { volume, ..write() })).disk, "a/x.sigmf-data"),
        Some(245 * BLOCK)
    );
    // Each target alone has room for its half, and both are the same disk.
    let script = DiskScript { capacity: Some(Bytes(200 * BLOCK)), ..at_once() };
    let disk = ScriptedDisk::new(script);
    let setup = Setup { write: WriteSettings { volume, ..write() }, targets: two(), ..setup() };
    let made = Recorder::open(Box::new(disk.store(8)), ring_of(RING, OnOverrun::Gap).1, description(bytes()), setup);
    match made.err().expect("refused") {
        RecorderError::NoSpace(folder, needed, Some(free)) => {
            assert_eq!((folder.to_str(), needed), (Some("b"), Bytes(562_500)));
            assert_eq!(free, Bytes(62 * BLOCK), "what the first one has is not free");
        }
        other => panic!("{other}"),
    }
    assert_eq!(disk.names(), 0, "files are left");
}

#[test]
fn of_a_small_disk_not_everything_is_reserved_ahead() {
    let disk = |capacity: u64| DiskScript { capacity: Some(Bytes(capacity)), refused_takes_all: true, ..at_once() };
    let mut rig = Rig::new(disk(64 << 20), writing(WriteSettings { volume: None, ..write() }));
    assert_eq!(length(&rig.disk, "a/x.sigmf-data"), Some(32 << 20));
    rig.put(3 * BLOCK);
    rig.settle();
    let (outcome, disk_after) = rig.end(End::Finished);
    assert_eq!(length(&disk_after, "a/x.sigmf-data"), Some(outcome.ledger.stored_bytes));
    // Without room for the metadata no files are left behind.
    let tiny = ScriptedDisk::new(disk(1 << 20));
    let without = writing(WriteSettings { volume: None, ..write() });
    let made = Recorder::open(Box::new(tiny.store(8)), ring_of(RING, OnOverrun::Gap).1, description(bytes()), without);
    assert!(made.err().expect("refused").to_string().contains("No space left"));
    assert_eq!(tiny.names(), 0);
    // Some space also stays free later.
    let setup = writing(WriteSettings { block: Bytes::mib(8), volume: None, ..write() });
    let script = DiskScript { forgetful: true, ..disk(AHEAD * 5 / 2) };
    let mut rig = Rig::with(script, 32 << 20, OnOverrun::Gap, setup).expect("a recorder");
    while rig.counters.produced_bytes < AHEAD * 5 / 4 {
        rig.producer.reserve(8 << 20).expect("room");
        rig.producer.commit(8 << 20);
        rig.counters.produced_bytes += 8 << 20;
        rig.settle();
    }
    assert_eq!(length(&rig.disk, "a/x.sigmf-data"), Some(AHEAD * 5 / 4), "beyond what was reserved at the beginning");
    let (outcome, _) = rig.end(End::Finished);
    assert_eq!(outcome.ledger.stored_bytes, AHEAD * 5 / 4);
}

#[test]
fn when_half_of_what_was_reserved_ahead_is_used_more_is_reserved_unless_the_disk_refused_it() {
    let setup = || writing(WriteSettings { block: Bytes::mib(8), volume: None, ..write() });
    for (refused, expected) in [(false, 2 * AHEAD), (true, AHEAD)] {
        let faults = if refused {
            failing(OpKind::Allocate, ".sigmf-data", When::From(2), libc::ENOSPC).faults
        } else {
            Vec::new()
        };
        let script = DiskScript { forgetful: true, faults, ..at_once() };
        let mut rig = Rig::with(script, 32 << 20, OnOverrun::Gap, setup()).expect("a recorder");
        let record = |rig: &mut Rig, until: u64| {
            while rig.counters.produced_bytes < until {
                rig.producer.reserve(8 << 20).expect("room");
                rig.producer.commit(8 << 20);
                rig.counters.produced_bytes += 8 << 20;
                rig.settle();
            }
        };
        record(&mut rig, AHEAD / 2);
        assert_eq!(length(&rig.disk, "a/x.sigmf-data"), Some(AHEAD), "half of it is there yet");
        record(&mut rig, AHEAD / 2 + (24 << 20));
        assert_eq!(length(&rig.disk, "a/x.sigmf-data"), Some(expected), "refused: {refused}");
        let free = rig.recorder.status(rig.counters, Some(Bytes(5))).free.expect("known");
        assert_eq!(free.0, 5 + expected - rig.counters.produced_bytes, "refused: {refused}");
        let (outcome, disk) = rig.end(End::Finished);
        assert_eq!(length(&disk, "a/x.sigmf-data"), Some(outcome.ledger.stored_bytes), "what is left is given back");
    }
}

#[test]
fn a_sync_comes_when_it_is_due_by_time_and_covers_the_blocks_before_it() {
    let mut rig = Rig::new(at_once(), writing(WriteSettings { sync_every: Nanos::from_millis(10), ..write() }));
    for _ in 0..200 {
        rig.put(BLOCK);
        rig.settle();
        rig.pass(MILLISECOND);
    }
    let found = syncs(&rig.disk, "a/x");
    assert_eq!(found.len(), 19, "{found:?}");
    for pair in found.windows(2) {
        assert_eq!((pair[1].0 - pair[0].0, pair[1].1 - pair[0].1), (Nanos::from_millis(10), 10 * BLOCK), "{found:?}");
    }
    assert_eq!(rig.ledger().durable_bytes, found.last().expect("syncs").1);
}

#[test]
fn a_sync_comes_after_so_many_bytes_whatever_the_time() {
    let mut rig = Rig::new(at_once(), writing(WriteSettings { sync_bytes: Bytes(5 * BLOCK), ..write() }));
    for _ in 0..50 {
        rig.put(BLOCK);
        rig.settle();
        rig.pass(MILLISECOND);
    }
    let durable: Vec<u64> = syncs(&rig.disk, "a/x").iter().map(|(_, bytes)| bytes / BLOCK).collect();
    assert_eq!(durable, [5, 10, 15, 20, 25, 30, 35, 40, 45, 50]);
}

#[test]
fn a_step_says_when_the_next_one_is_needed() {
    let mut rig = Rig::new(at_once(), writing(WriteSettings { sync_every: Nanos::from_millis(60), ..write() }));
    let at = |ms| Step::Wait(Instant::BOOT + Nanos::from_millis(ms));
    assert_eq!(rig.step(), at(100), "nothing is to be synced");
    rig.pass(Nanos::from_millis(2));
    rig.put(BLOCK);
    assert_eq!(rig.settle(), at(60), "a block is to be synced");
    rig.pass(Nanos::from_millis(58));
    rig.settle();
    assert_eq!(rig.ledger().durable_bytes, BLOCK);
    assert_eq!(rig.step(), at(160), "and is");
    rig.put(BLOCK);
    assert_eq!(rig.settle(), at(120));
    rig.pass(Nanos::from_millis(130));
    // The sync is begun now, and its completion wakes the recorder.
    assert_eq!(rig.step(), at(290));
}

#[test]
fn the_state_says_where_everything_is() {
    let script = DiskScript { least_latency: MILLISECOND, most_latency: MILLISECOND, ..at_once() };
    let mut rig = Rig::new(script, writing(WriteSettings { volume: Some(Bytes(10 * BLOCK)), ..write() }));
    rig.now = rig.disk.now();
    rig.put(3 * BLOCK / 2);
    rig.lose(5, GapCause::Source);
    rig.put(BLOCK);
    rig.counters.fifo_bytes = 9;
    rig.counters.produced_bytes += 9;
    rig.step();
    let status = rig.recorder.status(rig.counters, Some(Bytes(100)));
    let ledger = status.ledger;
    assert_eq!((ledger.in_flight_bytes, ledger.in_ring_bytes, ledger.in_fifo_bytes), (2 * BLOCK, BLOCK / 2, 9));
    assert_eq!((ledger.lost_bytes, ledger.stored_bytes, status.gaps, status.shots), (5, 0, 1, 0));
    assert!(ledger.holds(), "{ledger:?}");
    assert_eq!((status.fill.now, status.fill.capacity), (Bytes(5 * BLOCK / 2), Bytes(RING)));
    assert_eq!(status.free, Some(Bytes(100 + 8 * BLOCK)));
    rig.pass(MILLISECOND);
    rig.step();
    assert_eq!((rig.ledger().in_flight_bytes, rig.ledger().stored_bytes), (2 * BLOCK, 0), "no journal names them yet");
    assert_eq!(rig.recorder.fill().now, Bytes(BLOCK / 2), "their place in the ring is free");
    rig.pass(MILLISECOND);
    rig.step();
    let status = rig.recorder.status(rig.counters, None);
    assert_eq!((status.ledger.stored_bytes, status.ledger.durable_bytes, status.free), (2 * BLOCK, 0, None));
    assert_eq!(status.worst_stall, MILLISECOND);
}

#[test]
fn stalls_checksums_and_the_ring_are_measured() {
    let stall = Fault::nth(OpKind::Write, 2, What::Stall(Nanos::from_millis(30))).on(".sigmf-data");
    for on_overrun in [OnOverrun::Gap, OnOverrun::Overwrite] {
        let script = DiskScript { faults: vec![stall.clone()], ..at_once() };
        let mut rig = Rig::with(script, RING, on_overrun, setup()).expect("a recorder");
        for _ in 0..6 {
            rig.put(BLOCK);
            rig.step();
            rig.pass(MILLISECOND);
        }
        rig.pass(Nanos::from_millis(25));
        let (outcome, _) = rig.end(End::Finished);
        // It was submitted at 1 ms, and the next step after its end was at 31 ms.
        assert_eq!(outcome.worst_stall, Nanos::from_millis(30), "{on_overrun:?}");
        assert_eq!(outcome.checksum_time, Nanos::new(6 * 3), "{on_overrun:?}");
        assert_eq!((outcome.buffer, outcome.block), (Bytes(RING), Bytes(BLOCK)));
        let least = if on_overrun == OnOverrun::Gap { 5 * BLOCK } else { BLOCK };
        assert!(outcome.high_water >= Bytes(least), "{on_overrun:?}: {}", outcome.high_water);
        assert_eq!(outcome.direct, Direct::Claimed);
        let copied = outcome.fallbacks.iter().find(|one| one.name == "zero_copy").expect("named");
        assert_eq!(copied.refused.is_some(), on_overrun == OnOverrun::Overwrite, "{copied:?}");
    }
    let (outcome, _) =
        Rig::new(at_once(), Setup { gate: Some(gate("level:ch0>0.5", 1, 1)), ..setup() }).end(End::Finished);
    let copied = outcome.fallbacks.iter().find(|one| one.name == "zero_copy").expect("named");
    assert!(copied.refused.as_ref().is_some_and(|why| why.contains("trigger")), "{copied:?}");
    let buffered = DiskScript { alignment: 1, ..at_once() };
    assert_eq!(Rig::new(buffered, setup()).end(End::Finished).0.direct, Direct::No);
}

/// The disk once waited for the checksums of all blocks that were submitted in one step.
#[test]
fn the_disk_has_a_block_before_its_checksum_is_computed() {
    thread_local!(static SEEN: RefCell<Option<(ScriptedDisk, Vec<u64>)>> = const { RefCell::new(None) });
    let look = || {
        SEEN.with_borrow_mut(|seen| seen.iter_mut().for_each(|(disk, seen)| seen.push(disk.operations())));
        Instant::BOOT
    };
    for on_overrun in [OnOverrun::Gap, OnOverrun::Overwrite] {
        let setup = Setup { stopwatch: look, ..setup() };
        let mut rig = Rig::with(at_once(), RING, on_overrun, setup).expect("a recorder");
        let before = rig.disk.operations();
        SEEN.set(Some((rig.disk.clone(), Vec::new())));
        rig.put(2 * BLOCK);
        rig.step();
        let (_, seen) = SEEN.take().expect("set above");
        // The clock is read before and after each checksum.
        assert_eq!(seen, [before + 1, before + 1, before + 2, before + 2], "{on_overrun:?}");
    }
}

#[test]
fn a_block_is_named_with_its_time_and_what_the_source_had_by_then() {
    let script = DiskScript { least_latency: MILLISECOND, most_latency: MILLISECOND, ..at_once() };
    let mut rig = Rig::new(script, setup());
    rig.now = rig.disk.now();
    let opened = rig.now;
    for _ in 0..4 {
        rig.put(BLOCK + 100);
        rig.step();
        rig.pass(MILLISECOND);
    }
    let (outcome, disk) = rig.end(End::Finished);
    let image = disk.image_after_kill(0);
    let records = Journal::read(&image.read("a/x.hairspring-journal").expect("a journal")).records;
    let blocks = records.iter().filter_map(|record| match *record {
        Record::Block { index, produced_bytes, at, .. } => Some((index, produced_bytes, at - opened)),
        _ => None,
    });
    let all = 4 * (BLOCK + 100);
    let expected = [(0, 2 * (BLOCK + 100), 1), (1, 3 * (BLOCK + 100), 2), (2, all, 3), (3, all, 4), (4, all, 5)];
    assert_eq!(
        blocks.collect::<Vec<_>>(),
        expected.map(|(index, produced, ms)| (index, produced, Nanos::from_millis(ms)))
    );
    assert_eq!(outcome.ledger.stored_bytes, all);
    assert_eq!(oracle::true_metadata(&image, &["a/x"], PATTERN, false), [Some(outcome.verdict)]);
}
