//! Both halves of a player in virtual time, on a scripted disk.

mod sound;

use std::path::Path;
use std::sync::Mutex;

use proptest::prelude::*;

use super::*;
use crate::sink::{Checked, Checker, Late, SinkNext, Unclocked, VirtualOutput, Writer};
use hairspring_recording::timeline::Timeline;
use hairspring_recording::{MissingCause, MissingFrames};
use hairspring_ring::layout::{Container, Layout};
use hairspring_source::pattern::Pattern;
use hairspring_store::Errno;
use hairspring_store::scripted::{DiskScript, Fault, Image, OpKind, Pace, ScriptedDisk, What};

const NOISE: Pattern = Pattern::Noise { seed: 7 };
const BLOCK: u64 = 4096;

/// A recording of noise in blocks of 4 KiB over two files, with holes before the bytes at some positions.
fn recording(layout: Layout, frames: u64, holes: &[(u64, u64)]) -> (Track, Image) {
    let mut timeline = Timeline::new(layout);
    holes.iter().for_each(|(position, frames)| timeline.skip(*position, Frames(*frames)));
    let mut bytes = vec![0; layout.bytes_of(Frames(frames)).0 as usize];
    for run in timeline.runs_in(0, Bytes(bytes.len() as u64)) {
        let piece = run.position as usize..(run.position + run.length.expect("cut").0) as usize;
        NOISE.fill(layout, run.first, &mut bytes[piece]);
    }
    let mut files = [Vec::new(), Vec::new()];
    let mut blocks = Vec::new();
    for (number, block) in bytes.chunks(BLOCK as usize).enumerate() {
        let (file, length) = (number % 2, block.len() as u32);
        let (position, offset) = (number as u64 * BLOCK, files[file].len() as u64);
        blocks.push(TrackBlock { position, length, crc: Some(crc32c::crc32c(block)), file, offset });
        files[file].extend_from_slice(block);
    }
    let mut image = Image::default();
    let paths = ["/a/x.sigmf-data", "/b/x.sigmf-data"];
    paths.iter().zip(&files).for_each(|(path, file)| image.put(path, file));
    let stored = Bytes(bytes.len() as u64);
    let files = paths.map(PathBuf::from).into();
    let rate = SampleRate::hz(1_000_000);
    let (first, end) = (timeline.frame_at(0), timeline.frame_at(stored.0));
    let missing = missing_in(&timeline, end);
    let extent = first.0..end.0;
    (Track { layout, rate, timeline, stored, files, blocks, extent, missing, swapped_bytes: 1 }, image)
}

/// The holes of a time line after its first frame, as a source states them.
fn missing_in(timeline: &Timeline, end: Frames) -> Vec<MissingFrames> {
    let runs: Vec<_> = timeline.runs().collect();
    let ends =
        runs.iter().map(|run| Frames(run.first.0 + timeline.layout().frames_in(run.length.unwrap_or_default()).0));
    let firsts = runs.iter().skip(1).map(|run| run.first);
    let holes = ends.zip(firsts).filter(|(from, to)| from < to && *from < end);
    let cause = MissingCause::Gap(hairspring_ring::gap::GapCause::Source);
    holes.map(|(from, to)| MissingFrames { first: from, frames: Frames(to.0 - from.0), cause, bounds: None }).collect()
}

fn small() -> PlayConfig {
    PlayConfig { buffer: Bytes::kib(32), pages: Pages::Small, depth: 3, ..PlayConfig::default() }
}

/// Lets both halves run in virtual time until the sink has ended.
fn run(track: &Track, sink: Box<dyn Sink>, disk: &ScriptedDisk, config: &PlayConfig) -> Played {
    let store = Box::new(disk.store(4));
    let mut player = Player::new(track, sink, store, config, Arc::default()).expect("possible");
    let mut now = Instant::BOOT;
    loop {
        disk.advance(now);
        player.reader.step(now);
        let next = player.driver.step(now);
        player.reader.step(now);
        let at = match next {
            SinkNext::Ended(_) => break,
            SinkNext::At(at) | SinkNext::Data(at) => at,
        };
        let due = disk.next_due().unwrap_or(at).min(at);
        now = due.max(now + Nanos::new(1));
        assert!(now - Instant::BOOT < Nanos::from_secs(3600), "never ends");
    }
    player.played(Instant::BOOT, now, Nanos::ZERO, Nanos::ZERO, track.layout)
}

