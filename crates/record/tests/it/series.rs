//! Series on the scripted disk: cuts, retention, and crashes at every step of both.

mod compressed;
mod costs;
mod kept;
mod lasting;
mod lost;
mod meddled;
mod year;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hairspring_machine::{Instant, Nanos};
use hairspring_record::join;
use hairspring_record::recorder::{
    BlockPlacement, KeepOn, KeepWatch, Outcome, Recorder, RingLoan, Step, WriteSettings,
};
use hairspring_record::recover::RecoverOptions;
use hairspring_record::series::keeper::{Keeper, StoreMaker};
use hairspring_record::series::recover::{SeriesRecovered, index_at, recover_series};
use hairspring_record::series::segment_worker::{Inline, Template, Workshop};
use hairspring_record::series::{Retention, SegmentLength, SeriesRecorder, SeriesSummary};
use hairspring_recording::beginning::Beginning;
use hairspring_recording::clock::ClockRecord;
use hairspring_recording::journal::{Journal, Record, RecordingId};
use hairspring_recording::ledger::RecordingVerdict;
use hairspring_recording::moment::ClockMoment;
use hairspring_recording::series::{collection_of, index_of, pin_of, segment_base};
use hairspring_recording::sigmf::SegmentOf;
use hairspring_recording::verify::{Verified, VerifyOptions, verify};
use hairspring_recording::{Files, MissingCause, MissingFrames, Recording, RecordingError};
use hairspring_ring::layout::Layout;
use hairspring_ring::memory::{Memory, Pages};
use hairspring_ring::units::{ByteRate, Bytes, Frames, SampleRate};
use hairspring_ring::{OnOverrun, ring};
use hairspring_source::Source;
use hairspring_source::pattern::Pattern;
use hairspring_source::trigger::{Gate, Shots};
use hairspring_source::virtual_card::{Settings, VirtualCard};
use hairspring_store::Store;
use hairspring_store::scripted::{DiskScript, Fault, Image, Pace, ScriptedDisk};

use crate::recording::serve;

const PATTERN: Pattern = Pattern::Noise { seed: 7 };
const SERIES: RecordingId = RecordingId([8; 16]);
const BLOCK: u64 = 24 * 1024;
/// Fires some dozen times in 60,000 frames.
const TRIGGER: Option<(&str, u64, u64)> = Some(("level:ch0>0.999", 100, 900));
/// Steps after which a recording that does not end has hung; for longer ones, a step for each hundred frames.
const MOST_STEPS: u64 = 400_000;

#[derive(Clone, Debug)]
struct Case {
    frames: u64,
    /// Blocks of a segment, or its length.
    blocks: u64,
    time: Option<Nanos>,
    members: usize,
    depth: usize,
    on_overrun: OnOverrun,
    retention: Retention,
    /// A trigger, frames before it and from it on.
    trigger: Option<(&'static str, u64, u64)>,
    /// A trigger that pins segments, frames before it and from it on.
    keep_on: Option<(&'static str, u64, u64)>,
    /// The present moment, and for how long the computer was suspended.
    clocks: fn() -> ClockMoment,
    suspended: fn() -> Nanos,
    script: DiskScript,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            frames: 40_000,
            blocks: 3,
            time: None,
            members: 1,
            depth: 4,
            on_overrun: OnOverrun::Gap,
            retention: Retention::default(),
            trigger: None,
            keep_on: None,
            clocks: moment,
            suspended: || Nanos::ZERO,
            script: DiskScript { pace: Pace::Leaping, most_latency: Nanos::from_micros(300), ..DiskScript::default() },
        }
    }
}

fn layout() -> Layout {
    Layout::analogue(3, 16).expect("exists")
}

fn bases(members: usize) -> Vec<PathBuf> {
    ["a/x", "b/x", "c/x"][..members].iter().map(PathBuf::from).collect()
}

fn stores(disk: &ScriptedDisk) -> StoreMaker {
    let disk = disk.clone();
    Box::new(move || Box::new(disk.store(64)) as Box<dyn Store>)
}

