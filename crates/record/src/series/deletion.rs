//! Deletes the files of a segment, in steps that can be repeated after a crash.
//!
//! ```text
//! 1  the index records that the segment is dropped, durably    (keeper)
//! 2  the collection no longer names it                         (keeper)
//! 3  the metadata are removed, so that no reader opens the segment, and the data, compressed or not
//! 4  the journal is removed
//! ```
//!
//! Names are removed, never contents: another name of the same file, the target of a symbolic link, and a process that
//! has a file open or mapped keep all of it ([`Store::discard`]).
//!
//! **Only own files.** The first record of the journal must have the id that the index states, which is why the journal
//! goes last; without a journal the metadata must have it. All other files are left as they are, and reported.

use std::path::{Path, PathBuf};

use crate::compress::data_files;
use crate::recover::cut;
use hairspring_recording::journal::{RECORD_BYTES, Record, RecordingId};
use hairspring_recording::sigmf;
use hairspring_recording::sync_io::{BlockingStore, MOST_META};
use hairspring_recording::{Files, RecordingError};
use hairspring_store::{Open, Store, StoreError, remove_if_there};

/// The owner of the files at a base path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The recording in question.
    Ours,
    /// No metadata and no journal: no files, or unknown data.
    Nobody,
    /// Another recording.
    Another,
}

/// Finds out whether the files at a base path belong to this recording.
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

/// Whether the files at a base path belong to an unfinished segment: an empty data file, or zeros beside a
/// journal without a block, and no metadata.
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
            let mut has_block = false;
            BlockingStore::small(store)?.read_pieces(&files.journal, &mut |piece| {
                let records = piece.as_chunks::<RECORD_BYTES>().0.iter();
                has_block |= records
                    .filter_map(|slot| Record::decode(slot).ok())
                    .any(|(_, record)| matches!(record, Some(Record::Block { .. })));
                !has_block
            })?;
            Ok(!has_block && !cut::has_content(store, &files.data, &[(0, size.unwrap_or(0))])?)
        }
        (None, size) => Ok(size == Some(0)),
    }
}

/// Deletes the files of a segment in one directory. Returns their owner; only this recording's files are deleted.
///
/// # Errors
/// The system's refusal. The deletion can be repeated.
pub(super) fn delete(store: &mut dyn Store, base: &Path, id: RecordingId) -> Result<Owner, RecordingError> {
    delete_all(store, &[base.to_owned()], id).pop().unwrap_or(Ok(Owner::Nobody))
}

/// The same in several directories. Nothing is synced before the data are removed in all of them, so that for readers a
/// segment is either whole or gone.
pub(super) fn delete_all(
    store: &mut dyn Store,
    bases: &[PathBuf],
    id: RecordingId,
) -> Vec<Result<Owner, RecordingError>> {
    let owners: Vec<_> = bases.iter().map(|base| owner(&mut BlockingStore::small(store)?, base, id)).collect();
    let mut each = |found: Vec<Result<Owner, RecordingError>>,
                    act: fn(&mut dyn Store, &Path) -> Result<(), StoreError>| {
        let one = |(owner, base): (Result<Owner, RecordingError>, &PathBuf)| match owner? {
            Owner::Ours => act(store, base).map(|()| Owner::Ours).map_err(RecordingError::from),
            other => Ok(other),
        };
        found.into_iter().zip(bases).map(one).collect::<Vec<_>>()
    };
    let found = each(owners, remove_data);
    let found = each(found, sync_names);
    let found = each(found, |store, base| remove_if_there(store, &Files::of(base).journal));
    each(found, sync_names)
}

fn sync_names(store: &mut dyn Store, base: &Path) -> Result<(), StoreError> {
    store.sync_folder(hairspring_file::folder_of(base))
}

/// All files that a deletion removes, existing or not.
pub(super) fn files(base: &Path) -> impl Iterator<Item = PathBuf> {
    let Files { meta, journal, .. } = Files::of(base);
    [meta, journal].into_iter().chain(data_files(base))
}

/// Removes the files of a base path, the journal last.
pub(super) fn remove(store: &mut dyn Store, base: &Path) -> Result<(), StoreError> {
    remove_data(store, base)?;
    sync_names(store, base)?;
    remove_if_there(store, &Files::of(base).journal)?;
    sync_names(store, base)
}

/// Removes the metadata and the data of a base path.
fn remove_data(store: &mut dyn Store, base: &Path) -> Result<(), StoreError> {
    remove_if_there(store, &Files::of(base).meta)?;
    // Repeat until no file is left: `hairspring compress` may rename a file meanwhile.
    let mut found = true;
    while std::mem::take(&mut found) {
        for path in data_files(base) {
            match store.discard(&path) {
                Ok(()) => found = true,
                Err(error) if error.errno.0 == libc::ENOENT => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{USUAL_LEVEL, compress};
    use hairspring_recording::Recording;
    use hairspring_recording::testing::Spec;
    use hairspring_store::compressed::CompressedReads;
    use hairspring_store::scripted::{DiskScript, Pace, ScriptedDisk};

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
