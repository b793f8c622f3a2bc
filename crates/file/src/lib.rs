//! [`NewFile`]: a file that appears under its name only when all of it is on the disk.
//!
//! The file is written under a temporary name in the same folder, synced, and renamed. So a reader finds the old
//! contents or the new ones, never half of them, however the program ends. The name is durable only after its folder is
//! synced, too; this crate leaves that to callers that promise durability.
//!
//! A file that replaces another one keeps its owner, group, mode and extended attributes, so a private file stays
//! private, whichever process replaces it.

mod host;

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use host::Likeness;

/// A file without its final name. It is removed if it never gets the name.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    file: NamedTempFile<File>,
}

impl NewFile {
    /// Creates a temporary file for this name: with owner and permissions of the file that has the name, or with those
    /// of any new file.
    ///
    /// # Errors
    /// The system refused.
    pub fn begin(path: &Path) -> io::Result<Self> {
        let mut named = tempfile::Builder::new();
        named.prefix(".hairspring-").suffix(".tmp");
        let before = Likeness::of(path);
        let file = named.make_in(folder_of(path), |beside| match &before {
            None => OpenOptions::new().write(true).create_new(true).open(beside),
            Some(_) => host::create_private(beside),
        })?;
        before.map_or(Ok(()), |before| before.give(file.as_file()))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// The file, and the path that it has until it gets its name.
    pub fn unnamed(&self) -> (&File, &Path) {
        (self.file.as_file(), self.file.path())
    }

    /// Syncs the file and gives it its name. Another file of that name is replaced.
    ///
    /// # Errors
    /// The system refused. The other file is unchanged.
    pub fn replace(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist(&self.path).map(drop).map_err(|error| error.error)
    }

    /// Syncs the file and gives it its name, unless another file has that name.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`], or the system's error.
    pub fn publish(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        let Err(refused) = self.file.persist_noclobber(&self.path) else { return Ok(()) };
        // The file system can neither link nor rename without replacing: checks whether the name exists instead.
        match refused.error.kind() {
            ErrorKind::AlreadyExists => Err(refused.error),
            _ if self.path.symlink_metadata().is_ok() => Err(ErrorKind::AlreadyExists.into()),
            _ => refused.file.persist(&self.path).map(drop).map_err(|error| error.error),
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Not through the wrapper, which replaces the system's message.
        self.file.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for NewFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.as_file_mut().seek(to)
    }
}

/// Creates a file, which must not exist, with owner, group, mode and extended attributes of another one; with those of
/// any new file if there is no other one. The file cannot be opened before it has them. An owner that this process may
/// not give is left out; then the file grants no more access than the other one.
///
/// # Errors
/// The system refused; [`ErrorKind::AlreadyExists`].
pub fn create_like(path: &Path, other: &Path) -> io::Result<File> {
    let Some(likeness) = Likeness::of(other) else {
        return OpenOptions::new().read(true).write(true).create_new(true).open(path);
    };
    let file = host::create_private(path)?;
    // Removes a file that could not be made like the other one.
    likeness.give(&file).inspect_err(|_| drop(std::fs::remove_file(path)))?;
    Ok(file)
}

/// The folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(path: &Path) -> NewFile {
        let mut file = NewFile::begin(path).expect("begun");
        file.write_all(b"new").expect("written");
        file
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_name_has_the_old_content_until_all_of_the_new_one_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        std::fs::write(&path, "old").expect("written");
        let file = begun(&path);
        assert_eq!(std::fs::read(&path).expect("read"), b"old");
        file.replace().expect("replaced");
        assert_eq!(
            (std::fs::read(&path).expect("read"), names(folder.path())),
            (b"new".to_vec(), vec!["x".to_owned()])
        );
    }

    #[test]
    fn a_file_that_is_published_replaces_no_other_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        begun(&path).publish().expect("published");
        std::fs::write(&path, "other").expect("written");
        assert_eq!(begun(&path).publish().expect_err("refused").kind(), ErrorKind::AlreadyExists);
        drop(begun(&path));
        assert_eq!(
            (std::fs::read(&path).expect("read"), names(folder.path())),
            (b"other".to_vec(), vec!["x".to_owned()])
        );
    }

    #[test]
    fn a_file_in_the_working_folder_has_one() {
        assert_eq!((folder_of(Path::new("x")), folder_of(Path::new("a/x"))), (Path::new("."), Path::new("a")));
    }
}