fn next_id() -> RecordingId {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(100);
    let mut id = [0; 16];
    // Relaxed: a counter.
    id[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    RecordingId(id)
}

fn opened() -> Beginning {
    Beginning { realtime: Nanos::from_secs(1_700_000_000), monotonic: Instant::BOOT, within: Nanos::ZERO }
}

fn moment() -> ClockMoment {
    ClockMoment { realtime: opened().realtime, boottime: Nanos::from_secs(100), boot: None, synchronized: false }
}

/// The result of a run.
struct Run {
    disk: ScriptedDisk,
    /// `None` if the recording could not begin.
    ended: Option<(Outcome, SeriesSummary)>,
    /// The bytes that were durable, or deleted, when the disk was gone.
    durable: u64,
}

/// Runs a case to its end. `look` sees the disk after each step.
fn run(case: &Case, image: Image, mut look: impl FnMut(&ScriptedDisk, u32)) -> Run {
    let disk = ScriptedDisk::with(case.script.clone(), image);
    let size = Bytes(256 * 1024);
    let memory = Memory::mirrored(size, size, Pages::Small).expect("memory");
    let (mut producer, consumer) = ring(Arc::new(memory), Bytes(BLOCK), case.on_overrun).expect("a ring");
    let mut card = VirtualCard::new(Settings {
        layout: layout(),
        rate: SampleRate::hz(1_000_000).expect("possible"),
        pattern: PATTERN,
        fifo: Bytes::kib(48),
        jitter: Nanos::ZERO,
        hiccups: Vec::new(),
        bus: None,
        frames: Some(Frames(case.frames)),
    });
    let of = SegmentOf {
        id: SERIES,
        name: "x".to_owned(),
        number: 0,
        first: Some(Frames(0)),
        previous: None,
        epoch: 0,
        epoch_first: Frames(0),
    };
    let template = Template {
        description: card.describe(),
        ring: RingLoan::of(&consumer),
        of: of.clone(),
        write: WriteSettings {
            block: Bytes(BLOCK),
            depth: case.depth,
            placement: BlockPlacement::LeastLoaded,
            volume: None,
            sync_every: Nanos::from_millis(5),
            sync_bytes: Bytes::mib(1),
            software: "test".to_owned(),
        },
        gated: case.trigger.is_some(),
        channels: Vec::new(),
        stopwatch: || Instant::BOOT,
        beginning: opened,
        moment: case.clocks,
        id: next_id,
    };
    let bases = bases(case.members);
    let nothing = |disk: ScriptedDisk| Run { disk, ended: None, durable: 0 };
    let keeper = Keeper::begin(bases.clone(), SERIES, case.retention, Nanos::ZERO, stores(&disk));
    let Ok(mut keeper) = keeper else { return nothing(disk) };
    let mut setup = template.setup(0, &bases);
    setup.series = Some(of);
    let mut clock = ClockRecord::default();
    clock.boot_id = Some(hairspring_recording::clock::BootId([4; 16]));
    setup.clock = clock;
    setup.gate = case.trigger.map(|(text, pre, post)| {
        let (trigger, pre, post) = (text.parse().expect("a trigger"), Frames(pre), Frames(post));
        Gate::new(trigger, layout(), pre, post, Shots::Repeated(None)).expect("a gate")
    });
    setup.keep_on = case.keep_on.map(|(text, pre, post)| {
        let (trigger, pre, post) = (text.parse().expect("a trigger"), Frames(pre), Frames(post));
        KeepWatch::new(KeepOn { trigger, pre, post }, layout()).expect("possible")
    });
    let first = Recorder::open(Box::new(disk.store(64)), consumer, card.describe(), setup);
    let Ok(first) = first else { return nothing(disk) };
    keeper.opened(0, first.id(), Frames(0), Nanos::ZERO);
    let worker = Inline::new(Workshop::new(template, keeper, stores(&disk)));
    let length = case.time.map_or(SegmentLength::Blocks(case.blocks), SegmentLength::Time);
    let recorder = SeriesRecorder::new(Box::new(first), 0, Box::new(worker), length, layout());
    let mut recorder = recorder.with_suspends(case.suspended);
    let mut now = disk.now();
    card.start(now);
    recorder.begins(opened());
    let (mut ended, mut stopping, mut durable, mut crashed) = (false, false, 0, false);
    for _ in 0..MOST_STEPS.max(case.frames / 100) {
        if !ended {
            ended = serve(&mut card, &mut producer, now, stopping);
        }
        let step = recorder.step(now, card.counters());
        let ledger = recorder.ledger(card.counters());
        assert!(ledger.holds(), "{} bytes are unaccounted for: {ledger:?}", ledger.unaccounted_bytes());
        if !disk.is_crashed() {
            durable = ledger.durable_bytes + ledger.dropped_bytes;
        } else if !std::mem::replace(&mut crashed, true) {
            durable = durable.min(ledger.durable_bytes + ledger.dropped_bytes);
        }
        look(&disk, recorder.number().expect("a series"));
        let mut wake = now;
        match step {
            Step::Done => {
                let outcome = recorder.finish(now, card.counters());
                return Run { disk, ended: Some(outcome), durable };
            }
            Step::StopSource => stopping = true,
            Step::Wait(until) => wake = until,
        }
        now = disk.next_due().unwrap_or(wake).max(now).min(now + Nanos::from_micros(200)) + Nanos::from_micros(1);
        now = now.max(disk.now());
        disk.advance(now);
    }
    panic!("the series does not end: {:?}", recorder.ledger(card.counters()));
}

fn disk_of(image: &Image) -> ScriptedDisk {
    ScriptedDisk::with(DiskScript { pace: Pace::Leaping, ..DiskScript::default() }, image.clone())
}

/// Verifies a series as one recording.
#[track_caller]
fn verified(disk: &ScriptedDisk, path: &str) -> (Recording, Verified) {
    let mut store = disk.store(8);
    let recording = Recording::open_in(&mut store, &[path.into()]).unwrap_or_else(|error| panic!("{path}: {error}"));
    let options = VerifyOptions { counters: true, sha512: false };
    let verified = verify(&mut store, &recording, options, &mut |_| {}).expect("verified");
    (recording, verified)
}

/// The frames of the existing segments, by number: first and end.
fn places(disk: &ScriptedDisk, numbers: std::ops::RangeInclusive<u32>) -> Vec<(u32, u64, u64)> {
    let one = |number| {
        let base = segment_base(Path::new("a/x"), number);
        let mut store = disk.store(8);
        let recording = Recording::open_in(&mut store, &[base]).ok()?;
        let first = recording.about().series.clone()?.first?.0;
        let produced = recording.ended()?.produced_bytes;
        Some((number, first, layout().frames_in(Bytes(produced)).0))
    };
    numbers.filter_map(one).collect()
}

#[test]
fn a_series_is_cut_between_blocks_and_no_frame_is_lost() {
    for members in 1..=3 {
        let case = Case { members, ..Case::default() };
        let Run { disk, ended, .. } = run(&case, Image::default(), |_, _| {});
        let (outcome, summary) = ended.expect("recorded");
        assert_eq!((outcome.verdict, outcome.ledger.lost_bytes), (RecordingVerdict::Complete, 0), "{}", outcome.reason);
        assert_eq!(summary.troubles, Vec::<String>::new());
        // 240,000 bytes in blocks of 24,576: three segments of three blocks, and the rest.
        assert_eq!((summary.segments, summary.kept, summary.last_number), (4, 4, 3), "{summary:?}");
        let found = places(&disk, 0..=9);
        let expected = [(0, 0, 12_288), (1, 12_288, 24_576), (2, 24_576, 36_864), (3, 36_864, 40_000)];
        assert_eq!(found, expected);
        let image = disk.image_after_power_cut(1);
        let disk = disk_of(&image);
        for (number, ..) in found {
            let base = segment_base(Path::new("a/x"), number);
            let (_, alone) = verified(&disk, base.to_str().expect("text"));
            assert_eq!((alone.verdict, &alone.faults[..]), (RecordingVerdict::Complete, &[] as &[String]), "{number}");
        }
        for name in ["a/x", "a/x.hairspring-series", "a/x.sigmf-collection"] {
            let (recording, whole) = verified(&disk, name);
            assert_eq!((whole.verdict, &whole.faults[..]), (RecordingVerdict::Complete, &[] as &[String]), "{name}");
            assert_eq!((whole.bytes.0, whole.mismatch, recording.is_series()), (240_000, None, true));
            assert!(recording.gaps().is_empty() && recording.skips().is_empty());
        }
        let collection = String::from_utf8(image.read("a/x.sigmf-collection").expect("a collection")).expect("text");
        assert_eq!(collection.matches("\"hash\"").count(), 4, "{collection}");
        let meta = String::from_utf8(image.read("a/x-000002.sigmf-meta").expect("metadata")).expect("text");
        assert!(meta.contains("\"core:collection\": \"x\""), "{meta}");
    }
}

/// The runs of frames that are stored, as one recording.
fn stored_runs(recording: &Recording) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    let mut blocks: Vec<_> = recording.blocks().iter().map(|block| (block.position, u64::from(block.length))).collect();
    blocks.sort_unstable();
    for (position, length) in blocks {
        for run in recording.timeline().runs_in(position, Bytes(length)) {
            let frames = layout().frames_in(run.length.expect("bounded")).0;
            match runs.last_mut().filter(|(first, frames)| first + frames == run.first.0) {
                Some((_, before)) => *before += frames,
                None => runs.push((run.first.0, frames)),
            }
        }
    }
    runs
}

