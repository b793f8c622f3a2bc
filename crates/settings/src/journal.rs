//! [`Changes`]: changes of the machine that are undone, even if the process is killed.
//!
//! **Problem.** A value that was written to a file of the kernel stays there when the writer dies.
//!
//! **Solution.** The process writes the old value to a journal and synchronizes it before it writes the new value to
//! the file. A command that finds an unlocked journal restores the old values in it.
//!
//! ```text
//!   lock the journal ─► [ step: path, old, new ─► sync ─► write the file ─► result read back ]… ─► restore ─► remove
//!                              (1)                              (2)                                   (3)
//! ```
//!
//! * Killed before (1): nothing was changed.
//! * Between (1) and (2), or before the result is in the journal: the file shows the old value, the new one, or the
//!   kernel's version of the new one. All are restored.
//! * In (3): restored steps are restored again, because the kernel may not have finished the last write of a process
//!   that was killed.
//!
//! **A value that another process has changed meanwhile** is left alone and reported. The result in the journal shows
//! this: the file shows neither the old value nor the value after our change. If the journal has no result, because the
//! process was killed at that moment, only the new value as written counts as ours.
//!
//! **Ownership.** The lock of the journal file (`flock`) belongs to the process that makes the changes and ends with
//! it. A second process that wants to change settings is refused. The file is in a folder that a boot empties, because
//! a boot undoes the changes; a journal of another boot is removed unread.
//!
//! The format is one JSON object per line. An incomplete last line is a step that was not made.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::files;

/// The path of the journal.
pub const JOURNAL: &str = "/run/hairspring/undo.journal";

/// The version of the format.
const FORMAT: u32 = 1;

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Header {
        format: u32,
        boot_id: String,
        pid: u32,
        command: String,
    },
    Step {
        path: PathBuf,
        old: String,
        new: String,
    },
    /// The value in the file of the latest step after the change.
    Shows(String),
}

/// One file that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    path: PathBuf,
    old: String,
    /// The value in the file after the change, if known; at first the written value.
    ours: String,
}

/// Result of restoring one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The file.
    pub path: PathBuf,
    /// The value from before.
    pub old: String,
    /// Outcome of the restore.
    pub outcome: RestoreOutcome,
}

/// The outcome of a restoration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// The old value was written back, and the file shows it.
    Done,
    /// The file had the old value already.
    WasOld,
    /// Another process has changed the file to this value; it was left alone.
    ChangedByOthers(String),
    /// The file could not be read or written, or does not show the written value.
    Failed(String),
}

impl Restored {
    /// Whether the file has its old value back.
    pub fn is_good(&self) -> bool {
        matches!(self.outcome, RestoreOutcome::Done | RestoreOutcome::WasOld)
    }
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, old) = (self.path.display(), &self.old);
        match &self.outcome {
            RestoreOutcome::Done => write!(f, "{path}: back to `{old}`"),
            RestoreOutcome::WasOld => write!(f, "{path}: was `{old}` already"),
            RestoreOutcome::ChangedByOthers(now) => {
                write!(f, "{path}: left at `{now}`, because another process has changed it; it was `{old}`")
            }
            RestoreOutcome::Failed(why) => write!(f, "{path}: could not be put back to `{old}`: {why}"),
        }
    }
}

/// Why no setting was changed.
#[derive(Debug)]
pub enum ChangesError {
    /// Another process has changed settings and still runs.
    Busy(u32, String),
    /// The journal cannot be written: the path, and the system's error.
    Journal(PathBuf, io::Error),
    /// The file is missing or refuses the value.
    File(PathBuf, String, io::Error),
    /// The pattern names no file on this machine.
    NoSuchFile(String),
}

