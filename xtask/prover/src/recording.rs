//! Proofs on real disks: a killed recorder, a power cut, and a long recording that is read back.
//!
//! The recorder is the command, in its own process; the library in this process reads the recording.

pub(crate) mod crashes;
mod disk;
pub(crate) mod series;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hairspring_record::recover;
use hairspring_record::recover::recover;
use hairspring_recording::journal::{Journal, Record};
use hairspring_recording::ledger::RecordingVerdict;
use hairspring_recording::verify::{Verified, VerifyOptions, verify};
use hairspring_recording::{Files, Recording};
use hairspring_store::{Ways, best};
use serde_json::{Map, Value, json};

use super::Verdict;
use crate::sheet::formats::command;
use disk::{Disk, stop};

/// Bytes of a pattern that does not repeat.
const CARD: &str = "virtual:4ch,16bit,25MS/s,data=noise";

/// Kills the recorder at random moments; every block in its journal must be recovered with the right contents.
pub(crate) fn kills(count: u32, folder: &Path) -> Verdict {
    let mut figures = Figures::default();
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    for round in 0..count {
        let bases: Vec<PathBuf> =
            (0..=round % 2).map(|member| folder.join(format!("kill-{member}")).join("x")).collect();
        let outcome = killed(&bases, Duration::from_millis(60 + chance.below(900)), &mut figures);
        bases.iter().filter_map(|base| base.parent()).for_each(|folder| drop(std::fs::remove_dir_all(folder)));
        figures.take(round, outcome);
    }
    figures.verdict("kills", count)
}

fn killed(bases: &[PathBuf], after: Duration, figures: &mut Figures) -> Result<(), String> {
    for base in bases {
        make_folder(base.parent().unwrap_or(Path::new(".")))?;
    }
    let mut recorder = record(bases)?;
    std::thread::sleep(after);
    kill(&mut recorder)?;
    let journaled: u64 = bases.iter().map(|base| bytes_in_journal(&journal_of(base))).sum();
    if journaled == 0 && bases.iter().any(|base| !meta_of(base).exists()) {
        // Killed before the start: nothing to recover, and nothing lost.
        figures.add("killed before the beginning", 1);
        return Ok(());
    }
    let mended = recovered(bases)?;
    figures.add("blocks' bytes in journals", journaled);
    figures.add("bytes recovered", mended.bytes.count());
    if mended.bytes.count() != journaled {
        return Err(format!("{} bytes of {journaled} were recovered", mended.bytes.count()));
    }
    Ok(())
}

/// Cuts the power of a disk while a recording is made on it.
pub(crate) fn power_cuts(count: u32, folder: &Path) -> Verdict {
    let mut figures = Figures::default();
    let mut chance = Chance(0x2545_f491_4f6c_dd1d);
    for round in 0..count {
        let place = folder.join("power-cut");
        let outcome = make_folder(&place)
            .and_then(|()| power_cut(&place, Duration::from_millis(1300 + chance.below(1500)), &mut figures));
        drop(std::fs::remove_dir_all(&place));
        figures.take(round, outcome);
    }
    figures.verdict("power cuts", count)
}

fn power_cut(place: &Path, after: Duration, figures: &mut Figures) -> Result<(), String> {
    let disk = Disk::make(place, 2 << 30)?;
    let base = disk.folder.join("x");
    let mut recorder = record(std::slice::from_ref(&base))?;
    std::thread::sleep(after);
    stop(&recorder)?;
    let promised = promised(&journal_of(&base));
    let copied = disk.copy();
    kill(&mut recorder)?;
    let _disk = disk.cut(&copied?)?;
    let in_journal = bytes_in_journal(&journal_of(&base));
    let mended = recovered(std::slice::from_ref(&base))?;
    figures.add("bytes promised by syncs", promised);
    figures.add("bytes in the journals after the cut", in_journal);
    figures.add("bytes recovered", mended.bytes.count());
    if mended.bytes.count() < promised {
        return Err(format!("{} bytes were promised, {} remain", promised, mended.bytes.count()));
    }
    if promised == 0 {
        return Err("no sync was seen: the proof would show nothing".to_owned());
    }
    Ok(())
}

/// Records a long stream and reads every byte back.
pub(crate) fn long(gib: u64, rate: &str, folder: &Path) -> Verdict {
    let mut figures = Figures::default();
    let outcome = make_folder(folder).and_then(|()| long_recording(gib, rate, folder, &mut figures));
    Files::of(&folder.join("long")).remove();
    figures.take(0, outcome);
    figures.verdict("recordings", 1)
}

fn long_recording(gib: u64, rate: &str, folder: &Path, figures: &mut Figures) -> Result<(), String> {
    let base = folder.join("long");
    Files::of(&base).remove();
    let frames = (gib << 30).div_ceil(8);
    let output = Command::new(command()?)
        .args(["record", "--card", &format!("virtual:4ch,16bit,{rate},data=noise"), "--frames", &frames.to_string()])
        .arg("--to")
        .arg(&base)
        .args(["--format", "json", "--quiet", "--on-overrun", "gap"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("run hairspring: {error}"))?;
    let report: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("read its report: {error}"))?;
    for key in
        ["verdict", "produced_bytes", "durable_bytes", "lost_bytes", "rate_reached_bytes_per_s", "worst_stall_ns"]
    {
        figures.0.insert(key.to_owned(), report[key].clone());
    }
    for key in ["buffer_high_water", "direct_io_proven", "recorder_cpu_ns", "checksum_ns", "elapsed_ns"] {
        figures.0.insert(key.to_owned(), report[key].clone());
    }
    let recording = Recording::open(std::slice::from_ref(&base)).map_err(|error| error.to_string())?;
    let begun = std::time::Instant::now();
    let verified = proven(&recording)?;
    let took = begun.elapsed().as_secs_f64();
    figures.0.insert("bytes read back and compared".to_owned(), json!(verified.bytes.count()));
    figures.0.insert("verify_bytes_per_s".to_owned(), json!((verified.bytes.count() as f64 / took).round()));
    let produced = report["produced_bytes"].as_u64().unwrap_or(0);
    let lost = report["lost_bytes"].as_u64().unwrap_or(u64::MAX);
    if produced < gib << 30 || verified.bytes.count() + lost != produced {
        return Err(format!(
            "{produced} bytes were produced, {} read back, {lost} declared lost",
            verified.bytes.count()
        ));
    }
    if report["verdict"] != "complete" {
        return Err(format!("the verdict is {}: {}", report["verdict"], report["reason"]));
    }
    Ok(())
}

