//! Journals. With any records under right checksums, a recording is opened, verified and recovered; then it is in
//! order, and a second recovery finds nothing to do. Of arbitrary bytes a reader believes only those that it would
//! write itself.

use std::path::PathBuf;

use hairspring_record::recover;
use hairspring_record::recover::recover;
use hairspring_recording::Recording;
use hairspring_recording::journal::{Journal, RECORD_BYTES, Record, RecordingId};
use hairspring_recording::sigmf::{About, render};
use hairspring_recording::verify::{VerifyOptions, verify};
use hairspring_ring::OnOverrun;
use hairspring_ring::{Bytes, Layout};
use hairspring_store::scripted::{DiskScript, Image, Pace, ScriptedDisk};

use crate::Input;

const BASE: &str = "/d/x";
const BLOCK: Bytes = Bytes(4096);

fn about() -> About {
    About {
        id: RecordingId([3; 16]),
        layout: Layout::analogue(1, 16).expect("exists"),
        rate: None,
        hardware: String::new(),
        pattern: None,
        started_realtime: hairspring_machine::Nanos::ZERO,
        started_monotonic: hairspring_machine::Instant::BOOT,
        started_within: None,
        block: BLOCK,
        members: vec![BASE.into()],
        member: 0,
        on_overrun: OnOverrun::Gap,
        clocked: false,
        software: "fuzz".to_owned(),
        series: None,
        channels: Vec::new(),
        clock: Default::default(),
    }
}

/// A start, and behind it the bytes as records: each gets the magic, the number and the checksum that belong at its
/// place.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let start = Record::Start {
        id: about().id,
        block_bytes: BLOCK.0 as u32,
        grain_bytes: 2,
        grain_frames: 1,
        member: 0,
        members: 1,
        started: hairspring_machine::Nanos::ZERO,
    };
    let mut journal = [&start.encode(0)[..], bytes].concat();
    crate::seal(&mut journal, *b"hsJ1");
    journal
}

/// Checks the module's promise.
///
/// # Panics
/// The bytes break it.
pub fn check(bytes: &[u8]) {
    let mut input = Input(bytes);
    let (seal, data_bytes) = (input.byte() & 1 == 1, input.short());
    let bytes = input.take(usize::MAX);
    let journal = if seal { sealed(bytes) } else { bytes.to_vec() };
    let contents = Journal::read(&journal);
    assert!(contents.valid_bytes <= journal.len() as u64 && contents.valid_bytes.is_multiple_of(RECORD_BYTES as u64));
    for (record, sequence) in contents.records.iter().zip(&contents.sequences) {
        let at = *sequence as usize * RECORD_BYTES;
        let again = Journal::read(&journal[..at + RECORD_BYTES]).records;
        assert_eq!(again.last(), Some(record));
        if again.len() > 64 {
            break;
        }
    }
    if contents.records.len() < 2 {
        // Nothing in it.
        return;
    }
    let mut image = Image::default();
    image.put(format!("{BASE}.sigmf-data"), &vec![0; usize::from(data_bytes)]);
    image.put(format!("{BASE}.sigmf-meta"), &render(&about(), None, &[]));
    image.put(format!("{BASE}.hairspring-journal"), &journal);
    let disk = ScriptedDisk::with(DiskScript { pace: Pace::Leaping, ..DiskScript::default() }, image);
    let mut store = disk.store(4);
    let paths = [PathBuf::from(BASE)];
    let options = VerifyOptions { counters: true, sha512: false };
    let Ok(recording) = Recording::open_in(&mut store, &paths) else { return };
    // Records that match their checksums and cannot all be true are no damage; then nothing may happen but an answer.
    let contradicts_itself = !recording.faults().is_empty();
    let _ = verify(&mut store, &recording, options, &mut |_| ());
    let options_of_recovery = recover::RecoverOptions { cut_journal: true, ..recover::RecoverOptions::default() };
    let Ok(recovered) = recover(&mut store, &paths, options_of_recovery, &mut |_| ()) else { return };
    if contradicts_itself {
        return;
    }
    let recording = Recording::open_in(&mut store, &paths).expect("what was recovered is read");
    let verified = verify(&mut store, &recording, options, &mut |_| ()).expect("what was recovered is verified");
    assert_eq!((&verified.faults[..], verified.damaged), (&[][..], 0), "{recovered:?}");
    assert_eq!(verified.verdict, recovered.verdict, "{recovered:?}");
    let again = recover(&mut store, &paths, options_of_recovery, &mut |_| ()).expect("a second time");
    assert!(again.changed.is_empty(), "{:?}", again.changed);
}
