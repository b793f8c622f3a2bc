//! [`Member`]: one target directory of a recording: its data file, its journal, and how far both are durable.

use std::path::{Path, PathBuf};

use hairspring_machine::Nanos;

use crate::journal::{RECORD_BYTES, Record};
use crate::memory::{Memory, MemoryError, Pages, Scratch};
use crate::store::{FileId, MemoryId, Op, Open, Piece, Store, StoreError, Token};
use crate::units::Bytes;

/// Records that one half of the journal's buffer holds. A block brings one, or a few with gaps.
const RECORDS: usize = 1024;
const HALF_BYTES: usize = RECORDS * RECORD_BYTES;
/// Records that must have room before a block is taken: gaps come in bunches.
const RESERVE: usize = 64;
/// What is reserved ahead of the data when the volume is not known.
const AHEAD_BYTES: u64 = 1 << 30;
/// What is reserved for the journal beyond what the expected blocks need. Cut off at the end; by then it also is the room for
/// the last metadata on a disk that has become full.
const JOURNAL_SPARE_BYTES: u64 = 4 << 20;

/// What an operation is for; part of its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Writing the block of this slot.
    Write(usize),
    /// Writing records of this member's journal.
    Journal(usize),
    SyncData(usize),
    SyncJournal(usize),
    AllocateData(usize),
    AllocateJournal(usize),
}

impl Purpose {
    pub(super) fn token(self) -> Token {
        let (kind, number) = match self {
            Self::Write(number) => (0, number),
            Self::Journal(number) => (1, number),
            Self::SyncData(number) => (2, number),
            Self::SyncJournal(number) => (3, number),
            Self::AllocateData(number) => (4, number),
            Self::AllocateJournal(number) => (5, number),
        };
        Token(kind << 32 | number as u64)
    }

    pub(super) fn of(token: Token) -> Option<Self> {
        let number = (token.0 & 0xffff_ffff) as usize;
        match token.0 >> 32 {
            0 => Some(Self::Write(number)),
            1 => Some(Self::Journal(number)),
            2 => Some(Self::SyncData(number)),
            3 => Some(Self::SyncJournal(number)),
            4 => Some(Self::AllocateData(number)),
            5 => Some(Self::AllocateJournal(number)),
            _ => None,
        }
    }
}

/// How far a sync has come. Numbers are sequence numbers of the journal: all records below are covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sync {
    Idle,
    /// The data are being forced to the device.
    Data {
        before: u64,
        bytes: u64,
    },
    /// Their record waits for being written.
    Recorded {
        sequence: u64,
        bytes: u64,
    },
    /// The journal is being forced to the device.
    Journal {
        bytes: u64,
    },
}

pub(super) struct Member {
    base: PathBuf,
    pub(super) data: FileId,
    pub(super) journal: FileId,
    /// Where the next block goes.
    pub(super) data_end: u64,
    allocated: u64,
    allocating: bool,
    allocation_refused: bool,
    /// Bytes of blocks whose write is under way.
    pub(super) in_flight_bytes: u64,
    /// Bytes of blocks that are written.
    pub(super) complete_bytes: u64,
    /// Whether blocks may be given to it.
    pub(super) is_alive: bool,
    scratch: Scratch,
    memory: MemoryId,
    /// Which half is being filled, and how many records are in it.
    half: usize,
    filled: usize,
    /// Bytes of the other half that are being written, and how many of them are.
    flying: Option<(usize, usize)>,
    journal_offset: u64,
    journal_allocated: u64,
    /// Number of the next record, and of the first that is not in the file.
    sequence: u64,
    written: u64,
    pub(super) journal_is_dead: bool,
    /// Blocks whose record is not in the file yet: the record's sequence number and the block's.
    unwritten: std::collections::VecDeque<(u64, u64)>,
    sync: Sync,
    /// Data that were covered when the last sync succeeded.
    synced_bytes: u64,
    pub(super) durable_bytes: u64,
    last_sync: Nanos,
    sync_failed: bool,
    closing: bool,
    closed: bool,
}

