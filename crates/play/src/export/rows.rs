//! The rows of an array: the frames of a cut as numbers, in order, and the treatment of missing frames.

use std::borrow::Cow;

use super::piece::Piece;
use super::values::Number;
use super::{ArrayCut, ExportError, ExportUnits, ExportedPiece};
use hairspring_recording::Recording;
use hairspring_recording::verify::ReadProgress;
use hairspring_ring::layout::Layout;
use hairspring_ring::units::Frames;
use hairspring_store::Store;

/// Most bytes of filled frames that are handed over at once.
const MOST_FILLED: u64 = 1 << 20;

/// The treatment of frames that are missing in a cut. An array cannot mark a gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GapChoice {
    /// The export is refused.
    Refuse,
    /// They are left out, so that the frames around a gap become neighbours.
    LeaveOut,
    /// Each of their samples gets this value.
    Fill(f64),
}

/// The array that a cut becomes.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    /// The global index of the first row.
    pub(super) first: Frames,
    /// The number of rows.
    pub(super) frames: Frames,
    pub(super) number: Number,
    /// Numbers in a row: one for each channel, or for each pair of them.
    pub(super) columns: u32,
    pub(super) piece: Piece,
    pub(super) units: ExportUnits,
    /// The bytes of a sample that is missing, if such are filled.
    fill: Option<Vec<u8>>,
    codes: Codes,
}

/// How stored samples become numbers.
#[derive(Clone, Debug)]
struct Codes {
    layout: Layout,
    stored: Number,
    number: Number,
    /// Scale and offset of each channel, for values in their units.
    scales: Option<Vec<[f64; 2]>>,
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
    /// Finds the number of rows of a cut. With `pairs`, complex samples become complex numbers; else their parts are
    /// channels.
    ///
    /// It lies after the end; frames are missing and the choice refuses that; the fill value is no such sample; or a
    /// channel has no scale.
    pub(super) fn of(recording: &Recording, options: ArrayCut, pairs: bool) -> Result<Self, ExportError> {
        let mut piece = Piece::of(recording, options.cut)?;
        let codes = Codes::of(recording, options.units, pairs)?;
        let number = codes.number;
        let fill = match options.gaps {
            GapChoice::Refuse => {
                piece.shorten();
                piece.demand_whole()?;
                None
            }
            GapChoice::LeaveOut => None,
            GapChoice::Fill(value) => Some(number.little_endian(value).ok_or_else(|| {
                ExportError::Unsuitable(format!(
                    "{value} is no sample of this recording ({}): choose another value to fill with",
                    codes.layout.container()
                ))
            })?),
        };
        let (first, frames) = match fill {
            Some(_) => (piece.range.start, piece.range.end - piece.range.start),
            None => (piece.first_there(), piece.frames_there()),
        };
        let columns = codes.columns();
        let (first, frames) = (Frames(first), Frames(frames));
        Ok(Self { first, frames, number, columns, piece, units: options.units, fill, codes })
    }

    /// The export's report.
    pub(super) fn exported(self) -> ExportedPiece {
        ExportedPiece { first: self.first, frames: self.frames, ..self.piece.exported() }
    }

    /// Bytes of one row.
    pub(super) fn row_bytes(&self) -> u64 {
        u64::from(self.columns) * self.number.bytes()
    }

    /// Whether missing frames are filled.
    pub(super) fn is_filled(&self) -> bool {
        self.fill.is_some()
    }

