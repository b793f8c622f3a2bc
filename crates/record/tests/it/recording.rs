//! The recorder in virtual time: every byte of the source is in the files or accounted for, for any behaviour of the
//! disk.

use std::sync::Arc;

use hairspring_machine::{Instant, Nanos};
use hairspring_record::recorder::{
    BlockPlacement, MOST_DEPTH, Outcome, Recorder, RecorderError, Setup, Step, WriteSettings,
};
use hairspring_recording::MOST_BLOCK;
use hairspring_recording::beginning::Beginning;
use hairspring_recording::channels::ChannelDescription;
use hairspring_recording::clock::{BootId, ClockRecord};
use hairspring_recording::journal::RecordingId;
use hairspring_recording::ledger::RecordingVerdict;
use hairspring_ring::gap::GapCause;
use hairspring_ring::layout::Layout;
use hairspring_ring::memory::{Memory, Pages};
use hairspring_ring::units::{ByteRate, Bytes, Frames, SampleRate};
use hairspring_ring::{End, OnOverrun, Producer, ring};
use hairspring_source::external::{ExternalFacts, ExternalKind};
use hairspring_source::pattern::Pattern;
use hairspring_source::trigger::{Gate, Shots};
use hairspring_source::virtual_card::{Settings, VirtualCard};
use hairspring_source::{Next, Source};
use hairspring_store::Errno;
use hairspring_store::scripted::{DiskScript, Fault, OpKind, Pace, ScriptedDisk, What, When};
use proptest::prelude::*;

use crate::mended;
use crate::oracle::{self, Contents};

/// A source, targets and settings.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) layout: Layout,
    rate_hz: u64,
    frames: u64,
    fifo: u64,
    ring: u64,
    notify: u64,
    depth: usize,
    members: usize,
    placement: BlockPlacement,
    on_overrun: OnOverrun,
    script: DiskScript,
    trigger: Option<(&'static str, u64, u64, Shots)>,
    stop_at: Option<Nanos>,
}

impl Case {
    pub(crate) fn striped(members: usize) -> Self {
        Self { members, ..Self::default() }
    }
}

impl Default for Case {
    fn default() -> Self {
        Self {
            layout: Layout::analogue(3, 16).expect("exists"),
            rate_hz: 1_000_000,
            frames: 200_000,
            fifo: 48 * 1024,
            ring: 256 * 1024,
            notify: 24 * 1024,
            depth: 4,
            members: 1,
            placement: BlockPlacement::LeastLoaded,
            on_overrun: OnOverrun::Gap,
            script: DiskScript { pace: Pace::Leaping, ..DiskScript::default() },
            trigger: None,
            stop_at: None,
        }
    }
}

/// Quantity and unit of the first channel of every card here.
pub(crate) fn channels(layout: Layout) -> Vec<ChannelDescription> {
    let mut channels = vec![ChannelDescription::default(); layout.channels() as usize];
    channels[0].unit = Some("kPa".to_owned());
    channels
}

pub(crate) fn of_a_boot() -> ClockRecord {
    let mut clock = ClockRecord::default();
    let (id, name) = ("/dev/ptp7".to_owned(), "a clock with a name that no journal has room for".to_owned());
    clock.external = Some(ExternalFacts { kind: ExternalKind::Ptp, id, name, late: Nanos::ZERO });
    clock.boot_id = Some(BootId([4; 16]));
    clock
}

const PATTERN: Pattern = Pattern::Noise { seed: 7 };
const NAMES: [&str; 3] = ["a/x", "b/x", "c/x"];

/// A recorder of this case that knows the expected volume, and the source that feeds it.
pub(crate) fn open(
    case: &Case,
    disk: &ScriptedDisk,
    volume: Option<Bytes>,
) -> Result<(Recorder, Producer, VirtualCard), RecorderError> {
    let size = Bytes(case.ring);
    let memory = Memory::mirrored(size, size, Pages::Small).expect("memory");
    let (producer, consumer) = ring(Arc::new(memory), Bytes(case.notify), case.on_overrun).expect("a ring");
    let card = card(case);
    let setup = Setup {
        targets: NAMES[..case.members].iter().map(Into::into).collect(),
        id: RecordingId([3; 16]),
        write: WriteSettings {
            block: Bytes(case.notify),
            depth: case.depth,
            placement: case.placement,
            volume,
            sync_every: Nanos::from_millis(5),
            sync_bytes: Bytes::mib(1),
            software: "test".to_owned(),
        },
        gated: false,
        keep_on: None,
        gate: case.trigger.map(|(text, pre, post, shots)| {
            Gate::new(text.parse().expect("a trigger"), case.layout, Frames(pre), Frames(post), shots).expect("a gate")
        }),
        opened: Beginning { realtime: Nanos::from_secs(1_700_000_000), monotonic: Instant::BOOT, within: Nanos::ZERO },
        channels: channels(case.layout),
        clock: of_a_boot(),
        series: None,
        resumed: None,
        stopwatch: || Instant::BOOT,
    };
    let recorder = Recorder::open(Box::new(disk.store(64)), consumer, card.describe(), setup)?;
    Ok((recorder, producer, card))
}

