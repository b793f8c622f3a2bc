//! A [`Record`] as 64 bytes, and back.
//!
//! Payloads, from byte 17 on; all numbers little-endian, times as nanoseconds:
//!
//! ```text
//! kind          payload
//! 1  start      id[16] block_bytes:u32 grain_bytes:u32 grain_frames:u32 member:u16 members:u16 started:i64
//! 2  block      index:u64 file_offset:u64 length:u32 crc:u32 produced_bytes:u64 at:i64
//! 3  gap        position:u64 first:u64 frames:u64 cause:u8 found:i64
//! 4  skip       position:u64 first:u64 frames:u64
//! 5  trigger    frame:u64 shot:u64
//! 6  sync       before:u64 durable_bytes:u64 at:i64
//! 7  error      operation:u8 errno:i32 block:u64 at:i64
//! 8  end        verdict:u8 recovered:u8 produced_bytes:u64 stored_bytes:u64 lost_bytes:u64 left_out_bytes:u64
//! 9  begun      realtime:i64 monotonic:i64 within:i64
//! 10 clock      boot id[16] reference:u8 most_error:i64 asked:i64
//! 11 pair       monotonic:i64 realtime:i64 raw:i64 suspended:i64 within:i64
//! 12 mark       frame:u64 earliest:i64 latest:i64 how:u8
//! 13 series     series[16] number:u32 first:u64 previous[16] epoch:u16
//! 14 bounds     first:u64 least:u64 most:u64
//! 15 cut        frame:u64
//! 16 epoch      first:u64
//! 17 count      frame:u64 number:u64 frames_each:u32 bits:u8
//! 18 keep       first:u64 end:u64
//! 19 clock      kind:u8 late:i64 id[38]                  an external one
//! 20 external   ticks:i64 earliest:i64 latest:i64 how:u8
//! 21 silence    after:i64 before:i64 gone:u8
//! ```
//!
//! A kind and its payload never change. A new meaning gets a new kind, which older readers skip.

use std::fmt;

use hairspring_machine::{Instant, Nanos};

use super::{ExternalHead, FailedOperation, GapBounds, InSeries, KeptFrames, RECORD_BYTES, Record, RecordingId};
use crate::clock::external::{ExternalReading, ExternalSilence};
use crate::clock::{ClockPair, ClockReference, Mark, MarkSource};
use crate::ledger::RecordingVerdict;
use hairspring_ring::gap::{Gap, GapCause, Skip};
use hairspring_ring::units::Frames;
use hairspring_source::SenderCount;
use hairspring_source::external::{ExternalBracket, ExternalKind};

/// The first bytes of every record: the format and its version.
const MAGIC: [u8; 4] = *b"hsJ1";

/// The offset of the kind; the payload follows it.
const KIND_AT: usize = 16;

/// Why 64 bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// They do not begin with the magic of a record.
    NotARecord,
    /// They do not match their checksum.
    Checksum,
    /// They match their checksum but hold an invalid value.
    Value(&'static str),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotARecord => f.write_str("it does not begin with the magic of a record"),
            Self::Checksum => f.write_str("it does not match its checksum"),
            Self::Value(what) => write!(f, "it holds {what}; a newer version may have written it"),
        }
    }
}

impl std::error::Error for DecodeError {}

