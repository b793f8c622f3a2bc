//! [`FrameEncoder`]: a block of samples as a frame of FLAC.
//!
//! ```text
//! frame = header, CRC-8 ─ a subframe for each channel ─ zeros to the next byte ─ CRC-16
//! subframe = constant │ verbatim │ fixed predictor: order, first samples, residuals in partitions of Rice codes
//! ```
//!
//! Each channel gets the predictor of order 0 to 4 whose residuals are smallest. Two channels are also tried as one of
//! them and their difference. Low bits that are zero in a whole block, as those of left-justified codes, are left out.

use super::bits::{BitWriter, crc8, crc16};

/// Samples of a channel in a frame; fewer in the last.
pub(super) const BLOCK: usize = 4096;

/// Assignments of channels, besides independent ones.
const LEFT_SIDE: u64 = 8;
const SIDE_RIGHT: u64 = 9;

/// The highest order of a fixed predictor.
const MOST_ORDER: usize = 4;
/// At most 2 to this power partitions, of 64 samples each.
const MOST_PARTITIONS_LOG: u32 = 6;
/// The largest parameters of the two kinds of Rice codes.
const MOST_SHORT_RICE: u32 = 14;
const MOST_LONG_RICE: u32 = 30;

/// Encodes the frames of one stream.
#[derive(Debug)]
pub(super) struct FrameEncoder {
    channels: usize,
    bits: u32,
    number: u64,
    /// The samples of each channel, and of the difference of two.
    columns: Vec<Vec<i64>>,
    residuals: Vec<Vec<i64>>,
}

/// How a channel is encoded, and the approximate number of bits.
#[derive(Clone, Debug)]
enum Subframe {
    Constant,
    Verbatim,
    Fixed { order: usize, partitions_log: u32, parameters: Vec<u32> },
}

#[derive(Clone, Debug)]
struct Choice {
    subframe: Subframe,
    wasted: u32,
    cost_bits: u64,
}

impl FrameEncoder {
    pub(super) fn new(channels: usize, bits: u32) -> Self {
        Self {
            channels,
            bits,
            number: 0,
            columns: vec![Vec::new(); channels + 1],
            residuals: vec![Vec::new(); MOST_ORDER + 1],
        }
    }

    /// Appends the frame of the next samples: whole rows, at most [`BLOCK`] of them.
    pub(super) fn encode(&mut self, rows: &[i32], to: &mut Vec<u8>) {
        let channels = self.channels;
        let length = rows.len() / channels;
        for (channel, column) in self.columns[..channels].iter_mut().enumerate() {
            column.clear();
            column.extend(rows[channel..].iter().step_by(channels).map(|sample| i64::from(*sample)));
        }
        // The difference of two channels has a bit more; 33 bits are beyond many readers.
        let has_side = channels == 2 && self.bits < 32;
        if has_side {
            let (sides, column) = self.columns.split_at_mut(2);
            column[0].clear();
            column[0].extend(sides[0].iter().zip(&sides[1]).map(|(left, right)| left - right));
        }
        let mut choices: Vec<(usize, u32, Choice)> =
            (0..channels).map(|channel| self.choice(channel, self.bits)).collect();
        let mut assignment = channels as u64 - 1;
        if has_side {
            let side = self.choice(2, self.bits + 1);
            let cost = |choice: &(usize, u32, Choice)| choice.2.cost_bits;
            let dearer = usize::from(cost(&choices[1]) > cost(&choices[0]));
            if cost(&side) < cost(&choices[dearer]) {
                // Left and side, or side and right.
                assignment = if dearer == 1 { LEFT_SIDE } else { SIDE_RIGHT };
                choices[dearer] = side;
            }
        }
        let mut writer = BitWriter::after(std::mem::take(to));
        let start = writer.bytes.len();
        header(&mut writer, self.bits, self.number, length, assignment);
        for (column, bits, choice) in choices {
            self.subframe(&mut writer, column, bits, &choice);
        }
        writer.align();
        let sum = crc16(&writer.bytes[start..]);
        writer.bits(sum.into(), 16);
        self.number += 1;
        *to = writer.bytes;
    }