/// Runs a case to its end; the steps of source and recorder are interleaved by `next` (a number below 4 each time).
fn run(case: &Case, mut next: impl FnMut() -> u8) -> (Outcome, Contents, ScriptedDisk) {
    let disk = ScriptedDisk::new(case.script.clone());
    let (mut recorder, mut producer, mut card) = open(case, &disk, None).expect("a recorder");
    let mut now = disk.now();
    let began = now;
    card.start(now);
    let (mut ended, mut stopping, mut wake) = (false, false, now);
    for _ in 0..2_000_000 {
        stopping |= case.stop_at.is_some_and(|at| now - began >= at);
        if next() < 2 && !ended {
            ended = serve(&mut card, &mut producer, now, stopping);
        }
        assert!(recorder.ledger(card.counters()).holds(), "{:?}", recorder.ledger(card.counters()));
        if next() < 2 {
            match recorder.step(now, card.counters()) {
                Step::Done => {
                    let outcome = recorder.finish(now, card.counters());
                    let image = disk.image_after_kill(0);
                    // Without its journal only the recorder itself knows which blocks exist.
                    let strict = !journal_failed(&outcome);
                    let contents = oracle::check(&image, &NAMES[..case.members], case.layout, PATTERN, strict);
                    // A quarter of the arbitrary ones: it takes longer than the recording.
                    if strict && case.script.seed.is_multiple_of(4) {
                        mended::check(&image, &NAMES[..case.members], outcome.ledger.stored_bytes);
                    }
                    return (outcome, contents, disk);
                }
                Step::StopSource => stopping = true,
                Step::Wait(until) => wake = until,
            }
        }
        assert!(recorder.ledger(card.counters()).holds(), "{:?}", recorder.ledger(card.counters()));
        // To the next event, but only a little further at a time.
        now = disk.next_due().unwrap_or(wake).max(now).min(now + Nanos::from_micros(150 * i64::from(next() + 1)));
        if next() == 0 {
            now += Nanos::from_micros(50);
        }
        disk.advance(now);
    }
    panic!("the recording does not end: {:?}", recorder.ledger(card.counters()));
}

fn journal_failed(outcome: &Outcome) -> bool {
    outcome.reason.contains("writing the journal")
}

fn card(case: &Case) -> VirtualCard {
    VirtualCard::new(Settings {
        layout: case.layout,
        rate: SampleRate::hz(case.rate_hz).expect("possible"),
        pattern: PATTERN,
        fifo: Bytes(case.fifo),
        jitter: Nanos::ZERO,
        hiccups: Vec::new(),
        bus: None,
        frames: Some(Frames(case.frames)),
    })
}

pub(crate) fn serve(card: &mut VirtualCard, producer: &mut Producer, now: Instant, stopping: bool) -> bool {
    let next = if stopping { card.stop(now, producer) } else { card.service(now, producer) };
    let Next::Ended(end) = next else { return false };
    producer.close(end);
    true
}

/// Source and recorder step in turn; neither is late.
fn in_turn() -> impl FnMut() -> u8 {
    || 1
}

#[track_caller]
fn agree(outcome: &Outcome, contents: &Contents, layout: Layout) {
    assert!(outcome.ledger.holds() && outcome.ledger.is_settled(), "{:?}", outcome.ledger);
    assert_eq!(contents.stored, outcome.ledger.stored_bytes);
    assert_eq!(layout.bytes_of(Frames(contents.lost)).0, outcome.ledger.lost_bytes, "{:?}", outcome.gaps);
    assert_eq!(layout.bytes_of(Frames(contents.left_out)).0, outcome.ledger.left_out_bytes);
    assert_ne!(outcome.verdict, RecordingVerdict::Unaccounted, "{}", outcome.reason);
    let lost: u64 = outcome.gaps.iter().map(|gap| gap.frames.0).sum();
    assert_eq!(lost, contents.lost);
    assert_eq!(outcome.verdict == RecordingVerdict::Complete, contents.lost == 0 && outcome.end == End::Finished);
}