fn clocked(track: &Track, hz: u64) -> (Box<dyn Sink>, Arc<Mutex<Checked>>) {
    let (checker, checked) = Checker::new(NOISE, track.layout);
    let rate = SampleRate::hz(hz).expect("possible");
    (Box::new(VirtualOutput::new(checker, track.layout, rate, Bytes(1024))), checked)
}

fn found(checked: &Arc<Mutex<Checked>>) -> Checked {
    checked.lock().expect("whole").clone()
}

fn disk(image: Image, latency: Nanos, faults: Vec<Fault>) -> ScriptedDisk {
    let script = DiskScript {
        seed: 3,
        least_latency: Nanos::new(latency.count() / 4),
        most_latency: latency,
        faults,
        ..DiskScript::default()
    };
    ScriptedDisk::with(script, image)
}

const FAST: Nanos = Nanos::from_micros(100);

fn mono() -> Layout {
    Layout::analogue(1, 16).expect("exists")
}

#[test]
fn a_recording_is_played_from_the_first_to_the_last_frame() {
    for (layout, frames) in [
        (mono(), 30_000),
        (Layout::analogue(3, 14).expect("exists"), 9_999),
        (Layout::stored_as(1, 12, Container::Packed12).expect("exists"), 20_000),
        (Layout::digital(13).expect("exists"), 4096),
    ] {
        let (track, image) = recording(layout, frames, &[]);
        let (sink, checked) = clocked(&track, 1_000_000);
        let played = run(&track, sink, &disk(image, FAST, vec![]), &small());
        assert_eq!(played.verdict, RecordingVerdict::Complete, "{layout}: {played:?}");
        let found = found(&checked);
        assert_eq!((found.right, found.wrong, found.in_order), (frames, None, true), "{layout}");
        assert_eq!((played.counters.recorded_frames, played.counters.fifo_frames), (frames, 0));
        let due = SampleRate::hz(1_000_000).expect("possible").time_of(Frames(frames));
        assert!((played.elapsed - due).count().abs() <= 1, "to its last frame, not longer: {}", played.elapsed);
    }
}

#[test]
fn recorded_gaps_are_replayed_where_and_as_long_as_they_were() {
    // A gap in a block, one at the border of two, one at the very end; frames missing at the beginning are not played.
    let holes = [(0, 77), (1000, 5), (4096, 12_345), (20_000, 3)];
    let (track, image) = recording(mono(), 10_000, &holes);
    assert_eq!(track.missing.iter().map(|gap| gap.frames.0).collect::<Vec<_>>(), [5, 12_345, 3]);
    let (sink, checked) = clocked(&track, 1_000_000);
    let played = run(&track, sink, &disk(image, FAST, vec![]), &small());
    assert_eq!((played.verdict, played.gap_frames), (RecordingVerdict::Complete, Frames(12_353)));
    let found = found(&checked);
    assert_eq!((found.right, found.filled, found.wrong, found.in_order), (10_000, 12_353, None, true));
}

/// Keeps the bytes written.
#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("whole").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn gaps_are_filled_with_zeros_or_the_last_frame_or_left_out() {
    let (track, image) = recording(mono(), 4000, &[(1000, 6)]);
    let mut all = vec![0; 8012];
    NOISE.fill(track.layout, Frames(0), &mut all);
    let stored = [&all[..1000], &all[1012..]];
    for (gaps, filling) in
        [(GapFill::Zero, vec![0; 12]), (GapFill::Hold, all[998..1000].repeat(6)), (GapFill::Skip, vec![])]
    {
        for clocked in [true, false] {
            let (tape, rate) = (Tape::default(), SampleRate::hz(48_000).expect("possible"));
            let writer = Writer::new(tape.clone(), track.layout, "tape");
            let sink: Box<dyn Sink> = if clocked {
                Box::new(VirtualOutput::new(writer, track.layout, rate, Bytes(512)))
            } else {
                Box::new(Unclocked::new(writer))
            };
            let config = PlayConfig { gaps, rounds: Some(2), ..small() };
            let played = run(&track, sink, &disk(image.clone(), FAST, vec![]), &config);
            assert_eq!(played.verdict, RecordingVerdict::Complete, "{gaps} {played:?}");
            let round = [stored[0], &filling, stored[1]].concat();
            assert!(*tape.0.lock().expect("whole") == round.repeat(2), "{gaps}");
        }
    }
}