/// Starts a recording that runs until it is killed.
fn record(bases: &[PathBuf]) -> Result<Child, String> {
    let targets: Vec<String> = bases.iter().map(|base| base.display().to_string()).collect();
    Command::new(command()?)
        .args(["record", "--card", CARD, "--to", &targets.join(",")])
        .args(["--quiet", "--buffer", "64MiB", "--notify", "1MiB", "--on-overrun", "gap"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("run hairspring: {error}"))
}

/// Kills a recorder by SIGKILL, and reaps it. Fails if the recorder had ended before.
pub(crate) fn kill(child: &mut Child) -> Result<(), String> {
    let ended = child.try_wait().map_err(|error| error.to_string())?;
    drop(child.kill());
    drop(child.wait());
    ended.map_or(Ok(()), |status| Err(format!("the recorder ended without being killed: {status}")))
}

/// Recovers the recording and then verifies it.
fn recovered(bases: &[PathBuf]) -> Result<Verified, String> {
    let mut store = best(8, Ways::default());
    let mended =
        recover(&mut *store, bases, recover::RecoverOptions::default(), &mut |_| ()).map_err(|e| e.to_string())?;
    if mended.damaged_blocks > 0 && mended.durable.count() == 0 {
        return Err(format!("{} blocks were damaged", mended.damaged_blocks));
    }
    let recording = Recording::open(bases).map_err(|error| error.to_string())?;
    proven(&recording)
}

/// Compares every byte of a recording with its checksums and its pattern.
pub(crate) fn proven(recording: &Recording) -> Result<Verified, String> {
    let mut store = best(8, Ways::default());
    let options = VerifyOptions { counters: true, sha512: false };
    let verified = verify(&mut *store, recording, options, &mut |_| ()).map_err(|error| error.to_string())?;
    if verified.damaged > 0 || verified.mismatch.is_some() || !verified.faults.is_empty() || !verified.ledger_holds {
        let (mismatch, faults) = (&verified.mismatch, &verified.faults);
        return Err(format!("{} blocks are damaged, {mismatch:?}, {faults:?}", verified.damaged));
    }
    if verified.pattern.is_none() || verified.verdict == RecordingVerdict::Unaccounted {
        return Err(format!("no proof: {}", verified.verdict.name()));
    }
    Ok(verified)
}

fn with_ending(base: &Path, ending: &str) -> PathBuf {
    let mut file = base.as_os_str().to_owned();
    file.push(ending);
    PathBuf::from(file)
}

fn meta_of(base: &Path) -> PathBuf {
    with_ending(base, ".sigmf-meta")
}

pub(crate) fn journal_of(base: &Path) -> Vec<Record> {
    let bytes = std::fs::read(with_ending(base, ".hairspring-journal")).unwrap_or_default();
    Journal::read(&bytes).records
}

/// Bytes of the blocks in a journal.
pub(crate) fn bytes_in_journal(records: &[Record]) -> u64 {
    let mut blocks = BTreeMap::new();
    for record in records {
        if let Record::Block { index, length, .. } = record {
            blocks.insert(*index, u64::from(*length));
        }
    }
    blocks.values().sum()
}

/// Bytes that the last sync but one in a running recorder's journal covers: they were on the device before the last one
/// was entered.
pub(crate) fn promised(records: &[Record]) -> u64 {
    let mut covered = records.iter().rev().filter_map(|record| match record {
        Record::Sync { durable_bytes, .. } => Some(*durable_bytes),
        _ => None,
    });
    covered.nth(1).unwrap_or(0)
}

pub(crate) fn make_folder(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("make {}: {error}", folder.display()))
}

/// Counts of the rounds.
#[derive(Default)]
pub(crate) struct Figures(Map<String, Value>);

impl Figures {
    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    pub(crate) fn add(&mut self, name: &str, count: u64) {
        let sum = self.0.get(name).and_then(Value::as_u64).unwrap_or(0) + count;
        self.0.insert(name.to_owned(), json!(sum));
    }

    pub(crate) fn take(&mut self, round: u32, outcome: Result<(), String>) {
        if let Err(why) = outcome {
            self.add("failed", 1);
            self.0.entry("first failure").or_insert_with(|| json!(format!("round {round}: {why}")));
        }
    }

    pub(crate) fn verdict(mut self, what: &str, count: u32) -> Verdict {
        self.0.insert(what.to_owned(), json!(count));
        self.0.entry("failed").or_insert_with(|| json!(0));
        Verdict { passed: self.0["failed"] == json!(0), figures: self.0 }
    }
}

/// Pseudo-random numbers, the same in every run (xorshift).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % limit
    }
}
