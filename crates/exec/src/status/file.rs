//! Where the files are, how one is replaced, and how one is found.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::document::ExecStatus;
use super::error::StatusError;
use crate::system::sync::whole;

/// The folder of this user's files: in `XDG_RUNTIME_DIR`, else in shared memory. Both are in memory, and go with the
/// machine.
fn folder() -> io::Result<PathBuf> {
    if let Some(own) = std::env::var_os("XDG_RUNTIME_DIR").filter(|own| !own.is_empty()) {
        return Ok(PathBuf::from(own).join("hairspring").join("executives"));
    }
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    Ok(base.join(format!("hairspring-{}", user()?)).join("executives"))
}

/// The user of this process, by number.
fn user() -> io::Result<u32> {
    Ok(std::fs::metadata("/proc/self")?.uid())
}

/// Makes the folder for this user only: another user who could write there could put a link in the way, or a false
/// state.
fn make(folder: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let own = std::fs::symlink_metadata(folder)?;
    if own.is_dir() && own.uid() == user()? && own.mode() & 0o022 == 0 {
        return Ok(());
    }
    let what = format!("{} belongs to another user, or others may write there", folder.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
}

/// The files of this process. A file that an earlier process with the same number left is not among them.
static TAKEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The file of one executive. Dropped, it is removed.
pub(super) struct StatusFile {
    path: PathBuf,
    next: PathBuf,
}

impl StatusFile {
    /// A place for a file with this name, of this process.
    pub(super) fn create(name: &str) -> io::Result<Self> {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
        if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
            let what = "the name of a published executive has 1 to 64 letters, digits, - and _";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let folder = folder()?;
        make(&folder)?;
        remove_leftovers(&folder);
        let process = std::process::id();
        let path = folder.join(format!("{name}.{process}.json"));
        let mut taken = whole(&TAKEN);
        if taken.contains(&path) {
            let what = format!("this process publishes an executive {name} already");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        taken.push(path.clone());
        Ok(Self { next: folder.join(format!(".{name}.{process}.next")), path })
    }

    /// Replaces the content in one step. After an error the content is as it was; a reader sees its age.
    pub(super) fn replace(&self, status: &ExecStatus) -> io::Result<()> {
        std::fs::write(&self.next, status.to_json())?;
        std::fs::rename(&self.next, &self.path)
    }
}

impl Drop for StatusFile {
    fn drop(&mut self) {
        // The file may be gone already; the error has no recipient.
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(&self.next);
        whole(&TAKEN).retain(|taken| *taken != self.path);
    }
}

/// Removes the files of programs that were killed.
fn remove_leftovers(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        if PublishedStatus::of(&path).is_some_and(|left| !left.is_alive()) {
            // Another program may be faster.
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// The file of a published executive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublishedStatus {
    /// The name that it is published under.
    pub name: String,
    /// Its process.
    pub pid: u32,
    path: PathBuf,
}

impl PublishedStatus {
    /// The executive that is meant by a name, a process number, or the path of a file.
    ///
    /// # Errors
    /// No executive matches, or several do.
    pub fn find(which: &str) -> Result<Self, StatusError> {
        if which.contains('/') {
            let path = PathBuf::from(which);
            return Self::of(&path).ok_or_else(|| StatusError::NotPublished(which.to_owned()));
        }
        let pid: Option<u32> = which.parse().ok();
        let mut meant: Vec<Self> =
            published()?.into_iter().filter(|one| one.name == which || Some(one.pid) == pid).collect();
        match meant.len() {
            0 => Err(StatusError::NotPublished(which.to_owned())),
            1 => Ok(meant.remove(0)),
            _ => {
                let all: Vec<String> = meant.iter().map(|one| format!("{} (process {})", one.name, one.pid)).collect();
                Err(StatusError::Several(all.join(", ")))
            }
        }
    }

    fn of(path: &Path) -> Option<Self> {
        let (name, pid) = path.file_name()?.to_str()?.strip_suffix(".json")?.rsplit_once('.')?;
        let pid = pid.parse().ok()?;
        (!name.starts_with('.')).then(|| Self { name: name.to_owned(), pid, path: path.to_owned() })
    }

    /// Whether its process is still there. A program that was killed leaves its file.
    pub fn is_alive(&self) -> bool {
        Path::new(&format!("/proc/{}", self.pid)).exists()
    }

    /// Reads it.
    ///
    /// # Errors
    /// The executive is no longer published, or the file has another format.
    pub fn read(&self) -> Result<ExecStatus, StatusError> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => ExecStatus::from_json(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(StatusError::NotPublished(self.name.clone())),
            Err(error) => Err(StatusError::System(error)),
        }
    }
}

/// All published executives of this user whose processes are there, by name.
///
/// # Errors
/// The folder could not be read.
pub fn published() -> Result<Vec<PublishedStatus>, StatusError> {
    let entries = match std::fs::read_dir(folder().map_err(StatusError::System)?) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StatusError::System(error)),
    };
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut all: Vec<PublishedStatus> = paths.filter_map(|path| PublishedStatus::of(&path)).collect();
    all.retain(PublishedStatus::is_alive);
    all.sort_by(|one, other| (&one.name, one.pid).cmp(&(&other.name, other.pid)));
    Ok(all)
}