#[test]
fn a_fast_disk_takes_everything_and_the_recording_is_complete() {
    let case = Case::default();
    let (outcome, contents, disk) = run(&case, in_turn());
    agree(&outcome, &contents, case.layout);
    assert_eq!(outcome.verdict, RecordingVerdict::Complete, "{}", outcome.reason);
    assert_eq!(outcome.ledger.produced_bytes, 1_200_000);
    assert_eq!(outcome.ledger.durable_bytes, 1_200_000);
    let image = disk.image_after_power_cut(1);
    let (recovered, verified) = mended::check(&image, &["a/x"], 1_200_000);
    assert_eq!((recovered.changed, verified.verdict), (vec![], RecordingVerdict::Complete), "nothing needs mending");
    let after = oracle::check(&image, &["a/x"], case.layout, PATTERN, false);
    assert_eq!(after.stored, 1_200_000, "a finished recording survives a power cut");
    assert!(oracle::meta_says(&image, "a/x", "complete"));
    assert_eq!(image.length("a/x.sigmf-data"), Some(1_200_000), "what was reserved is given back");
}

#[test]
fn a_slow_disk_makes_gaps_and_the_gaps_say_how_much_is_missing() {
    let rate = ByteRate::new(2e6);
    let case = Case { script: DiskScript { rate, pace: Pace::Leaping, ..DiskScript::default() }, ..Case::default() };
    let (outcome, contents, _) = run(&case, in_turn());
    agree(&outcome, &contents, case.layout);
    assert_eq!(outcome.verdict, RecordingVerdict::Incomplete);
    assert!(contents.lost > 10_000, "{contents:?}");
    assert!(outcome.gaps.iter().all(|gap| gap.cause == GapCause::BufferFull), "{:?}", outcome.gaps);
}

#[test]
fn policy_stop_ends_at_the_first_loss_and_keeps_all_before_it() {
    let rate = ByteRate::new(2e6);
    let script = DiskScript { rate, pace: Pace::Leaping, ..DiskScript::default() };
    let case = Case { script, on_overrun: OnOverrun::Stop, ..Case::default() };
    let (outcome, contents, _) = run(&case, in_turn());
    agree(&outcome, &contents, case.layout);
    assert_eq!((outcome.verdict, outcome.end), (RecordingVerdict::Incomplete, End::Overrun));
    assert_eq!(outcome.gaps.len(), 1);
    assert_eq!(case.layout.bytes_of(outcome.gaps[0].first).0, contents.stored, "nothing before it is missing");
}

#[test]
fn policy_overwrite_loses_the_oldest_and_keeps_the_newest() {
    let stall = Fault::nth(OpKind::Write, 3, What::Stall(Nanos::from_millis(120)));
    let script = DiskScript { faults: vec![stall], pace: Pace::Leaping, ..DiskScript::default() };
    let case = Case { script, on_overrun: OnOverrun::Overwrite, ..Case::default() };
    let (outcome, contents, _) = run(&case, in_turn());
    agree(&outcome, &contents, case.layout);
    assert!(outcome.gaps.iter().all(|gap| gap.cause == GapCause::Overwritten), "{:?}", outcome.gaps);
    let (first, last) = (outcome.gaps[0].first, outcome.gaps.last().expect("gaps").end());
    // The stall ends after about 120 ms; the newest data, which the ring held then, are stored.
    assert!(last.0 < 120_000 && first.0 > 10_000, "{first:?} {last:?}");
}

#[test]
fn a_full_disk_ends_the_recording_in_order_and_says_so() {
    for members in 1..=2 {
        let faults = vec![Fault::full_after(Bytes(400_000)).on(".sigmf-data")];
        let script = DiskScript { faults, pace: Pace::Leaping, ..DiskScript::default() };
        let case = Case { script, members, ..Case::default() };
        let (outcome, contents, disk) = run(&case, in_turn());
        agree(&outcome, &contents, case.layout);
        assert_eq!(outcome.verdict, RecordingVerdict::Incomplete);
        assert!(outcome.reason.contains("No space left"), "{}", outcome.reason);
        assert!(outcome.gaps.iter().any(|gap| gap.cause == GapCause::WriteFailed), "{:?}", outcome.gaps);
        assert!(contents.stored > 200_000, "{contents:?}");
        assert!(oracle::meta_says(&disk.image_after_kill(0), "a/x", "incomplete"));
    }
}

