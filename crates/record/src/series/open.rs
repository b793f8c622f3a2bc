//! Opens a series as one recording: its segments, one after the other.
//!
//! Readers see one stream of blocks. Frames are counted through the segments anyway; positions and numbers of blocks are counted on. What is
//! between two segments because retention deleted it is a skip; a segment that is missing without that is a fault.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::index::{INDEX_RECORD_BYTES, SeriesIndex};
use super::{base_of, collection_of, index_of, segment_base};
use crate::recording::blocking::BlockingStore;
use crate::recording::{Chain, Files, Recording, RecordingError};
use crate::store::{Open, Store};
use hairspring_ring::units::{Bytes, Frames};

/// Largest index that is read: some four million records.
const MOST_INDEX: Bytes = Bytes::mib(256);
/// Numbers without a segment after which no further ones are looked for behind the end of the index.
const MOST_MISSING: u32 = 2;

/// A segment that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSegment {
    /// Its number.
    pub number: u32,
    /// Its base path in each directory that was named.
    pub bases: Vec<PathBuf>,
}

/// A series whose index was read and whose segments were looked for.
#[derive(Clone, Debug)]
pub struct FoundSeries {
    /// The base path of the series.
    pub base: PathBuf,
    /// What the index says.
    pub index: SeriesIndex,
    /// The segments that are there, by number. The last may be one that was made in advance and never used.
    pub segments: Vec<FoundSegment>,
    /// Segments that the index lists and that are not there.
    pub missing: Vec<u32>,
}

/// Looks for a series under a name; `None` if there is none. A name is the base path of a series, its index, its collection, or one of
/// several base paths in the directories of a stripe.
///
/// # Errors
/// The index or a directory cannot be read.
pub fn find(store: &mut dyn Store, path: &Path) -> Result<Option<FoundSeries>, RecordingError> {
    let base = base_of(path);
    let named_by_ending = base != path;
    let has_index = exists(store, &index_of(&base))?;
    if !has_index && !exists(store, &collection_of(&base))? {
        return if named_by_ending { Err(RecordingError::NotFound(base)) } else { Ok(None) };
    }
    let index = match has_index {
        true => read_index(&mut BlockingStore::small(store)?, &index_of(&base))?.unwrap_or_default(),
        false => SeriesIndex::default(),
    };
    let mut numbers: BTreeMap<u32, bool> = index.segments.keys().map(|number| (*number, true)).collect();
    // What was begun after the last record of the index.
    let (mut next, mut missing) = (index.next, 0);
    while missing < MOST_MISSING {
        if exists(store, &Files::of(&segment_base(&base, next)).meta)? {
            numbers.insert(next, false);
            missing = 0;
        } else {
            missing += 1;
        }
        next += 1;
    }
    if numbers.is_empty() {
        // Without a readable index the directory tells.
        numbers = listed(&base).into_iter().map(|number| (number, false)).collect();
    }
    let (mut segments, mut absent) = (Vec::new(), Vec::new());
    for number in numbers.into_keys() {
        if index.dropped.contains_key(&number) {
            continue;
        }
        let segment = segment_base(&base, number);
        if exists(store, &Files::of(&segment).meta)? {
            segments.push(FoundSegment { number, bases: vec![segment] });
        } else {
            absent.push(number);
        }
    }
    Ok(Some(FoundSeries { base, index, segments, missing: absent }))
}

