//! The bytes that a recovery may cut off, and the files that keep them.

use std::path::Path;

use super::*;
use hairspring_recording::journal::RecordingId;

/// Expects a refused recovery that changes nothing. Returns the reason.
#[track_caller]
fn refused(image: &Image, options: RecoverOptions) -> String {
    let disk = disk(image, Vec::new());
    let refused = run(&disk, options).expect_err("refused").to_string();
    assert_eq!(disk.image_after_kill(0), *image, "nothing is changed");
    assert!(refused.contains("nothing was changed"), "{refused}");
    refused
}

/// A recording with another first journal; `None` for no journal.
fn with_journal(spec: &Spec, journal: Option<&[u8]>) -> Image {
    let (files, whole, mut image) = (Files::of(&Spec::base(0)), spec.make(), Image::default());
    whole.paths().for_each(|path| image.put(path, &whole.read(path).expect("there")));
    match journal {
        Some(journal) => image.put(&files.journal, journal),
        None => {
            let mut without = Image::default();
            let others = image.paths().filter(|path| *path != files.journal);
            others.for_each(|path| without.put(path, &image.read(path).expect("there")));
            return without;
        }
    }
    image
}

#[test]
fn samples_stay_whose_journal_was_not_copied_or_only_in_part() {
    for members in [1, 2] {
        let spec = Spec { members, ..Spec::plain() };
        let journal = spec.make().read(&Files::of(&Spec::base(0)).journal).expect("a journal");
        let mut foreign = journal.clone();
        let other = hairspring_recording::journal::Record::Start {
            id: RecordingId([1; 16]),
            block_bytes: 4096,
            grain_bytes: 4,
            grain_frames: 1,
            member: 0,
            members: members as u16,
            started: hairspring_machine::Nanos::ZERO,
        };
        foreign[..64].copy_from_slice(&other.encode(0));
        let zeros = vec![0; journal.len()];
        let cases = [None, Some(&b""[..]), Some(&zeros), Some(&foreign), Some(&journal[..64]), Some(&journal[..300])];
        for (number, case) in cases.into_iter().enumerate() {
            let image = with_journal(&spec, case);
            for options in [ALL, RecoverOptions { discard: true, ..ALL }, RecoverOptions { dry_run: true, ..ALL }] {
                let why = refused(&image, options);
                assert!(why.contains("/d0/x.hairspring-journal"), "case {number}: {why}");
            }
            let mut store = disk(&image, Vec::new()).store(8);
            let recording = Recording::open_in(&mut store, &[Spec::base(0)]).expect("opens");
            let verified =
                verify(&mut store, &recording, verify::VerifyOptions::default(), &mut |_| {}).expect("verified");
            assert_ne!(verified.verdict, RecordingVerdict::Complete, "case {number}");
            let told = verified.faults.join("; ");
            assert!(told.contains("hairspring-journal") && !told.contains("mends"), "case {number}: {told}");
        }
    }
    // A recording that was killed has no better evidence than an empty journal, but the bytes cut off are kept.
    let killed = Spec::killed();
    let why = refused(&with_journal(&killed, None), ALL);
    assert!(why.contains("is missing"), "{why}");
    let (recovered, image) = check(&killed, &with_journal(&killed, Some(b"")), ALL);
    assert_eq!((recovered.lost, &recovered.cut_files[..]), (Lost::Unknown, &["/d0/x.cut-1".into()][..]));
    let whole = killed.make().read(&Files::of(&Spec::base(0)).data);
    assert_eq!(image.read("/d0/x.cut-1"), whole);
}

#[test]
fn records_that_a_short_journal_lacks_are_given_up_on_request_and_their_samples_kept() {
    let spec = Spec::plain();
    let files = Files::of(&Spec::base(0));
    let whole = spec.make();
    let journal = whole.read(&files.journal).expect("a journal");
    let image = with_journal(&spec, Some(&journal[..300]));
    let (recovered, after) = check(&spec, &image, RecoverOptions { cut_journal: true, ..ALL });
    let (left, data) = (after.length(&files.data).expect("there") as usize, whole.read(&files.data).expect("there"));
    assert!(left > 0 && left < data.len(), "{recovered:?}");
    assert_eq!(after.read("/d0/x.cut-1").as_deref(), Some(&data[left..]));
}