#[test]
fn a_volume_that_does_not_fit_is_refused_before_anything_is_reserved() {
    let script = DiskScript { capacity: Some(Bytes::mib(1)), pace: Pace::Leaping, ..DiskScript::default() };
    let disk = ScriptedDisk::new(script.clone());
    let case = Case { script, ..Case::default() };
    let refused = open(&case, &disk, Some(Bytes::mib(2))).err().expect("no room");
    assert!(matches!(refused, RecorderError::NoSpace(_, Bytes(0x20_0000..), Some(_))), "{refused}");
    let reserved: Vec<Option<u64>> =
        ["a/x.sigmf-data", "a/x.sigmf-meta"].iter().map(|file| disk.image_after_kill(0).length(file)).collect();
    assert_eq!(reserved, [None, None], "nothing is left behind");
    assert_eq!(disk.operations(), 6, "files were looked for, made and removed, and nothing asked for in between");
}

#[test]
fn a_target_that_dies_gives_its_blocks_to_the_others() {
    let dies = Fault {
        kind: Some(OpKind::Write),
        file: Some("b/x.sigmf-data".to_owned()),
        when: When::From(5),
        what: What::Error(Errno(libc::EIO)),
    };
    let script = DiskScript {
        faults: vec![dies],
        pace: Pace::Leaping,
        least_latency: Nanos::from_micros(10),
        most_latency: Nanos::from_millis(2),
        ..DiskScript::default()
    };
    let case = Case { script, members: 3, ..Case::default() };
    let (outcome, contents, _) = run(&case, in_turn());
    agree(&outcome, &contents, case.layout);
    assert_eq!(outcome.verdict, RecordingVerdict::Complete, "{}", outcome.reason);
    assert!(outcome.reason.contains("b/x"), "{}", outcome.reason);
}

/// The last block ends within a sector. A block that another target gave up was written after it, where no direct write
/// can begin: the system refused that write, and everything from that block on was lost.
#[test]
fn a_block_that_a_target_gives_up_when_the_last_one_is_written_finds_a_place() {
    for on_overrun in [OnOverrun::Gap, OnOverrun::Overwrite] {
        let dies = Fault {
            kind: Some(OpKind::Write),
            file: Some("a/x.sigmf-data".to_owned()),
            when: When::From(1),
            what: What::Error(Errno(libc::EINTR)),
        };
        let script = DiskScript { faults: vec![dies], pace: Pace::Leaping, ..DiskScript::default() };
        // Five blocks and a part of one; while the first, third and fifth are tried again and again the others are
        // written.
        let placement = BlockPlacement::Static;
        let case = Case { frames: 22_000, members: 2, placement, on_overrun, script, ..Case::default() };
        let (outcome, contents, _) = run(&case, in_turn());
        agree(&outcome, &contents, case.layout);
        assert_eq!(outcome.ledger.produced_bytes % outcome.block.0 % 512, 416, "the last block ends within a sector");
        assert!(outcome.reason.contains("a/x failed"), "{}", outcome.reason);
        assert_eq!(contents.stored, 132_000, "{}", outcome.reason);
    }
}

#[test]
fn the_hole_in_the_file_of_a_target_that_died_is_closed_by_recovery() {
    let faults = vec![Fault::nth(OpKind::Write, 3, What::Error(Errno(libc::EIO))).on("b/x.sigmf-data")];
    // So slow that blocks after the failing one are under way already.
    let (least_latency, most_latency) = (Nanos::from_millis(20), Nanos::from_millis(25));
    let script = DiskScript { faults, pace: Pace::Leaping, least_latency, most_latency, ..DiskScript::default() };
    let case = Case { script, members: 2, depth: 6, placement: BlockPlacement::Static, ..Case::default() };
    let (outcome, contents, disk) = run(&case, in_turn());
    agree(&outcome, &contents, case.layout);
    assert_eq!(outcome.verdict, RecordingVerdict::Complete, "{}", outcome.reason);
    let (recovered, _) = mended::check(&disk.image_after_kill(0), &["a/x", "b/x"], contents.stored);
    assert!(recovered.changed.iter().any(|change| change.contains("a hole")), "{:?}", recovered.changed);
    assert_eq!(recovered.verdict, RecordingVerdict::Complete);
}

