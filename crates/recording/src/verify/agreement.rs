//! Compares data files, journals and metadata with each other, without reading the data.

use crate::sigmf::segments;
use crate::{Files, Member, Recording};
use hairspring_ring::gap::{Gap, GapCause};
use hairspring_ring::units::{Bytes, Frames};

/// All contradictions in a recording that has ended; in one that was cut off, only those that a crash does not explain.
pub fn disagreements(recording: &Recording) -> Vec<String> {
    let mut faults = Vec::new();
    if recording.is_series() {
        // The segments were compared one by one, which is among the faults of the whole.
        return faults;
    }
    for member in recording.members() {
        files(recording, member, &mut faults);
        if recording.ended().is_some() {
            metadata(recording, member, &mut faults);
        }
    }
    faults
}

fn files(recording: &Recording, member: &Member, faults: &mut Vec<String>) {
    let files = Files::of(&member.base);
    let mut mine: Vec<_> = recording.blocks().iter().filter(|block| block.member == member.number).collect();
    mine.sort_by_key(|block| block.file_offset);
    let mut at = 0;
    for block in mine {
        if block.file_offset != at {
            faults.push(format!("{}: a hole before block {}", files.data.display(), block.index));
            return;
        }
        at = block.file_offset + u64::from(block.length);
    }
    if recording.ended().is_none() {
        return;
    }
    if member.data_bytes > at {
        let more = Bytes(member.data_bytes - at);
        faults.push(format!("{}: {more} after the last block", files.data.display()));
    }
    let journal = &member.journal;
    if let (Some(stopped), true) = (journal.stopped, journal.beyond.is_empty()) {
        let number = journal.valid_bytes / crate::journal::RECORD_BYTES as u64;
        faults.push(format!("{}: record {number}: {stopped}", files.journal.display()));
    }
    if !journal
        .records
        .iter()
        .chain(journal.beyond.iter().map(|(_, record)| record))
        .any(|record| matches!(record, crate::journal::Record::End { .. }))
    {
        faults.push(format!("{}: it has no end, though the recording has ended", files.journal.display()));
    }
}

fn metadata(recording: &Recording, member: &Member, faults: &mut Vec<String>) {
    let meta = Files::of(&member.base).meta;
    let (Some(closing), Some(ended)) = (&member.closing, recording.ended()) else {
        faults.push(format!("{}: its state is still `recording`", meta.display()));
        return;
    };
    let stated = (closing.verdict, closing.ledger.produced_bytes, closing.ledger.stored_bytes);
    let lost = (closing.ledger.lost_bytes, closing.ledger.left_out_bytes);
    if stated != (ended.verdict, ended.produced_bytes, ended.stored_bytes)
        || lost != (ended.lost_bytes, ended.left_out_bytes)
    {
        faults.push(format!("{}: its verdict or account differs from that in the journal", meta.display()));
    }
    let stated = joined(closing.gaps.iter().copied());
    let found = joined(recording.gaps().iter().map(|(_, gap)| *gap));
    let mut left_out: Vec<_> = closing.skips.iter().map(|skip| (skip.first, skip.frames)).collect();
    let mut skipped: Vec<_> = recording.skips().iter().map(|(_, skip)| (skip.first, skip.frames)).collect();
    left_out.sort_unstable();
    skipped.sort_unstable();
    if stated != found || left_out != skipped {
        faults.push(format!("{}: its gaps differ from those in the journal", meta.display()));
    }
    let mut blocks: Vec<_> = recording.blocks().iter().filter(|block| block.member == member.number).collect();
    blocks.sort_by_key(|block| block.file_offset);
    let places = blocks.iter().map(|block| (block.file_offset, block.position, Bytes(block.length.into())));
    if member.segments != segments(recording.timeline(), places) {
        faults.push(format!("{}: its captures are not where the journal says", meta.display()));
    }
}

/// Gaps in order, with adjacent gaps of one cause joined, as the metadata list them. A journal has a record for each
/// piece.
fn joined(gaps: impl Iterator<Item = Gap>) -> Vec<(Frames, Frames, GapCause)> {
    let mut gaps: Vec<Gap> = gaps.collect();
    gaps.sort_by_key(|gap| (gap.first, gap.frames));
    let mut joined: Vec<(Frames, Frames, GapCause)> = Vec::with_capacity(gaps.len());
    for gap in gaps {
        match joined.last_mut() {
            Some((_, end, cause)) if *end == gap.first && *cause == gap.cause => *end = gap.end(),
            _ => joined.push((gap.first, gap.end(), gap.cause)),
        }
    }
    joined
}
