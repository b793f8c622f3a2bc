//! Writes under way: submitted, completed, given to another target, failed.

use hairspring_machine::Instant;

use hairspring_recording::journal::{FailedOperation, Record};
use hairspring_source::SourceCounters;
use hairspring_store::{Completion, Errno, Op, Piece};

use super::Recorder;
use super::member::{MOST_REPEATS, Purpose};

/// Writes in a row that moved less than a sector, after which a write counts as failed. On a full file system with
/// smaller blocks such writes would otherwise repeat forever.
const MOST_STALLS: u8 = 3;

/// How the recorder chooses the target of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockPlacement {
    /// The target with the fewest bytes under way, so that a slow disk gets fewer blocks.
    #[default]
    LeastLoaded,
    /// Each target in turn (round-robin).
    Static,
}

impl BlockPlacement {
    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::LeastLoaded => "least-loaded",
            Self::Static => "static",
        }
    }
}

/// A block on its way to a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    index: u64,
    member: usize,
    file_offset: u64,
    piece: Piece,
    /// Bytes of the block; the written piece is longer where the disk requires whole sectors.
    length: u64,
    written: u64,
    /// Computed while the disk writes; see [`Recorder::write_block`].
    crc: u32,
    submitted: Instant,
    /// How many times in a row it moved less than a whole sector.
    stalls: u8,
    /// How many times in a row it was interrupted or found no resources.
    repeats: u32,
    /// Where the block ends in the ring, if it is written from there.
    ring_end: Option<u64>,
    /// The buffer that holds its copy, if it was copied.
    buffer: Option<usize>,
}

impl Recorder {
    /// A free slot if a block of this length may be written now. Only the last block can be shorter, and may end within
    /// a sector. A block of a failed target could not follow it, so it waits until no other write is under way.
    pub(super) fn slot_for(&self, length: u64) -> Option<usize> {
        let may_be_followed = length == self.block || self.members.len() == 1;
        let may_go = may_be_followed || self.writes.iter().all(Option::is_none);
        self.writes.iter().position(Option::is_none).filter(|_| may_go)
    }

    /// Submits the write of the next block of the stored stream, with the bytes of the piece. The caller then computes
    /// the checksum and passes it to [`Recorder::checksummed`], so that no disk waits for a checksum.
    pub(super) fn write_block(
        &mut self,
        slot: usize,
        mut piece: Piece,
        ring_end: Option<u64>,
        buffer: Option<usize>,
        now: Instant,
    ) {
        let index = self.block_states.len();
        let length = piece.length as u64;
        let Some(member) = self.choose_member(index) else {
            // Cannot happen: blocks are taken only while a member is alive.
            return;
        };
        let alignment = self.store.facts(self.members[member].data).alignment.max(1);
        piece.length = usize::try_from(length.next_multiple_of(alignment)).unwrap_or(piece.length);
        let file_offset = self.members[member].data_end;
        self.block_states.begin(member, file_offset, length as u32);
        let write = Write {
            index,
            member,
            file_offset,
            piece,
            length,
            written: 0,
            crc: 0,
            submitted: now,
            stalls: 0,
            repeats: 0,
            ring_end,
            buffer,
        };
        self.start_write(slot, write);
        self.store.flush();
    }

    /// Takes the checksum of the block in a slot, whose computation began at `since`. No completion was taken since the
    /// block was submitted.
    pub(super) fn checksummed(&mut self, slot: usize, crc: u32, since: Instant) {
        self.checksum_time += (self.setup.stopwatch)() - since;
        if let Some(write) = &mut self.writes[slot] {
            write.crc = crc;
        }
    }

    fn start_write(&mut self, slot: usize, write: Write) {
        let member = &mut self.members[write.member];
        member.data_end = write.file_offset + write.length;
        let op = Op::Write(member.data, write.file_offset, write.piece);
        member.allocate_ahead(write.member, &mut *self.store);
        self.store.submit(Purpose::Write(slot).token(), op);
        self.writes[slot] = Some(write);
    }

    /// The target for a block; `None` if all have failed.
    fn choose_member(&self, index: u64) -> Option<usize> {
        let alive: Vec<usize> = (0..self.members.len()).filter(|number| self.members[*number].is_alive).collect();
        let under_way = |number: usize| -> u64 {
            let its_own = self.writes.iter().flatten().filter(|write| write.member == number);
            its_own.map(|write| write.length).sum()
        };
        match self.setup.write.placement {
            BlockPlacement::Static => alive.get((index % alive.len().max(1) as u64) as usize).copied(),
            BlockPlacement::LeastLoaded => {
                alive.into_iter().min_by_key(|number| (under_way(*number), self.members[*number].data_end))
            }
        }
    }