impl Record {
    /// Encodes the record for the file, with this sequence number.
    pub fn encode(&self, sequence: u64) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&sequence.to_le_bytes());
        let mut out = Out { bytes: &mut bytes, at: KIND_AT };
        match *self {
            Self::Start { id, block_bytes, grain_bytes, grain_frames, member, members, started } => {
                out.put([1]).put(id.0).put(block_bytes.to_le_bytes()).put(grain_bytes.to_le_bytes());
                out.put(grain_frames.to_le_bytes()).put(member.to_le_bytes()).put(members.to_le_bytes());
                out.span(started)
            }
            Self::Block { index, file_offset, length, crc, produced_bytes, at } => {
                out.put([2]).number(index).number(file_offset).put(length.to_le_bytes()).put(crc.to_le_bytes());
                out.number(produced_bytes).instant(at)
            }
            Self::Gap { position, gap } => {
                out.put([3]).number(position).number(gap.first.0).number(gap.frames.0);
                out.put([gap.cause as u8]).instant(gap.found)
            }
            Self::Skip { position, skip } => out.put([4]).number(position).number(skip.first.0).number(skip.frames.0),
            Self::Trigger { frame, shot } => out.put([5]).number(frame.0).number(shot),
            Self::Sync { before, durable_bytes, at } => out.put([6]).number(before).number(durable_bytes).instant(at),
            Self::Error { operation, errno, block, at } => {
                out.put([7]).put([operation as u8]).put(errno.to_le_bytes()).number(block).instant(at)
            }
            Self::Begun { realtime, monotonic, within } => out.put([9]).span(realtime).instant(monotonic).span(within),
            Self::Clock { boot_id, reference } => {
                let known = reference.map_or(0, |reference| 1 + u8::from(reference.synchronized));
                let (error, asked) = reference.map_or((Nanos::ZERO, Instant::BOOT), |it| (it.most_error, it.asked));
                out.put([10]).put(boot_id).put([known]).span(error).instant(asked)
            }
            Self::Pair(ClockPair { monotonic, realtime, raw, suspended, within }) => {
                out.put([11]).instant(monotonic).span(realtime).span(raw).span(suspended).span(within)
            }
            Self::Mark(Mark { frame, earliest, latest, how }) => {
                out.put([12]).number(frame.0).instant(earliest).instant(latest).put([how as u8])
            }
            Self::Series(InSeries { series, number, first, previous, epoch }) => {
                out.put([13]).put(series.0).put(number.to_le_bytes()).number(first.0).put(previous.0);
                out.put(epoch.to_le_bytes())
            }
            Self::Bounds(GapBounds { first, least, most }) => {
                out.put([14]).number(first.0).number(least.0).number(most.0)
            }
            Self::Cut { frame } => out.put([15]).number(frame.0),
            Self::Epoch { first } => out.put([16]).number(first.0),
            Self::Count(SenderCount { frame, number, frames_each, bits }) => {
                out.put([17]).number(frame.0).number(number).put(frames_each.to_le_bytes()).put([bits])
            }
            Self::Keep(KeptFrames { first, end }) => out.put([18]).number(first.0).number(end.0),
            Self::ExternalClock(ExternalHead { kind, late, id }) => {
                out.put([19]).put([kind_number(kind)]).span(late).put(id)
            }
            Self::External(ExternalReading { ticks, earliest, latest, how }) => {
                out.put([20]).put(ticks.to_le_bytes()).instant(earliest).instant(latest).put([how as u8])
            }
            Self::ExternalSilence(ExternalSilence { after, before, is_gone }) => {
                out.put([21]).instant(after).instant(before).put([u8::from(is_gone)])
            }
            Self::End { verdict, recovered, produced_bytes, stored_bytes, lost_bytes, left_out_bytes } => {
                out.put([8]).put([number_of(verdict)]).put([u8::from(recovered)]);
                out.number(produced_bytes).number(stored_bytes).number(lost_bytes).number(left_out_bytes)
            }
        };
        let crc = crc32c::crc32c(&bytes[8..]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes 64 bytes into a sequence number and a record; `None` for a kind that this version does not know.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn decode(bytes: &[u8; RECORD_BYTES]) -> Result<(u64, Option<Self>), DecodeError> {
        let mut input = In { bytes, at: 0 };
        if input.take() != MAGIC {
            return Err(DecodeError::NotARecord);
        }
        if u32::from_le_bytes(input.take()) != crc32c::crc32c(&bytes[8..]) {
            return Err(DecodeError::Checksum);
        }
        let sequence = input.number();
        let [kind] = input.take();
        let record = match kind {
            1 => input.start()?,
            2 => Self::Block {
                index: input.number(),
                file_offset: input.number(),
                length: u32::from_le_bytes(input.take()),
                crc: u32::from_le_bytes(input.take()),
                produced_bytes: input.number(),
                at: input.instant(),
            },
            3 => Self::Gap { position: input.number(), gap: input.gap()? },
            4 => Self::Skip {
                position: input.number(),
                skip: Skip { first: Frames(input.number()), frames: Frames(input.number()) },
            },
            5 => Self::Trigger { frame: Frames(input.number()), shot: input.number() },
            6 => Self::Sync { before: input.number(), durable_bytes: input.number(), at: input.instant() },
            7 => Self::Error {
                operation: input.operation()?,
                errno: i32::from_le_bytes(input.take()),
                block: input.number(),
                at: input.instant(),
            },
            8 => {
                let ([verdict], [recovered]) = (input.take(), input.take());
                let verdict = RecordingVerdict::ALL.into_iter().find(|known| number_of(*known) == verdict);
                Self::End {
                    verdict: verdict.ok_or(DecodeError::Value("an unknown verdict"))?,
                    recovered: recovered != 0,
                    produced_bytes: input.number(),
                    stored_bytes: input.number(),
                    lost_bytes: input.number(),
                    left_out_bytes: input.number(),
                }
            }
            9 => Self::Begun { realtime: input.span(), monotonic: input.instant(), within: input.span() },
            13 => Self::Series(InSeries {
                series: RecordingId(input.take()),
                number: u32::from_le_bytes(input.take()),
                first: Frames(input.number()),
                previous: RecordingId(input.take()),
                epoch: u16::from_le_bytes(input.take()),
            }),
            14 => Self::Bounds(GapBounds {
                first: Frames(input.number()),
                least: Frames(input.number()),
                most: Frames(input.number()),
            }),
            17 => {
                let (frame, number) = (Frames(input.number()), input.number());
                let (frames_each, [bits]) = (u32::from_le_bytes(input.take()), input.take());
                if frames_each == 0 || !(1..=64).contains(&bits) {
                    return Err(DecodeError::Value("numbers without frames or bits"));
                }
                Self::Count(SenderCount { frame, number, frames_each, bits })
            }
            18 => Self::Keep(KeptFrames { first: Frames(input.number()), end: Frames(input.number()) }),
            19 => {
                let ([kind], late, id) = (input.take(), input.span(), input.take());
                let kind = ExternalKind::ALL.into_iter().find(|known| kind_number(*known) == kind);
                // A kind of clock that only a newer version knows counts as an unknown record.
                let Some(kind) = kind else { return Ok((sequence, None)) };
                Self::ExternalClock(ExternalHead { kind, late, id })
            }
            20 => {
                let (ticks, earliest, latest) = (i64::from_le_bytes(input.take()), input.instant(), input.instant());
                let [how] = input.take();
                // A bracket that only a newer version knows counts as the weakest one known here.
                let how = ExternalBracket::ALL.into_iter().find(|known| *known as u8 == how);
                Self::External(ExternalReading { ticks, earliest, latest, how: how.unwrap_or(ExternalBracket::Plain) })
            }
            21 => {
                let (after, before, [gone]) = (input.instant(), input.instant(), input.take());
                Self::ExternalSilence(ExternalSilence { after, before, is_gone: gone != 0 })
            }
            16 => Self::Epoch { first: Frames(input.number()) },
            15 => Self::Cut { frame: Frames(input.number()) },
            10 => {
                let (boot_id, [known]) = (input.take(), input.take());
                let (most_error, asked) = (input.span(), input.instant());
                let reference = ClockReference { synchronized: known == 2, most_error, asked };
                Self::Clock { boot_id, reference: (known > 0).then_some(reference) }
            }
            11 => Self::Pair(ClockPair {
                monotonic: input.instant(),
                realtime: input.span(),
                raw: input.span(),
                suspended: input.span(),
                within: input.span(),
            }),
            12 => {
                let frame = Frames(input.number());
                let (earliest, latest, [how]) = (input.instant(), input.instant(), input.take());
                // A source that only a newer version knows counts as the weakest one known here.
                let how = MarkSource::ALL.into_iter().find(|known| *known as u8 == how).unwrap_or(MarkSource::Arrival);
                Self::Mark(Mark { frame, earliest, latest, how })
            }
            _ => return Ok((sequence, None)),
        };
        Ok((sequence, Some(record)))
    }
}

