//! Recovery after crashes, power cuts and damage. Every byte offered afterwards is
//! the one that was written, wherever the recovery itself was interrupted.

mod declared;
mod evidence;
mod moves;
mod told;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use proptest::prelude::*;

use super::*;
use hairspring_recording::Files;
use hairspring_recording::journal::Journal;
use hairspring_recording::testing::{PATTERN, Spec};
use hairspring_recording::verify;
use hairspring_recording::verify::verify;
use hairspring_ring::gap::GapCause;
use hairspring_store::scripted::{DiskScript, Fault, Image, Pace, ScriptedDisk};

fn disk(image: &Image, faults: Vec<Fault>) -> ScriptedDisk {
    ScriptedDisk::with(DiskScript { pace: Pace::Leaping, faults, ..DiskScript::default() }, image.clone())
}

fn run(disk: &ScriptedDisk, options: RecoverOptions) -> Result<Recovered, RecordingError> {
    recover(&mut disk.store(8), &[Spec::base(0)], options, &mut |_| {})
}

const ALL: RecoverOptions = RecoverOptions { all: true, dry_run: false, cut_journal: false, discard: false };

/// Recovers, and holds the outcome against the specification.
#[track_caller]
fn check(spec: &Spec, image: &Image, options: RecoverOptions) -> (Recovered, Image) {
    let disk = disk(image, Vec::new());
    let planned = run(&disk, RecoverOptions { dry_run: true, ..options }).expect("planned");
    assert_eq!(disk.image_after_kill(0), *image, "a dry run changes nothing");
    let recovered = run(&disk, options).expect("recovered");
    assert_eq!(planned, recovered, "a dry run says what will be");
    let after = disk.image_after_power_cut(1);
    check_sound(spec, &after, Some(&recovered));
    let again = run(&ScriptedDisk::with(DiskScript::default(), after.clone()), ALL).expect("again");
    assert_eq!((again.changed, again.verdict), (Vec::new(), recovered.verdict), "a second run finds nothing to do");
    (recovered, after)
}

/// After a recovery all data are proven, in order, and unchanged.
#[track_caller]
fn check_sound(spec: &Spec, image: &Image, recovered: Option<&Recovered>) {
    let mut store = disk(image, Vec::new()).store(8);
    let recording = Recording::open_in(&mut store, &[Spec::base(0)]).expect("opens").whole().expect("whole");
    // Metadata have no checksum: where they were damaged they may name other data than there are, or another
    // resolution.
    let about = recording.about();
    let counters = about.pattern.as_deref() == Some(&*PATTERN.to_string()) && about.layout == spec.layout;
    let options = verify::VerifyOptions { counters, sha512: true };
    let verified = verify(&mut store, &recording, options, &mut |_| {}).expect("verified");
    assert_eq!((&verified.faults[..], verified.damaged), (&[] as &[String], 0));
    assert_eq!((verified.mismatch, verified.missing.0, verified.ledger_holds), (None, 0, true));
    let mut reader = BlockReader::new(&mut store, &recording).expect("opens");
    while let Some((block, bytes)) = reader.next_block() {
        let bytes = bytes.expect("proven");
        assert!(bytes == spec.content(block.position, block.length.into()), "block {} is not what it was", block.index);
    }
    if let Some(recovered) = recovered {
        assert_eq!(verified.verdict, recovered.verdict);
        assert_eq!(verified.ledger.stored_bytes, recovered.ledger.stored_bytes);
    }
}

/// A recording in which a bit of each of these blocks is turned.
fn damaged(spec: &Spec, blocks: &[u64]) -> Image {
    let mut image = spec.make();
    for index in blocks {
        let path = Files::of(&Spec::base(*index as usize % spec.members)).data;
        let mut bytes = image.read(&path).expect("data");
        let at = index / spec.members as u64 * spec.block + 17;
        bytes[at as usize] ^= 4;
        image.put(&path, &bytes);
    }
    image
}

