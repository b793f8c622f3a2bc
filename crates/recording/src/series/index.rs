//! The index of a series: which segments there are, which were deleted, and where the series was resumed.
//!
//! An append-only file of records of 64 bytes, with the journal's structure but the magic `hsS1`:
//!
//! ```text
//! 0      4        8            16   17
//! magic  CRC-32C  sequence     kind payload, the rest zero
//!
//! kind         payload
//! 1 series     id[16] members:u16 started:i64
//! 2 opened     number:u32 id[16] first:u64 at:i64
//! 3 closed     number:u32 first:u64 end:u64 stored:u64 lost:u64 verdict:u8
//! 4 dropped    number:u32 stored:u64 at:i64
//! 5 resumed    epoch:u16 first:u64 least:u64 most:u64 at:i64
//! 6 before     segments:u32 bytes:u64 next:u32 epoch:u16
//! 7 ended      number:u32 boot id[16] realtime:i64 boottime:i64 synchronized:u8
//! ```
//!
//! The first record is a *series*. A reader skips records that are not whole: a power cut leaves some at the end, and
//! damage leaves one in the middle. Retention would make the index grow without bound; so it is occasionally replaced
//! by a shorter one, in which a record *before* sums up the deleted segments. It is also replaced when a record could
//! not be appended.
//!
//! The index only helps; the evidence is elsewhere: each segment has its own journal, and the folder shows which
//! segments exist.

use std::collections::BTreeMap;

use hairspring_machine::Nanos;
use hairspring_ring::units::Frames;

use crate::clock::BootId;
use crate::journal::RecordingId;
use crate::ledger::RecordingVerdict;
use crate::moment::ClockMoment;

/// Length of a record in bytes.
pub const INDEX_RECORD_BYTES: usize = 64;
/// The first bytes of every record.
const MAGIC: [u8; 4] = *b"hsS1";

/// One record of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexRecord {
    /// The first record: the series, its members, and when it began (`CLOCK_REALTIME`).
    Series {
        /// Its id.
        id: RecordingId,
        /// The number of directories over which each segment is striped.
        members: u16,
        /// When it began.
        started: Nanos,
    },
    /// A segment begins.
    Opened {
        /// Its number.
        number: u32,
        /// The id of its recording.
        id: RecordingId,
        /// Its first frame.
        first: Frames,
        /// When (`CLOCK_REALTIME`).
        at: Nanos,
    },
    /// A segment has ended in order or was recovered.
    Closed {
        /// Its number.
        number: u32,
        /// Its first frame.
        first: Frames,
        /// The first frame after it.
        end: Frames,
        /// Bytes in its files.
        stored_bytes: u64,
        /// Bytes in its gaps.
        lost_bytes: u64,
        /// Its verdict.
        verdict: RecordingVerdict,
    },
    /// Retention deletes a segment; its files may still be there.
    Dropped {
        /// Its number.
        number: u32,
        /// Bytes that were in its files.
        stored_bytes: u64,
        /// When (`CLOCK_REALTIME`).
        at: Nanos,
    },
    /// The series was resumed: a new epoch begins.
    Resumed {
        /// Number of times it was resumed, this time included.
        epoch: u16,
        /// The frame at which it begins again.
        first: Frames,
        /// The least and
        least: Frames,
        /// the greatest number of frames between.
        most: Frames,
        /// When (`CLOCK_REALTIME`).
        at: Nanos,
    },
    /// The end of a segment. Follows the record that closes it; indexes of earlier versions have none.
    Ended {
        /// Its number.
        number: u32,
        /// When, by clocks that do not step within a boot.
        at: ClockMoment,
    },
    /// Sums up the records of an index that this one replaces.
    Before {
        /// Number of deleted segments,
        segments: u32,
        /// and their bytes.
        bytes: u64,
        /// The number of the next segment.
        next: u32,
        /// Number of times the series was resumed.
        epoch: u16,
    },
}

