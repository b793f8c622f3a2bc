//! The rows of an array: the frames of a cut as numbers, in order, and what becomes of frames that are missing.

use super::{Cut, ExportError, Part, gaps_in, one_part, parts, read, values};
use hairspring_record::recording::Recording;
use hairspring_record::store::Store;
use hairspring_record::verify::ReadProgress;
use hairspring_ring::layout::{Container, Layout};
use hairspring_ring::units::Frames;

/// Most bytes of filled frames that are handed over at once.
const MOST_FILLED: u64 = 1 << 20;

/// What becomes of frames that are missing in a cut. An array cannot mark a gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GapChoice {
    /// The export is refused.
    Refuse,
    /// They are left out, so that the frames around a gap become neighbours.
    LeaveOut,
    /// Each of their samples gets this value.
    Fill(f64),
}

/// The numbers of an array: those of the containers that arrays have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    I8,
    U8,
    I16,
    U16,
    I32,
    F32,
}

impl Number {
    /// What the samples of a layout become: packed samples 16-bit ones, digital lines bytes of 0 and 1.
    pub(super) fn of(layout: Layout) -> Self {
        match layout.container() {
            Container::I8 => Self::I8,
            Container::U8 | Container::Bits => Self::U8,
            Container::I16 | Container::Packed12 => Self::I16,
            Container::U16 => Self::U16,
            Container::I32 => Self::I32,
            Container::F32 => Self::F32,
        }
    }

    /// The container that stores such numbers.
    pub(super) fn container(self) -> Container {
        match self {
            Self::I8 => Container::I8,
            Self::U8 => Container::U8,
            Self::I16 => Container::I16,
            Self::U16 => Container::U16,
            Self::I32 => Container::I32,
            Self::F32 => Container::F32,
        }
    }

    pub(super) fn bytes(self) -> u64 {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::F32 => 4,
        }
    }

    /// A value as such a number; `None` if it is not one.
    fn little_endian(self, value: f64) -> Option<Vec<u8>> {
        let (least, most) = match self {
            Self::I8 => (i8::MIN.into(), i8::MAX.into()),
            Self::U8 => (0.0, u8::MAX.into()),
            Self::I16 => (i16::MIN.into(), i16::MAX.into()),
            Self::U16 => (0.0, u16::MAX.into()),
            Self::I32 => (i32::MIN.into(), i32::MAX.into()),
            Self::F32 => return Some((value as f32).to_le_bytes().to_vec()),
        };
        let is_one = value.fract() == 0.0 && (least..=most).contains(&value);
        is_one.then(|| (value as i64).to_le_bytes()[..self.bytes() as usize].to_vec())
    }
}

/// The array that a cut becomes.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    pub(super) first: Frames,
    pub(super) frames: Frames,
    pub(super) number: Number,
    pub(super) channels: u32,
    /// The bytes of a sample that is missing, if such are filled.
    fill: Option<Vec<u8>>,
    cut: Cut,
}

/// A piece of the rows.
#[derive(Clone, Copy, Debug)]
pub(super) enum RowPiece<'a> {
    /// Frames that were recorded.
    Recorded(&'a [u8]),
    /// A number of missing frames, which are filled.
    Missing(Frames),
}

impl Rows {
    /// Finds out how many rows a cut has.
    ///
    /// # Errors
    /// It has none, or frames are missing and the choice refuses that, or the value to fill with is none of these samples.
    pub(super) fn of(recording: &Recording, cut: Cut, gaps: GapChoice) -> Result<Self, ExportError> {
        let layout = recording.about().layout;
        let number = Number::of(layout);
        let frames = one_part(recording, cut, gaps != GapChoice::Refuse)?;
        let runs = parts(recording, cut);
        let (head, tail) = (runs.first().copied(), runs.last().copied());
        let first = head.map_or(Frames(0), |part| part.first);
        let mut rows = Self { first, frames: Frames(frames), number, channels: layout.channels(), fill: None, cut };
        if let GapChoice::Fill(value) = gaps {
            let Some(bytes) = number.little_endian(value) else {
                return Err(ExportError::Unsuitable(format!(
                    "{value} is no sample of this recording ({}): choose another value to fill with",
                    layout.container()
                )));
            };
            let end = |part: Part| part.first.0 + part.frames.0;
            let missing = gaps_in(recording, cut);
            let (from, to) = missing.fold((first.0, tail.map_or(0, end)), |(from, to), gap| {
                (from.min(gap.first.0.max(cut.first.0)), to.max(gap.end().0.min(cut.end().0)))
            });
            (rows.first, rows.frames, rows.fill) = (Frames(from), Frames(to - from), Some(bytes));
        }
        Ok(rows)
    }

    /// Bytes of one row.
    pub(super) fn row_bytes(&self) -> u64 {
        u64::from(self.channels) * self.number.bytes()
    }

    /// Hands the rows over, piece by piece.
    pub(super) fn read(
        &self,
        store: &mut dyn Store,
        recording: &Recording,
        progress: &mut dyn FnMut(ReadProgress),
        take: &mut dyn FnMut(RowPiece<'_>) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let layout = recording.about().layout;
        let mut next = self.first.0;
        read(store, recording, self.cut, progress, &mut |first, bytes| {
            if self.fill.is_some() && first.0 > next {
                take(RowPiece::Missing(Frames(first.0 - next)))?;
            }
            let numbers;
            let bytes = match layout.container() {
                Container::Packed12 => {
                    numbers = values::unpacked(bytes);
                    &numbers[..]
                }
                Container::Bits => {
                    numbers = values::lines(layout, bytes);
                    &numbers[..]
                }
                _ => bytes,
            };
            next = first.0 + bytes.len() as u64 / self.row_bytes();
            take(RowPiece::Recorded(bytes))
        })?;
        let end = self.first.0 + self.frames.0;
        match self.fill {
            Some(_) if end > next => take(RowPiece::Missing(Frames(end - next))),
            _ => Ok(()),
        }
    }

    /// Hands the rows over as bytes, those of missing frames, too.
    pub(super) fn read_filled(
        &self,
        store: &mut dyn Store,
        recording: &Recording,
        progress: &mut dyn FnMut(ReadProgress),
        take: &mut dyn FnMut(&[u8]) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let sample = self.fill.clone().unwrap_or_default();
        let mut filled = Vec::new();
        self.read(store, recording, progress, &mut |piece| match piece {
            RowPiece::Recorded(bytes) => take(bytes),
            RowPiece::Missing(Frames(mut left)) => {
                let most = (MOST_FILLED / self.row_bytes()).max(1);
                if filled.is_empty() {
                    filled = sample.repeat((most.min(left) * u64::from(self.channels)) as usize);
                }
                while left > 0 {
                    let rows = left.min(filled.len() as u64 / self.row_bytes());
                    take(&filled[..(rows * self.row_bytes()) as usize])?;
                    left -= rows;
                }
                Ok(())
            }
        })
    }

    /// The value of a missing sample; 0 if none is filled.
    pub(super) fn fill_bytes(&self) -> Vec<u8> {
        self.fill.clone().unwrap_or_else(|| vec![0; self.number.bytes() as usize])
    }
}
