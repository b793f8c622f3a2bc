//! FLAC (RFC 9639): integers of up to 32 bits without loss, for up to 8 channels and 1,048,575 Hz.
//!
//! **Own encoder.** The maintained encoders in Rust hold 24 bits at most or keep the whole file in memory. This one
//! writes frame by frame with the fixed predictors of the format and partitioned Rice codes; it has no linear
//! prediction, so a file is somewhat larger than the reference encoder's. `frame` encodes, `bits` packs.
//!
//! **A sample is the code that was recorded.** It has 8, 16, 24 or 32 bits in the file: the next size that holds it.
//! Codes without a sign get the next larger one. Nothing here reads or writes files.

use hairspring_ring::layout::Container;
use md5::{Digest as _, Md5};

use super::super::array_facts::is_shifted;
use super::frame::{BLOCK, FrameEncoder};
use hairspring_recording::sigmf::About;

/// The most channels of FLAC.
pub(super) const MOST_CHANNELS: u32 = 8;
/// The highest rate of FLAC in hertz; it has 20 bits.
pub(super) const MOST_RATE: u32 = (1 << 20) - 1;
/// The most frames that a file can state; it has 36 bits.
pub(super) const MOST_FRAMES: u64 = (1 << 36) - 1;

/// The first bytes of a file.
pub(super) const MAGIC: &[u8; 4] = b"fLaC";

/// The kinds of blocks of metadata.
const STREAM_INFO: u8 = 0;
const TAGS: u8 = 4;

/// Bytes of STREAMINFO.
const STREAM_INFO_BYTES: usize = 34;

/// The format of all samples of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// In hertz, from 1 to [`MOST_RATE`].
    pub(super) rate_hz: u32,
    /// From 1 to [`MOST_CHANNELS`].
    pub(super) channels: u32,
    /// Bits of a sample: 8, 16, 24 or 32.
    pub(super) bits: u32,
}

/// The bits that a recording's samples take if each is in this container; `None` for those that are no integers of
/// whole bytes.
pub(super) fn bits_of(container: Container, about: &About) -> Option<u32> {
    match container {
        Container::I8 => Some(8),
        Container::U8 | Container::I16 => Some(16),
        Container::U16 => Some(24),
        Container::I32 if about.layout.resolution_bits() <= 24 && !is_shifted(about) => Some(24),
        Container::I32 => Some(32),
        _ => None,
    }
}

/// Appends the samples of a container as integers. There are none in the containers for which [`bits_of`] yields
/// `None`.
pub(super) fn integers(container: Container, bytes: &[u8], to: &mut Vec<i32>) {
    let pairs = || bytes.as_chunks::<2>().0.iter();
    match container {
        Container::I8 => to.extend(bytes.iter().map(|byte| i32::from(byte.cast_signed()))),
        Container::U8 => to.extend(bytes.iter().map(|byte| i32::from(*byte))),
        Container::I16 => to.extend(pairs().map(|pair| i32::from(i16::from_le_bytes(*pair)))),
        Container::U16 => to.extend(pairs().map(|pair| i32::from(u16::from_le_bytes(*pair)))),
        Container::I32 => to.extend(bytes.as_chunks::<4>().0.iter().map(|four| i32::from_le_bytes(*four))),
        _ => {}
    }
}

/// A sample that has more bits than its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooWide {
    /// The sample.
    pub(super) sample: i32,
    /// The bits of the file.
    pub(super) bits: u32,
}

impl std::fmt::Display for TooWide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sample {} has more than the {} bits that the recording states", self.sample, self.bits)
    }
}

/// Encodes the frames of one file, and computes the MD5 sum of all samples, by which `flac --test` proves it.
#[derive(Debug)]
pub(super) struct Encoder {
    bits: u32,
    frames: FrameEncoder,
    sum: Md5,
}

impl Encoder {
    /// An encoder for a new file.
    pub(super) fn new(form: Form) -> Self {
        Self { bits: form.bits, frames: FrameEncoder::new(form.channels as usize, form.bits), sum: Md5::new() }
    }

    /// Appends the frame of the next samples: whole rows, [`BLOCK`] of them, or fewer at the end.
    ///
    /// # Errors
    /// A sample has more bits than the file.
    pub(super) fn encode(&mut self, rows: &[i32], to: &mut Vec<u8>) -> Result<(), TooWide> {
        let bits = self.bits;
        if let Some(sample) = rows.iter().find(|sample| **sample >> (bits - 1) != **sample >> 31) {
            return Err(TooWide { sample: *sample, bits });
        }
        for sample in rows {
            self.sum.update(&sample.to_le_bytes()[..bits as usize / 8]);
        }
        self.frames.encode(rows, to);
        Ok(())
    }

    /// The sum of all samples.
    pub(super) fn sum(self) -> [u8; 16] {
        self.sum.finalize().into()
    }
}

/// A block of metadata: its kind, and whether it is the last one.
fn block(kind: u8, last: bool, content: &[u8]) -> Vec<u8> {
    let mut block = vec![kind | u8::from(last) << 7];
    block.extend(&(content.len() as u32).to_be_bytes()[1..]);
    block.extend(content);
    block
}

/// The block STREAMINFO. Frames beyond [`MOST_FRAMES`] are unknown.
pub(super) fn stream_info(form: Form, frames: u64, sum: [u8; 16]) -> Vec<u8> {
    let mut info = Vec::with_capacity(STREAM_INFO_BYTES);
    info.extend((BLOCK as u16).to_be_bytes());
    info.extend((BLOCK as u16).to_be_bytes());
    // The sizes of the least and the greatest frame are not known.
    info.extend([0; 6]);
    let frames = if frames <= MOST_FRAMES { frames } else { 0 };
    let (rate_hz, channels, bits) = (u64::from(form.rate_hz), u64::from(form.channels), u64::from(form.bits));
    info.extend((rate_hz << 44 | (channels - 1) << 41 | (bits - 1) << 36 | frames).to_be_bytes());
    info.extend(sum);
    block(STREAM_INFO, false, &info)
}

/// The block of tags: the program that wrote the file, and as comment the facts about the samples.
pub(super) fn tags(comment: &str, last: bool) -> Vec<u8> {
    let mut tags = Vec::new();
    let text = |text: &str, tags: &mut Vec<u8>| {
        tags.extend((text.len() as u32).to_le_bytes());
        tags.extend(text.as_bytes());
    };
    text("hairspring", &mut tags);
    tags.extend(1_u32.to_le_bytes());
    text(&format!("COMMENT={comment}"), &mut tags);
    block(TAGS, last, &tags)
}
