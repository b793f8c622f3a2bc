//! [`Layout`]: how samples are stored in memory and in files, and the arithmetic rate × channels × bytes in both
//! directions.

pub mod value;

use std::fmt;

use crate::units::{ByteRate, Bytes, Frames, SampleRate, Samples};

/// How one sample is stored. All are little-endian; values of fewer bits than their container are sign-extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Container {
    /// Signed, 1 byte.
    I8,
    /// Unsigned, 1 byte.
    U8,
    /// Signed, 2 bytes.
    I16,
    /// Unsigned, 2 bytes.
    U16,
    /// Signed, 4 bytes.
    I32,
    /// Unsigned, 4 bytes; only in recordings of other programs.
    U32,
    /// IEEE 754, 4 bytes.
    F32,
    /// IEEE 754, 8 bytes; only in recordings of other programs.
    F64,
    /// Signed 12-bit values, two in three bytes: the first in bits 0–11, the second in bits 12–23.
    Packed12,
    /// One bit for each digital channel: channel 0 is bit 0 of the first byte. A frame is whole bytes.
    Bits,
}

/// Channels, resolution and container of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    channels: u32,
    resolution_bits: u32,
    container: Container,
}

/// The smallest piece of a stream that is whole frames and whole bytes: one frame, or two for packed 12-bit samples of
/// an odd number of channels. Losses are counted in whole grains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grain {
    /// Frames in it: 1 or 2.
    pub frames: u64,
    /// Size of the grain in bytes.
    pub bytes: u64,
}

/// Why a layout is invalid, and the correct form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutError(String);

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LayoutError {}

/// Most channels of one stream.
pub const MOST_CHANNELS: u32 = 4096;

impl Layout {
    /// An analogue stream in its usual container: 1 byte up to 8 bits, 2 up to 16, 4 up to 32.
    ///
    /// # Errors
    /// No channels, more than [`MOST_CHANNELS`], or a resolution outside 1–32 bits.
    pub fn analogue(channels: u32, resolution_bits: u32) -> Result<Self, LayoutError> {
        let container = match resolution_bits {
            1..=8 => Container::I8,
            9..=16 => Container::I16,
            17..=32 => Container::I32,
            _ => return Err(LayoutError(format!("{resolution_bits} bits is not a valid resolution: choose 1 to 32"))),
        };
        Self::stored_as(channels, resolution_bits, container)
    }

    /// Digital lines, one bit each.
    ///
    /// # Errors
    /// No channels, or more than [`MOST_CHANNELS`].
    pub fn digital(channels: u32) -> Result<Self, LayoutError> {
        Self::stored_as(channels, 1, Container::Bits)
    }

    /// A stream in a given container.
    ///
    /// # Errors
    /// As above; a resolution that does not fit into the container.
    pub fn stored_as(channels: u32, resolution_bits: u32, container: Container) -> Result<Self, LayoutError> {
        if channels == 0 || channels > MOST_CHANNELS {
            return Err(LayoutError(format!("{channels} channels: choose 1 to {MOST_CHANNELS}")));
        }
        let bits = container.bits();
        if resolution_bits == 0 || resolution_bits > bits {
            return Err(LayoutError(format!("{resolution_bits} bits do not fit into {container}: choose 1 to {bits}")));
        }
        Ok(Self { channels, resolution_bits, container })
    }

    /// Number of channels.
    pub fn channels(self) -> u32 {
        self.channels
    }

    /// Bits of a sample that carry information.
    pub fn resolution_bits(self) -> u32 {
        self.resolution_bits
    }

    /// How a sample is stored.
    pub fn container(self) -> Container {
        self.container
    }

    /// The smallest piece that is whole frames and whole bytes.
    pub fn grain(self) -> Grain {
        let channels = u64::from(self.channels);
        match self.container {
            Container::Bits => Grain { frames: 1, bytes: channels.div_ceil(8) },
            Container::Packed12 if channels % 2 == 1 => Grain { frames: 2, bytes: channels * 3 },
            container => Grain { frames: 1, bytes: channels * u64::from(container.bits()) / 8 },
        }
    }

    /// The rate in bytes per second at this rate of frames.
    pub fn byte_rate(self, rate: SampleRate) -> ByteRate {
        let grain = self.grain();
        ByteRate::new(rate.as_hz() * grain.bytes as f64 / grain.frames as f64).unwrap_or_else(|| unreachable!("finite"))
    }

