//! [`recover`]: puts a recording in order after a crash, a power cut or damage.
//!
//! **Problem.** A crash leaves a data file with more space than data, a journal with half a record at its end, and
//! metadata in the state `recording`. Blocks were written out of order, so a block may be missing before others that
//! are there. SigMF allows no holes in a file.
//!
//! **Solution.** Each block is *durable* (covered by the last sync), *proven* (later, but it matches its checksum) or
//! *lost*. Then the files are mended in steps. Each step leaves a recording that can be read and recovered again:
//!
//! ```text
//! 0  sync the data; put a new journal in place: all proven blocks where they are, gaps for the others, an end
//! 1  move blocks down over places that are proven bad: copy, sync, enter the new place into the journal, sync;
//!    only then may the old place be overwritten
//! 2  cut the data file after the last block
//! 3  put the journal in place that has only the final places
//! 4  put the metadata in place
//! ```
//!
//! **Ownership.** This process owns the files from before they are read until the end; a recording that another process
//! records or changes is refused.
//!
//! **Why no good data are destroyed.** A byte of a data file is overwritten or cut off only if no good block lies
//! there: the block was proven bad, or a copy of it is durable, proven and entered. Before that all non-zero bytes are
//! copied to a file beside the recording (module `cut`). If the disk fails to read a block, nothing is mended, because
//! the read may succeed tomorrow. The same holds if a journal is damaged where it had been synced and good records
//! follow the damage, and if files are missing or do not belong together ([`MemberDoubt`]): a crash does not cause
//! that. A data file with other names, or behind a symbolic link, is copied first, because its other names are not this
//! recording.
//!
//! A second run finds nothing to do.

pub(crate) mod cut;
pub(crate) mod mend;
pub(crate) mod plan;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::path::PathBuf;

use crate::compress::restore_to_mend;
use crate::upkeep::owned::{files_to_own, owned, refuse_owned};
use hairspring_recording::ledger::{Ledger, RecordingVerdict};
use hairspring_recording::verify::ReadProgress;
use hairspring_recording::{Block, BlockReader, Files, MemberDoubt, Recording, RecordingError, Unproven, frames_agree};
use hairspring_ring::gap::Gap;
use hairspring_ring::units::{Bytes, Frames};
use hairspring_store::compressed::compressed_path;
use hairspring_store::owner::{OwnError, Ownership, Work};
use hairspring_store::{Errno, Open, Store};

use cut::Cut;
use plan::Plan;

/// Number of newest synced blocks of each member that are read nevertheless.
const NEWEST: usize = 2;

/// The options of [`recover`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoverOptions {
    /// Reads every block. Without it the blocks that a sync covers are trusted, unless one of the newest of them is
    /// bad: then the disk has lost data that it had confirmed, and every block is read.
    pub all: bool,
    /// Changes nothing, and reports the changes that it would make.
    pub dry_run: bool,
    /// Gives up the records after damage in the middle of a journal, if they cannot be trusted.
    pub cut_journal: bool,
    /// Discards the non-zero bytes that are cut off. Without it they go to a file beside the recording.
    pub discard: bool,
}

/// The loss by the crash or the damage, beyond the declared gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// This amount: the recording had ended, and its end states the total.
    Known(Bytes),
    /// At least this amount. How much the source produced after the last record is unknown.
    AtLeast(Bytes),
    /// Unknown: the journal has no count of the produced bytes.
    Unknown,
}

/// The result of [`recover`].
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    /// Bytes that a sync had covered.
    pub durable: Bytes,
    /// Bytes after the last sync that match their checksums.
    pub proven: Bytes,
    /// The loss.
    pub lost: Lost,
    /// Blocks that are missing or damaged.
    pub damaged_blocks: u64,
    /// All gaps of the recording as it is now.
    pub gaps: Vec<Gap>,
    /// The account as it is now.
    pub ledger: Ledger,
    /// The verdict now.
    pub verdict: RecordingVerdict,
    /// The changes made, or to be made; empty if all was in order.
    pub changed: Vec<String>,
    /// The files that keep, or would keep, the bytes that were cut off.
    pub cut_files: Vec<PathBuf>,
}

