//! [`Member`]: one target directory of a recording, with its data file, its journal, and how far both are durable.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use hairspring_machine::{Instant, Nanos};

use hairspring_recording::journal::{RECORD_BYTES, Record};
use hairspring_ring::memory::{Memory, MemoryError, Pages};
use hairspring_ring::units::Bytes;
use hairspring_store::lent_memory::Scratch;
use hairspring_store::{Errno, FileId, MemoryId, Op, Open, Piece, Store, StoreError, Token};

/// Records that one half of the journal's buffer holds. A block brings one, or a few with gaps.
const RECORDS: usize = 1024;
const HALF_BYTES: usize = RECORDS * RECORD_BYTES;
/// Records that must have room before a block is taken: one for each block under way, and some for gaps. Further gaps
/// wait in a list.
const RESERVE: usize = super::MOST_DEPTH + 64;
/// Failures in a row by interruption or lack of resources after which a write of the journal counts as failed.
pub(super) const MOST_REPEATS: u32 = 1000;
/// Bytes reserved ahead of the data if the volume is not known. As many stay free, or half of the free space: the
/// system takes all free space before it reports a shortage, and none would be left for the metadata, other files and
/// the next segment.
const AHEAD_BYTES: u64 = 1 << 30;
/// Bytes reserved for the journal beyond the need of the expected blocks. They are cut off at the end, which makes room
/// for the last metadata on a full disk.
const JOURNAL_SPARE_BYTES: u64 = 4 << 20;

/// The most bytes of the journal that are reserved at the beginning: a million records.
const JOURNAL_FIRST_BYTES: u64 = 64 << 20;
/// Bytes that are reserved at once later, before the spare bytes are used, and the least where there is no room for
/// more.
const JOURNAL_AHEAD_BYTES: u64 = 2 * JOURNAL_SPARE_BYTES;
const LEAST_JOURNAL_BYTES: u64 = 256 << 10;
/// Records after which a reservation that was refused is tried again.
const JOURNAL_AGAIN: u64 = RECORDS as u64;

/// The purpose of an operation; part of its token.
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

/// The progress of a sync. Numbers are sequence numbers of the journal: the sync covers all records below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sync {
    Idle,
    /// The data are being synced.
    Data {
        before: u64,
    },
    /// The record of the sync waits to be written.
    Recorded {
        sequence: u64,
        before: u64,
    },
    /// The journal is being synced.
    Journal {
        before: u64,
    },
    /// Both files were cut to their lengths; this many syncs of them are under way.
    Cut {
        left: u8,
    },
}

