//! Merges the records of all journals into one account: blocks, holes, gaps, and the frame of each byte.

use crate::beginning::Beginning;
use crate::clock::external::{ExternalReading, ExternalSilence};
use crate::clock::{BootId, ClockPair, ClockRecord, Mark};
use crate::journal::{GapBounds, InSeries, KeptFrames, Record, Stopped};
use crate::timeline::Timeline;
use hairspring_ring::gap::{Gap, Skip};
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Bytes, Frames};

use super::{Block, Ended, Failure, Hole, Member};

/// The most faults in the list; further ones are only mentioned.
const MOST_FAULTS: usize = 100;

/// The merged contents of all journals.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) blocks: Vec<Block>,
    pub(super) timeline: Timeline,
    pub(super) gaps: Vec<(u64, Gap)>,
    pub(super) skips: Vec<(u64, Skip)>,
    pub(super) triggers: Vec<(u64, Frames)>,
    pub(super) kept: Vec<KeptFrames>,
    pub(super) failures: Vec<Failure>,
    pub(super) holes: Vec<Hole>,
    pub(super) produced: u64,
    pub(super) ended: Option<Ended>,
    pub(super) begun: Option<Beginning>,
    pub(super) series: Option<InSeries>,
    pub(super) bounds: Vec<GapBounds>,
    pub(super) cut: Option<Frames>,
    pub(super) epoch: Option<Frames>,
    pub(super) clock: ClockRecord,
    pub(super) faults: Faults,
}

/// A bounded list of faults.
#[derive(Debug, Default)]
pub(super) struct Faults(pub(super) Vec<String>);

impl Faults {
    pub(super) fn add(&mut self, fault: String) {
        match self.0.len() {
            MOST_FAULTS => self.0.push("and more".to_owned()),
            0..MOST_FAULTS => self.0.push(fault),
            _ => {}
        }
    }
}

/// The findings of one pass over the records.
#[derive(Default)]
struct Found {
    /// Blocks with the place of their record, and whether a record withdrew one.
    blocks: Vec<(u64, Block)>,
    gaps: Vec<(u64, Gap)>,
    skips: Vec<(u64, Skip)>,
    triggers: Vec<(u64, Frames)>,
    kept: Vec<KeptFrames>,
    failures: Vec<Failure>,
    ends: Vec<Ended>,
    begun: Option<Beginning>,
    series: Option<InSeries>,
    bounds: Vec<GapBounds>,
    cut: Option<Frames>,
    epoch: Option<Frames>,
    clock: ClockRecord,
    pairs: Vec<ClockPair>,
    marks: Vec<Mark>,
    readings: Vec<ExternalReading>,
    silences: Vec<ExternalSilence>,
}

/// Merges the journals. Also sets for each member whether its journal was salvaged, and its durable bytes.
pub(super) fn account(layout: Layout, block: Bytes, members: &mut [Member]) -> Account {
    let mut faults = Faults::default();
    salvage(layout, members, &mut faults);
    let mut found = Found::default();
    for member in members.iter() {
        collect(layout, block, member, member.salvaged, &mut found, &mut faults);
    }
    let gaps = in_order(found.gaps, |gap| (gap.0, gap.1.first, gap.1.frames));
    let skips = in_order(found.skips, |skip| (skip.0, skip.1.first, skip.1.frames));
    let mut triggers = found.triggers;
    triggers.sort_unstable();
    triggers.dedup();
    let ended = end_of(&found.ends, &mut faults);
    let mut clock = found.clock;
    in_order(found.pairs, |pair| (pair.monotonic, pair.realtime)).into_iter().for_each(|pair| clock.pair(pair));
    in_order(found.marks, |mark| (mark.frame, mark.earliest, mark.latest))
        .into_iter()
        .for_each(|mark| clock.mark(mark));
    in_order(found.readings, |reading| (reading.earliest, reading.latest, reading.ticks))
        .into_iter()
        .for_each(|reading| clock.external_reading(reading));
    in_order(found.silences, |silence| (silence.after, silence.before))
        .into_iter()
        .for_each(|silence| clock.external_silence(silence));
    let timeline = timeline(layout, &gaps, &skips, &mut faults);
    // Bytes after the end of a file that was cut short were produced as well.
    let produced = produced_until(layout, found.blocks.iter().map(|(_, block)| block), found.cut);
    let blocks = places(members, found.blocks, &mut faults);
    for member in members.iter_mut() {
        let mine = blocks.iter().filter(|block| block.member == member.number && block.durable);
        member.durable_bytes = mine.map(|block| u64::from(block.length)).sum();
    }
    let holes = holes(layout, &blocks, produced, &timeline, &gaps, &skips, ended);
    Account {
        blocks,
        timeline,
        gaps,
        skips,
        triggers,
        kept: in_order(found.kept, |kept| (kept.first, kept.end)),
        failures: found.failures,
        holes,
        produced,
        ended,
        begun: found.begun,
        series: found.series,
        cut: found.cut,
        epoch: found.epoch,
        bounds: latest(in_order(found.bounds, |one| (one.first, one.least, one.most))),
        clock,
        faults,
    }
}

