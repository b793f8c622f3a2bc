//! The file of the index: how it is begun, and how records are appended.

use super::*;

/// Lets the made stores use this ownership, which lasts as long as the maker.
pub(crate) fn lending(mut stores: StoreMaker, ownership: &Ownership) -> StoreMaker {
    let ownership = ownership.clone();
    Box::new(move || {
        let mut store = stores();
        store.lend(&ownership);
        store
    })
}

/// Makes an index with its first record. `made` becomes 1 when the file was made.
pub(super) fn begin_index(
    store: &mut dyn Store,
    path: &Path,
    record: &IndexRecord,
    made: &mut usize,
) -> Result<(), RecordingError> {
    let file = store.open(path, Open::CreateJournal).map_err(|error| not_made(store, error))?;
    *made = 1;
    let mut disk = BlockingStore::small(store)?;
    disk.write(path, file, 0, &record.encode(0))?;
    disk.sync(path, file)?;
    Ok(disk.store.sync_folder(hairspring_file::folder_of(path))?)
}

/// Appends encoded records after the first `sequence` records, and makes them durable.
pub(super) fn append(store: &mut dyn Store, path: &Path, sequence: u64, encoded: &[u8]) -> Result<(), RecordingError> {
    let file = store.open(path, Open::Mend)?;
    let mut disk = BlockingStore::small(store)?;
    disk.write(path, file, sequence * INDEX_RECORD_BYTES as u64, encoded)?;
    disk.sync(path, file)
}