/// The verdict's number in the file.
fn number_of(verdict: RecordingVerdict) -> u8 {
    match verdict {
        RecordingVerdict::Complete => 1,
        RecordingVerdict::Stopped => 2,
        RecordingVerdict::Incomplete => 3,
        RecordingVerdict::Unaccounted => 4,
    }
}

/// The number of an external clock's kind in the file.
fn kind_number(kind: ExternalKind) -> u8 {
    match kind {
        ExternalKind::Ptp => 1,
        ExternalKind::Pps => 2,
    }
}

/// Writes fields one after the other.
struct Out<'a> {
    bytes: &'a mut [u8; RECORD_BYTES],
    at: usize,
}

impl Out<'_> {
    fn put<const N: usize>(&mut self, field: [u8; N]) -> &mut Self {
        self.bytes[self.at..self.at + N].copy_from_slice(&field);
        self.at += N;
        self
    }

    fn number(&mut self, number: u64) -> &mut Self {
        self.put(number.to_le_bytes())
    }

    fn span(&mut self, span: Nanos) -> &mut Self {
        self.put(span.count().to_le_bytes())
    }

    fn instant(&mut self, instant: Instant) -> &mut Self {
        self.span(instant.as_monotonic())
    }
}

/// Reads fields one after the other.
struct In<'a> {
    bytes: &'a [u8; RECORD_BYTES],
    at: usize,
}

