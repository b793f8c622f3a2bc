//! An excerpt has the bytes of its frames, or reports which block is bad.

use std::ops::ControlFlow;

use hairspring_ring::layout::{Container, Layout};
use proptest::prelude::*;

use super::*;
use crate::Files;
use crate::testing::Spec;
use hairspring_store::Errno;
use hairspring_store::scripted::{DiskScript, Image, Pace, ScriptedDisk};

fn disk(image: &Image) -> ScriptedDisk {
    ScriptedDisk::with(DiskScript { pace: Pace::Leaping, ..DiskScript::default() }, image.clone())
}

/// The frames that were read, each with its bytes.
type Read = Vec<(u64, Vec<u8>)>;

fn read(image: &Image, frames: Range<u64>, check: ExcerptCheck) -> Result<Read, ExcerptError> {
    let disk = disk(image);
    let recording = Recording::open_in(&mut disk.store(8), &[Spec::base(0)])?;
    let part = ExcerptPart { recording: &recording, blocks: recording.blocks() };
    let layout = recording.about().layout;
    let mut excerpt = Excerpt::read(&mut disk.store(8), &[part], frames, check, &mut || ControlFlow::Continue(()))?;
    let runs = excerpt.runs().to_vec();
    let bytes = excerpt.bytes();
    let read = runs.iter().map(|run| {
        let length = layout.bytes_of(run.frames).0 as usize;
        (run.first.0, bytes[run.at..run.at + length].to_vec())
    });
    Ok(read.collect())
}

/// The expected excerpt: a run for each stretch, and its bytes by the generator.
fn expected(spec: &Spec, frames: &Range<u64>) -> Read {
    let (timeline, grain) = (spec.timeline(), spec.layout.grain());
    let runs = timeline.runs_in(0, Bytes(spec.stored));
    let runs = runs.filter_map(|run| {
        let end = run.first.0 + spec.layout.frames_in(run.length.expect("cut")).0;
        let from = frames.start.max(run.first.0);
        let from = run.first.0 + from.saturating_sub(run.first.0) / grain.frames * grain.frames;
        let to = frames.end.min(end);
        (from < to).then(|| {
            let count = (to - from).next_multiple_of(grain.frames);
            let mut bytes = vec![0; spec.layout.bytes_of(Frames(count)).0 as usize];
            spec.pattern.fill(spec.layout, Frames(from), &mut bytes);
            (from, bytes)
        })
    });
    runs.collect()
}

fn specs() -> Vec<Spec> {
    let gaps = vec![(0, 5), (4096, 3), (10_000, 7), (43_008, 1)];
    let packed = Layout::stored_as(3, 12, Container::Packed12).expect("exists");
    vec![
        Spec::plain(),
        Spec { gaps: gaps.clone(), ..Spec::plain() },
        Spec { members: 3, gaps, ..Spec::plain() },
        Spec { layout: packed, block: 9 * 512, stored: 9 * 5000, gaps: vec![(9 * 700, 4)], ..Spec::plain() },
        Spec { layout: Layout::digital(20).expect("exists"), block: 3072, stored: 30_000, ..Spec::plain() },
    ]
}

#[test]
fn any_range_of_frames_has_the_bytes_that_were_recorded() {
    for spec in specs() {
        let image = spec.make();
        let end = spec.timeline().frame_at(spec.stored).0 + 10;
        proptest!(ProptestConfig::with_cases(60), |(a in 0..end, length in 0..end, checked: bool)| {
            let frames = a..a + length;
            let check = if checked { ExcerptCheck::Checksums } else { ExcerptCheck::Unchecked };
            let found = read(&image, frames.clone(), check).expect("readable");
            prop_assert_eq!(found, expected(&spec, &frames));
        });
    }
}

/// A disk that reads whole sectors only, and blocks that begin within sectors.
#[test]
fn blocks_that_suit_no_direct_reading_are_copied() {
    let spec = Spec { block: 1000, members: 2, gaps: vec![(3000, 9)], ..Spec::plain() };
    let frames = 100..9_000;
    let found = read(&spec.make(), frames.clone(), ExcerptCheck::Checksums).expect("readable");
    assert_eq!(found, expected(&spec, &frames));
}

