//! The blocks that a recovery reads, and its report.

use super::*;
use hairspring_store::Errno;
use hairspring_store::scripted::{OpKind, What, When};

#[track_caller]
fn damaged_blocks(spec: &Spec, blocks: &[u64]) -> u64 {
    run(&disk(&damaged(spec, blocks), Vec::new()), RecoverOptions::default()).expect("recovered").damaged_blocks
}

#[test]
fn a_bad_block_that_no_sync_covers_is_found_without_being_asked_for() {
    let spec = Spec::killed();
    let (recovered, _) = check(&spec, &damaged(&spec, &[10]), RecoverOptions::default());
    assert_eq!(
        (recovered.damaged_blocks, recovered.proven),
        (1, Bytes(0)),
        "the last block is the only one of its kind"
    );
}

/// A disk that lost its newest confirmed data may have lost any of them.
#[test]
fn every_block_is_read_once_one_of_the_newest_that_a_sync_covers_is_bad() {
    let spec = Spec::killed();
    assert_eq!(damaged_blocks(&spec, &[9, 1]), 2);
    assert_eq!(damaged_blocks(&spec, &[8, 1]), 2);
    assert_eq!(damaged_blocks(&spec, &[7, 1]), 0, "what a sync covers is believed, but for the newest two");
    let striped = Spec { members: 2, ..spec };
    for newest in [10, 8, 7, 5] {
        assert_eq!(damaged_blocks(&striped, &[newest, 0]), 2, "the newest two of each member: {newest}");
    }
}

#[test]
fn progress_ends_at_the_bytes_that_it_announces() {
    let spec = Spec::plain();
    let (mut said, disk) = (Vec::new(), disk(&spec.make(), Vec::new()));
    recover(&mut disk.store(8), &[Spec::base(0)], ALL, &mut |read| said.push(read)).expect("recovered");
    let expected: Vec<u64> = (1..=10).map(|block| block * 4096).chain([spec.stored]).collect();
    assert_eq!(said.iter().map(|read| read.done.0).collect::<Vec<_>>(), expected);
    assert!(said.iter().all(|read| read.total.0 == spec.stored), "{said:?}");
}

#[test]
fn a_block_that_cannot_be_read_is_named_with_its_member() {
    let spec = Spec { members: 2, ..Spec::killed() };
    let what = What::Error(Errno(libc::EIO));
    let broken =
        Fault { kind: Some(OpKind::Read), file: Some("/d1/x.sigmf-data".to_owned()), when: When::From(1), what };
    let refused = run(&disk(&spec.make(), vec![broken]), ALL).expect_err("unreadable").to_string();
    assert!(refused.contains("block 1 of member 2 cannot be read"), "{refused}");
}

/// A file that cannot be opened now may hold everything.
#[test]
fn a_data_file_that_cannot_be_opened_is_never_replaced() {
    let (spec, files) = (Spec { unwritten: vec![2], ..Spec::killed() }, Files::of(&Spec::base(0)));
    let (image, mut refusals) = (spec.make(), 0);
    for nth in 1.. {
        let refused = Fault::nth(OpKind::Open, nth, What::Error(Errno(libc::EACCES))).on("/d0/x.sigmf-data");
        let disk = disk(&image, vec![refused]);
        if run(&disk, ALL).is_ok() {
            break;
        }
        refusals += 1;
        assert_eq!(disk.image_after_kill(0).read(&files.data), image.read(&files.data), "refused at opening {nth}");
    }
    assert_eq!(
        refusals, 6,
        "it is opened for its size, again when it is owned, to be read, to be restored, for what is cut off, and to be mended"
    );
}

#[test]
fn every_change_is_told_with_its_size() {
    let spec = Spec { unwritten: vec![8], members: 2, ..Spec::killed() };
    let changes = |spec: &Spec, blocks: &[u64]| -> Vec<String> {
        let options = RecoverOptions { dry_run: true, ..ALL };
        run(&disk(&damaged(spec, blocks), Vec::new()), options).expect("planned").changed
    };
    let changed = changes(&spec, &[3]);
    let expected = [
        "the recording was cut off: it gets an end",
        "1 blocks are damaged: they are left out",
        "8 KiB are missing: a gap declares them",
        "/d0/x.sigmf-data: a hole before block 10",
        "/d0/x.sigmf-data: 16 KiB after the last block are cut off",
        "/d1/x.sigmf-data: 16 KiB after the last block are cut off",
        "/d1/x.sigmf-data: 20 KiB that nothing proves (bytes 4096 to 8191, 20480 to 36863) are kept in /d1/x.cut-1",
    ];
    assert_eq!(changed, expected);
    let exact = Spec { reserved: 0, unwritten: vec![], members: 1, ..spec };
    assert_eq!(changes(&exact, &[]), expected[..1], "nothing lies after the last block");
}

#[track_caller]
fn reason(image: &Image) -> String {
    let mut store = disk(image, Vec::new()).store(8);
    let recording = Recording::open_in(&mut store, &[Spec::base(0)]).expect("opens");
    recording.closing().expect("an end").reason.clone()
}

#[test]
fn the_reason_that_the_recorder_gave_stays_as_long_as_nothing_more_is_lost() {
    let spec = Spec { gaps: vec![(5000, 3)], ..Spec::plain() };
    let (_, after) = check(&spec, &misdescribed(&spec, "\"block_bytes\": 4096", "\"block_bytes\": 5096"), ALL);
    assert_eq!(reason(&after), "made");
    // The verdict is incomplete before and after, and yet more is missing.
    let (_, after) = check(&spec, &damaged(&spec, &[4]), ALL);
    assert_eq!(reason(&after), format!("recovered; {} are missing in 2 gaps", Bytes(4096 + 12)));
    let killed = Spec::killed();
    let (_, after) = check(&killed, &killed.make(), ALL);
    assert_eq!(reason(&after), "recovered; 0 B are missing in 0 gaps");
}

#[test]
fn adjacent_blocks_are_offered_as_one_piece() {
    let stretches = |spec: &Spec| -> Vec<(u64, u64)> {
        let mut store = disk(&spec.make(), Vec::new()).store(8);
        let recording = Recording::open_in(&mut store, &[Spec::base(0)]).expect("opens");
        let proven = prove(&mut store, &recording, true, &mut |_| ControlFlow::Continue(())).expect("proven");
        proven.stretches(&recording).iter().map(|stretch| (stretch.file_offset, stretch.length.0)).collect()
    };
    let spec = Spec::plain();
    assert_eq!(stretches(&spec), [(0, spec.stored)]);
    let split = Spec { gaps: vec![(9000, 3)], ..Spec::plain() };
    assert_eq!(stretches(&split), [(0, 9000), (9000, spec.stored - 9000)]);
}
