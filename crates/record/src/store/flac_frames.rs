//! [`FlacWriter`] and [`FrameTable::read_flac`]: data as a file of FLAC, whose table of seek points is the table of the frames.
//!
//! ```text
//! fLaC │ STREAMINFO │ "hspr": the container │ tags │ SEEKTABLE │ padding │ frames of FLAC: 4096 samples of each channel, fewer in the last
//!                                                 a point for each MiB ──────► at most 1 MiB of data
//! ```
//!
//! The frames between two points are one [`Frame`] of the table, so that any place is found by one read. The padding lets the frames begin where a
//! disk can write. The block of the application `hspr` names the container of the samples, which FLAC does not know. Nothing here reads or
//! writes files.

use std::io::{self, ErrorKind};

use hairspring_ring::layout::Container;
use hairspring_ring::units::Frames;

use super::frames::{Coding, FRAME_BYTES, Frame, FrameTable, MOST_PACKED_BYTES};
use crate::flac::decode::Decoder;
use crate::flac::{
    APPLICATION, BLOCK, Encoder, Form, MAGIC, MOST_CHANNELS, MOST_FRAMES, MOST_RATE, PADDING, SEEK_TABLE,
};
use crate::flac::{STREAM_INFO, STREAM_INFO_BYTES, bits_of, block, integers, stream_info, tags, whole_hertz};
use crate::recording::{Member, Recording};
use crate::sigmf::About;

/// Our application's id in FLAC.
const APPLICATION_ID: &[u8; 4] = b"hspr";

/// Bytes of a seek point: sample u64, offset behind the head u64, samples u16.
const POINT: usize = 18;

/// The most bytes of a block of metadata.
const MOST_BLOCK: u64 = (1 << 24) - 1;

/// The most blocks of metadata that are looked at.
const MOST_BLOCKS: usize = 64;

/// The containers that FLAC can hold.
const CONTAINERS: [Container; 5] = [Container::I8, Container::U8, Container::I16, Container::U16, Container::I32];

/// The samples of a file: how they lie in the data, and how in FLAC.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlacCoding {
    channels: usize,
    bits: u32,
    container: Container,
}

impl FlacCoding {
    /// Bytes of a frame of the recording.
    fn row_bytes(self) -> usize {
        self.channels * self.container.bits() as usize / 8
    }

    /// Bytes of the data from one seek point to the next: whole frames of FLAC.
    fn step_bytes(self) -> usize {
        let each = BLOCK * self.row_bytes();
        FRAME_BYTES / each * each
    }

    /// Decodes the frames between two seek points.
    ///
    /// # Errors
    /// `InvalidData`: these are not those frames, or a checksum is wrong.
    pub(super) fn decompress(self, frame: &Frame, packed: &[u8], bytes: &mut Vec<u8>) -> io::Result<()> {
        bytes.clear();
        let row = self.row_bytes();
        let (mut decoder, mut at) = (Decoder::new(self.channels, self.bits), 0);
        let mut number = frame.begin / (BLOCK * row) as u64;
        while bytes.len() < frame.length {
            let length = BLOCK.min((frame.length - bytes.len()) / row);
            let (columns, taken) = decoder.decode(&packed[at..], number, length).ok_or(ErrorKind::InvalidData)?;
            self.append(columns, bytes).ok_or(ErrorKind::InvalidData)?;
            (number, at) = (number + 1, at + taken);
        }
        if at == packed.len() { Ok(()) } else { Err(ErrorKind::InvalidData.into()) }
    }

    /// Appends samples as they lie in the data; `None` if one does not fit into its container.
    fn append(self, columns: &[Vec<i64>], to: &mut Vec<u8>) -> Option<()> {
        let length = columns.first().map_or(0, Vec::len);
        for row in 0..length {
            for column in columns {
                let sample = column[row];
                match self.container {
                    Container::I8 => to.extend(i8::try_from(sample).ok()?.to_le_bytes()),
                    Container::U8 => to.push(u8::try_from(sample).ok()?),
                    Container::I16 => to.extend(i16::try_from(sample).ok()?.to_le_bytes()),
                    Container::U16 => to.extend(u16::try_from(sample).ok()?.to_le_bytes()),
                    _ => to.extend(i32::try_from(sample).ok()?.to_le_bytes()),
                }
            }
        }
        Some(())
    }
}

