//! Any samples come back from FLAC, at any place; altered files never give others; what FLAC cannot hold is refused.

use super::*;
use crate::channels::{ChannelDescription, Justified};
use crate::recording::testing::Spec;
use hairspring_ring::layout::Layout;
use hairspring_ring::units::SampleRate;
use proptest::prelude::*;

/// The description of a recording with this layout.
fn described(layout: Layout) -> About {
    let grain = layout.grain().bytes;
    Spec { layout, block: grain * 64, stored: grain, ..Spec::plain() }.about(0)
}

/// A writer for so many bytes of data.
fn writer(about: &About, bytes: usize, alignment: u64) -> Result<FlacWriter, String> {
    FlacWriter::of(about, bytes as u64, alignment, Vec::new())
}

fn layout(channels: u32, container: Container) -> Layout {
    Layout::stored_as(channels, container.bits(), container).expect("exists")
}

/// The file that data become, written in pieces of so many bytes.
fn file_of(about: &About, bytes: &[u8], piece: usize, alignment: u64) -> Vec<u8> {
    let mut writer = writer(about, bytes.len(), alignment).expect("FLAC holds it");
    let mut frames = Vec::new();
    for piece in bytes.chunks(piece) {
        frames.extend(writer.write(piece).expect("encoded"));
    }
    let head_bytes = writer.head_bytes();
    let (last, head) = writer.finish().expect("encoded");
    assert_eq!((head.len() as u64, head_bytes % alignment), (head_bytes, 0));
    [head, frames, last].concat()
}

fn table_of(file: &[u8]) -> io::Result<FrameTable> {
    FrameTable::read_flac(file.len() as u64, |at, length| {
        let piece = file.get(at as usize..(at + length) as usize);
        piece.map(<[u8]>::to_vec).ok_or_else(|| ErrorKind::UnexpectedEof.into())
    })
}

/// What the frame with the byte at an offset holds from there on.
fn read_from(file: &[u8], table: &FrameTable, offset: u64) -> io::Result<Vec<u8>> {
    let (_, frame) = table.frame_at(offset).expect("within");
    let (at, mut bytes) = (frame.at as usize, Vec::new());
    table.coding().decompress(&frame, &file[at..at + frame.packed_length], &mut bytes)?;
    assert_eq!(bytes.len(), frame.length);
    Ok(bytes.split_off((offset - frame.begin) as usize))
}

fn whole(file: &[u8]) -> io::Result<Vec<u8>> {
    let table = table_of(file)?;
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < table.size() {
        bytes.extend(read_from(file, &table, bytes.len() as u64)?);
    }
    Ok(bytes)
}

