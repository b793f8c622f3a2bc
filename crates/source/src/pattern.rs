//! [`Pattern`]: test data that depend only on their position, so that a program can verify any piece of a recording
//! without the rest, also after a gap.
//!
//! The **code** of a sample is an integer of as many bits as the layout's resolution. It is stored sign-extended in a
//! signed container and zero-extended in an unsigned one; packed samples are the codes of the same stream in two bytes
//! each, packed; in `f32` the code, of 24 bits at most, is divided by 2^(bits − 1), so that values lie in [−1, 1).
//!
//! | pattern | code of frame *f*, channel *c* | misplaced data are found, unless their offset is |
//! |---|---|---|
//! | `zero` | 0 | anything: only data other than 0 are found |
//! | `counter` | (*f* + *c*) mod 2^bits; digital: bit *c* mod 64 of *f* | a multiple of 2^bits (2^lines) frames |
//! | `prbs` | the bits of the sequence 2³¹−1, as many as the container has | a multiple of 2³¹−1 bytes (2 GiB) |
//! | `sine` | a sine of 1000 frames, each channel ⅛ of a turn ahead | about a period (a part, for swapped channels) |
//! | `noise` | the bits of splitmix64 over the position | nothing: all positions differ |
//!
//! So `noise` proves a recording; it also does not compress. A person can read `counter`.
//!
//! All arithmetic is in integers, or in floating point that IEEE 754 determines to the last bit: the data are the same
//! on every machine.

mod prbs;
mod sine;
mod word;

use std::fmt;
use std::str::FromStr;

use hairspring_ring::layout::{Container, Layout};
use hairspring_ring::units::Frames;

use word::{Shape, word8, word16, word32};

/// The data of a virtual card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// 0.
    Zero,
    /// The frame number plus the channel number.
    Counter,
    /// The pseudo-random bit sequence of x³¹ + x²⁸ + 1 (the polynomial of ITU-T O.150, not inverted).
    Prbs {
        /// The beginning in the sequence: the bit seed × 0x9E3779B97F4A7C15 mod (2³¹−1), counted from 31 ones.
        seed: u64,
    },
    /// A sine of full scale.
    Sine,
    /// White noise of full scale: splitmix64 (Steele, Lea and Flood 2014) of the number of each 8 bytes.
    Noise {
        /// Selects the noise. Two seeds give different data at every position.
        seed: u64,
    },
}

/// The first position at which data differ from the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The global index of the frame.
    pub frame: Frames,
    /// The channel, from 0.
    pub channel: u32,
    /// The offset of the first differing byte in the checked bytes.
    pub offset_bytes: usize,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame {}, channel {} differs from the produced data", self.frame.0, self.channel)
    }
}

/// Why a text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(String);

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown data '{}': choose counter, prbs, sine, noise or zero; prbs and noise take a seed: noise:7",
            self.0
        )
    }
}

impl std::error::Error for PatternError {}

/// The bytes computed at a time: they stay in the second-level cache while they pass through the stages.
const PIECE_BYTES: usize = 64 << 10;

/// Most bytes of one grain: 4096 channels of 4 bytes.
const MOST_GRAIN_BYTES: usize = 16 << 10;

impl Pattern {
    /// Every pattern; those with a seed have seed 0.
    pub const ALL: [Self; 5] = [Self::Counter, Self::Prbs { seed: 0 }, Self::Sine, Self::Noise { seed: 0 }, Self::Zero];

