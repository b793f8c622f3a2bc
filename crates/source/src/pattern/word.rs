//! Samples in words of 1, 2 or 4 bytes: counting, and reducing words of random bits to a resolution. Loops over whole
//! slices without branches, which the compiler turns into vector instructions.

/// Which values a sample can take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// 1 to the width of the word.
    pub(super) bits: u32,
    /// Sign-extended or zero-extended.
    pub(super) signed: bool,
}

impl Shape {
    /// The code of a value of full scale 2³¹, extended to 32 bits.
    pub(super) fn code_of(self, value: i32) -> u32 {
        let code = value >> (32 - self.bits);
        if self.signed {
            code as u32
        } else {
            // Offset binary: the least value is 0.
            (code as u32).wrapping_add(1 << (self.bits - 1)) & (u32::MAX >> (32 - self.bits))
        }
    }
}

/// Samples that are computed one by one before the vector loop of the counter takes over.
const LANES: usize = 256;

macro_rules! words {
    ($module:ident, $unsigned:ty, $signed:ty, $width:literal) => {
        pub(super) mod $module {
            use super::{LANES, Shape};

            /// Whole frames of (frame + channel), reduced to the resolution.
            pub(crate) fn count(channels: usize, frame: u64, shape: Shape, bytes: &mut [u8]) {
                // The first block, counted one by one. Every further block is the first plus a constant.
                let frames = (LANES / channels).max(1);
                let mut first = [0 as $unsigned; hairspring_ring::layout::MOST_CHANNELS as usize];
                let first = &mut first[..frames * channels];
                for (number, samples) in first.chunks_exact_mut(channels).enumerate() {
                    for (channel, sample) in samples.iter_mut().enumerate() {
                        *sample = frame.wrapping_add((number + channel) as u64) as $unsigned;
                    }
                }
                let mut ahead = 0 as $unsigned;
                for block in bytes.as_chunks_mut::<$width>().0.chunks_mut(first.len()) {
                    if shape.signed {
                        for (sample, first) in block.iter_mut().zip(&*first) {
                            *sample = extended_signed(first.wrapping_add(ahead), shape).to_le_bytes();
                        }
                    } else {
                        for (sample, first) in block.iter_mut().zip(&*first) {
                            *sample = extended_unsigned(first.wrapping_add(ahead), shape).to_le_bytes();
                        }
                    }
                    ahead = ahead.wrapping_add(frames as $unsigned);
                }
            }

            /// Keeps the low bits of each word, and extends them.
            pub(crate) fn reduce(shape: Shape, bytes: &mut [u8]) {
                if shape.bits == <$unsigned>::BITS {
                    return;
                }
                let words = bytes.as_chunks_mut::<$width>().0.iter_mut();
                if shape.signed {
                    words.for_each(|word| {
                        *word = extended_signed(<$unsigned>::from_le_bytes(*word), shape).to_le_bytes();
                    });
                } else {
                    words.for_each(|word| {
                        *word = extended_unsigned(<$unsigned>::from_le_bytes(*word), shape).to_le_bytes();
                    });
                }
            }

            fn extended_signed(word: $unsigned, shape: Shape) -> $unsigned {
                let unused = <$unsigned>::BITS - shape.bits;
                ((word << unused) as $signed >> unused) as $unsigned
            }

            fn extended_unsigned(word: $unsigned, shape: Shape) -> $unsigned {
                word & (<$unsigned>::MAX >> (<$unsigned>::BITS - shape.bits))
            }
        }
    };
}

words!(word8, u8, i8, 1);
words!(word16, u16, i16, 2);
words!(word32, u32, i32, 4);

/// Codes of 4 bytes become numbers in [−1, 1). Exact, because codes have 24 bits at most.
pub(super) fn to_floats(shape: Shape, bytes: &mut [u8]) {
    let scale = 1.0 / (1_u32 << (shape.bits - 1)) as f32;
    for word in bytes.as_chunks_mut::<4>().0 {
        *word = (i32::from_le_bytes(*word) as f32 * scale).to_le_bytes();
    }
}