    /// Takes the completion of an operation.
    pub(super) fn completed(&mut self, completion: Completion, now: Instant, counters: SourceCounters) {
        // Repeats a call that was interrupted or would have waited.
        let again = matches!(completion.result, Err(Errno(libc::EINTR | libc::EAGAIN)));
        match Purpose::of(completion.token) {
            Some(Purpose::Write(slot)) => match completion.result {
                Ok(bytes) if bytes > 0 => self.some_written(slot, bytes, now, counters),
                Ok(_) => self.write_failed(slot, Errno(libc::EIO), now),
                Err(errno) if again => self.write_again(slot, errno, now),
                Err(errno) => self.write_failed(slot, errno, now),
            },
            Some(Purpose::Journal(number)) => match completion.result {
                Ok(bytes) if bytes > 0 => {
                    self.members[number].journal_written(bytes, number, &mut *self.store);
                    self.block_states.journaled(number, self.members[number].written());
                }
                Err(_) if again && self.members[number].journal_again(number, &mut *self.store) => {}
                Ok(_) => self.journal_failed(number, Errno(libc::EIO), now),
                Err(errno) => self.journal_failed(number, errno, now),
            },
            Some(Purpose::SyncData(number)) => match completion.result {
                Ok(_) => {
                    let covered = self.members[number].covers().unwrap_or(0);
                    let durable_bytes = self.block_states.covered_bytes(number, covered);
                    self.members[number].data_synced(durable_bytes, now);
                }
                Err(errno) => self.sync_failed(number, errno, now),
            },
            Some(Purpose::SyncJournal(number)) => match completion.result {
                Ok(_) => {
                    if let Some(before) = self.members[number].journal_synced() {
                        self.block_states.synced(number, before);
                    }
                }
                Err(errno) => self.sync_failed(number, errno, now),
            },
            Some(Purpose::AllocateData(number)) => self.members[number].allocated(completion.result.is_ok()),
            Some(Purpose::AllocateJournal(number)) => {
                self.members[number].journal_reserved(completion.result);
            }
            None => {}
        }
    }

    fn some_written(&mut self, slot: usize, bytes: u64, now: Instant, counters: SourceCounters) {
        let Some(write) = &mut self.writes[slot] else { return };
        let before = write.written;
        write.written += bytes;
        write.repeats = 0;
        if write.written < write.length {
            // The rest begins at a whole sector again.
            let alignment = self.store.facts(self.members[write.member].data).alignment.max(1);
            write.written = write.written / alignment * alignment;
            write.stalls = if write.written > before { 0 } else { write.stalls + 1 };
            if write.stalls < MOST_STALLS {
                self.write_rest(slot);
            } else {
                self.write_failed(slot, Errno(libc::EIO), now);
            }
            return;
        }
        let write = *write;
        if self.members[write.member].journal_is_dead {
            // That journal can no longer record the block.
            self.write_elsewhere(slot);
            return;
        }
        self.writes[slot] = None;
        self.worst_stall = self.worst_stall.max(now - write.submitted);
        let origin_bytes = self.timeline.layout().bytes_of(self.place.origin).0;
        let member = &mut self.members[write.member];
        let sequence = member.append(&Record::Block {
            index: write.index,
            file_offset: write.file_offset,
            length: write.length as u32,
            crc: write.crc,
            produced_bytes: counters.produced_bytes + origin_bytes,
            at: now,
        });
        self.block_states.entered(write.index, sequence);
        self.let_go(&write);
    }

    /// Releases the buffer of a block, or its place in the ring once all blocks before it are written.
    fn let_go(&mut self, write: &Write) {
        if let (Some(buffer), Some(staging)) = (write.buffer, &mut self.staging) {
            staging.give_back(buffer);
        }
        if let Some(end) = write.ring_end {
            if let Some(taken) = self.taken.iter_mut().find(|(position, _)| *position == end) {
                taken.1 = true;
            }
            let mut release = None;
            while self.taken.front().is_some_and(|(_, written)| *written) {
                release = self.taken.pop_front().map(|(position, _)| position);
            }
            if let Some(position) = release {
                self.inlet.release(position);
            }
        }
    }

    fn write_rest(&mut self, slot: usize) {
        let Some(write) = self.writes[slot] else { return };
        let piece = Piece {
            memory: write.piece.memory,
            at: write.piece.at + write.written as usize,
            length: write.piece.length - write.written as usize,
        };
        let op = Op::Write(self.members[write.member].data, write.file_offset + write.written, piece);
        self.store.submit(Purpose::Write(slot).token(), op);
    }

