//! Opens a series as one recording: its segments, one after the other.
//!
//! Readers see one stream of blocks. Frames are counted through the segments anyway; positions and numbers of blocks
//! continue. Frames between two segments that retention deleted are a skip; a segment that is missing for another
//! reason is a fault.
//!
//! **The existing segments** follow from the names in the folder. The index lists which of them were deleted, and which
//! are missing. So a series is whole without its index, or with one that lacks records. A file is not accepted as a
//! segment by its name alone: its metadata must state the series.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::index::{INDEX_RECORD_BYTES, SeriesIndex};
use super::present::{Present, files_of};
use super::{base_of, collection_of, index_of, segment_base};
use crate::sync_io::BlockingStore;
use crate::{Chain, Files, Recording, RecordingError, open_one};
use hairspring_ring::units::{Bytes, Frames};
use hairspring_store::owner::Holder;
use hairspring_store::{Open, Store, StoreError};

/// Largest index that is read: some four million records.
const MOST_INDEX: Bytes = Bytes::mib(256);

/// A segment that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSegment {
    /// Its number.
    pub number: u32,
    /// Its base path in each directory that was named.
    pub bases: Vec<PathBuf>,
}

/// A series with its index and the segments that were found.
#[derive(Clone, Debug)]
pub struct FoundSeries {
    /// The base path of the series.
    pub base: PathBuf,
    /// The contents of the index.
    pub index: SeriesIndex,
    /// The existing segments, by number. The last may be one that was made in advance and never used.
    pub segments: Vec<FoundSegment>,
    /// Segments that the index lists and that do not exist.
    pub missing: Vec<u32>,
    /// The numbers after those of the index for which any file exists.
    pub in_use: BTreeSet<u32>,
    /// The owner of the index before it was read.
    pub holder: Option<Holder>,
}

/// Looks for a series under a name; `None` if there is none. A name is the base path of a series, its index, its
/// collection, or one of several base paths in the directories of a stripe.
///
/// # Errors
/// The index or a directory cannot be read.
pub fn find(store: &mut dyn Store, path: &Path) -> Result<Option<FoundSeries>, RecordingError> {
    let base = base_of(path);
    let named_by_ending = base != path;
    let has_index = exists(store, &index_of(&base))?;
    if !has_index && !exists(store, &collection_of(&base))? && !is_without_index(store, &base)? {
        return if named_by_ending { Err(RecordingError::NotFound(base)) } else { Ok(None) };
    }
    let holder = store.holder(&index_of(&base));
    let read = |store: &mut dyn Store| {
        let index = read_index(&mut BlockingStore::small(store)?, &index_of(&base));
        index.map(Option::unwrap_or_default)
    };
    let mut index = read(store)?;
    let present = files_of(store, &base)?;
    let is_absent = |number: &u32| !present.get(number).is_some_and(|files| files.meta);
    let mut missing: Vec<u32> = index.segments.keys().copied().filter(is_absent).collect();
    if !missing.is_empty() {
        // Retention may have deleted some since the index was read.
        index = read(store)?;
        missing.retain(|number| index.segments.contains_key(number));
    }
    // A segment that was pinned before its first file was removed is not deleted, even if a crash came between.
    let is_there = |number: u32, files: &Present| files.meta && (files.pin || !index.dropped.contains_key(&number));
    let there = present.iter().filter(|(number, files)| is_there(**number, files));
    let segments = there.map(|(number, _)| FoundSegment { number: *number, bases: vec![segment_base(&base, *number)] });
    let segments = segments.collect();
    let is_in_use = |files: &Present| files.meta || files.journal || files.other;
    let in_use = present.range(index.next..).filter(|(_, files)| is_in_use(files)).map(|(number, _)| *number).collect();
    Ok(Some(FoundSeries { base, index, segments, missing, in_use, holder }))
}

/// Whether segments exist under a name although index and collection are gone, and no recording of that name exists.
fn is_without_index(store: &mut dyn Store, base: &Path) -> Result<bool, RecordingError> {
    let Some(series) = base.file_name() else { return Ok(false) };
    if exists(store, &Files::of(base).meta)? {
        return Ok(false);
    }
    let Ok(present) = files_of(store, base) else { return Ok(false) };
    let mut metas = present.iter().filter(|(_, files)| files.meta).map(|(number, _)| *number);
    let is_one = |number| {
        let segment = Recording::open_in(store, &[segment_base(base, number)]).ok()?;
        let of = segment.about().series.as_ref()?;
        (of.number == number && OsStr::new(&of.name) == series).then_some(())
    };
    Ok(metas.find_map(is_one).is_some())
}

