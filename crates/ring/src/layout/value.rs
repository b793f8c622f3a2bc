//! The value of one sample in the bytes of a stream.

use super::{Container, Layout};

impl Layout {
    /// The value of a channel's sample in a frame of `bytes`, as it is stored: counts, or 0 and 1 of a digital line.
    ///
    /// # Panics
    /// If the bytes do not hold the whole frame, or the channel does not exist.
    pub fn value(self, bytes: &[u8], frame: usize, channel: usize) -> f64 {
        assert!(channel < self.channels() as usize, "channel {channel} of {self}");
        let sample = frame * self.channels() as usize + channel;
        match self.container() {
            Container::I8 => i8::from_le_bytes(word(bytes, sample)).into(),
            Container::U8 => u8::from_le_bytes(word(bytes, sample)).into(),
            Container::I16 => i16::from_le_bytes(word(bytes, sample)).into(),
            Container::U16 => u16::from_le_bytes(word(bytes, sample)).into(),
            Container::I32 => i32::from_le_bytes(word(bytes, sample)).into(),
            Container::U32 => u32::from_le_bytes(word(bytes, sample)).into(),
            Container::F64 => f64::from_le_bytes(word(bytes, sample)),
            Container::F32 => f32::from_le_bytes(word(bytes, sample)).into(),
            Container::Packed12 => packed(bytes, sample).into(),
            Container::Bits => line(bytes, (self.channels() as usize).div_ceil(8), frame, channel).into(),
        }
    }
}

/// The bytes of one sample in a row.
#[inline]
pub fn word<const SIZE: usize>(bytes: &[u8], sample: usize) -> [u8; SIZE] {
    let mut word = [0; SIZE];
    word.copy_from_slice(&bytes[sample * SIZE..][..SIZE]);
    word
}

/// One 12-bit sample in a row that packs two into three bytes.
#[inline]
pub fn packed(bytes: &[u8], sample: usize) -> i32 {
    let pair = &bytes[sample / 2 * 3..][..3];
    let bits = i32::from_le_bytes([pair[0], pair[1], pair[2], 0]) >> (sample % 2 * 12);
    bits << 20 >> 20
}

/// One digital line in a frame of `stride` bytes.
#[inline]
pub fn line(bytes: &[u8], stride: usize, frame: usize, channel: usize) -> i32 {
    (bytes[frame * stride + channel / 8] >> (channel % 8) & 1).into()
}
