//! The journal: an append-only file of small checksummed records, from which a recording can be understood after any
//! end.
//!
//! Each record is 64 bytes, little-endian:
//!
//! ```text
//! 0      4        8            16   17                             64
//! magic  CRC-32C  sequence     kind payload, the rest zero
//! "hsJ1" of 8–63  0, 1, 2, …
//! ```
//!
//! A reader stops at the first record that is incomplete, has another sequence number than the next, or does not match
//! its checksum. So it never trusts a record that a crash left half written. There is one journal for each target
//! directory; a block is recorded in the journal of the directory where it lies, gaps in all of them.
//!
//! The layout of each payload is in `journal/encoding.rs` and, for readers in other languages, in
//! `docs/recording-format.md`.

mod encoding;
mod reader;

use std::fmt;
use std::str::FromStr;

use hairspring_machine::{Instant, Nanos};

use crate::clock::external::{ExternalReading, ExternalSilence};
use crate::clock::{ClockPair, ClockReference, Mark};
use crate::ledger::RecordingVerdict;
use hairspring_ring::gap::{Gap, Skip};
use hairspring_ring::units::Frames;
use hairspring_source::SenderCount;
use hairspring_source::external::{ExternalFacts, ExternalKind};

pub use encoding::DecodeError;
pub use hairspring_ring::gap::GapBounds;
pub use reader::{Journal, JournalContents, JournalPieces, Stopped};

/// Length of a record in bytes.
pub const RECORD_BYTES: usize = 64;

/// Identifies a recording, or a series of them; all members of one recording have the same id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecordingId(pub [u8; 16]);

impl fmt::Display for RecordingId {
    /// 32 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for RecordingId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let mut id = [0; 16];
        let digits = text.as_bytes();
        if digits.len() != 32 {
            return Err(NotAnId);
        }
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| NotAnId)?;
            // `from_str_radix` alone would take a sign.
            if !pair.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(NotAnId);
            }
            *byte = u8::from_str_radix(pair, 16).map_err(|_| NotAnId)?;
        }
        Ok(Self(id))
    }
}

/// The place of a segment in its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InSeries {
    /// The id of the series.
    pub series: RecordingId,
    /// The number of the segment, from 0. Numbers are never used again.
    pub number: u32,
    /// The global index of its first frame, stored or lost. Frames are numbered through the series.
    pub first: Frames,
    /// The recording that is the segment before it; zeros for the first.
    pub previous: RecordingId,
    /// Number of times that the series was resumed before this segment.
    pub epoch: u16,
}

/// Frames that a trigger asks to keep; retention does not delete them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptFrames {
    /// The first of them,
    pub first: Frames,
    /// and the first after them. They may reach into other segments.
    pub end: Frames,
}

/// An external clock, as far as a record has room for its facts. The metadata have all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalHead {
    /// The kind of the clock.
    pub kind: ExternalKind,
    /// The assumed maximal delay of its stamps.
    pub late: Nanos,
    /// Its file in UTF-8, truncated to this many bytes, the rest zero.
    pub id: [u8; Self::ID_BYTES],
}

impl ExternalHead {
    /// The length of the field for its file.
    pub const ID_BYTES: usize = 38;

    /// The head of these facts.
    pub fn of(facts: &ExternalFacts) -> Self {
        let mut id = [0; Self::ID_BYTES];
        for (place, byte) in id.iter_mut().zip(facts.id.bytes()) {
            *place = byte;
        }
        Self { kind: facts.kind, late: facts.late, id }
    }

    /// The facts in this record; the name is empty.
    pub fn facts(&self) -> ExternalFacts {
        let length = self.id.iter().position(|byte| *byte == 0).unwrap_or(Self::ID_BYTES);
        let id = String::from_utf8_lossy(&self.id[..length]).into_owned();
        ExternalFacts { kind: self.kind, id, name: String::new(), late: self.late }
    }
}

/// A text that is not the 32 hexadecimal digits of a [`RecordingId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnId;

impl fmt::Display for NotAnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id of a recording is 32 hexadecimal digits")
    }
}

impl std::error::Error for NotAnId {}

