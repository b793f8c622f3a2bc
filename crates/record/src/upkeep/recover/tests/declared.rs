//! The gaps, failures and places that the journals state stay stated after a recovery.

use super::*;
use crate::recover::mend::records;
use hairspring_machine::{Instant, Nanos};
use hairspring_recording::journal::{FailedOperation, InSeries, Record, RecordingId};
use hairspring_recording::sigmf::{About, SegmentOf};
use hairspring_recording::testing::encoded;

/// The recording with these records after the start of a member's journal.
fn with_records(spec: &Spec, member: usize, added: &[Record]) -> Image {
    let mut image = spec.make();
    let journal = Files::of(&Spec::base(member)).journal;
    let mut records = Journal::read(&image.read(&journal).expect("a journal")).records;
    records.splice(1..1, added.iter().copied());
    image.put(&journal, &encoded(&records));
    image
}

fn at(second: i64) -> Instant {
    Instant::BOOT + Nanos::from_secs(second)
}

/// A gap of frames that could not be written, where they would lie in the stored stream.
fn unwritten(first: u64, end: u64, found: Instant) -> (u64, Gap) {
    let (first, frames) = (Frames(first), Frames(end - first));
    (first.0 * 4, Gap { first, frames, cause: GapCause::WriteFailed, found })
}

/// Recovers a killed recording whose journal states these gaps, and compares all gaps with the expected ones.
#[track_caller]
fn check_gaps(unwritten_blocks: &[u64], stated: &[(u64, Gap)], expected: &[(u64, u64, GapCause)]) -> Recovered {
    let spec = Spec { unwritten: unwritten_blocks.to_vec(), ..Spec::killed() };
    let added: Vec<Record> =
        stated.iter().map(|(position, gap)| Record::Gap { position: *position, gap: *gap }).collect();
    let (recovered, _) = check(&spec, &with_records(&spec, 0, &added), ALL);
    let gaps: Vec<_> = recovered.gaps.iter().map(|gap| (gap.first.0, gap.end().0, gap.cause)).collect();
    assert_eq!(gaps, expected);
    recovered
}

/// A block is 1024 frames.
#[test]
fn a_write_that_failed_stays_the_cause_of_what_it_took() {
    use GapCause::{Damaged, WriteFailed};
    // The whole hole, its middle, its begin, its end.
    let recovered = check_gaps(&[3], &[unwritten(3072, 4096, at(7))], &[(3072, 4096, WriteFailed)]);
    assert_eq!(recovered.gaps[0].found, at(7));
    let around = [(2048, 3072, Damaged), (3072, 4096, WriteFailed), (4096, 5120, Damaged)];
    let recovered = check_gaps(&[2, 3, 4], &[unwritten(3072, 4096, at(7))], &around);
    assert_eq!(recovered.gaps[1].found, at(7));
    let begin = [(2048, 3072, WriteFailed), (3072, 4096, Damaged)];
    check_gaps(&[2, 3], &[unwritten(2048, 3072, at(7))], &begin);
    let end = [(2048, 3072, Damaged), (3072, 4096, WriteFailed)];
    check_gaps(&[2, 3], &[unwritten(3072, 4096, at(7))], &end);
    // Two that follow each other, stated in either order.
    let (one, two) = (unwritten(2048, 3072, at(7)), unwritten(3072, 4096, at(8)));
    for stated in [[one, two], [two, one]] {
        let both = check_gaps(&[2, 3], &stated, &[(2048, 3072, WriteFailed), (3072, 4096, WriteFailed)]);
        assert_eq!((both.gaps[0].found, both.gaps[1].found), (at(7), at(8)));
    }
}

#[test]
fn of_a_failed_write_only_what_is_missing_is_a_gap() {
    use GapCause::WriteFailed;
    // The journal gave up three blocks, but two of them exist.
    check_gaps(&[3], &[unwritten(2048, 5120, at(7))], &[(3072, 4096, WriteFailed)]);
    check_gaps(&[3], &[unwritten(2048, 4096, at(7))], &[(3072, 4096, WriteFailed)]);
    check_gaps(&[3], &[unwritten(3072, 5120, at(7))], &[(3072, 4096, WriteFailed)]);
    // Elsewhere nothing is missing.
    check_gaps(&[], &[unwritten(3072, 4096, at(7))], &[]);
}

#[test]
fn a_gap_that_an_earlier_recovery_found_stays_as_it_was() {
    let spec = Spec { unwritten: vec![3], ..Spec::killed() };
    let whole = damaged(&spec, &[10]);
    let (first, mut image) = check(&spec, &whole, ALL);
    assert_eq!(first.gaps.len(), 2, "{:?}", first.gaps);
    // Another block of the mended recording goes bad. The newest block, from which the first gap has its time, is gone
    // by then.
    let data = Files::of(&Spec::base(0)).data;
    let mut bytes = image.read(&data).expect("data");
    bytes[17] ^= 4;
    image.put(&data, &bytes);
    let (second, _) = check(&spec, &image, ALL);
    assert_eq!((second.gaps[0].first, &second.gaps[1..]), (Frames(0), &first.gaps[..]));
    assert_ne!(second.gaps[0].found, first.gaps[0].found);
}

#[test]
fn each_journal_keeps_the_failures_of_its_own_files() {
    for members in [1, 2, 3] {
        let spec = Spec { members, unwritten: vec![3], ..Spec::killed() };
        let mut image = spec.make();
        for member in 0..members {
            let failed =
                Record::Error { operation: FailedOperation::Write, errno: 5 + member as i32, block: 3, at: at(1) };
            let journal = Files::of(&Spec::base(member)).journal;
            image.put(&journal, &with_records(&spec, member, &[failed]).read(&journal).expect("a journal"));
        }
        let (_, after) = check(&spec, &image, ALL);
        for member in 0..members {
            let journal = after.read(Files::of(&Spec::base(member)).journal).expect("a journal");
            let errors: Vec<i32> = Journal::read(&journal)
                .records
                .iter()
                .filter_map(|record| match record {
                    Record::Error { errno, .. } => Some(*errno),
                    _ => None,
                })
                .collect();
            assert_eq!(errors, [5 + member as i32], "member {member} of {members}");
        }
    }
}

/// Without its place in the series a segment that was mended would number its frames from 0.
#[test]
fn the_journal_of_a_segment_keeps_its_place_in_the_series() {
    let spec = Spec::killed();
    let mut store = disk(&spec.make(), Vec::new()).store(8);
    let recording = Recording::open_in(&mut store, &[Spec::base(0)]).expect("opens");
    let plan = planned(&mut store, &recording, true, &mut |_| ControlFlow::Continue(())).expect("planned");
    let place = InSeries {
        series: RecordingId([3; 16]),
        number: 4,
        first: Frames(700),
        previous: RecordingId([2; 16]),
        epoch: 1,
    };
    for (epoch_first, epochs) in [(Frames(0), 0), (Frames(1), 1), (Frames(600), 1)] {
        let of = SegmentOf {
            id: place.series,
            number: place.number,
            first: Some(place.first),
            previous: Some(place.previous),
            epoch: place.epoch,
            epoch_first,
            name: "x".to_owned(),
        };
        let about = About { series: Some(of), ..recording.about().clone() };
        let records = records(&recording, &plan, &about, recording.blocks(), true);
        assert!(records.contains(&Record::Series(place)), "{records:?}");
        let stated: Vec<&Record> = records.iter().filter(|record| matches!(record, Record::Epoch { .. })).collect();
        assert_eq!(stated, vec![&Record::Epoch { first: epoch_first }; epochs]);
    }
}
