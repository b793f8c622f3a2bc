//! FLAC (RFC 9639): integers of up to 32 bits without loss, for up to 8 channels and 1,048,575 Hz.
//!
//! **Own encoder.** The maintained encoders in Rust hold 24 bits at most or keep the whole file in memory. This one writes frame by frame
//! with the fixed predictors of the format and partitioned Rice codes; it has no linear prediction, so a file is somewhat larger than the
//! reference encoder's. [`frame`] encodes, [`bits`] packs.
//!
//! **A sample is the code that was recorded.** It has 8, 16, 24 or 32 bits in the file: the next size that holds it. Codes without a
//! sign get the next larger one. The facts of [`described`](super::described) are in the tag `COMMENT`, as JSON. The MD5 sum of all samples
//! is in the file, so that `flac --test` proves it.

mod bits;
mod frame;

use std::path::Path;

use md5::{Digest as _, Md5};

use super::npy::ArrayCut;
use super::output::Output;
use super::rows::{Number, Rows};
use super::wav::whole_hertz;
use super::{ExportError, described};
use hairspring_record::channels::Justified;
use hairspring_record::recording::Recording;
use hairspring_record::store::Store;
use hairspring_record::verify::ReadProgress;
use hairspring_ring::units::Frames;

use frame::{BLOCK, FrameEncoder};

/// The most channels of FLAC.
const MOST_CHANNELS: u32 = 8;
/// The highest rate of FLAC, which has 20 bits for it.
const MOST_RATE: u32 = (1 << 20) - 1;
/// Where the MD5 sum lies: after the magic, a header, and 18 bytes of facts.
const SUM_AT: u64 = 4 + 4 + 18;

/// Writes a cut as FLAC. Yields the global index of the first frame and the number of frames.
///
/// # Errors
/// See [`ExportError`]; among them floats, more than 8 channels, and a rate that is unknown, no whole number of hertz or too high.
pub fn flac(
    store: &mut dyn Store,
    recording: &Recording,
    options: ArrayCut,
    path: &Path,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<(Frames, Frames), ExportError> {
    let rows = Rows::of(recording, options.cut, options.gaps)?;
    if rows.channels > MOST_CHANNELS {
        return Err(ExportError::Unsuitable(format!(
            "FLAC holds {MOST_CHANNELS} channels, and this recording has {}: export wav or zarr",
            rows.channels
        )));
    }
    let rate_hz = whole_hertz(recording, "FLAC", MOST_RATE)?;
    let about = recording.about();
    let is_shifted = about.channels.iter().any(|channel| channel.justified == Some(Justified::High));
    let bits: u32 = match rows.number {
        Number::I8 => 8,
        Number::U8 | Number::I16 => 16,
        Number::U16 => 24,
        Number::I32 if about.layout.resolution_bits() <= 24 && !is_shifted => 24,
        Number::I32 => 32,
        Number::F32 => {
            return Err(ExportError::Unsuitable(
                "FLAC holds integers, and these are floats: export wav or zarr".to_owned(),
            ));
        }
    };
    let mut output = Output::create(path)?;
    output.write(b"fLaC")?;
    output.write(&block(0, false, &stream_info(rows.frames.0, rate_hz, rows.channels, bits)))?;
    let comment = described::text(recording, &rows);
    output.write(&block(4, true, &tags(&comment)))?;
    let channels = rows.channels as usize;
    let (mut encoder, mut sum) = (FrameEncoder::new(channels, bits), Md5::new());
    let mut pending: Vec<i32> = Vec::with_capacity(2 * BLOCK * channels);
    let mut encoded = Vec::new();
    let mut encode = |samples: &[i32], output: &mut Output| {
        if let Some(wrong) = samples.iter().find(|sample| **sample >> (bits - 1) != **sample >> 31) {
            return Err(ExportError::Unsuitable(format!(
                "sample {wrong} has more than the {bits} bits that the recording states: export wav or zarr"
            )));
        }
        for sample in samples {
            sum.update(&sample.to_le_bytes()[..bits as usize / 8]);
        }
        encoded.clear();
        encoder.encode(samples, &mut encoded);
        output.write(&encoded)
    };
    rows.read_filled(store, recording, progress, &mut |bytes| {
        integers(rows.number, bytes, &mut pending);
        let whole = pending.len() / (BLOCK * channels) * (BLOCK * channels);
        for samples in pending[..whole].chunks(BLOCK * channels) {
            encode(samples, &mut output)?;
        }
        pending.drain(..whole);
        Ok(())
    })?;
    if !pending.is_empty() {
        encode(&pending, &mut output)?;
    }
    output.write_at(SUM_AT, &sum.finalize())?;
    output.finish()?;
    Ok((rows.first, rows.frames))
}

/// Appends samples as integers.
fn integers(number: Number, bytes: &[u8], to: &mut Vec<i32>) {
    let pairs = || bytes.as_chunks::<2>().0.iter();
    match number {
        Number::I8 => to.extend(bytes.iter().map(|byte| i32::from(byte.cast_signed()))),
        Number::U8 => to.extend(bytes.iter().map(|byte| i32::from(*byte))),
        Number::I16 => to.extend(pairs().map(|pair| i32::from(i16::from_le_bytes(*pair)))),
        Number::U16 => to.extend(pairs().map(|pair| i32::from(u16::from_le_bytes(*pair)))),
        Number::I32 | Number::F32 => to.extend(bytes.as_chunks::<4>().0.iter().map(|four| i32::from_le_bytes(*four))),
    }
}

/// A block of metadata: its type, and whether it is the last one.
fn block(kind: u8, last: bool, content: &[u8]) -> Vec<u8> {
    let mut block = vec![kind | u8::from(last) << 7];
    block.extend(&(content.len() as u32).to_be_bytes()[1..]);
    block.extend(content);
    block
}

/// STREAMINFO, without the MD5 sum.
fn stream_info(frames: u64, rate_hz: u32, channels: u32, bits: u32) -> Vec<u8> {
    let mut info = Vec::with_capacity(34);
    info.extend((BLOCK as u16).to_be_bytes());
    info.extend((BLOCK as u16).to_be_bytes());
    // The sizes of the least and the greatest frame are not known.
    info.extend([0; 6]);
    // A count of frames that does not fit into 36 bits is unknown.
    let frames = if frames < 1 << 36 { frames } else { 0 };
    let packed = u64::from(rate_hz) << 44 | u64::from(channels - 1) << 41 | u64::from(bits - 1) << 36 | frames;
    info.extend(packed.to_be_bytes());
    info.extend([0; 16]);
    info
}

/// The tags: who wrote it, and one comment.
fn tags(comment: &str) -> Vec<u8> {
    let mut tags = Vec::new();
    let text = |text: &str, tags: &mut Vec<u8>| {
        tags.extend((text.len() as u32).to_le_bytes());
        tags.extend(text.as_bytes());
    };
    text("hairspring", &mut tags);
    tags.extend(1_u32.to_le_bytes());
    text(&format!("COMMENT={comment}"), &mut tags);
    tags
}
