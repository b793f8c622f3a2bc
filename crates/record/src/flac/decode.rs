//! [`Decoder`]: the samples of the frames that [`Encoder`](super::Encoder) makes.
//!
//! It knows the parts of FLAC that the encoder uses: constant and verbatim subframes, fixed predictors, Rice codes without escapes, and a
//! channel beside the difference of two. Anything else is `None`, and so is a wrong checksum. No input makes it panic, or take more memory than
//! one block of samples.

#[cfg(any(test, feature = "testing"))]
use super::Form;
use super::bits::{BitReader, BitWriter, crc16};
use super::frame::{LEFT_SIDE, MOST_ORDER, SIDE_RIGHT, header};

/// Decodes the frames of one file.
#[derive(Debug)]
pub(crate) struct Decoder {
    bits: u32,
    /// The samples of each channel.
    columns: Vec<Vec<i64>>,
}

impl Decoder {
    /// For files of so many channels, and bits of a sample.
    pub(crate) fn new(channels: usize, bits: u32) -> Self {
        Self { bits, columns: vec![Vec::new(); channels] }
    }

    /// Decodes the frame with this number and so many samples of each channel, from the front of bytes. Yields the samples of each channel, and
    /// how many bytes the frame has; `None` if it is not that frame.
    pub(crate) fn decode(&mut self, bytes: &[u8], number: u64, length: usize) -> Option<(&[Vec<i64>], usize)> {
        let (end, assignment) = self.subframes(bytes, number, length)?;
        if crc16(&bytes[..end]).to_be_bytes() != bytes.get(end..end + 2)? {
            return None;
        }
        if let (LEFT_SIDE | SIDE_RIGHT, [first, second]) = (assignment, &mut self.columns[..]) {
            for (first, second) in first.iter_mut().zip(second) {
                match assignment {
                    LEFT_SIDE => *second = *first - *second,
                    _ => *first += *second,
                }
            }
        }
        Some((&self.columns, end + 2))
    }

    /// Decodes the subframes of that frame. Yields where its checksum lies, and how its channels are assigned.
    fn subframes(&mut self, bytes: &[u8], number: u64, length: usize) -> Option<(usize, u64)> {
        let independent = self.columns.len() as u64 - 1;
        let assignment = u64::from(bytes.get(3)? >> 4);
        let has_side = matches!(assignment, LEFT_SIDE | SIDE_RIGHT) && independent == 1 && self.bits < 32;
        let mut head = BitWriter::default();
        header(&mut head, self.bits, number, length, assignment);
        if !(has_side || assignment == independent) || !bytes.starts_with(&head.bytes) {
            return None;
        }
        let mut reader = BitReader::new(&bytes[head.bytes.len()..]);
        for (channel, column) in self.columns.iter_mut().enumerate() {
            let is_side = has_side && (assignment == LEFT_SIDE) == (channel == 1);
            subframe(&mut reader, self.bits + u32::from(is_side), length, column)?;
        }
        Some((head.bytes.len() + reader.align()?, assignment))
    }
}

/// For tests: the first frame of a file, with these subframes and the checksums that they would have. `None` if they are not those of so many
/// samples of each channel.
#[cfg(any(test, feature = "testing"))]
pub fn sealed(form: Form, length: usize, assignment: u64, subframes: &[u8]) -> Option<Vec<u8>> {
    let mut frame = BitWriter::default();
    header(&mut frame, form.bits, 0, length, assignment);
    frame.bytes.extend(subframes);
    let (end, _) = Decoder::new(form.channels as usize, form.bits).subframes(&frame.bytes, 0, length)?;
    frame.bytes.truncate(end);
    frame.bytes.extend(crc16(&frame.bytes).to_be_bytes());
    Some(frame.bytes)
}

/// For tests: the samples of each channel in the first frame of a file; `None` if it is not the whole of these bytes.
#[cfg(any(test, feature = "testing"))]
pub fn decoded(form: Form, length: usize, frame: &[u8]) -> Option<Vec<Vec<i64>>> {
    let mut decoder = Decoder::new(form.channels as usize, form.bits);
    let (columns, taken) = decoder.decode(frame, 0, length)?;
    (taken == frame.len()).then(|| columns.to_vec())
}

/// Decodes a channel whose samples have so many bits, at most 33.
fn subframe(reader: &mut BitReader<'_>, bits: u32, length: usize, column: &mut Vec<i64>) -> Option<()> {
    column.clear();
    let kind = reader.bits(8)?;
    let wasted = if kind & 1 == 1 { u32::try_from(reader.unary()? + 1).ok()? } else { 0 };
    let bits = bits.checked_sub(wasted).filter(|bits| *bits > 0)?;
    match kind >> 1 {
        0 => column.resize(length, reader.signed(bits)?),
        1 => {
            for _ in 0..length {
                column.push(reader.signed(bits)?);
            }
        }
        kind => {
            let order = (kind as usize).checked_sub(8).filter(|order| *order <= MOST_ORDER.min(length))?;
            for _ in 0..order {
                column.push(reader.signed(bits)?);
            }
            residuals(reader, bits, order, length, column)?;
        }
    }
    column.iter_mut().for_each(|sample| *sample <<= wasted);
    Some(())
}

/// Appends the samples that a fixed predictor and its residuals yield.
fn residuals(reader: &mut BitReader<'_>, bits: u32, order: usize, length: usize, column: &mut Vec<i64>) -> Option<()> {
    // Parameters of four bits or of five; the last one of each is an escape.
    let parameter_bits = match reader.bits(2)? {
        0 => 4,
        1 => 5,
        _ => return None,
    };
    let log = reader.bits(4)? as u32;
    let each = length >> log;
    if each << log != length || each < order {
        return None;
    }
    for partition in 1..=1_usize << log {
        let parameter = reader.bits(parameter_bits)? as u32;
        if parameter == (1 << parameter_bits) - 1 {
            return None;
        }
        while column.len() < partition * each {
            let high = reader.unary()?;
            // Residuals have 32 bits.
            if high >> (32 - parameter) != 0 {
                return None;
            }
            let folded = (high << parameter | reader.bits(parameter)?).cast_signed();
            let sample = predicted(order, column) + (folded >> 1 ^ -(folded & 1));
            if sample >> (bits - 1) != sample >> 63 {
                return None;
            }
            column.push(sample);
        }
    }
    Some(())
}

/// The next sample, if it continues the polynomial through the last ones.
fn predicted(order: usize, before: &[i64]) -> i64 {
    match (order, before) {
        (1, [.., a]) => *a,
        (2, [.., b, a]) => 2 * a - b,
        (3, [.., c, b, a]) => 3 * (a - b) + c,
        (4, [.., d, c, b, a]) => 4 * (a + c) - 6 * b - d,
        _ => 0,
    }
}
