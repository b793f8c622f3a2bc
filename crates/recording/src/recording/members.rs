//! Finds the files of all members, and opens them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::account::{Account, account};
use super::sync_io::{BlockingStore, MOST_META};
use super::{Files, MOST_BLOCK, Member, Recording, RecordingError, evidence, foreign, places};
use crate::journal::{JournalPieces, Record, RecordingId};
use crate::sigmf;
use crate::sigmf::{About, SigmfError};
use hairspring_ring::units::{Bytes, Frames};
use hairspring_store::owner::Holder;
use hairspring_store::{Open, Store};

pub(super) fn open(store: &mut dyn Store, paths: &[PathBuf]) -> Result<Recording, RecordingError> {
    if let [path] = paths
        && foreign::is_archive(path)
    {
        return foreign::open_archive(path);
    }
    if let [path, ..] = paths
        && let Some(series) = crate::series::open::find(store, path)?
    {
        return series.open(store);
    }
    open_one(&mut BlockingStore::small(store)?, paths)
}

/// Opens a recording that is no series.
pub fn open_one(disk: &mut BlockingStore<'_>, paths: &[PathBuf]) -> Result<Recording, RecordingError> {
    let mut bases: Vec<PathBuf> = paths.iter().map(|path| Files::base_of(path)).collect();
    bases.dedup();
    let mut members: Vec<Member> = Vec::new();
    // Before anything is read: a recorder that ends meanwhile has written an end by then.
    let mut holder = None;
    for base in &bases {
        holder = holder.or(holder_of(&*disk.store, base));
        let member = match open_member(disk, base) {
            Err(RecordingError::Meta(_, SigmfError::Foreign)) if bases.len() == 1 => return foreign::open(disk, base),
            other => other?,
        };
        if let Some(first) = members.first()
            && (first.about.id != member.about.id || first.about.members.len() != member.about.members.len())
        {
            return Err(RecordingError::NotTogether(first.base.clone(), base.clone()));
        }
        if let Some(twin) = members.iter().find(|other| other.number == member.number) {
            return Err(RecordingError::NotTogether(twin.base.clone(), base.clone()));
        }
        members.push(member);
    }
    let first = members.first().ok_or(RecordingError::Nothing)?;
    let known = first.about.clone();
    let named: Vec<(usize, PathBuf)> = members.iter().map(|member| (member.number, member.base.clone())).collect();
    let mut missing_members = Vec::new();
    for (number, listed) in known.members.iter().enumerate() {
        if named.iter().any(|(other, _)| *other == number) {
            continue;
        }
        let places = places::candidates(&known.members, &named, number);
        let found = places.into_iter().find_map(|place| {
            let owner = holder_of(&*disk.store, &place.base);
            let mut member = open_member(disk, &place.base).ok()?;
            member.elsewhere = !place.is_ours;
            let is_it = (member.about.id, member.about.members.len()) == (known.id, known.members.len());
            (is_it && member.number == number).then_some(())?;
            holder = holder.or(owner);
            Some(member)
        });
        match found {
            Some(member) => members.push(member),
            None => missing_members.push((number, listed.clone())),
        }
    }
    members.sort_by_key(|member| member.number);
    assemble(members, missing_members, holder)
}

/// The owner of a member. Its journal is the same file as long as it is recorded.
fn holder_of(store: &dyn Store, base: &Path) -> Option<Holder> {
    let files = Files::of(base);
    store.holder(&files.journal).or_else(|| store.holder(&files.meta))
}

fn assemble(
    mut members: Vec<Member>,
    missing_members: Vec<(usize, PathBuf)>,
    holder: Option<Holder>,
) -> Result<Recording, RecordingError> {
    let Some(mut about) = believed(&members) else { return Err(RecordingError::Nothing) };
    if about.block > MOST_BLOCK {
        return Err(RecordingError::Limit(format!(
            "the recording is in blocks of {}, and at most {MOST_BLOCK} are read at once",
            about.block
        )));
    }
    let Account {
        blocks,
        timeline,
        gaps,
        skips,
        triggers,
        kept,
        failures,
        holes,
        produced,
        ended,
        begun,
        mut clock,
        series,
        bounds,
        cut,
        epoch,
        mut faults,
    } = account(about.layout, about.block, &mut members);
    // Metadata that were written before frame 0 came do not state its time.
    if let (None, Some(begun)) = (about.started_within, begun) {
        (about.started_realtime, about.started_monotonic) = (begun.realtime, begun.monotonic);
        about.started_within = Some(begun.within);
    }
    // The metadata of a segment that was made in advance do not state its first frame, either.
    if let (Some(of), Some(found)) = (&mut about.series, series)
        && (of.id, of.number) == (found.series, found.number)
    {
        of.first = Some(found.first);
        of.epoch = found.epoch;
        of.epoch_first = epoch.unwrap_or(of.epoch_first);
        of.previous = (found.previous != RecordingId::default()).then_some(found.previous);
    }
    // A resumed segment without a block was not used, though its metadata state its first frame from the beginning: a
    // power cut may have taken any part of its journal's facts about earlier times, and the previous segment has better
    // ones.
    if let Some(of) = &mut about.series
        && of.first.is_some_and(|first| first > Frames(0) && of.epoch_first >= first)
        && (blocks.is_empty() && kept.is_empty() && ended.is_none())
        && members.iter().all(|member| member.closing.is_none())
    {
        of.first = None;
    }
    // Journals have checksums, and are written after the first metadata.
    if !clock.is_empty() {
        // The journal has no room for the name of an external clock.
        let named = about.clock.external.take();
        let named = named.filter(|named| clock.external.as_ref().is_some_and(|it| it.kind == named.kind));
        let external = named.or(clock.external.take());
        about.clock = clock;
        about.clock.external = external;
    }
    let mut doubts = Vec::new();
    for member in &members {
        about.members[member.number].clone_from(&member.base);
        let doubt = evidence::doubt(about.layout, &blocks, member);
        match &doubt {
            Some(doubt) => faults.add(doubt.to_string()),
            None => disagreements(&about, member).into_iter().for_each(|fault| faults.add(fault)),
        }
        doubts.extend(doubt);
    }
    let mut recording = Recording {
        about,
        members,
        missing_members,
        blocks,
        timeline,
        gaps,
        bounds,
        cut,
        skips,
        triggers,
        kept,
        failures,
        holes,
        produced,
        ended,
        faults: faults.0,
        doubts,
        foreign: None,
        last_members: 0,
        series_base: None,
        between: Vec::new(),
        lacks_last_segment: false,
        holder,
    };
    recording.leave_out_earlier();
    Ok(recording)
}

