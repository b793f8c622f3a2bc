//! `FrameTable`: the pieces of compressed data that are decompressed one by one; and [`FrameWriter`]: data compressed
//! by zstd, frame by frame, with a table of the frames at the end.
//!
//! ```text
//! frame of 1 MiB │ frame │ … │ frame of the rest │ skippable frame: length of each, compressed and not
//! ```
//!
//! The table is that of zstd's *seekable format* (version 0.1.0, without checksums of its own); each frame has the
//! checksum of zstd (XXH64). So `zstd --decompress` restores the file, too. Nothing here reads or writes files.

use std::io::{self, ErrorKind};

/// Bytes of a frame before compression: small enough for short reads, large enough to compress.
pub const FRAME_BYTES: usize = 1 << 20;

/// The most bytes of a frame after compression. zstd needs less than 0.5 % more than the bytes themselves.
pub(super) const MOST_PACKED_BYTES: usize = FRAME_BYTES + (FRAME_BYTES >> 6);

/// The most bytes of a table: some 35 TB of data.
const MOST_TABLE_BYTES: u64 = 256 << 20;

const SKIPPABLE: u32 = 0x184D_2A5E;
const SEEKABLE: u32 = 0x8F92_EAB1;

/// The most bytes of the head of a frame, which states its length.
const MOST_HEAD: u64 = 18;

/// Bytes of the footer, of the skippable frame's header, and of an entry.
const FOOTER: u64 = 9;
const HEADER: u64 = 8;
const ENTRY: u64 = 8;

/// A frame, and where it begins before and after compression.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) begin: u64,
    pub(super) at: u64,
    pub(super) length: usize,
    pub(super) packed_length: usize,
}

impl Frame {
    /// Decompresses a frame.
    ///
    /// # Errors
    /// `InvalidData`: these are not the bytes of that frame, or its checksum is wrong.
    pub(super) fn decompress(&self, packed: &[u8], bytes: &mut Vec<u8>) -> io::Result<()> {
        bytes.resize(self.length, 0);
        let got = zstd::bulk::decompress_to_buffer(packed, bytes)
            .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        if got == self.length { Ok(()) } else { Err(ErrorKind::InvalidData.into()) }
    }
}

/// The frames of a compressed file.
#[derive(Debug)]
pub(super) struct FrameTable {
    frames: Vec<Frame>,
    size: u64,
}

impl FrameTable {
    /// Reads the table of zstd's frames at the end of a file of `whole` bytes. `read(offset, length)` reads from the
    /// file.
    ///
    /// # Errors
    /// The errors of `read`, or `InvalidData`: the file has no table, or one that does not fit it.
    pub(super) fn read(whole: u64, mut read: impl FnMut(u64, u64) -> io::Result<Vec<u8>>) -> io::Result<Self> {
        let footer_at = whole.checked_sub(FOOTER).ok_or_else(not_seekable)?;
        let footer = read(footer_at, FOOTER)?;
        let count = u64::from(word(&footer, 0)?);
        if word(&footer, 5)? != SEEKABLE || footer.get(4) != Some(&0) || count * ENTRY > MOST_TABLE_BYTES {
            return Err(not_seekable());
        }
        let table_bytes = count * ENTRY;
        let data_end = footer_at.checked_sub(table_bytes + HEADER).ok_or_else(not_seekable)?;
        let table = read(data_end, HEADER + table_bytes)?;
        if word(&table, 0)? != SKIPPABLE || u64::from(word(&table, 4)?) != table_bytes + FOOTER {
            return Err(not_seekable());
        }
        let (mut frames, mut begin, mut at) = (Vec::<Frame>::new(), 0, 0);
        for entry in table[HEADER as usize..].chunks_exact(ENTRY as usize) {
            let (packed_length, length) = (word(entry, 0)? as usize, word(entry, 4)? as usize);
            if length == 0 || length > FRAME_BYTES || packed_length == 0 || packed_length > MOST_PACKED_BYTES {
                return Err(not_seekable());
            }
            frames.push(Frame { begin, at, length, packed_length });
            (begin, at) = (begin + length as u64, at + packed_length as u64);
        }
        if at != data_end {
            return Err(not_seekable());
        }
        // Frames are equally long, except the last one, and state their own lengths: a wrong length would move all
        // frames after it.
        let ends = [frames.first(), frames.last()].into_iter().flatten().copied().collect::<Vec<Frame>>();
        for frame in &ends {
            let head = read(frame.at, MOST_HEAD.min(frame.packed_length as u64))?;
            // If table and frame differ, the frame is right if it decompresses.
            if content_bytes(&head) != Some(frame.length)
                && zstd::bulk::decompress(&read(frame.at, frame.packed_length as u64)?, FRAME_BYTES).is_ok()
            {
                return Err(not_seekable());
            }
        }
        let is_even = frames.iter().rev().skip(1).all(|frame| frame.length == ends[0].length);
        if !is_even {
            return Err(not_seekable());
        }
        Ok(Self { frames, size: begin })
    }

