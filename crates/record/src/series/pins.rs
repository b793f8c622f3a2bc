//! Pins: files beside a segment that keep retention from deleting it. Any program may make one; here a trigger or
//! `hairspring keep` does.
//!
//! **An accepted pin holds.** Retention enters the deletion of a segment into the index, and checks for pins
//! afterwards; if it finds one, it withdraws the entry. [`keep`] makes the pin, and reads the index afterwards. So at
//! least one of the two sees the other's action.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use hairspring_recording::journal::KeptFrames;
use hairspring_recording::series::present::numbered;
use hairspring_recording::series::{PIN_ENDING, pin_of, segment_base, segment_of};
use hairspring_recording::sync_io::BlockingStore;
use hairspring_recording::{Files, RecordingError};
use hairspring_store::{Open, Store, StoreError};

/// The segments of a series that are pinned, in any directory.
pub(super) fn all(store: &mut dyn Store, bases: &[PathBuf]) -> Result<BTreeSet<u32>, StoreError> {
    let mut found = BTreeSet::new();
    for base in bases {
        let series = base.file_name().unwrap_or_default();
        store.names(hairspring_file::folder_of(base), &mut |name: &OsStr| {
            found.extend(numbered(series, name).filter(|(_, ending)| *ending == PIN_ENDING).map(|(number, _)| number));
        })?;
    }
    Ok(found)
}

/// The result of [`keep`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinned {
    /// The segment is kept.
    Kept,
    /// Retention is deleting the segment or has deleted it; there is no pin.
    Gone,
    /// Retention was still deleting the segment when the wait ended. The pin exists, and the segment is still whole.
    Undecided,
}

/// Pins a segment durably, and finds out whether the pin was in time. `pause` waits a moment, and returns `false` to
/// stop waiting. Blocks.
///
/// # Errors
/// The pin cannot be made, or the index cannot be read.
pub fn keep(store: &mut dyn Store, segment: &Path, pause: &mut dyn FnMut() -> bool) -> Result<Pinned, RecordingError> {
    let pin = pin_of(segment);
    let is_new = match store.open(&pin, Open::CreateJournal) {
        Ok(made) => {
            BlockingStore::small(store)?.sync(&pin, made)?;
            store.close(made);
            true
        }
        Err(error) if error.errno.0 == libc::EEXIST => false,
        Err(error) => return Err(error.into()),
    };
    store.sync_folder(hairspring_file::folder_of(segment))?;
    let series = segment_of(segment);
    loop {
        // Read the index first: an index that no longer lists the deletion was written after the files were gone.
        let is_dropped = match &series {
            Some((series, number)) => {
                let index = hairspring_recording::series::open::read_index(
                    &mut BlockingStore::small(store)?,
                    &hairspring_recording::series::index_of(series),
                )?;
                index.is_some_and(|index| index.dropped.contains_key(number))
            }
            None => false,
        };
        // The metadata are the first file of a segment to be removed.
        let is_there = match store.open(&Files::of(segment).meta, Open::ReadData) {
            Ok(meta) => {
                store.close(meta);
                true
            }
            Err(error) if error.errno.0 == libc::ENOENT => false,
            Err(error) => return Err(error.into()),
        };
        match (is_there, is_dropped) {
            (true, false) => return Ok(Pinned::Kept),
            (false, _) => {
                if is_new {
                    hairspring_store::remove_if_there(store, &pin)?;
                }
                return Ok(Pinned::Gone);
            }
            (true, true) if !pause() => return Ok(Pinned::Undecided),
            (true, true) => {}
        }
    }
}

/// Whether a segment is pinned in any directory. A file that exists but cannot be opened counts as a pin.
pub(super) fn is_pinned(store: &mut dyn Store, bases: &[PathBuf], number: u32) -> bool {
    bases.iter().any(|base| match store.open(&pin_of(&segment_base(base, number)), Open::Mend) {
        Ok(pin) => {
            store.close(pin);
            true
        }
        Err(error) => error.errno.0 != libc::ENOENT,
    })
}

/// Pins a segment durably, in the first directory that takes the file. The file states the reason.
pub(super) fn pin(store: &mut dyn Store, bases: &[PathBuf], number: u32, why: KeptFrames) -> Result<(), StoreError> {
    if is_pinned(store, bases, number) {
        return Ok(());
    }
    let KeptFrames { first, end } = why;
    let text = format!("a trigger: frames {} to {}\n", first.0, end.0.saturating_sub(1));
    let mut done = Ok(());
    for base in bases {
        done = store.put(&pin_of(&segment_base(base, number)), text.as_bytes());
        if done.is_ok() {
            break;
        }
    }
    done
}
