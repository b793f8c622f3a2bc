//! [`verify`]: reads every byte of a recording and checks it against all evidence: the checksum of its block, the
//! generator if the data can be computed again, the account in the journal, and the metadata.

mod agreement;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::path::Path;

use sha2::{Digest, Sha512};

use crate::ledger::{Ledger, RecordingVerdict};
use crate::sync_io::{BlockingStore, PIECE};
use crate::{Block, BlockReader, Recording, RecordingError, Unproven};
use hairspring_ring::units::{Bytes, Frames};
use hairspring_source::pattern::{Mismatch, Pattern};
use hairspring_store::{Open, Store};

pub use agreement::disagreements;

/// Checks besides the checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyOptions {
    /// Compares the data with the generator, where the recording names one.
    pub counters: bool,
    /// Computes SHA-512 of each data file.
    pub sha512: bool,
}

/// The progress of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadProgress {
    /// Bytes read up to now.
    pub done: Bytes,
    /// Bytes in total.
    pub total: Bytes,
}

/// A damaged block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The block and its place.
    pub block: Block,
    /// The damage.
    pub why: Unproven,
}

/// The result of [`verify`].
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// The recording's own verdict if everything agrees. Otherwise `incomplete` with the damage listed, or
    /// `unaccounted` if the damage does not explain the loss.
    pub verdict: RecordingVerdict,
    /// The number of proven blocks.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// The first [`MOST_DAMAGES`] damaged blocks.
    pub damages: Vec<Damage>,
    /// The number of damaged blocks.
    pub damaged: u64,
    /// The indices of blocks that retention deleted while the series was read, ascending. They are no damage; see
    /// [`Recording::leave_out_deleted`].
    pub deleted: Vec<u64>,
    /// Bytes of the stored stream that are in no file and in no declared gap.
    pub missing: Bytes,
    /// The account from the journals and the proven bytes.
    pub ledger: Ledger,
    /// Whether it adds up; damaged and missing bytes count as lost.
    pub ledger_holds: bool,
    /// Contradictions between data, journals and metadata, in words.
    pub faults: Vec<String>,
    /// The generator that the data were compared with.
    pub pattern: Option<Pattern>,
    /// The first frame that differs.
    pub mismatch: Option<Mismatch>,
    /// SHA-512 of each member's data file, if requested; `None` if the blocks do not cover the whole file.
    pub sha512: Vec<Option<String>>,
}

/// The most damaged blocks in the list.
pub const MOST_DAMAGES: usize = 1000;