#[test]
fn a_killed_recording_loses_only_what_never_completed() {
    let spec = Spec::killed();
    let (recovered, _) = check(&spec, &spec.make(), RecoverOptions::default());
    assert_eq!(recovered.lost, Lost::AtLeast(Bytes(0)));
    assert_eq!(recovered.durable.0 + recovered.proven.0, spec.stored);
    assert!(recovered.durable.0 > 0 && recovered.proven.0 > 0);
    assert_eq!((recovered.verdict, recovered.gaps), (RecordingVerdict::Incomplete, vec![]));
}

#[test]
fn a_block_that_was_under_way_becomes_a_gap_and_later_ones_stay() {
    let spec = Spec { unwritten: vec![8], ..Spec::killed() };
    let (recovered, image) = check(&spec, &spec.make(), RecoverOptions::default());
    assert_eq!(recovered.lost, Lost::AtLeast(Bytes(4096)));
    let [gap] = recovered.gaps[..] else { panic!("{:?}", recovered.gaps) };
    assert_eq!((gap.first.0, gap.frames.0, gap.cause), (8 * 1024, 1024, GapCause::Damaged));
    assert_eq!(image.length(Files::of(&Spec::base(0)).data), Some(spec.stored - 4096));
}

#[test]
fn gaps_that_were_known_stay_beside_those_that_are_found() {
    let gaps = vec![(0, 5), (9000, 3), (12_288, 7), (30_000, 2), (41_000, 9)];
    for members in 1..4 {
        for unwritten in [vec![], vec![2], vec![0, 2, 7], vec![10], vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9]] {
            let spec = Spec { gaps: gaps.clone(), members, unwritten: unwritten.clone(), ..Spec::killed() };
            let (recovered, _) = check(&spec, &spec.make(), RecoverOptions::default());
            let before: u64 = gaps.iter().map(|(_, frames)| frames * 4).sum();
            // The last block was never seen complete: its bytes and those of its gap are not known to have been
            // produced.
            let is_last = unwritten.contains(&10);
            let expected = before + unwritten.iter().map(|index| if *index == 10 { 0 } else { 4096 }).sum::<u64>();
            assert!(is_last || recovered.ledger.lost_bytes == expected, "{members} {unwritten:?} {recovered:?}");
        }
    }
}

#[test]
fn damage_in_a_recording_that_had_ended_is_a_known_loss() {
    for members in [1, 2] {
        let spec = Spec { members, gaps: vec![(5000, 3)], ..Spec::plain() };
        let (recovered, _) = check(&spec, &damaged(&spec, &[1, 4]), ALL);
        assert_eq!((recovered.lost, recovered.damaged_blocks), (Lost::Known(Bytes(8192)), 2));
        // The gap lies in the first of the blocks; the frames around it are two more gaps.
        assert_eq!(recovered.gaps.len(), 4, "{:?}", recovered.gaps);
        let unseen = run(&disk(&damaged(&spec, &[1, 4]), Vec::new()), RecoverOptions::default()).expect("sound so far");
        assert_eq!(unseen.changed, Vec::<String>::new(), "what a sync covers is read with --all only");
    }
}