/// One record.
///
/// Positions are in the *stored stream*: all bytes that were given to the disks, one after the other, without gaps. It
/// is cut into blocks of equal size (but for the last), which are whole grains; block `k` begins at position
/// `k × block_bytes`.
///
/// The record of a gap or skip comes before the records of all blocks that reach beyond it. So the frames of every
/// block are known, however early the journal ends.
///
/// A block without a record in any journal is not in the recording. Positions continue through a lost block, so later
/// blocks keep their numbers. A gap declares it ([`GapCause::is_in_stream`](hairspring_ring::GapCause::is_in_stream): a
/// block that could not be written, or is damaged); all other gaps lie *between* two bytes of the stored stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Record {
    /// The first record of every journal.
    Start {
        /// The id of the recording.
        id: RecordingId,
        /// Size of all blocks but the last.
        block_bytes: u32,
        /// Bytes of the smallest piece that is whole frames.
        grain_bytes: u32,
        /// Frames of it.
        grain_frames: u32,
        /// The number of this member among the recording's directories, from 0.
        member: u16,
        /// The number of members.
        members: u16,
        /// Time of day when it began (`CLOCK_REALTIME`).
        started: Nanos,
    },
    /// When frame 0 was taken: at these readings of two clocks, or up to `within` earlier. The record is written when
    /// the first data come, and is missing if none came.
    Begun {
        /// The time of day (`CLOCK_REALTIME`).
        realtime: Nanos,
        /// On `CLOCK_MONOTONIC`.
        monotonic: Instant,
        /// How much earlier it may have been.
        within: Nanos,
    },
    /// The boot to which all moments belong, and the error of the time of day.
    Clock {
        /// The boot of the computer; all zeros if the kernel does not state it.
        boot_id: [u8; 16],
        /// The kernel's statement on its time of day, if there is one.
        reference: Option<ClockReference>,
    },
    /// Readings of the kernel's clocks that belong together.
    Pair(ClockPair),
    /// A frame, and when it was taken.
    Mark(Mark),
    /// The counter of the stream's sender, from a frame on.
    Count(SenderCount),
    /// A block was written completely. A later record of the same block takes its place (`recover` moves blocks); one
    /// of length 0 withdraws it.
    Block {
        /// The number of the block in the stored stream.
        index: u64,
        /// Its offset in this member's data file.
        file_offset: u64,
        /// Its length in bytes.
        length: u32,
        /// CRC-32C of its bytes.
        crc: u32,
        /// Bytes that the source had produced when the write was complete.
        produced_bytes: u64,
        /// When it was complete (`CLOCK_MONOTONIC`).
        at: Instant,
    },
    /// Frames are missing before the byte at `position` of the stored stream.
    Gap {
        /// The position.
        position: u64,
        /// The missing frames and the cause.
        gap: Gap,
    },
    /// Frames were left out before the byte at `position` of the stored stream, because no trigger asked for them.
    Skip {
        /// The position.
        position: u64,
        /// The frames left out.
        skip: Skip,
    },
    /// A trigger.
    Trigger {
        /// The global index of the frame that triggered.
        frame: Frames,
        /// The number of the shot, from 0.
        shot: u64,
    },
    /// All blocks whose records in this journal have a sequence number below `before` are durable.
    Sync {
        /// The first sequence number that is not covered.
        before: u64,
        /// Bytes of this member's blocks that are covered.
        durable_bytes: u64,
        /// When the sync was complete (`CLOCK_MONOTONIC`).
        at: Instant,
    },
    /// An operation on this member's files failed.
    Error {
        /// The operation.
        operation: FailedOperation,
        /// The system's error number.
        errno: i32,
        /// The block concerned, or `u64::MAX`.
        block: u64,
        /// When (`CLOCK_MONOTONIC`).
        at: Instant,
    },
    /// The place in a series, written when the first frame of the segment is known: after the start, before all blocks
    /// and gaps. A skip of the frames before the first one follows it, so that readers that do not know series number
    /// frames alike.
    Series(InSeries),
    /// How long a gap can be; the gap is in the journal, too.
    Bounds(GapBounds),
    /// The segment ends before this frame, with which the next segment of its series begins. Data that the source
    /// produced from there on are not part of this segment.
    Cut {
        /// The global index of the first frame of the next segment.
        frame: Frames,
    },
    /// The source of a segment counted from 0 at this frame, because the series was resumed. The times of the start are
    /// those of this frame.
    Epoch {
        /// The global index of the source's frame 0.
        first: Frames,
    },
    /// A trigger asked to keep the segments that have any of these frames.
    Keep(KeptFrames),
    /// The external clock that was read.
    ExternalClock(ExternalHead),
    /// A reading of the external clock.
    External(ExternalReading),
    /// The external clock returns no readings. A later record that begins at the same moment replaces this one.
    ExternalSilence(ExternalSilence),
    /// The last record of a recording that ended in order or was mended.
    End {
        /// The verdict.
        verdict: RecordingVerdict,
        /// Whether `recover` wrote this.
        recovered: bool,
        /// Bytes that the source produced; for a mended recording, as many as are known.
        produced_bytes: u64,
        /// Bytes in the files of all members.
        stored_bytes: u64,
        /// The sum of all gaps.
        lost_bytes: u64,
        /// The sum of all skips.
        left_out_bytes: u64,
    },
}

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FailedOperation {
    /// Writing data.
    Write = 1,
    /// Syncing data to the device.
    Sync = 2,
    /// Reserving space.
    Allocate = 3,
    /// Writing the journal itself.
    Journal = 4,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_as_it_is_written_and_nothing_else_is_one() {
        let id = RecordingId(std::array::from_fn(|index| 17 * index as u8));
        assert_eq!(id.to_string(), "00112233445566778899aabbccddeeff");
        assert_eq!(id.to_string().parse(), Ok(id));
        let refused: Result<RecordingId, NotAnId> = "+0112233445566778899aabbccddeeff".parse();
        assert_eq!(
            refused.map_err(|error| error.to_string()),
            Err("an id of a recording is 32 hexadecimal digits".to_owned())
        );
    }
}