#[test]
fn a_recording_is_played_several_times_without_a_break() {
    // The last block is short; in the second case it is a multiple of the disk's alignment, so that the next round
    // follows in the ring without padding. Pieces reached over that border once, and the numbers of their frames with
    // them.
    for frames in [5001, 3328] {
        let (track, image) = recording(mono(), frames, &[(4096, 7)]);
        let (sink, checked) = clocked(&track, 1_000_000);
        let config = PlayConfig { rounds: Some(5), ..small() };
        let played = run(&track, sink, &disk(image, FAST, vec![]), &config);
        let found = found(&checked);
        assert_eq!((played.verdict, found.right, found.filled), (RecordingVerdict::Complete, 5 * frames, 5 * 7));
        assert_eq!((found.wrong, found.in_order, played.length), (None, true, Some(Frames(5 * (frames + 7)))));
    }
}

#[test]
fn a_stall_of_the_disk_is_a_hole_in_the_output_and_never_a_delay() {
    let (track, image) = recording(mono(), 100_000, &[]);
    // The 20th of 49 reads stalls for 60 ms; the buffer lasts 16 ms at this rate.
    let stall = Fault::nth(OpKind::Read, 20, What::Stall(Nanos::from_millis(60)));
    let (sink, checked) = clocked(&track, 1_000_000);
    let played = run(&track, sink, &disk(image, FAST, vec![stall]), &small());
    assert_eq!(
        (played.verdict, played.end, played.unaccounted_frames),
        (RecordingVerdict::Incomplete, End::Finished, 0)
    );
    let found = found(&checked);
    assert_eq!((found.wrong, found.in_order), (None, true), "what is played is where it belongs");
    assert_eq!(found.right + found.missing, 100_000);
    let [underrun] = played.underruns[..] else { panic!("one hole: {:?}", played.underruns) };
    assert_eq!((underrun.frames, underrun.late), (Frames(found.missing), Late::BufferEmpty));
    // It begins after the frames that the disk had delivered before, and is as long as the stall minus the buffer's
    // content.
    assert_eq!(underrun.first.0 % (BLOCK / 2), 0);
    assert!((40_000..=60_000).contains(&underrun.frames.0), "{underrun:?}");
    assert_eq!(played.elapsed, Nanos::from_millis(100), "no delay");
    assert_eq!(played.dropped, underrun.frames);
    assert!(played.unread.0 > 30_000, "what is late already is not read: {}", played.unread);
}

#[test]
fn a_disk_that_is_too_slow_for_ever_loses_frames_and_never_the_time() {
    let (track, image) = recording(mono(), 50_000, &[(20_000, 1000)]);
    let script = DiskScript { rate: hairspring_ring::units::ByteRate::new(1e6), ..DiskScript::default() };
    let disk = ScriptedDisk::with(script, image);
    let (sink, checked) = clocked(&track, 1_000_000);
    let played = run(&track, sink, &disk, &small());
    let found = found(&checked);
    assert_eq!((found.wrong, found.in_order, played.unaccounted_frames), (None, true, 0));
    assert_eq!(played.elapsed, Nanos::from_millis(51));
    assert!(found.right > 15_000, "half the rate plays about half of the frames: {found:?}");
    assert_eq!(found.right + found.filled + found.missing, 51_000);
}