/// Whether a shot ends before this frame.
fn shot_ends(outcome: &Outcome, frame: u64) -> bool {
    let post = TRIGGER.map_or(0, |(_, _, post)| post);
    outcome.triggers.iter().any(|(_, trigger)| trigger.0 + post == frame)
}

#[test]
fn shots_are_recorded_in_segments_that_divide_none_of_them() {
    let case = Case { frames: 60_000, trigger: TRIGGER, ..Case::default() };
    // The same recording in one segment gives the frames to keep.
    let Run { disk, ended, .. } = run(&Case { blocks: 1000, ..case.clone() }, Image::default(), |_, _| {});
    let (outcome, summary) = ended.expect("recorded");
    assert_eq!((outcome.verdict, summary.segments), (RecordingVerdict::Complete, 1), "{}", outcome.reason);
    let expected = stored_runs(&verified(&disk, "a/x").0);
    assert!(outcome.triggers.len() > 10 && expected.len() > 5, "{:?}", outcome.triggers);
    for (members, blocks) in [(1, 1), (1, 2), (2, 1)] {
        let case = Case { members, blocks, ..case.clone() };
        let Run { disk, ended, .. } = run(&case, Image::default(), |_, _| {});
        let (cut, summary) = ended.expect("recorded");
        assert_eq!((cut.verdict, &cut.triggers), (RecordingVerdict::Complete, &outcome.triggers), "{}", cut.reason);
        assert!(summary.segments > 2 && summary.troubles.is_empty(), "{summary:?}");
        assert_eq!(cut.ledger.stored_bytes, outcome.ledger.stored_bytes);
        assert_eq!(cut.ledger.left_out_bytes, outcome.ledger.left_out_bytes);
        let disk = disk_of(&disk.image_after_power_cut(1));
        let (recording, whole) = verified(&disk, "a/x");
        assert_eq!((whole.verdict, &whole.faults[..]), (RecordingVerdict::Complete, &[] as &[String]));
        assert_eq!((whole.bytes.0, whole.mismatch), (outcome.ledger.stored_bytes, None));
        assert_eq!(stored_runs(&recording), expected);
        let places = places(&disk, 0..=summary.last_number);
        assert!(places.windows(2).all(|pair| pair[0].2 == pair[1].1), "{places:?}");
        // A run may be two shots that touch each other.
        let is_divided = |(first, frames): &(u64, u64)| {
            places.iter().any(|(_, begin, _)| first < begin && *begin < first + frames && !shot_ends(&outcome, *begin))
        };
        assert!(!expected.iter().any(is_divided), "{places:?} {expected:?}");
        for number in 0..=summary.last_number {
            let base = segment_base(Path::new("a/x"), number);
            let (_, alone) = verified(&disk, base.to_str().expect("text"));
            assert_eq!((alone.verdict, &alone.faults[..]), (RecordingVerdict::Complete, &[] as &[String]), "{number}");
        }
    }
}