/// Verifies a recording whose members are all present.
///
/// # Errors
/// A member is missing, a file cannot be opened, or another program wrote the recording and states no `core:sha512` to
/// compare it with.
pub fn verify(
    store: &mut dyn Store,
    recording: &Recording,
    options: VerifyOptions,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Verified, RecordingError> {
    recording.require_members()?;
    let stated = recording.stated_sha512();
    if recording.is_foreign() && stated.is_none() {
        return Err(RecordingError::Limit(
            "another program wrote this recording: it has no checksums to verify, and no core:sha512".to_owned(),
        ));
    }
    let mut faults = recording.faults().to_vec();
    faults.extend(disagreements(recording));
    faults.extend(recording.told_elsewhere());
    let layout = recording.about().layout;
    let pattern = match &recording.about().pattern {
        Some(text) if options.counters => text.parse::<Pattern>().map_or_else(
            |error| {
                faults.push(error.to_string());
                None
            },
            Some,
        ),
        _ => None,
    };
    let mut hashes: Vec<Option<(Sha512, u64)>> =
        vec![(options.sha512 && !recording.is_foreign()).then(|| (Sha512::new(), 0)); recording.about().members.len()];
    let total = Bytes(recording.stored_bytes());
    let (mut blocks, mut done, mut proven) = (0_u64, 0_u64, 0_u64);
    let (mut unread, mut mismatch) = (Vec::new(), None);
    let mut reader = BlockReader::new(store, recording)?;
    while let Some((block, bytes)) = reader.next_block() {
        done += u64::from(block.length);
        match bytes {
            Err(why) => {
                unread.push(Damage { block, why });
                hashes[block.member] = None;
            }
            Ok(bytes) => {
                blocks += 1;
                proven += u64::from(block.length);
                if let (Some(pattern), None) = (pattern, mismatch) {
                    mismatch = compare(recording, pattern, &block, bytes);
                }
                hashes[block.member] = hashes[block.member].take().and_then(|(mut hash, next)| {
                    hash.update(bytes);
                    (next == block.file_offset).then_some((hash, next + u64::from(block.length)))
                });
            }
        }
        progress(ReadProgress { done: Bytes(done), total });
    }
    drop(reader);
    let failed: Vec<Block> = unread.iter().map(|damage| damage.block).collect();
    let deleted = recording.deleted_since(store, &failed)?;
    let left;
    let recording = match deleted.is_empty() {
        true => recording,
        false => {
            let mut less = recording.clone();
            less.leave_out_deleted(&deleted);
            left = less;
            &left
        }
    };
    let mut damages = unread;
    damages.retain(|damage| deleted.binary_search(&damage.block.index).is_err());
    let damaged = damages.len() as u64;
    damages.truncate(MOST_DAMAGES);
    let sha512 = hashes.into_iter().zip(recording.members()).map(|(hash, member)| {
        let (hash, length) = hash?;
        (length == member.data_bytes).then(|| hex(&hash.finalize()))
    });
    let mut sha512: Vec<Option<String>> = sha512.collect();
    if let Some((offset, length)) = recording.foreign_piece().filter(|_| stated.is_some() || options.sha512)
        && let Some(member) = recording.members().first()
    {
        sha512 = vec![Some(sha512_of(store, &member.data(), offset, length)?)];
    }
    if let Some(stated) = stated {
        match sha512.first().and_then(Option::as_deref) {
            Some(found) if found.eq_ignore_ascii_case(stated) => {}
            Some(_) => faults.push("the data do not match core:sha512".to_owned()),
            None => {}
        }
    }
    let missing = recording.holes().iter().filter(|hole| !hole.declared).map(|hole| hole.length).sum::<u64>();
    let mut ledger = recording.ledger();
    let damaged_bytes = ledger.stored_bytes - proven;
    ledger.stored_bytes = proven;
    ledger.durable_bytes = ledger.durable_bytes.min(proven);
    ledger.lost_bytes = ledger.lost_bytes.saturating_add(damaged_bytes).saturating_add(missing);
    if recording.is_foreign() {
        // Only its file is known.
        ledger.produced_bytes = ledger.stored_bytes.saturating_add(damaged_bytes);
    }
    let grain = layout.grain().bytes;
    let ledger_holds = match recording.ended() {
        Some(_) => ledger.holds(),
        // It was cut off. Data then under way are lost and counted above, except less than a grain.
        None => ledger.unaccounted_bytes().unsigned_abs() < u128::from(grain),
    };
    let own = match recording.ended() {
        Some(ended) => ended.verdict,
        None if recording.is_foreign() => RecordingVerdict::Complete,
        None => RecordingVerdict::Incomplete,
    };
    // A recording in progress is no fault of the existing data.
    if recording.doubts().is_empty() {
        faults.splice(0..0, recording.unfinished());
    }
    let is_sound = faults.is_empty() && damaged == 0 && missing == 0 && mismatch.is_none();
    let verdict = match (ledger_holds, is_sound) {
        (false, _) => RecordingVerdict::Unaccounted,
        (true, true) => own,
        (true, false) => own.max(RecordingVerdict::Incomplete),
    };
    let (bytes, missing) = (Bytes(proven), Bytes(missing));
    Ok(Verified {
        verdict,
        blocks,
        bytes,
        damages,
        damaged,
        deleted,
        missing,
        ledger,
        ledger_holds,
        faults,
        pattern,
        mismatch,
        sha512,
    })
}

/// The first place in a block that the generator did not produce.
fn compare(recording: &Recording, pattern: Pattern, block: &Block, bytes: &[u8]) -> Option<Mismatch> {
    let timeline = recording.timeline();
    let layout = timeline.layout();
    timeline.runs_in(block.position, Bytes(block.length.into())).find_map(|run| {
        let start = (run.position - block.position) as usize;
        let length = run.length.map_or(0, |length| length.0 as usize);
        // A frame within a grain means that a gap lies elsewhere than it states, which is among the faults.
        let is_whole = run.first.0.is_multiple_of(layout.grain().frames);
        // A restarted source restarted its data, too.
        let origin = recording.about().series.as_ref().map_or(Frames(0), |of| of.epoch_first);
        let first = Frames(run.first.0.checked_sub(origin.0)?);
        let found = is_whole.then(|| pattern.check(layout, first, bytes.get(start..start + length)?)).flatten()?;
        Some(Mismatch { frame: Frames(found.frame.0 + origin.0), ..found })
    })
}

/// SHA-512 of a piece of a file, which may have more bytes than its samples.
fn sha512_of(store: &mut dyn Store, path: &Path, offset: u64, length: u64) -> Result<String, RecordingError> {
    let mut disk = BlockingStore::new(store)?;
    let file = disk.store.open(path, Open::Mend).or_else(|_| disk.store.open(path, Open::ReadData))?;
    let alignment = disk.store.facts(file).alignment;
    let (mut hash, mut at, end) = (Sha512::new(), offset, offset + length);
    while at < end {
        let begin = at / alignment * alignment;
        let bytes = disk.read_at(path, file, begin, (end - begin).min(PIECE.0))?;
        let fresh = bytes.get((at - begin) as usize..).unwrap_or_default();
        if fresh.is_empty() {
            break;
        }
        hash.update(fresh);
        at += fresh.len() as u64;
    }
    disk.store.close(file);
    Ok(hex(&hash.finalize()))
}

/// SHA-512 in hexadecimal digits.
pub fn sha512(bytes: &[u8]) -> String {
    hex(&Sha512::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(128), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
