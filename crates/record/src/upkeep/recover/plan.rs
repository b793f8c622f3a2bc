//! Decides what to mend, from the proven blocks. Changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hairspring_machine::Instant;

use hairspring_recording::ledger::{Ledger, RecordingVerdict};
use hairspring_recording::verify::disagreements;
use hairspring_recording::{Block, Files, Recording, holes_between};
use hairspring_ring::gap::{Gap, GapCause};
use hairspring_ring::units::{Bytes, Frames};

use super::cut::Cut;
use super::{Lost, Recovered};

/// The recording as it will be.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The proven blocks, by index, where they lie now.
    pub(crate) blocks: Vec<Block>,
    /// All gaps, by position.
    pub(crate) gaps: Vec<(u64, Gap)>,
    /// The account.
    pub(crate) ledger: Ledger,
    pub(crate) verdict: RecordingVerdict,
    /// The changes, in words.
    pub(crate) changes: Vec<String>,
    lost: Lost,
    durable: u64,
    proven: u64,
    damaged_blocks: u64,
    /// The bytes cut off, for each member.
    pub(super) cuts: Vec<Cut>,
    /// The files that keep them.
    pub(super) cut_files: Vec<PathBuf>,
}

impl Plan {
    /// Makes a plan from the indices of the bad blocks.
    pub(crate) fn new(recording: &Recording, bad: &[u64]) -> Self {
        let (good, rest): (Vec<Block>, Vec<Block>) =
            recording.blocks().iter().partition(|block| bad.binary_search(&block.index).is_err());
        let damaged_blocks = rest.len() as u64;
        let (ended, layout) = (recording.ended(), recording.about().layout);
        let between = recording.gaps().iter().filter(|(_, gap)| !gap.cause.is_in_stream());
        let mut gaps: Vec<(u64, Gap)> = between.copied().collect();
        let holes = holes_between(recording, &good);
        let newly_lost = holes.iter().filter(|hole| !hole.declared).map(|hole| hole.length).sum::<u64>();
        let declared = Declared::of(recording);
        let in_stream = holes.iter().flat_map(|hole| declared.declare(recording, hole.position, hole.length));
        gaps.extend(in_stream);
        gaps.sort_by_key(|(position, gap)| (*position, gap.first));
        let stored = good.iter().map(|block| u64::from(block.length)).sum::<u64>();
        let bytes = |frames: Frames| layout.bytes_of(frames).0;
        let lost_bytes = gaps.iter().fold(0_u64, |sum, (_, gap)| sum.saturating_add(bytes(gap.frames)));
        let skips = recording.skips().iter();
        let left_out_bytes = skips.fold(0_u64, |sum, (_, skip)| sum.saturating_add(bytes(skip.frames)));
        let accounted = stored.saturating_add(lost_bytes).saturating_add(left_out_bytes);
        let ledger = Ledger {
            produced_bytes: ended.map_or(accounted, |ended| ended.produced_bytes),
            stored_bytes: stored,
            durable_bytes: stored,
            lost_bytes,
            left_out_bytes,
            earlier_bytes: recording.earlier_bytes(),
            ..Ledger::default()
        };
        let is_cut = recording.cut().is_some() && !good.is_empty();
        let verdict = match ended {
            // The cut states which frames belong to a segment, so a segment with all of them is whole.
            None if is_cut && lost_bytes == 0 => RecordingVerdict::Complete,
            None => RecordingVerdict::Incomplete,
            Some(ended) if newly_lost == 0 => ended.verdict,
            Some(ended) => ended.verdict.max(RecordingVerdict::Incomplete),
        };
        let lost = match ended {
            Some(ended) if !ended.recovered || newly_lost == 0 => Lost::Known(Bytes(newly_lost)),
            None if is_cut => Lost::Known(Bytes(newly_lost)),
            None if recording.blocks().is_empty() => Lost::Unknown,
            _ => Lost::AtLeast(Bytes(newly_lost)),
        };
        let sum = |durable: bool| {
            good.iter().filter(|block| block.durable == durable).map(|block| u64::from(block.length)).sum::<u64>()
        };
        let (durable, proven) = (sum(true), sum(false));
        let changes = changes(recording, damaged_blocks, newly_lost);
        Self {
            blocks: good,
            gaps,
            ledger,
            verdict,
            changes,
            lost,
            durable,
            proven,
            damaged_blocks,
            cuts: Vec::new(),
            cut_files: Vec::new(),
        }
    }

    /// The blocks of a member that stay, by place.
    pub(super) fn blocks_of(&self, member: usize) -> Vec<Block> {
        let mut blocks: Vec<Block> = self.blocks.iter().filter(|block| block.member == member).copied().collect();
        blocks.sort_by_key(|block| block.file_offset);
        blocks
    }

    /// Notes the bytes cut off a data file.
    pub(super) fn cut(&mut self, cut: Cut, data: &Path) {
        self.changes.extend(cut.told(data));
        self.cut_files.extend(cut.keep.clone());
        self.cuts.push(cut);
    }

