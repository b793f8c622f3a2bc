//! Reads a journal up to the first record that cannot be trusted.

use std::fmt;

use super::{DecodeError, RECORD_BYTES, Record};

/// Reserved space reads as zeros.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// The bytes of a journal file.
#[derive(Clone, Copy, Debug)]
pub struct Journal;

/// The contents of a journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JournalContents {
    /// The valid records, in order; the first is [`Record::Start`].
    pub records: Vec<Record>,
    /// The sequence number of each of them. Records of an unknown kind leave numbers out.
    pub sequences: Vec<u64>,
    /// The length of the part with valid records. The bytes after it are not trusted.
    pub valid_bytes: u64,
    /// The number of records of a kind that this version does not know.
    pub unknown: u64,
    /// Why reading stopped before the end of the file, if it did.
    pub stopped: Option<Stopped>,
    /// Valid records after the place where reading stopped: they match their checksum and lie at the place of their
    /// sequence number. A crash leaves none. Damage in the middle of a journal does.
    pub beyond: Vec<(u64, Record)>,
}

/// Why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The file ends within a record.
    Torn,
    /// There are only zeros: the space was reserved, or the power failed before the bytes were written.
    Blank,
    /// The bytes at this place are not a record.
    Damaged(DecodeError),
    /// The record has the sequence number of another place.
    Sequence(u64),
    /// The first record is not a start, or a later one is.
    Start,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Torn => f.write_str("the file ends within a record"),
            Self::Blank => f.write_str("nothing was written there"),
            Self::Damaged(error) => error.fmt(f),
            Self::Sequence(found) => write!(f, "it has the sequence number {found} of another place"),
            Self::Start => f.write_str("a journal has one start, and begins with it"),
        }
    }
}

impl Journal {
    /// Reads the records up to the first invalid one, and looks for valid ones after it.
    ///
    /// Never panics. Takes memory in proportion to the records.
    pub fn read(bytes: &[u8]) -> JournalContents {
        let mut pieces = JournalPieces::default();
        pieces.read(bytes);
        pieces.end()
    }
}

/// Reads a journal piece by piece, so that a file of any size needs no more memory than its records.
#[derive(Clone, Debug, Default)]
pub struct JournalPieces {
    contents: JournalContents,
    /// The number of the next record.
    sequence: u64,
    /// The beginning of a record that continues in the next piece.
    begun: Vec<u8>,
}

impl JournalPieces {
    /// Reads the next piece, of any length. Never panics.
    pub fn read(&mut self, mut piece: &[u8]) {
        if !self.begun.is_empty() {
            let (rest, others) = piece.split_at(piece.len().min(RECORD_BYTES - self.begun.len()));
            self.begun.extend_from_slice(rest);
            piece = others;
            let Some(slot) = self.begun.first_chunk::<RECORD_BYTES>().copied() else { return };
            self.begun.clear();
            self.record(&slot);
        }
        let (slots, rest) = piece.as_chunks::<RECORD_BYTES>();
        // Most of a large journal can be reserved space.
        if self.contents.stopped.is_some() && rest.is_empty() && ZEROS.get(..piece.len()) == Some(piece) {
            self.sequence += slots.len() as u64;
            return;
        }
        slots.iter().for_each(|slot| self.record(slot));
        self.begun.extend_from_slice(rest);
    }

    /// The contents, when there are no further pieces.
    pub fn end(mut self) -> JournalContents {
        if self.contents.stopped.is_none() && !self.begun.is_empty() {
            self.contents.stopped = Some(Stopped::Torn);
        }
        self.contents
    }

    fn record(&mut self, slot: &[u8; RECORD_BYTES]) {
        let (contents, sequence) = (&mut self.contents, self.sequence);
        self.sequence += 1;
        let read = read(slot, sequence);
        if contents.stopped.is_some() {
            if let Ok(Some(record)) = read {
                contents.beyond.push((sequence, record));
            }
            return;
        }
        match read {
            Ok(Some(record)) => {
                contents.records.push(record);
                contents.sequences.push(sequence);
            }
            Ok(None) => contents.unknown += 1,
            Err(why) => {
                contents.stopped = Some(why);
                return;
            }
        }
        contents.valid_bytes += RECORD_BYTES as u64;
    }
}

