//! [`Keeper`]: keeps the index and the collection of a series while it is recorded, and applies its retention.
//!
//! The keeper opens each file anew for each change and closes it again, so the number of open files does not grow with the segments. It holds a
//! short entry for each segment that is there. It works on a thread of its own, never on the recorder's.
//!
//! A change that fails is a trouble for the report, never the end of the recording: the segments are complete without index and collection,
//! and `recover` writes both anew.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;

use hairspring_machine::Nanos;
use hairspring_ring::units::{Bytes, Frames};

use super::collection::{self, CollectionEntry, MOST_STREAMS};
use super::deletion::{self, Owner};
use super::index::{INDEX_RECORD_BYTES, IndexRecord, SeriesIndex};
use super::retention::{Candidate, Due, Retention, RoomLeft};
use super::{collection_of, index_of, pins, segment_base};
use crate::journal::{KeptFrames, RecordingId};
use crate::ledger::RecordingVerdict;
use crate::recording::blocking::{BlockingStore, MOST_META};
use crate::recording::{Files, RecordingError};
use crate::store::{Open, Store};
use crate::verify::sha512;

/// Makes a store for one change.
pub type StoreMaker = Box<dyn FnMut() -> Box<dyn Store> + Send>;

/// Most troubles that are kept in words.
const MOST_TROUBLES: usize = 16;
/// The index is shortened when it has this many more records than it needs.
const MOST_SPARE: u64 = 1024;

/// A closed segment.
#[derive(Clone, Debug)]
struct Kept {
    number: u32,
    id: RecordingId,
    stored_bytes: u64,
    ended: Nanos,
    /// Whether this run of the recorder stored it.
    ours: bool,
}

/// A segment that was closed, as the index describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentEnd {
    /// Its number.
    pub number: u32,
    /// The id of its recording.
    pub id: RecordingId,
    /// Its first frame.
    pub first: Frames,
    /// The first frame that is not of it.
    pub end: Frames,
    /// Bytes in its files.
    pub stored_bytes: u64,
    /// Bytes in its gaps.
    pub lost_bytes: u64,
    /// Its verdict.
    pub verdict: RecordingVerdict,
    /// When it was closed (`CLOCK_REALTIME`).
    pub at: Nanos,
}

/// Frames that a trigger asks to keep, and the segment that was recorded then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepWish {
    /// The frames.
    pub kept: KeptFrames,
    /// The number of the present segment,
    pub number: u32,
    /// and its first frame.
    pub first: Frames,
}

/// What retention deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Segments of this run,
    pub segments: u32,
    /// and their bytes.
    pub bytes: u64,
}

/// Keeps a series in order.
pub struct Keeper {
    /// The base path of the series in each target directory.
    bases: Vec<PathBuf>,
    index: SeriesIndex,
    name: String,
    retention: Retention,
    stores: StoreMaker,
    /// The closed segments, the oldest first.
    kept: VecDeque<Kept>,
    /// The newest closed segments in each directory, for its collection.
    streams: Vec<VecDeque<CollectionEntry>>,
    /// Whether segments are being deleted to make room.
    making_room: bool,
    dropped: Dropped,
    /// What a trigger asks to keep and may reach into segments to come.
    wanted: Vec<KeptFrames>,
    /// The newest segment and its first frame, though the index may not have it yet.
    present: Option<(u32, Frames)>,
    /// Segments that this run has pinned, and those for which that failed.
    pinned: BTreeSet<u32>,
    unpinned: BTreeSet<u32>,
    troubles: Vec<String>,
}

impl Keeper {
    /// Begins the index of a new series. Blocks.
    ///
    /// # Errors
    /// An index of this name exists, or it cannot be written.
    pub fn begin(
        bases: Vec<PathBuf>,
        id: RecordingId,
        retention: Retention,
        started: Nanos,
        mut stores: StoreMaker,
    ) -> Result<Self, RecordingError> {
        let members = u16::try_from(bases.len()).unwrap_or(u16::MAX);
        let record = IndexRecord::Series { id, members, started };
        for base in &bases {
            let (mut store, path) = (stores(), index_of(base));
            let file = store.open(&path, Open::CreateJournal)?;
            let mut disk = BlockingStore::small(&mut *store)?;
            disk.write(&path, file, 0, &record.encode(0))?;
            disk.sync(&path, file)?;
            disk.store.sync_folder(hairspring_file::folder_of(base))?;
        }
        let mut index = SeriesIndex { records: 1, ..SeriesIndex::default() };
        index.enter(record);
        Ok(Self::with(bases, index, retention, stores))
    }

