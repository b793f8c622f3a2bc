//! Creates, replaces and removes files so that the names survive a power cut.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use hairspring_file::{NewFile, folder_of};

use super::StoreError;

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

/// Puts a whole file in place, and makes its name durable. After an error the file has its old content, or the new one if only
/// the last step failed.
pub(super) fn put(path: &Path, content: &[u8]) -> Result<Synced, StoreError> {
    let written = NewFile::begin(path).and_then(|mut file| {
        file.write_all(content)?;
        file.replace()
    });
    written.map_err(|error| StoreError::new("write", path, &error))?;
    sync(folder_of(path))
}

/// Removes a file.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    std::fs::remove_file(path).map_err(|error| StoreError::new("remove", path, &error))
}

/// Gives a file another name.
pub(super) fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    std::fs::rename(from, to).map_err(|error| StoreError::new("rename", from, &error))
}