impl FrameTable {
    /// Reads the head of a file of FLAC of `whole` bytes. `read` reads so many bytes at an offset.
    ///
    /// # Errors
    /// Those of `read`, or `InvalidData`: it is no FLAC that a [`FlacWriter`] wrote, or has a table that does not fit it.
    pub(super) fn read_flac(whole: u64, mut read: impl FnMut(u64, u64) -> io::Result<Vec<u8>>) -> io::Result<Self> {
        if read(0, whole.min(4))? != MAGIC {
            return Err(ErrorKind::InvalidData.into());
        }
        let (mut at, mut info, mut container, mut points) = (4, None, None, Vec::new());
        for number in 0..MOST_BLOCKS {
            let head = whole.checked_sub(at + 4).ok_or(ErrorKind::InvalidData).map(|_| read(at, 4))??;
            let [kind, length @ ..] = head.first_chunk::<4>().ok_or(ErrorKind::InvalidData)?;
            let length = u64::from(u32::from_be_bytes([0, length[0], length[1], length[2]]));
            let begin = at + 4;
            at = begin + length;
            let fits = at <= whole && (number == 0) == (kind & 0x7F == STREAM_INFO);
            match kind & 0x7F {
                _ if !fits => return Err(ErrorKind::InvalidData.into()),
                STREAM_INFO if length == STREAM_INFO_BYTES as u64 => info = stated(&read(begin, length)?),
                // The longest name has three letters.
                APPLICATION if (4..=7).contains(&length) => container = named(&read(begin, length)?).or(container),
                SEEK_TABLE => points = read(begin, length)?,
                _ => {}
            }
            if kind & 0x80 != 0 {
                let coding = info.zip(container).and_then(|((channels, bits, frames), container)| {
                    Some((FlacCoding { channels, bits, container }.checked()?, frames))
                });
                let (coding, frames) = coding.ok_or(ErrorKind::InvalidData)?;
                return table(coding, frames, &points, at, whole).ok_or_else(|| ErrorKind::InvalidData.into());
            }
        }
        Err(ErrorKind::InvalidData.into())
    }
}

impl FlacCoding {
    /// Itself, if samples of that container have so many bits.
    fn checked(self) -> Option<Self> {
        let fits = match self.container {
            Container::I8 => self.bits == 8,
            Container::U8 | Container::I16 => self.bits == 16,
            Container::U16 => self.bits == 24,
            _ => matches!(self.bits, 24 | 32),
        };
        fits.then_some(self)
    }
}

/// Channels, bits and frames, of a STREAMINFO with blocks of our size.
fn stated(info: &[u8]) -> Option<(usize, u32, u64)> {
    let size = (BLOCK as u16).to_be_bytes();
    let packed = u64::from_be_bytes(*info.get(10..)?.first_chunk()?);
    let (channels, bits) = ((packed >> 41 & 7) as usize + 1, (packed >> 36 & 31) as u32 + 1);
    (info[..2] == size && info[2..4] == size).then_some((channels, bits, packed & MOST_FRAMES))
}

/// The container that our application's block names.
fn named(application: &[u8]) -> Option<Container> {
    let name = application.strip_prefix(APPLICATION_ID)?;
    CONTAINERS.into_iter().find(|container| container.to_string().as_bytes() == name)
}

/// The table of the pieces between seek points.
fn table(coding: FlacCoding, frames: u64, points: &[u8], head: u64, whole: u64) -> Option<FrameTable> {
    let row = coding.row_bytes() as u64;
    let size = frames * row;
    let (points, rest) = points.as_chunks::<POINT>();
    let begins = |number: usize| match points.get(number) {
        Some(point) => {
            let [sample, offset] = [0, 8].map(|at| point[at..].first_chunk().map(|word| u64::from_be_bytes(*word)));
            Some((sample?.checked_mul(row)?, offset?.checked_add(head)?))
        }
        None => Some((size, whole)),
    };
    let mut pieces = Vec::new();
    for number in 0..points.len() {
        let ((begin, at), (end, next)) = (begins(number)?, begins(number + 1)?);
        let length =
            usize::try_from(end.checked_sub(begin)?).ok().filter(|length| (1..=FRAME_BYTES).contains(length))?;
        let packed_length = usize::try_from(next.checked_sub(at)?).ok()?;
        if !begin.is_multiple_of(BLOCK as u64 * row) || packed_length == 0 || packed_length > MOST_PACKED_BYTES {
            return None;
        }
        pieces.push(Frame { begin, at, length, packed_length });
    }
    let is_whole = begins(0)? == (0, head) && rest.is_empty();
    is_whole.then(|| FrameTable::new(pieces, size, Coding::Flac(coding)))
}

/// Makes the frames of a file, and its head.
#[derive(Debug)]
pub(crate) struct FlacWriter {
    form: Form,
    coding: FlacCoding,
    encoder: Encoder,
    tags: Vec<u8>,
    /// Frames of the recording that there will be.
    frames: u64,
    /// Bytes of the head.
    head: u64,
    points: Vec<u8>,
    /// Bytes that are encoded: of the data, and of the file behind its head.
    plain: u64,
    packed: u64,
    /// Bytes that fill no block yet.
    pending: Vec<u8>,
    samples: Vec<i32>,
}

impl FlacWriter {
    /// For the data of a member, whose frames are to begin at a multiple of `alignment`.
    ///
    /// # Errors
    /// Why FLAC cannot hold these samples.
    pub(crate) fn new(recording: &Recording, member: &Member, alignment: u64) -> Result<Self, String> {
        let begin = recording.blocks().iter().find(|block| block.member == member.number);
        let first = begin.map_or(Frames(0), |block| recording.timeline().frame_at(block.position));
        Self::of(recording.about(), member.data_bytes, alignment, tags(recording, first, false))
    }