/// Decides whether records after damage in a journal are trusted. They are if they contain an end whose sums agree with
/// the known gaps. Then the damaged piece held no gap, and all later frames are where they seem to be. (A block in the
/// damaged piece is missing, which shows.)
///
/// A power cut may leave any part of the bytes appended since the journal's last sync, and zeros instead of the rest.
/// That part may contain one record of a sync but not two, because the second is written after the first is durable.
/// Such a journal is not called damaged.
fn salvage(layout: Layout, members: &mut [Member], faults: &mut Faults) {
    let (mut all, mut ignored) = (Found::default(), Faults::default());
    for member in members.iter() {
        collect(layout, Bytes(u64::MAX), member, true, &mut all, &mut ignored);
    }
    let gaps = in_order(all.gaps, |gap| (gap.0, gap.1.first, gap.1.frames));
    let skips = in_order(all.skips, |skip| (skip.0, skip.1.first, skip.1.frames));
    let lost = gaps.iter().fold(0_u64, |sum, (_, gap)| sum.saturating_add(layout.bytes_of(gap.frames).0));
    let left_out = skips.iter().fold(0_u64, |sum, (_, skip)| sum.saturating_add(layout.bytes_of(skip.frames).0));
    let agree = all.ends.last().is_some_and(|end| end.lost_bytes == lost && end.left_out_bytes == left_out);
    for member in members.iter_mut() {
        let beyond = member.journal.beyond.iter();
        let syncs = beyond.filter(|(_, record)| matches!(record, Record::Sync { .. })).count();
        if !agree && syncs < 2 && member.journal.stopped == Some(Stopped::Blank) {
            member.journal.beyond.clear();
        }
        if member.journal.beyond.is_empty() {
            continue;
        }
        member.salvaged = agree;
        let number = member.journal.valid_bytes / crate::journal::RECORD_BYTES as u64;
        let behind = member.journal.beyond.len();
        let journal = super::Files::of(&member.base).journal;
        let consequence = if agree {
            "are trusted, because the sums at the end agree"
        } else {
            "are not trusted, because the damaged records may have held a gap"
        };
        faults
            .add(format!("{}: damaged at record {number}; {behind} records after it {consequence}", journal.display()));
    }
}

/// Sorted and without duplicates, because every journal has the records that concern all members.
/// Keeps the widest bounds of a gap that has grown while it was recorded.
fn latest(bounds: Vec<GapBounds>) -> Vec<GapBounds> {
    let mut latest: Vec<GapBounds> = Vec::with_capacity(bounds.len());
    for one in bounds {
        match latest.last_mut().filter(|last| last.first == one.first) {
            Some(last) => *last = one,
            None => latest.push(one),
        }
    }
    latest
}

fn in_order<T: PartialEq, K: Ord>(mut list: Vec<T>, key: impl Fn(&T) -> K) -> Vec<T> {
    list.sort_by_key(&key);
    list.dedup_by(|a, b| key(a) == key(b));
    list
}