#[test]
fn a_missing_data_file_is_not_replaced_by_an_empty_one() {
    for spec in [Spec::killed(), Spec::plain()] {
        let (files, whole, mut image) = (Files::of(&Spec::base(0)), spec.make(), Image::default());
        for path in whole.paths().filter(|path| *path != files.data) {
            image.put(path, &whole.read(path).expect("there"));
        }
        assert!(refused(&image, ALL).contains("/d0/x.sigmf-data is missing"));
    }
}

#[test]
fn what_is_cut_off_goes_to_the_first_free_name_unless_it_is_zeros_or_given_up() {
    let files = Files::of(&Spec::base(0));
    let spec = Spec { unwritten: vec![2], ..Spec::killed() };
    let mut image = damaged(&spec, &[10]);
    image.put("/d0/x.cut-1", b"mine");
    let data = image.read(&files.data).expect("data");
    let (recovered, after) = check(&spec, &image, ALL);
    assert_eq!(recovered.cut_files, [Path::new("/d0/x.cut-2")]);
    assert_eq!(after.read("/d0/x.cut-1").as_deref(), Some(&b"mine"[..]));
    let removed = [&data[2 * 4096..3 * 4096], &data[10 * 4096..]].concat();
    assert!(after.read("/d0/x.cut-2") == Some(removed));
    let (recovered, after) = check(&spec, &image, RecoverOptions { discard: true, ..ALL });
    assert_eq!((recovered.cut_files.len(), after.read("/d0/x.cut-2")), (0, None));
    assert!(recovered.changed.iter().any(|change| change.contains("are discarded")), "{:?}", recovered.changed);
    // Only space that was reserved, and a block that was never written.
    let (recovered, after) = check(&spec, &spec.make(), ALL);
    assert_eq!((recovered.cut_files.len(), after.read("/d0/x.cut-1")), (0, None));
}

#[test]
fn a_disk_without_room_for_what_is_cut_off_is_told_of_and_nothing_is_changed() {
    let image = damaged(&Spec::killed(), &[9]);
    let full = Fault::nth(
        hairspring_store::scripted::OpKind::Write,
        1,
        hairspring_store::scripted::What::Error(hairspring_store::Errno(libc::ENOSPC)),
    );
    let disk = disk(&image, vec![full]);
    let why = run(&disk, ALL).expect_err("no room").to_string();
    assert!(why.contains("--discard") && why.contains("/d0/x.cut-1"), "{why}");
    assert_eq!(disk.image_after_kill(0), image);
}

#[test]
fn files_under_other_names_keep_what_they_have_at_every_step() {
    let spec = Spec { unwritten: vec![0, 3], ..Spec::killed() };
    let files = Files::of(&Spec::base(0));
    let linked = |faults| {
        let disk = disk(&spec.make(), faults);
        for file in [&files.data, &files.meta, &files.journal] {
            disk.link(file, &Path::new("/snapshot").join(file.file_name().expect("a name")));
        }
        disk
    };
    let is_kept = |image: &Image| {
        [&files.data, &files.meta, &files.journal].into_iter().all(|file| {
            let snapshot = Path::new("/snapshot").join(file.file_name().expect("a name"));
            image.read(snapshot) == spec.make().read(file)
        })
    };
    let whole = linked(Vec::new());
    run(&whole, ALL).expect("recovered");
    assert!(is_kept(&whole.image_after_power_cut(1)));
    for step in 1..=whole.operations() {
        let interrupted = linked(vec![Fault::crash_at(step)]);
        assert!(run(&interrupted, ALL).is_err(), "step {step}");
        for left in [interrupted.image_after_kill(step), interrupted.image_after_power_cut(step)] {
            assert!(is_kept(&left), "step {step}");
            let again = disk(&left, Vec::new());
            run(&again, ALL).unwrap_or_else(|error| panic!("after step {step}: {error}"));
            check_sound(&spec, &again.image_after_power_cut(step), None);
        }
    }
}