#[test]
fn a_series_is_joined_into_one_recording() {
    let Run { disk, .. } = run(&Case { members: 2, ..Case::default() }, Image::default(), |_, _| {});
    let (recording, _) = verified(&disk, "a/x");
    let (mut from, mut to) = (disk.store(8), disk.store(8));
    let options = join::JoinOptions::default();
    let joined = join::join(&mut from, &recording, &mut to, Path::new("j/y"), options, &mut |_| {}).expect("joined");
    assert_eq!((joined.verdict, joined.ledger.stored_bytes), (RecordingVerdict::Complete, 240_000));
    let (recording, whole) = verified(&disk, "j/y");
    assert_eq!((whole.verdict, &whole.faults[..]), (RecordingVerdict::Complete, &[] as &[String]));
    assert_eq!((whole.bytes.0, whole.mismatch, recording.is_series()), (240_000, None, false));
}

/// One recording cannot state that a segment is missing for an unknown reason. When such a series was joined all the
/// same, the result called those frames left out, and itself complete.
#[test]
fn a_series_that_lacks_a_segment_is_not_joined() {
    let Run { disk, .. } = run(&Case::default(), Image::default(), |_, _| {});
    let files = Files::of(&segment_base(Path::new("a/x"), 1));
    for file in [&files.data, &files.meta, &files.journal] {
        disk.store(8).remove(file).expect("it is there");
    }
    let recording = Recording::open_in(&mut disk.store(8), &["a/x".into()]).expect("opens");
    let missing: Vec<_> = recording.missing().iter().map(|one| (one.first.0, one.end().0, one.cause)).collect();
    assert_eq!(missing, [(12_288, 24_576, MissingCause::Undeclared)]);
    let options = join::JoinOptions { declare_gaps: true };
    let refused =
        join::join(&mut disk.store(8), &recording, &mut disk.store(8), Path::new("j/y"), options, &mut |_| {});
    let said = refused.expect_err("refused").to_string();
    assert!(said.contains("frames 12288 to 24575 were in a segment that is missing"), "{said}");
    assert_eq!(disk.image_after_kill(0).paths().filter(|path| path.starts_with("j")).count(), 0);
}