    /// Finds the frames of a file of `whole` bytes whose table is damaged, from the first one to the first that is not
    /// whole. Reads all of it.
    ///
    /// # Errors
    /// The errors of `read`, or `InvalidData`: the file does not begin with a frame.
    pub(super) fn find(whole: u64, mut read: impl FnMut(u64, u64) -> io::Result<Vec<u8>>) -> io::Result<Self> {
        let (mut frames, mut begin, mut at) = (Vec::new(), 0, 0);
        while at < whole {
            let packed = read(at, (whole - at).min(MOST_PACKED_BYTES as u64))?;
            let Some(length) = content_bytes(&packed) else { break };
            let Ok(packed_length) = zstd::zstd_safe::find_frame_compressed_size(&packed) else { break };
            frames.push(Frame { begin, at, length, packed_length });
            (begin, at) = (begin + length as u64, at + packed_length as u64);
        }
        if frames.is_empty() { Err(not_seekable()) } else { Ok(Self { frames, size: begin }) }
    }

    /// Bytes before compression.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The frame with the byte at an offset before compression, and its number; `None` at the end.
    pub(super) fn frame_at(&self, offset: u64) -> Option<(usize, Frame)> {
        let number = self.frames.partition_point(|frame| frame.begin <= offset).checked_sub(1)?;
        (offset < self.size).then(|| (number, self.frames[number]))
    }
}

/// The length of a frame's content as the frame states it; `None` if another program wrote it.
fn content_bytes(packed: &[u8]) -> Option<usize> {
    let stated = zstd::zstd_safe::get_frame_content_size(packed).ok().flatten()?;
    usize::try_from(stated).ok().filter(|length| (1..=FRAME_BYTES).contains(length))
}

fn word(bytes: &[u8], at: usize) -> io::Result<u32> {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk()).ok_or_else(not_seekable)?;
    Ok(u32::from_le_bytes(*word))
}

fn not_seekable() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "it has no table of its frames, or one that does not fit")
}

/// Makes frames, and the table of them.
pub struct FrameWriter {
    compressor: zstd::bulk::Compressor<'static>,
    table: Vec<u8>,
}

impl FrameWriter {
    /// # Errors
    /// zstd refused the level.
    pub fn new(level: i32) -> io::Result<Self> {
        let mut compressor = zstd::bulk::Compressor::new(level)?;
        compressor.include_checksum(true)?;
        Ok(Self { compressor, table: Vec::new() })
    }

    /// Compresses the next frame: [`FRAME_BYTES`], or fewer at the end.
    ///
    /// # Errors
    /// zstd's.
    pub fn frame(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let packed = self.compressor.compress(bytes)?;
        self.table.extend((packed.len() as u32).to_le_bytes());
        self.table.extend((bytes.len() as u32).to_le_bytes());
        Ok(packed)
    }