    /// Whether nothing is lost beyond the declared gaps.
    pub(crate) fn lost_nothing(&self) -> bool {
        matches!(self.lost, Lost::Known(Bytes(0)) | Lost::AtLeast(Bytes(0)))
    }

    pub(super) fn outcome(self, recording: &Recording) -> Recovered {
        let sound = self.changes.is_empty();
        Recovered {
            durable: Bytes(self.durable),
            proven: Bytes(self.proven),
            lost: self.lost,
            damaged_blocks: self.damaged_blocks,
            gaps: self.gaps.iter().map(|(_, gap)| *gap).collect(),
            ledger: if sound { recording.ledger() } else { self.ledger },
            verdict: self.verdict,
            changed: self.changes,
            cut_files: self.cut_files,
        }
    }
}

/// The gaps declared already, in order, because a storm leaves thousands of pieces and of gaps.
struct Declared {
    /// Blocks that could not be written, by their first frames, each with the largest end up to there.
    failed: Vec<(Gap, Frames)>,
    /// Damage that was declared before, by its first frame and its length.
    damaged: BTreeMap<(Frames, Frames), Gap>,
    /// The time of the last block, so that every run of `recover` finds the same time.
    found: Instant,
}

impl Declared {
    fn of(recording: &Recording) -> Self {
        let of_cause =
            |cause: GapCause| recording.gaps().iter().map(|(_, gap)| *gap).filter(move |gap| gap.cause == cause);
        let mut failed: Vec<Gap> = of_cause(GapCause::WriteFailed).collect();
        failed.sort_by_key(|gap| gap.first);
        let last_end = |last: &mut Frames, gap: Gap| {
            *last = gap.end().max(*last);
            Some((gap, *last))
        };
        let failed = failed.into_iter().scan(Frames(0), last_end).collect();
        let damaged = of_cause(GapCause::Damaged).map(|gap| ((gap.first, gap.frames), gap)).collect();
        let found = recording.blocks().iter().map(|block| block.at).max().unwrap_or(Instant::BOOT);
        Self { failed, damaged, found }
    }

    /// Gaps for a missing piece of the stored stream. A write failure that the recorder declared for it stays the
    /// cause.
    fn declare(&self, recording: &Recording, position: u64, length: u64) -> Vec<(u64, Gap)> {
        let (timeline, layout) = (recording.timeline(), recording.about().layout);
        let first = timeline.frame_at(position);
        let end = Frames(first.0.saturating_add(layout.frames_in(Bytes(length)).0));
        let from = self.failed.partition_point(|(_, last_end)| *last_end <= first);
        let to = self.failed.partition_point(|(gap, _)| gap.first < end);
        let known = self.failed.get(from..to).unwrap_or_default().iter().map(|(gap, _)| *gap);
        let at = |frame: Frames| position.saturating_add(layout.bytes_of(Frames(frame.0 - first.0)).0);
        let damaged = |from: Frames, to: Frames| {
            let frames = Frames(to.0 - from.0);
            let before = self.damaged.get(&(from, frames)).copied();
            let new = Gap { first: from, frames, cause: GapCause::Damaged, found: self.found };
            (at(from), before.unwrap_or(new))
        };
        let (mut gaps, mut here) = (Vec::new(), first);
        for gap in known {
            let (from, to) = (gap.first.max(here), gap.end().min(end));
            if from >= to {
                continue;
            }
            if from > here {
                gaps.push(damaged(here, from));
            }
            gaps.push((at(from), Gap { first: from, frames: Frames(to.0 - from.0), ..gap }));
            here = to;
        }
        if here < end {
            gaps.push(damaged(here, end));
        }
        gaps
    }
}

fn changes(recording: &Recording, damaged_blocks: u64, newly_lost: u64) -> Vec<String> {
    let mut changes = Vec::new();
    if recording.ended().is_none() && recording.doubts().is_empty() {
        changes.push("the recording was cut off: it gets an end".to_owned());
    }
    if damaged_blocks > 0 {
        changes.push(format!("{damaged_blocks} blocks are damaged: they are left out"));
    }
    if newly_lost > 0 {
        changes.push(format!("{} are missing: a gap declares them", Bytes(newly_lost)));
    }
    changes.extend(recording.faults().iter().cloned());
    changes.extend(disagreements(recording));
    if recording.ended().is_none() {
        for member in recording.members() {
            let files = Files::of(&member.base);
            let mine = recording.blocks().iter().filter(|block| block.member == member.number);
            let end = mine.map(|block| block.file_offset + u64::from(block.length)).max().unwrap_or(0);
            if member.data_bytes > end {
                let more = Bytes(member.data_bytes - end);
                changes.push(format!("{}: {more} after the last block are cut off", files.data.display()));
            }
            if let Some(stopped) = member.journal.stopped {
                changes.push(format!("{}: its last record is left out: {stopped}", files.journal.display()));
            }
        }
    }
    changes
}