#[test]
fn gaps_at_and_around_cuts_are_in_one_segment_each_and_every_frame_has_its_number() {
    // A disk of half the rate: the ring overflows again and again.
    let mut segments = 0;
    for seed in 0..12 {
        let script = DiskScript { seed, rate: ByteRate::new(3e6), ..Case::default().script };
        let case = Case { frames: 150_000, script, blocks: 1 + seed % 4, ..Case::default() };
        let Run { disk, ended, .. } = run(&case, Image::default(), |_, _| {});
        let (outcome, summary) = ended.expect("recorded");
        assert_eq!(outcome.verdict, RecordingVerdict::Incomplete, "{}", outcome.reason);
        assert!(outcome.ledger.lost_bytes > 0 && outcome.ledger.holds() && summary.segments >= 2, "{summary:?}");
        segments += summary.segments;
        let lost: u64 = outcome.gaps.iter().map(|gap| layout().bytes_of(gap.frames).0).sum();
        assert_eq!(lost, outcome.ledger.lost_bytes);
        let places = places(&disk, 0..=summary.last_number);
        assert!(
            places.windows(2).all(|pair| pair[0].2 == pair[1].1),
            "each begins where the last one ended: {places:?}"
        );
        let (recording, whole) = verified(&disk, "a/x");
        assert_eq!((whole.mismatch, &whole.faults[..], whole.damaged), (None, &[] as &[String], 0), "seed {seed}");
        assert_eq!(whole.ledger.lost_bytes, outcome.ledger.lost_bytes);
        assert!(whole.ledger.holds(), "{:?}", whole.ledger);
        let found: u64 = recording.gaps().iter().map(|(_, gap)| gap.frames.0).sum();
        assert_eq!(layout().bytes_of(Frames(found)).0, lost);
    }
    assert!(segments >= 2 * 12, "{segments} segments");
}

