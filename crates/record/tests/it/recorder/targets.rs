//! Targets that fail or are slow, step by step: the targets of the blocks, the report, and the journals.

use hairspring_recording::journal::FailedOperation;
use hairspring_recording::ledger::RecordingVerdict;

use super::*;

fn two() -> Setup {
    Setup { targets: vec!["a/x".into(), "b/x".into()], ..setup() }
}

fn records(disk: &ScriptedDisk, base: &str) -> Vec<Record> {
    let journal = disk.image_after_kill(0).read(format!("{base}.hairspring-journal")).expect("a journal");
    Journal::read(&journal).records
}

/// The blocks that a journal names.
fn blocks(disk: &ScriptedDisk, base: &str) -> Vec<u64> {
    let of = |record: &Record| if let Record::Block { index, .. } = record { Some(*index) } else { None };
    records(disk, base).iter().filter_map(of).collect()
}

fn fault(kind: OpKind, file: &str, when: When, what: What) -> Fault {
    Fault { kind: Some(kind), file: Some(file.to_owned()), when, what }
}

#[test]
fn a_block_goes_to_the_target_with_the_least_under_way_or_to_each_in_turn() {
    for (placement, expected) in
        [(BlockPlacement::LeastLoaded, [vec![0, 2], vec![1, 3]]), (BlockPlacement::Static, [vec![0, 2], vec![1, 3]])]
    {
        let mut rig = Rig::new(at_once(), Setup { write: WriteSettings { placement, ..write() }, ..two() });
        rig.put(4 * BLOCK);
        let (_, disk) = rig.end(End::Finished);
        assert_eq!(["a/x", "b/x"].map(|base| blocks(&disk, base)), expected, "{}", placement.name());
    }
    // The second block, on the other target, takes long.
    let stall = fault(OpKind::Write, "b/x.sigmf-data", When::Nth(1), What::Stall(Nanos::from_millis(50)));
    for (placement, expected) in
        [(BlockPlacement::LeastLoaded, [vec![0, 2], vec![1]]), (BlockPlacement::Static, [vec![0, 2], vec![1]])]
    {
        let mut rig = Rig::new(
            DiskScript { faults: vec![stall.clone()], ..at_once() },
            Setup { write: WriteSettings { placement, ..write() }, ..two() },
        );
        for _ in 0..3 {
            rig.put(BLOCK);
            rig.settle();
        }
        let (_, disk) = rig.end(End::Finished);
        assert_eq!(["a/x", "b/x"].map(|base| blocks(&disk, base)), expected, "{}", placement.name());
    }
    assert_eq!(
        [BlockPlacement::LeastLoaded, BlockPlacement::Static].map(BlockPlacement::name),
        ["least-loaded", "static"]
    );
}

#[test]
fn a_block_that_a_target_gave_up_is_written_to_another_from_its_beginning_with_all_its_attempts() {
    let eio = What::Error(Errno(libc::EIO));
    let short = |when, length| fault(OpKind::Write, "a/x.sigmf-data", when, What::Short(length));
    let again = |file, when| fault(OpKind::Write, file, when, What::Error(Errno(libc::EINTR)));
    let cases = [
        (
            "half of it was written",
            vec![short(When::Nth(1), 2048), fault(OpKind::Write, "a/x.sigmf-data", When::From(2), eio)],
        ),
        (
            "it never got a sector further",
            vec![short(When::From(1), 100), fault(OpKind::Write, "b/x.sigmf-data", When::Nth(1), What::Short(100))],
        ),
        (
            "it was interrupted for ever",
            vec![again("a/x.sigmf-data", When::From(1)), again("b/x.sigmf-data", When::Nth(1))],
        ),
    ];
    for (what, faults) in cases {
        let mut rig = Rig::new(DiskScript { faults, ..at_once() }, two());
        rig.put(BLOCK);
        for _ in 0..1100 {
            rig.step();
        }
        rig.put(BLOCK);
        let (outcome, disk) = rig.end(End::Finished);
        assert_eq!(
            (outcome.verdict, outcome.ledger.stored_bytes),
            (RecordingVerdict::Complete, 2 * BLOCK),
            "{what}: {}",
            outcome.reason
        );
        assert_eq!(blocks(&disk, "b/x"), [0, 1], "{what}");
        oracle::check(&disk.image_after_kill(0), &["a/x", "b/x"], bytes(), PATTERN, true);
        // Every journal that still works contains the error.
        let failed = records(&disk, "b/x").into_iter().find_map(|record| match record {
            Record::Error { operation, block, .. } => Some((operation, block)),
            _ => None,
        });
        assert_eq!(failed, Some((FailedOperation::Write, 0)), "{what}");
    }
}