#[test]
fn a_sink_that_is_served_late_says_so() {
    let (track, image) = recording(mono(), 10_000, &[]);
    let disk = disk(image, Nanos::ZERO, vec![]);
    let (sink, _) = clocked(&track, 1_000_000);
    let mut player = Player::new(&track, sink, Box::new(disk.store(4)), &small(), Arc::default()).expect("possible");
    let mut step = |now_us| {
        let now = Instant::BOOT + Nanos::from_micros(now_us);
        for _ in 0..20 {
            disk.advance(now);
            player.reader.step(now);
        }
        player.driver.step(now)
    };
    assert_eq!(step(0), SinkNext::At(Instant::BOOT + Nanos::from_micros(256)));
    step(2000);
    let sink = &player.driver.sink;
    let [underrun] = sink.underruns() else { panic!("one hole") };
    // The FIFO holds 512 frames; 2000 were due.
    assert_eq!((underrun.first, underrun.frames, underrun.late), (Frames(512), Frames(1488), Late::ServedLate));
    assert_eq!(player.driver.worst_lateness, Nanos::from_micros(1744));
}

#[test]
fn a_damaged_block_is_a_gap_and_never_played() {
    let (mut track, image) = recording(mono(), 20_000, &[]);
    track.blocks[3].crc = Some(0);
    // A block that the journal does not know is missing, too.
    track.blocks.remove(7);
    for gaps in GapFill::ALL {
        let (sink, checked) = clocked(&track, 1_000_000);
        let played = run(&track, sink, &disk(image.clone(), FAST, vec![]), &PlayConfig { gaps, ..small() });
        let found = found(&checked);
        assert_eq!((found.right, found.wrong, found.in_order), (20_000 - 4096, None, true), "{gaps}");
        assert_eq!(found.filled, if gaps == GapFill::Skip { 0 } else { 4096 }, "{gaps}");
        assert_eq!((played.verdict, played.unaccounted_frames), (RecordingVerdict::Incomplete, 0), "{gaps}");
        assert_eq!((played.bad_frames, played.bad_blocks), (Frames(4096), 1));
        assert_eq!((played.bad[0].first, played.bad[0].why), (Frames(3 * 2048), Unproven::Checksum));
    }
}

#[test]
fn what_the_recording_itself_says_is_missing_is_a_gap_like_others() {
    let (mut track, image) = recording(mono(), 20_000, &[]);
    track.blocks.remove(7);
    let cause = MissingCause::Gap(hairspring_ring::gap::GapCause::Damaged);
    track.missing = vec![MissingFrames { first: Frames(7 * 2048), frames: Frames(2048), cause, bounds: None }];
    for gaps in GapFill::ALL {
        let (sink, checked) = clocked(&track, 1_000_000);
        let played = run(&track, sink, &disk(image.clone(), FAST, vec![]), &PlayConfig { gaps, ..small() });
        assert_eq!(
            (played.verdict, played.bad_frames, played.gap_frames),
            (RecordingVerdict::Complete, Frames(0), Frames(2048))
        );
        assert_eq!((found(&checked).right, found(&checked).wrong), (20_000 - 2048, None), "{gaps}");
    }
}

#[test]
fn a_recording_that_was_opened_is_played() {
    use hairspring_recording::testing::{PATTERN, Spec};
    let spec = Spec { members: 2, gaps: vec![(1000, 9)], unwritten: vec![4], ..Spec::plain() };
    let image = spec.make();
    // Opening waits for the disk, so this one's time moves on without a call.
    let leaping = ScriptedDisk::with(DiskScript { pace: Pace::Leaping, ..DiskScript::default() }, image.clone());
    let opened = hairspring_recording::Recording::open_in(&mut leaping.store(1), &[Spec::base(0)]).expect("opens");
    let disk = disk(image, FAST, vec![]);
    let track = Track::of(&opened);
    assert_eq!(track.files.len(), 2);
    let (checker, checked) = Checker::new(PATTERN, track.layout);
    let played = run(&track, Box::new(Unclocked::new(checker)), &disk, &small());
    let found = found(&checked);
    assert_eq!((found.wrong, found.in_order, found.filled), (None, true, 9 + 1024), "{played:?}");
    assert_eq!(found.right, track.layout.frames_in(Bytes(spec.stored)).0 - 1024);
}