    /// Chooses the encoding of a channel with samples of `bits` bits.
    fn choice(&mut self, channel: usize, bits: u32) -> (usize, u32, Choice) {
        let column = &mut self.columns[channel];
        let length = column.len();
        if column.iter().all(|sample| *sample == column[0]) {
            return (channel, bits, Choice { subframe: Subframe::Constant, wasted: 0, cost_bits: 8 + u64::from(bits) });
        }
        let wasted = column.iter().fold(0, |all, sample| all | sample).trailing_zeros();
        if wasted > 0 {
            column.iter_mut().for_each(|sample| *sample >>= wasted);
        }
        let bits = bits - wasted;
        let head_bits = 8 + u64::from(wasted);
        let mut best =
            Choice { subframe: Subframe::Verbatim, wasted, cost_bits: head_bits + length as u64 * u64::from(bits) };
        self.residuals[0].clear();
        self.residuals[0].extend_from_slice(column);
        for order in 1..=MOST_ORDER.min(length - 1) {
            let (before, after) = self.residuals.split_at_mut(order);
            let (before, after) = (&before[order - 1], &mut after[0]);
            after.clear();
            // The first `order` of them are no residuals, and are not used.
            after.extend_from_slice(&before[..order]);
            after.extend(before[order - 1..].windows(2).map(|pair| pair[1] - pair[0]));
        }
        let sum = |order: usize| self.residuals[order][order..].iter().map(|value| value.unsigned_abs()).sum::<u64>();
        let orders = 0..=MOST_ORDER.min(length - 1);
        let fits = |order: &usize| {
            self.residuals[*order][*order..]
                .iter()
                .all(|value| i32::try_from(*value).is_ok_and(|value| value != i32::MIN))
        };
        let Some(order) = orders.filter(fits).min_by_key(|order| sum(*order)) else { return (channel, bits, best) };
        let (cost, partitions_log, parameters) = partitions(&self.residuals[order], order);
        let cost_bits = head_bits + order as u64 * u64::from(bits) + 6 + cost;
        if cost_bits < best.cost_bits {
            best = Choice { subframe: Subframe::Fixed { order, partitions_log, parameters }, wasted, cost_bits };
        }
        (channel, bits, best)
    }

    fn subframe(&mut self, writer: &mut BitWriter, channel: usize, bits: u32, choice: &Choice) {
        let kind = match choice.subframe {
            Subframe::Constant => 0,
            Subframe::Verbatim => 1,
            Subframe::Fixed { order, .. } => 8 + order as u64,
        };
        writer.bits(kind << 1 | u64::from(choice.wasted > 0), 8);
        if choice.wasted > 0 {
            writer.unary(u64::from(choice.wasted) - 1);
        }
        let column = &self.columns[channel];
        match &choice.subframe {
            Subframe::Constant => writer.bits(column[0].cast_unsigned(), bits),
            Subframe::Verbatim => column.iter().for_each(|sample| writer.bits(sample.cast_unsigned(), bits)),
            Subframe::Fixed { order, partitions_log, parameters } => {
                column[..*order].iter().for_each(|sample| writer.bits(sample.cast_unsigned(), bits));
                let long = parameters.iter().any(|parameter| *parameter > MOST_SHORT_RICE);
                writer.bits(u64::from(long), 2);
                writer.bits((*partitions_log).into(), 4);
                // The residuals of the order are computed again: another channel has used the place.
                let mut residuals = column.clone();
                for _ in 0..*order {
                    for at in (1..residuals.len()).rev() {
                        residuals[at] -= residuals[at - 1];
                    }
                }
                let each = column.len() >> partitions_log;
                for (number, parameter) in parameters.iter().enumerate() {
                    writer.bits((*parameter).into(), if long { 5 } else { 4 });
                    for value in &residuals[(number * each).max(*order)..(number + 1) * each] {
                        let folded = folded(*value);
                        writer.unary(folded >> parameter);
                        writer.bits(folded, *parameter);
                    }
                }
            }
        }
    }
}