#[test]
fn writes_are_repeated_from_where_they_stopped_in_data_and_journal() {
    let faults = vec![
        fault(OpKind::Write, ".sigmf-data", When::Nth(1), What::Short(1024)),
        fault(OpKind::Write, ".sigmf-data", When::Nth(2), What::Short(700)),
        fault(OpKind::Write, ".sigmf-data", When::Nth(3), What::Error(Errno(libc::EAGAIN))),
        fault(OpKind::Write, "journal", When::Nth(2), What::Short(100)),
        fault(OpKind::Write, "journal", When::Nth(3), What::Short(1)),
        fault(OpKind::Write, "journal", When::Nth(4), What::Error(Errno(libc::EINTR))),
    ];
    let mut rig = Rig::new(DiskScript { faults, ..at_once() }, setup());
    rig.put(BLOCK);
    rig.lose(5, GapCause::Source);
    rig.put(3 * BLOCK);
    let (outcome, disk) = rig.end(End::Finished);
    assert_eq!((outcome.ledger.stored_bytes, outcome.ledger.lost_bytes), (4 * BLOCK, 5), "{}", outcome.reason);
    assert_eq!(blocks(&disk, "a/x").len(), 4);
    let image = disk.image_after_kill(0);
    let contents = oracle::check(&image, &["a/x"], bytes(), PATTERN, true);
    assert!(matches!(contents.end, Some(Record::End { .. })), "{contents:?}");
    assert_eq!(contents.durable, 4 * BLOCK);
}

#[test]
fn a_write_that_moves_nothing_has_failed() {
    for file in [".sigmf-data", "journal"] {
        let nothing = fault(OpKind::Write, file, When::Nth(2), What::Short(0));
        let mut rig = Rig::new(DiskScript { faults: vec![nothing], ..at_once() }, setup());
        rig.put(BLOCK);
        rig.settle();
        rig.put(BLOCK);
        let (outcome, _) = rig.end(End::Finished);
        assert!(
            outcome.verdict == RecordingVerdict::Incomplete && outcome.reason.contains("Input/output"),
            "{file}: {}",
            outcome.reason
        );
    }
}

#[test]
fn when_the_last_target_fails_the_rest_is_one_gap_and_each_kind_of_error_is_told_once() {
    let faults = vec![fault(OpKind::Write, ".sigmf-data", When::From(3), What::Error(Errno(libc::EIO)))];
    let script = DiskScript { faults, least_latency: MILLISECOND, most_latency: MILLISECOND, ..at_once() };
    let mut rig = Rig::new(script, setup());
    rig.now = rig.disk.now();
    rig.put(6 * BLOCK + 100);
    while rig.step() != Step::StopSource {
        rig.pass(MILLISECOND);
    }
    rig.put(100);
    let (outcome, disk) = rig.end(End::Stopped);
    assert_eq!((outcome.ledger.stored_bytes, outcome.ledger.lost_bytes), (2 * BLOCK, 4 * BLOCK + 200));
    let gaps: Vec<_> = outcome.gaps.iter().map(|gap| (gap.first.0, gap.frames.0, gap.cause)).collect();
    assert_eq!(gaps, [(2 * BLOCK, 4 * BLOCK + 200, GapCause::WriteFailed)]);
    assert_eq!(outcome.reason.matches("writing data to a/x failed").count(), 1, "{}", outcome.reason);
    assert_eq!(
        oracle::true_metadata(&disk.image_after_kill(0), &["a/x"], PATTERN, false),
        [Some(RecordingVerdict::Incomplete)]
    );
}

