//! The faults that verification finds, and the states that it accepts.

use proptest::prelude::*;

use super::*;
use crate::Files;
use crate::testing::Spec;
use hairspring_ring::layout::{Container, Layout};
use hairspring_store::scripted::{DiskScript, Image, Pace, ScriptedDisk};

const ALL: VerifyOptions = VerifyOptions { counters: true, sha512: true };

fn disk(image: &Image) -> ScriptedDisk {
    ScriptedDisk::with(DiskScript { pace: Pace::Leaping, ..DiskScript::default() }, image.clone())
}

fn verified(image: &Image) -> Result<Verified, RecordingError> {
    let mut store = disk(image).store(8);
    let recording = Recording::open_in(&mut store, &[Spec::base(0)])?;
    verify(&mut store, &recording, ALL, &mut |_| {})
}

#[track_caller]
fn check_sound(spec: &Spec, verdict: RecordingVerdict) {
    let found = verified(&spec.make()).expect("a recording");
    assert_eq!((found.verdict, found.faults.as_slice(), found.damaged), (verdict, &[] as &[String], 0));
    assert_eq!((found.bytes.0, found.mismatch, found.ledger_holds), (spec.stored, None, true));
    assert!(found.pattern.is_some() && found.sha512.iter().all(Option::is_some));
}

#[test]
fn a_sound_recording_keeps_its_verdict() {
    let gaps = vec![(0, 5), (4096, 3), (10_000, 7), (43_008, 1)];
    check_sound(&Spec::plain(), RecordingVerdict::Complete);
    check_sound(&Spec { gaps: gaps.clone(), ..Spec::plain() }, RecordingVerdict::Incomplete);
    check_sound(&Spec { members: 3, ..Spec::plain() }, RecordingVerdict::Complete);
    check_sound(&Spec { members: 3, gaps, ..Spec::plain() }, RecordingVerdict::Incomplete);
    let packed = Layout::stored_as(3, 12, Container::Packed12).expect("exists");
    let spec = Spec { layout: packed, block: 9 * 512, stored: 9 * 5000, gaps: vec![(9 * 700, 4)], ..Spec::plain() };
    check_sound(&spec, RecordingVerdict::Incomplete);
    let lines = Layout::digital(20).expect("exists");
    check_sound(&Spec { layout: lines, block: 3072, stored: 30_000, ..Spec::plain() }, RecordingVerdict::Complete);
}

/// The promise of the whole module: no flipped bit passes unnoticed.
#[test]
fn no_flipped_bit_anywhere_passes() {
    let spec = Spec { gaps: vec![(4096, 3)], stored: 10_000, members: 2, ..Spec::plain() };
    let image = spec.make();
    proptest!(ProptestConfig::with_cases(300), |(file in 0..4_usize, at: prop::sample::Index)| {
        let Files { data, journal, .. } = Files::of(&Spec::base(file / 2));
        let path = if file % 2 == 0 { data } else { journal };
        let mut bytes = image.read(&path).expect("a file");
        let bit = at.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        let mut damaged = image.clone();
        damaged.put(&path, &bytes);
        let found = verified(&damaged).expect("a recording");
        prop_assert!(found.damaged > 0 || !found.faults.is_empty(), "{:?} bit {}", path, bit);
        prop_assert!(found.verdict >= RecordingVerdict::Incomplete);
    });
}

#[test]
fn data_from_another_place_are_seen_by_the_generator() {
    let spec = Spec::plain();
    let shifted = Spec { gaps: vec![(0, 1)], ..spec.clone() };
    // The data of one frame later, with checksums that are right for them.
    let (mut image, other) = (spec.make(), shifted.make());
    let files = Files::of(&Spec::base(0));
    image.put(&files.data, &other.read(&files.data).expect("data"));
    let journal = crate::journal::Journal::read(&image.read(&files.journal).expect("a journal"));
    let theirs = crate::journal::Journal::read(&other.read(&files.journal).expect("a journal"));
    let crcs = theirs.records.iter().filter_map(|record| match record {
        crate::journal::Record::Block { crc, .. } => Some(*crc),
        _ => None,
    });
    let mut crcs = crcs.collect::<Vec<_>>().into_iter();
    let mut records = journal.records;
    for record in &mut records {
        if let crate::journal::Record::Block { crc, .. } = record {
            *crc = crcs.next().expect("as many blocks");
        }
    }
    image.put(&files.journal, &crate::testing::encoded(&records));
    let found = verified(&image).expect("a recording");
    assert_eq!(found.damaged, 0);
    assert_eq!(found.mismatch.map(|mismatch| mismatch.frame), Some(hairspring_ring::Frames(0)));
    assert_eq!(found.verdict, RecordingVerdict::Incomplete);
}

