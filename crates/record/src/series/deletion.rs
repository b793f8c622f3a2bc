//! Deletes the files of a segment, in steps that can be repeated after a crash.
//!
//! ```text
//! 1  the index says that the segment is dropped, durably       (keeper)
//! 2  the collection names it no more                           (keeper)
//! 3  the data file is cut, piece by piece, and removed
//! 4  the journal is removed
//! 5  the metadata are removed
//! ```
//!
//! Removing a large file at once can hold up the journal of a file system, and with it the segment that is being recorded.
//!
//! **Only own files.** The first record of the journal must have the id that the index states; where a crash removed the journal already, the
//! metadata must. Everything else is left as it is, and reported.

use std::path::Path;

use crate::journal::{RECORD_BYTES, Record, RecordingId};
use crate::recording::blocking::BlockingStore;
use crate::recording::{Files, RecordingError};
use crate::sigmf;
use crate::store::{Open, Store, StoreError};
use hairspring_ring::units::Bytes;

/// Bytes that are cut off a data file at once.
const PIECE: u64 = 1 << 30;
/// Largest metadata of a segment that are read.
const MOST_META: Bytes = Bytes::gib(1);

/// Whose files lie at a base path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// Those of the recording that was looked for.
    Ours,
    /// No metadata and no journal: nothing, or another's data.
    Nobody,
    /// Another recording.
    Another,
}

/// Finds out whether the files at a base path are those of this recording.
pub(super) fn owner(disk: &mut BlockingStore<'_>, base: &Path, id: RecordingId) -> Result<Owner, RecordingError> {
    let files = Files::of(base);
    match disk.store.open(&files.journal, Open::Mend) {
        Ok(journal) => {
            let bytes = disk.read_at(&files.journal, journal, 0, RECORD_BYTES as u64)?;
            let first = bytes.first_chunk::<RECORD_BYTES>().and_then(|first| Record::decode(first).ok());
            return Ok(match first {
                Some((0, Some(Record::Start { id: found, .. }))) if found == id => Owner::Ours,
                _ => Owner::Another,
            });
        }
        Err(error) if error.errno.0 == libc::ENOENT => {}
        Err(error) => return Err(error.into()),
    }
    match disk.read_whole(&files.meta, MOST_META) {
        Ok(meta) => Ok(match sigmf::parse(&meta) {
            Ok((about, ..)) if about.id == id => Owner::Ours,
            _ => Owner::Another,
        }),
        Err(RecordingError::Store(error)) if error.errno.0 == libc::ENOENT => Ok(Owner::Nobody),
        Err(error) => Err(error),
    }
}

/// Deletes the files of a segment in one directory. Returns whether they were this recording's; others are not touched.
///
/// # Errors
/// The system's refusal. The deletion can be repeated.
pub(super) fn delete(store: &mut dyn Store, base: &Path, id: RecordingId) -> Result<Owner, RecordingError> {
    let mut disk = BlockingStore::small(store)?;
    let owner = owner(&mut disk, base, id)?;
    if owner == Owner::Ours {
        remove(disk.store, base)?;
    }
    Ok(owner)
}

/// Removes the three files of a base path, the metadata last.
pub(super) fn remove(store: &mut dyn Store, base: &Path) -> Result<(), StoreError> {
    let files = Files::of(base);
    match store.open(&files.data, Open::Mend) {
        Ok(data) => {
            let mut length = store.facts(data).size;
            while length > 0 {
                length = length.saturating_sub(PIECE);
                store.truncate(data, length)?;
            }
            store.remove(&files.data)?;
        }
        Err(error) if error.errno.0 == libc::ENOENT => {}
        Err(error) => return Err(error),
    }
    for file in [&files.journal, &files.meta] {
        match store.remove(file) {
            Err(error) if error.errno.0 != libc::ENOENT => return Err(error),
            _ => {}
        }
    }
    store.sync_folder(hairspring_file::folder_of(base))
}