    /// Goes on with the index of a series that is resumed; its segments are in order. Blocks.
    ///
    /// # Errors
    /// The index cannot be written.
    pub fn resume(
        bases: Vec<PathBuf>,
        index: SeriesIndex,
        retention: Retention,
        stores: StoreMaker,
    ) -> Result<Self, RecordingError> {
        let mut keeper = Self::with(bases, index, retention, stores);
        for (number, listed) in keeper.index.segments.clone() {
            if let Some(end) = listed.end {
                let kept = Kept {
                    number,
                    id: listed.id,
                    stored_bytes: listed.stored_bytes,
                    ended: listed.opened,
                    ours: false,
                };
                keeper.kept.push_back(kept);
                keeper.stream(number, listed.first, end)?;
            }
        }
        keeper.replace_index()?;
        keeper.put_collections()?;
        Ok(keeper)
    }

    fn with(bases: Vec<PathBuf>, index: SeriesIndex, retention: Retention, stores: StoreMaker) -> Self {
        let name = bases.first().and_then(|base| base.file_name()).unwrap_or_default().to_string_lossy().into_owned();
        let streams = vec![VecDeque::new(); bases.len()];
        Self {
            bases,
            index,
            name,
            retention,
            stores,
            kept: VecDeque::new(),
            streams,
            making_room: false,
            dropped: Dropped::default(),
            wanted: Vec::new(),
            present: None,
            pinned: BTreeSet::new(),
            unpinned: BTreeSet::new(),
            troubles: Vec::new(),
        }
    }

    /// A segment begins. Blocks.
    pub fn opened(&mut self, number: u32, id: RecordingId, first: Frames, at: Nanos) {
        self.enter(IndexRecord::Opened { number, id, first, at });
        self.present = self.present.max(Some((number, first)));
        self.pin_wanted();
    }

    /// Pins the segments that have any of these frames, those to come as soon as they begin. Blocks.
    pub fn keep(&mut self, wish: KeepWish) {
        let KeepWish { kept, number, first } = wish;
        self.present = self.present.max(Some((number, first)));
        match self.wanted.last_mut().filter(|last| kept.first <= last.end && last.first <= kept.end) {
            Some(last) => (last.first, last.end) = (last.first.min(kept.first), last.end.max(kept.end)),
            None => self.wanted.push(kept),
        }
        self.pin_wanted();
    }

    /// Pins what is there of what a trigger asked to keep, and forgets what no later segment can have.
    fn pin_wanted(&mut self) {
        let Some((present, present_first)) = self.present.filter(|_| !self.wanted.is_empty()) else { return };
        let oldest = self.wanted.iter().map(|kept| kept.first).min().unwrap_or_default();
        let listed = self.index.segments.range(..present).rev().map(|(number, listed)| (*number, listed.first));
        let (mut due, mut end) = (Vec::new(), Frames(u64::MAX));
        for (number, first) in std::iter::once((present, present_first)).chain(listed) {
            let why = self.wanted.iter().find(|kept| kept.first < end && kept.end > first);
            due.extend(why.filter(|_| !self.pinned.contains(&number)).map(|why| (number, *why)));
            if first <= oldest {
                break;
            }
            end = first;
        }
        for (number, why) in due {
            match pins::pin(&mut *(self.stores)(), &self.bases, number, why) {
                Ok(()) => {
                    self.pinned.insert(number);
                    self.unpinned.remove(&number);
                }
                Err(error) => {
                    self.unpinned.insert(number);
                    self.trouble(format!("failed to pin segment {number}: {error}; it is kept until this run ends"));
                }
            }
        }
        if self.unpinned.is_empty() {
            self.wanted.retain(|kept| kept.end > present_first);
        }
    }