    /// The table, which ends the file.
    pub fn finish(self) -> Vec<u8> {
        let mut tail = Vec::with_capacity(self.table.len() + (HEADER + FOOTER) as usize);
        tail.extend(SKIPPABLE.to_le_bytes());
        tail.extend((self.table.len() as u32 + FOOTER as u32).to_le_bytes());
        tail.extend(&self.table);
        tail.extend((self.table.len() as u32 / ENTRY as u32).to_le_bytes());
        tail.push(0);
        tail.extend(SEEKABLE.to_le_bytes());
        tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size that a file states, and the contents of its two frames where they can be decompressed.
    fn found(file: &[u8]) -> io::Result<(u64, [Option<Vec<u8>>; 2])> {
        let read = |at: u64, length: u64| {
            let piece = file.get(at as usize..(at + length) as usize);
            piece.map(<[u8]>::to_vec).ok_or_else(|| ErrorKind::UnexpectedEof.into())
        };
        let table = FrameTable::read(file.len() as u64, read)?;
        let content = |offset: u64| {
            let (_, frame) = table.frame_at(offset)?;
            let mut bytes = Vec::new();
            let packed = read(frame.at, frame.packed_length as u64).ok()?;
            frame.decompress(&packed, &mut bytes).ok()?;
            Some(bytes[(offset - frame.begin) as usize..].to_vec())
        };
        Ok((table.size(), [content(0), content(1005)]))
    }

    #[test]
    fn one_wrong_bit_costs_one_frame_at_most() {
        let mut writer = FrameWriter::new(3).expect("a level");
        let contents = [vec![7; 1000], vec![9; 1000], vec![8; 10]];
        let mut whole: Vec<u8> =
            contents.iter().flat_map(|content| writer.frame(content).expect("compressed")).collect();
        whole.extend(writer.finish());
        for (at, bit) in (0..whole.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut altered = whole.clone();
            altered[at] ^= 1 << bit;
            let read = |at: u64, length: u64| Ok(altered[at as usize..(at + length) as usize].to_vec());
            let size = altered.len() as u64;
            let table = FrameTable::read(size, read).or_else(|_| FrameTable::find(size, read)).expect("frames");
            let is_whole = |(number, content): (u64, &Vec<u8>)| {
                let (_, frame) = table.frame_at(number * 1000)?;
                let mut bytes = Vec::new();
                frame.decompress(&read(frame.at, frame.packed_length as u64).ok()?, &mut bytes).ok()?;
                (frame.begin == number * 1000 && bytes == *content).then_some(())
            };
            let lost = (0..).zip(&contents).filter(|one| is_whole(*one).is_none()).count();
            assert!(lost <= 1, "bit {bit} of byte {at}: {lost} frames are lost");
        }
    }

    #[test]
    fn no_file_that_is_cut_or_altered_gives_other_bytes() {
        let mut writer = FrameWriter::new(3).expect("a level");
        let mut whole = writer.frame(&[7; 1000]).expect("compressed");
        whole.extend(writer.frame(&[8; 10]).expect("compressed"));
        whole.extend(writer.finish());
        assert_eq!(found(&whole).expect("whole"), (1010, [Some(vec![7; 1000]), Some(vec![8; 5])]));
        // zstd's own reader passes over the table.
        assert_eq!(zstd::stream::decode_all(&whole[..]).expect("zstd").len(), 1010);
        for length in 0..whole.len() {
            assert!(found(&whole[..length]).is_err(), "cut to {length}");
        }
        for (at, bit) in (0..whole.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut altered = whole.clone();
            altered[at] ^= 1 << bit;
            // No table, a frame that does not decompress, or the same bytes: never others.
            if let Ok((size, [first, second])) = found(&altered) {
                let sound = |found: Option<Vec<u8>>, wanted: &[u8]| found.is_none_or(|found| found == wanted);
                assert!(size != 1010 || sound(first, &[7; 1000]) && sound(second, &[8; 5]), "altered at {at}");
            }
        }
    }
}