    /// The name of the pattern, without its seed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Counter => "counter",
            Self::Prbs { .. } => "prbs",
            Self::Sine => "sine",
            Self::Noise { .. } => "noise",
        }
    }

    /// The seed; 0 if the pattern has none.
    pub fn seed(self) -> u64 {
        match self {
            Self::Prbs { seed } | Self::Noise { seed } => seed,
            _ => 0,
        }
    }

    /// The same pattern with another seed; `None` if it has none.
    pub fn with_seed(self, seed: u64) -> Option<Self> {
        match self {
            Self::Prbs { .. } => Some(Self::Prbs { seed }),
            Self::Noise { .. } => Some(Self::Noise { seed }),
            _ => None,
        }
    }

    /// Fills bytes with the data from a frame on. An incomplete last grain gets its beginning. Allocates nothing.
    ///
    /// # Panics
    /// If `first` lies within a grain.
    pub fn fill(self, layout: Layout, first: Frames, bytes: &mut [u8]) {
        let mut frame = aligned(layout, first);
        let grain = layout.grain();
        let grain_bytes = grain.bytes as usize;
        let (whole, rest) = bytes.split_at_mut(bytes.len() / grain_bytes * grain_bytes);
        for piece in whole.chunks_mut((PIECE_BYTES / grain_bytes).max(1) * grain_bytes) {
            self.fill_piece(layout, frame, piece);
            frame = frame.wrapping_add((piece.len() / grain_bytes) as u64 * grain.frames);
        }
        if !rest.is_empty() {
            let mut last = [0; MOST_GRAIN_BYTES];
            self.fill_piece(layout, frame, &mut last[..grain_bytes]);
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }

    /// Finds the first position at which bytes differ from the data from a frame on; `None` if all agree. The bytes
    /// need not be whole grains.
    ///
    /// # Panics
    /// If `first` lies within a grain.
    pub fn check(self, layout: Layout, first: Frames, bytes: &[u8]) -> Option<Mismatch> {
        let mut frame = aligned(layout, first);
        let grain = layout.grain();
        let grain_bytes = grain.bytes as usize;
        let piece_bytes = (PIECE_BYTES / grain_bytes).max(1) * grain_bytes;
        let mut expected = vec![0; piece_bytes.min(bytes.len())];
        for (number, piece) in bytes.chunks(piece_bytes).enumerate() {
            let expected = &mut expected[..piece.len()];
            self.fill(layout, Frames(frame), expected);
            if expected != piece {
                let offset = expected.iter().zip(piece).take_while(|(expected, found)| expected == found).count();
                let bit = u64::from((expected[offset] ^ piece[offset]).trailing_zeros());
                let (grains, within) = ((offset / grain_bytes) as u64, (offset % grain_bytes) as u64);
                let sample = (within * 8 + bit) / u64::from(layout.container().bits());
                let channels = u64::from(layout.channels());
                // Padding after the last line of a digital frame counts as that line.
                let sample = sample.min(grain.frames * channels - 1);
                return Some(Mismatch {
                    frame: Frames(frame.wrapping_add(grains * grain.frames + sample / channels)),
                    channel: (sample % channels) as u32,
                    offset_bytes: number * piece_bytes + offset,
                });
            }
            frame = frame.wrapping_add((piece.len() / grain_bytes) as u64 * grain.frames);
        }
        None
    }

    /// Fills whole grains.
    fn fill_piece(self, layout: Layout, frame: u64, bytes: &mut [u8]) {
        let channels = layout.channels() as usize;
        let bits = layout.resolution_bits();
        if self == Self::Zero {
            return bytes.fill(0);
        }
        match layout.container() {
            Container::I8 => self.fill_words(channels, Shape { bits, signed: true }, 1, frame, bytes),
            Container::U8 => self.fill_words(channels, Shape { bits, signed: false }, 1, frame, bytes),
            Container::I16 => self.fill_words(channels, Shape { bits, signed: true }, 2, frame, bytes),
            Container::U16 => self.fill_words(channels, Shape { bits, signed: false }, 2, frame, bytes),
            Container::I32 => self.fill_words(channels, Shape { bits, signed: true }, 4, frame, bytes),
            Container::U32 => self.fill_words(channels, Shape { bits, signed: false }, 4, frame, bytes),
            // No source makes them.
            Container::F64 => bytes.fill(0),
            Container::F32 => {
                let shape = Shape { bits: bits.min(24), signed: true };
                self.fill_words(channels, shape, 4, frame, bytes);
                word::to_floats(shape, bytes);
            }
            Container::Packed12 => self.fill_packed(channels, bits, frame, bytes),
            Container::Bits => self.fill_lines(channels, frame, bytes),
        }
    }

    /// Samples that are words of 1, 2 or 4 bytes.
    fn fill_words(self, channels: usize, shape: Shape, width: usize, frame: u64, bytes: &mut [u8]) {
        let position = position(frame, channels * width);
        let (count, reduce) = match width {
            1 => (word8::count as fn(_, _, _, &mut [u8]), word8::reduce as fn(_, &mut [u8])),
            2 => (word16::count as fn(_, _, _, &mut [u8]), word16::reduce as fn(_, &mut [u8])),
            _ => (word32::count as fn(_, _, _, &mut [u8]), word32::reduce as fn(_, &mut [u8])),
        };
        match self {
            Self::Zero => bytes.fill(0),
            Self::Counter => count(channels, frame, shape, bytes),
            Self::Sine => sine::fill(channels, frame, shape, width, bytes),
            Self::Prbs { seed } => {
                prbs::fill(seed, position, bytes);
                reduce(shape, bytes);
            }
            Self::Noise { seed } => {
                noise(seed, position, bytes);
                reduce(shape, bytes);
            }
        }
    }

    /// Packs the codes that two bytes would hold.
    fn fill_packed(self, channels: usize, bits: u32, mut frame: u64, bytes: &mut [u8]) {
        let mut codes = [0; MOST_GRAIN_BYTES];
        // Use an even number of frames: that makes whole grains with any number of channels.
        let frames = (codes.len() / (channels * 2)).max(2) / 2 * 2;
        for piece in bytes.chunks_mut(frames * channels * 3 / 2) {
            let codes = &mut codes[..piece.len() / 3 * 4];
            self.fill_words(channels, Shape { bits, signed: true }, 2, frame, codes);
            for (packed, pair) in piece.as_chunks_mut::<3>().0.iter_mut().zip(codes.as_chunks::<4>().0) {
                let pair = u32::from_le_bytes(*pair);
                let both = (pair & 0xFFF) | (pair >> 16 << 12);
                let [low, middle, high, _] = both.to_le_bytes();
                *packed = [low, middle, high];
            }
            frame = frame.wrapping_add(frames as u64);
        }
    }

    /// Digital lines, a bit each.
    fn fill_lines(self, lines: usize, frame: u64, bytes: &mut [u8]) {
        let frame_bytes = lines.div_ceil(8);
        let position = position(frame, frame_bytes);
        let frames = (0_u64..).map(|number| frame.wrapping_add(number));
        match self {
            Self::Zero => bytes.fill(0),
            Self::Prbs { seed } => prbs::fill(seed, position, bytes),
            Self::Noise { seed } => noise(seed, position, bytes),
            // Lines that fill a word equal a counting word: much faster.
            Self::Counter if frame_bytes == 1 => word8::count(1, frame, Shape { bits: 8, signed: false }, bytes),
            Self::Counter if frame_bytes == 2 => word16::count(1, frame, Shape { bits: 16, signed: false }, bytes),
            Self::Counter if frame_bytes == 4 => word32::count(1, frame, Shape { bits: 32, signed: false }, bytes),
            Self::Counter => {
                for (frame, bytes) in frames.zip(bytes.chunks_exact_mut(frame_bytes)) {
                    for part in bytes.chunks_mut(8) {
                        part.copy_from_slice(&frame.to_le_bytes()[..part.len()]);
                    }
                }
            }
            Self::Sine => {
                bytes.fill(0);
                for (frame, bytes) in frames.zip(bytes.chunks_exact_mut(frame_bytes)) {
                    for line in 0..lines {
                        bytes[line / 8] |= u8::from(sine::value(frame, line as u64) >= 0) << (line % 8);
                    }
                }
            }
        }
        if !lines.is_multiple_of(8) {
            let mask = 0xFF >> (8 - lines % 8);
            bytes.iter_mut().skip(frame_bytes - 1).step_by(frame_bytes).for_each(|last| *last &= mask);
        }
    }
}