/// Reads an index; `None` if there is none.
pub fn read_index(disk: &mut BlockingStore<'_>, path: &Path) -> Result<Option<SeriesIndex>, RecordingError> {
    match disk.read_whole(path, MOST_INDEX) {
        Ok(bytes) if bytes.len() < INDEX_RECORD_BYTES => Ok(Some(SeriesIndex::default())),
        Ok(bytes) => Ok(Some(SeriesIndex::read(&bytes))),
        Err(RecordingError::Store(error)) if error.errno.0 == libc::ENOENT => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a file exists. Blocks.
///
/// # Errors
/// The system call failed.
pub fn exists(store: &mut dyn Store, path: &Path) -> Result<bool, RecordingError> {
    match store.open(path, Open::Mend) {
        Ok(file) => {
            store.close(file);
            Ok(true)
        }
        // The ending of a series is longer than those of a recording.
        Err(error) if matches!(error.errno.0, libc::ENOENT | libc::ENAMETOOLONG) => Ok(false),
        // A file without write permission exists.
        Err(error) if matches!(error.errno.0, libc::EACCES | libc::EROFS | libc::EPERM) => Ok(path.exists()),
        Err(error) => Err(error.into()),
    }
}

impl Recording {
    /// Opens a recording like [`Recording::open_in`]; of a series only the segment that holds a frame and the later
    /// ones, so that the cost does not grow with the length of the past.
    ///
    /// # Errors
    /// As [`Recording::open_in`].
    pub fn open_since(store: &mut dyn Store, paths: &[PathBuf], frame: Frames) -> Result<Self, RecordingError> {
        match paths.first().map(|path| find(store, path)).transpose()?.flatten() {
            Some(mut series) => {
                series.leave_out_before(frame);
                series.open(store)
            }
            None => Self::open_in(store, paths),
        }
    }
}

/// The first file on this machine that belongs to a segment of this series with at least this number: data, metadata or
/// journal.
pub fn segment_file_from(base: &Path, from: u32) -> Option<PathBuf> {
    let entries = std::fs::read_dir(hairspring_file::folder_of(base)).ok()?;
    let prefix = [base.file_name()?.as_encoded_bytes(), b"-"].concat();
    let is_one = |name: &std::ffi::OsStr| {
        let rest = name.as_encoded_bytes().strip_prefix(&prefix[..])?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number: u32 = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
        let ending = &rest[digits..];
        let is_file = [&b".sigmf-data"[..], b".sigmf-meta", b".hairspring-journal"];
        // Compressed data have a further ending.
        Some(digits >= super::DIGITS && number >= from && is_file.iter().any(|one| ending.starts_with(one)))
    };
    let found = entries.flatten().filter(|entry| is_one(&entry.file_name()).unwrap_or(false));
    found.map(|entry| entry.path()).min()
}

impl FoundSeries {
    /// Leaves out the segments that end before a frame, by the index.
    fn leave_out_before(&mut self, frame: Frames) {
        let before = self.index.segments.iter().filter(|(_, listed)| listed.first <= frame);
        let last = self.segments.last().map_or(0, |segment| segment.number);
        let from = before.map(|(number, _)| *number).max().unwrap_or_default().min(last);
        self.segments.retain(|segment| segment.number >= from);
        self.missing.retain(|number| *number >= from);
    }

    /// Opens the segments with these numbers, also one that was made in advance and never used: that one has no first
    /// frame. Leaves out a segment that is not in the index and belongs to another series, and one that retention has
    /// deleted meanwhile.
    pub fn open_each(
        &self,
        store: &mut dyn Store,
        which: &mut dyn FnMut(u32) -> bool,
    ) -> Result<Vec<(u32, Recording)>, RecordingError> {
        let mut all: Vec<(u32, Recording)> = Vec::new();
        self.open_with(store, which, &mut |number, recording| {
            all.push((number, recording));
            Ok(())
        })?;
        self.tell_neighbours(&mut all);
        Ok(all)
    }

    /// Opens segments one after the other, and passes them on.
    fn open_with(
        &self,
        store: &mut dyn Store,
        which: &mut dyn FnMut(u32) -> bool,
        hand_on: &mut dyn FnMut(u32, Recording) -> Result<(), RecordingError>,
    ) -> Result<(), RecordingError> {
        // One buffer for all, because a store keeps it.
        let mut disk = BlockingStore::small(store)?;
        let mut series = self.index.id;
        for segment in self.segments.iter().filter(|segment| which(segment.number)) {
            let recording = match open_one(&mut disk, &segment.bases) {
                Ok(recording) => recording,
                Err(_) if self.was_deleted(&mut disk, segment)? => continue,
                Err(error) => return Err(error),
            };
            let of = recording.about().series.as_ref().filter(|of| of.number == segment.number).map(|of| of.id);
            let is_ours = of.is_some() && series.is_none_or(|id| Some(id) == of);
            if !is_ours && self.index.id.is_some() && !self.index.segments.contains_key(&segment.number) {
                continue;
            }
            if !is_ours {
                let (base, segment) = (self.base.clone(), segment.bases[0].clone());
                return Err(match self.index.id {
                    Some(_) => RecordingError::AnotherSeries(segment, index_of(&base)),
                    None => RecordingError::NotTogether(base, segment),
                });
            }
            series = of;
            hand_on(segment.number, recording)?;
        }
        Ok(())
    }

    /// Whether retention has deleted a segment since it was found.
    fn was_deleted(&self, disk: &mut BlockingStore<'_>, segment: &FoundSegment) -> Result<bool, RecordingError> {
        let is_gone = |error: StoreError| error.errno.0 == libc::ENOENT;
        if !disk.store.look(&Files::of(&segment.bases[0]).meta).is_err_and(is_gone) {
            return Ok(false);
        }
        let index = read_index(disk, &index_of(&self.base))?;
        Ok(index.is_some_and(|index| !index.segments.contains_key(&segment.number)))
    }

    /// Gives each segment the facts that its neighbours and the index have about it. A segment that was cut off ends
    /// where the next one begins. A segment was used if a later one was begun, though a power cut may have taken the
    /// beginning of its journal: then it begins at the frame in the index, or where the previous one was cut, and all
    /// its frames are lost.
    fn tell_neighbours(&self, all: &mut [(u32, Recording)]) {
        let mut next = None;
        for place in (0..all.len()).rev() {
            let (earlier, rest) = all.split_at_mut(place);
            let (number, recording) = &mut rest[0];
            self.tell(*number, recording, earlier.last().map(|(_, before)| before), next);
            next = first_of(recording).or(next);
        }
    }

    /// The same for one segment; `next` is the first frame of the next one.
    pub fn tell(&self, number: u32, recording: &mut Recording, before: Option<&Recording>, next: Option<Frames>) {
        let Some(next) = next else { return };
        let listed = self.index.segments.get(&number).filter(|listed| listed.id == recording.about().id);
        let first = listed.map(|listed| listed.first).or(before.and_then(Recording::cut)).unwrap_or(next);
        recording.begins_at(first, before.map(|before| before.about().id));
        recording.ends_before(next);
    }

    /// Opens the series as one recording.
    ///
    /// # Errors
    /// There is no segment, one cannot be opened, or they do not fit together.
    pub fn open(&self, store: &mut dyn Store) -> Result<Recording, RecordingError> {
        let damaged = self.index.damaged.map(|number| {
            let index = index_of(&self.base);
            format!("{}: damaged at record {number}; `hairspring recover` writes it anew", index.display())
        });
        let missing = self.missing.iter().map(|number| {
            let base = segment_base(&self.base, *number);
            format!("{} is missing: the index lists it, and does not say that retention deleted it", base.display())
        });
        let mut chain =
            Chain::new(&self.base, &self.missing, damaged.into_iter().chain(missing).collect(), self.segments.len());
        chain.holder = self.holder;
        // Segments that may still get facts from a later one: the last that was used, and those after it.
        let mut pending: Vec<(u32, Recording)> = Vec::new();
        self.open_with(store, &mut |_| true, &mut |number, recording| {
            let is_used = first_of(&recording).is_some();
            pending.push((number, recording));
            if is_used {
                self.tell_neighbours(&mut pending);
                let before = pending.len() - 1;
                pending.drain(..before).try_for_each(|(_, segment)| chain.append(segment))?;
            }
            Ok(())
        })?;
        let used = pending.into_iter().filter(|(_, recording)| first_of(recording).is_some());
        used.map(|(_, recording)| recording).try_for_each(|segment| chain.append(segment))?;
        chain.end()
    }
}

/// The first frame of a segment; `None` if it was made in advance and never used.
pub fn first_of(segment: &Recording) -> Option<Frames> {
    segment.about().series.as_ref()?.first
}