    /// How many segments this run has pinned because of a trigger.
    pub fn pinned(&self) -> usize {
        self.pinned.len()
    }

    /// The series begins a new epoch. Blocks.
    pub fn resumed(&mut self, record: IndexRecord) {
        self.enter(record);
    }

    /// A segment is closed, its files are in order and durable. Blocks.
    pub fn closed(&mut self, segment: &SegmentEnd) {
        let SegmentEnd { number, id, first, end, stored_bytes, lost_bytes, verdict, at } = *segment;
        self.enter(IndexRecord::Closed { number, first, end, stored_bytes, lost_bytes, verdict });
        self.kept.push_back(Kept { number, id, stored_bytes, ended: at, ours: true });
        self.adopt_sums();
        let described = self.stream(number, first, end).and_then(|()| self.put_collections());
        self.note("describe the series", described);
    }

    /// Deletes what need not be kept any more. Returns how much room there is. Blocks, for long where much is deleted.
    pub fn sweep(&mut self, now: Nanos) -> RoomLeft {
        if !self.retention.is_set() {
            return RoomLeft::Enough;
        }
        loop {
            let free = self.retention.free.and_then(|_| self.free_bytes());
            let candidates = self.candidates();
            match self.retention.due(&candidates, now, free, self.making_room) {
                Due::Nothing => {
                    self.making_room = false;
                    let low = free.filter(|free| self.retention.is_low(*free));
                    return low.map_or(RoomLeft::Enough, RoomLeft::Low);
                }
                Due::Stop(free) => return RoomLeft::Short(free),
                Due::Delete(number) => {
                    self.making_room = free.is_some();
                    self.drop_segment(number, now);
                }
            }
        }
    }

    /// The least free space in the file systems of the targets; `None` if one does not state it.
    fn free_bytes(&mut self) -> Option<Bytes> {
        let store = (self.stores)();
        let free = self.bases.iter().map(|base| store.free_bytes(hairspring_file::folder_of(base)));
        free.collect::<Option<Vec<u64>>>()?.into_iter().min().map(Bytes)
    }

    /// The closed segments that nobody has pinned. It looks for pins only as far as a bound could reach.
    fn candidates(&mut self) -> Vec<Candidate> {
        let mut store = (self.stores)();
        let bases = &self.bases;
        let unpinned = &self.unpinned;
        let mut is_pinned = |number: u32| unpinned.contains(&number) || pins::is_pinned(&mut *store, bases, number);
        let one = |kept: &Kept| Candidate { number: kept.number, stored_bytes: kept.stored_bytes, ended: kept.ended };
        self.kept.iter().filter(|kept| !is_pinned(kept.number)).map(one).collect()
    }

    /// Deletes a segment, step by step.
    fn drop_segment(&mut self, number: u32, at: Nanos) {
        let Some(place) = self.kept.iter().position(|kept| kept.number == number) else { return };
        let Some(kept) = self.kept.remove(place) else { return };
        self.enter(IndexRecord::Dropped { number, stored_bytes: kept.stored_bytes, at });
        for streams in &mut self.streams {
            streams.retain(|stream| stream.number != number);
        }
        self.adopt_sums();
        let put = self.put_collections();
        self.note("describe the series", put);
        for base in self.bases.clone() {
            let segment = segment_base(&base, number);
            let mut store = (self.stores)();
            match deletion::delete(&mut *store, &segment, kept.id) {
                Ok(Owner::Ours | Owner::Nobody) => {}
                Ok(Owner::Another) => self.trouble(format!(
                    "{} belongs to another recording than the index says: it was not deleted",
                    segment.display()
                )),
                Err(error) => self.trouble(format!("failed to delete {}: {error}", segment.display())),
            }
        }
        if kept.ours {
            self.dropped.segments += 1;
            self.dropped.bytes += kept.stored_bytes;
        }
        let needed = 2 + 2 * self.index.segments.len() as u64;
        if self.index.records > needed + MOST_SPARE {
            let shortened = self.replace_index();
            self.note("shorten the index of the series", shortened);
        }
    }

