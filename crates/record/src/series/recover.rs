//! Puts a series in order after a crash: its segments, segments made in advance, unfinished deletions, the index and
//! the collection.
//!
//! ```text
//! 1  deletions that the index lists as begun are finished
//! 2  a segment that was made in advance and never used is removed
//! 3  segments that a trigger asked to keep are pinned, by the journals of those that the index does not call closed
//! 4  segments that were cut off are recovered, bounded by the first frame of the next one
//! 5  index and collection are written anew
//! ```
//!
//! Each step can be repeated. A second run finds nothing to do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::ages::end_of;
use super::collection::MOST_COLLECTION;
use super::deletion::{self, Owner};
use super::keeper::{Keeper, StoreMaker, lending};
use super::{Retention, pins};
use crate::recover::cut::{self, Cut};
use crate::recover::{RecoverOptions, Recovered, Taken, recover_opened, taken};
use crate::upkeep::owned::{files_to_own, refuse_owned};
use hairspring_recording::journal::{KeptFrames, RecordingId};
use hairspring_recording::ledger::RecordingVerdict;
use hairspring_recording::series::index::{Listed, SeriesIndex};
use hairspring_recording::series::open::{FoundSeries, exists, find, first_of, read_index};
use hairspring_recording::series::{base_of, collection_of, index_of, segment_base, segment_of};
use hairspring_recording::sync_io::BlockingStore;
use hairspring_recording::verify::{ReadProgress, disagreements};
use hairspring_recording::{Files, MemberDoubt, Recording, RecordingError};
use hairspring_ring::units::{Bytes, Frames};
use hairspring_store::Store;
use hairspring_store::owner::{Ownership, Work};

/// Numbers after the last segment at which a crash can leave files: the segment that was being made, and a previous one
/// that was removed above.
const MOST_UNMADE: u32 = 2;

/// The result of [`recover_series`].
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRecovered {
    /// The segments that were checked, by number: those not in order and the last one, or all.
    pub segments: Vec<(u32, Recovered)>,
    /// The worst verdict of all segments.
    pub verdict: RecordingVerdict,
    /// How many segments the series has now.
    pub kept: usize,
    /// The changes made, or to be made; empty if all was in order.
    pub changed: Vec<String>,
}

/// A series that is in order, for a caller that continues it.
pub(crate) struct InOrder {
    pub(crate) recovered: SeriesRecovered,
    /// The base path of the series in each directory.
    pub(crate) bases: Vec<PathBuf>,
    pub(crate) index: SeriesIndex,
    /// The last segment.
    pub(crate) last: Option<Recording>,
    /// The index in each directory belongs to the caller.
    pub(crate) ownership: Ownership,
}