fn collect(layout: Layout, block: Bytes, member: &Member, beyond: bool, found: &mut Found, faults: &mut Faults) {
    let journal = &member.journal;
    let first = journal.sequences.iter().copied().zip(journal.records.iter().copied());
    let beyond: &[(u64, Record)] = if beyond { &journal.beyond } else { &[] };
    let records = || first.clone().chain(beyond.iter().copied());
    let covered = records().filter_map(|(_, record)| match record {
        Record::Sync { before, .. } => Some(before),
        _ => None,
    });
    let covered = covered.max().unwrap_or(0);
    let grain = layout.grain();
    for (sequence, record) in records() {
        match record {
            Record::Block { index, file_offset, length, crc, produced_bytes, at } => {
                let position = index.checked_mul(block.0);
                let is_possible = u64::from(length) <= block.0
                    && u64::from(length).is_multiple_of(grain.bytes)
                    && file_offset.checked_add(u64::from(length)).is_some();
                let Some(position) = position.filter(|start| is_possible && start.checked_add(block.0).is_some())
                else {
                    if block.0 != u64::MAX {
                        faults.add(format!(
                            "the journal of member {} has an impossible block {index}",
                            member.number + 1
                        ));
                    }
                    continue;
                };
                let (member, durable) = (member.number, sequence < covered);
                let crc = Some(crc);
                let block = Block { index, position, member, file_offset, length, crc, produced_bytes, at, durable };
                found.blocks.push((sequence, block));
            }
            Record::Gap { position, gap } => found.gaps.push((position, gap)),
            Record::Skip { position, skip } => found.skips.push((position, skip)),
            Record::Trigger { frame, shot } => found.triggers.push((shot, frame)),
            Record::Keep(kept) => found.kept.push(kept),
            Record::Error { operation, errno, block, at } => {
                found.failures.push(Failure { member: member.number, operation, errno, block, at });
            }
            Record::End { verdict, recovered, produced_bytes, stored_bytes, lost_bytes, left_out_bytes } => {
                let end = Ended { verdict, recovered, produced_bytes, stored_bytes, lost_bytes, left_out_bytes };
                found.ends.push(end);
            }
            Record::Begun { realtime, monotonic, within } => {
                found.begun = Some(Beginning { monotonic, realtime, within });
            }
            Record::Series(place) => found.series = Some(place),
            Record::Bounds(bounds) => found.bounds.push(bounds),
            Record::Cut { frame } => found.cut = Some(frame),
            Record::Epoch { first } => found.epoch = Some(first),
            Record::Clock { boot_id, reference } => {
                found.clock.boot_id = (boot_id != [0; 16]).then_some(BootId(boot_id));
                found.clock.reference = reference;
            }
            Record::Pair(pair) => found.pairs.push(pair),
            Record::Mark(mark) => found.marks.push(mark),
            // The last statement counts: the sender restarted there.
            Record::Count(count) => found.clock.count = Some(count),
            Record::ExternalClock(head) => found.clock.external = Some(head.facts()),
            Record::External(reading) => found.readings.push(reading),
            Record::ExternalSilence(silence) => found.silences.push(silence),
            Record::Start { .. } | Record::Sync { .. } => {}
        }
    }
}

/// The valid end; for a mended recording, the end that `recover` wrote.
fn end_of(ends: &[Ended], faults: &mut Faults) -> Option<Ended> {
    let last = ends.iter().rev().find(|end| end.recovered).or_else(|| ends.last()).copied()?;
    if ends.iter().any(|end| end.recovered == last.recovered && *end != last) {
        faults.add("the journals of the members state different ends".to_owned());
    }
    Some(last)
}

/// The frames and positions at which gaps and skips lie.
fn timeline(layout: Layout, gaps: &[(u64, Gap)], skips: &[(u64, Skip)], faults: &mut Faults) -> Timeline {
    let between = gaps.iter().filter(|(_, gap)| !gap.cause.is_in_stream());
    let gaps = between.map(|(position, gap)| (*position, gap.first, gap.frames));
    let skips = skips.iter().map(|(position, skip)| (*position, skip.first, skip.frames));
    let mut all: Vec<_> = gaps.chain(skips).collect();
    all.sort_unstable();
    let grain = layout.grain();
    let mut timeline = Timeline::new(layout);
    for (position, first, frames) in all {
        if timeline.frame_at(position) != first
            || !position.is_multiple_of(grain.bytes)
            || !frames.0.is_multiple_of(grain.frames)
        {
            faults.add(format!("the gap at frame {} does not lie where it states", first.0));
        }
        timeline.skip(position, frames);
    }
    timeline
}

