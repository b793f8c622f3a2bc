//! Compressed recordings read as before and come back bit by bit; nothing is removed before that is proved, whenever a
//! call ends.

use std::fs;

use super::*;
use crate::recover::{RecoverOptions, recover};
use hairspring_machine::Nanos;
use hairspring_recording::RecordingVerdict;
use hairspring_recording::testing::Spec;
use hairspring_recording::verify::Verified;
use hairspring_recording::{Excerpt, ExcerptCheck, ExcerptPart};
use hairspring_source::pattern::Pattern;
use hairspring_store::compressed::CompressedReads;
use hairspring_store::scripted::{DiskScript, Fault, Image, Pace, ScriptedDisk};
use hairspring_store::{Ways, best};

fn store() -> Box<dyn Store> {
    best(8, Ways::ALL)
}

/// A recording of two members with gaps, longer than a frame.
fn spec() -> Spec {
    Spec {
        members: 2,
        block: 65_536,
        stored: 65_536 * 75 + 4096,
        gaps: vec![(8064, 10), (3 << 20, 1000)],
        pattern: Pattern::Sine,
        ..Spec::plain()
    }
}

fn made(folder: &Path) -> (Spec, Vec<Vec<u8>>) {
    spec().make().write_to(folder).expect("written");
    (spec(), (0..2).map(|member| fs::read(data(folder, member)).expect("there")).collect())
}

fn data(folder: &Path, member: usize) -> PathBuf {
    folder.join(format!("d{member}/x.sigmf-data"))
}

/// The version in the metadata of compressed samples.
const COMPRESSED_VERSION: &str = "\"2.1.0\"";

fn packed(folder: &Path, member: usize) -> PathBuf {
    compressed_path(&data(folder, member))
}

/// The operation applied to a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Compress,
    Restore,
}

fn opened(store: &mut dyn Store, folder: &Path) -> Recording {
    Recording::open_in(store, &[folder.join("d0/x")]).expect("opens").whole().expect("whole")
}

fn act(store: &mut dyn Store, folder: &Path, act: Act) -> Result<Compressed, RecordingError> {
    let recording = opened(store, folder);
    acted(store, &recording, act)
}

fn acted(store: &mut dyn Store, recording: &Recording, act: Act) -> Result<Compressed, RecordingError> {
    match act {
        Act::Compress => compress(store, recording, USUAL_LEVEL, &mut |_| {}),
        Act::Restore => restore(store, recording, &mut |_| {}),
    }
}

fn verified(store: &mut dyn Store, folder: &Path) -> Verified {
    let recording = opened(store, folder);
    verify(store, &recording, VerifyOptions::default(), &mut |_| {}).expect("read")
}

/// All bytes are read and proved.
#[track_caller]
fn assert_whole(verified: &Verified, spec: &Spec) {
    assert_eq!((verified.verdict, &verified.faults[..]), (RecordingVerdict::Incomplete, &[][..]));
    assert_eq!((verified.bytes.0, verified.damaged, verified.missing.0), (spec.stored, 0, 0));
}