    /// The highest whole number of frames per second that `bytes` per second carry; `None` below one.
    pub fn sample_rate(self, rate: ByteRate) -> Option<SampleRate> {
        let grain = self.grain();
        SampleRate::hz((rate.bytes_per_s() * grain.frames as f64 / grain.bytes as f64) as u64)
    }

    /// The size of `frames` in bytes; `frames` must be whole grains.
    pub fn bytes_of(self, frames: Frames) -> Bytes {
        let grain = self.grain();
        Bytes((u128::from(frames.0) * u128::from(grain.bytes) / u128::from(grain.frames)) as u64)
    }

    /// The number of complete frames in `bytes`.
    pub fn frames_in(self, bytes: Bytes) -> Frames {
        let grain = self.grain();
        Frames((u128::from(bytes.0 / grain.bytes) * u128::from(grain.frames)) as u64)
    }

    /// The number of samples in `frames`.
    pub fn samples_of(self, frames: Frames) -> Samples {
        Samples(frames.0 * u64::from(self.channels))
    }
}

impl Container {
    /// Every container.
    pub const ALL: [Self; 10] = [
        Self::I8,
        Self::U8,
        Self::I16,
        Self::U16,
        Self::I32,
        Self::U32,
        Self::F32,
        Self::F64,
        Self::Packed12,
        Self::Bits,
    ];

    /// Bits that one sample takes.
    pub fn bits(self) -> u32 {
        match self {
            Self::I8 | Self::U8 => 8,
            Self::I16 | Self::U16 => 16,
            Self::I32 | Self::U32 | Self::F32 => 32,
            Self::F64 => 64,
            Self::Packed12 => 12,
            Self::Bits => 1,
        }
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::I16 => "i16",
            Self::U16 => "u16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Packed12 => "packed12",
            Self::Bits => "bits",
        })
    }
}

impl fmt::Display for Layout {
    /// As `4 channels × 14 bits in i16`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.channels == 1 { "" } else { "s" };
        write!(f, "{} channel{plural} × {} bit in {}", self.channels, self.resolution_bits, self.container)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first table of AN006 (Spectrum, V1.3), in bytes per second and in its MB, which are MiB.
    #[test]
    fn rates_are_those_of_an006() {
        let analogue = |channels, bits| Layout::analogue(channels, bits).expect("exists");
        let digital = |channels| Layout::digital(channels).expect("exists");
        for (layout, megasamples, bytes_per_s, mib_per_s) in [
            (analogue(1, 8), 100, 100e6, 95.3),
            (analogue(4, 8), 100, 400e6, 381.5),
            (analogue(1, 12), 100, 200e6, 190.7),
            (analogue(32, 16), 3, 192e6, 183.1),
            (analogue(4, 14), 40, 320e6, 305.2),
            (digital(16), 100, 200e6, 190.7),
            (digital(64), 10, 80e6, 76.3),
        ] {
            let rate = SampleRate::hz(megasamples * 1_000_000).expect("possible");
            let bytes = layout.byte_rate(rate).bytes_per_s();
            assert_eq!(bytes, bytes_per_s, "{layout}");
            // Its digits are cut off as often as rounded.
            assert!((bytes / 1_048_576.0 - mib_per_s).abs() < 0.07, "{layout}");
            assert_eq!(layout.sample_rate(layout.byte_rate(rate)), Some(rate));
        }
    }

    #[test]
    fn packed_samples_of_an_odd_number_of_channels_come_in_pairs_of_frames() {
        let packed = |channels| Layout::stored_as(channels, 12, Container::Packed12).expect("exists");
        assert_eq!(packed(2).grain(), Grain { frames: 1, bytes: 3 });
        assert_eq!(packed(3).grain(), Grain { frames: 2, bytes: 9 });
        assert_eq!(packed(1).bytes_of(Frames(10)), Bytes(15));
        assert_eq!(packed(1).frames_in(Bytes(16)), Frames(10));
        assert_eq!(packed(1).byte_rate(SampleRate::hz(1_000_000).expect("possible")).bytes_per_s(), 1.5e6);
        assert_eq!(Layout::digital(3).expect("exists").grain(), Grain { frames: 1, bytes: 1 });
    }

    #[test]
    fn impossible_layouts_are_refused() {
        assert!(Layout::analogue(0, 8).is_err());
        assert!(Layout::analogue(4097, 8).is_err());
        assert!(Layout::analogue(1, 0).is_err());
        assert!(Layout::analogue(1, 33).is_err());
        assert!(Layout::stored_as(1, 14, Container::Packed12).is_err());
    }
}