#[test]
fn retention_keeps_the_newest_and_counts_what_it_deleted() {
    let retention = Retention { segments: Some(2), ..Retention::default() };
    let case = Case { frames: 120_000, retention, ..Case::default() };
    let mut image = Image::default();
    // A user pinned a segment before it was deleted, and has files of similar names.
    image.put(pin_of(&segment_base(Path::new("a/x"), 2)), b"");
    image.put("a/x-000099.sigmf-data", b"mine");
    image.put("a/x-notes.txt", b"mine, too");
    let Run { disk, ended, .. } = run(&case, image, |_, _| {});
    let (outcome, summary) = ended.expect("recorded");
    assert_eq!(outcome.verdict, RecordingVerdict::Complete, "{}", outcome.reason);
    // Ten segments: the pinned one, the two newest, and seven that were deleted.
    assert_eq!((summary.segments, summary.kept, summary.dropped_segments), (10, 3, 7), "{summary:?}");
    let ledger = outcome.ledger;
    assert!(ledger.holds() && ledger.dropped_bytes == 7 * 3 * BLOCK, "{ledger:?}");
    assert_eq!(ledger.lost_bytes, 0, "what was deleted is not lost");
    let image = disk.image_after_power_cut(0);
    let names: Vec<String> = image.paths().map(|path| path.display().to_string()).collect();
    let data: Vec<&String> = names.iter().filter(|name| name.ends_with("data")).collect();
    assert_eq!(
        data,
        ["a/x-000002.sigmf-data", "a/x-000008.sigmf-data", "a/x-000009.sigmf-data", "a/x-000099.sigmf-data"]
    );
    assert_eq!(image.read("a/x-000099.sigmf-data").as_deref(), Some(&b"mine"[..]));
    assert!(image.read("a/x-notes.txt").is_some());
    let (recording, whole) = verified(&disk_of(&image), "a/x");
    assert_eq!((whole.verdict, &whole.faults[..]), (RecordingVerdict::Complete, &[] as &[String]));
    assert_eq!(whole.bytes.0, ledger.stored_bytes);
    assert!(whole.ledger.holds() && whole.mismatch.is_none());
    assert_eq!(recording.skips().len(), 2, "before the pinned one, and behind it");
}

#[test]
fn a_disk_that_is_full_between_two_segments_ends_the_series_in_order() {
    let script = DiskScript { capacity: Some(Bytes(3_400_000_000)), ..Case::default().script };
    let retention = Retention { free: Some(Bytes(2_000_000_000)), ..Retention::default() };
    let case = Case { frames: 4_000_000, blocks: 100, retention, script, ..Case::default() };
    let Run { disk, ended, .. } = run(&case, Image::default(), |_, _| {});
    let (outcome, summary) = ended.expect("recorded");
    assert!(summary.stopped.as_ref().is_some_and(|why| why.contains("free")), "{summary:?}");
    assert!(summary.is_out_of_space && summary.least_free.is_some_and(|least| least.0 < 2_000_000_000), "{summary:?}");
    assert_eq!(outcome.verdict, RecordingVerdict::Stopped, "{}", outcome.reason);
    assert!(outcome.ledger.holds() && outcome.ledger.lost_bytes == 0, "{:?}", outcome.ledger);
    let (_, whole) = verified(&disk, "a/x");
    assert_eq!((&whole.faults[..], whole.bytes.0), (&[] as &[String], outcome.ledger.stored_bytes));
}

