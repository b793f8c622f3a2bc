//! [`Keeper`]: keeps the index and the collection of a series while it is recorded, and applies its retention.
//!
//! The keeper opens each file for each change and closes it again, so the number of open files does not grow with
//! the segments. It holds a short entry for each existing segment. It works on a thread of its own, never on the
//! recorder's.
//!
//! A change that fails is a trouble for the report, never the end of the recording: the segments are complete without
//! index and collection, and `recover` writes both anew. After a record that could not be appended, the index is
//! replaced by a whole new one as soon as that is possible; until then nothing is deleted.
//!
//! **The cost of a deletion** does not depend on the number of segments `n`. Checking all pins and writing the
//! collection do, so each is done once per `n`/256 changes; the pin of a segment about to be deleted is always checked.

mod collections;
mod index_file;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use hairspring_machine::Nanos;
use hairspring_ring::units::{Bytes, Frames};

use super::ages::{Ages, End};
use super::collection::{CollectionEntry, MOST_STREAMS};
use super::deletion::{self, Owner};
use super::pins;
use super::retention::{Due, HeldSegments, Retention, RoomLeft};
use hairspring_recording::RecordingError;
use hairspring_recording::journal::{KeptFrames, RecordingId};
use hairspring_recording::ledger::RecordingVerdict;
use hairspring_recording::moment::ClockMoment;
use hairspring_recording::series::index::{INDEX_RECORD_BYTES, IndexRecord, Listed, SeriesIndex};
use hairspring_recording::series::present::files_of;
use hairspring_recording::series::{collection_of, index_of, segment_base};
use hairspring_recording::sync_io::BlockingStore;
use hairspring_store::owner::{OwnError, Owned, Ownership, Work};
use hairspring_store::{Errno, Open, Store, StoreError, not_made};

pub(crate) use index_file::lending;
use index_file::{append, begin_index};

/// Makes a store for one change.
pub type StoreMaker = Box<dyn FnMut() -> Box<dyn Store> + Send>;

/// The most troubles that are kept as text.
const MOST_TROUBLES: usize = 16;
/// The index is shortened when it has this many more records than it needs, or a quarter more.
const MOST_SPARE: u64 = 1024;
/// Work whose cost grows with the number of segments is done once per `segments / PART` changes.
const PART: usize = 256;

/// A closed segment.
#[derive(Clone, Debug)]
struct Kept {
    number: u32,
    id: RecordingId,
    stored_bytes: u64,
    /// The time of its end; `None` if unknown.
    ended: Option<End>,
    /// Whether it is pinned, as of the last check.
    pinned: bool,
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
    /// The first frame after it.
    pub end: Frames,
    /// Bytes in its files.
    pub stored_bytes: u64,
    /// Bytes in its gaps.
    pub lost_bytes: u64,
    /// Its verdict.
    pub verdict: RecordingVerdict,
    /// When it was closed.
    pub at: ClockMoment,
}

/// Frames that a trigger asks to keep, and the segment recorded at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepWish {
    /// The frames.
    pub kept: KeptFrames,
    /// The number of the present segment,
    pub number: u32,
    /// and its first frame.
    pub first: Frames,
}

