//! Ownership of recordings: a process that changes a recording owns its files first, and opens them again afterwards.

use std::path::{Path, PathBuf};

use crate::compress::data_files;
use hairspring_recording::series::index_of;
use hairspring_recording::{Files, Recording, RecordingError};
use hairspring_store::Store;
use hairspring_store::owner::{OwnError, Owned, Ownership, Work};

/// The files of a member that an owner locks: the data, compressed or not, the journal and the metadata.
pub(crate) fn files_to_own(base: &Path) -> Vec<PathBuf> {
    let Files { meta, journal, .. } = Files::of(base);
    data_files(base).into_iter().chain([journal, meta]).collect()
}

/// Becomes the owner of a recording that was opened, and opens it again: another owner may have changed it meanwhile.
///
/// # Errors
/// A member lies outside the named folders, so it must not be changed. Another process owns it, or it cannot be owned:
/// see [`Ownership::take`].
pub(crate) fn owned(
    store: &mut dyn Store,
    recording: &Recording,
    work: Work,
) -> Result<(Recording, Ownership), RecordingError> {
    // Opened again by all bases, so each counts as named.
    recording.require_named()?;
    let bases: Vec<PathBuf> = recording.members().iter().map(|member| member.base.clone()).collect();
    let files: Vec<PathBuf> = bases.iter().flat_map(|base| files_to_own(base)).collect();
    let ownership = store.own(&files, work)?;
    Ok((Recording::open_in(store, &bases)?, ownership))
}

/// Refuses files that another process owns.
///
/// # Errors
/// [`RecordingError::Owned`].
pub(crate) fn refuse_owned(store: &dyn Store, files: &[PathBuf]) -> Result<(), RecordingError> {
    let owned = files.iter().find_map(|file| Some(Owned { file: file.clone(), holder: store.holder(file)? }));
    owned.map_or(Ok(()), |owned| Err(OwnError::Owned(owned).into()))
}

/// Keeps other processes from changing a recording during a copy: its members, or the index of a series, which can have
/// too many segments.
///
/// # Errors
/// Another process changes it. A recording that cannot be owned for another reason, such as a disk without locks, is
/// copied anyway.
pub(crate) fn shared(store: &mut dyn Store, recording: &Recording) -> Result<Option<Ownership>, RecordingError> {
    let files: Vec<PathBuf> = match recording.series_base() {
        Some(series) => vec![index_of(series)],
        None => recording.members().iter().flat_map(|member| files_to_own(&member.base)).collect(),
    };
    match store.own(&files, Work::Copies) {
        Ok(ownership) => Ok(Some(ownership)),
        Err(OwnError::Owned(owned)) => Err(OwnError::Owned(owned).into()),
        Err(_) => Ok(None),
    }
}
