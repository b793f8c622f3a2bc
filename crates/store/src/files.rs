//! The open files of a store on real disks: how each was opened, its properties, and whether it fell back to the page
//! cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::memories::Span;
use super::owner::{self, Holder, Lent, OwnError, Ownership, PathFacts, Work};
use super::{Direct, Fallback, FileFacts, FileId, LEFT_OUT, Open, StoreError, discard, folder, system};

/// Block sizes that are used as alignment if the file system states none. Other sizes mean something else (2 MiB for a
/// tmpfs on huge pages, 1 MiB for a network), and [`ALIGNMENT`] is used instead.
const BELIEVED_BLOCKS: std::ops::RangeInclusive<u64> = 512..=65_536;

/// An alignment that suffices for every known disk.
const ALIGNMENT: u64 = 4096;

/// The most reasons in a report. Further files that fell back are not listed.
const REASONS: usize = 8;

#[derive(Debug)]
struct Entry {
    file: File,
    path: PathBuf,
    /// Whether its name was a symbolic link.
    linked: bool,
    direct: Direct,
    alignment: u64,
    memory_alignment: u64,
}

#[derive(Debug)]
pub(super) struct Files {
    /// By id; the ids of closed files are reused.
    entries: Vec<Option<Entry>>,
    may_be_direct: bool,
    /// Why files opened for direct I/O do without it, and whether there are such files.
    indirect: Vec<String>,
    asked_direct: bool,
    /// Why the names in a folder could not be made durable.
    folders_unsynced: Option<String>,
    /// The ownerships of the files that are made here.
    lent: Vec<Lent>,
}

impl Files {
    pub(super) fn new(may_be_direct: bool) -> Self {
        Self {
            entries: Vec::new(),
            may_be_direct,
            indirect: Vec::new(),
            asked_direct: false,
            folders_unsynced: None,
            lent: Vec::new(),
        }
    }

    pub(super) fn own(&mut self, files: &[PathBuf], work: Work) -> Result<Ownership, OwnError> {
        let ownership = Ownership::take(files, work)?;
        self.lend(&ownership);
        Ok(ownership)
    }

    pub(super) fn lend(&mut self, ownership: &Ownership) {
        self.lent.retain(|lent| !lent.is_over());
        self.lent.push(ownership.lent());
    }

    /// Opens a file, with direct I/O if requested and available. A new file is created without direct I/O first,
    /// because a file system that refuses direct I/O may do so after it has created the file.
    pub(super) fn open(&mut self, path: &Path, how: Open) -> Result<FileId, StoreError> {
        let (creates, writes) = match how {
            Open::CreateData | Open::CreateJournal => (true, true),
            Open::Mend => (false, true),
            Open::ReadData => (false, false),
        };
        let attempted = if creates { "create" } else { "open" };
        let failed = |error: io::Error| StoreError::new(attempted, path, &error);
        let file = OpenOptions::new().read(true).write(writes).create_new(creates).open(path).map_err(failed)?;
        if creates {
            self.adopt_new(path, &file)?;
        }
        self.take(file, path, how).map_err(failed)
    }

    /// Creates a file that has owner and permissions of another one.
    pub(super) fn create_like(&mut self, path: &Path, other: &Path, how: Open) -> Result<FileId, StoreError> {
        let failed = |error: io::Error| StoreError::new("create", path, &error);
        let file = hairspring_file::create_like(path, other).map_err(failed)?;
        self.adopt_new(path, &file)?;
        self.take(file, path, how).map_err(failed)
    }

    /// Lets the owners of this name take a new file; removes it if they cannot.
    fn adopt_new(&self, path: &Path, file: &File) -> Result<(), StoreError> {
        // It is still empty, and the first error is the one to report.
        adopt(&self.lent, path, file, path).inspect_err(|_| drop(folder::remove(path)))
    }