/// Reads a recording without changing it, compares every byte that is offered with the specification, and returns the
/// proven parts and their number of bytes.
#[track_caller]
fn check_proven(spec: &Spec, image: &Image, all: bool) -> (Proven, u64) {
    let disk = disk(image, Vec::new());
    let mut store = disk.store(8);
    let recording = Recording::open_in(&mut store, &[Spec::base(0)]).expect("opens");
    let proven = prove(&mut store, &recording, all, &mut |_| ControlFlow::Continue(())).expect("proven");
    drop(store);
    assert_eq!(disk.image_after_kill(0), *image, "nothing is changed");
    let (mut offered, mut next) = (0, Frames(0));
    for stretch in proven.stretches(&recording) {
        let file = image.read(&Files::of(&Spec::base(stretch.member)).data).expect("data");
        let bytes = file[stretch.file_offset as usize..].get(..stretch.length.0 as usize).expect("within its file");
        let mut written = vec![0; bytes.len()];
        spec.pattern.fill(spec.layout, stretch.first, &mut written);
        assert!(bytes == written, "{stretch:?} is not what was written");
        assert!(stretch.first >= next, "{stretch:?} before frame {next:?}");
        next = Frames(stretch.first.0 + spec.layout.frames_in(stretch.length).0);
        offered += stretch.length.0;
    }
    let lost: u64 = proven.gaps.iter().map(|gap| spec.layout.bytes_of(gap.frames).0).sum();
    assert_eq!(offered + lost, spec.layout.bytes_of(proven.gaps.iter().map(Gap::end).fold(next, Frames::max)).0);
    (proven, offered)
}

/// A reader that took the length of a recording from its file showed 400 million frames where 11.5 million had been
/// written: the rest was space that the recorder had reserved.
#[test]
fn what_is_offered_of_a_recording_that_is_not_in_order_is_what_was_written() {
    for members in 1..4 {
        let reserved = Spec { members, reserved: 1 << 20, gaps: vec![(9000, 3)], ..Spec::killed() };
        let (proven, offered) = check_proven(&reserved, &reserved.make(), false);
        assert_eq!((offered, proven.verdict), (reserved.stored, RecordingVerdict::Incomplete));
        assert!(proven.faults[0].contains("cut off"), "{:?}", proven.faults);
        let unwritten = Spec { unwritten: vec![2, 8], ..reserved };
        assert_eq!(check_proven(&unwritten, &unwritten.make(), false).1, unwritten.stored - 2 * 4096);
        // In order, with a gap that it names itself: nothing is wrong with it.
        let whole = Spec { members, gaps: vec![(9000, 3)], ..Spec::plain() };
        let (proven, offered) = check_proven(&whole, &whole.make(), true);
        assert_eq!((proven.faults, proven.verdict, offered), (vec![], RecordingVerdict::Incomplete, whole.stored));
        // A bit that turned is found where every block is read.
        let (proven, offered) = check_proven(&whole, &damaged(&whole, &[1]), true);
        assert_eq!((proven.verdict, offered), (RecordingVerdict::Incomplete, whole.stored - 4096));
    }
}

#[test]
fn a_file_that_was_cut_is_not_complete_whatever_its_metadata_say() {
    let spec = Spec::plain();
    for length in [0, 1, 4096, 20_000, spec.stored - 1] {
        let mut image = spec.make();
        let path = Files::of(&Spec::base(0)).data;
        let bytes = image.read(&path).expect("data");
        image.put(&path, &bytes[..length as usize]);
        let (proven, offered) = check_proven(&spec, &image, false);
        assert_eq!((proven.verdict, offered), (RecordingVerdict::Incomplete, length / 4096 * 4096));
        assert!(proven.faults.iter().any(|fault| fault.contains("after the end")), "{:?}", proven.faults);
    }
}

#[test]
fn a_recording_of_which_a_member_is_missing_is_not_called_proven() {
    let spec = Spec { members: 2, ..Spec::plain() };
    let (whole, mut image) = (spec.make(), Image::default());
    for path in whole.paths().filter(|path| !path.starts_with("/d1")) {
        image.put(path, &whole.read(path).expect("there"));
    }
    let mut store = disk(&image, Vec::new()).store(8);
    let recording = Recording::open_in(&mut store, &[Spec::base(0)]).expect("opens");
    let refused = prove(&mut store, &recording, false, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(refused, Err(RecordingError::MembersMissing(..))), "{refused:?}");
}

