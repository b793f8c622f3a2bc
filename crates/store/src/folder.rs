//! Creates, replaces and removes files so that the names survive a power cut.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use hairspring_file::{NewFile, folder_of};

use super::StoreError;
use super::owner::PathFacts;

/// Whether the names in a folder are durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Synced {
    Yes,
    /// The file system cannot sync folders.
    NotOffered,
}

/// Makes the names in a folder durable.
pub(super) fn sync(folder: &Path) -> Result<Synced, StoreError> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    match File::open(folder).and_then(|file| file.sync_all()) {
        Ok(()) => Ok(Synced::Yes),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP)) => Ok(Synced::NotOffered),
        Err(error) => Err(StoreError::new("make durable the names in", folder, &error)),
    }
}

/// Puts a whole file in place, and makes its name durable. `take` gets the file before it has its name. After an error
/// the file has its old content, or the new one if only the last step failed.
pub(super) fn put(
    path: &Path,
    content: &[u8],
    take: impl FnOnce(&File, &Path) -> Result<(), StoreError>,
) -> Result<Synced, StoreError> {
    let failed = |error: io::Error| StoreError::new("write", path, &error);
    let mut file = NewFile::begin(path).map_err(failed)?;
    file.write_all(content).map_err(failed)?;
    let (unnamed, at) = file.unnamed();
    take(unnamed, at)?;
    file.replace().map_err(failed)?;
    sync(folder_of(path))
}

/// Device, inode, links and size of the file at a path.
pub(super) fn look(path: &Path) -> Result<PathFacts, StoreError> {
    std::fs::metadata(path)
        .map(|found| PathFacts::from(&found))
        .map_err(|error| StoreError::new("look at", path, &error))
}

/// Removes a file.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    std::fs::remove_file(path).map_err(|error| StoreError::new("remove", path, &error))
}

/// Calls a function with the name of each file in a folder.
pub(super) fn names(folder: &Path, each: &mut dyn FnMut(&OsStr)) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| StoreError::new("list", folder, &error);
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        each(&entry.map_err(failed)?.file_name());
    }
    Ok(())
}

/// Gives a file another name.
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    std::fs::rename(from, to).map_err(|error| StoreError::new("rename", from, &error))
}