/// The three files of a recording in one directory.
pub(crate) fn files_of(base: &Path) -> [PathBuf; 3] {
    let with = |ending: &str| {
        let mut name = base.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    [with(".sigmf-data"), with(".sigmf-meta"), with(".hairspring-journal")]
}

impl Member {
    pub(super) fn open(store: &mut dyn Store, base: &Path) -> Result<Self, StoreError> {
        let [data, meta, journal] = files_of(base);
        if meta.exists() {
            return Err(StoreError {
                attempted: "create".to_owned(),
                path: meta,
                errno: crate::store::Errno(libc::EEXIST),
            });
        }
        let data_path = data;
        let data = store.open(&data_path, Open::CreateData)?;
        let journal = store.open(&journal, Open::CreateJournal).inspect_err(|_| drop(store.remove(&data_path)));
        let journal = journal?;
        let no_memory = |_: MemoryError| StoreError {
            attempted: "get memory for the journal of".to_owned(),
            path: base.to_owned(),
            errno: crate::store::Errno(libc::ENOMEM),
        };
        let size = Bytes(2 * HALF_BYTES as u64);
        let memory = Memory::plain(size, size, Pages::Small).map_err(no_memory)?;
        let (scratch, memory) = Scratch::attached(memory, store);
        Ok(Self {
            base: base.to_owned(),
            data,
            journal,
            data_end: 0,
            allocated: 0,
            allocating: false,
            allocation_refused: false,
            in_flight_bytes: 0,
            complete_bytes: 0,
            is_alive: true,
            scratch,
            memory,
            half: 0,
            filled: 0,
            flying: None,
            journal_offset: 0,
            journal_allocated: 0,
            sequence: 0,
            written: 0,
            journal_is_dead: false,
            unwritten: std::collections::VecDeque::with_capacity(RECORDS),
            sync: Sync::Idle,
            synced_bytes: 0,
            durable_bytes: 0,
            last_sync: Nanos::ZERO,
            sync_failed: false,
            closing: false,
            closed: false,
        })
    }

    pub(super) fn base(&self) -> &Path {
        &self.base
    }

    pub(super) fn folder(&self) -> &Path {
        match self.base.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }

    /// Reserved and not used yet.
    pub(super) fn reserved_bytes(&self) -> u64 {
        self.allocated.saturating_sub(self.data_end)
    }

    /// What to reserve at the beginning: for data and journal.
    pub(super) fn first_allocation(&mut self, number: usize, volume: Option<u64>, block: u64) -> [(Token, Op); 2] {
        let data = volume.map_or(AHEAD_BYTES, |volume| volume.div_ceil(block) * block);
        let journal = (data / block + 1) * RECORD_BYTES as u64 + JOURNAL_SPARE_BYTES;
        (self.allocated, self.journal_allocated) = (data, journal);
        [
            (Purpose::AllocateJournal(number).token(), Op::Allocate(self.journal, 0, journal)),
            (Purpose::AllocateData(number).token(), Op::Allocate(self.data, 0, data)),
        ]
    }

    /// Reserves more when half of what was reserved ahead is used. Not known to be needed where the volume was.
    pub(super) fn allocate_ahead(&mut self, number: usize, store: &mut dyn Store) {
        let low = self.data_end + AHEAD_BYTES / 2 > self.allocated;
        if low && !self.allocating && !self.allocation_refused && self.data_end > 0 {
            self.allocating = true;
            store.submit(Purpose::AllocateData(number).token(), Op::Allocate(self.data, self.allocated, AHEAD_BYTES));
        }
    }

    /// What became of a reservation.
    pub(super) fn allocated(&mut self, succeeded: bool) {
        if self.allocating {
            self.allocating = false;
            self.allocated += if succeeded { AHEAD_BYTES } else { 0 };
        } else if !succeeded {
            self.allocated = 0;
        }
        self.allocation_refused |= !succeeded;
    }

    /// Whether there is room for the records that a block may bring.
    pub(super) fn has_room(&self) -> bool {
        self.filled + RESERVE <= RECORDS || self.journal_is_dead
    }

    /// Enters a record. It is lost if there is no room, which whoever takes blocks prevents by asking first; what belongs to
    /// the end of a recording always finds room, for then nothing else is entered.
    pub(super) fn append(&mut self, record: &Record) -> u64 {
        let sequence = self.sequence;
        if self.filled < RECORDS {
            let at = self.half * HALF_BYTES + self.filled * RECORD_BYTES;
            self.scratch.bytes(at, RECORD_BYTES).copy_from_slice(&record.encode(sequence));
            self.filled += 1;
            self.sequence += 1;
            if let Record::Block { index, .. } = record {
                self.unwritten.push_back((sequence, *index));
            }
        }
        sequence
    }

    /// Writes what was entered, if the last write is over.
    pub(super) fn write_journal(&mut self, number: usize, store: &mut dyn Store) {
        if self.journal_is_dead || self.flying.is_some() || self.filled == 0 {
            return;
        }
        self.flying = Some((self.filled * RECORD_BYTES, 0));
        self.half = 1 - self.half;
        self.filled = 0;
        self.submit_journal(number, store);
    }

    fn submit_journal(&self, number: usize, store: &mut dyn Store) {
        if let Some((length, done)) = self.flying {
            let at = (1 - self.half) * HALF_BYTES + done;
            let piece = Piece { memory: self.memory, at, length: length - done };
            store.submit(Purpose::Journal(number).token(), Op::Write(self.journal, self.journal_offset, piece));
        }
    }

    /// So many bytes of the journal are in the file.
    pub(super) fn journal_written(&mut self, bytes: u64, number: usize, store: &mut dyn Store) {
        let Some((length, done)) = self.flying else { return };
        self.journal_offset += bytes;
        let done = done + bytes as usize;
        if done < length {
            self.flying = Some((length, done));
            self.submit_journal(number, store);
            return;
        }
        self.flying = None;
        self.written += (length / RECORD_BYTES) as u64;
        while self.unwritten.front().is_some_and(|(sequence, _)| *sequence < self.written) {
            self.unwritten.pop_front();
        }
    }

    /// Tries the same write of the journal again.
    pub(super) fn journal_again(&self, number: usize, store: &mut dyn Store) {
        self.submit_journal(number, store);
    }

    /// The journal cannot be written any more; the first block of which nobody will know.
    pub(super) fn journal_failed(&mut self) -> Option<u64> {
        self.journal_is_dead = true;
        self.is_alive = false;
        self.flying = None;
        self.sync = Sync::Idle;
        self.unwritten.iter().map(|(_, index)| *index).min()
    }

    /// When the next sync is due, if there is something to sync.
    pub(super) fn next_sync(&self, every: Nanos) -> Option<Nanos> {
        let wanted = self.complete_bytes > self.synced_bytes && self.may_sync() && self.sync == Sync::Idle;
        wanted.then(|| self.last_sync + every)
    }

    fn may_sync(&self) -> bool {
        !self.sync_failed && !self.journal_is_dead
    }

    pub(super) fn unsynced_bytes(&self) -> u64 {
        self.complete_bytes - self.synced_bytes.min(self.complete_bytes)
    }

    /// Forces to the device what is complete, if anything is that is not.
    pub(super) fn begin_sync(&mut self, number: usize, now: Nanos, store: &mut dyn Store) {
        if self.sync == Sync::Idle && self.may_sync() && self.complete_bytes != self.synced_bytes {
            self.last_sync = now;
            self.sync = Sync::Data { before: self.sequence, bytes: self.complete_bytes };
            store.submit(Purpose::SyncData(number).token(), Op::Sync(self.data));
        }
    }

    /// The data of the last sync are on the device: says so in the journal.
    pub(super) fn data_synced(&mut self, now: Nanos) {
        if let Sync::Data { before, bytes } = self.sync {
            let sequence = self.append(&Record::Sync { before, durable_bytes: bytes, at: now });
            self.synced_bytes = bytes;
            self.sync = Sync::Recorded { sequence, bytes };
        }
    }

    /// The sync did not succeed, and none will be believed after it.
    pub(super) fn sync_has_failed(&mut self) {
        self.sync_failed = true;
        self.sync = Sync::Idle;
        // The end is in the file, and no sync can make it durable any more: there is nothing left to wait for.
        self.closed |= self.closing;
    }

    /// Forces the journal to the device when its record of the sync, or of the end, is in the file.
    pub(super) fn sync_journal(&mut self, number: usize, store: &mut dyn Store) {
        if self.journal_is_dead {
            self.closed |= self.closing;
            return;
        }
        match self.sync {
            Sync::Recorded { sequence, bytes } if self.written > sequence => {
                self.sync = Sync::Journal { bytes };
                store.submit(Purpose::SyncJournal(number).token(), Op::Sync(self.journal));
            }
            Sync::Idle if self.closing && !self.closed && self.written == self.sequence => {
                self.sync = Sync::Journal { bytes: self.synced_bytes };
                store.submit(Purpose::SyncJournal(number).token(), Op::Sync(self.journal));
            }
            _ => {}
        }
    }

    /// The journal is on the device, and with it the promise that the data are.
    pub(super) fn journal_synced(&mut self) {
        if let Sync::Journal { bytes } = self.sync {
            if !self.sync_failed {
                self.durable_bytes = bytes;
            }
            self.sync = Sync::Idle;
            self.closed |= self.closing && self.written == self.sequence;
        }
    }

    /// Whether all data that are complete are in the journal and durable, or never will be.
    pub(super) fn is_synced(&self) -> bool {
        let recorded = self.journal_is_dead || self.unwritten.is_empty();
        recorded && self.sync == Sync::Idle && (!self.may_sync() || self.complete_bytes == self.synced_bytes)
    }

    /// No record comes after those that are entered.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Lengths to which data and journal are cut at the end.
    pub(super) fn journal_length(&self) -> u64 {
        self.journal_offset
    }
}
