//! The patterns against their definitions, sample by sample, in every container.

use proptest::prelude::*;

use super::*;

const CONTAINERS: [Container; 8] = [
    Container::I8,
    Container::U8,
    Container::I16,
    Container::U16,
    Container::I32,
    Container::F32,
    Container::Packed12,
    Container::Bits,
];

/// The sample of a channel in the frames at hand, as an integer code.
fn code(layout: Layout, bytes: &[u8], frame: usize, channel: usize) -> i64 {
    let channels = layout.channels() as usize;
    let sample = frame * channels + channel;
    let word = |width: usize| {
        let mut word = [0; 4];
        word[..width].copy_from_slice(&bytes[sample * width..][..width]);
        word
    };
    match layout.container() {
        Container::I8 => i64::from(bytes[sample] as i8),
        Container::U8 => i64::from(bytes[sample]),
        Container::I16 => i64::from(i32::from_le_bytes(word(2)) as i16),
        Container::U16 => i64::from(u32::from_le_bytes(word(2))),
        Container::I32 => i64::from(i32::from_le_bytes(word(4))),
        Container::F32 => {
            let scaled = f32::from_le_bytes(word(4)) * (1_u32 << (layout.resolution_bits().min(24) - 1)) as f32;
            assert_eq!(scaled.fract(), 0.0);
            scaled as i64
        }
        Container::Packed12 => {
            let at = sample / 2 * 3;
            let pair = u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], 0]);
            let code = if sample.is_multiple_of(2) { pair & 0xFFF } else { pair >> 12 };
            i64::from((code << 20) as i32 >> 20)
        }
        Container::Bits => {
            let frame_bytes = channels.div_ceil(8);
            i64::from(bytes[frame * frame_bytes + channel / 8] >> (channel % 8) & 1)
        }
        Container::U32 | Container::F64 => unreachable!("only other programs write these"),
    }
}

/// The low bits of a number, extended as the layout extends them.
fn extended(layout: Layout, number: u64) -> i64 {
    let bits =
        if layout.container() == Container::F32 { layout.resolution_bits().min(24) } else { layout.resolution_bits() };
    let low = number & (u64::MAX >> (64 - bits));
    match layout.container() {
        Container::U8 | Container::U16 | Container::Bits => low as i64,
        _ => (low << (64 - bits)) as i64 >> (64 - bits),
    }
}

fn layouts() -> impl Strategy<Value = Layout> {
    (0..CONTAINERS.len(), prop_oneof![1..=20_u32, 250..=260_u32], 1..=32_u32).prop_map(|(container, channels, bits)| {
        let container = CONTAINERS[container];
        Layout::stored_as(channels, (bits - 1) % container.bits() + 1, container).expect("exists")
    })
}

fn patterns() -> impl Strategy<Value = Pattern> {
    (0..5_usize, any::<u64>())
        .prop_map(|(number, seed)| Pattern::ALL[number].with_seed(seed).unwrap_or(Pattern::ALL[number]))
}

fn filled(pattern: Pattern, layout: Layout, first: u64, frames: u64) -> Vec<u8> {
    let mut bytes = vec![0xAA; layout.bytes_of(Frames(frames)).0 as usize];
    pattern.fill(layout, Frames(first), &mut bytes);
    bytes
}