/// Recovers the series with this name; `None` if there is no series of that name. With `all` every segment is checked
/// and every block is read.
///
/// # Errors
/// As [`recover`](crate::recover::recover). It can be run again.
pub fn recover_series(
    stores: StoreMaker,
    path: &Path,
    options: RecoverOptions,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Option<SeriesRecovered>, RecordingError> {
    recover_series_in(stores, &[path.to_owned()], options, progress)
}

/// The same for a series whose base paths in several folders are named, because it was moved or copied.
///
/// # Errors
/// As [`recover_series`].
pub fn recover_series_in(
    stores: StoreMaker,
    paths: &[PathBuf],
    options: RecoverOptions,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Option<SeriesRecovered>, RecordingError> {
    Ok(put_in_order(stores, paths, options, Look::Everywhere, progress)?.map(|found| found.recovered))
}

/// Selects the segments to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// All.
    Everywhere,
    /// The segments that the index does not list as closed, their neighbours, and the last: all that a crash of the
    /// recorder can leave behind.
    AtTheEnd,
}

/// The same, for a caller that continues the series.
pub(crate) fn put_in_order(
    mut stores: StoreMaker,
    paths: &[PathBuf],
    options: RecoverOptions,
    look: Look,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Option<InOrder>, RecordingError> {
    let [path, further @ ..] = paths else { return Err(RecordingError::Nothing) };
    // Own it before anything is read: a recorder that ends meanwhile has written everything by then.
    let named: Vec<PathBuf> = paths.iter().map(|path| index_of(&base_of(path))).collect();
    let ownership = if options.dry_run {
        refuse_owned(&*stores(), &named)?;
        Ownership::of_nobody(Work::Changes)
    } else {
        stores().own(&named, Work::Changes)?
    };
    let mut stores = lending(stores, &ownership);
    let Some(mut found) = find(&mut *stores(), path)? else { return Ok(None) };
    for base in further.iter().map(|path| base_of(path)).filter(|base| *base != found.base) {
        for segment in &mut found.segments {
            let one = segment_base(&base, segment.number);
            if exists(&mut *stores(), &Files::of(&one).meta)? {
                segment.bases.push(one);
            }
        }
    }
    let opened = opened_numbers(&found, look);
    let mut all = found.open_each(&mut *stores(), &mut |number| opened.contains(&number))?;
    // Change nothing before it is clear that everything may be changed.
    for (_, segment) in &all {
        segment.require_named()?;
        let doubt = segment.doubts().iter().find(|doubt| !matches!(doubt, MemberDoubt::Short(_)));
        // A segment made in advance, whose removal was interrupted, has nothing to prove.
        if let Some(doubt) = doubt
            && (first_of(segment).is_some() || has_content(&mut *stores(), segment)?)
        {
            return Err(RecordingError::Limit(format!("nothing was changed: {doubt}")));
        }
    }
    let bases = bases_of(&all).unwrap_or_else(|| paths.iter().map(|path| base_of(path)).collect());
    let indexes: Vec<PathBuf> = bases.iter().map(|base| index_of(base)).collect();
    match options.dry_run {
        true => refuse_owned(&*stores(), &indexes)?,
        false => ownership.add(&indexes)?,
    }
    for base in &bases {
        let index = read_index(&mut BlockingStore::small(&mut *stores())?, &index_of(base))?;
        let other = index.and_then(|index| index.id).zip(found.index.id).filter(|(theirs, ours)| theirs != ours);
        if other.is_some() {
            return Err(RecordingError::AnotherSeries(found.base, index_of(base)));
        }
    }
    let mut mending = Mending { stores, found, bases, options, changed: Vec::new() };
    mending.finish_deletions()?;
    mending.remove_unused(&mut all)?;
    mending.remove_unmade(&all)?;
    mending.pin_what_was_asked_for(&all)?;
    let mut recovered = Vec::new();
    let mut verdict = RecordingVerdict::Complete;
    let mut entries: BTreeMap<u32, Listed> = BTreeMap::new();
    for segment in found_closed(&mending.found, &opened) {
        verdict = segment.1.verdict.map_or(verdict, |its| verdict.max(its));
        entries.insert(segment.0, segment.1);
    }
    let mut last = None;
    let firsts: Vec<Option<Frames>> = all.iter().map(|(_, recording)| first_of(recording)).collect();
    let count = all.len();
    for (place, (number, recording)) in all.into_iter().enumerate() {
        let is_last = place + 1 == count;
        let next = firsts.get(place + 1).copied().flatten();
        let is_sound =
            recording.ended().is_some() && recording.faults().is_empty() && disagreements(&recording).is_empty();
        let now = if options.all || is_last || !is_sound {
            let (result, now) = mending.recover(number, recording, (last.as_ref(), next), progress)?;
            verdict = verdict.max(result.verdict);
            recovered.push((number, result));
            now
        } else {
            verdict = recording.ended().map_or(verdict, |ended| verdict.max(ended.verdict));
            recording
        };
        entries.insert(number, listed(&now, next, mending.found.index.segments.get(&number)));
        last = Some(now);
    }
    let Mending { mut stores, found, bases, mut changed, .. } = mending;
    for number in &found.missing {
        changed.push(format!("segment {number} is missing: the index forgets it"));
    }
    let mut index = rebuilt(&found, &bases, entries, last.as_ref());
    if index.segments != found.index.segments || index.id != found.index.id || found.index.damaged.is_some() {
        changed.push("the index is written anew".to_owned());
    }
    if !options.dry_run {
        let before = collections(&mut stores, &bases);
        let keeper = Keeper::resume(bases.clone(), index, Retention::default(), stores)?;
        let (keeper_index, mut stores) = keeper.into_parts();
        if before != collections(&mut stores, &bases) {
            changed.push("the collection is written anew".to_owned());
        }
        index = keeper_index;
    }
    let kept = index.segments.len();
    let recovered = SeriesRecovered { segments: recovered, verdict, kept, changed };
    Ok(Some(InOrder { recovered, bases, index, last, ownership }))
}

/// A series that is being put in order.
struct Mending {
    stores: StoreMaker,
    found: FoundSeries,
    /// The base path of the series in each directory.
    bases: Vec<PathBuf>,
    options: RecoverOptions,
    /// The changes made, or to be made.
    changed: Vec<String>,
}

impl Mending {
    /// The base paths of these segments in all directories.
    fn segments(&self, numbers: impl IntoIterator<Item = u32>) -> Vec<(u32, PathBuf)> {
        let paths = |number| self.bases.iter().map(move |base| (number, segment_base(base, number)));
        numbers.into_iter().flat_map(paths).collect()
    }

    /// Finishes the deletions that retention began.
    fn finish_deletions(&mut self) -> Result<(), RecordingError> {
        let stays = |number: &u32| self.found.segments.iter().any(|segment| segment.number == *number);
        for number in self.found.index.dropped.keys().copied().filter(stays).collect::<Vec<_>>() {
            self.changed.push(format!("segment {number} was to be deleted, and is pinned: it stays"));
            self.found.index.withdraw(number);
        }
        for (number, segment) in self.segments(self.found.index.dropped.keys().copied()) {
            let (id, _) = self.found.index.dropped[&number];
            let owner = deletion::owner(&mut BlockingStore::small(&mut *(self.stores)())?, &segment, id)?;
            if owner == Owner::Ours {
                self.changed.push(format!("segment {number} was being deleted: that is finished"));
                if !self.options.dry_run {
                    let mut store = (self.stores)();
                    let _ownership = store.own(&files_to_own(&segment), Work::Deletes)?;
                    deletion::delete(&mut *store, &segment, id)?;
                }
            }
        }
        Ok(())
    }

    /// Removes a segment that was made in advance and never used.
    fn remove_unused(&mut self, all: &mut Vec<(u32, Recording)>) -> Result<(), RecordingError> {
        for (number, segment) in all.extract_if(.., |(_, one)| first_of(one).is_none()) {
            self.changed.push(format!("segment {number} was made in advance and never used: it is removed"));
            self.found.in_use.remove(&number);
            for member in segment.members() {
                let cut = Cut::find(&mut *(self.stores)(), member, &[], self.options.discard, &[])?;
                self.changed.extend(cut.told(&Files::of(&member.base).data));
                if self.options.dry_run {
                    continue;
                }
                let mut store = (self.stores)();
                let _ownership = store.own(&files_to_own(&member.base), Work::Deletes)?;
                cut.keep_all(&mut *store, &Files::of(&member.base).data)?;
                deletion::remove(&mut *store, &member.base)?;
            }
        }
        Ok(())
    }

    /// Removes the files without content of unfinished segments after the last one: they have no metadata yet, and no
    /// block. Otherwise a series could never be resumed, because files are not overwritten.
    fn remove_unmade(&mut self, all: &[(u32, Recording)]) -> Result<(), RecordingError> {
        let next = all.last().map_or(0, |(number, _)| number + 1).max(self.found.index.next);
        let numbers: BTreeSet<u32> =
            (next..next.saturating_add(MOST_UNMADE)).chain(self.found.in_use.range(next..).copied()).collect();
        for (number, segment) in self.segments(numbers) {
            if deletion::is_unmade(&mut *(self.stores)(), &segment)? {
                self.changed.push(format!("segment {number} was being made: what there is of it is removed"));
                self.found.in_use.remove(&number);
                if !self.options.dry_run {
                    let mut store = (self.stores)();
                    let _ownership = store.own(&files_to_own(&segment), Work::Deletes)?;
                    deletion::remove(&mut *store, &segment)?;
                }
            }
        }
        Ok(())
    }

    /// Pins the segments that a trigger asked to keep before a crash.
    fn pin_what_was_asked_for(&mut self, all: &[(u32, Recording)]) -> Result<(), RecordingError> {
        // Closed segments were pinned before; a user may have released them since.
        let listed = &self.found.index.segments;
        let is_open = |number: &u32| listed.get(number).is_none_or(|listed| listed.end.is_none());
        let asked: Vec<KeptFrames> =
            all.iter().filter(|(number, _)| is_open(number)).flat_map(|(_, one)| one.kept()).copied().collect();
        if asked.is_empty() {
            return Ok(());
        }
        let mut firsts: BTreeMap<u32, Frames> = listed.iter().map(|(number, listed)| (*number, listed.first)).collect();
        firsts.extend(all.iter().map(|(number, one)| (*number, first_of(one).unwrap_or_default())));
        let nexts = firsts.values().skip(1).copied().chain([Frames(u64::MAX)]).collect::<Vec<_>>();
        for ((number, first), next) in firsts.iter().zip(nexts) {
            let Some(why) = asked.iter().find(|kept| kept.first < next && kept.end > *first) else { continue };
            if !pins::is_pinned(&mut *(self.stores)(), &self.bases, *number) {
                self.changed.push(format!("segment {number} is pinned, as a trigger asked before the crash"));
                if !self.options.dry_run {
                    pins::pin(&mut *(self.stores)(), &self.bases, *number, *why)?;
                }
            }
        }
        Ok(())
    }

    /// Recovers a segment; returns it as it is now, too.
    fn recover(
        &mut self,
        number: u32,
        mut segment: Recording,
        (before, next): (Option<&Recording>, Option<Frames>),
        progress: &mut dyn FnMut(ReadProgress),
    ) -> Result<(Recovered, Recording), RecordingError> {
        let mut store = (self.stores)();
        let owned = taken(&mut *store, &segment, self.options)?;
        if let Taken::Owned { recording, .. } = &owned {
            segment = Recording::clone(recording);
            self.found.tell(number, &mut segment, before, next);
        }
        let result = recover_opened(&mut *store, &segment, &owned, self.options, progress)?;
        self.changed.extend(result.changed.iter().map(|change| format!("segment {number}: {change}")));
        if self.options.dry_run {
            return Ok((result, segment));
        }
        let named = self.found.segments.iter().find(|segment| segment.number == number);
        let bases = named.map_or_else(|| vec![segment_base(&self.found.base, number)], |segment| segment.bases.clone());
        Ok((result, Recording::open_in(&mut *(self.stores)(), &bases)?))
    }
}

/// Whether the data of a segment are more than reserved space.
fn has_content(store: &mut dyn Store, segment: &Recording) -> Result<bool, RecordingError> {
    for member in segment.members().iter().filter(|member| member.has_data) {
        if cut::has_content(store, &Files::of(&member.base).data, &[(0, member.data_bytes)])? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The numbers of the segments that are opened.
fn opened_numbers(found: &FoundSeries, look: Look) -> BTreeSet<u32> {
    let numbers = || found.segments.iter().map(|segment| segment.number);
    if look == Look::Everywhere {
        return numbers().collect();
    }
    let is_closed = |number| found.index.segments.get(&number).is_some_and(|listed| listed.end.is_some());
    let all: Vec<u32> = numbers().collect();
    let open = (0..all.len()).filter(|place| !is_closed(all[*place]) || place + 1 == all.len());
    open.flat_map(|place| &all[place.saturating_sub(1)..all.len().min(place + 2)]).copied().collect()
}

/// The index entries of the segments that exist and are not opened.
fn found_closed<'a>(found: &'a FoundSeries, opened: &'a BTreeSet<u32>) -> impl Iterator<Item = (u32, Listed)> + 'a {
    let others = found.segments.iter().map(|segment| segment.number).filter(|number| !opened.contains(number));
    others.filter_map(|number| Some((number, *found.index.segments.get(&number)?)))
}

/// The base paths of the series in all directories: those of the members that were opened, not those that only metadata
/// list.
fn bases_of(all: &[(u32, Recording)]) -> Option<Vec<PathBuf>> {
    let members = all.iter().map(|(_, recording)| recording.members()).max_by_key(|members| members.len());
    members.map(|members| members.iter().filter_map(|member| Some(segment_of(&member.base)?.0)).collect())
}

/// The index entry of a segment that is in order. `next` is the first frame of the next one.
fn listed(recording: &Recording, next: Option<Frames>, before: Option<&Listed>) -> Listed {
    let about = recording.about();
    let layout = about.layout;
    let ended = recording.ended();
    let own_end = ended.map(|ended| layout.frames_in(Bytes(ended.produced_bytes)));
    Listed {
        id: about.id,
        first: first_of(recording).unwrap_or_default(),
        end: ended.and(next.or(own_end)),
        stored_bytes: ended.map_or(0, |ended| ended.stored_bytes),
        lost_bytes: ended.map_or(0, |ended| ended.lost_bytes),
        verdict: ended.map(|ended| ended.verdict),
        opened: before.map_or(about.started_realtime, |listed| listed.opened),
        ended: ended.and(before.and_then(|listed| listed.ended).or_else(|| end_of(recording))),
    }
}

/// The index as it should be.
fn rebuilt(
    found: &FoundSeries,
    bases: &[PathBuf],
    entries: BTreeMap<u32, Listed>,
    last: Option<&Recording>,
) -> SeriesIndex {
    let of = last.and_then(|last| last.about().series.clone());
    let id: Option<RecordingId> = of.as_ref().map(|of| of.id).or(found.index.id);
    let next = entries.last_key_value().map_or(0, |(number, _)| number + 1).max(found.index.next);
    let next = found.in_use.last().map_or(0, |last| last.saturating_add(1)).max(next);
    SeriesIndex {
        id,
        members: u16::try_from(bases.len()).unwrap_or(u16::MAX),
        started: if found.index.id.is_some() {
            found.index.started
        } else {
            last.map_or(found.index.started, |last| last.about().started_realtime)
        },
        segments: entries,
        next,
        epoch: of.map_or(found.index.epoch, |of| of.epoch.max(found.index.epoch)),
        ..found.index.clone()
    }
}

/// The collections as they are.
fn collections(stores: &mut StoreMaker, bases: &[PathBuf]) -> Vec<Option<Vec<u8>>> {
    let read = |base: &PathBuf| {
        let mut store = stores();
        BlockingStore::small(&mut *store).ok()?.read_whole(&collection_of(base), MOST_COLLECTION).ok()
    };
    bases.iter().map(read).collect()
}

/// The index in the directory of a base path; for tests and tools.
///
/// # Errors
/// It cannot be read.
pub fn index_at(stores: &mut StoreMaker, base: &Path) -> Result<Option<SeriesIndex>, RecordingError> {
    hairspring_recording::series::open::read_index(&mut BlockingStore::small(&mut *stores())?, &index_of(base))
}