    /// For so many bytes of data, with this block of tags.
    fn of(about: &About, bytes: u64, alignment: u64, tags: Vec<u8>) -> Result<Self, String> {
        let (channels, container) = (about.layout.channels(), about.layout.container());
        let Some(bits) = bits_of(container, about) else {
            return Err(format!("FLAC holds integers of 8, 16 or 32 bits, and these samples are {container}"));
        };
        if channels > MOST_CHANNELS {
            return Err(format!("FLAC holds {MOST_CHANNELS} channels, and this recording has {channels}"));
        }
        let Some(rate) = about.rate else {
            return Err("the rate of this recording is not known, and FLAC needs one".to_owned());
        };
        let Some(rate_hz) = whole_hertz(rate, MOST_RATE) else {
            let rate_hz = rate.as_hz();
            return Err(format!(
                "FLAC holds whole rates of at most {MOST_RATE} Hz, and this recording has {rate_hz} Hz"
            ));
        };
        let form = Form { rate_hz, channels, bits };
        let coding = FlacCoding { channels: channels as usize, bits, container };
        let (row, step) = (coding.row_bytes() as u64, coding.step_bytes() as u64);
        let table_bytes = bytes.div_ceil(step) * POINT as u64;
        if bytes / row > MOST_FRAMES || table_bytes > MOST_BLOCK {
            return Err(format!("FLAC holds {MOST_FRAMES} frames and some 900 GB, and this recording has more"));
        }
        if !bytes.is_multiple_of(row) {
            return Err("the data do not end with a whole frame".to_owned());
        }
        let mut writer = Self {
            form,
            coding,
            encoder: Encoder::new(form),
            tags,
            frames: bytes / row,
            head: 0,
            points: Vec::new(),
            plain: 0,
            packed: 0,
            pending: Vec::new(),
            samples: Vec::new(),
        };
        // With the padding's own head of four bytes.
        writer.head = (writer.blocks([0; 16]).len() as u64 + 4 + 4 + table_bytes).next_multiple_of(alignment);
        Ok(writer)
    }

    /// Bytes of the head, behind which the frames begin.
    pub(crate) fn head_bytes(&self) -> u64 {
        self.head
    }

    /// Encodes further data, as far as they are whole blocks.
    ///
    /// # Errors
    /// A sample has more bits than the recording states.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        self.pending.extend_from_slice(bytes);
        let each = BLOCK * self.coding.row_bytes();
        let whole = self.pending.len() / each * each;
        let mut packed = Vec::new();
        let pending = std::mem::take(&mut self.pending);
        pending[..whole].chunks(each).try_for_each(|part| self.encode(part, &mut packed))?;
        self.pending = pending;
        self.pending.drain(..whole);
        Ok(packed)
    }

    fn encode(&mut self, part: &[u8], packed: &mut Vec<u8>) -> Result<(), String> {
        let row = self.coding.row_bytes() as u64;
        if self.plain.is_multiple_of(self.coding.step_bytes() as u64) {
            self.points.extend((self.plain / row).to_be_bytes());
            self.points.extend(self.packed.to_be_bytes());
            self.points.extend(((part.len() as u64 / row) as u16).to_be_bytes());
        }
        self.samples.clear();
        integers(self.coding.container, part, &mut self.samples);
        let before = packed.len();
        self.encoder.encode(&self.samples, packed).map_err(|wide| wide.to_string())?;
        self.plain += part.len() as u64;
        self.packed += (packed.len() - before) as u64;
        Ok(())
    }

    /// The last frame, and the head.
    ///
    /// # Errors
    /// As [`write`](Self::write); or there were other data than announced.
    pub(crate) fn finish(mut self) -> Result<(Vec<u8>, Vec<u8>), String> {
        let mut last = Vec::new();
        let pending = std::mem::take(&mut self.pending);
        if !pending.is_empty() {
            self.encode(&pending, &mut last)?;
        }
        if self.plain != self.frames * self.coding.row_bytes() as u64 {
            return Err("the data have changed meanwhile".to_owned());
        }
        let sum = std::mem::replace(&mut self.encoder, Encoder::new(self.form)).sum();
        let mut head = self.blocks(sum);
        head.extend(block(SEEK_TABLE, false, &self.points));
        let padding = self.head as usize - head.len() - 4;
        head.extend(block(PADDING, true, &vec![0; padding]));
        Ok((last, head))
    }

    /// What precedes the table.
    fn blocks(&self, sum: [u8; 16]) -> Vec<u8> {
        let application = [APPLICATION_ID, self.coding.container.to_string().as_bytes()].concat();
        let info = stream_info(self.form, self.frames, sum);
        [&MAGIC[..], &info, &block(APPLICATION, false, &application), &self.tags].concat()
    }
}

#[cfg(test)]
mod tests;
