//! Other processes change the files of a series while it is recorded, or before it is resumed.

use hairspring_recording::series::index::SeriesIndex;

use super::*;

/// Runs a case and removes all files of segment 1 while segment 3 is recorded.
fn run_without_segment_1(retention: Retention) -> Run {
    let removed = std::cell::Cell::new(false);
    let files = Files::of(&segment_base(Path::new("a/x"), 1));
    let case = Case { frames: 60_000, retention, ..Case::default() };
    run(&case, Image::default(), |disk, number| {
        if number == 3 && !removed.replace(true) {
            let mut store = disk.store(8);
            for file in [&files.data, &files.meta, &files.journal] {
                store.remove(file).expect("it is there");
            }
        }
    })
}

#[test]
fn a_segment_that_somebody_removes_while_the_series_is_recorded_is_missed_by_verify_only() {
    let Run { disk, ended, .. } = run_without_segment_1(Retention::default());
    let (outcome, summary) = ended.expect("recorded");
    assert_eq!((outcome.verdict, &summary.troubles[..]), (RecordingVerdict::Complete, &[] as &[String]));
    let (_, whole) = verified(&disk, "a/x");
    assert!(whole.faults.iter().any(|fault| fault.contains("000001")), "{:?}", whole.faults);
    let found = recover_series(stores(&disk), Path::new("a/x"), RecoverOptions::default(), &mut |_| {});
    let found = found.expect("recovered").expect("a series");
    assert_eq!(found.changed[0], "segment 1 is missing: the index forgets it");
    assert_eq!(places(&disk, 0..=9).len(), found.kept, "all others are there");
}

#[test]
fn retention_goes_on_where_somebody_has_removed_what_was_due() {
    let Run { disk, ended, .. } = run_without_segment_1(Retention { segments: Some(2), ..Retention::default() });
    let (outcome, summary) = ended.expect("recorded");
    assert_eq!((outcome.verdict, summary.kept), (RecordingVerdict::Complete, 2), "{summary:?}");
    assert!(outcome.ledger.holds(), "{:?}", outcome.ledger);
    let (_, whole) = verified(&disk, "a/x");
    assert_eq!((&whole.faults[..], whole.mismatch), (&[] as &[String], None));
}

#[test]
fn a_segment_that_is_altered_while_the_series_is_recorded_is_found() {
    let altered = std::cell::Cell::new(false);
    let Run { disk, ended, .. } = run(&Case::default(), Image::default(), |disk, number| {
        if number == 2 && !altered.replace(true) {
            let data = Files::of(&segment_base(Path::new("a/x"), 0)).data;
            let mut bytes = disk.image_after_kill(0).read(&data).expect("there");
            bytes[BLOCK as usize + 7] ^= 1;
            disk.store(8).put(&data, &bytes).expect("altered");
        }
    });
    assert_eq!(ended.expect("recorded").0.verdict, RecordingVerdict::Complete);
    let (_, whole) = verified(&disk, "a/x");
    assert_eq!((whole.damaged, whole.damages[0].block.index), (1, 1), "{:?}", whole.damages);
}

#[test]
fn a_series_among_whose_segments_is_anothers_is_not_put_in_order_and_nothing_is_changed() {
    let Run { disk, .. } = run(&Case::default(), Image::default(), |_, _| {});
    let mut image = disk.image_after_kill(0);
    let meta = Files::of(&segment_base(Path::new("a/x"), 2)).meta;
    let text = String::from_utf8(image.read(&meta).expect("there")).expect("text");
    let other = text.replace(&SERIES.to_string(), &RecordingId([9; 16]).to_string());
    assert_ne!(text, other);
    image.put(&meta, other.as_bytes());
    let disk = disk_of(&image);
    let options = RecoverOptions::default();
    let refused = recover_series(stores(&disk), Path::new("a/x"), options, &mut |_| {}).expect_err("another's");
    assert!(matches!(refused, RecordingError::AnotherSeries(..)), "{refused}");
    let left = disk.image_after_kill(0);
    assert!(
        image.paths().all(|path| image.read(path) == left.read(path)) && left.paths().count() == image.paths().count()
    );
}

#[test]
fn an_index_of_another_series_is_named_and_without_it_the_series_is_put_in_order() {
    let Run { disk, .. } = run(&Case::default(), Image::default(), |_, _| {});
    let base = Path::new("a/x");
    let mut image = disk.image_after_kill(0);
    let (index, theirs) = (index_of(base), RecordingId([9; 16]));
    let mut other = SeriesIndex::read(&image.read(&index).expect("there"));
    other.id = Some(theirs);
    image.put(&index, &SeriesIndex::encoded(&other.shortened()));
    let disk = disk_of(&image);
    let recovered = || recover_series(stores(&disk), base, RecoverOptions::default(), &mut |_| {});
    let refused = recovered().expect_err("another's").to_string();
    assert!(refused.contains("a/x-000000 belongs to another series than the index a/x.hairspring-series"), "{refused}");
    disk.store(8).remove(&index).expect("there");
    assert!(recovered().expect("its segments suffice").is_some());
}

#[test]
fn another_recordings_files_are_not_deleted_though_they_have_the_segments_name() {
    let retention = Retention { segments: Some(1), ..Retention::default() };
    let case = Case { frames: 60_000, retention, ..Case::default() };
    let swapped = std::cell::Cell::new(false);
    // While segment 2 is recorded, another process puts another recording in the place of segment 1.
    let Run { disk, ended, .. } = run(&case, Image::default(), |disk, number| {
        if number == 2 && !swapped.get() {
            let mut store = disk.store(8);
            let journal = Path::new("a/x-000001.hairspring-journal");
            let other = hairspring_recording::journal::Record::Start {
                id: RecordingId([77; 16]),
                block_bytes: 4096,
                grain_bytes: 2,
                grain_frames: 1,
                member: 0,
                members: 1,
                started: Nanos::ZERO,
            };
            swapped.set(store.put(journal, &other.encode(0)).is_ok());
        }
    });
    let (outcome, summary) = ended.expect("recorded");
    // Its recorder checks the files at the end, and finds that the journal belongs to another recording.
    assert!(swapped.get() && outcome.verdict == RecordingVerdict::Incomplete, "{}", outcome.reason);
    assert!(outcome.reason.contains("x-000001.hairspring-journal was replaced by another file"), "{}", outcome.reason);
    assert!(summary.troubles.iter().any(|trouble| trouble.contains("x-000001 belongs to another")), "{summary:?}");
    assert!(disk.image_after_kill(0).read("a/x-000001.sigmf-data").is_some(), "it is as it was");
}