impl IndexRecord {
    /// Encodes the record for the file.
    pub fn encode(&self, sequence: u64) -> [u8; INDEX_RECORD_BYTES] {
        let mut payload: Vec<u8> = Vec::with_capacity(48);
        let mut put = |bytes: &[u8]| payload.extend_from_slice(bytes);
        match *self {
            Self::Series { id, members, started } => {
                put(&[1]);
                put(&id.0);
                put(&members.to_le_bytes());
                put(&started.count().to_le_bytes());
            }
            Self::Opened { number, id, first, at } => {
                put(&[2]);
                put(&number.to_le_bytes());
                put(&id.0);
                put(&first.0.to_le_bytes());
                put(&at.count().to_le_bytes());
            }
            Self::Closed { number, first, end, stored_bytes, lost_bytes, verdict } => {
                put(&[3]);
                put(&number.to_le_bytes());
                [first.0, end.0, stored_bytes, lost_bytes].iter().for_each(|number| put(&number.to_le_bytes()));
                put(&[verdict as u8 + 1]);
            }
            Self::Dropped { number, stored_bytes, at } => {
                put(&[4]);
                put(&number.to_le_bytes());
                put(&stored_bytes.to_le_bytes());
                put(&at.count().to_le_bytes());
            }
            Self::Resumed { epoch, first, least, most, at } => {
                put(&[5]);
                put(&epoch.to_le_bytes());
                [first.0, least.0, most.0].iter().for_each(|number| put(&number.to_le_bytes()));
                put(&at.count().to_le_bytes());
            }
            Self::Before { segments, bytes, next, epoch } => {
                put(&[6]);
                put(&segments.to_le_bytes());
                put(&bytes.to_le_bytes());
                put(&next.to_le_bytes());
                put(&epoch.to_le_bytes());
            }
            Self::Ended { number, at: ClockMoment { realtime, boottime, boot, synchronized } } => {
                put(&[7]);
                put(&number.to_le_bytes());
                put(&boot.map_or([0; 16], |boot| boot.0));
                put(&realtime.count().to_le_bytes());
                put(&boottime.count().to_le_bytes());
                put(&[synchronized.into()]);
            }
        }
        let mut record = [0; INDEX_RECORD_BYTES];
        record[..4].copy_from_slice(&MAGIC);
        record[8..16].copy_from_slice(&sequence.to_le_bytes());
        record[16..16 + payload.len()].copy_from_slice(&payload);
        let crc = crc32c::crc32c(&record[8..]);
        record[4..8].copy_from_slice(&crc.to_le_bytes());
        record
    }

    /// Decodes 64 bytes; `None` if they are no record of this place. The inner `None` is a kind that this version does
    /// not know.
    #[expect(clippy::option_option, reason = "not a record, and a record of an unknown kind, are two things")]
    fn decode(bytes: &[u8; INDEX_RECORD_BYTES], sequence: u64) -> Option<Option<Self>> {
        let crc = u32::from_le_bytes(field(bytes, 4));
        let is_whole = bytes[..4] == MAGIC && crc == crc32c::crc32c(&bytes[8..]);
        if !is_whole || u64::from_le_bytes(field(bytes, 8)) != sequence {
            return None;
        }
        let at = |offset: usize| 17 + offset;
        let long = |offset: usize| u64::from_le_bytes(field(bytes, at(offset)));
        let span = |offset: usize| Nanos::new(i64::from_le_bytes(field(bytes, at(offset))));
        let int = |offset: usize| u32::from_le_bytes(field(bytes, at(offset)));
        let short = |offset: usize| u16::from_le_bytes(field(bytes, at(offset)));
        let id = |offset: usize| RecordingId(field(bytes, at(offset)));
        Some(match bytes[16] {
            1 => Some(Self::Series { id: id(0), members: short(16), started: span(18) }),
            2 => Some(Self::Opened { number: int(0), id: id(4), first: Frames(long(20)), at: span(28) }),
            3 => {
                let verdict = usize::from(bytes[at(36)]).checked_sub(1);
                let verdict = verdict.and_then(|place| RecordingVerdict::ALL.get(place)).copied();
                verdict.map(|verdict| Self::Closed {
                    number: int(0),
                    first: Frames(long(4)),
                    end: Frames(long(12)),
                    stored_bytes: long(20),
                    lost_bytes: long(28),
                    verdict,
                })
            }
            4 => Some(Self::Dropped { number: int(0), stored_bytes: long(4), at: span(12) }),
            5 => Some(Self::Resumed {
                epoch: short(0),
                first: Frames(long(2)),
                least: Frames(long(10)),
                most: Frames(long(18)),
                at: span(26),
            }),
            7 => {
                let boot: [u8; 16] = field(bytes, at(4));
                let boot = (boot != [0; 16]).then_some(BootId(boot));
                let synchronized = bytes[at(36)] == 1;
                Some(Self::Ended {
                    number: int(0),
                    at: ClockMoment { realtime: span(20), boottime: span(28), boot, synchronized },
                })
            }
            6 => Some(Self::Before { segments: int(0), bytes: long(4), next: int(12), epoch: short(16) }),
            _ => None,
        })
    }
}

fn field<const N: usize>(bytes: &[u8; INDEX_RECORD_BYTES], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

/// A segment as the index lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The id of its recording.
    pub id: RecordingId,
    /// Its first frame.
    pub first: Frames,
    /// The first frame after it, once it is closed.
    pub end: Option<Frames>,
    /// Bytes in its files, once it is closed.
    pub stored_bytes: u64,
    /// Bytes in its gaps, once it is closed.
    pub lost_bytes: u64,
    /// Its verdict, once it is closed.
    pub verdict: Option<RecordingVerdict>,
    /// When it was opened (`CLOCK_REALTIME`).
    pub opened: Nanos,
    /// When it ended; `None` if it is not closed, or was closed by an earlier version.
    pub ended: Option<ClockMoment>,
}