#[test]
fn a_truncated_file_and_bytes_behind_the_end_are_told() {
    let files = Files::of(&Spec::base(0));
    for (length, blocks) in [(43_007, 10), (4096, 1), (0, 0), (50_000, 11)] {
        let mut image = Spec::plain().make();
        let mut data = image.read(&files.data).expect("data");
        data.resize(length, 0);
        image.put(&files.data, &data);
        let found = verified(&image).expect("a recording");
        assert_eq!(
            (found.verdict, found.blocks, found.ledger_holds),
            (RecordingVerdict::Incomplete, blocks, true),
            "{length}"
        );
        assert!(!found.faults.is_empty());
    }
}

#[test]
fn a_missing_member_is_named_with_what_to_do() {
    let spec = Spec { members: 3, ..Spec::plain() };
    let image = spec.make();
    let mut without = Image::default();
    for path in image.paths().filter(|path| !path.starts_with("/d1")) {
        without.put(path, &image.read(path).expect("a file"));
    }
    let refused = verified(&without).expect_err("incomplete").to_string();
    assert_eq!(refused, "member 2 of 3 is missing (it was /d1/x): name it as well, where it is now");
    // It has moved, and the caller names it.
    for path in image.paths().filter(|path| path.starts_with("/d1")) {
        without
            .put(PathBuf::from("/elsewhere").join(path.file_name().expect("a name")), &image.read(path).expect("it"));
    }
    let mut store = disk(&without).store(8);
    let paths = ["/elsewhere/x.sigmf-data".into(), Spec::base(2)];
    let recording = Recording::open_in(&mut store, &paths).expect("found").whole().expect("all");
    assert_eq!(verify(&mut store, &recording, ALL, &mut |_| {}).expect("verified").verdict, RecordingVerdict::Complete);
    let twice = Recording::open_in(&mut store, &["/d0/x".into(), "/d0/x.sigmf-meta".into(), "/d2/x".into()]);
    assert!(twice.is_ok(), "one member by two of its names");
    let nothing = Recording::open_in(&mut store, &["/d0/y".into()]).expect_err("nothing there").to_string();
    assert_eq!(nothing, "no recording /d0/y: there is no /d0/y.sigmf-meta");
}

#[test]
fn a_recording_that_was_cut_off_is_incomplete_and_sent_to_recover() {
    let found = verified(&Spec::killed().make()).expect("a recording");
    assert_eq!((found.verdict, found.damaged, found.ledger_holds), (RecordingVerdict::Incomplete, 0, true));
    assert!(found.faults.iter().any(|fault| fault.contains("recover")), "{:?}", found.faults);
}

use std::path::PathBuf;

/// Metadata of another program, with the digest of its data as `core:sha512`: with it the data can be proven.
#[test]
fn the_digest_that_another_program_states_is_compared() {
    let data: Vec<u8> = (0..40_000_u32).map(|at| (at * 7 % 251) as u8).collect();
    let stated = hex(&Sha512::digest(&data)).to_uppercase();
    let foreign = |data: &[u8], key: &str| {
        let mut image = Image::default();
        let files = Files::of(&Spec::base(0));
        image.put(files.data, data);
        let meta = format!(
            r#"{{"global": {{"core:datatype": "ri16_le", "core:version": "1.0.0", {key}}}, "captures": [], "annotations": []}}"#
        );
        image.put(files.meta, meta.as_bytes());
        verified(&image)
    };
    let key = format!(r#""core:sha512": "{stated}""#);
    let found = foreign(&data, &key).expect("verified");
    assert_eq!(
        (found.verdict, &found.faults[..], found.ledger_holds),
        (RecordingVerdict::Complete, &[] as &[String], true)
    );
    let mut flipped = data.clone();
    flipped[31_000] ^= 4;
    // A byte that belongs to no frame is not read and is a fault of its own, but the digest covers the whole file.
    let longer = [&data[..], &[0]].concat();
    for (other, faults) in [(&flipped[..], 1), (&data[..39_000], 1), (&data[..39_999], 2), (&longer[..], 2)] {
        let found = foreign(other, &key).expect("verified");
        assert_eq!((found.verdict, found.faults.len()), (RecordingVerdict::Incomplete, faults), "{:?}", found.faults);
    }
    assert!(foreign(&data, r#""core:hw": "x""#).is_err(), "nothing to compare it with");
}
