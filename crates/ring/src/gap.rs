//! [`Gap`]: samples that the source produced but that are missing from the recording. A loss is data, never silent.

use std::fmt;

use hairspring_machine::Instant;

use crate::units::Frames;

/// Why samples were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum GapCause {
    /// The buffer was full: the disk was slower than the source for longer than the buffer lasts.
    BufferFull = 1,
    /// The buffer had room, but the hardware's FIFO was not emptied in time: the machine was busy or stalled.
    ServedLate = 2,
    /// Newer data overwrote the oldest data of a full buffer (policy `overwrite`).
    Overwritten = 3,
    /// The source reported the loss (sequence numbers of packets).
    Source = 4,
    /// They were in a block that could not be written.
    WriteFailed = 5,
    /// They were in a block that is damaged or missing in the files; found by `recover`.
    Damaged = 6,
    /// The recording was resumed later; the data between are unknown.
    Resumed = 7,
}

impl GapCause {
    /// Every cause.
    pub const ALL: [Self; 7] = [
        Self::BufferFull,
        Self::ServedLate,
        Self::Overwritten,
        Self::Source,
        Self::WriteFailed,
        Self::Damaged,
        Self::Resumed,
    ];

    /// Its stable name in files and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::BufferFull => "buffer_full",
            Self::ServedLate => "served_late",
            Self::Overwritten => "overwritten",
            Self::Source => "source",
            Self::WriteFailed => "write_failed",
            Self::Damaged => "damaged",
            Self::Resumed => "resumed",
        }
    }

    /// Whether the lost frames have positions in the stored stream, because they were in blocks that are missing.
    /// Frames lost by any other cause have no position: their neighbours are adjacent in the stored stream.
    pub fn is_in_stream(self) -> bool {
        matches!(self, Self::WriteFailed | Self::Damaged)
    }

    /// The cause with this number in a journal.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| *cause as u8 == number)
    }
}

impl fmt::Display for GapCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::BufferFull => "the buffer was full",
            Self::ServedLate => "the hardware FIFO was not emptied in time",
            Self::Overwritten => "overwritten by newer data",
            Self::Source => "lost before they reached this computer",
            Self::WriteFailed => "could not be written",
            Self::Damaged => "damaged or missing in the files",
            Self::Resumed => "between two parts of the recording",
        })
    }
}

/// A run of consecutive frames that are not in the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The global index of the first lost frame: the number of frames that the source had produced before it.
    pub first: Frames,
    /// Number of lost frames.
    pub frames: Frames,
    /// Why.
    pub cause: GapCause,
    /// When the loss was found.
    pub found: Instant,
}

/// The true length of a gap that is only known as an interval. The gap states a length within it, the likely one if
/// there is one, or one grain if it is unknown whether any frame is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapBounds {
    /// The first frame of the gap.
    pub first: Frames,
    /// The fewest frames that it can have.
    pub least: Frames,
    /// The most frames that it can have.
    pub most: Frames,
}

/// Frames that were not recorded because no trigger selected them. They are omitted, not lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skip {
    /// The global index of the first omitted frame.
    pub first: Frames,
    /// Number of frames.
    pub frames: Frames,
}

impl Gap {
    /// The global index of the first frame after it.
    pub fn end(&self) -> Frames {
        Frames(self.first.0.saturating_add(self.frames.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_read_back_by_their_number() {
        for cause in GapCause::ALL {
            assert_eq!(GapCause::from_number(cause as u8), Some(cause));
        }
        assert_eq!(GapCause::from_number(0), None);
        assert_eq!(GapCause::from_number(8), None);
    }
}
