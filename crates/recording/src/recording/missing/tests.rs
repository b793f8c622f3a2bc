//! Which frames are missing, and why: gaps, skips, holes, and files that end early.

use super::*;
use crate::Files;
use crate::testing::Spec;
use hairspring_store::scripted::{DiskScript, Image, ScriptedDisk};

fn opened(image: &Image) -> Recording {
    let mut store = ScriptedDisk::with(DiskScript::default(), image.clone()).store(8);
    Recording::open_in(&mut store, &[Spec::base(0)]).expect("opens")
}

/// The missing frames: first, number, name of the cause.
fn of(recording: &Recording) -> Vec<(u64, u64, &'static str)> {
    recording.missing().iter().map(|it| (it.first.0, it.frames.0, it.cause.name())).collect()
}

fn cut(image: &mut Image, member: usize, length: usize) {
    let data = Files::of(&Spec::base(member)).data;
    let bytes = image.read(&data).expect("data");
    image.put(data, &bytes[..length]);
}

/// Two channels of 16 bits: a block has 1024 frames.
#[test]
fn every_cause_is_found_once_and_in_order() {
    let spec = Spec { gaps: vec![(8000, 10), (43_008, 3)], unwritten: vec![4], ..Spec::plain() };
    let recording = opened(&spec.make());
    let expected = [(2000, 10, "buffer_full"), (4106, 1024, "damaged"), (10_762, 3, "buffer_full")];
    assert_eq!(of(&recording), expected);
    assert_eq!((recording.first_frame(), recording.end_frame()), (Frames(0), Frames(10_765)));
    let missing = recording.missing();
    assert!(missing.is_end_known() && missing.extent() == (0..10_765));
    let within: Vec<(u64, u64)> = missing.within(2005..4200).map(|it| (it.first.0, it.frames.0)).collect();
    assert_eq!(within, [(2005, 5), (4106, 94)]);
    assert_eq!(missing.within(2010..4106).count(), 0);
    assert_eq!(missing.within(2005..2005).count(), 0, "nothing lacks nothing");
}

#[test]
fn a_copy_that_was_cut_short_lacks_its_end() {
    let spec = Spec { gaps: vec![(8000, 10)], ..Spec::plain() };
    let mut image = spec.make();
    cut(&mut image, 0, 20_000);
    let recording = opened(&image);
    assert_eq!(of(&recording), [(2000, 10, "buffer_full"), (4106, 6656, "damaged")]);
    assert_eq!(recording.end_frame(), Frames(10_762));
}

#[test]
fn a_killed_recording_has_no_known_end() {
    let recording = opened(&Spec { gaps: vec![(8000, 10)], unwritten: vec![5], ..Spec::killed() }.make());
    assert_eq!(of(&recording), [(2000, 10, "buffer_full"), (5130, 1024, "damaged")]);
    assert!(!recording.missing().is_end_known());
}

#[test]
fn a_killed_recording_that_was_cut_short_lacks_what_its_journal_names() {
    let mut image = Spec::killed().make();
    cut(&mut image, 0, 20_000);
    assert_eq!(of(&opened(&image)), [(4096, 6656, "damaged")]);
}

#[test]
fn blocks_of_a_member_that_is_missing_are_missing() {
    let whole = Spec { members: 3, ..Spec::plain() }.make();
    let mut image = Image::default();
    for path in whole.paths().filter(|path| !path.starts_with("/d1")) {
        image.put(path, &whole.read(path).expect("a file"));
    }
    let expected =
        [(1024, 1024, "damaged"), (4096, 1024, "damaged"), (7168, 1024, "damaged"), (10_240, 512, "damaged")];
    assert_eq!(of(&opened(&image)), expected);
}

#[test]
fn a_stretch_of_several_claims_is_divided_and_what_none_claims_is_in_no_file() {
    let gap =
        |first, frames, cause| MissingFrames { first: Frames(first), frames: Frames(frames), cause, bounds: None };
    let (full, late) = (MissingCause::Gap(GapCause::BufferFull), MissingCause::Gap(GapCause::ServedLate));
    let claims =
        [gap(10, 10, full), gap(20, 5, full), gap(23, 7, late), gap(40, 5, MissingCause::LeftOut), gap(90, 50, late)];
    let (mut found, mut next) = (Vec::new(), 0);
    explain(5, 42, &claims, &mut next, MissingCause::Undeclared, &mut found);
    explain(43, 100, &claims, &mut next, MissingCause::Undeclared, &mut found);
    let found: Vec<_> = found.iter().map(|it| (it.first.0, it.frames.0, it.cause.name())).collect();
    let expected = [
        (5, 5, "damaged"),
        (10, 15, "buffer_full"),
        (25, 5, "served_late"),
        (30, 10, "damaged"),
        (40, 2, "left_out"),
        (43, 2, "left_out"),
        (45, 45, "damaged"),
        (90, 10, "served_late"),
    ];
    assert_eq!(found, expected);
}