/// The description of the recording, from the first metadata that agree with the journal beside them. Journal records
/// have checksums and metadata have none, so if no metadata agree, the journal's block size counts.
fn believed(members: &[Member]) -> Option<About> {
    let borne_out = |member: &&Member| block_by_journal(&member.about, member) == Some(member.about.block);
    let first = members.iter().find(borne_out).or(members.first())?;
    let block = block_by_journal(&first.about, first).unwrap_or(first.about.block);
    Some(About { block, ..About::clone(&first.about) })
}

/// The block size in the first record of a member's journal, if the journal belongs to this recording and these frames.
fn block_by_journal(about: &About, member: &Member) -> Option<Bytes> {
    let Record::Start { id, block_bytes, .. } = *member.journal.records.first()? else { return None };
    (id == about.id && frames_agree(about, member)).then_some(Bytes(block_bytes.into()))
}

/// Whether a member's journal has frames as these metadata describe them. An unreadable journal does not contradict.
pub fn frames_agree(about: &About, member: &Member) -> bool {
    let grain = about.layout.grain();
    match member.journal.records.first() {
        Some(Record::Start { grain_bytes, grain_frames, .. }) => {
            (u64::from(*grain_bytes), u64::from(*grain_frames)) == (grain.bytes, grain.frames)
        }
        _ => true,
    }
}

/// Lists the contradictions of a member's files to the recording.
fn disagreements(about: &About, member: &Member) -> Vec<String> {
    let mut faults = Vec::new();
    let files = Files::of(&member.base);
    match member.journal.records.first() {
        Some(Record::Start { id, block_bytes, member: number, members, .. }) => {
            let agrees = *id == about.id
                && u64::from(*block_bytes) == about.block.0
                && frames_agree(about, member)
                && usize::from(*number) == member.number
                && usize::from(*members) == about.members.len();
            if !agrees {
                faults.push(format!("{} belongs to another recording than its metadata", files.journal.display()));
            }
        }
        _ => faults.push(format!("{} has no readable first record", files.journal.display())),
    }
    let own = &member.about;
    if own.layout != about.layout || own.block != about.block || own.rate != about.rate {
        faults.push(format!("{} describes other data than the journals and the other members", files.meta.display()));
    }
    faults
}

fn open_member(disk: &mut BlockingStore<'_>, base: &Path) -> Result<Member, RecordingError> {
    let files = Files::of(base);
    let meta = match disk.read_whole(&files.meta, MOST_META) {
        Err(RecordingError::Store(error)) if error.errno.0 == libc::ENOENT => {
            return Err(RecordingError::NotFound(base.to_owned()));
        }
        other => other?,
    };
    let (about, closing, segments) =
        sigmf::parse(&meta).map_err(|error| RecordingError::Meta(files.meta.clone(), error))?;
    // A missing journal or data file is damage, not an error, because the other files are still valid.
    let mut pieces = JournalPieces::default();
    let journal = match disk.read_pieces(&files.journal, &mut |piece| {
        pieces.read(piece);
        true
    }) {
        Ok(_) => Some(pieces.end()),
        Err(RecordingError::Store(error)) if error.errno.0 == libc::ENOENT => None,
        Err(error) => return Err(error),
    };
    let data_bytes = match disk.store.open(&files.data, Open::ReadData) {
        Ok(file) => {
            let size = disk.store.facts(file).size;
            disk.store.close(file);
            Some(size)
        }
        Err(error) if error.errno.0 == libc::ENOENT => None,
        Err(error) => return Err(error.into()),
    };
    // A member that is being deleted loses its metadata first. It is gone, not damaged.
    let is_whole = journal.is_some() && data_bytes.is_some();
    if !is_whole && disk.store.look(&files.meta).is_err_and(|error| error.errno.0 == libc::ENOENT) {
        return Err(RecordingError::NotFound(base.to_owned()));
    }
    Ok(Member {
        number: about.member,
        base: base.to_owned(),
        elsewhere: false,
        data_bytes: data_bytes.unwrap_or(0),
        has_data: data_bytes.is_some(),
        has_journal: journal.is_some(),
        about: Arc::new(about),
        closing,
        segments,
        journal: journal.unwrap_or_default(),
        salvaged: false,
        durable_bytes: 0,
        other_data: None,
    })
}