/// The amount that retention deleted.
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
    /// How many of them are not pinned, and their bytes.
    held: HeldSegments,
    /// The time between their ends. Ends that the index does not state are included from the first sweep on.
    ages: Ages,
    ends_known: bool,
    /// Deletions since all pins were looked for.
    since_pins: usize,
    /// The newest closed segments in each directory, for its collection.
    streams: Vec<VecDeque<CollectionEntry>>,
    /// Changes that the collections do not have yet.
    unwritten: usize,
    /// `unwritten` at the last check whether the changes have stopped.
    unwritten_before: usize,
    /// Whether the index on some disk lacks a record.
    lacks_records: bool,
    /// Segments that another process owned when this sweep tried to delete them.
    busy: BTreeMap<u32, String>,
    /// Whether segments are being deleted to make room.
    making_room: bool,
    dropped: Dropped,
    /// Frames that a trigger asks to keep and that may reach into later segments.
    wanted: Vec<KeptFrames>,
    /// The newest segment and its first frame, even if the index does not have it yet.
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
    /// An index or a segment of this name exists, or the index cannot be written.
    pub fn begin(
        bases: Vec<PathBuf>,
        id: RecordingId,
        retention: Retention,
        started: Nanos,
        mut stores: StoreMaker,
    ) -> Result<Self, RecordingError> {
        for base in &bases {
            let present = files_of(&mut *stores(), base)?;
            if let Some((number, _)) = present.iter().find(|(_, files)| files.meta || files.journal) {
                let (attempted, path) =
                    ("begin a series, because there are files of".to_owned(), segment_base(base, *number));
                return Err(StoreError { attempted, path, errno: Errno(libc::EEXIST) }.into());
            }
        }
        let members = u16::try_from(bases.len()).unwrap_or(u16::MAX);
        let record = IndexRecord::Series { id, members, started };
        let indexes: Vec<PathBuf> = bases.iter().map(|base| index_of(base)).collect();
        let ownership = stores().own(&indexes, Work::Records)?;
        let mut stores = lending(stores, &ownership);
        for (place, path) in indexes.iter().enumerate() {
            let mut made = 0;
            let begun = begin_index(&mut *stores(), path, &record, &mut made);
            if begun.is_err() {
                // Leave behind nothing that was made here.
                indexes[..place + made].iter().for_each(|path| drop(stores().remove(path)));
            }
            begun?;
        }
        let mut index = SeriesIndex { records: 1, ..SeriesIndex::default() };
        index.enter(record);
        Ok(Self::with(bases, index, retention, stores))
    }

    /// Continues the index of a resumed series in order. The caller owns it, and `stores` use this ownership. Blocks.
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
        keeper.ends_known = false;
        let closed: Vec<(u32, Listed)> =
            keeper.index.segments.iter().map(|(number, listed)| (*number, *listed)).collect();
        let mut store = (keeper.stores)();
        let mut disk = BlockingStore::small(&mut *store)?;
        for (place, (number, listed)) in closed.iter().enumerate() {
            let Some(end) = listed.end else { continue };
            let (number, stored_bytes) = (*number, listed.stored_bytes);
            keeper.hold(Kept { number, id: listed.id, stored_bytes, ended: None, pinned: false, ours: false });
            if closed.len() - place <= MOST_STREAMS {
                keeper.stream_by(&mut disk, number, listed.first, end)?;
            }
        }
        drop(disk);
        keeper.replace_index()?;
        keeper.put_collections(false)?;
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
            held: HeldSegments::default(),
            ages: Ages::default(),
            ends_known: true,
            since_pins: usize::MAX,
            streams,
            unwritten: 0,
            unwritten_before: 0,
            lacks_records: false,
            busy: BTreeMap::new(),
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
        self.enter(&[IndexRecord::Opened { number, id, first, at }]);
        self.present = self.present.max(Some((number, first)));
        self.pin_wanted();
    }

    /// Pins the segments that have any of these frames, later ones as soon as they begin. Blocks.
    pub fn keep(&mut self, wish: KeepWish) {
        let KeepWish { kept, number, first } = wish;
        self.present = self.present.max(Some((number, first)));
        match self.wanted.last_mut().filter(|last| kept.first <= last.end && last.first <= kept.end) {
            Some(last) => (last.first, last.end) = (last.first.min(kept.first), last.end.max(kept.end)),
            None => self.wanted.push(kept),
        }
        self.pin_wanted();
    }

    /// Pins the existing segments with frames that a trigger asked to keep, and forgets requests that no later segment
    /// can have.
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
            self.note_pin(number, true);
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

    /// Number of segments that this run has pinned because of a trigger.
    pub fn pinned(&self) -> usize {
        self.pinned.len()
    }

    /// The series begins a new epoch. Blocks.
    pub fn resumed(&mut self, record: IndexRecord) {
        self.enter(&[record]);
    }

    /// A segment is closed; its files are in order and durable. Blocks.
    pub fn closed(&mut self, segment: &SegmentEnd) {
        let SegmentEnd { number, id, first, end, stored_bytes, lost_bytes, verdict, at } = *segment;
        self.know_ends(at);
        let closed = IndexRecord::Closed { number, first, end, stored_bytes, lost_bytes, verdict };
        self.enter(&[closed, IndexRecord::Ended { number, at }]);
        let pinned = self.pinned.contains(&number) || self.unpinned.contains(&number);
        let ended = Some(self.ages.enter(at));
        self.hold(Kept { number, id, stored_bytes, ended, pinned, ours: true });
        let described = self.stream(number, first, end);
        self.note("describe the series", described);
        self.describe_when_due();
    }

    /// Adds a closed segment, which is newer than all others.
    fn hold(&mut self, kept: Kept) {
        if !kept.pinned {
            self.held.segments += 1;
            self.held.bytes = self.held.bytes.saturating_add(kept.stored_bytes);
        }
        self.kept.push_back(kept);
    }

    /// Notes whether a segment is pinned.
    fn note_pin(&mut self, number: u32, pinned: bool) {
        let Ok(place) = self.kept.binary_search_by_key(&number, |kept| kept.number) else { return };
        let (kept, held) = (&mut self.kept[place], &mut self.held);
        let stored = kept.stored_bytes;
        match (std::mem::replace(&mut kept.pinned, pinned), pinned) {
            (false, true) => (held.segments, held.bytes) = (held.segments - 1, held.bytes.saturating_sub(stored)),
            (true, false) => (held.segments, held.bytes) = (held.segments + 1, held.bytes.saturating_add(stored)),
            _ => {}
        }
    }

    /// Checks the pins of all segments.
    fn look_for_pins(&mut self) {
        let found = pins::all(&mut *(self.stores)(), &self.bases);
        let found = match found {
            Ok(found) => found,
            Err(error) => return self.trouble(format!("failed to look for pins: {error}")),
        };
        let changed: Vec<(u32, bool)> = self
            .kept
            .iter()
            .map(|kept| {
                (kept.number, found.contains(&kept.number) || self.unpinned.contains(&kept.number), kept.pinned)
            })
            .filter(|(_, is, was)| is != was)
            .map(|(number, is, _)| (number, is))
            .collect();
        changed.into_iter().for_each(|(number, is)| self.note_pin(number, is));
        self.since_pins = 0;
    }

    /// Takes over the ends of the segments of earlier runs. A segment without an end in the index counts as ended with
    /// the next one, or now; this time is then entered into the index.
    fn know_ends(&mut self, now: ClockMoment) {
        if std::mem::replace(&mut self.ends_known, true) {
            return;
        }
        let (mut next, mut all_known) = (now, true);
        for kept in self.kept.iter().rev() {
            let Some(listed) = self.index.segments.get_mut(&kept.number) else { continue };
            all_known &= listed.ended.is_some();
            next = *listed.ended.get_or_insert(next);
        }
        for kept in &mut self.kept {
            let ended = self.index.segments.get(&kept.number).and_then(|listed| listed.ended);
            kept.ended = ended.map(|at| self.ages.enter(at));
        }
        if !all_known {
            self.lacks_records = true;
        }
    }

    /// Deletes the segments that need not be kept. Returns the room. Blocks, for long when many are deleted.
    pub fn sweep(&mut self, now: &ClockMoment) -> RoomLeft {
        if !self.retention.is_set() {
            return RoomLeft::Enough;
        }
        self.know_ends(*now);
        self.busy.clear();
        let mut skipped = BTreeSet::new();
        loop {
            let free = self.retention.free.and_then(|_| self.free_bytes());
            let mut due = self.due(now, free, &skipped);
            // Pins can only make less due, or another segment.
            if matches!(due, Due::Delete(_)) && self.since_pins >= self.kept.len() / PART {
                self.look_for_pins();
                due = self.due(now, free, &skipped);
            }
            match due {
                Due::Nothing => {
                    self.making_room = false;
                    let low = free.filter(|free| self.retention.is_low(*free));
                    return low.map_or(RoomLeft::Enough, RoomLeft::Low);
                }
                Due::Stop(free) => return RoomLeft::Short(free),
                Due::Delete(number) => {
                    self.making_room = free.is_some();
                    let is_counted = |kept: &Kept| kept.number == number && !kept.pinned;
                    if !self.drop_segment(number, now) && self.kept.iter().any(is_counted) {
                        skipped.insert(number);
                    }
                }
            }
        }
    }

    /// The action that is due, ignoring the segments in `skipped`.
    fn due(&self, now: &ClockMoment, free: Option<Bytes>, skipped: &BTreeSet<u32>) -> Due {
        let mut oldest = self.kept.iter().filter(|kept| !kept.pinned && !skipped.contains(&kept.number));
        let oldest = oldest.next();
        let age = |kept: &Kept| kept.ended.map_or(Nanos::ZERO, |end| self.ages.age(end, now));
        let mut held = HeldSegments { oldest: oldest.map(|kept| (kept.number, age(kept))), ..self.held };
        held.segments = held.segments.saturating_sub(skipped.len());
        self.retention.due(held, free, self.making_room)
    }

    /// The least free space in the file systems of the targets; `None` if one does not state it.
    fn free_bytes(&mut self) -> Option<Bytes> {
        let store = (self.stores)();
        let free = self.bases.iter().map(|base| store.free_bytes(hairspring_file::folder_of(base)));
        free.collect::<Option<Vec<u64>>>()?.into_iter().min().map(Bytes)
    }

    /// Checks and notes whether a segment is pinned.
    fn is_pinned(&mut self, number: u32) -> bool {
        let is_pinned = self.unpinned.contains(&number) || pins::is_pinned(&mut *(self.stores)(), &self.bases, number);
        if is_pinned {
            self.note_pin(number, true);
        }
        is_pinned
    }

    /// Deletes a segment, step by step. Returns whether the deletion was at least begun; otherwise the segment is
    /// unchanged.
    ///
    /// A pin made before the index lists the segment as dropped is seen here, because this function checks pins
    /// afterwards. A process that pins a segment reads the index afterwards, and so knows whether the pin holds
    /// ([`pins::keep`]).
    fn drop_segment(&mut self, number: u32, now: &ClockMoment) -> bool {
        let Ok(place) = self.kept.binary_search_by_key(&number, |kept| kept.number) else { return false };
        if self.is_pinned(number) {
            return false;
        }
        let segments: Vec<PathBuf> = self.bases.iter().map(|base| segment_base(base, number)).collect();
        let mut store = (self.stores)();
        // Another process that changes the segment may finish; the next sweep tries again.
        let owned =
            store.own(&segments.iter().flat_map(|base| deletion::files(base)).collect::<Vec<_>>(), Work::Deletes);
        let _owned = match owned {
            Ok(owned) => Some(owned),
            Err(OwnError::Owned(Owned { file, holder })) => {
                self.busy.insert(number, format!("{} {holder}", file.display()));
                return false;
            }
            // Without locks no other process changes a recording.
            Err(OwnError::NoLocks(..)) => None,
            Err(OwnError::Store(error)) => {
                self.trouble(format!("failed to delete segment {number}: {error}"));
                return false;
            }
        };
        let (id, stored_bytes, ours) = (self.kept[place].id, self.kept[place].stored_bytes, self.kept[place].ours);
        let Some(listed) = self.index.segments.get(&number).copied() else { return false };
        let is_entered = self.enter(&[IndexRecord::Dropped { number, stored_bytes, at: now.realtime }]);
        let streams = self.take_streams(number);
        self.describe_when_due();
        // The last check before the first name is removed.
        if !is_entered || self.is_pinned(number) {
            self.index.restore(number, listed);
            self.lacks_records = true;
            self.write_index();
            self.bring_back_streams(streams);
            return false;
        }
        let mut is_gone = true;
        for (segment, done) in segments.iter().zip(deletion::delete_all(&mut *store, &segments, id)) {
            is_gone &= done.is_ok();
            match done {
                Ok(Owner::Ours | Owner::Nobody) => {}
                Ok(Owner::Another) => self.trouble(format!(
                    "{} belongs to another recording than the index says: it was not deleted",
                    segment.display()
                )),
                Err(error) => self.trouble(format!("failed to delete {}: {error}", segment.display())),
            }
        }
        if is_gone {
            self.index.dropped.remove(&number);
        }
        self.note_pin(number, true);
        self.kept.remove(place);
        self.since_pins = self.since_pins.saturating_add(1);
        if ours {
            self.dropped.segments += 1;
            self.dropped.bytes += stored_bytes;
        }
        let needed = 2 + 3 * self.index.segments.len() as u64;
        if self.index.records > needed + MOST_SPARE.max(needed / 4) {
            self.lacks_records = true;
            self.write_index();
        }
        true
    }

    /// Appends records to the index in every directory, durably. Returns whether every index has them.
    fn enter(&mut self, records: &[IndexRecord]) -> bool {
        let sequence = self.index.records;
        records.iter().for_each(|record| self.index.enter(*record));
        self.index.records += records.len() as u64;
        if !self.lacks_records {
            let encoded: Vec<u8> = (sequence..).zip(records).flat_map(|(number, one)| one.encode(number)).collect();
            for base in self.bases.clone() {
                let written = append(&mut *(self.stores)(), &index_of(&base), sequence, &encoded);
                self.lacks_records |= written.is_err();
            }
        }
        self.write_index()
    }

    /// Replaces the index if it lacks a record. Returns whether every index has all records now.
    fn write_index(&mut self) -> bool {
        if self.lacks_records {
            let written = self.replace_index();
            self.note("write the index of the series", written);
        }
        !self.lacks_records
    }

    /// Replaces the index by a shorter one.
    fn replace_index(&mut self) -> Result<(), RecordingError> {
        let records = self.index.shortened();
        let bytes = SeriesIndex::encoded(&records);
        self.lacks_records = true;
        for base in &self.bases {
            (self.stores)().put(&index_of(base), &bytes)?;
        }
        self.index.records = records.len() as u64;
        self.lacks_records = false;
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

    /// Reports the segments that the last sweep did not delete because another process owned them.
    pub fn tell_busy(&mut self) {
        for (number, why) in std::mem::take(&mut self.busy) {
            self.trouble(format!("segment {number} was not deleted: {why}; the next run deletes it"));
        }
    }

    /// The errors since the last call, in words.
    pub fn troubles(&mut self) -> Vec<String> {
        std::mem::take(&mut self.troubles)
    }

    /// The amount that retention deleted of this run.
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// The index as it is now, and the maker of stores.
    pub(super) fn into_parts(self) -> (SeriesIndex, StoreMaker) {
        (self.index, self.stores)
    }

    /// Number of closed segments that exist.
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