/// The player leaves out the frames that every other reader reports as missing: declared frames are gaps, and all
/// others are damage.
#[test]
fn the_frames_that_are_not_played_are_those_that_the_recording_says_are_missing() {
    use hairspring_recording::testing::{PATTERN, Spec};
    let gaps = vec![(0, 5), (1000, 9), (8192, 3)];
    let specs = [
        ("gaps", Spec { gaps: gaps.clone(), ..Spec::plain() }, None),
        ("holes of triggers", Spec { skips: vec![(0, 70), (2048, 900), (12_288, 5)], ..Spec::plain() }, None),
        ("blocks that were not written", Spec { gaps: gaps.clone(), unwritten: vec![4, 5, 9], ..Spec::plain() }, None),
        ("killed", Spec { gaps: gaps.clone(), unwritten: vec![3], ..Spec::killed() }, None),
        ("a copy that was cut", Spec { gaps: gaps.clone(), ..Spec::plain() }, Some(9000)),
        ("a cut stripe", Spec { gaps, members: 2, ..Spec::plain() }, Some(5000)),
    ];
    for (name, spec, cut) in specs {
        let mut image = spec.make();
        if let Some(length) = cut {
            let data = image.read("/d0/x.sigmf-data").expect("data");
            image.put("/d0/x.sigmf-data", &data[..length]);
        }
        let leaping = ScriptedDisk::with(DiskScript { pace: Pace::Leaping, ..DiskScript::default() }, image.clone());
        let opened = hairspring_recording::Recording::open_in(&mut leaping.store(1), &[Spec::base(0)]).expect("opens");
        let (extent, missing) = opened.missing().between_ends();
        let sum = |declared: bool| -> u64 {
            missing.iter().filter(|one| one.cause.is_declared() == declared).map(|one| one.frames.0).sum()
        };
        assert!(!missing.is_empty(), "{name}");
        for gaps in GapFill::ALL {
            let track = Track::of(&opened);
            let (checker, checked) = Checker::new(PATTERN, track.layout);
            let config = PlayConfig { gaps, ..small() };
            let played = run(&track, Box::new(Unclocked::new(checker)), &disk(image.clone(), FAST, vec![]), &config);
            let lost = (played.gap_frames.0, played.bad_frames.0, played.bad_blocks);
            assert_eq!(lost, (sum(true), sum(false), 0), "{name}, {gaps}");
            let (found, all) = (found(&checked), extent.end - extent.start);
            assert_eq!((found.right, found.wrong), (all - sum(true) - sum(false), None), "{name}, {gaps}");
            assert_eq!(found.filled, if gaps == GapFill::Skip { 0 } else { sum(true) + sum(false) }, "{name}, {gaps}");
            let is_whole = played.verdict == RecordingVerdict::Complete;
            assert_eq!((is_whole, played.unaccounted_frames), (sum(false) == 0, 0), "{name}, {gaps}: {played:?}");
        }
    }
}

#[test]
fn errors_of_the_disk_are_gaps_and_what_was_only_cut_short_is_read_on() {
    let (track, image) = recording(mono(), 40_000, &[]);
    let faults = vec![
        Fault::nth(OpKind::Read, 2, What::Short(1024)),
        Fault::nth(OpKind::Read, 5, What::Short(100)),
        Fault::nth(OpKind::Read, 8, What::Error(Errno(libc::EINTR))),
        Fault::nth(OpKind::Read, 12, What::Error(Errno(libc::EIO))),
    ];
    let (sink, checked) = clocked(&track, 1_000_000);
    let played = run(&track, sink, &disk(image, FAST, faults), &small());
    let found = found(&checked);
    assert_eq!((found.right, found.filled, found.wrong), (40_000 - 2048, 2048, None), "{played:?}");
    assert_eq!(played.bad.iter().map(|bad| bad.why).collect::<Vec<_>>(), [Unproven::Read(Errno(libc::EIO))]);
}