#[test]
fn a_proof_ends_at_the_block_after_which_its_caller_breaks_off() {
    let spec = Spec::plain();
    let mut store = disk(&spec.make(), Vec::new()).store(8);
    let recording = Recording::open_in(&mut store, &[Spec::base(0)]).expect("opens");
    let mut blocks = 0;
    let cancelled = prove(&mut store, &recording, true, &mut |_| {
        blocks += 1;
        if blocks == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((cancelled, blocks), (Err(RecordingError::Cancelled), 2));
}

#[test]
fn a_recording_in_order_is_left_as_it_is() {
    for spec in [Spec::plain(), Spec { members: 3, gaps: vec![(5000, 3)], ..Spec::plain() }] {
        let (recovered, image) = check(&spec, &spec.make(), ALL);
        assert_eq!((recovered.changed, recovered.lost), (vec![], Lost::Known(Bytes(0))));
        assert_eq!(image, spec.make());
    }
}

#[test]
fn a_record_that_was_half_written_is_left_out() {
    let (spec, files) = (Spec::killed(), Files::of(&Spec::base(0)));
    for cut in [1, 63, 64, 65, 200, 600] {
        let mut image = spec.make();
        let mut journal = image.read(&files.journal).expect("a journal");
        journal.truncate(journal.len() - cut);
        image.put(&files.journal, &journal);
        check(&spec, &image, RecoverOptions::default());
    }
}

#[test]
fn a_journal_damaged_in_its_middle_is_believed_behind_the_damage_only_if_its_sums_agree() {
    let files = Files::of(&Spec::base(0));
    for (ended, record, agrees) in [(true, 1, true), (true, 7, true), (true, 5, false), (false, 1, false)] {
        let spec = Spec { gaps: vec![(12_288 + 400, 3)], ended, ..Spec::plain() };
        let mut image = spec.make();
        let mut journal = image.read(&files.journal).expect("a journal");
        let is_gap = |number: usize| {
            matches!(Journal::read(&journal).records[number], hairspring_recording::journal::Record::Gap { .. })
        };
        assert_eq!(is_gap(record), record == 5);
        journal[record * 64 + 30] ^= 1;
        image.put(&files.journal, &journal);
        if agrees {
            check(&spec, &image, ALL);
            continue;
        }
        let disk = disk(&image, Vec::new());
        let refused = run(&disk, ALL).expect_err("not believed").to_string();
        assert!(refused.contains("--cut-journal"), "{refused}");
        assert_eq!(disk.image_after_kill(0), image, "nothing was changed");
        check(&spec, &image, RecoverOptions { cut_journal: true, ..ALL });
    }
}

/// A power cut while the journal was being synced: the appended sync record arrived and a part before it did
/// not. That is no damage, and needs no permission to be cut off.
#[test]
fn zeros_before_a_sync_that_was_under_way_are_a_power_cut_and_not_damage() {
    let (spec, files) = (Spec::killed(), Files::of(&Spec::base(0)));
    let mut image = spec.make();
    let mut journal = image.read(&files.journal).expect("a journal");
    let records = Journal::read(&journal).records;
    let last = records
        .iter()
        .rposition(|record| matches!(record, hairspring_recording::journal::Record::Sync { .. }))
        .expect("a sync");
    journal[(last - 1) * 64..last * 64].fill(0);
    image.put(&files.journal, &journal);
    check(&spec, &image, RecoverOptions::default());
    // Zeros where two syncs had passed are damage.
    journal[64..128].fill(0);
    image.put(&files.journal, &journal);
    assert!(run(&disk(&image, Vec::new()), ALL).is_err());
}

#[test]
fn a_disk_that_does_not_read_a_block_is_not_mended() {
    let spec = Spec { unwritten: vec![2], ..Spec::killed() };
    let image = spec.make();
    let broken = Fault::nth(
        hairspring_store::scripted::OpKind::Read,
        9,
        hairspring_store::scripted::What::Error(hairspring_store::Errno(libc::EIO)),
    );
    let disk = disk(&image, vec![broken]);
    let refused = run(&disk, ALL).expect_err("unreadable").to_string();
    assert!(refused.contains("copy the file"), "{refused}");
    assert_eq!(disk.image_after_kill(0), image, "nothing was changed");
}

/// The recovery itself is interrupted at each of its steps, by a kill or by a power cut; run again it finds everything.
#[track_caller]
fn check_interrupted(spec: &Spec, image: &Image, power_cut: bool) {
    let whole = disk(image, Vec::new());
    let expected = run(&whole, ALL).expect("recovered");
    let blocks = |image: &Image| -> BTreeSet<u64> {
        let mut store = disk(image, Vec::new()).store(8);
        let recording = Recording::open_in(&mut store, &[Spec::base(0)]).expect("opens");
        recording.blocks().iter().map(|block| block.index).collect()
    };
    let kept = blocks(&whole.image_after_kill(0));
    for step in 1..=whole.operations() {
        let first = disk(image, vec![Fault::crash_at(step)]);
        let interrupted = run(&first, ALL);
        assert!(interrupted.is_err(), "step {step}");
        let left = if power_cut { first.image_after_power_cut(step) } else { first.image_after_kill(step) };
        let second = disk(&left, Vec::new());
        let recovered = run(&second, ALL).unwrap_or_else(|error| panic!("after step {step}: {error}"));
        let after = second.image_after_power_cut(step);
        check_sound(spec, &after, Some(&recovered));
        assert_eq!(blocks(&after), kept, "nothing good is destroyed at step {step}");
        assert_eq!((recovered.verdict, recovered.ledger), (expected.verdict, expected.ledger), "step {step}");
    }
}

#[test]
fn recovery_may_be_interrupted_at_every_step() {
    let spec = Spec { unwritten: vec![0, 3, 8], gaps: vec![(9000, 3)], ..Spec::killed() };
    let striped = Spec { members: 2, ..spec.clone() };
    for power_cut in [false, true] {
        check_interrupted(&spec, &spec.make(), power_cut);
        check_interrupted(&striped, &striped.make(), power_cut);
        let ended = Spec { members: 2, ..Spec::plain() };
        check_interrupted(&ended, &damaged(&ended, &[0, 5]), power_cut);
    }
}

/// A recording with a hole of `hole` bytes after its first block.
fn shifted(spec: &Spec, hole: u64) -> Image {
    let files = Files::of(&Spec::base(0));
    let mut image = spec.make();
    let mut data = image.read(&files.data).expect("data");
    data.splice(4096..4096, vec![0xAA; hole as usize]);
    image.put(&files.data, &data);
    let mut records = Journal::read(&image.read(&files.journal).expect("a journal")).records;
    for record in &mut records {
        if let hairspring_recording::journal::Record::Block { index: 1.., file_offset, .. } = record {
            *file_offset += hole;
        }
    }
    image.put(&files.journal, &hairspring_recording::testing::encoded(&records));
    image
}

/// A hole that is smaller than the block after it: the block would be written over itself.
#[test]
fn blocks_move_safely_over_holes_that_are_smaller_than_they_are() {
    let spec = Spec { stored: 4096 * 3, ..Spec::killed() };
    for power_cut in [false, true] {
        check_interrupted(&spec, &shifted(&spec, 512), power_cut);
    }
}

/// A recording whose first metadata have another text wherever this one was.
fn misdescribed(spec: &Spec, from: &str, to: &str) -> Image {
    let mut image = spec.make();
    let meta = Files::of(&Spec::base(0)).meta;
    let text = String::from_utf8(image.read(&meta).expect("metadata")).expect("text");
    assert!(text.contains(from), "{text}");
    image.put(&meta, text.replace(from, to).as_bytes());
    image
}

#[test]
fn the_journal_knows_the_size_of_blocks_better_than_damaged_metadata() {
    for members in [1, 3] {
        let spec = Spec { members, ..Spec::plain() };
        let image = misdescribed(&spec, "\"block_bytes\": 4096", "\"block_bytes\": 5096");
        let (recovered, after) = check(&spec, &image, RecoverOptions::default());
        assert!(recovered.changed.iter().any(|change| change.contains("describes other data")), "{recovered:?}");
        assert_eq!((recovered.lost, recovered.damaged_blocks), (Lost::Known(Bytes(0)), 0));
        assert_eq!(after.read(Files::of(&Spec::base(0)).data), spec.make().read(Files::of(&Spec::base(0)).data));
    }
}

#[test]
fn metadata_of_other_frames_than_the_journals_are_not_acted_upon() {
    let spec = Spec::plain();
    let image = misdescribed(&spec, "channels\": 2", "channels\": 1");
    let disk = disk(&image, Vec::new());
    let refused = run(&disk, RecoverOptions::default()).expect_err("refused").to_string();
    assert!(refused.contains("nothing was changed"), "{refused}");
    assert_eq!(disk.image_after_kill(0), image);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_is_damaged_what_is_given_out_is_what_was_written(
        ended: bool,
        members in 1..4_usize,
        damage in prop::collection::vec((0..3_usize, 0..3_usize, any::<prop::sample::Index>(), 0..3_u8), 1..6),
    ) {
        let spec = Spec { members, gaps: vec![(5000, 3), (20_480, 9)], ended, stored: 30_000, ..Spec::plain() };
        let mut image = spec.make();
        for (member, file, at, how) in damage {
            let files = Files::of(&Spec::base(member % members));
            let path = [files.data, files.journal, files.meta][file].clone();
            let mut bytes = image.read(&path).expect("a file");
            let at = at.index(bytes.len().max(1));
            match how {
                0 if !bytes.is_empty() => bytes[at] ^= 1 << (at % 8),
                1 => bytes.truncate(at),
                _ => bytes.extend(vec![0; at % 1000]),
            }
            image.put(&path, &bytes);
        }
        let options = RecoverOptions { cut_journal: true, ..ALL };
        let disk = disk(&image, Vec::new());
        match run(&disk, options) {
            // Metadata that cannot be read are an error.
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok(_) => check_sound(&spec, &disk.image_after_power_cut(3), None),
        }
    }

    #[test]
    fn arbitrary_bytes_are_no_recording_but_never_a_panic(
        journal in prop::collection::vec(any::<u8>(), 0..400),
        block in any::<[u64; 4]>(),
    ) {
        let spec = Spec::killed();
        let files = Files::of(&Spec::base(0));
        let mut image = spec.make();
        let mut records = image.read(&files.journal).expect("a journal")[..64].to_vec();
        // Arbitrary records with right checksums.
        let [index, file_offset, produced_bytes, rest] = block;
        let extreme = [
            hairspring_recording::journal::Record::Block {
                index, file_offset, length: rest as u32, crc: 0, produced_bytes, at: hairspring_machine::Instant::BOOT,
            },
            hairspring_recording::journal::Record::Gap {
                position: file_offset,
                gap: Gap {
                    first: hairspring_ring::Frames(index), frames: hairspring_ring::Frames(rest), cause: GapCause::Resumed,
                    found: hairspring_machine::Instant::BOOT,
                },
            },
            hairspring_recording::journal::Record::Skip {
                position: rest, skip: hairspring_ring::Skip { first: hairspring_ring::Frames(produced_bytes), frames: hairspring_ring::Frames(index) },
            },
            hairspring_recording::journal::Record::End {
                verdict: RecordingVerdict::Stopped, recovered: false, produced_bytes, stored_bytes: index, lost_bytes: rest,
                left_out_bytes: file_offset,
            },
        ];
        for (sequence, record) in (1..).zip(extreme) {
            records.extend(record.encode(sequence));
        }
        records.extend(journal);
        image.put(&files.journal, &records);
        let disk = disk(&image, Vec::new());
        let _ = run(&disk, RecoverOptions { cut_journal: true, ..ALL });
    }
}
