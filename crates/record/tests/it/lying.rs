//! Disks that confirm syncs they have not made, and lose power. No recorder can detect this, so the metadata may state
//! a complete recording although its bytes are gone. Two promises still hold: every reader detects the loss, and
//! recovery keeps only proven data.

use std::collections::BTreeSet;
use std::path::PathBuf;

use hairspring_record::recover::{RecoverOptions, Recovered, recover};
use hairspring_recording::Recording;
use hairspring_recording::journal::{Journal, Record};
use hairspring_recording::ledger::RecordingVerdict;
use hairspring_recording::verify::{Verified, VerifyOptions, verify};
use hairspring_store::scripted::{DiskScript, Fault, Image, Pace, ScriptedDisk, What, When};

use crate::crashes::{Case, NAMES, PATTERN, run};
use crate::oracle;

const SEEDS: u64 = 300;
/// A seed of the long form. 821: of the newest blocks only the second is gone.
const TELLING: [u64; 1] = [821];
/// Number of each member's newest synced blocks that recovery reads again.
const READ_AGAIN: usize = 2;

/// The results of the readers.
#[derive(Default)]
struct Seen {
    /// The metadata stated a complete recording, and it was not.
    false_claims: u32,
    /// Bytes that a sync covered were gone.
    durable_lost: u32,
    /// One of the blocks that recovery reads again was gone.
    newest_lost: u32,
    refused: u32,
    recovered: u32,
}

fn disk(image: &Image) -> ScriptedDisk {
    ScriptedDisk::with(DiskScript { pace: Pace::Leaping, ..DiskScript::default() }, image.clone())
}

fn verified(image: &Image, paths: &[PathBuf]) -> Option<Verified> {
    let mut store = disk(image).store(8);
    let recording = Recording::open_in(&mut store, paths).and_then(Recording::whole).ok()?;
    verify(&mut store, &recording, VerifyOptions { counters: true, sha512: false }, &mut |_| {}).ok()
}

fn recovered(disk: &ScriptedDisk, paths: &[PathBuf], all: bool) -> Option<Recovered> {
    let options = RecoverOptions { all, cut_journal: true, ..RecoverOptions::default() };
    recover(&mut disk.store(8), paths, options, &mut |_| {}).ok()
}

/// The blocks that are read again, by the journals alone.
fn newest_durable(image: &Image, names: &[&str]) -> BTreeSet<u64> {
    let mut newest = BTreeSet::new();
    for name in names {
        let records = Journal::read(&image.read(format!("{name}.hairspring-journal")).unwrap_or_default()).records;
        let covered = records
            .iter()
            .filter_map(|record| if let Record::Sync { before, .. } = record { Some(*before) } else { None });
        let covered = covered.max().unwrap_or(0);
        let mut durable = BTreeSet::new();
        for (record, sequence) in records.iter().zip(0_u64..) {
            match *record {
                Record::Block { index, length: 0, .. } => drop(durable.remove(&index)),
                Record::Block { index, .. } if sequence < covered => drop(durable.insert(index)),
                _ => {}
            }
        }
        newest.extend(durable.iter().rev().take(READ_AGAIN));
    }
    newest
}

fn check(seed: u64, seen: &mut Seen) {
    let mut case = Case::of(seed);
    // The disk is honest at first, so a true sync may cover the beginning of a recording.
    let honest = 1 + seed % 40;
    case.script.faults = vec![Fault { kind: None, file: None, when: When::From(honest), what: What::Lie }];
    if seed.is_multiple_of(2) {
        let operations = run(&case).disk.operations();
        case.script.faults.insert(0, Fault::crash_at(operations - seed % operations.min(60)));
    }
    let left = run(&case).disk.image_after_power_cut(seed);
    let names = &NAMES[..case.members];
    let paths: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
    let claims_whole = names
        .iter()
        .any(|name| oracle::verdict_said(&left, name).is_some_and(|verdict| verdict <= RecordingVerdict::Stopped));
    let Some(found) = verified(&left, &paths) else {
        seen.refused += 1;
        return;
    };
    if found.verdict <= RecordingVerdict::Stopped {
        // Then it is in order, by a reader that shares no code with the library's.
        assert_eq!(oracle::check(&left, names, case.layout, PATTERN, true).stored, found.bytes.0);
    } else {
        seen.false_claims += u32::from(claims_whole);
    }
    let lost = found.damages.iter().any(|damage| damage.block.durable);
    seen.durable_lost += u32::from(lost);
    let newest = newest_durable(&left, names);
    let newest_lost = found.damages.iter().any(|damage| newest.contains(&damage.block.index));
    seen.newest_lost += u32::from(newest_lost);
    for all in [true, false] {
        let disk = disk(&left);
        let Some(told) = recovered(&disk, &paths, all) else { continue };
        let image = disk.image_after_kill(0);
        let after = verified(&image, &paths).expect("what was recovered can be read");
        let damaged: Vec<_> = after.damages.iter().map(|damage| damage.block.index).collect();
        assert_eq!(after.mismatch, None, "{damaged:?}");
        if all {
            seen.recovered += 1;
            assert_eq!((&after.faults[..], after.damaged), (&[] as &[String], 0), "{told:?}");
            assert_eq!((after.verdict, after.missing.0), (told.verdict, 0), "{told:?}");
            oracle::check(&image, names, case.layout, PATTERN, false);
        } else {
            // Recovery has read the newest blocks; if one of them was gone, all blocks; and blocks without a sync in
            // any case.
            assert!(!newest_lost || after.damaged == 0, "the newest blocks {newest:?} were not read: {after:?}");
            let unread = |index, durable| durable && !newest.contains(&index);
            assert!(after.damages.iter().all(|damage| unread(damage.block.index, damage.block.durable)), "{after:?}");
        }
    }
}

#[test]
fn a_disk_that_confirms_syncs_it_has_not_made_is_found_out_and_recovery_keeps_what_is_proven() {
    let times = std::env::var("HAIRSPRING_PROOF").ok().and_then(|times| times.parse().ok()).unwrap_or(1_u64);
    let mut seen = Seen::default();
    for seed in (0..SEEDS * times).chain(TELLING) {
        if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(seed, &mut seen))) {
            println!("failed: HAIRSPRING_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
    println!("figure: recordings on a disk that lies: {}", SEEDS * times + TELLING.len() as u64);
    println!("figure: their metadata said whole, and verify found that they are not: {}", seen.false_claims);
    println!("figure: blocks were lost that a sync covered: {}", seen.durable_lost);
    println!("figure: of them one of the two newest of a member: {}", seen.newest_lost);
    println!("figure: refused, because metadata or journal are gone: {}", seen.refused);
    println!("figure: recovered to what is proven: {}", seen.recovered);
    // Otherwise the disk has not lied.
    assert!(
        seen.false_claims > 0 && seen.durable_lost > seen.newest_lost && seen.newest_lost > 0 && seen.recovered > 0,
        "the disk has lost nothing"
    );
}