    /// Hands the rows over, piece by piece.
    pub(super) fn read(
        &self,
        store: &mut dyn Store,
        recording: &Recording,
        progress: &mut dyn FnMut(ReadProgress),
        take: &mut dyn FnMut(RowPiece<'_>) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let mut next = self.first.0;
        self.piece.read(store, recording, progress, &mut |first, rows| {
            if self.fill.is_some() && first.0 > next {
                take(RowPiece::Missing(Frames(first.0 - next)))?;
            }
            let rows = self.codes.numbers(rows);
            next = first.0 + rows.len() as u64 / self.row_bytes();
            take(RowPiece::Recorded(&rows))
        })?;
        let end = self.first.0 + self.frames.0;
        match self.fill {
            Some(_) if end > next => take(RowPiece::Missing(Frames(end - next))),
            _ => Ok(()),
        }
    }

    /// Hands the rows over as bytes, including those of missing frames.
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
                if (filled.len() as u64) < most.min(left) * self.row_bytes() {
                    filled = sample.repeat((most.min(left) * u64::from(self.columns)) as usize);
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

impl Codes {
    fn of(recording: &Recording, units: ExportUnits, pairs: bool) -> Result<Self, ExportError> {
        let layout = recording.about().layout;
        let stored = Number::of(layout);
        let scales = match units {
            ExportUnits::Codes => None,
            ExportUnits::Channels => Some(scales(recording)?),
        };
        let number = match (&scales, recording.is_complex() && pairs) {
            (None, false) => stored,
            (None, true) => stored.paired(),
            (Some(_), false) => Number::F64,
            (Some(_), true) => Number::Complex128,
        };
        Ok(Self { layout, stored, number, scales })
    }

    fn columns(&self) -> u32 {
        match self.number {
            Number::Complex64 | Number::Complex128 => self.layout.channels() / 2,
            _ => self.layout.channels(),
        }
    }

    /// Rows of stored numbers as the numbers of the array.
    fn numbers<'a>(&self, rows: &'a [u8]) -> Cow<'a, [u8]> {
        if let Some(scales) = &self.scales {
            let mut values = Vec::with_capacity(rows.len() / self.stored.bytes() as usize * 8);
            let mut scales = scales.iter().cycle();
            self.stored.each(rows, &mut |code| {
                let [scale, offset] = scales.next().copied().unwrap_or([1.0, 0.0]);
                values.extend((code * scale + offset).to_le_bytes());
            });
            return values.into();
        }
        match (self.stored, self.number) {
            (Number::F32, Number::Complex64) | (Number::F64, Number::Complex128) => rows.into(),
            (_, Number::Complex64) => {
                let mut parts = Vec::with_capacity(rows.len() / self.stored.bytes() as usize * 4);
                self.stored.each(rows, &mut |part| parts.extend((part as f32).to_le_bytes()));
                parts.into()
            }
            (_, Number::Complex128) => {
                let mut parts = Vec::with_capacity(rows.len() / self.stored.bytes() as usize * 8);
                self.stored.each(rows, &mut |part| parts.extend(part.to_le_bytes()));
                parts.into()
            }
            _ => rows.into(),
        }
    }
}

/// Scale and offset of every channel.
///
/// # Errors
/// A channel has none; the error names the channel.
pub(super) fn scales(recording: &Recording) -> Result<Vec<[f64; 2]>, ExportError> {
    let about = recording.about();
    let scale = |number: u32| {
        let channel = about.channels.get(number as usize);
        let known = channel.and_then(|channel| Some([channel.scale?, channel.offset?]));
        known.ok_or_else(|| {
            let name = channel.and_then(|channel| channel.name.as_deref());
            let name = name.map_or_else(|| format!("channel {number}"), |name| format!("channel {number} ({name})"));
            ExportError::Unsuitable(format!(
                "the recording states no scale and offset of {name}: leave out --scaled to export codes"
            ))
        })
    };
    (0..about.layout.channels()).map(scale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_codes_become_complex_numbers() {
        let layout = Layout::analogue(2, 16).expect("exists");
        let codes = Codes { layout, stored: Number::I16, number: Number::Complex64, scales: None };
        let rows: Vec<u8> = [1_i16, -2, i16::MIN, i16::MAX].iter().flat_map(|code| code.to_le_bytes()).collect();
        let parts: Vec<f32> = codes.numbers(&rows).as_chunks().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
        assert_eq!((parts, codes.columns()), (vec![1.0, -2.0, -32768.0, 32767.0], 1));
    }

    #[test]
    fn values_are_code_times_scale_plus_offset_of_their_channel() {
        let layout = Layout::analogue(2, 16).expect("exists");
        let scales = Some(vec![[0.5, 1.0], [2.0, 0.0]]);
        let codes = Codes { layout, stored: Number::I16, number: Number::F64, scales };
        let rows: Vec<u8> = [4_i16, 4, -4, -4].iter().flat_map(|code| code.to_le_bytes()).collect();
        let values: Vec<f64> =
            codes.numbers(&rows).as_chunks().0.iter().map(|eight| f64::from_le_bytes(*eight)).collect();
        assert_eq!(values, [3.0, 8.0, -1.0, -8.0]);
    }
}