#[test]
fn short_and_interrupted_writes_are_finished() {
    let faults = vec![
        Fault::nth(OpKind::Write, 2, What::Short(700)),
        Fault::nth(OpKind::Write, 4, What::Error(Errno(libc::EINTR))),
        Fault::nth(OpKind::Write, 5, What::Error(Errno(libc::EAGAIN))),
        Fault::nth(OpKind::Write, 7, What::Short(512)),
    ];
    let case = Case { script: DiskScript { faults, pace: Pace::Leaping, ..DiskScript::default() }, ..Case::default() };
    let (outcome, contents, _) = run(&case, in_turn());
    agree(&outcome, &contents, case.layout);
    assert_eq!(outcome.verdict, RecordingVerdict::Complete, "{}", outcome.reason);
}

#[test]
fn after_a_failed_sync_nothing_is_called_durable_any_more() {
    let faults = vec![Fault::nth(OpKind::Sync, 3, What::Error(Errno(libc::EIO))).on(".sigmf-data")];
    let case = Case { script: DiskScript { faults, pace: Pace::Leaping, ..DiskScript::default() }, ..Case::default() };
    let (outcome, contents, _) = run(&case, in_turn());
    assert_eq!(outcome.verdict, RecordingVerdict::Incomplete, "{}", outcome.reason);
    assert_eq!(contents.stored, 1_200_000);
    assert!(outcome.ledger.durable_bytes < 1_200_000);
    assert_eq!(contents.durable, outcome.ledger.durable_bytes);
}

#[test]
fn a_disk_that_never_syncs_again_ends_the_recording() {
    // Found in the lab on a disk that fails: the error of the last sync was entered after the end, which needed one
    // more sync.
    let faults = vec![Fault { when: When::From(3), ..Fault::nth(OpKind::Sync, 3, What::Error(Errno(libc::EIO))) }];
    for members in [1, 3] {
        let script = DiskScript { faults: faults.clone(), pace: Pace::Leaping, ..DiskScript::default() };
        let case = Case { script, members, ..Case::default() };
        let (outcome, contents, _) = run(&case, in_turn());
        assert_eq!(outcome.verdict, RecordingVerdict::Incomplete, "{}", outcome.reason);
        assert_eq!(contents.stored, outcome.ledger.stored_bytes);
    }
}

#[test]
fn writes_that_never_get_a_sector_further_have_failed() {
    let faults =
        vec![Fault { when: When::From(4), ..Fault::nth(OpKind::Write, 4, What::Short(100)) }.on(".sigmf-data")];
    let case = Case { script: DiskScript { faults, pace: Pace::Leaping, ..DiskScript::default() }, ..Case::default() };
    let (outcome, contents, _) = run(&case, in_turn());
    assert_eq!(outcome.verdict, RecordingVerdict::Incomplete, "{}", outcome.reason);
    assert!(outcome.gaps.iter().any(|gap| gap.cause == GapCause::WriteFailed), "{:?}", outcome.gaps);
    assert_eq!(contents.stored, outcome.ledger.stored_bytes);
}

#[test]
fn a_journal_that_cannot_be_written_ends_the_recording_with_what_it_knows() {
    let faults = vec![Fault {
        kind: Some(OpKind::Write),
        file: Some("journal".to_owned()),
        when: When::From(4),
        what: What::Error(Errno(libc::EIO)),
    }];
    let case = Case { script: DiskScript { faults, pace: Pace::Leaping, ..DiskScript::default() }, ..Case::default() };
    let (outcome, contents, _) = run(&case, in_turn());
    assert_eq!(outcome.verdict, RecordingVerdict::Incomplete, "{}", outcome.reason);
    assert!(outcome.ledger.holds(), "{:?}", outcome.ledger);
    assert_eq!(contents.stored, outcome.ledger.stored_bytes);
}

