//! Series that lost the index, or the journal of a segment, in a crash.

use hairspring_recording::journal::RECORD_BYTES;

use super::*;

/// A power cut may leave any beginning of a journal. However short it is, frames are counted on after it.
#[test]
fn a_series_goes_on_behind_a_segment_of_whose_journal_only_a_beginning_is_left() {
    let Files { meta, journal, .. } = Files::of(&segment_base(Path::new("a/x"), 3));
    let mut before = None;
    let Run { disk, .. } = run(&Case::default(), Image::default(), |disk, number| {
        if number == 3 && before.is_none() {
            before = disk.image_after_kill(0).read(&meta);
        }
    });
    let mut whole = disk.image_after_kill(0);
    let begins = places(&disk, 3..=3)[0].1;
    let bytes = whole.read(&journal).expect("a journal");
    // The metadata of a recording that has not ended: later ones would prove that the journal had an end.
    whole.put(&meta, &before.expect("it was recorded"));
    for records in 0..bytes.len() / RECORD_BYTES {
        let mut image = whole.clone();
        image.put(&journal, &bytes[..records * RECORD_BYTES]);
        recovered(&image, 0);
        let disk = disk_of(&image);
        recover_series(stores(&disk), Path::new("a/x"), RecoverOptions::default(), &mut |_| {}).expect("recovered");
        let last = places(&disk, 0..=3).pop().expect("segments");
        let (_, first, end) = last;
        assert!(first <= end && end >= begins, "{records} records are left, and the last segment is {last:?}");
    }
}

#[test]
fn an_index_that_is_lost_or_damaged_is_written_anew() {
    let Run { disk, .. } = run(&Case::default(), Image::default(), |_, _| {});
    let whole = disk.image_after_kill(0);
    for damage in 0..3 {
        let mut image = Image::default();
        for path in whole.paths() {
            let is_index = path == index_of(Path::new("a/x"));
            let is_collection = path == collection_of(Path::new("a/x"));
            let bytes = whole.read(path).expect("a file");
            match damage {
                0 if is_index => image.put(path, &bytes[..130]),
                1 if is_collection => {}
                2 if is_index => image.put(path, b"junk"),
                _ => image.put(path, &bytes),
            }
        }
        if damage == 2 {
            // The scripted disk cannot list directories.
            continue;
        }
        let found = recovered(&image, 240_000).expect("a series");
        assert!(!found.changed.is_empty() && found.kept == 4, "{damage}: {found:?}");
    }
}