    /// Repeats a call that was interrupted or would have waited, a limited number of times.
    fn write_again(&mut self, slot: usize, errno: Errno, now: Instant) {
        let Some(write) = &mut self.writes[slot] else { return };
        write.repeats += 1;
        if write.repeats <= MOST_REPEATS {
            self.write_rest(slot);
        } else {
            self.write_failed(slot, errno, now);
        }
    }

    /// A target has failed. It gets no more blocks, and this block goes to another target.
    fn write_failed(&mut self, slot: usize, errno: Errno, now: Instant) {
        let Some(write) = self.writes[slot] else { return };
        self.members[write.member].is_alive = false;
        self.trouble(write.member, FailedOperation::Write, errno, write.index, now);
        self.write_elsewhere(slot);
    }

    /// Gives a block to another target.
    fn write_elsewhere(&mut self, slot: usize) {
        let Some(write) = self.writes[slot] else { return };
        if let Some(other) = self.choose_member(write.index) {
            let file_offset = self.members[other].data_end;
            self.block_states.moves(write.index, other, file_offset);
            self.start_write(slot, Write { member: other, file_offset, written: 0, stalls: 0, repeats: 0, ..write });
        } else {
            self.writes[slot] = None;
            self.fail_from(write.index);
        }
    }

    /// A target's journal has failed. Blocks that it does not name are lost, and a gap declares them; blocks that it
    /// names stay. The recording goes on with the other targets, if there are any.
    fn journal_failed(&mut self, number: usize, errno: Errno, now: Instant) {
        self.members[number].journal_failed();
        self.trouble(number, FailedOperation::Journal, errno, u64::MAX, now);
        for index in self.block_states.journal_died(number) {
            self.lose_block(index, now);
        }
        if self.choose_member(0).is_none() {
            self.fail_from(self.block_states.len());
        }
    }

    /// Gives up the targets without room for the records of a block.
    pub(super) fn give_up_full_journals(&mut self, now: Instant) {
        for number in 0..self.members.len() {
            if let Some(errno) = self.members[number].journal_is_full() {
                self.journal_is_full(number, errno, now);
            }
        }
    }

    /// The journal of a target is full. Its stored blocks stay, and further blocks go to the other targets, if there
    /// are any.
    fn journal_is_full(&mut self, number: usize, errno: Errno, now: Instant) {
        self.members[number].is_alive = false;
        self.trouble(number, FailedOperation::Allocate, errno, u64::MAX, now);
        if self.choose_member(0).is_none() {
            self.fail_from(self.block_states.len());
        }
    }

    fn sync_failed(&mut self, number: usize, errno: Errno, now: Instant) {
        self.sync_failed = true;
        self.members[number].sync_has_failed();
        self.trouble(number, FailedOperation::Sync, errno, u64::MAX, now);
    }

    /// The recording ends before this block.
    fn fail_from(&mut self, index: u64) {
        self.failed = Some(self.failed.map_or(index, |earlier| earlier.min(index)));
    }

    /// Records an error in the journals and for the report.
    fn trouble(&mut self, number: usize, operation: FailedOperation, errno: Errno, block: u64, at: Instant) {
        let record = Record::Error { operation, errno: errno.0, block, at };
        // No record may follow the end. Each would need a sync of its own, which on a dead disk is the next error.
        for member in self.members.iter_mut().filter(|member| !member.is_closing()) {
            member.append(&record);
        }
        let what = match operation {
            FailedOperation::Write => "writing data to",
            FailedOperation::Sync => "syncing data of",
            FailedOperation::Allocate => "reserving space in",
            FailedOperation::Journal => "writing the journal of",
        };
        let limit =
            if errno.0 == libc::EFBIG { ": a limit (ulimit -f) or the file system takes no larger file" } else { "" };
        let text = format!("{what} {} failed: {errno}{limit}", self.members[number].base().display());
        // One sentence for each kind of error and target, because a dying disk has thousands of errors.
        if !self.troubles.contains(&text) {
            self.troubles.push(text);
        }
    }

    pub(super) fn write_journals(&mut self) {
        for (number, member) in self.members.iter_mut().enumerate() {
            member.write_journal(number, &mut *self.store);
            member.sync_journal(number, &mut *self.store);
        }
    }

    pub(super) fn begin_sync(&mut self, number: usize, now: Instant) {
        self.members[number].begin_sync(number, now, &mut *self.store);
    }

    pub(super) fn sync_when_due(&mut self, now: Instant) {
        let (every, bytes) = (self.setup.write.sync_every, self.setup.write.sync_bytes.0);
        for number in 0..self.members.len() {
            let member = &self.members[number];
            let Some(due) = member.next_sync(every) else { continue };
            if self.block_states.wants_sync(number) && (due <= now || self.block_states.unsynced_bytes(number) >= bytes)
            {
                self.begin_sync(number, now);
            }
        }
    }
}