#[test]
fn a_target_that_turns_read_only_is_lost_and_the_recording_goes_on() {
    // The usual death of a disk: its file system turns read-only, and data, journal and syncs fail alike. An error of a
    // journal used to end the whole recording.
    for members in 1..=3 {
        let script = DiskScript {
            faults: vec![Fault {
                kind: None,
                file: Some("b/x.".to_owned()),
                when: When::From(30),
                what: What::Error(Errno(libc::EROFS)),
            }],
            pace: Pace::Leaping,
            most_latency: Nanos::from_micros(300),
            ..DiskScript::default()
        };
        let case = Case { script, members, ..Case::default() };
        let (outcome, contents, _) = run(&case, in_turn());
        assert!(outcome.ledger.holds() && outcome.ledger.is_settled(), "{:?}", outcome.ledger);
        assert_eq!(contents.stored, outcome.ledger.stored_bytes);
        if members == 1 {
            assert_eq!(outcome.verdict, RecordingVerdict::Complete, "no such target: {}", outcome.reason);
            continue;
        }
        assert_eq!((outcome.verdict, outcome.end), (RecordingVerdict::Incomplete, End::Finished), "{}", outcome.reason);
        assert!(outcome.reason.contains("b/x") && outcome.reason.contains("recover"), "{}", outcome.reason);
        // At most the blocks under way to that target when it died: a depth of blocks, and those whose record was not
        // written yet.
        assert!(outcome.ledger.lost_bytes <= 2 * 4 * outcome.block.0, "{:?}: {}", outcome.ledger, outcome.reason);
    }
}

#[test]
fn blocks_are_never_larger_than_readers_take() {
    // With a notify size of 128 MiB blocks were recorded that verification refused.
    let script = DiskScript { pace: Pace::Leaping, ..DiskScript::default() };
    let (ring, notify) = (512 << 20, 128 << 20);
    let case = Case { ring, notify, script: script.clone(), ..Case::default() };
    let (recorder, ..) = open(&case, &ScriptedDisk::new(script), None).expect("a recorder");
    assert!(recorder.block() <= MOST_BLOCK && recorder.block().0 > MOST_BLOCK.0 / 2, "{}", recorder.block());
    // Whole frames aligned to a disk of large sectors can be larger than that; then opening the recorder fails.
    let script = DiskScript { alignment: 65_536, ..DiskScript::default() };
    let layout = Layout::analogue(4095, 8).expect("exists");
    let case = Case { layout, ring: 1 << 20, script: script.clone(), ..Case::default() };
    let disk = ScriptedDisk::new(script);
    let refused = open(&case, &disk, None).err().expect("larger than readers take");
    assert!(matches!(refused, RecorderError::LargeBlock(Bytes(0x0800_0000..))), "{refused}");
    assert_eq!(disk.image_after_kill(0).paths().count(), 0, "nothing is left behind");
}

#[test]
fn a_call_that_is_interrupted_for_ever_has_failed() {
    // The recorder used to repeat the call without end.
    for (file, errno) in [(".sigmf-data", libc::EAGAIN), ("journal", libc::EINTR)] {
        let forever = Fault {
            kind: Some(OpKind::Write),
            file: Some(file.to_owned()),
            when: When::From(6),
            what: What::Error(Errno(errno)),
        };
        let script = DiskScript { faults: vec![forever], pace: Pace::Leaping, ..DiskScript::default() };
        let (outcome, _, _) = run(&Case { script, ..Case::default() }, in_turn());
        assert_eq!(outcome.verdict, RecordingVerdict::Incomplete, "{}", outcome.reason);
        assert!(outcome.ledger.holds() && outcome.ledger.stored_bytes > 0, "{:?}", outcome.ledger);
    }
}

#[test]
fn a_stop_drains_what_was_produced_until_then() {
    let case = Case { stop_at: Some(Nanos::from_millis(77)), ..Case::default() };
    let (outcome, contents, _) = run(&case, in_turn());
    assert_eq!((outcome.verdict, outcome.end), (RecordingVerdict::Stopped, End::Stopped), "{}", outcome.reason);
    assert_eq!(contents.stored, outcome.ledger.produced_bytes);
    assert!(contents.stored >= 77_000 * 6);
}

#[test]
fn shots_are_kept_with_what_came_before_them_and_the_rest_is_left_out() {
    let trigger = Some(("level:ch0>0.9998", 1000, 2000, Shots::Repeated(Some(3))));
    let case = Case { trigger, ..Case::default() };
    let (outcome, contents, _) = run(&case, in_turn());
    agree_without_verdict(&outcome, &contents, case.layout);
    assert_eq!(outcome.triggers.len(), 3, "{}", outcome.reason);
    assert_eq!(outcome.verdict, RecordingVerdict::Complete, "{}", outcome.reason);
    assert_eq!(contents.lost, 0);
    let most = 3 * 3000 * 6;
    assert!(contents.stored <= most && contents.stored >= 3 * 2000 * 6, "{contents:?}");
}

