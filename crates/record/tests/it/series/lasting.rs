//! A series outlasts failed writes, damage and other users of its folder.

use hairspring_record::series::{Pinned, keep};
use hairspring_store::Errno;
use hairspring_store::scripted::{OpKind, What};

use super::*;

const INDEX: &str = "a/x.hairspring-series";

fn index_on(disk: &ScriptedDisk) -> hairspring_recording::series::index::SeriesIndex {
    index_at(&mut stores(disk), Path::new("a/x")).expect("read").expect("an index")
}

/// One failed append of five made a series unreadable, although the rest of it was in order.
#[test]
fn an_index_that_lacks_a_record_after_a_failed_append_is_written_anew() {
    for kind in [OpKind::Open, OpKind::Write, OpKind::Sync] {
        for nth in 2..12 {
            let faults = vec![Fault::nth(kind, nth, What::Error(Errno(libc::EMFILE))).on(".hairspring-series")];
            let mut case = Case { frames: 60_000, ..Case::default() };
            case.retention = Retention { segments: Some(2), ..Retention::default() };
            case.script.faults = faults;
            let Run { disk, ended, .. } = run(&case, Image::default(), |_, _| {});
            let (outcome, summary) = ended.expect("recorded");
            assert_eq!(outcome.verdict, RecordingVerdict::Complete, "{}", outcome.reason);
            let index = index_on(&disk);
            let listed: Vec<u32> = index.segments.keys().copied().collect();
            assert_eq!((listed, index.damaged, index.next), (vec![3, 4], None, 5), "{kind:?} {nth}: {summary:?}");
            assert_eq!((index.dropped_segments, summary.dropped_segments), (3, 3));
            assert!(index.segments.values().all(|listed| listed.end.is_some() && listed.ended.is_some()), "{index:?}");
            let (_, whole) = verified(&disk, "a/x");
            assert_eq!((&whole.faults[..], whole.mismatch), (&[] as &[String], None), "{kind:?} {nth}");
        }
    }
}

/// An index that can never be written: segments that it does not list as dropped are not deleted.
#[test]
fn nothing_is_deleted_while_the_index_cannot_be_written() {
    let refused = What::Error(Errno(libc::EACCES));
    let when = hairspring_store::scripted::When::From(2);
    let faults = [OpKind::Open, OpKind::Put]
        .map(|kind| Fault { when, ..Fault::nth(kind, 1, refused).on(".hairspring-series") })
        .into_iter();
    let mut case = Case { frames: 60_000, ..Case::default() };
    case.retention = Retention { segments: Some(1), ..Retention::default() };
    case.script.faults = faults.collect();
    let Run { disk, ended, .. } = run(&case, Image::default(), |_, _| {});
    let (outcome, summary) = ended.expect("recorded");
    assert_eq!((outcome.verdict, summary.dropped_segments), (RecordingVerdict::Complete, 0), "{summary:?}");
    assert!(summary.troubles.iter().any(|trouble| trouble.contains("write the index")), "{summary:?}");
    assert_eq!(places(&disk, 0..=9).len(), 5);
    let disk = disk_of(&disk.image_after_kill(0));
    let (_, whole) = verified(&disk, "a/x");
    assert_eq!((&whole.faults[..], whole.mismatch, whole.bytes.0), (&[] as &[String], None, 360_000));
}

#[test]
fn a_flipped_bit_in_the_index_loses_no_segment_and_no_number() {
    let whole = run(&Case::default(), Image::default(), |_, _| {}).disk.image_after_kill(0);
    let records = whole.read(INDEX).expect("an index").len() / 64;
    assert!(records > 12, "{records}");
    for record in 0..records {
        let mut image = whole.clone();
        let mut index = whole.read(INDEX).expect("an index");
        index[record * 64 + 20] ^= 4;
        image.put(INDEX, &index);
        let disk = disk_of(&image);
        let (_, read) = verified(&disk, "a/x");
        assert_eq!((read.bytes.0, read.mismatch, read.missing.0), (240_000, None, 0), "record {record}");
        let is_last = record + 1 == records;
        assert_eq!(read.faults.iter().any(|fault| fault.contains("damaged at record")), !is_last, "{:?}", read.faults);
        let mended = recovered(&image, 240_000).expect("a series");
        assert_eq!(mended.kept, 4, "record {record}");
        let disk = disk_of(&image);
        drop(recover_series(stores(&disk), Path::new("a/x"), RecoverOptions::default(), &mut |_| {}));
        let index = index_on(&disk);
        assert_eq!((index.next, index.damaged, index.id), (4, None, Some(SERIES)), "record {record}");
    }
}

