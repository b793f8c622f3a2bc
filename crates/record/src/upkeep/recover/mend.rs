//! The steps of mending, in the order that makes each of them safe.

use std::path::Path;

use hairspring_machine::{Instant, Nanos};

use hairspring_recording::journal::{InSeries, RECORD_BYTES, Record};
use hairspring_recording::ledger::RecordingVerdict;
use hairspring_recording::sigmf;
use hairspring_recording::sigmf::{About, Closing, State};
use hairspring_recording::sync_io::{BlockingStore, PIECE};
use hairspring_recording::{Block, Files, Member, Recording, RecordingError};
use hairspring_ring::units::Bytes;
use hairspring_store::{FileId, Open, Store, remove_if_there};

use super::cut;
use super::plan::Plan;
use crate::compress::part_of;

/// Moves that are made durable together. More moves save syncs, but a crash repeats the work of all of them.
const BATCH: usize = 64;

pub(super) fn mend(store: &mut dyn Store, recording: &Recording, plan: &Plan) -> Result<(), RecordingError> {
    let mut disk = BlockingStore::new(store)?;
    let mut works = Vec::new();
    for member in recording.members() {
        let files = Files::of(&member.base);
        let mut data = open_data(&mut disk, &files)?;
        if let Some(cut) = plan.cuts.iter().find(|cut| cut.member == member.number && !cut.pieces.is_empty()) {
            cut.keep(&mut disk, &files.data, data)?;
            if disk.store.facts(data).shared {
                data = own_copy(&mut disk, &files.data, data)?;
            }
        }
        works.push(Work { member, files, data, blocks: plan.blocks_of(member.number) });
    }
    // 0: makes the proven data durable, and enters only those.
    for work in &works {
        disk.sync(&work.files.data, work.data)?;
        put_journal(&mut disk, recording, plan, work)?;
    }
    // 1, 2, 3
    for work in &mut works {
        let moved = pack(&mut disk, recording, plan, work)?;
        let length = work.blocks.last().map_or(0, |block| block.file_offset + u64::from(block.length));
        if disk.store.facts(work.data).size != length {
            disk.store.truncate(work.data, length)?;
        }
        disk.sync(&work.files.data, work.data)?;
        if moved {
            put_journal(&mut disk, recording, plan, work)?;
        }
    }
    // 4
    for work in &works {
        let meta = metadata(recording, plan, &about_of(recording, work), &work.blocks, true);
        disk.store.put(&work.files.meta, &meta)?;
    }
    Ok(())
}

/// One member under repair.
struct Work<'a> {
    member: &'a Member,
    files: Files,
    data: FileId,
    /// Its proven blocks, by place.
    blocks: Vec<Block>,
}

/// Replaces a missing data file by an empty one, because SigMF requires one.
fn open_data(disk: &mut BlockingStore<'_>, files: &Files) -> Result<FileId, RecordingError> {
    match disk.store.open(&files.data, Open::Mend) {
        Err(error) if error.errno.0 == libc::ENOENT => Ok(disk.store.open(&files.data, Open::CreateJournal)?),
        other => Ok(other?),
    }
}

/// Replaces a data file that has other names, or is behind a symbolic link, by a copy, so that those names keep their
/// content.
fn own_copy(disk: &mut BlockingStore<'_>, data: &Path, shared: FileId) -> Result<FileId, RecordingError> {
    let part = part_of(data);
    // Left by an interrupted call.
    remove_if_there(disk.store, &part)?;
    let length = disk.store.facts(shared).size;
    let own = disk.store.create_like(&part, data, Open::CreateJournal)?;
    let copied = cut::copy(disk, (data, shared), (&part, own), &[(0, length)]);
    let copied = copied.and_then(|()| Ok(disk.store.rename(&part, data)?));
    if let Err(error) = copied {
        // Nothing was changed yet. The first error is the one to report.
        drop(disk.store.remove(&part));
        return Err(error);
    }
    disk.store.sync_folder(hairspring_file::folder_of(data))?;
    disk.store.close(shared);
    Ok(own)
}