    /// Appends a record to the index in every directory, durably.
    fn enter(&mut self, record: IndexRecord) {
        let sequence = self.index.records;
        self.index.enter(record);
        self.index.records += 1;
        for base in self.bases.clone() {
            let written = append(&mut *(self.stores)(), &index_of(&base), sequence, &record);
            self.note("write the index of the series", written);
        }
    }

    /// Replaces the index by a shorter one.
    fn replace_index(&mut self) -> Result<(), RecordingError> {
        let records = self.index.shortened();
        let bytes = SeriesIndex::encoded(&records);
        for base in &self.bases {
            (self.stores)().put(&index_of(base), &bytes)?;
        }
        self.index.records = records.len() as u64;
        self.index.dropped.clear();
        Ok(())
    }

    /// Notes what the collections say of a closed segment.
    fn stream(&mut self, number: u32, first: Frames, end: Frames) -> Result<(), RecordingError> {
        for (base, streams) in self.bases.iter().zip(&mut self.streams) {
            let segment = segment_base(base, number);
            let mut store = (self.stores)();
            let meta = BlockingStore::small(&mut *store)?.read_whole(&Files::of(&segment).meta, MOST_META)?;
            let name = segment.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let frames = end.0.saturating_sub(first.0);
            streams.push_back(CollectionEntry { name, number, first_frame: first.0, frames, hash: sha512(&meta) });
            if streams.len() > MOST_STREAMS {
                streams.pop_front();
            }
        }
        Ok(())
    }

    /// Takes over the sums of segments that were compressed meanwhile: their metadata were changed, and the collection with them.
    fn adopt_sums(&mut self) {
        for (base, streams) in self.bases.iter().zip(&mut self.streams) {
            let mut store = (self.stores)();
            let Ok(mut disk) = BlockingStore::small(&mut *store) else { continue };
            let mut stated = collection::stated_sums(&mut disk, base);
            for stream in streams {
                if let Some(sum) = stated.remove(&stream.name) {
                    stream.hash = sum;
                }
            }
        }
    }

    /// Puts the collections in place.
    fn put_collections(&mut self) -> Result<(), RecordingError> {
        let dropped = (self.index.dropped_segments, self.index.dropped_bytes);
        let id = self.index.id.unwrap_or_default();
        for (base, streams) in self.bases.iter().zip(&self.streams) {
            let bytes = collection::render(id, &self.name, streams.iter(), dropped);
            (self.stores)().put(&collection_of(base), &bytes)?;
        }
        Ok(())
    }

    fn note(&mut self, attempted: &str, result: Result<(), RecordingError>) {
        if let Err(error) = result {
            self.trouble(format!("failed to {attempted}: {error}"));
        }
    }

    fn trouble(&mut self, text: String) {
        if self.troubles.len() < MOST_TROUBLES && !self.troubles.contains(&text) {
            self.troubles.push(text);
        }
    }

    /// What went wrong, in words, since this was asked last.
    pub fn troubles(&mut self) -> Vec<String> {
        std::mem::take(&mut self.troubles)
    }

    /// What retention deleted of this run.
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// The index as it is now, and the maker of stores.
    pub(super) fn into_parts(self) -> (SeriesIndex, StoreMaker) {
        (self.index, self.stores)
    }

    /// The closed segments that are there.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// The base path of the series in each target directory.
    pub fn bases(&self) -> &[PathBuf] {
        &self.bases
    }

    /// The index and the collection in each target directory.
    pub fn files(&self) -> Vec<PathBuf> {
        self.bases.iter().flat_map(|base| [index_of(base), collection_of(base)]).collect()
    }
}

fn append(
    store: &mut dyn Store,
    path: &std::path::Path,
    sequence: u64,
    record: &IndexRecord,
) -> Result<(), RecordingError> {
    let file = store.open(path, Open::Mend)?;
    let mut disk = BlockingStore::small(store)?;
    disk.write(path, file, sequence * INDEX_RECORD_BYTES as u64, &record.encode(sequence))?;
    disk.sync(path, file)
}