/// Samples of one kind for each block: still, smooth, at random within some bits, at both ends of the range, with low bits of zero.
fn samples(container: Container, kinds: &[u8], frames: usize, channels: usize) -> Vec<u8> {
    let width = container.bits();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::new();
    for frame in 0..frames {
        let kind = kinds[frame / BLOCK % kinds.len()];
        for channel in 0..channels {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let random = (state >> 32) as u32;
            let value = match kind % 6 {
                0 => 77,
                1 => {
                    ((frame + 5 * channel) as f64 / 90.0).sin().mul_add(f64::from(1 << (width - 2)), 3.0) as i64 as u32
                }
                2 => random >> (kind % 31),
                3 if random.is_multiple_of(2) => 1 << (width - 1),
                3 => (1 << (width - 1)) - 1,
                4 => random << (kind % 8),
                _ => (frame * frame / 7) as u32,
            };
            bytes.extend(&value.to_le_bytes()[..width as usize / 8]);
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn samples_of_every_layout_come_back_from_any_place(
        container in prop::sample::select(&CONTAINERS[..]),
        channels in 1..=8_u32,
        kinds in prop::collection::vec(any::<u8>(), 1..5),
        frames in prop_oneof![0..40_usize, 4090..4100_usize, 1..20_000_usize],
        piece in 1000..200_000_usize,
        place in any::<prop::sample::Index>(),
    ) {
        let bytes = samples(container, &kinds, frames, channels as usize);
        let about = described(layout(channels, container));
        let file = file_of(&about, &bytes, piece, 512);
        prop_assert!(whole(&file).expect("sound") == bytes);
        if !bytes.is_empty() {
            let at = place.index(bytes.len());
            let found = read_from(&file, &table_of(&file).expect("sound"), at as u64).expect("sound");
            prop_assert!(bytes[at..].starts_with(&found));
        }
    }
}

#[test]
fn there_is_a_seek_point_for_each_mib_and_a_table_finds_all_of_them() {
    for (channels, container, step) in [(2, Container::I16, 1 << 20), (3, Container::I16, 42 * 4096 * 6)] {
        let frames = 700_000;
        let bytes = samples(container, &[1, 2, 40], frames, channels as usize);
        let about = described(layout(channels, container));
        let file = file_of(&about, &bytes, 1 << 20, 4096);
        let table = table_of(&file).expect("sound");
        let begins: Vec<u64> = (0..bytes.len() as u64).step_by(step).collect();
        let found: Vec<u64> = begins.iter().map(|at| table.frame_at(*at).expect("within").1.begin).collect();
        assert_eq!((found, table.frame_at(bytes.len() as u64).is_none()), (begins, true));
        assert!(whole(&file).expect("sound") == bytes);
    }
}

#[test]
fn no_file_that_is_cut_or_altered_gives_other_bytes() {
    let bytes = samples(Container::I16, &[1, 2], 5000, 2);
    let about = described(layout(2, Container::I16));
    let file = file_of(&about, &bytes, 4096, 1);
    for length in (0..file.len()).step_by(7) {
        assert!(whole(&file[..length]).is_err(), "cut to {length}");
    }
    let frames = table_of(&file).expect("sound").frame_at(0).expect("there").1.at as usize;
    for at in (0..600.min(file.len())).chain((600..file.len()).step_by(13)) {
        let mut altered = file.clone();
        altered[at] ^= 1 << (at % 8);
        match whole(&altered) {
            Ok(found) if at >= frames => assert!(found == bytes, "altered at {at}"),
            // The head has no checksum: the journal's checksums of blocks cover what it says.
            Ok(found) => assert!(found.len() != bytes.len() || found == bytes, "altered at {at}"),
            Err(error) => assert!(
                matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof),
                "altered at {at}: {error}"
            ),
        }
    }
}

#[test]
fn what_flac_cannot_hold_is_refused() {
    let refused = |about: &About, bytes: usize| writer(about, bytes, 1).expect_err("FLAC cannot hold it");
    for container in [Container::F32, Container::Packed12, Container::Bits] {
        let why = refused(&described(layout(2, container)), 24);
        assert!(why.contains(&format!("these samples are {container}")), "{why}");
    }
    assert!(refused(&described(layout(9, Container::I16)), 18).contains("has 9"));
    let mut other = described(layout(2, Container::I16));
    let rates = [(None, "not known"), (SampleRate::hz(1 << 20), "1048576 Hz"), (SampleRate::new(3, 2), "1.5 Hz")];
    for (rate, word) in rates {
        other.rate = rate;
        assert!(refused(&other, 4).contains(word), "{}", refused(&other, 4));
    }
    other.rate = SampleRate::hz((1 << 20) - 1);
    assert!(refused(&other, 6).contains("whole frame"));
    assert!(refused(&other, 4 << 36).contains("frames"));
    assert!(writer(&other, 4, 1).is_ok());
}

#[test]
fn samples_beyond_the_stated_bits_are_refused_and_shifted_ones_have_32() {
    let mut about = described(Layout::stored_as(1, 24, Container::I32).expect("exists"));
    let wide = [&[0; 4095 * 4][..], &(1_i32 << 23).to_le_bytes()].concat();
    let refused = writer(&about, wide.len(), 1).expect("fits").write(&wide).expect_err("too wide");
    assert!(refused.contains("8388608") && refused.contains("24 bits"), "{refused}");
    about.channels = vec![ChannelDescription { justified: Some(Justified::High), ..ChannelDescription::default() }];
    assert!(whole(&file_of(&about, &wide, 4096, 1)).expect("sound") == wide);
}