/// Reads an index; `None` if there is none.
pub(super) fn read_index(disk: &mut BlockingStore<'_>, path: &Path) -> Result<Option<SeriesIndex>, RecordingError> {
    match disk.read_whole(path, MOST_INDEX) {
        Ok(bytes) if bytes.len() < INDEX_RECORD_BYTES => Ok(Some(SeriesIndex::default())),
        Ok(bytes) => Ok(Some(SeriesIndex::read(&bytes))),
        Err(RecordingError::Store(error)) if error.errno.0 == libc::ENOENT => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn exists(store: &mut dyn Store, path: &Path) -> Result<bool, RecordingError> {
    match store.open(path, Open::Mend) {
        Ok(file) => {
            store.close(file);
            Ok(true)
        }
        // The ending of a series is longer than those of a recording.
        Err(error) if matches!(error.errno.0, libc::ENOENT | libc::ENAMETOOLONG) => Ok(false),
        // A file that may not be written is there.
        Err(error) if matches!(error.errno.0, libc::EACCES | libc::EROFS | libc::EPERM) => Ok(path.exists()),
        Err(error) => Err(error.into()),
    }
}

/// The numbers of the segments in a directory of this machine.
fn listed(base: &Path) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(hairspring_file::folder_of(base)) else { return Vec::new() };
    let names = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let metas = names.filter(|path| path.to_str().is_some_and(|text| text.ends_with(".sigmf-meta")));
    let mut numbers: Vec<u32> = metas
        .filter_map(|path| super::segment_of(&Files::base_of(&path)))
        .filter(|(series, _)| series.file_name() == base.file_name())
        .map(|(_, number)| number)
        .collect();
    numbers.sort_unstable();
    numbers
}

impl Recording {
    /// Opens a recording as [`Recording::open_in`] does; of a series only the segment that holds a frame and those behind it, so that the
    /// cost does not grow with the length of the past.
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

impl FoundSeries {
    /// Leaves out the segments that end before a frame, by the index.
    fn leave_out_before(&mut self, frame: Frames) {
        let before = self.index.segments.iter().filter(|(_, listed)| listed.first <= frame);
        let last = self.segments.last().map_or(0, |segment| segment.number);
        let from = before.map(|(number, _)| *number).max().unwrap_or_default().min(last);
        self.segments.retain(|segment| segment.number >= from);
        self.missing.retain(|number| *number >= from);
    }

    /// Opens each segment. One that was made in advance and never used is left out.
    ///
    /// # Errors
    /// A segment cannot be opened.
    pub fn open_all(&self, store: &mut dyn Store) -> Result<Vec<Recording>, RecordingError> {
        let each = self.open_each(store)?;
        let used = each.into_iter().filter(|(_, recording)| first_of(recording).is_some());
        Ok(used.map(|(_, recording)| recording).collect())
    }

    /// Opens each segment, also one that was made in advance and never used: that one has no first frame.
    pub(super) fn open_each(&self, store: &mut dyn Store) -> Result<Vec<(u32, Recording)>, RecordingError> {
        let mut all = Vec::with_capacity(self.segments.len());
        for segment in &self.segments {
            let recording = Recording::open_in(store, &segment.bases)?;
            let of = recording.about().series.as_ref();
            let ours = of.is_some_and(|of| self.index.id.is_none_or(|id| id == of.id) && of.number == segment.number);
            if !ours {
                return Err(RecordingError::NotTogether(self.base.clone(), segment.bases[0].clone()));
            }
            all.push((segment.number, recording));
        }
        self.tell_neighbours(&mut all);
        Ok(all)
    }

    /// Tells each segment what its neighbours and the index know of it. One that was cut off ends where the next one begins. One was used if a
    /// later one was begun, though a power cut may have taken the beginning of its journal: then it begins where the index says, or where the
    /// one before it was cut, and all its frames are lost.
    fn tell_neighbours(&self, all: &mut [(u32, Recording)]) {
        let mut next = None;
        for place in (0..all.len()).rev() {
            let (earlier, rest) = all.split_at_mut(place);
            let (number, recording) = &mut rest[0];
            if let Some(next) = next {
                let listed = self.index.segments.get(number).filter(|listed| listed.id == recording.about().id);
                let before = earlier.last().map(|(_, before)| before);
                let first = listed.map(|listed| listed.first).or(before.and_then(Recording::cut)).unwrap_or(next);
                recording.begins_at(first, before.map(|before| before.about().id));
                recording.ends_before(next);
            }
            next = first_of(recording).or(next);
        }
    }

    /// Opens the series as one recording.
    ///
    /// # Errors
    /// There is no segment, one cannot be opened, or they do not fit together.
    pub fn open(&self, store: &mut dyn Store) -> Result<Recording, RecordingError> {
        let segments = self.open_all(store)?;
        let missing = self.missing.iter().map(|number| {
            let base = segment_base(&self.base, *number);
            format!("{} is missing: the index lists it, and retention did not delete it", base.display())
        });
        Chain { base: &self.base, faults: missing.collect(), missing: &self.missing }.join(segments)
    }
}

/// The first frame of a segment; `None` if it was made in advance and never used.
pub(super) fn first_of(segment: &Recording) -> Option<Frames> {
    segment.about().series.as_ref()?.first
}