#[track_caller]
fn check_bad(spec: &Spec, file: usize, at: usize, frames: Range<u64>, expected: Option<(u64, Range<u64>, u64)>) {
    let mut image = spec.make();
    let path = Files::of(&Spec::base(file)).data;
    let mut data = image.read(&path).expect("data");
    data[at] ^= 4;
    image.put(&path, &data);
    let found = read(&image, frames.clone(), ExcerptCheck::Checksums);
    match (found, expected) {
        (Err(ExcerptError::Block(bad)), Some((block, its_frames, offset))) => {
            assert_eq!((bad.block, bad.frames.clone(), bad.file_offset), (block, its_frames, offset));
            assert_eq!((&bad.path, bad.why), (&path, Unproven::Checksum));
            let told = bad.to_string();
            assert!(told.contains(&format!("block {block} ")) && told.contains("checksum"), "{told}");
        }
        (Ok(_), None) => {}
        (found, expected) => panic!("{expected:?}, but {found:?}"),
    }
    assert!(read(&image, frames, ExcerptCheck::Unchecked).is_ok(), "nothing is compared");
}

#[test]
fn a_bad_block_is_told_with_its_place() {
    // Blocks of 1024 frames, read four at once.
    check_bad(&Spec::plain(), 0, 4096 * 2 + 17, 0..10_000, Some((2, 2048..3072, 8192)));
    check_bad(&Spec::plain(), 0, 4096 * 2 + 17, 3071..3072, Some((2, 2048..3072, 8192)));
    check_bad(&Spec::plain(), 0, 4096 * 2 + 17, 3072..9000, None);
    // In a stripe, the second member holds blocks 1, 4, 7; a gap moves the frames.
    let striped = Spec { members: 3, gaps: vec![(4096, 100)], ..Spec::plain() };
    check_bad(&striped, 1, 4096, 0..10_000, Some((4, 4196..5220, 4096)));
}

#[test]
fn a_file_that_was_cut_meanwhile_is_told() {
    let spec = Spec::plain();
    let mut image = spec.make();
    let disk = disk(&image);
    let recording = Recording::open_in(&mut disk.store(8), &[Spec::base(0)]).expect("a recording");
    let path = Files::of(&Spec::base(0)).data;
    let data = image.read(&path).expect("data");
    image.put(&path, &data[..20_000]);
    let disk = self::disk(&image);
    let part = ExcerptPart { recording: &recording, blocks: recording.blocks() };
    let mut look = || ControlFlow::Continue(());
    let read = Excerpt::read(&mut disk.store(8), &[part], 0..10_000, ExcerptCheck::Checksums, &mut look);
    let Err(ExcerptError::Block(bad)) = read else { panic!("{read:?}") };
    assert_eq!((bad.block, bad.why), (4, Unproven::Short));
}

#[test]
fn reading_can_be_cancelled_and_files_can_be_missing() {
    let image = Spec::plain().make();
    let disk = disk(&image);
    let recording = Recording::open_in(&mut disk.store(8), &[Spec::base(0)]).expect("a recording");
    let part = ExcerptPart { recording: &recording, blocks: recording.blocks() };
    let mut stop = || ControlFlow::Break(());
    let read = Excerpt::read(&mut disk.store(8), &[part], 0..10_000, ExcerptCheck::Checksums, &mut stop);
    assert_eq!(read.expect_err("cancelled"), ExcerptError::Recording(RecordingError::Cancelled));
    let mut look = || ControlFlow::Continue(());
    let empty = ScriptedDisk::new(DiskScript::default());
    let read = Excerpt::read(&mut empty.store(8), &[part], 0..10_000, ExcerptCheck::Checksums, &mut look);
    let Err(ExcerptError::Recording(RecordingError::Store(error))) = read else { panic!("{read:?}") };
    assert_eq!(error.errno, Errno(libc::ENOENT));
}
