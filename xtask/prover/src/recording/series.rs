//! Proofs of series on real disks: a recorder that is killed, or whose disk loses power, across cuts, deletions and
//! resumptions, and one that records far more than is kept.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hairspring_record::recover::RecoverOptions;
use hairspring_record::series::recover::{index_at, recover_series};
use hairspring_recording::journal::Record;
use hairspring_recording::series::segment_of;
use hairspring_recording::verify::{VerifyOptions, verify};
use hairspring_recording::{Files, Recording};
use hairspring_store::{Ways, best};
use serde_json::{Value, json};

use crate::Verdict;
use crate::recording::disk::{Disk, stop};
use crate::recording::{Chance, Figures, bytes_in_journal, journal_of, kill, make_folder, promised, proven};
use crate::sheet::formats::command;

/// Bytes of a pattern that does not repeat; 80 MB/s.
const CARD: &str = "virtual:4ch,16bit,10MS/s,data=noise";
/// The most bytes of a series on the disk, above those of the segments that are kept: those under way.
const MOST_UNDER_WAY: u64 = 4;
/// The disk of power cuts.
const IMAGE_BYTES: u64 = 2 << 30;

/// Kills the recorder of one series at random moments, and resumes it each time.
pub(crate) fn kills(count: u32, folder: &Path) -> Verdict {
    let mut figures = Figures::default();
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let folder = folder.join("series");
    drop(std::fs::remove_dir_all(&folder));
    let base = folder.join("x");
    if let Err(why) = make_folder(&folder) {
        figures.take(0, Err(why));
    }
    for round in 0..count {
        let outcome = killed(&base, Duration::from_millis(60 + chance.below(1200)), &mut figures);
        figures.take(round, outcome);
    }
    seen(&base, count, &mut figures);
    drop(std::fs::remove_dir_all(&folder));
    figures.verdict("kills", count)
}

/// Cuts the power of the disk of one series at random moments, and resumes it each time from what the disk has. The
/// disk is an image; the power is cut by going on with a copy of it, taken while the recorder is stopped.
pub(crate) fn power_cuts(count: u32, folder: &Path) -> Verdict {
    let mut figures = Figures::default();
    let mut chance = Chance(0x2545_f491_4f6c_dd1d);
    let place = folder.join("series-power-cuts");
    drop(std::fs::remove_dir_all(&place));
    let disk = make_folder(&place).and_then(|()| Disk::make(&place, IMAGE_BYTES));
    let outcome = disk.and_then(|mut disk| {
        let base = disk.folder.join("x");
        for round in 0..count {
            disk = power_cut(disk, &base, Duration::from_millis(200 + chance.below(1500)), round, &mut figures)?;
        }
        seen(&base, count, &mut figures);
        Ok(())
    });
    figures.take(count, outcome);
    drop(std::fs::remove_dir_all(&place));
    figures.verdict("power cuts", count)
}

/// One cut: the disk that is left. An error ends the proof, because nothing is left to go on with.
fn power_cut(disk: Disk, base: &Path, after: Duration, round: u32, figures: &mut Figures) -> Result<Disk, String> {
    let mut recorder = resume(base)?;
    std::thread::sleep(after);
    let stopped = stop(&recorder);
    // A closed segment was synced whole before the index named its end; of others the last sync but one counts.
    let index = index_at(&mut stores(), base).map_err(told).map(Option::unwrap_or_default);
    let [whole, covered] = [bytes_in_journal, promised].map(|bytes| journaled(base, bytes));
    let copied = stopped.and_then(|()| disk.copy());
    kill(&mut recorder)?;
    let (index, copy) = (index?, copied?);
    let disk = disk.cut(&copy)?;
    let is_closed = |number: &u32| index.segments.get(number).is_some_and(|listed| listed.end.is_some());
    let owed = |number: &u32| if is_closed(number) { whole[number] } else { covered[number] };
    let kept = whole.keys().filter(|number| !index.dropped.contains_key(number));
    let kept: BTreeMap<u32, u64> = kept.map(|number| (*number, owed(number))).collect();
    figures.add("bytes promised by syncs", sum(&kept));
    let outcome = recovered(base, figures).and_then(|now| {
        let now = now.unwrap_or_default();
        figures.add("bytes recovered", sum(&now));
        compare(&kept, &now, |left, owed| left >= owed)
    });
    figures.take(round, outcome);
    Ok(disk)
}