/// The place of each block: from its latest record, within its file, and not in the place of another block.
fn places(members: &[Member], mut all: Vec<(u64, Block)>, faults: &mut Faults) -> Vec<Block> {
    // Within one member the latest record counts; between two members the one written later.
    all.sort_by_key(|(sequence, block)| (block.index, block.member, *sequence));
    all.dedup_by(|later, first| {
        let same = later.1.index == first.1.index && later.1.member == first.1.member;
        if same {
            *first = *later;
        }
        same
    });
    all.retain(|(_, block)| block.length > 0);
    let size =
        |number: usize| members.iter().find(|member| member.number == number).map_or(0, |member| member.data_bytes);
    let mut cut = 0_u64;
    all.retain(|(_, block)| {
        let fits = block.file_offset + u64::from(block.length) <= size(block.member);
        cut += u64::from(!fits);
        fits
    });
    if cut > 0 {
        faults.add(format!("{cut} blocks lie after the end of their data file"));
    }
    all.sort_by_key(|(_, block)| (block.index, block.at));
    all.dedup_by(|later, first| {
        let same = later.1.index == first.1.index;
        if same {
            *first = *later;
        }
        same
    });
    // If two blocks have one place, the later record is right.
    all.sort_by_key(|(_, block)| (block.member, block.file_offset));
    let mut kept: Vec<(u64, Block)> = Vec::with_capacity(all.len());
    for (sequence, block) in all {
        let clash = kept.last().filter(|(_, last)| {
            last.member == block.member && last.file_offset + u64::from(last.length) > block.file_offset
        });
        match clash.map(|(other, last)| (*other, last.index)) {
            None => kept.push((sequence, block)),
            Some((other, index)) => {
                faults.add(format!("blocks {index} and {} have the same place", block.index));
                if sequence > other {
                    kept.pop();
                    kept.push((sequence, block));
                }
            }
        }
    }
    let mut blocks: Vec<Block> = kept.into_iter().map(|(_, block)| block).collect();
    blocks.sort_by_key(|block| block.index);
    blocks
}

/// Bytes that the source had produced when the last block was written, up to the cut. Blocks state them, the damaged
/// ones as well.
fn produced_until<'a>(layout: Layout, blocks: impl Iterator<Item = &'a Block>, cut: Option<Frames>) -> u64 {
    let produced = blocks.map(|block| block.produced_bytes).max().unwrap_or(0);
    // All bytes before a cut were given to the recorder of its segment.
    cut.map_or(produced, |frame| layout.bytes_of(frame).0)
}

/// The pieces of the stored stream that no block holds, cut at gaps and skips.
pub(super) fn holes(
    layout: Layout,
    blocks: &[Block],
    produced: u64,
    timeline: &Timeline,
    gaps: &[(u64, Gap)],
    skips: &[(u64, Skip)],
    ended: Option<Ended>,
) -> Vec<Hole> {
    let bytes = |frames: Frames| layout.bytes_of(frames).0;
    let sum = |in_stream: bool| {
        let of = gaps.iter().filter(move |(_, gap)| gap.cause.is_in_stream() == in_stream);
        of.fold(0_u64, |sum, (_, gap)| sum.saturating_add(bytes(gap.frames)))
    };
    let left_out = skips.iter().fold(0_u64, |sum, (_, skip)| sum.saturating_add(bytes(skip.frames)));
    // The length that the stored stream had or should have had.
    let length = match ended {
        Some(ended) => ended.stored_bytes.saturating_add(sum(true)),
        // Each block states how much the source had produced, but the bytes before a gap may be in no block.
        None => produced.saturating_sub(sum(false)).saturating_sub(left_out).max(before_last(layout, gaps, skips)),
    };
    let length = Bytes(length).round_down(Bytes(layout.grain().bytes)).0;
    let length = length.max(blocks.last().map_or(0, Block::end));
    let mut declared: Vec<(Frames, Frames)> =
        gaps.iter().filter(|(_, gap)| gap.cause.is_in_stream()).map(|(_, gap)| (gap.first, gap.end())).collect();
    declared.sort_unstable();
    let mut holes = Vec::new();
    let mut at = 0;
    let ends = blocks.iter().map(|block| (block.position, block.end())).chain([(length, length)]);
    for (start, end) in ends {
        if start > at {
            for run in timeline.runs_in(at, Bytes(start - at)) {
                let (length, first) = (run.length.unwrap_or_default(), run.first);
                let last = Frames(first.0.saturating_add(layout.frames_in(length).0));
                holes.push(Hole { position: run.position, length: length.0, declared: covers(&declared, first, last) });
            }
        }
        at = at.max(end);
    }
    holes
}

/// Length of the stored stream before the last of these.
fn before_last(layout: Layout, gaps: &[(u64, Gap)], skips: &[(u64, Skip)]) -> u64 {
    let in_stream = |gap: &Gap| if gap.cause.is_in_stream() { layout.bytes_of(gap.frames).0 } else { 0 };
    let gaps = gaps.iter().map(|(position, gap)| position.saturating_add(in_stream(gap)));
    gaps.chain(skips.iter().map(|(position, _)| *position)).max().unwrap_or(0)
}

/// Whether ascending ranges of frames cover a range.
fn covers(ranges: &[(Frames, Frames)], first: Frames, end: Frames) -> bool {
    let mut at = first;
    let from = ranges.partition_point(|range| range.1 <= first);
    for range in &ranges[from..] {
        if at >= end || range.0 > at {
            break;
        }
        at = at.max(range.1);
    }
    at >= end
}
