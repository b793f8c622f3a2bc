//! WAV: PCM of 8, 16, 24 or 32 bits or 32-bit floats; beyond 4 GiB RF64, which is WAV with sizes of 64 bits (EBU Tech
//! 3306; ITU-R BS.2088 calls the same layout BW64).
//!
//! **A sample is the code that was recorded**, not shifted or scaled. The integers of WAV are signed, except those of 8
//! bits, which begin at −128. Codes without a sign get the next larger integer; codes of 24 bits, which recordings
//! store in 32, get 24. The facts of [`array_facts`](super::array_facts) are the comment (`LIST INFO ICMT`), as JSON: a
//! program that reads volts needs the scales in it.

use std::path::Path;

use super::array_facts::is_shifted;
use super::output::Output;
use super::rows::Rows;
use super::values::Number;
use super::{ArrayCut, ExportError, ExportUnits, ExportedPiece, array_facts};
use hairspring_recording::Recording;
use hairspring_recording::verify::ReadProgress;
use hairspring_store::Store;

/// `WAVE_FORMAT_EXTENSIBLE`, which any number of channels and bits may have.
const EXTENSIBLE: u16 = 0xFFFE;

/// The end of the identifiers of PCM (1) and of floats (3): `KSDATAFORMAT_SUBTYPE_PCM`.
const SUBTYPE: [u8; 14] = [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71];

/// Writes a cut as WAV. Complex samples of other programs are two channels, I and Q.
///
/// # Errors
/// See [`ExportError`]; among them a rate that is unknown or no whole number of hertz, 64-bit floats, and values in
/// units.
pub fn wav(
    store: &mut dyn Store,
    recording: &Recording,
    options: ArrayCut,
    path: &Path,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<ExportedPiece, ExportError> {
    sound_holds_codes("WAV", options.units)?;
    let rows = Rows::of(recording, options, false)?;
    let rate_hz = whole_hertz(recording, "WAV", u32::MAX)?;
    if matches!(rows.number, Number::F64 | Number::U32) {
        return Err(ExportError::Unsuitable(
            "a sample of this recording fits into none of WAV: export npy or zarr".to_owned(),
        ));
    }
    let comment = array_facts::text(recording, &rows);
    let about = recording.about();
    let is_24 = rows.number == Number::I32 && about.layout.resolution_bits() == 24 && !is_shifted(about);
    let (channels, number, frames) = (rows.columns, rows.number, rows.frames.0);
    let head = Head { channels, rate_hz, number, is_24, frames, comment: &comment };
    let mut output = Output::create(path)?;
    output.write(&head.encoded())?;
    let mut wide = Vec::new();
    rows.read_filled(store, recording, progress, &mut |bytes| {
        wide.clear();
        match rows.number {
            Number::I8 => wide.extend(bytes.iter().map(|byte| byte ^ 0x80)),
            Number::U8 => wide.extend(bytes.iter().flat_map(|byte| i16::from(*byte).to_le_bytes())),
            Number::U16 => {
                let pairs = bytes.as_chunks::<2>().0.iter();
                wide.extend(pairs.flat_map(|pair| i32::from(u16::from_le_bytes(*pair)).to_le_bytes()));
            }
            Number::I32 if is_24 => wide.extend(bytes.as_chunks::<4>().0.iter().flat_map(|sample| &sample[..3])),
            _ => return output.write(bytes),
        }
        output.write(&wide)
    })?;
    if head.data_bytes() % 2 == 1 {
        output.write(&[0])?;
    }
    output.finish()?;
    Ok(rows.exported())
}

/// Refuses values in units, because a program that plays sound would misread them.
pub(super) fn sound_holds_codes(format: &str, units: ExportUnits) -> Result<(), ExportError> {
    match units {
        ExportUnits::Codes => Ok(()),
        ExportUnits::Channels => Err(ExportError::Unsuitable(format!(
            "{format} holds codes, and their scales stand in its comment: leave out --scaled, or export npy, csv, zarr or hdf5"
        ))),
    }
}

/// The rate of a recording, for a format that has whole hertz only.
pub(super) fn whole_hertz(recording: &Recording, format: &str, most: u32) -> Result<u32, ExportError> {
    let Some(rate) = recording.about().rate else {
        return Err(ExportError::Unsuitable(format!(
            "the rate of this recording is not known, and {format} needs one: export npy or zarr"
        )));
    };
    let (frames, seconds) = rate.as_fraction();
    let whole = if frames % seconds == 0 { u32::try_from(frames / seconds).ok() } else { None };
    whole.filter(|rate| *rate <= most).ok_or_else(|| {
        ExportError::Unsuitable(format!(
            "{format} holds whole rates of at most {most} Hz, and this recording has {} Hz: export npy or zarr",
            rate.as_hz()
        ))
    })
}

/// The bytes before the samples.
struct Head<'a> {
    channels: u32,
    rate_hz: u32,
    number: Number,
    /// Whether the integers have 24 bits.
    is_24: bool,
    frames: u64,
    comment: &'a str,
}