fn names(folder: &Path) -> Vec<String> {
    let entries = (0..2).flat_map(|member| fs::read_dir(folder.join(format!("d{member}"))).expect("there"));
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("there").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_compressed_recording_is_read_as_before_and_comes_back_bit_by_bit() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (spec, plain) = made(folder);
    let before = names(folder);
    let mut store = store();
    let recording = opened(&mut *store, folder);
    let mut last = ReadProgress::default();
    let done = compress(&mut *store, &recording, USUAL_LEVEL, &mut |progress| last = progress).expect("compressed");
    assert_eq!((done.plain.0, last.done, last.total.0), (spec.stored, last.total, 2 * spec.stored));
    assert!(done.packed.0 < spec.stored && done.files == [0, 1].map(|member| packed(folder, member)));
    for (member, plain) in plain.iter().enumerate() {
        assert!(!data(folder, member).exists());
        // zstd's own streaming decoder restores it.
        let file = fs::File::open(packed(folder, member)).expect("there");
        assert!(zstd::stream::decode_all(file).expect("zstd") == *plain);
    }
    assert_whole(&verified(&mut *store, folder), &spec);
    for member in 0..2 {
        let text = fs::read_to_string(folder.join(format!("d{member}/x.sigmf-meta"))).expect("there");
        assert!(
            text.contains(COMPRESSED_VERSION) && !text.contains("\"1.1.0\""),
            "programs of version 1 refuse it: {text}"
        );
        assert_eq!(Files::base_of(&packed(folder, member)), folder.join(format!("d{member}/x")));
        let refused = store.open(&data(folder, member), Open::CreateData).expect_err("it is there").to_string();
        assert!(refused.contains("x.sigmf-data.zst"), "{refused}");
    }
    let recording = opened(&mut *store, folder);
    let options = VerifyOptions { counters: true, sha512: true };
    let all = verify(&mut *store, &recording, options, &mut |_| {}).expect("read");
    assert!(all.mismatch.is_none() && all.pattern.is_some() && all.sha512.iter().all(Option::is_some));
    let part = ExcerptPart { recording: &recording, blocks: recording.blocks() };
    for check in [ExcerptCheck::Checksums, ExcerptCheck::Unchecked] {
        // Over the edges of frames, of blocks and of members.
        let mut go_on = || std::ops::ControlFlow::Continue(());
        let mut excerpt = Excerpt::read(&mut *store, &[part], 500_000..800_000, check, &mut go_on).expect("read");
        assert!(!excerpt.runs().is_empty());
        for run in excerpt.runs().to_vec() {
            let length = run.frames.0 as usize * 4;
            let found = spec.pattern.check(spec.layout, run.first, &excerpt.bytes()[run.at..run.at + length]);
            assert_eq!(found, None, "{check:?}");
        }
    }
    // A second call changes nothing, with any store.
    assert_eq!(act(&mut *store, folder, Act::Compress).expect("nothing to do"), done);
    let restored = act(&mut *store, folder, Act::Restore).expect("restored");
    assert_eq!((restored.plain, restored.packed), (done.plain, done.packed));
    for (member, plain) in plain.iter().enumerate() {
        assert!(fs::read(data(folder, member)).expect("there") == *plain);
    }
    assert_eq!(names(folder), before);
    // The files begun by a killed call are removed by the next one in either direction.
    for next in [Act::Restore, Act::Compress] {
        fs::write(compressed_path(&part_of(&data(folder, 0))), b"half").expect("written");
        act(&mut *store, folder, next).expect("done");
        assert!(!names(folder).iter().any(|name| name.contains(".part")), "{next:?}: {:?}", names(folder));
    }
}

/// Ends compressing and restoring at each operation of the disk, by SIGKILL and by a power cut.
#[test]
fn a_call_that_ends_at_any_step_loses_nothing_and_can_be_repeated() {
    let folder = Path::new("/");
    // Two frames in the first file, one in the second.
    let spec = Spec { stored: 65_536 * 29 + 4096, gaps: vec![(8064, 10)], ..spec() };
    let script = |faults: Vec<Fault>| DiskScript {
        pace: Pace::Leaping,
        alignment: 512,
        most_latency: Nanos::from_micros(300),
        faults,
        ..DiskScript::default()
    };
    let on = |image: &Image, faults: Vec<Fault>| ScriptedDisk::with(script(faults), image.clone());
    let reads = |disk: &ScriptedDisk| CompressedReads::above(disk.store(8));
    let plain = spec.make();
    let disk = on(&plain, Vec::new());
    act(&mut reads(&disk), folder, Act::Compress).expect("compressed");
    let (compressed, mut crashes) = (disk.image_after_power_cut(0), 0);
    for (next, before, after) in [(Act::Compress, &plain, &compressed), (Act::Restore, &compressed, &plain)] {
        let disk = on(before, Vec::new());
        act(&mut reads(&disk), folder, next).expect("done");
        // Durable in every image after a power cut.
        assert!((0..4).all(|seed| disk.image_after_power_cut(seed) == *after), "{next:?}");
        for crash in 1..=disk.operations() {
            let disk = on(before, vec![Fault::crash_at(crash)]);
            let mut store = reads(&disk);
            // Opening the recording may fail, too.
            if let Ok(recording) = Recording::open_in(&mut store, &[folder.join("d0/x")]).and_then(Recording::whole) {
                let ended = acted(&mut store, &recording, next);
                // Those operations came after its end.
                assert!(ended.is_err(), "{next:?}, {crash}");
            }
            for image in [disk.image_after_kill(crash), disk.image_after_power_cut(crash)] {
                crashes += 1;
                for (meta, data) in [("/d0/x.sigmf-meta", "/d0/x.sigmf-data"), ("/d1/x.sigmf-meta", "/d1/x.sigmf-data")]
                {
                    let text = String::from_utf8(image.read(meta).expect("there")).expect("text");
                    // A program of version 1 would take the samples for lost.
                    assert!(image.read(data).is_some() || text.contains(COMPRESSED_VERSION), "{next:?}, {crash}");
                }
                let disk = on(&image, Vec::new());
                assert_whole(&verified(&mut reads(&disk), folder), &spec);
                act(&mut reads(&disk), folder, next).unwrap_or_else(|error| panic!("{next:?}, {crash}: {error}"));
                assert!(disk.image_after_power_cut(0) == *after, "{next:?}, {crash}: {:?}", paths(&disk));
            }
        }
    }
    assert!(crashes > 100, "{crashes}");
}