#[test]
fn a_truncated_file_is_a_gap_to_its_end() {
    let (track, mut image) = recording(mono(), 20_000, &[]);
    let short = image.read("/b/x.sigmf-data").expect("there")[..6000].to_vec();
    image.put("/b/x.sigmf-data", &short);
    let (sink, checked) = clocked(&track, 1_000_000);
    let played = run(&track, sink, &disk(image, FAST, vec![]), &small());
    assert!(played.bad_blocks == 4 && played.bad.iter().all(|bad| bad.why == Unproven::Short), "{:?}", played.bad);
    assert_eq!((found(&checked).wrong, found(&checked).right), (None, 20_000 - played.bad_frames.0));
}

#[test]
fn the_clock_starts_when_the_buffer_is_as_full_as_was_asked_for() {
    let (track, image) = recording(mono(), 100_000, &[]);
    for (promille, least, most) in [(0, 0, 0), (500, 4, 5), (1000, 8, 8)] {
        let disk =
            ScriptedDisk::with(DiskScript { rate: ByteRate::new(4096e3), ..DiskScript::default() }, image.clone());
        let (sink, _) = clocked(&track, 1_000_000);
        let config = PlayConfig { preroll_promille: promille, ..small() };
        let played = run(&track, sink, &disk, &config);
        // The disk gives one block each millisecond.
        let blocks = played.preroll.count() / 1_000_000;
        assert!((least..=most).contains(&blocks), "{promille}: {}", played.preroll);
        assert_eq!(played.counters.primed_frames, if promille == 0 { 0 } else { 512 });
    }
}

#[test]
fn what_cannot_be_played_is_refused() {
    let (track, image) = recording(mono(), 10_000, &[]);
    let refused = |track: &Track, config: PlayConfig| {
        let disk = disk(image.clone(), FAST, vec![]);
        let (sink, _) = clocked(track, 1000);
        Player::new(track, sink, Box::new(disk.store(4)), &config, Arc::default()).map(|_| ()).expect_err("refused")
    };
    assert!(matches!(refused(&track, PlayConfig { rounds: Some(0), ..small() }), PlayError::Rounds));
    assert!(matches!(refused(&track, PlayConfig { buffer: Bytes::kib(4), ..small() }), PlayError::Buffer { .. }));
    let empty = Track { stored: Bytes(0), extent: 0..0, blocks: vec![], ..track.clone() };
    assert!(matches!(refused(&empty, small()), PlayError::Empty));
    let gone = Track { files: vec![PathBuf::from("/nowhere"); 2], ..track.clone() };
    assert!(matches!(refused(&gone, small()), PlayError::Store(_)));
}

#[test]
fn more_gaps_than_find_a_place_at_once_are_all_replayed() {
    // A gap after each of 3000 frames; the ring holds 1024 at once.
    let holes: Vec<(u64, u64)> = (1..3000).map(|frame| (frame * 2, 1)).collect();
    let (track, image) = recording(mono(), 3000, &holes);
    let (sink, checked) = clocked(&track, 1_000_000);
    let played = run(&track, sink, &disk(image, FAST, vec![]), &small());
    let found = found(&checked);
    assert_eq!((found.right, found.filled, found.wrong, found.missing), (3000, 2999, None, 0), "{played:?}");
    assert_eq!(played.verdict, RecordingVerdict::Complete);
}