/// The end of the journal states the verdict of the metadata, whichever of the last syncs fails, and in any order of
/// their completions.
#[test]
fn the_last_syncs_are_complete_before_the_verdict_is_settled() {
    for seed in 0..16 {
        for file in [".sigmf-data", "journal"] {
            let fault = fault(OpKind::Sync, file, When::Nth(2), What::Error(Errno(libc::EIO)));
            let script = DiskScript { seed, faults: vec![fault], most_latency: MILLISECOND, ..at_once() };
            let mut rig = Rig::new(script, setup());
            rig.now = rig.disk.now();
            rig.put(3 * BLOCK);
            let (outcome, disk) = rig.end(End::Finished);
            let ends = records(&disk, "a/x").into_iter().filter_map(|record| match record {
                Record::End { verdict, .. } => Some(verdict),
                _ => None,
            });
            assert_eq!(outcome.verdict, RecordingVerdict::Incomplete, "{seed}: {}", outcome.reason);
            assert_eq!(ends.collect::<Vec<_>>(), [outcome.verdict], "{seed}: the second sync of {file} fails");
        }
    }
}

#[test]
fn nothing_follows_the_end_of_a_journal_and_it_has_room_for_that_from_the_cut_on() {
    let mut rig = Rig::new(DiskScript { least_latency: MILLISECOND, most_latency: MILLISECOND, ..at_once() }, setup());
    rig.now = rig.disk.now();
    rig.put(3 * BLOCK);
    rig.producer.close(End::Finished);
    let mut lengths = Vec::new();
    while rig.step() != Step::Done {
        rig.pass(MILLISECOND);
        lengths.extend(length(&rig.disk, "a/x.hairspring-journal"));
    }
    let beginning = Beginning { realtime: Nanos::ZERO, monotonic: rig.now, within: Nanos::ZERO };
    rig.recorder.begins(beginning);
    assert_eq!(rig.recorder.beginning(), Some(beginning));
    rig.settle();
    rig.pass(MILLISECOND);
    lengths.extend(length(&rig.disk, "a/x.hairspring-journal"));
    lengths.dedup();
    let all = records(&rig.disk, "a/x");
    assert_eq!(
        lengths.iter().filter(|length| **length < JOURNAL_SPARE).collect::<Vec<_>>(),
        [&(all.len() as u64 * 64)]
    );
    assert!(matches!(all.last(), Some(Record::End { .. })), "{:?}", all.last());
}

#[test]
fn while_the_journal_cannot_be_written_gaps_stay_in_the_ring() {
    let stall = fault(OpKind::Write, "journal", When::Nth(2), What::Stall(Nanos::from_secs(30)));
    let mut rig = Rig::new(DiskScript { faults: vec![stall], ..at_once() }, setup());
    let mut declared = 0;
    while declared < 10_000 && rig.producer.room() > 0 {
        rig.put(1);
        rig.lose(1, GapCause::Source);
        declared += 1;
        rig.step();
    }
    // Some are in the journal's two halves, some in the ring; no list grows without bound.
    assert!((1024..4096).contains(&declared), "{declared} gaps");
    rig.pass(Nanos::from_secs(31));
    let (outcome, disk) = rig.end(End::Finished);
    assert_eq!((outcome.gaps.len() as u64, outcome.ledger.lost_bytes), (declared, declared));
    oracle::check(&disk.image_after_kill(0), &["a/x"], bytes(), PATTERN, true);
}

#[test]
fn blocks_are_copied_while_others_are_written_and_all_that_there_is_in_one_step() {
    let script = DiskScript { least_latency: MILLISECOND, most_latency: MILLISECOND, ..at_once() };
    let mut rig = Rig::with(script, RING, OnOverrun::Overwrite, writing(WriteSettings { depth: 3, ..write() }))
        .expect("a recorder");
    rig.put(5 * BLOCK);
    rig.step();
    let ledger = rig.ledger();
    assert_eq!((ledger.in_flight_bytes, ledger.in_ring_bytes), (3 * BLOCK, 2 * BLOCK));
    assert_eq!(rig.recorder.fill().now, Bytes(BLOCK), "one more is copied than may be written at once");
}
