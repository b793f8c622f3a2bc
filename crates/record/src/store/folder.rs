//! Acts on names in folders that outlive a power cut.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::StoreError;

/// Names that are tried for a temporary file before giving up; only leftovers of a process with our number stand in the way.
const TRIES: u32 = 100;

/// Whether the names in a folder are durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Synced {
    Yes,
    /// The file system does not do this for folders.
    NotOffered,
}

/// The folder of a file.
pub(super) fn of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
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

/// Puts a whole file in place: temporary file, sync, rename, sync of the folder. After an error the old content is in place,
/// or, if only the last step failed, the new one; the temporary file is gone.
pub(super) fn put(path: &Path, content: &[u8]) -> Result<Synced, StoreError> {
    let folder = of(path);
    let failed = |error: io::Error| StoreError::new("write", path, &error);
    let (mut file, temporary) = temporary(folder).map_err(failed)?;
    let written =
        file.write_all(content).and_then(|()| file.sync_all()).and_then(|()| std::fs::rename(&temporary, path));
    if let Err(error) = written {
        // If it cannot be removed either, the first error says more.
        let _ = std::fs::remove_file(&temporary);
        return Err(failed(error));
    }
    sync(folder)
}

/// Removes a file.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    std::fs::remove_file(path).map_err(|error| StoreError::new("remove", path, &error))
}

fn temporary(folder: &Path) -> io::Result<(File, PathBuf)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut refused = io::Error::from_raw_os_error(libc::EEXIST);
    for _ in 0..TRIES {
        // Relaxed: only that the numbers differ matters.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".hairspring-{}-{number}.tmp", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => refused = error,
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}