/// The contents of an index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesIndex {
    /// The id of the series; `None` if the file holds no index.
    pub id: Option<RecordingId>,
    /// The number of members of each segment.
    pub members: u16,
    /// When the series began (`CLOCK_REALTIME`).
    pub started: Nanos,
    /// The segments that were not deleted, by number.
    pub segments: BTreeMap<u32, Listed>,
    /// Segments that were deleted and that the index still names: the bytes that were in them.
    pub dropped: BTreeMap<u32, (RecordingId, u64)>,
    /// All segments that were deleted, and their bytes.
    pub dropped_segments: u32,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// The number after the highest one ever used.
    pub next: u32,
    /// Number of times the series was resumed.
    pub epoch: u16,
    /// The number of the record after the last whole one.
    pub records: u64,
    /// The number of the first incomplete record that is followed by a whole one.
    pub damaged: Option<u64>,
}

impl SeriesIndex {
    /// Reads all whole records of an index. Never panics.
    pub fn read(bytes: &[u8]) -> Self {
        let mut index = Self::default();
        for (sequence, slot) in (0_u64..).zip(bytes.as_chunks::<INDEX_RECORD_BYTES>().0) {
            let Some(record) = IndexRecord::decode(slot, sequence) else { continue };
            if (sequence == 0) != matches!(record, Some(IndexRecord::Series { .. })) {
                continue;
            }
            if index.records < sequence {
                index.damaged.get_or_insert(index.records);
            }
            index.records = sequence + 1;
            if let Some(record) = record {
                index.enter(record);
            }
        }
        index
    }

    /// Enters a record.
    pub fn enter(&mut self, record: IndexRecord) {
        match record {
            IndexRecord::Series { id, members, started } => {
                (self.id, self.members, self.started) = (Some(id), members, started);
            }
            IndexRecord::Opened { number, id, first, at } => {
                let listed = Listed {
                    id,
                    first,
                    end: None,
                    stored_bytes: 0,
                    lost_bytes: 0,
                    verdict: None,
                    opened: at,
                    ended: None,
                };
                self.segments.insert(number, listed);
                self.next = self.next.max(number.saturating_add(1));
            }
            IndexRecord::Closed { number, first, end, stored_bytes, lost_bytes, verdict } => {
                if let Some(listed) = self.segments.get_mut(&number) {
                    (listed.first, listed.end) = (first, Some(end));
                    (listed.stored_bytes, listed.lost_bytes) = (stored_bytes, lost_bytes);
                    listed.verdict = Some(verdict);
                }
            }
            IndexRecord::Dropped { number, stored_bytes, .. } => {
                let id = self.segments.remove(&number).map_or(RecordingId::default(), |listed| listed.id);
                if self.dropped.insert(number, (id, stored_bytes)).is_none() {
                    self.dropped_segments = self.dropped_segments.saturating_add(1);
                    self.dropped_bytes = self.dropped_bytes.saturating_add(stored_bytes);
                }
            }
            IndexRecord::Resumed { epoch, .. } => self.epoch = epoch,
            IndexRecord::Ended { number, at } => {
                if let Some(listed) = self.segments.get_mut(&number) {
                    listed.ended = Some(at);
                }
            }
            IndexRecord::Before { segments, bytes, next, epoch } => {
                (self.dropped_segments, self.dropped_bytes) = (segments, bytes);
                (self.next, self.epoch) = (self.next.max(next), epoch);
            }
        }
    }

    /// Withdraws the deletion of a segment.
    pub fn restore(&mut self, number: u32, listed: Listed) {
        self.withdraw(number);
        self.segments.insert(number, listed);
    }

    /// Forgets the deletion of a segment, but does not list the segment.
    pub fn withdraw(&mut self, number: u32) {
        if let Some((_, stored_bytes)) = self.dropped.remove(&number) {
            self.dropped_segments = self.dropped_segments.saturating_sub(1);
            self.dropped_bytes = self.dropped_bytes.saturating_sub(stored_bytes);
        }
    }

