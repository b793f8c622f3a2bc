//! Deletes the files of a segment, in steps that can be repeated after a crash.
//!
//! ```text
//! 1  the index says that the segment is dropped, durably       (keeper)
//! 2  the collection names it no more                           (keeper)
//! 3  the data file, compressed or not, is cut, piece by piece, and removed
//! 4  the journal is removed
//! 5  the metadata are removed
//! ```
//!
//! Removing a large file at once can hold up the journal of a file system, and with it the segment that is being recorded.
//!
//! **Only own files.** The first record of the journal must have the id that the index states; where a crash removed the journal already, the
//! metadata must. Everything else is left as it is, and reported.

use std::path::Path;

use crate::compress::data_files;
use crate::journal::{Journal, RECORD_BYTES, Record, RecordingId};
use crate::recording::blocking::{BlockingStore, MOST_META};
use crate::recording::{Files, RecordingError};
use crate::recover::cut;
use crate::sigmf;
use crate::store::{FileId, Open, Store, StoreError, remove_if_there};

/// Bytes that are cut off a data file at once.
const PIECE: u64 = 1 << 30;

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

/// Whether the files at a base path are those of a segment that was being made: an empty data file, or zeros beside a journal without a block, and
/// no metadata.
pub(super) fn is_unmade(store: &mut dyn Store, base: &Path) -> Result<bool, RecordingError> {
    let files = Files::of(base);
    let mut size_of = |path: &Path| match store.open(path, Open::Mend) {
        Ok(file) => {
            let size = store.facts(file).size;
            store.close(file);
            Ok(Some(size))
        }
        Err(error) if error.errno.0 == libc::ENOENT => Ok(None),
        Err(error) => Err(error),
    };
    if size_of(&files.meta)?.is_some() {
        return Ok(false);
    }
    match (size_of(&files.journal)?, size_of(&files.data)?) {
        (Some(_), size) => {
            let bytes = BlockingStore::small(store)?.read_whole(&files.journal, MOST_META)?;
            let journal = Journal::read(&bytes);
            let mut records = journal.records.iter().chain(journal.beyond.iter().map(|(_, record)| record));
            if records.any(|record| matches!(record, Record::Block { .. })) {
                return Ok(false);
            }
            Ok(!cut::has_content(store, &files.data, &[(0, size.unwrap_or(0))])?)
        }
        (None, size) => Ok(size == Some(0)),
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

/// Removes the files of a base path, the metadata last.
pub(super) fn remove(store: &mut dyn Store, base: &Path) -> Result<(), StoreError> {
    let files = Files::of(base);
    // Again until nothing is there: `hairspring compress` may give a file another name meanwhile.
    let mut found = true;
    while std::mem::take(&mut found) {
        for path in data_files(base) {
            match store.open(&path, Open::Mend) {
                Ok(data) => {
                    found = true;
                    let cut = cut(store, data);
                    store.close(data);
                    cut.and_then(|()| remove_if_there(store, &path))?;
                }
                Err(error) if error.errno.0 == libc::ENOENT => {}
                Err(error) => return Err(error),
            }
        }
    }
    remove_if_there(store, &files.journal)?;
    remove_if_there(store, &files.meta)?;
    store.sync_folder(hairspring_file::folder_of(base))
}

/// Cuts a file to nothing, piece by piece.
fn cut(store: &mut dyn Store, data: FileId) -> Result<(), StoreError> {
    let mut length = store.facts(data).size;
    while length > 0 {
        length = length.saturating_sub(PIECE);
        store.truncate(data, length)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{USUAL_LEVEL, compress};
    use crate::recording::Recording;
    use crate::recording::testing::Spec;
    use crate::store::compressed::CompressedReads;
    use crate::store::scripted::{DiskScript, Pace, ScriptedDisk};

    #[test]
    fn compressed_data_and_what_an_interrupted_call_left_of_them_are_deleted_too() {
        let script = DiskScript { pace: Pace::Leaping, ..DiskScript::default() };
        let disk = ScriptedDisk::with(script, Spec::plain().make());
        let mut store = CompressedReads::above(disk.store(8));
        let base = Spec::base(0);
        let recording = Recording::open_in(&mut store, std::slice::from_ref(&base)).expect("opens");
        compress(&mut store, &recording, USUAL_LEVEL, &mut |_| {}).expect("compressed");
        for left in &data_files(&base)[..2] {
            store.put(left, b"half").expect("written");
        }
        assert_eq!((disk.names(), data_files(&base)[3] == Files::of(&base).data), (5, true));
        assert_eq!(delete(&mut store, &base, recording.about().id).expect("deleted"), Owner::Ours);
        assert_eq!(disk.names(), 0);
    }
}