/// The records of a whole journal. Failures of other members are in their journals.
pub(crate) fn records(
    recording: &Recording,
    plan: &Plan,
    about: &About,
    blocks: &[Block],
    recovered: bool,
) -> Vec<Record> {
    let grain = about.layout.grain();
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let mut records = vec![Record::Start {
        id: about.id,
        block_bytes: small(about.block.0),
        grain_bytes: small(grain.bytes),
        grain_frames: small(grain.frames),
        member: u16::try_from(about.member).unwrap_or(u16::MAX),
        members: u16::try_from(about.members.len()).unwrap_or(u16::MAX),
        started: about.started_realtime,
    }];
    records.extend(about.started_within.map(|within| Record::Begun {
        realtime: about.started_realtime,
        monotonic: about.started_monotonic,
        within,
    }));
    if let Some(of) = &about.series
        && let Some(first) = of.first
    {
        let (series, previous) = (of.id, of.previous.unwrap_or_default());
        if of.epoch_first.0 > 0 {
            records.push(Record::Epoch { first: of.epoch_first });
        }
        records.push(Record::Series(InSeries { series, number: of.number, first, previous, epoch: of.epoch }));
    }
    records.extend(recording.bounds().iter().copied().map(Record::Bounds));
    records.extend(recording.cut().map(|frame| Record::Cut { frame }));
    records.extend(about.clock.records());
    records.extend(plan.gaps.iter().map(|(position, gap)| Record::Gap { position: *position, gap: *gap }));
    records.extend(recording.skips().iter().map(|(position, skip)| Record::Skip { position: *position, skip: *skip }));
    records.extend(recording.triggers().iter().map(|(shot, frame)| Record::Trigger { frame: *frame, shot: *shot }));
    records.extend(recording.kept().iter().copied().map(Record::Keep));
    let mut blocks = blocks.to_vec();
    blocks.sort_by_key(|block| block.index);
    records.extend(blocks.iter().map(record_of));
    let is_whole = about.members.len() < 2;
    let failures = recording.failures().iter().filter(|failure| is_whole || failure.member == about.member);
    records.extend(failures.map(|failure| Record::Error {
        operation: failure.operation,
        errno: failure.errno,
        block: failure.block,
        at: failure.at,
    }));
    let at = recording.blocks().iter().map(|block| block.at).max().unwrap_or(Instant::BOOT);
    let durable_bytes = blocks.iter().map(|block| u64::from(block.length)).sum();
    records.push(Record::Sync { before: records.len() as u64, durable_bytes, at });
    let ledger = plan.ledger;
    records.push(Record::End {
        verdict: plan.verdict,
        recovered,
        produced_bytes: ledger.produced_bytes,
        stored_bytes: ledger.stored_bytes,
        lost_bytes: ledger.lost_bytes,
        left_out_bytes: ledger.left_out_bytes,
    });
    records
}

/// Encodes a journal.
pub(crate) fn encoded(records: &[Record]) -> Vec<u8> {
    (0_u64..).zip(records).flat_map(|(sequence, record)| record.encode(sequence)).collect()
}

fn record_of(block: &Block) -> Record {
    Record::Block {
        index: block.index,
        file_offset: block.file_offset,
        length: block.length,
        crc: block.crc.unwrap_or_default(),
        produced_bytes: block.produced_bytes,
        at: block.at,
    }
}

fn put_journal(
    disk: &mut BlockingStore<'_>,
    recording: &Recording,
    plan: &Plan,
    work: &Work<'_>,
) -> Result<(), RecordingError> {
    let records = records(recording, plan, &about_of(recording, work), &work.blocks, true);
    Ok(disk.store.put(&work.files.journal, &encoded(&records))?)
}

/// Moves blocks down until there is no hole. Returns whether any was moved.
fn pack(
    disk: &mut BlockingStore<'_>,
    recording: &Recording,
    plan: &Plan,
    work: &mut Work<'_>,
) -> Result<bool, RecordingError> {
    let mut packer = None;
    let end = work.blocks.last().map_or(0, |block| block.file_offset + u64::from(block.length));
    let mut at = 0;
    for number in 0..work.blocks.len() {
        let length = u64::from(work.blocks[number].length);
        if work.blocks[number].file_offset != at {
            let packer = match &mut packer {
                Some(packer) => packer,
                none => {
                    let sequence =
                        records(recording, plan, &about_of(recording, work), &work.blocks, true).len() as u64;
                    let journal = disk.store.open(&work.files.journal, Open::Mend)?;
                    none.insert(Packer { journal, sequence, entries: Vec::new(), lowest: u64::MAX })
                }
            };
            if work.blocks[number].file_offset - at < length {
                // Source and destination overlap, so the block is first copied elsewhere.
                packer.step(disk, work, number, end)?;
                packer.enter(disk, work)?;
            }
            packer.step(disk, work, number, at)?;
        }
        at += length;
    }
    match packer {
        None => Ok(false),
        Some(mut packer) => packer.enter(disk, work).map(|()| true),
    }
}

/// The moves under way.
struct Packer {
    journal: FileId,
    sequence: u64,
    /// Blocks that were copied but not yet entered.
    entries: Vec<Block>,
    /// The lowest of their places that still count. Blocks only move down, so a write below it overwrites none of them.
    lowest: u64,
}