fn paths(disk: &ScriptedDisk) -> Vec<PathBuf> {
    disk.image_after_kill(0).paths().map(Path::to_owned).collect()
}

#[test]
fn of_two_files_the_compressed_one_is_removed_only_if_the_other_is_proved() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (spec, plain) = made(folder);
    act(&mut *store(), folder, Act::Compress).expect("compressed");
    let mut wrong = plain[0].clone();
    wrong[2 << 20] ^= 1;
    fs::write(data(folder, 0), &wrong).expect("written");
    for next in [Act::Compress, Act::Restore] {
        let refused = act(&mut *store(), folder, next).expect_err("damaged").to_string();
        assert!(refused.contains("damaged blocks") && refused.contains("move it away"), "{refused}");
        assert!(data(folder, 0).exists() && packed(folder, 0).exists());
    }
    fs::write(data(folder, 0), &plain[0]).expect("written");
    act(&mut *store(), folder, Act::Restore).expect("restored");
    assert!(!names(folder).iter().any(|name| name.ends_with(".zst")), "{:?}", names(folder));
    assert_whole(&verified(&mut *store(), folder), &spec);
}

#[test]
fn a_damaged_frame_is_a_damaged_block() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    made(folder);
    act(&mut *store(), folder, Act::Compress).expect("compressed");
    let path = packed(folder, 1);
    let mut bytes = fs::read(&path).expect("there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(&path, &bytes).expect("written");
    let found = verified(&mut *store(), folder);
    assert!(found.damaged > 0 && found.damaged <= 17, "{}", found.damaged);
}

#[test]
fn compressed_data_are_not_mended_and_need_no_mending() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    made(folder);
    let mut store = store();
    let paths = [folder.join("d0/x")];
    let all = RecoverOptions { all: true, ..RecoverOptions::default() };
    let before = recover(&mut *store, &paths, all, &mut |_| {}).expect("in order");
    act(&mut *store, folder, Act::Compress).expect("compressed");
    let refused = store.open(&data(folder, 0), Open::Mend).expect_err("compressed").to_string();
    assert!(refused.contains("compress --undo"), "{refused}");
    let after = recover(&mut *store, &paths, all, &mut |_| {}).expect("in order");
    assert_eq!((&after.changed, after.verdict), (&before.changed, before.verdict));
    assert!(!data(folder, 0).exists() && packed(folder, 0).exists());
}

/// A recording whose first compressed file has one wrong bit at a place that the length of the file gives.
fn with_a_wrong_bit(folder: &Path, place: impl FnOnce(usize) -> usize) -> Vec<u8> {
    act(&mut *store(), folder, Act::Compress).expect("compressed");
    let mut bytes = fs::read(packed(folder, 0)).expect("there");
    let at = place(bytes.len());
    bytes[at] ^= 4;
    fs::write(packed(folder, 0), &bytes).expect("written");
    bytes
}

#[test]
fn one_bad_byte_in_a_frame_costs_its_blocks_and_nothing_else() {
    for undo in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let (spec, plain) = made(folder);
        let damaged = with_a_wrong_bit(folder, |length| length / 2);
        let mut store = store();
        let kept = match undo {
            true => act(&mut *store, folder, Act::Restore).expect("restored").damaged,
            false => {
                let all = RecoverOptions { all: true, ..RecoverOptions::default() };
                let recovered = recover(&mut *store, &[folder.join("d0/x")], all, &mut |_| {}).expect("recovered");
                assert!(recovered.changed.iter().any(|change| change.contains("x.cut-1")), "{:?}", recovered.changed);
                recovered.cut_files[..1].to_vec()
            }
        };
        assert_eq!(kept, [folder.join("d0/x.cut-1")]);
        assert!(fs::read(&kept[0]).expect("kept") == damaged && !packed(folder, 0).exists());
        let found = verified(&mut *store, folder);
        assert_eq!((found.damaged, found.missing.0, &found.faults[..]), (0, 0, &[] as &[String]));
        let lost = spec.stored - found.bytes.0;
        assert!((1 << 20..(1 << 20) + 4 * 65_536).contains(&lost), "{lost} bytes are lost");
        // Recovering restores both members, undoing as well.
        let second = fs::read(data(folder, 1)).expect("restored");
        assert!(second == plain[1]);
    }
}