impl Head<'_> {
    /// Bytes of a sample in the file.
    fn sample_bytes(&self) -> u32 {
        match self.number {
            Number::I8 => 1,
            Number::U8 | Number::I16 => 2,
            Number::I32 if self.is_24 => 3,
            _ => 4,
        }
    }

    fn data_bytes(&self) -> u64 {
        self.frames * u64::from(self.channels * self.sample_bytes())
    }

    fn encoded(&self) -> Vec<u8> {
        let bytes = self.sample_bytes();
        let block = self.channels * bytes;
        let mut format = Vec::new();
        format.extend(EXTENSIBLE.to_le_bytes());
        // A layout has at most 4096 channels, so that a frame has at most 16 KiB.
        format.extend((self.channels as u16).to_le_bytes());
        format.extend(self.rate_hz.to_le_bytes());
        format.extend(self.rate_hz.saturating_mul(block).to_le_bytes());
        format.extend((block as u16).to_le_bytes());
        format.extend((bytes as u16 * 8).to_le_bytes());
        // Bytes that follow; bits that count; no loudspeakers are meant.
        format.extend(22_u16.to_le_bytes());
        format.extend((bytes as u16 * 8).to_le_bytes());
        format.extend(0_u32.to_le_bytes());
        format.extend(if self.number == Number::F32 { 3_u16 } else { 1 }.to_le_bytes());
        format.extend(SUBTYPE);
        let comment = chunk(*b"ICMT", &[self.comment.as_bytes(), b"\0"].concat());
        let mut rest = chunk(*b"fmt ", &format);
        if self.number == Number::F32 {
            rest.extend(chunk(*b"fact", &u32::try_from(self.frames).unwrap_or(u32::MAX).to_le_bytes()));
        }
        rest.extend(chunk(*b"LIST", &[b"INFO", &comment[..]].concat()));
        let data = self.data_bytes();
        let riff = |before: usize| 4 + before as u64 + 8 + data + data % 2;
        match u32::try_from(riff(rest.len())) {
            Ok(size) => {
                [b"RIFF", &size.to_le_bytes()[..], b"WAVE", &rest, b"data", &(data as u32).to_le_bytes()].concat()
            }
            Err(_) => {
                let mut sizes = Vec::new();
                for size in [riff(rest.len() + 36), data, self.frames] {
                    sizes.extend(size.to_le_bytes());
                }
                sizes.extend(0_u32.to_le_bytes());
                let none = u32::MAX.to_le_bytes();
                [b"RF64", &none[..], b"WAVE", &chunk(*b"ds64", &sizes), &rest, b"data", &none].concat()
            }
        }
    }
}

/// A chunk: its name, its length, and an even number of bytes.
fn chunk(name: [u8; 4], content: &[u8]) -> Vec<u8> {
    let mut chunk = name.to_vec();
    chunk.extend((content.len() as u32).to_le_bytes());
    chunk.extend(content);
    chunk.resize(chunk.len().next_multiple_of(2), 0);
    chunk
}

/// The head of a file with `frames` frames of four 32-bit channels.
#[cfg(test)]
pub(super) fn head_of_four(frames: u64) -> Vec<u8> {
    Head { channels: 4, rate_hz: 1_000_000, number: Number::I32, is_24: false, frames, comment: "{}" }.encoded()
}