#[test]
fn a_series_without_index_and_collection_is_found_by_its_segments() {
    let image = run(&Case::default(), Image::default(), |_, _| {}).disk.image_after_kill(0);
    let disk = disk_of(&image);
    let mut store = disk.store(8);
    store.remove(Path::new(INDEX)).expect("removed");
    store.remove(&collection_of(Path::new("a/x"))).expect("removed");
    let (recording, read) = verified(&disk, "a/x");
    assert_eq!((read.bytes.0, &read.faults[..], recording.is_series()), (240_000, &[] as &[String], true));
    let mended = recovered(&disk.image_after_kill(0), 240_000).expect("a series");
    assert_eq!(mended.kept, 4);
    // A new one does not begin among them.
    let image = disk.image_after_kill(0);
    assert!(run(&Case::default(), image, |_, _| {}).ended.is_none());
}

#[test]
fn a_number_of_which_there_is_any_file_is_not_used_again() {
    let mut image = run(&Case::default(), Image::default(), |_, _| {}).disk.image_after_kill(0);
    image.put("a/x-000041.sigmf-data", b"mine");
    let disk = disk_of(&image);
    recover_series(stores(&disk), Path::new("a/x"), RecoverOptions::default(), &mut |_| {}).expect("recovered");
    assert_eq!(index_on(&disk).next, 42);
    assert_eq!(disk.image_after_kill(0).read("a/x-000041.sigmf-data").as_deref(), Some(&b"mine"[..]));
}

/// Stores of a disk on which another process pins a segment as soon as the index lists it as being dropped.
fn stores_with_a_late_pin(disk: &ScriptedDisk, number: u32) -> StoreMaker {
    let disk = disk.clone();
    Box::new(move || {
        let index = index_at(&mut stores(&disk), Path::new("a/x")).ok().flatten().unwrap_or_default();
        if index.dropped.contains_key(&number) {
            drop(disk.store(8).put(&pin_of(&segment_base(Path::new("a/x"), number)), b""));
        }
        Box::new(disk.store(64)) as Box<dyn Store>
    })
}

/// A keeper that resumes this series and keeps one segment.
fn keeper(disk: &ScriptedDisk, stores: StoreMaker) -> Keeper {
    let retention = Retention { segments: Some(1), ..Retention::default() };
    Keeper::resume(bases(1), index_on(disk), retention, stores).expect("resumed")
}

#[test]
fn a_pin_that_is_made_behind_the_record_of_the_deletion_is_seen() {
    let disk = run(&Case::default(), Image::default(), |_, _| {}).disk;
    let mut keeper = keeper(&disk, stores_with_a_late_pin(&disk, 0));
    keeper.sweep(&moment());
    assert_eq!(keeper.troubles(), Vec::<String>::new());
    let left: Vec<u32> = places(&disk, 0..=9).iter().map(|place| place.0).collect();
    assert_eq!(left, [0, 3], "the pinned one and the newest");
    let index = index_on(&disk);
    assert_eq!(index.segments.keys().copied().collect::<Vec<_>>(), [0, 3]);
    assert_eq!((index.dropped_segments, index.dropped_bytes), (2, 2 * 3 * BLOCK));
    let (_, whole) = verified(&disk, "a/x");
    assert_eq!((&whole.faults[..], whole.mismatch), (&[] as &[String], None));
}

