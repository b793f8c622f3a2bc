//! Puts a series in order after a crash: its segments, what was made in advance, deletions that were begun, the index and the collection.
//!
//! ```text
//! 1  deletions that the index says were begun are finished
//! 2  a segment that was made in advance and never used is removed
//! 3  segments that a trigger asked to keep are pinned, by the journals of those that the index does not call closed
//! 4  segments that were cut off are recovered, bounded by the first frame of the next one
//! 5  index and collection are written anew
//! ```
//!
//! Each step can be repeated. A second run finds nothing to do.

use std::path::{Path, PathBuf};

use super::collection::MOST_COLLECTION;
use super::deletion::{self, Owner};
use super::index::{Listed, SeriesIndex};
use super::keeper::{Keeper, StoreMaker};
use super::open::{FoundSeries, find};
use super::{Retention, collection_of, index_of, pins, segment_base, segment_of};
use crate::journal::{KeptFrames, RecordingId};
use crate::ledger::RecordingVerdict;
use crate::recording::blocking::BlockingStore;
use crate::recording::{Recording, RecordingError};
use crate::recover::{RecoverOptions, Recovered, recover};
use crate::verify::{ReadProgress, disagreements};
use hairspring_ring::units::{Bytes, Frames};

/// Numbers behind the last segment at which a crash can leave files: the segment that was being made, and one before it that was removed above.
const MOST_UNMADE: u32 = 2;

/// The result of [`recover_series`].
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRecovered {
    /// The segments that were looked at, by number: those that were not in order and the last one, or all.
    pub segments: Vec<(u32, Recovered)>,
    /// The worst verdict of all segments.
    pub verdict: RecordingVerdict,
    /// How many segments the series has now.
    pub kept: usize,
    /// The changes made, or to be made; empty if all was in order.
    pub changed: Vec<String>,
}

/// A series that is in order, for those who go on with it.
pub(crate) struct InOrder {
    pub(crate) recovered: SeriesRecovered,
    /// The base path of the series in each directory.
    pub(crate) bases: Vec<PathBuf>,
    pub(crate) index: SeriesIndex,
    /// The last segment.
    pub(crate) last: Option<Recording>,
}

