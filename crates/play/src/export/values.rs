//! Samples as numbers: unpacks the containers that no array has, and turns codes into values.

use std::borrow::Cow;
use std::fmt;

use hairspring_ring::layout::{Container, Layout};

/// The numbers of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    F32,
    F64,
    /// Two 32-bit floats: the real part and the imaginary part.
    Complex64,
    /// The same of 64-bit floats.
    Complex128,
}

impl Number {
    /// The numbers for the samples of a layout: packed samples become 16-bit ones, digital lines bytes of 0 and 1.
    pub(super) fn of(layout: Layout) -> Self {
        match layout.container() {
            Container::I8 => Self::I8,
            Container::U8 | Container::Bits => Self::U8,
            Container::I16 | Container::Packed12 => Self::I16,
            Container::U16 => Self::U16,
            Container::I32 => Self::I32,
            Container::U32 => Self::U32,
            Container::F32 => Self::F32,
            Container::F64 => Self::F64,
        }
    }

    /// The container that stores such numbers; `None` for complex ones.
    pub(super) fn container(self) -> Option<Container> {
        Some(match self {
            Self::I8 => Container::I8,
            Self::U8 => Container::U8,
            Self::I16 => Container::I16,
            Self::U16 => Container::U16,
            Self::I32 => Container::I32,
            Self::U32 => Container::U32,
            Self::F32 => Container::F32,
            Self::F64 => Container::F64,
            Self::Complex64 | Self::Complex128 => return None,
        })
    }

    /// The complex numbers that hold pairs of these exactly.
    pub(super) fn paired(self) -> Self {
        match self {
            Self::I8 | Self::U8 | Self::I16 | Self::U16 | Self::F32 => Self::Complex64,
            _ => Self::Complex128,
        }
    }

    pub(super) fn bytes(self) -> u64 {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::F64 | Self::Complex64 => 8,
            Self::Complex128 => 16,
        }
    }

    /// A value as such a number; `None` if it is not one.
    pub(super) fn little_endian(self, value: f64) -> Option<Vec<u8>> {
        let (least, most) = match self {
            Self::I8 => (i8::MIN.into(), i8::MAX.into()),
            Self::U8 => (0.0, u8::MAX.into()),
            Self::I16 => (i16::MIN.into(), i16::MAX.into()),
            Self::U16 => (0.0, u16::MAX.into()),
            Self::I32 => (i32::MIN.into(), i32::MAX.into()),
            Self::U32 => (0.0, u32::MAX.into()),
            Self::F32 => return Some((value as f32).to_le_bytes().to_vec()),
            Self::F64 => return Some(value.to_le_bytes().to_vec()),
            Self::Complex64 => return Some([(value as f32).to_le_bytes(), [0; 4]].concat()),
            Self::Complex128 => return Some([value.to_le_bytes(), [0; 8]].concat()),
        };
        let is_one = value.fract() == 0.0 && (least..=most).contains(&value);
        is_one.then(|| (value as i64).to_le_bytes()[..self.bytes() as usize].to_vec())
    }

    /// Hands each of a row of numbers to `take`.
    pub(super) fn each(self, bytes: &[u8], take: &mut dyn FnMut(f64)) {
        match self {
            Self::I8 => bytes.iter().for_each(|byte| take(byte.cast_signed().into())),
            Self::U8 => bytes.iter().for_each(|byte| take((*byte).into())),
            Self::I16 => bytes.as_chunks().0.iter().for_each(|word| take(i16::from_le_bytes(*word).into())),
            Self::U16 => bytes.as_chunks().0.iter().for_each(|word| take(u16::from_le_bytes(*word).into())),
            Self::I32 => bytes.as_chunks().0.iter().for_each(|word| take(i32::from_le_bytes(*word).into())),
            Self::U32 => bytes.as_chunks().0.iter().for_each(|word| take(u32::from_le_bytes(*word).into())),
            Self::F32 | Self::Complex64 => {
                bytes.as_chunks().0.iter().for_each(|word| take(f32::from_le_bytes(*word).into()));
            }
            Self::F64 | Self::Complex128 => {
                bytes.as_chunks().0.iter().for_each(|word| take(f64::from_le_bytes(*word)));
            }
        }
    }

    /// A row of numbers as text, each handed to `take` in order.
    pub(super) fn texts(self, bytes: &[u8], take: &mut dyn FnMut(fmt::Arguments<'_>)) {
        match self {
            // The shortest text that is read as the same number depends on its size.
            Self::F32 => {
                bytes.as_chunks().0.iter().for_each(|word| take(format_args!("{}", f32::from_le_bytes(*word))));
            }
            _ => self.each(bytes, &mut |value| take(format_args!("{value}"))),
        }
    }
}

/// The samples of whole grains in the numbers of their layout.
pub(super) fn plain(layout: Layout, bytes: &[u8]) -> Cow<'_, [u8]> {
    match layout.container() {
        Container::Packed12 => unpacked(bytes).into(),
        Container::Bits => lines(layout, bytes).into(),
        _ => bytes.into(),
    }
}

/// The 12-bit samples of whole grains, each in two bytes.
fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let pairs = bytes.as_chunks::<3>().0.iter();
    let both = pairs.flat_map(|&[a, b, c]| {
        let first = i16::from_le_bytes([a, b]) << 4 >> 4;
        let second = i16::from_le_bytes([b, c]) >> 4;
        [first.to_le_bytes(), second.to_le_bytes()]
    });
    both.flatten().collect()
}

/// A byte for each line of each frame.
fn lines(layout: Layout, bytes: &[u8]) -> Vec<u8> {
    let frames = bytes.chunks_exact(layout.grain().bytes as usize);
    frames
        .flat_map(|frame| (0..layout.channels() as usize).map(move |line| frame[line / 8] >> (line % 8) & 1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_samples_keep_their_sign() {
        let codes: Vec<i16> = [0, 1, -1, 2047, -2048, 5].into();
        let packed: Vec<u8> = codes
            .as_chunks::<2>()
            .0
            .iter()
            .flat_map(|[a, b]| {
                let both = (*a as u32 & 0xFFF) | ((*b as u32 & 0xFFF) << 12);
                [both as u8, (both >> 8) as u8, (both >> 16) as u8]
            })
            .collect();
        let bytes = unpacked(&packed);
        let found: Vec<i16> = bytes.as_chunks::<2>().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect();
        assert_eq!(found, codes);
    }

    #[test]
    fn lines_are_bits_from_the_lowest_on() {
        let layout = Layout::digital(10).expect("exists");
        assert_eq!(lines(layout, &[0b0000_0101, 0b10]), [1, 0, 1, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn numbers_are_written_in_full() {
        let told = |number: Number, bytes: &[u8]| {
            let mut all = Vec::new();
            number.texts(bytes, &mut |text| all.push(text.to_string()));
            all.join(" ")
        };
        assert_eq!(told(Number::U32, &u32::MAX.to_le_bytes()), "4294967295");
        assert_eq!(told(Number::I32, &i32::MIN.to_le_bytes()), "-2147483648");
        assert_eq!(told(Number::F32, &0.1_f32.to_le_bytes()), "0.1");
        assert_eq!(told(Number::F64, &[0.1_f64.to_le_bytes(), 1e-300_f64.to_le_bytes()].concat())[..4], *"0.1 ");
    }
}