impl Packer {
    fn step(
        &mut self,
        disk: &mut BlockingStore<'_>,
        work: &mut Work<'_>,
        number: usize,
        to: u64,
    ) -> Result<(), RecordingError> {
        let block = work.blocks[number];
        let length = u64::from(block.length);
        if self.lowest < to + length || self.entries.len() >= BATCH {
            self.enter(disk, work)?;
        }
        copy(disk, work, &block, to)?;
        work.blocks[number].file_offset = to;
        self.entries.push(work.blocks[number]);
        self.lowest = self.lowest.min(block.file_offset);
        Ok(())
    }

    /// Makes the copies durable, and then enters them into the journal.
    fn enter(&mut self, disk: &mut BlockingStore<'_>, work: &Work<'_>) -> Result<(), RecordingError> {
        if self.entries.is_empty() {
            return Ok(());
        }
        disk.sync(&work.files.data, work.data)?;
        let records: Vec<u8> =
            (self.sequence..).zip(&self.entries).flat_map(|(number, block)| record_of(block).encode(number)).collect();
        disk.write(&work.files.journal, self.journal, self.sequence * RECORD_BYTES as u64, &records)?;
        disk.sync(&work.files.journal, self.journal)?;
        self.sequence += self.entries.len() as u64;
        self.entries.clear();
        self.lowest = u64::MAX;
        Ok(())
    }
}

/// Copies a block within its file to a place without a good block. It must still match its checksum.
fn copy(disk: &mut BlockingStore<'_>, work: &Work<'_>, block: &Block, to: u64) -> Result<(), RecordingError> {
    let (length, mut done, mut crc) = (u64::from(block.length), 0, 0);
    while done < length {
        let part = (length - done).min(PIECE.0);
        let bytes = disk.read_at(&work.files.data, work.data, block.file_offset + done, part)?;
        let read = bytes.len() as u64;
        if read == 0 {
            break;
        }
        crc = crc32c::crc32c_append(crc, bytes);
        disk.write_buffered(&work.files.data, work.data, to + done, read)?;
        done += read;
    }
    if done < length || Some(crc) != block.crc {
        return Err(RecordingError::Limit(format!(
            "block {} does not match its checksum any more: recover again, with --all",
            block.index
        )));
    }
    Ok(())
}

fn about_of(recording: &Recording, work: &Work<'_>) -> About {
    About { member: work.member.number, ..recording.about().clone() }
}

/// The metadata of a member with these blocks, which ascend by place.
pub(crate) fn metadata(
    recording: &Recording,
    plan: &Plan,
    about: &About,
    blocks: &[Block],
    recovered: bool,
) -> Vec<u8> {
    let lost: Bytes = Bytes(plan.ledger.lost_bytes);
    let before = recording.members().iter().find_map(|member| member.closing.as_ref());
    let closing = Closing {
        verdict: plan.verdict,
        reason: match (before, plan.verdict) {
            (Some(closing), verdict) if verdict == closing.verdict && plan.lost_nothing() => closing.reason.clone(),
            (_, RecordingVerdict::Incomplete) => format!("recovered; {lost} are missing in {} gaps", plan.gaps.len()),
            _ => "recovered; nothing was lost".to_owned(),
        },
        state: if recovered { State::Recovered } else { State::Ended(plan.verdict) },
        ledger: plan.ledger,
        gaps: plan.gaps.iter().map(|(_, gap)| *gap).collect(),
        bounds: recording.bounds().to_vec(),
        skips: recording.skips().iter().map(|(_, skip)| *skip).collect(),
        triggers: recording.triggers().to_vec(),
        fallbacks: before.map(|closing| closing.fallbacks.clone()).unwrap_or_default(),
        direct_io_proven: before.is_some_and(|closing| closing.direct_io_proven),
        worst_stall: before.map_or(Nanos::ZERO, |closing| closing.worst_stall),
        buffer_high_water: before.map_or(Bytes(0), |closing| closing.buffer_high_water),
        buffer: before.map_or(Bytes(0), |closing| closing.buffer),
        elapsed: before.map_or(Nanos::ZERO, |closing| closing.elapsed),
        ignored: before.map(|closing| closing.ignored).unwrap_or_default(),
        missed: before.map(|closing| closing.missed).unwrap_or_default(),
    };
    let blocks = blocks.iter().map(|block| (block.file_offset, block.position, Bytes(block.length.into())));
    sigmf::render(about, Some(&closing), &sigmf::segments(recording.timeline(), blocks))
}