/// Recovers the series with this name; `None` if there is no series of that name. With `all` every segment is looked at and every block is
/// read.
///
/// # Errors
/// As [`recover`]. It can be run again.
pub fn recover_series(
    stores: StoreMaker,
    path: &Path,
    options: RecoverOptions,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Option<SeriesRecovered>, RecordingError> {
    Ok(put_in_order(stores, path, options, progress)?.map(|found| found.recovered))
}

/// The same, for those who go on with the series.
pub(crate) fn put_in_order(
    mut stores: StoreMaker,
    path: &Path,
    options: RecoverOptions,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Option<InOrder>, RecordingError> {
    let Some(found) = find(&mut *stores(), path)? else { return Ok(None) };
    let mut changed = Vec::new();
    let mut all = opened(&mut stores, &found)?;
    let bases = bases_of(&found, &all);
    finish_deletions(&mut stores, &found, &bases, options.dry_run, &mut changed)?;
    all.retain(|(number, recording)| {
        let is_used = recording.about().series.as_ref().is_some_and(|of| of.first.is_some());
        if !is_used {
            changed.push(format!("segment {number} was made in advance and never used: it is removed"));
        }
        is_used
    });
    let unused: Vec<u32> = found
        .segments
        .iter()
        .map(|one| one.number)
        .filter(|number| !all.iter().any(|(used, _)| used == number))
        .collect();
    if !options.dry_run {
        for (number, base) in unused.iter().flat_map(|number| bases.iter().map(move |base| (number, base))) {
            deletion::remove(&mut *stores(), &segment_base(base, *number))?;
        }
    }
    remove_unmade(&mut stores, &found, &bases, &all, options.dry_run, &mut changed)?;
    pin_what_was_asked_for(&mut stores, &found, &bases, &all, options.dry_run, &mut changed)?;
    let mut recovered = Vec::new();
    let mut verdict = RecordingVerdict::Complete;
    let mut entries = Vec::new();
    let mut last = None;
    let firsts: Vec<Frames> = all.iter().map(|(_, recording)| first_of(recording)).collect();
    let count = all.len();
    for (place, (number, recording)) in all.into_iter().enumerate() {
        let is_last = place + 1 == count;
        let next = firsts.get(place + 1).copied();
        let is_sound =
            recording.ended().is_some() && recording.faults().is_empty() && disagreements(&recording).is_empty();
        let paths = [segment_base(&found.base, number)];
        let mut now = recording;
        if options.all || is_last || !is_sound {
            let result = recover(&mut *stores(), &paths, RecoverOptions { next, ..options }, progress)?;
            changed.extend(result.changed.iter().map(|change| format!("segment {number}: {change}")));
            verdict = verdict.max(result.verdict);
            recovered.push((number, result));
            if !options.dry_run {
                now = Recording::open_in(&mut *stores(), &paths)?;
            }
        } else if let Some(ended) = now.ended() {
            verdict = verdict.max(ended.verdict);
        }
        entries.push((number, listed(&now, next, found.index.segments.get(&number))));
        last = Some(now);
    }
    for number in &found.missing {
        changed.push(format!("segment {number} is missing: the index forgets it"));
    }
    let index = rebuilt(&found, &bases, entries, last.as_ref());
    if index.segments != found.index.segments || index.id != found.index.id {
        changed.push("the index is written anew".to_owned());
    }
    if !options.dry_run {
        let before = collections(&mut stores, &bases);
        let keeper = Keeper::resume(bases.clone(), index.clone(), Retention::default(), stores)?;
        let (keeper_index, mut stores) = keeper.into_parts();
        if before != collections(&mut stores, &bases) {
            changed.push("the collection is written anew".to_owned());
        }
        let kept = keeper_index.segments.len();
        let recovered = SeriesRecovered { segments: recovered, verdict, kept, changed };
        return Ok(Some(InOrder { recovered, bases, index: keeper_index, last }));
    }
    let kept = index.segments.len();
    let recovered = SeriesRecovered { segments: recovered, verdict, kept, changed };
    Ok(Some(InOrder { recovered, bases, index, last }))
}

/// Opens each segment.
fn opened(stores: &mut StoreMaker, found: &FoundSeries) -> Result<Vec<(u32, Recording)>, RecordingError> {
    let mut all = Vec::with_capacity(found.segments.len());
    for segment in &found.segments {
        let recording = Recording::open_in(&mut *stores(), &segment.bases)?;
        let of = recording.about().series.as_ref();
        let ours = of.is_some_and(|of| found.index.id.is_none_or(|id| id == of.id) && of.number == segment.number);
        if !ours {
            return Err(RecordingError::NotTogether(found.base.clone(), segment.bases[0].clone()));
        }
        all.push((segment.number, recording));
    }
    Ok(all)
}

/// The base paths of the series in all directories, from the members of a segment.
fn bases_of(found: &FoundSeries, all: &[(u32, Recording)]) -> Vec<PathBuf> {
    let members = all.iter().map(|(_, recording)| &recording.about().members).max_by_key(|members| members.len());
    let bases = members.map(|members| members.iter().filter_map(|base| Some(segment_of(base)?.0)).collect());
    bases.filter(|bases: &Vec<_>| !bases.is_empty()).unwrap_or_else(|| vec![found.base.clone()])
}

/// Removes what is there of segments behind the last one that were being made: they have no metadata yet, and no block. Otherwise a series could
/// never be resumed, because files are not overwritten.
fn remove_unmade(
    stores: &mut StoreMaker,
    found: &FoundSeries,
    bases: &[PathBuf],
    all: &[(u32, Recording)],
    dry_run: bool,
    changed: &mut Vec<String>,
) -> Result<(), RecordingError> {
    let next = all.last().map_or(0, |(number, _)| number + 1).max(found.index.next);
    for (number, base) in
        (next..next.saturating_add(MOST_UNMADE)).flat_map(|one| bases.iter().map(move |base| (one, base)))
    {
        let segment = segment_base(base, number);
        if deletion::is_unmade(&mut *stores(), &segment)? {
            changed.push(format!("segment {number} was being made: what there is of it is removed"));
            if !dry_run {
                deletion::remove(&mut *stores(), &segment)?;
            }
        }
    }
    Ok(())
}

/// Finishes what retention began to delete.
fn finish_deletions(
    stores: &mut StoreMaker,
    found: &FoundSeries,
    bases: &[PathBuf],
    dry_run: bool,
    changed: &mut Vec<String>,
) -> Result<(), RecordingError> {
    for (number, (id, _)) in &found.index.dropped {
        for base in bases {
            let segment = segment_base(base, *number);
            let owner = deletion::owner(&mut BlockingStore::small(&mut *stores())?, &segment, *id)?;
            if owner == Owner::Ours {
                changed.push(format!("segment {number} was being deleted: that is finished"));
                if !dry_run {
                    deletion::delete(&mut *stores(), &segment, *id)?;
                }
            }
        }
    }
    Ok(())
}

/// Pins the segments that a trigger asked to keep before a crash.
fn pin_what_was_asked_for(
    stores: &mut StoreMaker,
    found: &FoundSeries,
    bases: &[PathBuf],
    all: &[(u32, Recording)],
    dry_run: bool,
    changed: &mut Vec<String>,
) -> Result<(), RecordingError> {
    // Those that were closed were pinned before; somebody may have released them since.
    let is_open = |number: &u32| found.index.segments.get(number).is_none_or(|listed| listed.end.is_none());
    let asked: Vec<KeptFrames> =
        all.iter().filter(|(number, _)| is_open(number)).flat_map(|(_, one)| one.kept()).copied().collect();
    for (place, (number, recording)) in all.iter().enumerate() {
        let next = all.get(place + 1).map_or(Frames(u64::MAX), |(_, next)| first_of(next));
        let first = first_of(recording);
        let Some(why) = asked.iter().find(|kept| kept.first < next && kept.end > first) else { continue };
        if !pins::is_pinned(&mut *stores(), bases, *number) {
            changed.push(format!("segment {number} is pinned, as a trigger asked before the crash"));
            if !dry_run {
                pins::pin(&mut *stores(), bases, *number, *why)?;
            }
        }
    }
    Ok(())
}

fn first_of(recording: &Recording) -> Frames {
    recording.about().series.as_ref().and_then(|of| of.first).unwrap_or_default()
}

/// What the index says of a segment that is in order. `next` is the first frame of the next one.
fn listed(recording: &Recording, next: Option<Frames>, before: Option<&Listed>) -> Listed {
    let about = recording.about();
    let layout = about.layout;
    let ended = recording.ended();
    let own_end = ended.map(|ended| layout.frames_in(Bytes(ended.produced_bytes)));
    Listed {
        id: about.id,
        first: first_of(recording),
        end: ended.and(next.or(own_end)),
        stored_bytes: ended.map_or(0, |ended| ended.stored_bytes),
        lost_bytes: ended.map_or(0, |ended| ended.lost_bytes),
        verdict: ended.map(|ended| ended.verdict),
        opened: before.map_or(about.started_realtime, |listed| listed.opened),
    }
}

/// The index as it should be.
fn rebuilt(
    found: &FoundSeries,
    bases: &[PathBuf],
    entries: Vec<(u32, Listed)>,
    last: Option<&Recording>,
) -> SeriesIndex {
    let of = last.and_then(|last| last.about().series.clone());
    let id: Option<RecordingId> = of.as_ref().map(|of| of.id).or(found.index.id);
    let next = entries.last().map_or(0, |(number, _)| number + 1).max(found.index.next);
    SeriesIndex {
        id,
        members: u16::try_from(bases.len()).unwrap_or(u16::MAX),
        started: if found.index.records > 0 {
            found.index.started
        } else {
            last.map_or(found.index.started, |last| last.about().started_realtime)
        },
        segments: entries.into_iter().collect(),
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
    super::open::read_index(&mut BlockingStore::small(&mut *stores())?, &index_of(base))
}