impl In<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.bytes[self.at..self.at + N]);
        self.at += N;
        field
    }

    fn number(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn span(&mut self) -> Nanos {
        Nanos::new(i64::from_le_bytes(self.take()))
    }

    fn instant(&mut self) -> Instant {
        Instant::from_monotonic(self.span())
    }

    fn start(&mut self) -> Result<Record, DecodeError> {
        let id = RecordingId(self.take());
        let [block_bytes, grain_bytes, grain_frames] = [(); 3].map(|()| u32::from_le_bytes(self.take()));
        let [member, members] = [(); 2].map(|()| u16::from_le_bytes(self.take()));
        if block_bytes == 0 || grain_bytes == 0 || grain_frames == 0 || !block_bytes.is_multiple_of(grain_bytes) {
            return Err(DecodeError::Value("blocks that are not whole frames"));
        }
        if member >= members {
            return Err(DecodeError::Value("a member that its recording does not have"));
        }
        Ok(Record::Start { id, block_bytes, grain_bytes, grain_frames, member, members, started: self.span() })
    }

    fn gap(&mut self) -> Result<Gap, DecodeError> {
        let (first, frames) = (Frames(self.number()), Frames(self.number()));
        let [cause] = self.take();
        let cause = GapCause::from_number(cause).ok_or(DecodeError::Value("an unknown cause of a gap"))?;
        Ok(Gap { first, frames, cause, found: self.instant() })
    }

    fn operation(&mut self) -> Result<FailedOperation, DecodeError> {
        let [number] = self.take();
        let known =
            [FailedOperation::Write, FailedOperation::Sync, FailedOperation::Allocate, FailedOperation::Journal];
        let found = known.into_iter().find(|operation| *operation as u8 == number);
        found.ok_or(DecodeError::Value("an unknown operation"))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any record that a recorder could write.
    pub(crate) fn any_record() -> impl Strategy<Value = Record> {
        let time = || any::<i64>().prop_map(Nanos::new);
        let instant = || time().prop_map(Instant::from_monotonic);
        let numbers = any::<[u64; 4]>();
        let cause = prop::sample::select(GapCause::ALL.to_vec());
        let verdict = prop::sample::select(RecordingVerdict::ALL.to_vec());
        (0..21_u8, numbers, any::<[u32; 2]>(), time(), instant(), instant(), cause, verdict, any::<[u8; 16]>())
            .prop_map(|(kind, n, small, time, at, found, cause, verdict, id)| match kind {
                0 => Record::Start {
                    id: RecordingId(id),
                    block_bytes: 12 * (small[0] % 1000 + 1),
                    grain_bytes: 12,
                    grain_frames: 2,
                    member: 1,
                    members: 2 + (small[1] % 7) as u16,
                    started: time,
                },
                1 => Record::Block {
                    index: n[0],
                    file_offset: n[1],
                    length: small[0],
                    crc: small[1],
                    produced_bytes: n[2],
                    at,
                },
                2 => {
                    Record::Gap { position: n[0], gap: Gap { first: Frames(n[1]), frames: Frames(n[2]), cause, found } }
                }
                3 => Record::Skip { position: n[0], skip: Skip { first: Frames(n[1]), frames: Frames(n[2]) } },
                4 => Record::Trigger { frame: Frames(n[0]), shot: n[1] },
                5 => Record::Sync { before: n[0], durable_bytes: n[1], at },
                6 => Record::Error {
                    operation: FailedOperation::Allocate,
                    errno: small[0].cast_signed(),
                    block: n[0],
                    at,
                },
                14 => Record::Cut { frame: Frames(n[0]) },
                15 => Record::Epoch { first: Frames(n[0]) },
                16 => Record::Count(SenderCount {
                    frame: Frames(n[0]),
                    number: n[1],
                    frames_each: small[0].max(1),
                    bits: 1 + (small[1] % 64) as u8,
                }),
                17 => Record::Keep(KeptFrames { first: Frames(n[0]), end: Frames(n[1]) }),
                18 => Record::ExternalClock(ExternalHead {
                    kind: ExternalKind::ALL[small[0] as usize % 2],
                    late: time,
                    id: std::array::from_fn(|place| id[place % id.len()]),
                }),
                19 => Record::External(ExternalReading {
                    ticks: n[0].cast_signed(),
                    earliest: at,
                    latest: found,
                    how: ExternalBracket::ALL[n[1] as usize % ExternalBracket::ALL.len()],
                }),
                20 => Record::ExternalSilence(ExternalSilence { after: at, before: found, is_gone: small[1] % 2 == 1 }),
                8 => Record::Series(InSeries {
                    series: RecordingId(id),
                    number: small[0],
                    first: Frames(n[0]),
                    previous: RecordingId([small[1] as u8; 16]),
                    epoch: small[1] as u16,
                }),
                9 => Record::Bounds(GapBounds { first: Frames(n[0]), least: Frames(n[1]), most: Frames(n[2]) }),
                7 => Record::Begun { realtime: time, monotonic: found, within: Nanos::new(i64::from(small[0])) },
                11 => Record::Clock {
                    boot_id: id,
                    reference: (small[0] % 2 == 1).then_some(ClockReference {
                        synchronized: small[1] % 2 == 1,
                        most_error: time,
                        asked: at,
                    }),
                },
                12 => Record::Pair(ClockPair {
                    monotonic: at,
                    realtime: time,
                    raw: Nanos::new(n[0].cast_signed()),
                    suspended: Nanos::new(n[1].cast_signed()),
                    within: Nanos::new(small[0].into()),
                }),
                10 => Record::Mark(Mark {
                    frame: Frames(n[0]),
                    earliest: at,
                    latest: found,
                    how: MarkSource::ALL[n[1] as usize % MarkSource::ALL.len()],
                }),
                _ => Record::End {
                    verdict,
                    recovered: small[0] % 2 == 1,
                    produced_bytes: n[0],
                    stored_bytes: n[1],
                    lost_bytes: n[2],
                    left_out_bytes: n[3],
                },
            })
    }

    proptest! {
        #[test]
        fn every_record_is_read_back_as_it_was(record in any_record(), sequence: u64) {
            prop_assert_eq!(Record::decode(&record.encode(sequence)), Ok((sequence, Some(record))));
        }

        #[test]
        fn a_flipped_bit_is_always_seen(record in any_record(), sequence: u64, bit in 0..RECORD_BYTES * 8) {
            let mut bytes = record.encode(sequence);
            bytes[bit / 8] ^= 1 << (bit % 8);
            let seen = Record::decode(&bytes);
            prop_assert!(matches!(seen, Err(DecodeError::NotARecord | DecodeError::Checksum)), "{:?}", seen);
        }

        #[test]
        fn arbitrary_bytes_with_a_right_checksum_never_panic(rest: [u8; 32], more: [u8; 24]) {
            let mut bytes = [0; RECORD_BYTES];
            bytes[..4].copy_from_slice(&MAGIC);
            bytes[8..40].copy_from_slice(&rest);
            bytes[40..].copy_from_slice(&more);
            bytes[16] %= 25;
            let crc = crc32c::crc32c(&bytes[8..]);
            bytes[4..8].copy_from_slice(&crc.to_le_bytes());
            let _ = Record::decode(&bytes);
        }
    }

    const START: Record = Record::Start {
        id: RecordingId([7; 16]),
        block_bytes: 24,
        grain_bytes: 12,
        grain_frames: 2,
        member: 0,
        members: 1,
        started: Nanos::new(1),
    };
    const COUNT: SenderCount = SenderCount { frame: Frames(3), number: 4, frames_each: 5, bits: 64 };

    /// A record with another number at this byte, and a right checksum.
    #[track_caller]
    fn check_value(record: Record, at: usize, field: &[u8], expected: Result<Record, &str>) {
        let mut bytes = record.encode(1);
        bytes[at..at + field.len()].copy_from_slice(field);
        let crc = crc32c::crc32c(&bytes[8..]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        let expected = expected.map(|record| (1, Some(record))).map_err(str::to_owned);
        let found = Record::decode(&bytes).map_err(|error| match error {
            DecodeError::Value(what) => what.to_owned(),
            other => other.to_string(),
        });
        assert_eq!(found, expected);
    }

    /// Readers divide by these numbers.
    #[test]
    fn a_start_without_whole_frames_is_refused() {
        let blocks = Err("blocks that are not whole frames");
        check_value(START, 33, &24_u32.to_le_bytes(), Ok(START));
        check_value(START, 33, &0_u32.to_le_bytes(), blocks);
        check_value(START, 33, &25_u32.to_le_bytes(), blocks);
        check_value(START, 37, &0_u32.to_le_bytes(), blocks);
        check_value(START, 41, &0_u32.to_le_bytes(), blocks);
        check_value(START, 45, &1_u16.to_le_bytes(), Err("a member that its recording does not have"));
    }

    #[test]
    fn a_count_without_frames_or_bits_is_refused() {
        let refused = Err("numbers without frames or bits");
        let with = |bits: u8| Record::Count(SenderCount { bits, ..COUNT });
        check_value(with(64), 33, &0_u32.to_le_bytes(), refused);
        for bits in [0, 65] {
            check_value(with(64), 37, &[bits], refused);
        }
        for bits in [1, 64] {
            check_value(with(2), 37, &[bits], Ok(with(bits)));
        }
    }

    #[test]
    fn each_error_says_what_the_bytes_are_not() {
        assert_eq!(DecodeError::NotARecord.to_string(), "it does not begin with the magic of a record");
        assert_eq!(DecodeError::Checksum.to_string(), "it does not match its checksum");
        let value = DecodeError::Value("an unknown verdict").to_string();
        assert_eq!(value, "it holds an unknown verdict; a newer version may have written it");
    }
}