#[test]
fn less_than_twice_the_limit_of_free_space_is_warned_of_and_ends_nothing() {
    let script = DiskScript { capacity: Some(Bytes(100_000_000_000)), ..Case::default().script };
    for (least, is_low) in [(60_000_000_000, true), (10_000_000_000, false)] {
        let retention = Retention { free: Some(Bytes(least)), ..Retention::default() };
        let case = Case { frames: 60_000, retention, script: script.clone(), ..Case::default() };
        let (outcome, summary) = run(&case, Image::default(), |_, _| {}).ended.expect("recorded");
        assert_eq!(outcome.verdict, RecordingVerdict::Complete, "{}", outcome.reason);
        assert!(summary.stopped.is_none() && !summary.is_out_of_space, "{summary:?}");
        assert_eq!(summary.least_free.is_some(), is_low, "{summary:?}");
    }
}

/// Recovers the files after a crash; checks that a second run has nothing to do, and that all stored data are those
/// that were produced.
#[track_caller]
fn recovered(image: &Image, least: u64) -> Option<SeriesRecovered> {
    let disk = disk_of(image);
    let mut ignore = |_| {};
    let options = RecoverOptions::default();
    let first = recover_series(stores(&disk), Path::new("a/x"), options, &mut ignore).unwrap_or_else(|error| {
        panic!(
            "not recovered: {error}; {:?}",
            image.paths().map(|p| (p.to_owned(), image.read(p).map(|b| b.len()))).collect::<Vec<_>>()
        )
    });
    let Some(first) = first else {
        assert_eq!(least, 0, "there is no series, though {least} bytes were durable");
        return None;
    };
    let again =
        recover_series(stores(&disk), Path::new("a/x"), options, &mut ignore).expect("again").expect("a series");
    assert_eq!(again.changed, Vec::<String>::new(), "what is mended needs no mending: first {:?}", first.changed);
    if first.kept == 0 {
        assert_eq!(least, 0);
        return Some(first);
    }
    let (recording, whole) = verified(&disk, "a/x");
    let dropped = index_at(&mut stores(&disk), Path::new("a/x")).expect("read").expect("an index").dropped_bytes;
    // Each segment begins where the previous one ended, also after a segment that was cut and not closed.
    // Deleted segments between two pinned ones are a skip, too.
    let is_gated = !recording.triggers().is_empty();
    let is_pinned =
        disk.image_after_kill(0).paths().any(|path| path.extension().is_some_and(|ending| ending == "keep"));
    assert!(
        is_gated || is_pinned || recording.skips().iter().all(|(position, _)| *position == 0),
        "{:?}",
        recording.skips()
    );
    assert_eq!((&whole.faults[..], whole.damaged, whole.missing.0), (&[] as &[String], 0, 0), "{:?}", first.changed);
    assert_eq!(whole.mismatch, None);
    assert!(whole.ledger.holds(), "{:?}", whole.ledger);
    let kept = whole.bytes.0 + dropped;
    assert!(kept >= least, "{kept} bytes are left or were deleted of {least}: {:?}", first.changed);
    Some(first)
}