#[test]
fn a_pin_that_comes_too_late_is_refused_and_one_in_time_holds() {
    let disk = run(&Case::default(), Image::default(), |_, _| {}).disk;
    let [first, second] = [0, 1].map(|number| segment_base(Path::new("a/x"), number));
    let mut store = disk.store(8);
    assert_eq!(keep(&mut store, &second, &mut || unreachable!("nothing to wait for")), Ok(Pinned::Kept));
    // The index lists it as being deleted; the deletion is under way.
    let before = index_on(&disk);
    let mut dropping = before.clone();
    dropping.enter(hairspring_recording::series::index::IndexRecord::Dropped {
        number: 0,
        stored_bytes: 1,
        at: Nanos::ZERO,
    });
    let write = |index: &hairspring_recording::series::index::SeriesIndex| {
        let bytes = hairspring_recording::series::index::SeriesIndex::encoded(&index.shortened());
        disk.store(8).put(Path::new(INDEX), &bytes).expect("written");
    };
    write(&dropping);
    // The deletion is withdrawn, because it saw the pin.
    let mut waits = 0;
    let mut withdraw = || {
        waits += 1;
        write(&before);
        true
    };
    assert_eq!(keep(&mut store, &first, &mut withdraw), Ok(Pinned::Kept));
    assert_eq!(waits, 1);
    store.remove(&pin_of(&first)).expect("released");
    // Otherwise the deletion continues.
    write(&dropping);
    let mut delete = || disk.store(8).remove(&Files::of(&first).meta).is_ok();
    assert_eq!(keep(&mut store, &first, &mut delete), Ok(Pinned::Gone));
    assert!(disk.image_after_kill(0).read(pin_of(&first)).is_none(), "no pin is left behind");
}

/// A crash came between the record of a deletion and its first step, and the segment is pinned.
#[test]
fn a_deletion_that_was_begun_leaves_a_segment_that_was_pinned_in_time() {
    let disk = run(&Case::default(), Image::default(), |_, _| {}).disk;
    let mut index = index_on(&disk);
    let stored_bytes = index.segments[&1].stored_bytes;
    index.enter(hairspring_recording::series::index::IndexRecord::Dropped { number: 1, stored_bytes, at: Nanos::ZERO });
    let mut image = disk.image_after_kill(0);
    image.put(INDEX, &hairspring_recording::series::index::SeriesIndex::encoded(&index.shortened()));
    image.put(pin_of(&segment_base(Path::new("a/x"), 1)), b"");
    let disk = disk_of(&image);
    let found = recover_series(stores(&disk), Path::new("a/x"), RecoverOptions::default(), &mut |_| {});
    let found = found.expect("recovered").expect("a series");
    assert_eq!((found.kept, &found.changed[0][..]), (4, "segment 1 was to be deleted, and is pinned: it stays"));
    assert_eq!((index_on(&disk).dropped_segments, places(&disk, 0..=9).len()), (0, 4));
}

/// Retention deletes while a reader opens the series: segments gone by then are left out, and none is called damaged.
#[test]
fn a_reader_beside_retention_sees_whole_segments_or_none() {
    let disk = run(&Case::default(), Image::default(), |_, _| {}).disk;
    let found = hairspring_recording::series::open::find(&mut disk.store(8), Path::new("a/x")).expect("read");
    let found = found.expect("a series");
    keeper(&disk, stores(&disk)).sweep(&moment());
    let recording = found.open(&mut disk.store(8)).expect("opens");
    assert_eq!((recording.faults(), recording.members().len()), (&[] as &[String], 1));
}

/// Retention deletes segments after `find` has read the index, and before it lists the folder: they are deleted, not
/// missing.
#[test]
fn a_series_is_found_as_its_index_describes_it_after_the_look_into_the_folder() {
    let disk = run(&Case::default(), Image::default(), |_, _| {}).disk;
    let (other, mut swept) = (disk.clone(), false);
    let sweep = move || {
        if !std::mem::replace(&mut swept, true) {
            keeper(&other, stores(&other)).sweep(&moment());
        }
    };
    let mut store = super::costs::Counted::with(Box::new(disk.store(8)), Box::new(sweep));
    let found = hairspring_recording::series::open::find(&mut store, Path::new("a/x")).expect("read");
    let found = found.expect("a series");
    let numbers: Vec<u32> = found.segments.iter().map(|segment| segment.number).collect();
    assert_eq!((numbers, &found.missing[..], found.index.dropped_segments), (vec![3], &[] as &[u32], 3));
}