    /// Keeps an open file.
    fn take(&mut self, file: File, path: &Path, how: Open) -> io::Result<FileId> {
        if file.metadata()?.is_dir() {
            return Err(io::Error::from_raw_os_error(libc::EISDIR));
        }
        let linked = how == Open::Mend && path.symlink_metadata()?.is_symlink();
        let mut entry =
            Entry { file, path: path.to_owned(), linked, direct: Direct::No, alignment: 1, memory_alignment: 1 };
        if matches!(how, Open::CreateData | Open::ReadData) {
            self.asked_direct = true;
            if self.may_be_direct
                && let Err(why) = entry.go_direct(how == Open::CreateData)
            {
                self.note_indirect(path, &why);
            }
        }
        let place = self.entries.iter().position(Option::is_none).unwrap_or(self.entries.len());
        if place == self.entries.len() {
            self.entries.push(None);
        }
        self.entries[place] = Some(entry);
        Ok(FileId(u32::try_from(place).unwrap_or(u32::MAX)))
    }

    /// # Panics
    /// If the file is not this store's.
    pub(super) fn file(&self, id: FileId) -> &File {
        &self.entry(id).file
    }

    fn entry(&self, id: FileId) -> &Entry {
        self.entries.get(id.0 as usize).and_then(Option::as_ref).expect("a file that this store has opened")
    }

    /// # Panics
    /// If the file is not this store's.
    pub(super) fn close(&mut self, id: FileId) {
        let _ = self.entry(id);
        self.entries[id.0 as usize] = None;
    }

    pub(super) fn facts(&self, id: FileId) -> FileFacts {
        let Entry { file, linked, direct, alignment, memory_alignment, .. } = self.entry(id);
        let (size, links) = file.metadata().map_or((0, 1), |metadata| (metadata.len(), metadata.nlink()));
        let (alignment, memory_alignment, direct) = (*alignment, *memory_alignment, *direct);
        FileFacts { size, alignment, memory_alignment, direct, shared: *linked || links > 1 }
    }

    /// The process outside these ownerships that owns a file.
    pub(super) fn holder(&self, path: &Path) -> Option<Holder> {
        let is_ours = self.lent.iter().any(|lent| lent.has(path));
        (!is_ours).then(|| owner::holder(path)).flatten()
    }