proptest! {
    #[test]
    fn the_counter_counts_in_every_container(layout in layouts(), first in any::<u64>(), frames in 1..300_u64) {
        let (first, frames) = (first / 2 * 2, frames * 2);
        let bytes = filled(Pattern::Counter, layout, first, frames);
        for frame in 0..frames {
            for channel in 0..u64::from(layout.channels()) {
                let number = first.wrapping_add(frame);
                let expected = match layout.container() {
                    Container::Bits => (number >> (channel % 64) & 1) as i64,
                    _ => extended(layout, number.wrapping_add(channel)),
                };
                prop_assert_eq!(code(layout, &bytes, frame as usize, channel as usize), expected, "{}", layout);
            }
        }
    }

    #[test]
    fn every_sample_stays_within_the_resolution(pattern in patterns(), layout in layouts(), first in any::<u64>()) {
        let bytes = filled(pattern, layout, first / 2 * 2, 64);
        for frame in 0..64 {
            for channel in 0..layout.channels() as usize {
                let code = code(layout, &bytes, frame, channel);
                prop_assert_eq!(code, extended(layout, code as u64));
            }
        }
        if layout.container() == Container::Bits && !layout.channels().is_multiple_of(8) {
            let frame_bytes = layout.grain().bytes as usize;
            prop_assert!(bytes.iter().skip(frame_bytes - 1).step_by(frame_bytes).all(|last| last >> (layout.channels() % 8) == 0));
        }
    }

    #[test]
    fn any_piece_is_the_same_as_that_piece_of_the_whole(
        pattern in patterns(), layout in layouts(), first in any::<u64>(), from in 0..200_u64, length in 0..9000_usize,
    ) {
        let grain = layout.grain();
        let first = first / 2 * 2;
        let whole = filled(pattern, layout, first, (from + 9000) * grain.frames);
        let mut piece = vec![0x55; length];
        pattern.fill(layout, Frames(first.wrapping_add(from * grain.frames)), &mut piece);
        let at = (from * grain.bytes) as usize;
        prop_assert_eq!(&piece[..], &whole[at..at + length]);
        prop_assert_eq!(pattern.check(layout, Frames(first.wrapping_add(from * grain.frames)), &piece), None);
    }

    #[test]
    fn one_wrong_bit_is_found_where_it_is(
        pattern in patterns(), layout in layouts(), frame in 0..2000_u64, channel in any::<u32>(),
    ) {
        let first = 1 << 40;
        let mut bytes = filled(pattern, layout, first, 2000);
        let channel = channel % layout.channels();
        let container = layout.container();
        let (grain, channels) = (layout.grain(), u64::from(layout.channels()));
        let sample = frame % grain.frames * channels + u64::from(channel);
        let bit = sample * u64::from(container.bits());
        let offset = (frame / grain.frames * grain.bytes + bit / 8) as usize;
        bytes[offset] ^= 1 << (bit % 8);
        let found = pattern.check(layout, Frames(first), &bytes);
        prop_assert_eq!(found, Some(Mismatch { frame: Frames(first + frame), channel, offset_bytes: offset }));
    }

    #[test]
    fn names_read_back(pattern in patterns()) {
        prop_assert_eq!(pattern.to_string().parse::<Pattern>(), Ok(pattern));
    }
}

#[test]
fn noise_at_another_place_or_with_another_seed_is_other_noise() {
    let layout = Layout::analogue(4, 14).expect("exists");
    let here = filled(Pattern::Noise { seed: 1 }, layout, 1000, 512);
    for (seed, first) in [(1, 1001), (1, 1000 + (1 << 20)), (1, 1000 + (1 << 61)), (2, 1000), (0, 1000)] {
        let there = filled(Pattern::Noise { seed }, layout, first, 512);
        let same = here.as_chunks::<2>().0.iter().zip(there.as_chunks::<2>().0).filter(|(a, b)| a == b).count();
        // 2048 samples of 14 bits: one in eight such pairs has a sample in common, by chance.
        assert!(same < 5, "{same} samples are the same with seed {seed} at {first}");
    }
}

#[test]
fn the_sine_has_full_scale_and_a_thousand_frames() {
    let layout = Layout::analogue(2, 14).expect("exists");
    let bytes = filled(Pattern::Sine, layout, 0, 1000);
    let codes = (0..1000).map(|frame| code(layout, &bytes, frame, 0)).collect::<Vec<_>>();
    assert_eq!((codes.iter().max(), codes.iter().min()), (Some(&8191), Some(&-8192)));
    assert_eq!(codes.windows(2).filter(|pair| pair[0] < 0 && pair[1] >= 0).count(), 0, "it begins at 0 and ends below");
    assert!(codes[250] > 8180 && codes[750] < -8180);
    let unsigned = Layout::stored_as(2, 14, Container::U16).expect("exists");
    let bytes = filled(Pattern::Sine, unsigned, 0, 1000);
    assert!((0..1000).all(|frame| code(unsigned, &bytes, frame, 0) == codes[frame] + 8192));
}

#[test]
fn unknown_data_say_what_there_is() {
    for wrong in ["", "Counter", "noise:", "noise:x", "sine:3", "counter:1"] {
        let refused = wrong.parse::<Pattern>().expect_err(wrong).to_string();
        assert!(refused.contains("choose counter"), "{refused}");
    }
}