/// The number of a frame that begins a grain.
#[track_caller]
fn aligned(layout: Layout, first: Frames) -> u64 {
    assert!(first.0.is_multiple_of(layout.grain().frames), "frame {} lies within a grain", first.0);
    first.0
}

/// Where a frame begins in the stream, in bytes, modulo 2⁶⁷: positions beyond 2⁶⁴ stay unique.
fn position(frame: u64, frame_bytes: usize) -> u128 {
    (u128::from(frame) * frame_bytes as u128) % (1 << 67)
}

/// The bytes of splitmix64 from a position on.
fn noise(seed: u64, position: u128, bytes: &mut [u8]) {
    let word = |index: u64| splitmix64(seed ^ SALT, index).to_le_bytes();
    let mut index = (position / 8) as u64;
    let mut bytes = bytes;
    let skipped = (position % 8) as usize;
    if skipped > 0 {
        let head = (8 - skipped).min(bytes.len());
        let (first, rest) = bytes.split_at_mut(head);
        first.copy_from_slice(&word(index)[skipped..skipped + head]);
        (bytes, index) = (rest, index.wrapping_add(1));
    }
    let (words, tail) = bytes.as_chunks_mut::<8>();
    for (number, bytes) in words.iter_mut().enumerate() {
        *bytes = word(index.wrapping_add(number as u64));
    }
    tail.copy_from_slice(&word(index.wrapping_add(words.len() as u64))[..tail.len()]);
}

/// Keeps seed 0 from beginning with the number 0.
const SALT: u64 = 0x6861_6972_7370_7269;

/// The output number `index` of splitmix64 with this seed; random access, because its state is a plain counter.
pub(crate) fn splitmix64(seed: u64, index: u64) -> u64 {
    let mut z = scrambled(seed).wrapping_add(index.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Seeds that follow one another must not begin sequences that overlap: the states of two seeds differ in all bits.
fn scrambled(seed: u64) -> u64 {
    let z = (seed ^ (seed >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    (z ^ (z >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53)
}

impl fmt::Display for Pattern {
    /// As parsed: `counter`, `noise`, `noise:7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.seed() == 0 { f.pad(self.name()) } else { f.pad(&format!("{}:{}", self.name(), self.seed())) }
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let error = || PatternError(text.to_owned());
        let (name, seed) = text.split_once(':').map_or((text, None), |(name, seed)| (name, Some(seed)));
        let pattern = Self::ALL.into_iter().find(|pattern| pattern.name() == name).ok_or_else(error)?;
        let Some(seed) = seed else { return Ok(pattern) };
        pattern.with_seed(seed.parse().map_err(|_| error())?).ok_or_else(error)
    }
}

#[cfg(test)]
mod tests;