impl fmt::Display for ChangesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(pid, command) => {
                write!(
                    f,
                    "change settings of the machine: process {pid} (`{command}`) has changed some; wait until it ends"
                )
            }
            Self::Journal(path, error) => {
                write!(f, "write the undo journal {}: {error}{}", path.display(), remedy(error))
            }
            Self::File(path, value, error) => {
                write!(f, "write `{value}` to {}: {error}{}", path.display(), remedy(error))
            }
            Self::NoSuchFile(pattern) => write!(f, "change {pattern}: this machine has no such file"),
        }
    }
}

/// How to get a missing permission.
fn remedy(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::PermissionDenied { " (run the same command with sudo)" } else { "" }
}

impl std::error::Error for ChangesError {}

/// Pairs of files: when the first is written, the kernel sets the second to 0. Writing 0 to the first changes nothing;
/// only restoring the second undoes the change.
const PAIRS: [(&str, &str); 2] = [("dirty_bytes", "dirty_ratio"), ("dirty_background_bytes", "dirty_background_ratio")];

/// Changes of the machine that are undone by [`restore`](Changes::restore), when this is dropped, or by the next
/// process that calls [`begin`](Changes::begin) or [`restore_leftovers`](Changes::restore_leftovers).
#[derive(Debug)]
pub struct Changes {
    root: PathBuf,
    journal: Journal,
    steps: Vec<Step>,
}

impl Changes {
    /// Locks the journal for a command of this name, which then may change settings of this machine. First restores the
    /// changes of a process that was killed, and returns them.
    ///
    /// # Errors
    /// Another process has locked the journal, or the journal cannot be written.
    pub fn begin(command: &str) -> Result<(Self, Vec<Restored>), ChangesError> {
        Self::begin_at(Path::new("/"), Path::new(JOURNAL), command)
    }

    /// Restores the changes of a process that was killed. Returns an empty list if there is no journal, or its process
    /// still runs.
    ///
    /// # Errors
    /// The journal cannot be read or removed.
    pub fn restore_leftovers() -> Result<Vec<Restored>, ChangesError> {
        Self::restore_leftovers_at(Path::new(JOURNAL), FlockOperation::NonBlockingLockExclusive)
    }

    /// As `restore_leftovers`, but waits until the process that now holds the journal has ended in any way. Blocks
    /// until then.
    ///
    /// # Errors
    /// As for [`restore_leftovers`](Self::restore_leftovers).
    pub fn wait_and_restore() -> Result<Vec<Restored>, ChangesError> {
        Self::restore_leftovers_at(Path::new(JOURNAL), FlockOperation::LockExclusive)
    }

    fn begin_at(root: &Path, journal: &Path, command: &str) -> Result<(Self, Vec<Restored>), ChangesError> {
        if let Some(folder) = journal.parent() {
            fs::create_dir_all(folder).map_err(|error| ChangesError::Journal(folder.to_owned(), error))?;
        }
        let journal = Journal::lock(journal, true, FlockOperation::NonBlockingLockExclusive)?;
        let Some(mut journal) = journal else { unreachable!("a journal that may be created is locked or refused") };
        let left = journal.replay();
        journal.empty()?;
        let header =
            Line::Header { format: FORMAT, boot_id: boot_id(), pid: std::process::id(), command: command.to_owned() };
        journal.append(&header)?;
        Ok((Self { root: root.to_owned(), journal, steps: Vec::new() }, left))
    }

