//! Samples as numbers: unpacks the containers that no array has.

use hairspring_ring::layout::{Container, Layout};

/// The 12-bit samples of whole grains, each in two bytes.
pub(super) fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let pairs = bytes.as_chunks::<3>().0.iter();
    let both = pairs.flat_map(|&[a, b, c]| {
        let first = i16::from_le_bytes([a, b]) << 4 >> 4;
        let second = i16::from_le_bytes([b, c]) >> 4;
        [first.to_le_bytes(), second.to_le_bytes()]
    });
    both.flatten().collect()
}

/// A byte for each line of each frame.
pub(super) fn lines(layout: Layout, bytes: &[u8]) -> Vec<u8> {
    let frames = bytes.chunks_exact(layout.grain().bytes as usize);
    frames
        .flat_map(|frame| (0..layout.channels() as usize).map(move |line| frame[line / 8] >> (line % 8) & 1))
        .collect()
}

/// The samples of whole grains as text, each handed to `take` in order.
pub(super) fn texts(layout: Layout, bytes: &[u8], take: &mut dyn FnMut(fmt::Arguments<'_>)) {
    let pairs = |bytes: &[u8], take: &mut dyn FnMut(fmt::Arguments<'_>)| {
        for pair in bytes.as_chunks::<2>().0 {
            take(format_args!("{}", i16::from_le_bytes(*pair)));
        }
    };
    match layout.container() {
        Container::I8 => bytes.iter().for_each(|byte| take(format_args!("{}", byte.cast_signed()))),
        Container::U8 => bytes.iter().for_each(|byte| take(format_args!("{byte}"))),
        Container::I16 => pairs(bytes, take),
        Container::U16 => {
            bytes.as_chunks::<2>().0.iter().for_each(|pair| take(format_args!("{}", u16::from_le_bytes(*pair))));
        }
        Container::I32 => {
            bytes.as_chunks::<4>().0.iter().for_each(|four| take(format_args!("{}", i32::from_le_bytes(*four))));
        }
        Container::F32 => {
            bytes.as_chunks::<4>().0.iter().for_each(|four| take(format_args!("{}", f32::from_le_bytes(*four))));
        }
        Container::Packed12 => pairs(&unpacked(bytes), take),
        Container::Bits => lines(layout, bytes).iter().for_each(|line| take(format_args!("{line}"))),
    }
}

use std::fmt;

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
}