    pub(super) fn data_from(&self, id: FileId, at: u64) -> u64 {
        let file = self.file(id);
        match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(at)) {
            Ok(data) => data,
            // Only zeros follow.
            Err(rustix::io::Errno::NXIO) => file.metadata().map_or(at, |metadata| metadata.len().max(at)),
            Err(_) => at,
        }
    }

    pub(super) fn look_at(&self, id: FileId) -> Result<PathFacts, StoreError> {
        let entry = self.entry(id);
        let found = entry.file.metadata().map_err(|error| StoreError::new("look at", &entry.path, &error))?;
        Ok(PathFacts::from(&found))
    }

    pub(super) fn truncate(&self, id: FileId, length: u64) -> Result<(), StoreError> {
        let entry = self.entry(id);
        entry.file.set_len(length).map_err(|error| StoreError::new("set the length of", &entry.path, &error))
    }

    /// Whether a transfer is direct and aligned as the file system requires. Then `EINVAL` means that the file system
    /// does not support direct I/O after all.
    pub(super) fn should_work_directly(&self, id: FileId, at: u64, span: &Span<'_>) -> bool {
        let entry = self.entry(id);
        entry.direct != Direct::No
            && at.is_multiple_of(entry.alignment)
            && (span.length() as u64).is_multiple_of(entry.alignment)
            && (span.address() as u64).is_multiple_of(entry.memory_alignment)
    }

    /// Sends a file through the page cache from now on and notes the fallback. Returns whether the system allowed it.
    pub(super) fn leave_direct(&mut self, id: FileId) -> bool {
        let entry = self.entry(id);
        if entry.direct == Direct::No {
            return true;
        }
        if system::leave_direct(&entry.file).is_err() {
            return false;
        }
        let path = entry.path.clone();
        self.note_indirect(&path, "direct I/O was accepted when the file was opened and refused at a transfer");
        if let Some(entry) = &mut self.entries[id.0 as usize] {
            (entry.direct, entry.alignment, entry.memory_alignment) = (Direct::No, 1, 1);
        }
        true
    }

    fn note_indirect(&mut self, path: &Path, why: &str) {
        if self.indirect.len() < REASONS {
            self.indirect.push(format!("{}: {why}", path.display()));
        }
    }

    pub(super) fn put(&mut self, path: &Path, content: &[u8]) -> Result<(), StoreError> {
        let synced = folder::put(path, content, |file, at| adopt(&self.lent, path, file, at))?;
        self.note_folder(hairspring_file::folder_of(path), synced);
        Ok(())
    }

    pub(super) fn discard(&self, path: &Path) -> Result<(), StoreError> {
        discard::discard(path, || self.lent.iter().for_each(|lent| lent.is_gone(path)))
    }

    pub(super) fn remove(&self, path: &Path) -> Result<(), StoreError> {
        folder::remove(path)?;
        self.lent.iter().for_each(|lent| lent.is_gone(path));
        Ok(())
    }

    pub(super) fn rename(&self, from: &Path, to: &Path) -> Result<(), StoreError> {
        if !self.lent.is_empty() {
            let file = File::open(from).map_err(|error| StoreError::new("rename", from, &error))?;
            adopt(&self.lent, to, &file, from)?;
        }
        folder::rename(from, to)?;
        self.lent.iter().for_each(|lent| lent.is_gone(from));
        Ok(())
    }

    pub(super) fn sync_folder(&mut self, path: &Path) -> Result<(), StoreError> {
        let synced = folder::sync(path)?;
        self.note_folder(path, synced);
        Ok(())
    }

    fn note_folder(&mut self, path: &Path, synced: folder::Synced) {
        if synced == folder::Synced::NotOffered {
            self.folders_unsynced = Some(format!("{}: the file system does not offer it", path.display()));
        }
    }

    /// The fallbacks that concern files. A way that was not needed is left out.
    pub(super) fn fallbacks(&self) -> Vec<Fallback> {
        let mut fallbacks = Vec::new();
        if self.asked_direct {
            fallbacks.push(if !self.may_be_direct {
                Fallback::refused("direct", LEFT_OUT)
            } else if self.indirect.is_empty() {
                Fallback::used("direct")
            } else {
                Fallback::refused("direct", self.indirect.join("; "))
            });
        }
        fallbacks.extend(self.folders_unsynced.as_ref().map(|why| Fallback::refused("folder_sync", why.clone())));
        fallbacks
    }

    /// As a file system that accepts direct I/O, states no alignment, and refuses most transfers.
    #[cfg(test)]
    pub(super) fn claim_any_alignment(&mut self, id: FileId) {
        if let Some(entry) = &mut self.entries[id.0 as usize] {
            (entry.alignment, entry.memory_alignment) = (1, 1);
        }
    }
}

/// Lets each ownership that has this name take a new file, which is `at` another path until it gets the name.
fn adopt(lent: &[Lent], path: &Path, file: &File, at: &Path) -> Result<(), StoreError> {
    lent.iter().try_for_each(|lent| lent.adopt(path, file, at))
}

impl Entry {
    /// Opens the same file once more for direct I/O.
    fn go_direct(&mut self, writes: bool) -> Result<(), String> {
        let stated = system::direct_alignment(&self.file);
        if stated.is_some_and(|(memory, offset)| memory == 0 || offset == 0) {
            return Err("the file system states that it has no direct I/O for this file".to_owned());
        }
        let file = OpenOptions::new().read(true).write(writes).custom_flags(libc::O_DIRECT).open(&self.path);
        let file = file.map_err(|error| format!("opening for direct I/O: {error}"))?;
        let [before, after] = [&self.file, &file].map(|file| file.metadata().map(|found| (found.dev(), found.ino())));
        match (before, after) {
            (Ok(before), Ok(after)) if before == after => {}
            _ => return Err("somebody put another file in its place while it was being opened".to_owned()),
        }
        (self.memory_alignment, self.alignment) = stated.unwrap_or_else(|| {
            let block = file.metadata().map_or(ALIGNMENT, |found| found.blksize());
            let believed = BELIEVED_BLOCKS.contains(&block) && block.is_power_of_two();
            let alignment = if believed { block } else { ALIGNMENT };
            (alignment, alignment)
        });
        self.direct = if stated.is_some() { Direct::Proven } else { Direct::Claimed };
        self.file = file;
        Ok(())
    }
}