/// Recovers a recording whose members are all present.
///
/// # Errors
/// Another process owns it ([`RecordingError::Owned`]); it is not a recording, members are missing, a disk fails to
/// read or write, or a journal is damaged in its middle. Then no good data are destroyed, and `recover` can be run
/// again.
pub fn recover(
    store: &mut dyn Store,
    paths: &[PathBuf],
    options: RecoverOptions,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Recovered, RecordingError> {
    let recording = Recording::open_in(store, paths)?;
    let owned = taken(store, &recording, options)?;
    let recording = if let Taken::Owned { recording, .. } = &owned { recording } else { &recording };
    recover_opened(store, recording, &owned, options, progress)
}

/// Whether the files may be changed.
pub(crate) enum Taken {
    /// They belong to the caller; the recording as opened afterwards.
    Owned { recording: Box<Recording>, _ownership: Ownership },
    /// They have no owner, and the caller cannot own them: why. A recording in order needs no change.
    Refused(RecordingError),
}

/// Becomes the owner of a recording. A dry run only checks whether another process owns it.
///
/// # Errors
/// Another process owns it.
pub(crate) fn taken(
    store: &mut dyn Store,
    recording: &Recording,
    options: RecoverOptions,
) -> Result<Taken, RecordingError> {
    recording.require_named()?;
    let files: Vec<PathBuf> = recording.members().iter().flat_map(|member| files_to_own(&member.base)).collect();
    refuse_owned(store, &files)?;
    if options.dry_run {
        return Ok(Taken::Refused(RecordingError::Cancelled));
    }
    match owned(store, recording, Work::Changes) {
        Ok((again, ownership)) => Ok(Taken::Owned { recording: Box::new(again), _ownership: ownership }),
        Err(RecordingError::Owned(OwnError::Owned(owned))) => Err(OwnError::Owned(owned).into()),
        Err(error) => Ok(Taken::Refused(error)),
    }
}

/// The same for an opened recording that has been given its neighbours' facts in a series.
pub(crate) fn recover_opened(
    store: &mut dyn Store,
    recording: &Recording,
    owned: &Taken,
    options: RecoverOptions,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Recovered, RecordingError> {
    recording.require_changeable()?;
    if recording.is_foreign() {
        return Err(RecordingError::Limit("another program wrote this recording: it has no journal".to_owned()));
    }
    doubtless(recording, options.cut_journal)?;
    let unbelieved = recording.members().iter().any(|member| !member.journal.beyond.is_empty() && !member.salvaged);
    if unbelieved && !options.cut_journal {
        let faults = recording.faults().join("; ");
        return Err(RecordingError::Limit(format!(
            "{faults}: nothing was changed; to keep the records before the damage and give up those after it, \
             recover with --cut-journal"
        )));
    }
    let mut progress = |read| {
        progress(read);
        ControlFlow::Continue(())
    };
    let mut plan = planned(store, recording, options.all, &mut progress)?;
    if plan.changes.is_empty() {
        return Ok(plan.outcome(recording));
    }
    if let (false, Taken::Refused(why)) = (options.dry_run, owned) {
        return Err(why.clone());
    }
    // Compressed data are not mended. If some do not decompress, all others are read.
    let mut damaged = Vec::new();
    if !options.dry_run {
        damaged = restore_to_mend(store, recording, options.discard)?;
        if !damaged.is_empty() {
            plan = planned(store, recording, true, &mut progress)?;
            plan.changes
                .extend(damaged.iter().map(|kept| format!("what did not decompress is kept in {}", kept.display())));
        }
    }
    let mut given = damaged.clone();
    for member in recording.members() {
        let cut = Cut::find(store, member, &plan.blocks_of(member.number), options.discard, &given)?;
        given.extend(cut.keep.clone());
        plan.cut(cut, &Files::of(&member.base).data);
    }
    if !options.dry_run {
        mend::mend(store, recording, &plan)?;
    }
    plan.cut_files.splice(0..0, damaged);
    Ok(plan.outcome(recording))
}

/// Refuses a recording whose files do not prove which bytes may be cut off. Records of a short journal may be given up
/// on request.
fn doubtless(recording: &Recording, cut_journal: bool) -> Result<(), RecordingError> {
    let is_given_up = |doubt: &&MemberDoubt| cut_journal && matches!(doubt, MemberDoubt::Short(_));
    let Some(doubt) = recording.doubts().iter().find(|doubt| !is_given_up(doubt)) else { return Ok(()) };
    let instead = match doubt {
        MemberDoubt::Short(_) => "; to give up what the journal does not name, recover with --cut-journal",
        _ => "",
    };
    Err(RecordingError::Limit(format!("nothing was changed: {doubt}{instead}")))
}

/// The good parts of a recording, as [`prove`] found them.
#[derive(Clone, Debug, PartialEq)]
pub struct Proven {
    /// The good blocks and their places, by index.
    pub blocks: Vec<Block>,
    /// All gaps in order: the declared ones, and one for each piece that is missing or damaged.
    pub gaps: Vec<Gap>,
    /// The verdict.
    pub verdict: RecordingVerdict,
    /// Why the recording is not in order, in words; [`recover`] puts it in order. Empty if it is.
    pub faults: Vec<String>,
}

/// A piece of one data file that holds frames without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The number of the member whose data file holds it.
    pub member: usize,
    /// Its offset in that file.
    pub file_offset: u64,
    /// Its length.
    pub length: Bytes,
    /// The global index of its first frame.
    pub first: Frames,
}

impl Proven {
    /// The places of the good frames, in the order of the stream. Blocks that are adjacent in a file and in the stream
    /// become one piece.
    pub fn stretches(&self, recording: &Recording) -> Vec<Stretch> {
        let (timeline, layout) = (recording.timeline(), recording.about().layout);
        let mut stretches: Vec<Stretch> = Vec::new();
        for block in &self.blocks {
            for run in timeline.runs_in(block.position, Bytes(block.length.into())) {
                let (member, length) = (block.member, run.length.unwrap_or_default());
                let file_offset = block.file_offset + (run.position - block.position);
                match stretches.last_mut() {
                    Some(last)
                        if last.member == member
                            && last.file_offset + last.length.0 == file_offset
                            && last.first.0.saturating_add(layout.frames_in(last.length).0) == run.first.0 =>
                    {
                        last.length.0 += length.0;
                    }
                    _ => stretches.push(Stretch { member, file_offset, length, first: run.first }),
                }
            }
        }
        stretches
    }
}

/// Finds the good parts of a recording and changes nothing. Reads the blocks that no sync covers and the newest of the
/// others, or with `all` every block, and compares them with their checksums. If a sync covers a block that is bad,
/// every block is read.
///
/// # Errors
/// As for [`recover`], except for a journal that is damaged in its middle: records after the damage are not trusted,
/// and `faults` contains this. [`RecordingError::Cancelled`] if `progress`, which is called after each block, breaks
/// off.
pub fn prove(
    store: &mut dyn Store,
    recording: &Recording,
    all: bool,
    progress: &mut dyn FnMut(ReadProgress) -> ControlFlow<()>,
) -> Result<Proven, RecordingError> {
    recording.require_members()?;
    if recording.is_foreign() {
        return Err(RecordingError::Limit("another program wrote this recording: nothing proves it".to_owned()));
    }
    let plan = planned(store, recording, all, progress)?;
    let gaps = plan.gaps.iter().map(|(_, gap)| *gap).collect();
    let faults = recording.told_elsewhere().chain(plan.changes).collect();
    Ok(Proven { blocks: plan.blocks, gaps, verdict: plan.verdict, faults })
}

/// The recording as it should be after the recovery.
fn planned(
    store: &mut dyn Store,
    recording: &Recording,
    all: bool,
    progress: &mut dyn FnMut(ReadProgress) -> ControlFlow<()>,
) -> Result<Plan, RecordingError> {
    if !recording.members().iter().all(|member| frames_agree(recording.about(), member)) {
        return Err(RecordingError::Limit(format!(
            "{}: nothing was changed; correct the description of the data in the metadata, then recover again",
            recording.faults().join("; ")
        )));
    }
    let newest = newest_durable(recording);
    let some = |block: &&Block| all || !block.durable || newest.contains(&block.index);
    let blocks: Vec<Block> = recording.blocks().iter().filter(some).copied().collect();
    let is_whole = blocks.len() == recording.blocks().len();
    let mut bad = bad_blocks(store, recording, blocks, progress)?;
    if !is_whole && bad.iter().any(|index| newest.contains(index)) {
        bad = bad_blocks(store, recording, recording.blocks().to_vec(), progress)?;
    }
    Ok(Plan::new(recording, &bad))
}

/// The newest synced blocks of each member: a disk that confirmed a sync without doing it loses these.
fn newest_durable(recording: &Recording) -> Vec<u64> {
    let mut newest = Vec::new();
    // In a series only the last segment: the others had ended in order before it was begun.
    let members = recording.members();
    let looked_at = if recording.is_series() { recording.last_members() } else { members.len() };
    for member in &members[members.len() - looked_at.min(members.len())..] {
        let durable = recording.blocks().iter().rev().filter(|block| block.durable && block.member == member.number);
        newest.extend(durable.take(NEWEST).map(|block| block.index));
    }
    newest
}

/// Reads these blocks. Returns the indices of the bad ones, ascending. A block of a compressed member is also bad if it
/// does not decompress.
fn bad_blocks(
    store: &mut dyn Store,
    recording: &Recording,
    blocks: Vec<Block>,
    progress: &mut dyn FnMut(ReadProgress) -> ControlFlow<()>,
) -> Result<Vec<u64>, RecordingError> {
    let total = Bytes(blocks.iter().map(|block| u64::from(block.length)).sum());
    let (mut done, mut bad, mut undecoded) = (0, Vec::new(), Vec::new());
    let mut reader = BlockReader::of(store, recording, blocks)?;
    while let Some((block, bytes)) = reader.next_block() {
        match bytes {
            Ok(_) => {}
            Err(Unproven::Short | Unproven::Checksum) => bad.push(block.index),
            // In compressed data this is no error of the disk.
            Err(Unproven::Read(Errno(libc::EBADMSG))) => undecoded.push(block),
            Err(Unproven::Read(errno)) => {
                return Err(unreadable(&block, errno));
            }
        }
        done += u64::from(block.length);
        if progress(ReadProgress { done: Bytes(done), total }).is_break() {
            return Err(RecordingError::Cancelled);
        }
    }
    drop(reader);
    let first_of = |number: usize| undecoded.iter().find(|block| block.member == number);
    for (member, block) in recording.members().iter().filter_map(|member| Some((member, first_of(member.number)?))) {
        match store.open(&compressed_path(&Files::of(&member.base).data), Open::ReadData) {
            Ok(file) => store.close(file),
            Err(_) => return Err(unreadable(block, Errno(libc::EBADMSG))),
        }
    }
    bad.extend(undecoded.iter().map(|block| block.index));
    bad.sort_unstable();
    Ok(bad)
}

fn unreadable(block: &Block, errno: Errno) -> RecordingError {
    RecordingError::Limit(format!(
        "block {} of member {} cannot be read ({errno}): nothing was changed; copy the file to another disk as far as it can be read, and \
         recover the copy",
        block.index,
        block.member + 1
    ))
}