fn read(slot: &[u8; RECORD_BYTES], sequence: u64) -> Result<Option<Record>, Stopped> {
    if *slot == [0; RECORD_BYTES] {
        return Err(Stopped::Blank);
    }
    let (found, record) = Record::decode(slot).map_err(Stopped::Damaged)?;
    let is_start = matches!(record, Some(Record::Start { .. }));
    if found != sequence {
        Err(Stopped::Sequence(found))
    } else if is_start != (sequence == 0) {
        Err(Stopped::Start)
    } else {
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use hairspring_machine::{Instant, Nanos};
    use hairspring_source::external::{ExternalBracket, ExternalKind};
    use proptest::prelude::*;

    use super::super::encoding::tests::any_record;
    use super::super::{ExternalHead, RecordingId};
    use super::*;
    use crate::clock::external::{ExternalReading, ExternalSilence};

    const START: Record = Record::Start {
        id: RecordingId([7; 16]),
        block_bytes: 4096,
        grain_bytes: 2,
        grain_frames: 1,
        member: 0,
        members: 1,
        started: Nanos::new(1),
    };

    fn journal(records: &[Record]) -> Vec<u8> {
        let numbered = (0_u64..).zip(records);
        numbered.flat_map(|(sequence, record)| record.encode(sequence)).collect()
    }

    fn any_journal() -> impl Strategy<Value = Vec<Record>> {
        let later = any_record().prop_filter("one start", |record| !matches!(record, Record::Start { .. }));
        prop::collection::vec(later, 0..20).prop_map(|mut records| {
            records.insert(0, START);
            records
        })
    }

    proptest! {
        #[test]
        fn a_cut_journal_says_all_that_was_whole(records in any_journal(), cut in 0..1300_usize) {
            let mut bytes = journal(&records);
            bytes.truncate(cut);
            let contents = Journal::read(&bytes);
            let whole = bytes.len() / RECORD_BYTES;
            prop_assert_eq!(&contents.records[..], &records[..whole]);
            prop_assert_eq!(contents.valid_bytes as usize, whole * RECORD_BYTES);
            prop_assert_eq!(contents.stopped.is_some(), !bytes.len().is_multiple_of(RECORD_BYTES));
        }

        #[test]
        fn nothing_from_a_flipped_bit_on_is_believed(records in any_journal(), at: prop::sample::Index) {
            let mut bytes = journal(&records);
            let bit = at.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            let damaged = bit / 8 / RECORD_BYTES;
            let contents = Journal::read(&bytes);
            prop_assert_eq!(&contents.records[..], &records[..damaged]);
            prop_assert!(contents.stopped.is_some());
            let behind: Vec<Record> = contents.beyond.iter().map(|(_, record)| *record).collect();
            prop_assert_eq!(&behind[..], &records[damaged + 1..]);
        }

        #[test]
        fn a_journal_in_pieces_says_the_same(
            records in any_journal(), cut in 0..1300_usize, bit: prop::sample::Index, piece in 1..200_usize,
        ) {
            let mut bytes = journal(&records);
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes.truncate(cut.max(1));
            let mut pieces = JournalPieces::default();
            bytes.chunks(piece).for_each(|piece| pieces.read(piece));
            prop_assert_eq!(pieces.end(), Journal::read(&bytes));
        }

        #[test]
        fn arbitrary_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..1000)) {
            let contents = Journal::read(&bytes);
            prop_assert!(contents.records.is_empty());
        }

        #[test]
        fn records_out_of_their_place_are_not_believed(records in any_journal(), shift in 1..3_usize) {
            let bytes = journal(&records);
            let contents = Journal::read(&bytes[(shift * RECORD_BYTES).min(bytes.len())..]);
            prop_assert!(contents.records.is_empty() && contents.beyond.is_empty());
        }
    }

    #[test]
    fn a_kind_of_a_newer_version_is_passed_over_and_counted() {
        let mut newer = Record::Trigger { frame: hairspring_ring::Frames(1), shot: 2 }.encode(1);
        newer[16] = 200;
        let crc = crc32c::crc32c(&newer[8..]);
        newer[4..8].copy_from_slice(&crc.to_le_bytes());
        let after = Record::Trigger { frame: hairspring_ring::Frames(3), shot: 4 };
        let bytes = [START.encode(0), newer, after.encode(2)].concat();
        let contents = Journal::read(&bytes);
        assert_eq!((contents.records, contents.unknown, contents.stopped), (vec![START, after], 1, None));
        assert_eq!(contents.sequences, [0, 2]);
    }

    /// Versions before these kinds read the other records as before.
    #[test]
    fn records_of_an_external_clock_are_passed_over_by_who_does_not_know_them() {
        let at = |ns| Instant::from_monotonic(Nanos::new(ns));
        let (ticks, how) = (7, ExternalBracket::Pulse);
        let external = [
            Record::ExternalClock(ExternalHead { kind: ExternalKind::Pps, late: Nanos::new(5), id: [b'x'; 38] }),
            Record::External(ExternalReading { ticks, earliest: at(1), latest: at(2), how }),
            Record::ExternalSilence(ExternalSilence { after: at(1), before: at(9), is_gone: true }),
        ];
        let before = Record::Trigger { frame: hairspring_ring::Frames(1), shot: 2 };
        let after = Record::Trigger { frame: hairspring_ring::Frames(3), shot: 4 };
        let records = [&[START, before][..], &external, &[after]].concat();
        let mut slots: Vec<_> = (0..).zip(&records).map(|(sequence, record)| record.encode(sequence)).collect();
        assert_eq!(slots[2..5].iter().map(|slot| slot[16]).collect::<Vec<_>>(), [19, 20, 21]);
        assert_eq!(Journal::read(&slots.concat()).records, records);
        for slot in &mut slots[2..5] {
            // A kind that this version does not know represents them.
            slot[16] += 200;
            let crc = crc32c::crc32c(&slot[8..]);
            slot[4..8].copy_from_slice(&crc.to_le_bytes());
        }
        let contents = Journal::read(&slots.concat());
        assert_eq!((contents.records, contents.unknown, contents.stopped), (vec![START, before, after], 3, None));
    }

    #[test]
    fn the_reason_why_reading_stopped_is_told_in_words() {
        let said = |bytes: &[u8]| Journal::read(bytes).stopped.map(|why| why.to_string());
        let start = START.encode(0);
        let trigger = Record::Trigger { frame: hairspring_ring::Frames(1), shot: 2 };
        assert_eq!(said(&start), None);
        assert_eq!(said(&start[..63]).as_deref(), Some("the file ends within a record"));
        assert_eq!(said(&[0; 64]).as_deref(), Some("nothing was written there"));
        assert_eq!(said(&[1; 64]).as_deref(), Some("it does not begin with the magic of a record"));
        let elsewhere = said(&[start, trigger.encode(5)].concat());
        assert_eq!(elsewhere.as_deref(), Some("it has the sequence number 5 of another place"));
        assert_eq!(said(&trigger.encode(0)).as_deref(), Some("a journal has one start, and begins with it"));
    }
}