#[test]
fn a_damaged_table_costs_nothing_as_long_as_the_frames_are_whole() {
    let in_the_table: [fn(usize) -> usize; 5] = [
        |length| length - 1,
        |length| length - 6,
        // The length of the last frame, compressed and not; that of the one before.
        |length| length - 9 - 8,
        |length| length - 9 - 3,
        |length| length - 9 - 11,
    ];
    for place in in_the_table {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let (spec, plain) = made(folder);
        with_a_wrong_bit(folder, place);
        let mut store = store();
        let found = verified(&mut *store, folder);
        assert_eq!((found.damaged, found.bytes.0), (0, spec.stored));
        act(&mut *store, folder, Act::Restore).expect("restored");
        assert!(fs::read(data(folder, 0)).expect("restored") == plain[0]);
    }
}

#[test]
fn samples_that_change_while_they_are_compressed_are_not_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (spec, plain) = made(folder);
    let recording = opened(&mut *store(), folder);
    // As retention does before it removes them.
    let mut is_cut = false;
    let mut cut = |progress: ReadProgress| {
        if progress.done.0 >= spec.stored / 4 && !std::mem::replace(&mut is_cut, true) {
            fs::OpenOptions::new()
                .write(true)
                .open(data(folder, 0))
                .and_then(|file| file.set_len(1 << 20))
                .expect("cut");
        }
    };
    let refused = compress(&mut *store(), &recording, USUAL_LEVEL, &mut cut).expect_err("cut").to_string();
    assert!(refused.contains("nothing was removed"), "{refused}");
    assert!(fs::read(data(folder, 0)).expect("there") == plain[0][..1 << 20]);
    assert!(data(folder, 1).exists() && !names(folder).iter().any(|name| name.contains(".zst")), "{:?}", names(folder));
}

#[test]
fn a_file_that_is_put_in_place_of_the_one_that_is_read_stays() {
    for how in [Act::Compress, Act::Restore] {
        let (mut store, folder) = (store(), tempfile::tempdir().expect("a folder"));
        made(folder.path());
        if matches!(how, Act::Restore) {
            act(&mut *store, folder.path(), Act::Compress).expect("compressed");
        }
        let recording = opened(&mut *store, folder.path());
        let (old, new) = match how {
            Act::Compress => (data(folder.path(), 0), packed(folder.path(), 0)),
            Act::Restore => (packed(folder.path(), 0), data(folder.path(), 0)),
        };
        let strange = fs::read(&old).expect("read");
        // The same bytes, so that the comparison does not find it.
        let mut replace = |_: ReadProgress| {
            let other = folder.path().join("other");
            fs::write(&other, &strange).expect("written");
            fs::rename(&other, &old).expect("renamed");
        };
        let result = match how {
            Act::Compress => compress(&mut *store, &recording, USUAL_LEVEL, &mut replace),
            Act::Restore => restore(&mut *store, &recording, &mut replace),
        };
        assert!(result.is_err_and(|error| error.to_string().contains("that file stays")));
        assert_eq!(fs::read(&old).expect("it stays"), strange);
        assert!(new.exists(), "what was read is kept");
    }
}

#[test]
fn what_is_not_closed_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    Spec { ended: false, ..Spec::plain() }.make().write_to(folder.path()).expect("written");
    let refused = act(&mut *store(), folder.path(), Act::Compress).expect_err("not closed").to_string();
    assert!(refused.contains("was cut off; `recover` mends it") && data(folder.path(), 0).exists(), "{refused}");
    // Its journal has ended, its metadata have not been written yet.
    let folder = tempfile::tempdir().expect("a folder");
    made(folder.path());
    let open = Spec { ended: false, ..spec() }.make();
    for member in 0..2 {
        let meta = open.read(format!("/d{member}/x.sigmf-meta")).expect("there");
        fs::write(folder.path().join(format!("d{member}/x.sigmf-meta")), meta).expect("written");
    }
    assert!(opened(&mut *store(), folder.path()).ended().is_some());
    let refused = act(&mut *store(), folder.path(), Act::Compress).expect_err("not closed").to_string();
    assert!(refused.contains("do not say how it ended") && data(folder.path(), 0).exists(), "{refused}");
}