#[test]
fn what_there_is_of_a_segment_that_was_being_made_is_removed_and_nothing_of_others() {
    let Run { disk, .. } = run(&Case::default(), Image::default(), |_, _| {});
    let whole = disk.image_after_kill(1);
    let [ours, mine] = [4, 5].map(|number| Files::of(&segment_base(Path::new("a/x"), number)));
    // Killed after the first file was made, after the second one, and with space reserved.
    for (data, journal) in [(&b""[..], None), (b"", Some(&b""[..])), (&[0; 4096], Some(&[0; 128]))] {
        let mut image = whole.clone();
        image.put(&ours.data, data);
        journal.iter().for_each(|journal| image.put(&ours.journal, journal));
        image.put(&mine.data, b"mine");
        let disk = disk_of(&image);
        let recover = || recover_series(stores(&disk), Path::new("a/x"), RecoverOptions::default(), &mut |_| {});
        let first = recover().expect("recovered").expect("a series");
        assert_eq!(first.changed, ["segment 4 was being made: what there is of it is removed"]);
        let left = disk.image_after_kill(1);
        assert!(left.read(&ours.data).is_none() && left.read(&ours.journal).is_none());
        assert_eq!(left.read(&mine.data).as_deref(), Some(&b"mine"[..]), "a file that no recorder makes");
        assert_eq!(recover().expect("again").expect("a series").changed, Vec::<String>::new());
    }
}

/// Whether a segment was cut and not closed, and its blocks state more produced bytes than belong to it.
fn states_more_than_it_has(image: &Image, number: u32) -> bool {
    let records = |number| {
        let journal = Files::of(&segment_base(Path::new("a/x"), number)).journal;
        Journal::read(&image.read(journal).unwrap_or_default()).records
    };
    let first = records(number + 1).iter().find_map(|record| match record {
        Record::Series(of) => Some(layout().bytes_of(of.first).0),
        _ => None,
    });
    let own = records(number);
    let ended = own.iter().any(|record| matches!(record, Record::End { .. }));
    let produced = own.iter().filter_map(|record| match record {
        Record::Block { produced_bytes, .. } => Some(*produced_bytes),
        _ => None,
    });
    !ended && first.zip(produced.max()).is_some_and(|(first, produced)| produced > first)
}

/// Crashes at every `every`th operation of a case, and recovers the files after a kill and a power cut.
fn crashes(case: &Case, every: u64) -> (u64, u64) {
    let operations = run(case, Image::default(), |_, _| {}).disk.operations();
    // Numbers of crashes, and of crashes after a cut before the segment was closed.
    let (mut crashed, mut between) = (0, 0);
    let mut at = 1 + case.script.seed % every;
    while at <= operations {
        let mut case = case.clone();
        case.script.faults = vec![Fault::crash_at(at)];
        let Run { disk, durable, .. } = run(&case, Image::default(), |_, _| {});
        for image in [disk.image_after_kill(at), disk.image_after_power_cut(at)] {
            let mended = recovered(&image, durable).map(|found| found.segments).unwrap_or_default();
            let open =
                mended.iter().rev().skip(1).filter(|(number, _)| states_more_than_it_has(&image, *number)).count();
            between += open as u64;
        }
        crashed += 1;
        at += every;
    }
    (crashed, between)
}

#[test]
fn a_crash_at_every_step_of_cuts_and_deletions_is_recovered() {
    // Each operation of a short one, and some of a striped one and of one with gaps.
    let retention = Retention { segments: Some(1), ..Retention::default() };
    let short = Case { frames: 24_000, blocks: 2, retention, ..Case::default() };
    let (crashed, _) = crashes(&short, 1);
    assert!(crashed > 100, "{crashed} operations");
    let striped = Case { frames: 40_000, members: 2, retention, ..Case::default() };
    crashes(&striped, 29);
    // Between shots.
    crashes(&Case { frames: 60_000, blocks: 1, trigger: TRIGGER, retention, ..Case::default() }, 31);
    // The disk is slower than the source and writes one block after the other: so the blocks of a segment state more
    // produced bytes than belong to it.
    let script = DiskScript { seed: 3, rate: ByteRate::new(3e6), ..Case::default().script };
    let (_, between) = crashes(&Case { frames: 60_000, blocks: 3, depth: 1, script, ..Case::default() }, 5);
    assert!(between > 0, "no segment that was cut and not closed states too much");
}