#[track_caller]
fn agree_without_verdict(outcome: &Outcome, contents: &Contents, layout: Layout) {
    assert!(outcome.ledger.holds() && outcome.ledger.is_settled(), "{:?}", outcome.ledger);
    let lost: u64 = outcome.gaps.iter().map(|gap| gap.frames.0).sum();
    assert_eq!(layout.bytes_of(Frames(lost)).0, outcome.ledger.lost_bytes, "{:?}", outcome.gaps);
    if journal_failed(outcome) {
        assert_eq!(outcome.verdict, RecordingVerdict::Incomplete);
        return;
    }
    assert_eq!(contents.stored, outcome.ledger.stored_bytes);
    assert_eq!(contents.lost, lost);
    assert_eq!(layout.bytes_of(Frames(contents.left_out)).0, outcome.ledger.left_out_bytes);
}

fn any_fault() -> impl Strategy<Value = Fault> {
    let kind = prop_oneof![Just(OpKind::Write), Just(OpKind::Write), Just(OpKind::Sync), Just(OpKind::Allocate)];
    let errno = prop_oneof![Just(libc::EIO), Just(libc::ENOSPC), Just(libc::EINTR), Just(libc::EAGAIN)];
    let what = prop_oneof![
        errno.prop_map(|errno| What::Error(Errno(errno))),
        (1_u64..30_000).prop_map(What::Short),
        (1_i64..60).prop_map(|ms| What::Stall(Nanos::from_millis(ms))),
    ];
    (kind, 1_u64..40, what).prop_map(|(kind, nth, what)| Fault::nth(kind, nth, what))
}

fn any_case() -> impl Strategy<Value = Case> {
    let layout = prop_oneof![
        Just(Layout::analogue(1, 8).expect("exists")),
        Just(Layout::analogue(3, 16).expect("exists")),
        Just(Layout::analogue(5, 14).expect("exists")),
        Just(Layout::digital(12).expect("exists")),
    ];
    let policy = prop_oneof![Just(OnOverrun::Stop), Just(OnOverrun::Gap), Just(OnOverrun::Overwrite)];
    let rate = prop_oneof![Just(None), (500_000_f64..20e6).prop_map(ByteRate::new)];
    let trigger = prop_oneof![
        3 => Just(None),
        1 => Just(Some(("level:ch0>0.5", 100_u64, 500_u64, Shots::Repeated(None)))),
    ];
    let depth = prop_oneof![8 => 1_usize..6, 1 => Just(64), 1 => Just(MOST_DEPTH)];
    let sizes = (depth, 1_usize..4, any::<bool>(), 0_u64..100_000, 3_u64..12);
    let disk = (any::<u64>(), rate, 0_i64..3000, proptest::collection::vec(any_fault(), 0..3));
    (layout, policy, sizes, disk, trigger).prop_map(|(layout, on_overrun, sizes, disk, trigger)| {
        let (depth, members, fixed, fifo, notifies) = sizes;
        let (seed, rate, latency_us, faults) = disk;
        let digital = layout.resolution_bits() == 1;
        Case {
            layout,
            frames: 60_000,
            fifo: fifo + 64,
            ring: notifies.next_power_of_two() * 64 * 1024,
            notify: 20 * 1024,
            depth,
            members,
            placement: if fixed { BlockPlacement::Static } else { BlockPlacement::LeastLoaded },
            on_overrun,
            script: DiskScript {
                seed,
                pace: Pace::Leaping,
                most_latency: Nanos::from_micros(latency_us),
                rate,
                faults,
                ..DiskScript::default()
            },
            trigger: trigger.filter(|_| !digital),
            ..Case::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_is_accounted_for_under_any_schedule_and_faults(
        case in any_case(),
        schedule in proptest::collection::vec(0_u8..4, 1..64),
    ) {
        let mut at = 0;
        let (outcome, contents, _) = run(&case, || { at += 1; schedule[at % schedule.len()].min(if at % 7 == 0 { 1 } else { 3 }) });
        agree_without_verdict(&outcome, &contents, case.layout);
        prop_assert_ne!(outcome.verdict, RecordingVerdict::Unaccounted, "{}", outcome.reason);
    }
}