/// Writes the header of a frame.
fn header(writer: &mut BitWriter, bits: u32, number: u64, length: usize, assignment: u64) {
    let start = writer.bytes.len();
    // Synchronisation, and blocks of one size.
    writer.bits(0xFFF8, 16);
    // The size: 4096, or a number after the header. The rate is that of the stream.
    writer.bits(if length == BLOCK { 0b1100 } else { 0b0111 }, 4);
    writer.bits(0, 4);
    writer.bits(assignment, 4);
    writer.bits(
        match bits {
            8 => 0b001,
            16 => 0b100,
            24 => 0b110,
            _ => 0b111,
        },
        3,
    );
    writer.bits(0, 1);
    numbered(writer, number);
    if length != BLOCK {
        writer.bits(length as u64 - 1, 16);
    }
    let sum = crc8(&writer.bytes[start..]);
    writer.bits(sum.into(), 8);
}

/// 0, −1, 1, −2, 2 … as 0, 1, 2, 3, 4 …
fn folded(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

/// The best number of partitions, as a power of two, with the parameter of each; and the approximate number of bits.
fn partitions(residuals: &[i64], order: usize) -> (u64, u32, Vec<u32>) {
    let length = residuals.len();
    // Partitions are of one size, and the first one is larger than the order.
    let most = (0..=MOST_PARTITIONS_LOG).rev().find(|log| length.is_multiple_of(1 << log) && length >> log > order);
    let most = most.unwrap_or(0);
    let mut sums: Vec<(u64, u64)> = (0..1_usize << most)
        .map(|number| {
            let each = length >> most;
            let part = &residuals[(number * each).max(order)..(number + 1) * each];
            (part.len() as u64, part.iter().map(|value| folded(*value)).sum())
        })
        .collect();
    let mut best: Option<(u64, u32, Vec<u32>)> = None;
    for log in (0..=most).rev() {
        let mut cost = 0;
        let parameters: Vec<u32> = sums
            .iter()
            .map(|(count, sum)| {
                let (bits, parameter) = rice(*count, *sum);
                cost += bits + 5;
                parameter
            })
            .collect();
        if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
            best = Some((cost, log, parameters));
        }
        sums =
            sums.chunks(2).map(|pair| pair.iter().fold((0, 0), |(n, s), (count, sum)| (n + count, s + sum))).collect();
    }
    best.unwrap_or((0, 0, vec![0]))
}

/// The parameter for `count` values of this sum, and the approximate number of bits.
fn rice(count: u64, sum: u64) -> (u64, u32) {
    let mean = sum / count.max(1);
    let near = mean.checked_ilog2().unwrap_or(0);
    let bits = |parameter: u32| (count * u64::from(parameter + 1) + (sum >> parameter), parameter);
    let candidates = [near.saturating_sub(1), near, near + 1].map(|parameter| bits(parameter.min(MOST_LONG_RICE)));
    candidates.into_iter().min().unwrap_or_default()
}

/// A number as in UTF-8, which FLAC continues to 36 bits.
fn numbered(writer: &mut BitWriter, number: u64) {
    if number < 0x80 {
        return writer.bits(number, 8);
    }
    let bits = 64 - number.leading_zeros();
    // A number has 6 bits in each of the `more` continuation bytes, and `6 - more` in the first byte.
    let more = (1..=6).find(|more| bits <= 6 * more + (6 - more).min(6)).unwrap_or(6);
    let head = 0xFF00_u64 >> (more + 1) & 0xFF;
    writer.bits(head | number >> (6 * more), 8);
    for place in (0..more).rev() {
        writer.bits(0x80 | number >> (6 * place) & 0x3F, 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_numbers_are_written_as_in_utf8() {
        for number in [0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x1_0000, 0x10_FFFF] {
            let mut writer = BitWriter::default();
            numbered(&mut writer, number);
            if let Some(character) = char::from_u32(number as u32) {
                assert_eq!(writer.bytes, character.to_string().as_bytes(), "{number:x}");
            }
        }
        let mut writer = BitWriter::default();
        numbered(&mut writer, 0xF_FFFF_FFFF);
        assert_eq!(writer.bytes, [0xFE, 0xBF, 0xBF, 0xBF, 0xBF, 0xBF, 0xBF]);
    }
}