pub(super) struct Member {
    base: PathBuf,
    pub(super) data: FileId,
    pub(super) journal: FileId,
    /// The offset of the next block.
    pub(super) data_end: u64,
    allocated: u64,
    /// More is not reserved.
    most_allocated: u64,
    allocating: bool,
    allocation_refused: bool,
    /// Bytes of the journal for which space is reserved; `None` where the system reserves none.
    journal_reserved: Option<u64>,
    /// Bytes that are being reserved after them.
    journal_reserving: Option<u64>,
    /// Why no more can be reserved, and the record at which it is tried again.
    journal_refused: Option<(Errno, u64)>,
    /// Whether the member takes blocks.
    pub(super) is_alive: bool,
    scratch: Scratch,
    memory: MemoryId,
    /// The half that is being filled, and the number of records in it.
    half: usize,
    filled: usize,
    /// Records for which that half has no room. No block is taken while there are any, so there are at most as many as
    /// one pass over the ring enters: a ringful of gaps, and a record for each block that is withdrawn or lost.
    waiting: VecDeque<(u64, Record)>,
    /// Bytes of the other half that must be written, and the number written.
    flying: Option<(usize, usize)>,
    /// How often in a row that write was repeated.
    repeats: u32,
    journal_offset: u64,
    /// Number of the next record.
    sequence: u64,
    pub(super) journal_is_dead: bool,
    sync: Sync,
    last_sync: Instant,
    sync_failed: bool,
    /// Whether the files are being cut, or were cut, to their lengths.
    is_cut: bool,
    /// The length to which the data file was cut; `None` before, and if that failed.
    cut: Option<u64>,
    /// Whether data and journal were shorter than their reservation: another program has cut them.
    shortened: [bool; 2],
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
        let is_there = |errno| StoreError { attempted: "create".to_owned(), path: meta.clone(), errno };
        match store.open(&meta, Open::Mend) {
            Err(error) if error.errno.0 == libc::ENOENT => {}
            Ok(_) => return Err(is_there(Errno(libc::EEXIST))),
            Err(error) => return Err(is_there(error.errno)),
        }
        let data_path = data;
        let data = store.open(&data_path, Open::CreateData)?;
        let journal_path = journal;
        let journal = store.open(&journal_path, Open::CreateJournal).inspect_err(|_| drop(store.remove(&data_path)))?;
        let no_memory = |_: MemoryError| StoreError {
            attempted: "get memory for the journal of".to_owned(),
            path: base.to_owned(),
            errno: Errno(libc::ENOMEM),
        };
        let size = Bytes(2 * HALF_BYTES as u64);
        let memory = Memory::plain(size, size, Pages::Small).map_err(no_memory).inspect_err(|_| {
            drop(store.remove(&data_path));
            drop(store.remove(&journal_path));
        })?;
        let (scratch, memory) = Scratch::attached(memory, store);
        Ok(Self {
            base: base.to_owned(),
            data,
            journal,
            data_end: 0,
            allocated: 0,
            most_allocated: 0,
            allocating: false,
            allocation_refused: false,
            journal_reserved: None,
            journal_reserving: None,
            journal_refused: None,
            is_alive: true,
            scratch,
            memory,
            half: 0,
            filled: 0,
            waiting: VecDeque::new(),
            flying: None,
            repeats: 0,
            journal_offset: 0,
            sequence: 0,
            journal_is_dead: false,
            sync: Sync::Idle,
            last_sync: Instant::BOOT,
            sync_failed: false,
            is_cut: false,
            cut: None,
            shortened: [false; 2],
            closing: false,
            closed: false,
        })
    }

    pub(super) fn base(&self) -> &Path {
        &self.base
    }

    pub(super) fn folder(&self) -> &Path {
        hairspring_file::folder_of(&self.base)
    }

    /// Bytes that are reserved and not used yet.
    pub(super) fn reserved_bytes(&self) -> u64 {
        self.allocated.saturating_sub(self.data_end)
    }

    /// The bytes to reserve at the beginning, for the data and for the journal. `free`: the free bytes in its folder;
    /// `None` if unknown.
    pub(super) fn first_allocation(
        &mut self,
        number: usize,
        volume: Option<u64>,
        free: Option<u64>,
        block: u64,
    ) -> [(Token, Op); 2] {
        self.most_allocated = free.map_or(u64::MAX, |free| free - AHEAD_BYTES.min(free / 2));
        let ahead = (AHEAD_BYTES.min(self.most_allocated) / block).max(1) * block;
        let data = volume.map_or(ahead, |volume| volume.div_ceil(block) * block);
        let journal = (data / block + 1).saturating_mul(RECORD_BYTES as u64).saturating_add(JOURNAL_SPARE_BYTES);
        let journal = journal.min(JOURNAL_FIRST_BYTES);
        self.journal_reserving = Some(journal);
        self.allocated = data;
        // Nothing is reserved beyond a volume that is known.
        self.allocation_refused = volume.is_some();
        [
            (Purpose::AllocateJournal(number).token(), Op::Allocate(self.journal, 0, journal)),
            (Purpose::AllocateData(number).token(), Op::Allocate(self.data, 0, data)),
        ]
    }

    /// Reserves more when half of the bytes reserved ahead are used. Does nothing if the volume is known, or if too
    /// little would stay free.
    pub(super) fn allocate_ahead(&mut self, number: usize, store: &mut dyn Store) {
        let low = self.data_end + AHEAD_BYTES / 2 > self.allocated;
        let fits = self.allocated + AHEAD_BYTES <= self.most_allocated;
        if low && fits && !self.allocating && !self.allocation_refused {
            // The reservation makes the file longer again, which would hide a cut by another program.
            self.look_for_cuts(store);
            self.allocating = true;
            store.submit(Purpose::AllocateData(number).token(), Op::Allocate(self.data, self.allocated, AHEAD_BYTES));
        }
    }

    /// Takes the completion of a reservation.
    pub(super) fn allocated(&mut self, succeeded: bool) {
        if self.allocating {
            self.allocating = false;
            self.allocated += if succeeded { AHEAD_BYTES } else { 0 };
        } else if !succeeded {
            self.allocated = 0;
        }
        self.allocation_refused |= !succeeded;
    }

    /// Reserves more of the journal before it is needed.
    fn reserve_journal(&mut self, number: usize, store: &mut dyn Store) {
        let may = self.is_alive && !self.closing && !self.is_cut && self.journal_reserving.is_none();
        let Some(reserved) = self.journal_reserved.filter(|_| may) else { return };
        let is_low = self.sequence * RECORD_BYTES as u64 + JOURNAL_SPARE_BYTES > reserved;
        if is_low && self.journal_refused.is_none_or(|(_, again)| self.sequence >= again) {
            let piece = if self.journal_refused.is_some() { LEAST_JOURNAL_BYTES } else { JOURNAL_AHEAD_BYTES };
            self.journal_reserving = Some(piece);
            // The reservation would hide that another program has cut the file.
            self.look_for_cuts(store);
            store.submit(Purpose::AllocateJournal(number).token(), Op::Allocate(self.journal, reserved, piece));
        }
    }

    pub(super) fn is_reserving(&self) -> bool {
        self.allocating || self.journal_reserving.is_some()
    }

    /// Takes the completion of a reservation of the journal.
    pub(super) fn journal_reserved(&mut self, result: Result<u64, Errno>) {
        let Some(piece) = self.journal_reserving.take() else { return };
        match (result, self.journal_reserved) {
            (Ok(_), reserved) => {
                self.journal_reserved = Some(reserved.unwrap_or(0) + piece);
                self.journal_refused = None;
            }
            // Nothing was reserved at the beginning: the journal, like the data, grows as far as the disk allows.
            (Err(_), None) => {}
            (Err(errno), Some(_)) => {
                // A smaller piece at once, and then later again.
                let wait = if piece > LEAST_JOURNAL_BYTES { 0 } else { JOURNAL_AGAIN };
                self.journal_refused = Some((errno, self.sequence + wait));
            }
        }
    }

    /// Why no further block may be taken, if there is no room for its records.
    pub(super) fn journal_is_full(&self) -> Option<Errno> {
        let (errno, again) = self.journal_refused?;
        let is_waiting = self.journal_reserving.is_some() || self.sequence >= again;
        (self.is_alive && !self.journal_is_dead && !is_waiting && !self.fits_journal()).then_some(errno)
    }

    /// Whether the records of one block fit into the reserved part of the journal.
    fn fits_journal(&self) -> bool {
        let needed = self.sequence + (RECORDS + RESERVE) as u64;
        self.journal_reserved.is_none_or(|reserved| needed * RECORD_BYTES as u64 <= reserved)
    }

    /// Checks whether another program has cut the files: a file shorter than its reservation was cut. Without a
    /// reservation this cannot be detected.
    fn look_for_cuts(&mut self, store: &mut dyn Store) {
        let reserved = [(self.data, self.allocated), (self.journal, self.journal_reserved.unwrap_or(0))];
        for ((file, bytes), shortened) in reserved.into_iter().zip(&mut self.shortened) {
            *shortened |= store.facts(file).size < bytes;
        }
    }

    /// Whether another program has cut data and journal.
    pub(super) fn shortened(&self) -> [bool; 2] {
        self.shortened
    }

    /// Whether there is room for the records that a block may bring.
    pub(super) fn has_room(&self) -> bool {
        let is_written = self.waiting.is_empty() && self.filled + RESERVE <= RECORDS;
        is_written && (self.fits_journal() || !self.is_alive) || self.journal_is_dead
    }

    /// Enters a record, and returns its sequence number. The record is in the file when [`Member::written`] is larger.
    /// No record is dropped while the journal is alive.
    pub(super) fn append(&mut self, record: &Record) -> u64 {
        let sequence = self.sequence;
        if !self.journal_is_dead {
            self.sequence += 1;
            if self.waiting.is_empty() && self.filled < RECORDS {
                self.fill(sequence, record);
            } else {
                self.waiting.push_back((sequence, *record));
            }
        }
        sequence
    }

    fn fill(&mut self, sequence: u64, record: &Record) {
        let at = self.half * HALF_BYTES + self.filled * RECORD_BYTES;
        self.scratch.bytes(at, RECORD_BYTES).copy_from_slice(&record.encode(sequence));
        self.filled += 1;
    }

    /// The number of the first record that is not in the file.
    pub(super) fn written(&self) -> u64 {
        self.journal_offset / RECORD_BYTES as u64
    }

    /// The length to which the data file was cut; `None` before, and if that failed.
    pub(super) fn cut_bytes(&self) -> Option<u64> {
        self.cut
    }

    /// The bytes of its records that are in the file.
    pub(super) fn journal_bytes(&self) -> u64 {
        self.journal_offset
    }

    /// Writes the entered records, unless a write is under way.
    pub(super) fn write_journal(&mut self, number: usize, store: &mut dyn Store) {
        self.reserve_journal(number, store);
        if self.journal_is_dead || self.flying.is_some() || self.filled == 0 {
            return;
        }
        self.flying = Some((self.filled * RECORD_BYTES, 0));
        self.half = 1 - self.half;
        self.filled = 0;
        while self.filled < RECORDS
            && let Some((sequence, record)) = self.waiting.pop_front()
        {
            self.fill(sequence, &record);
        }
        self.submit_journal(number, store);
    }

    fn submit_journal(&self, number: usize, store: &mut dyn Store) {
        if let Some((length, done)) = self.flying {
            let at = (1 - self.half) * HALF_BYTES + done;
            let piece = Piece { memory: self.memory, at, length: length - done };
            store.submit(Purpose::Journal(number).token(), Op::Write(self.journal, self.journal_offset, piece));
        }
    }

    /// Takes the completion of a journal write of this many bytes.
    pub(super) fn journal_written(&mut self, bytes: u64, number: usize, store: &mut dyn Store) {
        let Some((length, done)) = self.flying else { return };
        self.repeats = 0;
        self.journal_offset += bytes;
        let done = done + bytes as usize;
        self.flying = (done < length).then_some((length, done));
        self.submit_journal(number, store);
    }

    /// Repeats the same write of the journal; `false` after too many attempts.
    pub(super) fn journal_again(&mut self, number: usize, store: &mut dyn Store) -> bool {
        self.repeats += 1;
        let again = self.repeats <= MOST_REPEATS;
        if again {
            self.submit_journal(number, store);
        }
        again
    }

    /// Gives up the journal. The member then gets no more blocks.
    pub(super) fn journal_failed(&mut self) {
        self.journal_is_dead = true;
        self.is_alive = false;
        self.flying = None;
        self.filled = 0;
        self.waiting.clear();
        self.sync = Sync::Idle;
        self.closed |= self.closing;
    }

    /// When the next sync is due, if one is wanted.
    pub(super) fn next_sync(&self, every: Nanos) -> Option<Instant> {
        (self.may_sync() && self.sync == Sync::Idle).then(|| self.last_sync + every)
    }

    /// Whether a sync can still succeed and be recorded.
    pub(super) fn may_sync(&self) -> bool {
        !self.sync_failed && !self.journal_is_dead
    }

    pub(super) fn is_syncing(&self) -> bool {
        self.sync != Sync::Idle
    }

    /// Syncs the completed data.
    pub(super) fn begin_sync(&mut self, number: usize, now: Instant, store: &mut dyn Store) {
        if self.sync == Sync::Idle && self.may_sync() {
            self.last_sync = now;
            self.sync = Sync::Data { before: self.sequence };
            store.submit(Purpose::SyncData(number).token(), Op::Sync(self.data));
        }
    }

    /// The number of the first record that the data sync under way does not cover.
    pub(super) fn covers(&self) -> Option<u64> {
        if let Sync::Data { before } = self.sync { Some(before) } else { None }
    }

    /// The last sync of the data succeeded and covers this many bytes of blocks: records that in the journal.
    pub(super) fn data_synced(&mut self, durable_bytes: u64, now: Instant) {
        match self.sync {
            Sync::Data { before } => {
                let sequence = self.append(&Record::Sync { before, durable_bytes, at: now });
                self.sync = Sync::Recorded { sequence, before };
            }
            Sync::Cut { left } => self.cut_synced(left),
            _ => {}
        }
    }

    /// The sync failed, so later ones are not trusted.
    pub(super) fn sync_has_failed(&mut self) {
        self.sync_failed = true;
        self.sync = Sync::Idle;
        // The end is in the file, and no sync can make it durable any more, so nothing is left to wait for.
        self.closed |= self.closing;
    }

    /// Syncs the journal when its record of the sync, or of the end, is in the file.
    pub(super) fn sync_journal(&mut self, number: usize, store: &mut dyn Store) {
        if self.journal_is_dead {
            self.closed |= self.closing;
            return;
        }
        let before = match self.sync {
            Sync::Recorded { sequence, before } if self.written() > sequence => before,
            Sync::Idle if self.closing && !self.closed && self.written() == self.sequence => 0,
            _ => return,
        };
        self.sync = Sync::Journal { before };
        store.submit(Purpose::SyncJournal(number).token(), Op::Sync(self.journal));
    }

    /// The journal is durable, and with it the record that the data are. Returns the number of the first record that is
    /// not covered.
    pub(super) fn journal_synced(&mut self) -> Option<u64> {
        match self.sync {
            Sync::Journal { before } => {
                self.sync = Sync::Idle;
                self.closed |= self.closing && self.written() == self.sequence;
                Some(before)
            }
            Sync::Cut { left } => {
                self.cut_synced(left);
                None
            }
            _ => None,
        }
    }

    /// Cuts both files to their lengths and begins to sync them. `data` is the length of the data; the journal keeps
    /// room for its end. Blocks.
    pub(super) fn cut(&mut self, number: usize, data: u64, store: &mut dyn Store) -> Result<(), StoreError> {
        let journal = match self.journal_is_dead {
            true => self.journal_offset,
            false => (self.sequence + 1) * RECORD_BYTES as u64,
        };
        self.is_cut = true;
        self.look_for_cuts(store);
        let cut = store.truncate(self.data, data).and_then(|()| store.truncate(self.journal, journal));
        self.cut = cut.is_ok().then_some(data);
        if self.may_sync() {
            self.sync = Sync::Cut { left: 2 };
            store.submit(Purpose::SyncData(number).token(), Op::Sync(self.data));
            store.submit(Purpose::SyncJournal(number).token(), Op::Sync(self.journal));
        }
        cut
    }

    fn cut_synced(&mut self, left: u8) {
        self.sync = if left > 1 { Sync::Cut { left: left - 1 } } else { Sync::Idle };
    }

    /// No record may be entered any more.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }
}