    /// The records of a shorter index with the same contents, without the single deleted segments, except those in
    /// [`dropped`](Self::dropped).
    pub fn shortened(&self) -> Vec<IndexRecord> {
        let mut records =
            vec![IndexRecord::Series { id: self.id.unwrap_or_default(), members: self.members, started: self.started }];
        for (number, (id, stored_bytes)) in &self.dropped {
            let (number, id, stored_bytes, at) = (*number, *id, *stored_bytes, self.started);
            if id != RecordingId::default() {
                records.push(IndexRecord::Opened { number, id, first: Frames(0), at });
            }
            records.push(IndexRecord::Dropped { number, stored_bytes, at });
        }
        // After those records, because it states the sums over all deletions.
        let (segments, bytes) = (self.dropped_segments, self.dropped_bytes);
        records.push(IndexRecord::Before { segments, bytes, next: self.next, epoch: self.epoch });
        for (number, listed) in &self.segments {
            let Listed { id, first, end, stored_bytes, lost_bytes, verdict, opened, ended } = *listed;
            records.push(IndexRecord::Opened { number: *number, id, first, at: opened });
            if let (Some(end), Some(verdict)) = (end, verdict) {
                records.push(IndexRecord::Closed { number: *number, first, end, stored_bytes, lost_bytes, verdict });
            }
            records.extend(ended.map(|at| IndexRecord::Ended { number: *number, at }));
        }
        records
    }

    /// The index as a file.
    pub fn encoded(records: &[IndexRecord]) -> Vec<u8> {
        (0_u64..).zip(records).flat_map(|(sequence, record)| record.encode(sequence)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn some() -> Vec<IndexRecord> {
        let id = |n| RecordingId([n; 16]);
        let at = Nanos::from_secs(5);
        let closed = |number, first, end| IndexRecord::Closed {
            number,
            first: Frames(first),
            end: Frames(end),
            stored_bytes: 100,
            lost_bytes: 0,
            verdict: RecordingVerdict::Complete,
        };
        let (realtime, boottime) = (Nanos::from_secs(6), Nanos::from_secs(2));
        let ended = ClockMoment { realtime, boottime, boot: Some(BootId([5; 16])), synchronized: true };
        vec![
            IndexRecord::Series { id: id(1), members: 2, started: Nanos::from_secs(3) },
            IndexRecord::Opened { number: 0, id: id(2), first: Frames(0), at },
            closed(0, 0, 50),
            IndexRecord::Opened { number: 1, id: id(3), first: Frames(50), at },
            closed(1, 50, 99),
            IndexRecord::Ended { number: 1, at: ended },
            IndexRecord::Dropped { number: 0, stored_bytes: 100, at },
            IndexRecord::Resumed { epoch: 1, first: Frames(120), least: Frames(21), most: Frames(30), at },
            IndexRecord::Opened { number: 2, id: id(4), first: Frames(99), at },
        ]
    }

    #[test]
    fn an_index_tells_what_is_there_and_what_was_deleted_also_when_shortened() {
        let index = SeriesIndex::read(&SeriesIndex::encoded(&some()));
        assert_eq!(index.segments.keys().copied().collect::<Vec<_>>(), [1, 2]);
        assert_eq!((index.dropped_segments, index.dropped_bytes, index.next, index.epoch), (1, 100, 3, 1));
        assert_eq!(index.dropped.get(&0), Some(&(RecordingId([2; 16]), 100)));
        let mut short = SeriesIndex::read(&SeriesIndex::encoded(&index.shortened()));
        assert_eq!(SeriesIndex { records: index.records, ..short.clone() }, index);
        short.dropped.clear();
        let short = SeriesIndex::read(&SeriesIndex::encoded(&short.shortened()));
        assert_eq!((&short.segments, short.next, short.epoch), (&index.segments, 3, 1));
        assert_eq!((short.dropped_segments, short.dropped_bytes, short.dropped.len()), (1, 100, 0));
    }

    proptest! {
        #[test]
        fn a_cut_index_tells_what_is_whole(cut in 0..600_usize) {
            let bytes = SeriesIndex::encoded(&some());
            let read = SeriesIndex::read(&bytes[..cut.min(bytes.len())]);
            prop_assert_eq!((read.records as usize, read.damaged), (cut.min(bytes.len()) / 64, None));
        }

        /// One flipped bit lost all records entered after it.
        #[test]
        fn a_flipped_bit_costs_an_index_one_record(bit in 0..4608_usize) {
            let (all, mut damaged) = (some(), SeriesIndex::encoded(&some()));
            damaged[bit / 8] ^= 1 << (bit % 8);
            let bad = bit / 512;
            let mut expected = SeriesIndex::default();
            for (number, record) in all.iter().enumerate().filter(|(number, _)| *number != bad) {
                if number > bad {
                    expected.damaged = Some(bad as u64);
                }
                expected.records = number as u64 + 1;
                expected.enter(*record);
            }
            prop_assert_eq!(SeriesIndex::read(&damaged), expected);
        }

        #[test]
        fn arbitrary_bytes_are_no_index(bytes in prop::collection::vec(any::<u8>(), 0..1000)) {
            prop_assert_eq!(SeriesIndex::read(&bytes).records, 0);
        }
    }
}