/// Counts the events of a series. Fails if they were too few.
fn seen(base: &Path, count: u32, figures: &mut Figures) {
    let index = index_at(&mut stores(), base).ok().flatten().unwrap_or_default();
    let seen =
        [("cuts", index.next), ("deleted segments", index.dropped_segments), ("resumptions", index.epoch.into())];
    for (name, seen) in seen {
        figures.add(name, seen.into());
        if seen < 2 {
            figures.take(count, Err(format!("{name}: {seen}, so the proof would show nothing")));
        }
    }
}

fn stores() -> hairspring_record::series::keeper::StoreMaker {
    Box::new(|| best(8, Ways::default()))
}

/// The existing segments, with the bytes that their journals record.
fn journaled(base: &Path, bytes: fn(&[Record]) -> u64) -> BTreeMap<u32, u64> {
    let folder = base.parent().unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let journals = entries.filter(|path| path.extension().is_some_and(|ending| ending == "hairspring-journal"));
    let one = |path: PathBuf| {
        let segment = Files::base_of(&path);
        Some((segment_of(&segment)?.1, bytes(&journal_of(&segment))))
    };
    journals.filter_map(one).collect()
}

/// Goes on with the series, until it is killed.
fn resume(base: &Path) -> Result<Child, String> {
    Command::new(command()?)
        .args(["record", "--card", CARD, "--to"])
        .arg(base)
        .args(["--segment", "50ms", "--keep", "3", "--resume", "--quiet", "--on-overrun", "gap"])
        .args(["--buffer", "64MiB", "--notify", "256KiB"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("run hairspring: {error}"))
}

fn killed(base: &Path, after: Duration, figures: &mut Figures) -> Result<(), String> {
    let mut recorder = resume(base)?;
    std::thread::sleep(after);
    kill(&mut recorder)?;
    let before = journaled(base, bytes_in_journal);
    let dropped = index_at(&mut stores(), base).map_err(told)?.unwrap_or_default().dropped;
    let kept = before.into_iter().filter(|(number, _)| !dropped.contains_key(number)).collect();
    figures.add("blocks' bytes in journals", sum(&kept));
    let now = recovered(base, figures)?;
    now.map_or(Ok(()), |now| compare(&kept, &now, |left, owed| left == owed))
}

/// Recovers the series, twice, and verifies it: the bytes of each segment; `None` if the series has not begun.
fn recovered(base: &Path, figures: &mut Figures) -> Result<Option<BTreeMap<u32, u64>>, String> {
    let options = RecoverOptions::default();
    let Some(_) = recover_series(stores(), base, options, &mut |_| ()).map_err(told)? else {
        figures.add("ended before the beginning", 1);
        return Ok(None);
    };
    let again = recover_series(stores(), base, options, &mut |_| ()).map_err(told)?;
    if let Some(changed) = again.and_then(|again| again.changed.into_iter().next()) {
        return Err(format!("a second recovery found something to do: {changed}"));
    }
    let now = journaled(base, bytes_in_journal);
    if now.is_empty() {
        figures.add("ended before the first block", 1);
        return Ok(Some(now));
    }
    for number in now.keys() {
        let segment = hairspring_recording::series::segment_base(base, *number);
        let recording = Recording::open(&[segment]).map_err(told)?;
        proven(&recording).map_err(|why| format!("segment {number}: {why}"))?;
    }
    whole(base, figures)?;
    Ok(Some(now))
}

/// Checks that enough of each segment was recovered.
fn compare(kept: &BTreeMap<u32, u64>, now: &BTreeMap<u32, u64>, is_enough: fn(u64, u64) -> bool) -> Result<(), String> {
    for (number, owed) in kept {
        let left = now.get(number).copied().unwrap_or(0);
        if !is_enough(left, *owed) {
            return Err(format!("{left} bytes of {owed} were recovered of segment {number}"));
        }
    }
    Ok(())
}

fn told(error: hairspring_recording::RecordingError) -> String {
    error.to_string()
}

fn sum(bytes: &BTreeMap<u32, u64>) -> u64 {
    bytes.values().sum()
}

/// Verifies the series as one recording.
fn whole(base: &Path, figures: &mut Figures) -> Result<(), String> {
    let recording = Recording::open(&[base.to_owned()]).map_err(|error| error.to_string())?;
    let mut store = best(8, Ways::default());
    let verified =
        verify(&mut *store, &recording, VerifyOptions::default(), &mut |_| ()).map_err(|error| error.to_string())?;
    figures.add("bytes read back and compared", verified.bytes.count());
    if verified.damaged > 0 || verified.missing.0 > 0 || !verified.faults.is_empty() || !verified.ledger_holds {
        return Err(format!("{} blocks are damaged, {:?}", verified.damaged, verified.faults));
    }
    Ok(())
}

/// Records far more than is kept, in segments of 1 GiB.
pub(crate) fn long(gb: u64, rate: &str, keep: u64, folder: &Path) -> Verdict {
    let mut figures = Figures::default();
    let folder = folder.join("series-long");
    drop(std::fs::remove_dir_all(&folder));
    let outcome = make_folder(&folder).and_then(|()| long_series(gb, rate, keep, &folder.join("x"), &mut figures));
    drop(std::fs::remove_dir_all(&folder));
    figures.take(0, outcome);
    figures.verdict("recordings", 1)
}

fn long_series(gb: u64, rate: &str, keep: u64, base: &Path, figures: &mut Figures) -> Result<(), String> {
    let frames = (gb * 1_000_000_000).div_ceil(8);
    let mut recorder = Command::new(command()?)
        .args(["record", "--card", &format!("virtual:4ch,16bit,{rate},data=noise"), "--frames", &frames.to_string()])
        .arg("--to")
        .arg(base)
        .args(["--segment", "1GiB", "--keep", &keep.to_string(), "--format", "json", "--quiet", "--on-overrun", "gap"])
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|error| format!("run hairspring: {error}"))?;
    let most = watched(&mut recorder, base)?;
    let output = recorder.wait_with_output().map_err(|error| format!("wait for hairspring: {error}"))?;
    let report: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("read its report: {error}"))?;
    let of = |name: &str| report[name].as_u64().unwrap_or(0);
    for key in ["verdict", "produced_bytes", "stored_bytes", "dropped_bytes", "lost_bytes", "rate_reached_bytes_per_s"]
    {
        figures.set(key, report[key].clone());
    }
    for key in ["worst_stall_ns", "buffer_high_water", "recorder_cpu_ns", "elapsed_ns"] {
        figures.set(key, report[key].clone());
    }
    for key in ["segments", "dropped_segments"] {
        figures.set(key, report["series"][key].clone());
    }
    figures.set("most bytes on the disk", json!(most));
    whole(base, figures)?;
    let bound = (keep + MOST_UNDER_WAY) << 30;
    if report["verdict"] != "complete" || of("produced_bytes") < gb * 1_000_000_000 {
        return Err(format!("the verdict is {}: {}", report["verdict"], report["reason"]));
    }
    if of("stored_bytes") + of("dropped_bytes") != of("produced_bytes") {
        return Err("what is stored and what was deleted is not what was produced".to_owned());
    }
    let [segments, dropped] = ["segments", "dropped_segments"].map(|name| report["series"][name].as_u64().unwrap_or(0));
    if dropped != segments.saturating_sub(keep) || (dropped > 0) != (of("dropped_bytes") > 0) {
        return Err(format!("{dropped} of {segments} segments were deleted, though {keep} were to be kept"));
    }
    if most > bound {
        return Err(format!("{most} bytes were on the disk, and {bound} would suffice"));
    }
    Ok(())
}

/// The most bytes that the folder took while the recorder ran.
fn watched(recorder: &mut Child, base: &Path) -> Result<u64, String> {
    let folder = base.parent().unwrap_or(Path::new("."));
    let mut most = 0;
    while recorder.try_wait().map_err(|error| error.to_string())?.is_none() {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let bytes = entries.filter_map(|entry| Some(entry.metadata().ok()?.blocks() * 512));
        most = most.max(bytes.sum());
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(most)
}