/// Retention deletes while a reader reads the series: segments gone by then are missing because they were deleted, and
/// nothing is damaged. A segment that another program removes is damage.
#[test]
fn segments_that_retention_deletes_while_they_are_read_are_missing_because_they_were_deleted() {
    for (members, is_retention) in [(1, true), (2, true), (1, false)] {
        let case = Case { members, ..Case::default() };
        let disk = run(&case, Image::default(), |_, _| {}).disk;
        let mut recording = Recording::open_in(&mut disk.store(8), &["a/x".into()]).expect("opens");
        let whole = recording.clone();
        assert!(recording.missing().is_empty());
        if is_retention {
            let retention = Retention { segments: Some(1), ..Retention::default() };
            let keeper = Keeper::resume(bases(members), index_on(&disk), retention, stores(&disk));
            keeper.expect("resumed").sweep(&moment());
        } else {
            disk.store(8).remove(Path::new("a/x-000001.sigmf-data")).expect("removed");
        }
        let options = VerifyOptions { counters: true, sha512: false };
        let verified = verify(&mut disk.store(8), &recording, options, &mut |_| {}).expect("verified");
        recording.leave_out_deleted(&verified.deleted);
        let missing: Vec<_> = recording.missing().iter().copied().collect();
        if !is_retention {
            assert_eq!((verified.damaged, verified.deleted.len()), (3, 0));
            assert_eq!((verified.verdict, missing.len()), (RecordingVerdict::Incomplete, 0));
            continue;
        }
        assert_eq!((verified.damaged, verified.verdict), (0, RecordingVerdict::Complete), "{:?}", verified.faults);
        assert!(verified.ledger_holds && verified.faults.is_empty());
        // The sweep leaves the newest segment.
        let last = places(&disk, 0..=9);
        let [(_, first, end)] = last[..] else { panic!("one segment is left, not {last:?}") };
        let deleted =
            MissingFrames { first: Frames(0), frames: Frames(first), cause: MissingCause::Deleted, bounds: None };
        assert_eq!((missing, recording.end_frame().0), (vec![deleted], end), "{members}");
        assert_eq!(verified.bytes.0, layout().bytes_of(Frames(end - first)).0);
        assert_eq!(whole.deleted_since(&mut disk.store(8), whole.blocks()).expect("read"), verified.deleted);
    }
}

/// A clock that is set to and fro while segments are recorded. By it every segment was too old, or none ever.
#[test]
fn steps_of_the_time_of_day_change_nothing_of_what_is_kept_by_time() {
    fn stepping() -> ClockMoment {
        use std::sync::atomic::{AtomicI64, Ordering};
        static CALLS: AtomicI64 = AtomicI64::new(0);
        // Relaxed: a counter.
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let years = [0, 50, 0, -1, 20][usize::try_from(call).expect("counts up") % 5];
        let realtime = Nanos::from_secs(1_700_000_000 + years * 31_556_952);
        ClockMoment { realtime, boottime: Nanos::from_secs(10 * call), ..moment() }
    }
    let retention = Retention { time: Some(Nanos::from_secs(25)), ..Retention::default() };
    let case = Case { frames: 120_000, retention, clocks: stepping, ..Case::default() };
    let (outcome, summary) = run(&case, Image::default(), |_, _| {}).ended.expect("recorded");
    assert_eq!(outcome.verdict, RecordingVerdict::Complete, "{}", outcome.reason);
    // The clock is read at each of ten ends, and at sweeps between them; two to three segments are at most 25 s old.
    assert!((1..=3).contains(&summary.kept) && summary.dropped_segments >= 7, "{summary:?}");
}

#[test]
fn a_suspend_counts_into_the_length_of_a_segment_that_is_as_long_as_a_time() {
    fn after_a_while() -> Nanos {
        use std::sync::atomic::{AtomicI64, Ordering};
        static ASKED: AtomicI64 = AtomicI64::new(0);
        // Relaxed: a counter. The computer sleeps for an hour once.
        Nanos::from_secs(3600) * i64::from(ASKED.fetch_add(1, Ordering::Relaxed) > 20)
    }
    let case = Case { frames: 60_000, time: Some(Nanos::from_secs(1800)), ..Case::default() };
    let segments = |case: &Case| run(case, Image::default(), |_, _| {}).ended.expect("recorded").1.segments;
    assert_eq!(segments(&case), 1, "60 ms");
    assert_eq!(segments(&Case { suspended: after_a_while, ..case }), 2);
}
