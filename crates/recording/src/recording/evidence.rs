//! [`MemberDoubt`]: why the files of a member do not prove which of its samples are good, so that none may be cut off.
//!
//! A recorder writes the journal's end, makes it durable, and only then writes metadata with the end of the recording.
//! So metadata with an end prove that the journal had one, and that the data file had the stated length. A journal that
//! is missing, empty, shorter than that, or another recording's is no evidence of a crash: it was not copied, or not as
//! a whole. Metadata that state failed writes, or samples that were not durable, prove nothing of the journal's length.

use std::fmt;
use std::path::PathBuf;

use hairspring_ring::gap::GapCause;
use hairspring_ring::layout::Layout;
use hairspring_ring::units::Frames;

use super::{Block, Files, Member};
use crate::journal::Record;

/// Why none of a member's data may be cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberDoubt {
    /// There is no journal.
    NoJournal(PathBuf),
    /// The journal has no readable record, but by its metadata the recording ended.
    Unreadable(PathBuf),
    /// The journal belongs to another recording, or to another member.
    Foreign(PathBuf),
    /// The journal ends before the data that the metadata state.
    Short(PathBuf),
    /// There is no data file, although journal or metadata list samples.
    NoData(PathBuf),
}

impl fmt::Display for MemberDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, what) = match self {
            Self::NoJournal(path) => (path, "is missing, so nothing proves the samples: copy it there"),
            Self::Unreadable(path) => {
                (path, "has no readable record, so nothing proves the samples: copy it there again")
            }
            Self::Foreign(path) => {
                (path, "belongs to another recording or part than its metadata: copy the right files there")
            }
            Self::Short(path) => {
                (path, "ends before the data that the metadata state, so nothing proves the rest: copy it there again")
            }
            Self::NoData(path) => (path, "is missing: copy it there, or move the other files of the recording away"),
        };
        write!(f, "{} {what}", path.display())
    }
}

/// Why none of a member's data may be cut off, in a recording of this layout with these blocks.
pub(super) fn doubt(layout: Layout, blocks: &[Block], member: &Member) -> Option<MemberDoubt> {
    let Files { data, journal, .. } = Files::of(&member.base);
    let mine = blocks.iter().filter(|block| block.member == member.number);
    let named = mine.map(|block| block.file_offset + u64::from(block.length)).max().unwrap_or(0);
    let bytes = |frames: Frames| layout.bytes_of(frames).0;
    let stated = member.segments.iter().map(|one| bytes(one.sample_start).saturating_add(bytes(one.frames)));
    let stated = stated.max().unwrap_or(0);
    // After a failed write or sync a journal may have ended early.
    let is_sure = member.closing.as_ref().is_some_and(|closing| {
        closing.ledger.durable_bytes >= closing.ledger.stored_bytes
            && closing.gaps.iter().all(|gap| gap.cause != GapCause::WriteFailed)
    });
    if !member.has_journal {
        // An interrupted deletion leaves the metadata alone.
        return (stated > 0 || member.data_bytes > 0).then_some(MemberDoubt::NoJournal(journal));
    }
    match member.journal.records.first() {
        Some(Record::Start { id, member: number, members, .. }) => {
            let about = &member.about;
            let expected = (about.id, about.member, about.members.len());
            if (*id, usize::from(*number), usize::from(*members)) != expected {
                return Some(MemberDoubt::Foreign(journal));
            }
        }
        _ if stated > 0 && is_sure => return Some(MemberDoubt::Unreadable(journal)),
        _ => {}
    }
    let records = || member.journal.records.iter().chain(member.journal.beyond.iter().map(|(_, record)| record));
    if !member.has_data && (stated > 0 || records().any(|record| matches!(record, Record::Block { .. }))) {
        return Some(MemberDoubt::NoData(data));
    }
    // A journal without an end that lists all blocks is no reason for doubt: its disk failed while the recording went
    // on.
    let ends = records().any(|record| matches!(record, Record::End { .. }));
    (is_sure && !ends && member.data_bytes.min(stated) > named).then_some(MemberDoubt::Short(journal))
}