    fn restore_leftovers_at(journal: &Path, lock: FlockOperation) -> Result<Vec<Restored>, ChangesError> {
        match Journal::lock(journal, false, lock) {
            Ok(None) | Err(ChangesError::Busy(..)) => Ok(Vec::new()),
            Ok(Some(journal)) => {
                let restored = journal.replay();
                journal.remove()?;
                Ok(restored)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes a value to all files that the pattern names. Skips files that hold it already, and files that refuse it
    /// if others accept it (managed interrupts, for instance). Does not write a file whose old value cannot be read.
    /// Returns each file with its values before and after.
    ///
    /// # Errors
    /// The pattern names no file, every file refuses the value, a file cannot be read, or the journal cannot be
    /// written. Changes made until then are in the journal.
    pub fn set(&mut self, pattern: &str, value: &str) -> Result<Vec<(PathBuf, String, String)>, ChangesError> {
        let paths = files::expand(&self.root, pattern);
        if paths.is_empty() {
            return Err(ChangesError::NoSuchFile(pattern.to_owned()));
        }
        let mut changed = Vec::new();
        let (mut refusal, mut taken) = (None, false);
        for path in paths {
            let refused = |error| ChangesError::File(path.clone(), value.to_owned(), error);
            let old = files::read(&path).map_err(refused)?;
            if old == value {
                taken = true;
                changed.push((path, old.clone(), old));
                continue;
            }
            let second =
                PAIRS.iter().find(|(first, _)| path.ends_with(first)).map(|(_, second)| path.with_file_name(second));
            if let Some((second, old)) = second.and_then(|second| files::read(&second).ok().map(|old| (second, old)))
                && old != "0"
            {
                self.note(second, old, "0")?;
            }
            self.note(path.clone(), old.clone(), value)?;
            if let Err(error) = files::write(&path, value) {
                if files::read(&path).ok().as_ref() != Some(&old) {
                    return Err(refused(error));
                }
                changed.push((path.clone(), old.clone(), old));
                refusal.get_or_insert(refused(error));
                continue;
            }
            // The kernel's version of the value: a rounded number, another spelling of a mask.
            let shows = files::read(&path).map_err(refused)?;
            self.journal.append(&Line::Shows(shows.clone()))?;
            if let Some(step) = self.steps.last_mut() {
                step.ours.clone_from(&shows);
            }
            taken = true;
            changed.push((path, old, shows));
        }
        match refusal {
            Some(refusal) if !taken => Err(refusal),
            _ => Ok(changed),
        }
    }

    /// Writes a change to the journal before it is made.
    fn note(&mut self, path: PathBuf, old: String, new: &str) -> Result<(), ChangesError> {
        self.journal.append(&Line::Step { path: path.clone(), old: old.clone(), new: new.to_owned() })?;
        self.steps.push(Step { path, old, ours: new.to_owned() });
        Ok(())
    }

    /// Writes the old values back, the last change first, and removes the journal.
    pub fn restore(mut self) -> Vec<Restored> {
        self.undo()
    }

    fn undo(&mut self) -> Vec<Restored> {
        let restored = restore(&std::mem::take(&mut self.steps));
        // If the journal remains, the next process restores the same values again, which is harmless.
        drop(self.journal.unlink());
        restored
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        if !self.steps.is_empty() || self.journal.is_linked() {
            drop(self.undo());
        }
    }
}

fn restore(steps: &[Step]) -> Vec<Restored> {
    let restore_one = |step: &Step| {
        let outcome = match files::read(&step.path) {
            Err(error) => RestoreOutcome::Failed(error.to_string()),
            Ok(now) if now == step.old => {
                // Write it nevertheless: a restoration may have been killed inside the kernel's write, after the value
                // was set and before dependent values. `transparent_hugepage/enabled` sets `min_free_kbytes` last.
                drop(files::write(&step.path, &step.old));
                RestoreOutcome::WasOld
            }
            Ok(now) if now != step.ours => RestoreOutcome::ChangedByOthers(now),
            Ok(_) => match files::write(&step.path, &step.old).and_then(|()| files::read(&step.path)) {
                Ok(now) if now == step.old => RestoreOutcome::Done,
                Ok(now) => RestoreOutcome::Failed(format!("the file shows `{now}`")),
                Err(error) => RestoreOutcome::Failed(error.to_string()),
            },
        };
        Restored { path: step.path.clone(), old: step.old.clone(), outcome }
    };
    let mut restored: Vec<Restored> = steps.iter().rev().map(restore_one).collect();
    // Again, because some files accept their old value only after another file has its own.
    for (restored, step) in restored.iter_mut().zip(steps.iter().rev()) {
        if matches!(restored.outcome, RestoreOutcome::Failed(_)) {
            *restored = restore_one(step);
        }
    }
    restored
}

/// The journal file, locked.
#[derive(Debug)]
struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens and locks the journal; none if it does not exist and may not be created.
    fn lock(path: &Path, create: bool, lock: FlockOperation) -> Result<Option<Self>, ChangesError> {
        let failed = |error| ChangesError::Journal(path.to_owned(), error);
        loop {
            // Looking for leftovers needs no write permission; while the owner runs, an ordinary user gets no result.
            let opened = OpenOptions::new().read(true).append(create).create(create).open(path);
            let file = match opened {
                Err(error) if !create && error.kind() == io::ErrorKind::NotFound => return Ok(None),
                opened => opened.map_err(failed)?,
            };
            match rustix::fs::flock(&file, lock) {
                Ok(()) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let (pid, command) = owner(&fs::read_to_string(path).unwrap_or_default());
                    return Err(ChangesError::Busy(pid, command));
                }
                Err(error) => return Err(failed(error.into())),
            }
            // The owner may have removed the file between opening and locking.
            let journal = Self { path: path.to_owned(), file };
            if journal.is_linked() {
                return Ok(Some(journal));
            }
        }
    }

    fn is_linked(&self) -> bool {
        match (self.file.metadata(), fs::metadata(&self.path)) {
            (Ok(own), Ok(there)) => own.ino() == there.ino() && own.dev() == there.dev(),
            _ => false,
        }
    }

    fn append(&mut self, line: &Line) -> Result<(), ChangesError> {
        let mut text = serde_json::to_string(line).map_err(io::Error::other);
        if let Ok(text) = &mut text {
            text.push('\n');
        }
        let written = text.and_then(|text| self.file.write_all(text.as_bytes())).and_then(|()| self.file.sync_all());
        written.map_err(|error| ChangesError::Journal(self.path.clone(), error))
    }

    /// Restores the old values in it.
    fn replay(&self) -> Vec<Restored> {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        restore(&steps(&text, &boot_id()))
    }

    fn empty(&mut self) -> Result<(), ChangesError> {
        self.file.set_len(0).map_err(|error| ChangesError::Journal(self.path.clone(), error))
    }

    fn unlink(&self) -> io::Result<()> {
        if self.is_linked() { fs::remove_file(&self.path) } else { Ok(()) }
    }

    fn remove(self) -> Result<(), ChangesError> {
        self.unlink().map_err(|error| ChangesError::Journal(self.path.clone(), error))
    }
}

/// The owner of the journal, from its header.
fn owner(text: &str) -> (u32, String) {
    match text.lines().next().map(serde_json::from_str) {
        Some(Ok(Line::Header { pid, command, .. })) => (pid, command),
        _ => (0, "a process that is starting".to_owned()),
    }
}

/// The steps of a journal; empty if it is of another boot, whose changes ended with that boot.
fn steps(text: &str, boot_id: &str) -> Vec<Step> {
    // The process died while it wrote an incomplete line, so that step was not made.
    let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let mut lines = whole.map_while(|line| serde_json::from_str::<Line>(line).ok());
    match lines.next() {
        Some(Line::Header { format: FORMAT, boot_id: of_journal, .. }) if of_journal == boot_id => {}
        _ => return Vec::new(),
    }
    let mut steps: Vec<Step> = Vec::new();
    for line in lines {
        match line {
            Line::Header { .. } => {}
            Line::Step { path, old, new } => steps.push(Step { path, old, ours: new }),
            Line::Shows(shows) => {
                if let Some(step) = steps.last_mut() {
                    step.ours = shows;
                }
            }
        }
    }
    steps
}

/// The kernel's id of this boot; empty if unknown.
fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests;
