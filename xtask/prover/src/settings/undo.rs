//! Proof: the settings of the machine are as before, whenever the command that changed them is killed.
//!
//! The command changes many settings, and the proof kills it after a random time, every second time with its guardian.
//! Then `hairspring restore` runs, and every file that the catalogue names must have its first contents again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hairspring_settings::{JOURNAL, Tunable, files_of};
use serde_json::{Map, json};

use crate::Verdict;
use crate::sheet::formats;

/// Settings of each kind that a kill can leave changed: single files, many files, masks, pairs, brackets.
const SETTINGS: &str = "stat-interval=7,writeback-interval=600,swappiness=59,compaction=19,timer-migration=0,workqueue-cpus=1,\
                        interrupt-cpus=0,dirty-bytes=268435456,cpu-idle-limit=50,reclaim-distance=11,huge-page-defrag=defer,\
                        transparent-huge-pages=never,disk-completion=2,autogroup=0";
/// Time limit of a restoration.
const RESTORED_WITHIN: Duration = Duration::from_secs(10);

/// The contents of each file in the catalogue, or why it cannot be read.
type Machine = BTreeMap<PathBuf, Result<String, String>>;

fn machine() -> Machine {
    let files = Tunable::all().flat_map(|tunable| files_of(Path::new("/"), tunable));
    files.map(|path| (path.clone(), fs::read_to_string(path).map_err(|error| error.to_string()))).collect()
}

/// The first file that differs.
fn change(before: &Machine, now: &Machine) -> Option<String> {
    let changed = before.iter().find(|(path, value)| now.get(*path) != Some(value))?;
    Some(format!("{} shows {:?}, before {:?}", changed.0.display(), now.get(changed.0), changed.1))
}

/// Kills the command `count` times.
pub(crate) fn prove(count: u32) -> Verdict {
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => return Verdict::not_run(format!("no temporary folder: {error}")),
    };
    // A copy with its own name, so that other runs of the command are not mistaken for this proof's.
    let program = folder.path().join("hairspring");
    let copied = formats::command().and_then(|built| fs::copy(built, &program).map_err(|error| error.to_string()));
    if let Err(why) = copied {
        return Verdict::not_run(format!("copy the command: {why}"));
    }
    let mut chance = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |limit: u64| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        (chance >> 16) % limit
    };
    let before = machine();
    // Times an undisturbed run, so that the kills can hit any moment of it.
    let begun = Instant::now();
    match start(&program).and_then(|mut child| child.wait()) {
        Ok(status) if status.success() => {}
        Ok(status) => return Verdict::not_run(format!("the command may not change settings here: {status}")),
        Err(error) => return Verdict::not_run(format!("start the command: {error}")),
    }
    let span_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX).max(1);
    let (mut failed, mut first, mut with_changes, mut with_guardian) =
        (u32::from(change(&before, &machine()).is_some()), None, 0, 0);
    for round in 0..count {
        let guardian_too = round % 2 == 1;
        match killed(&program, Duration::from_micros(below(span_us)), guardian_too, &before) {
            Ok(changed) => {
                with_changes += u32::from(changed);
                with_guardian += u32::from(guardian_too);
            }
            Err(why) => {
                failed += 1;
                first.get_or_insert(format!("round {round}: {why}"));
            }
        }
    }
    let mut figures = Map::new();
    figures.insert("kills".to_owned(), json!(count));
    figures.insert("files compared".to_owned(), json!(before.len()));
    figures.insert("kills that left settings changed".to_owned(), json!(with_changes));
    figures.insert("kills together with the guardian".to_owned(), json!(with_guardian));
    figures.insert("undisturbed run in ms".to_owned(), json!(span_us / 1_000));
    figures.insert("failed".to_owned(), json!(failed));
    if let Some(first) = first {
        figures.insert("first failure".to_owned(), json!(first));
    }
    Verdict { passed: failed == 0, figures }
}

fn start(program: &Path) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(["run", "--quiet", "--set", SETTINGS, "--allow", "machine", "--", "sleep", "0.05"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// Kills one run, and waits until the settings are as before. Returns whether the kill left any changed.
fn killed(program: &Path, after: Duration, guardian_too: bool, before: &Machine) -> Result<bool, String> {
    let mut child = start(program).map_err(|error| format!("start: {error}"))?;
    std::thread::sleep(after);
    drop(child.kill());
    if guardian_too {
        running(program)
            .into_iter()
            .for_each(|pid| drop(Command::new("kill").args(["-KILL", &pid.to_string()]).status()));
    }
    drop(child.wait());
    let changed = change(before, &machine()).is_some();
    let begun = Instant::now();
    loop {
        let restored = Command::new(program).arg("restore").output().map_err(|error| format!("restore: {error}"))?;
        if !restored.status.success() {
            return Err(format!("restore: {}", String::from_utf8_lossy(&restored.stdout).trim()));
        }
        // A guardian may be restoring them.
        let left = change(before, &machine());
        match left {
            None if !Path::new(JOURNAL).exists() => return Ok(changed),
            Some(why) if begun.elapsed() > RESTORED_WITHIN => return Err(why),
            None if begun.elapsed() > RESTORED_WITHIN => return Err("the journal stays".to_owned()),
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// The processes of this program, by the file that they run.
fn running(program: &Path) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program)).collect()
}