proptest! {
    /// For any missing frames in the recording, any damage and any slowness of the disk: no wrong frame is played,
    /// none at the wrong time, and every frame is accounted for.
    #[test]
    fn nothing_is_played_wrong_or_at_the_wrong_time(
        (bits, channels) in prop_oneof![(Just(16), 1_u32..6), (Just(12), 1_u32..4), (Just(1), 1_u32..30)],
        frames in 2_000_u64..12_000,
        holes in proptest::collection::vec((0_u64..2_000, 1_u64..3000), 0..5),
        damaged in proptest::collection::btree_set(0_usize..12, 0..4),
        gone in proptest::option::of(0_usize..12),
        (gaps, rounds) in (0_usize..3, 1_u64..4),
        latency_us in 0_i64..20_000,
        clocked_at in proptest::option::of(100_000_u64..4_000_000),
    ) {
        let layout = match bits {
            16 => Layout::analogue(channels, 16),
            12 => Layout::stored_as(channels, 12, Container::Packed12),
            _ => Layout::digital(channels),
        }.expect("exists");
        let grain = layout.grain();
        let frames = frames / grain.frames * grain.frames;
        let mut at = 0;
        let holes: Vec<_> = holes.iter().map(|(step, missing)| {
            at += step * grain.bytes;
            (at.min(layout.bytes_of(Frames(frames)).0), missing * grain.frames)
        }).collect();
        let (mut track, image) = recording(layout, frames, &holes);
        for number in &damaged {
            track.blocks.get_mut(*number).into_iter().for_each(|block| block.crc = Some(0));
        }
        let hurt: Vec<u64> = damaged.iter().map(|number| *number as u64 * BLOCK).collect();
        if let Some(number) = gone && number < track.blocks.len() && track.blocks.len() > 1 {
            track.blocks.remove(number);
        }
        // A frame is played if all its bytes are in good blocks.
        let mut good = vec![false; track.stored.0 as usize];
        for block in &track.blocks {
            good[block.position as usize..][..block.length as usize].fill(!hurt.contains(&block.position));
        }
        let whole = good.chunks_exact(grain.bytes as usize).filter(|bytes| bytes.iter().all(|good| *good)).count();
        let whole = whole as u64 * grain.frames * rounds;
        let (checker, checked) = Checker::new(NOISE, layout);
        let sink: Box<dyn Sink> = match clocked_at.and_then(SampleRate::hz) {
            Some(rate) => Box::new(VirtualOutput::new(checker, layout, rate, Bytes(1024))),
            None => Box::new(Unclocked::new(checker)),
        };
        let config = PlayConfig { gaps: GapFill::ALL[gaps], rounds: Some(rounds), ..small() };
        let played = run(&track, sink, &disk(image, Nanos::from_micros(latency_us), vec![]), &config);
        let found = found(&checked);
        prop_assert_eq!((found.wrong, found.in_order, played.unaccounted_frames), (None, true, 0));
        prop_assert_eq!(Some(found.right + found.filled + found.missing), played.length.map(|length| length.0));
        if found.missing == 0 {
            prop_assert_eq!(found.right, whole);
        }
        prop_assert!(found.right <= whole);
        if clocked_at.is_none() {
            prop_assert_eq!(found.missing, 0);
        }
    }
}

/// The same with threads and real files, as fast as they come; and stopped on the way.
#[test]
fn threads_play_real_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut track, image) = recording(Layout::analogue(2, 16).expect("exists"), 300_000, &[(4000, 50)]);
    image.write_to(folder.path()).expect("written");
    let inside = |path: &Path| folder.path().join(path.strip_prefix("/").unwrap_or(path));
    track.files = track.files.iter().map(|path| inside(path)).collect();
    assert!(track.files[0].exists(), "{:?}", track.files);
    let play_it = |rounds, stop: Arc<AtomicBool>| {
        let (checker, checked) = Checker::new(NOISE, track.layout);
        let store = hairspring_store::best(4, hairspring_store::Ways::ALL);
        let config = PlayConfig { rounds, ..small() };
        let mut seen = 0;
        let mut progress = |progress: &PlayProgress| {
            seen = progress.counters.recorded_frames;
            stop.store(seen > 400_000, std::sync::atomic::Ordering::Relaxed);
        };
        let played = play(&track, Box::new(Unclocked::new(checker)), store, &config, &stop, &mut progress);
        (played.expect("played"), found(&checked), seen)
    };
    let (played, found, seen) = play_it(Some(1), Arc::default());
    assert_eq!(
        (played.verdict, found.right, found.filled, found.wrong),
        (RecordingVerdict::Complete, 300_000, 50, None)
    );
    assert_eq!(seen, 300_000);
    let (played, found, _) = play_it(None, Arc::default());
    assert_eq!(
        (played.verdict, played.end, found.wrong, found.in_order),
        (RecordingVerdict::Stopped, End::Stopped, None, true)
    );
    assert!(found.right > 400_000);
}
