//! [`BitWriter`] and [`BitReader`]: bits in bytes, the highest first, and the checksums of FLAC.

/// Appends bits to bytes.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    pub(super) bytes: Vec<u8>,
    /// Bits that fill no byte yet, in the lowest places.
    pending: u64,
    count: u32,
}

impl BitWriter {
    /// Goes on after these bytes.
    pub(super) fn after(bytes: Vec<u8>) -> Self {
        Self { bytes, pending: 0, count: 0 }
    }

    /// Appends the lowest `count` bits of a value, at most 56.
    pub(super) fn bits(&mut self, value: u64, count: u32) {
        debug_assert!(count <= 56);
        self.pending = self.pending << count | (value & ((1 << count) - 1));
        self.count += count;
        while self.count >= 8 {
            self.count -= 8;
            self.bytes.push((self.pending >> self.count) as u8);
        }
    }

    /// Appends so many zeros and a one.
    pub(super) fn unary(&mut self, zeros: u64) {
        let mut left = zeros;
        while left >= 32 {
            self.bits(0, 32);
            left -= 32;
        }
        self.bits(1, left as u32 + 1);
    }

    /// Fills the last byte with zeros.
    pub(super) fn align(&mut self) {
        if self.count > 0 {
            self.bits(0, 8 - self.count);
        }
    }
}

/// Takes bits from the front of bytes.
#[derive(Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    /// Bytes that are in `cache`, or were.
    at: usize,
    /// The next bits, in the highest places; zeros below.
    cache: u64,
    count: u32,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, cache: 0, count: 0 }
    }

    fn refill(&mut self) {
        while self.count <= 56 {
            let Some(byte) = self.bytes.get(self.at) else { break };
            self.cache |= u64::from(*byte) << (56 - self.count);
            (self.at, self.count) = (self.at + 1, self.count + 8);
        }
    }

    fn drop(&mut self, count: u32) {
        self.cache = self.cache.checked_shl(count).unwrap_or(0);
        self.count -= count;
    }

    /// The next `count` bits, from 1 to 56; `None` beyond the end.
    fn some(&mut self, count: u32) -> Option<u64> {
        if self.count < count {
            self.refill();
        }
        let value = (self.count >= count).then(|| self.cache >> (64 - count))?;
        self.drop(count);
        Some(value)
    }

    /// The next `count` bits, at most 56; `None` beyond the end.
    pub(super) fn bits(&mut self, count: u32) -> Option<u64> {
        if count == 0 { Some(0) } else { self.some(count) }
    }

    /// The next `count` bits, from 1 to 56, as a number with a sign; `None` beyond the end.
    pub(super) fn signed(&mut self, count: u32) -> Option<i64> {
        let shift = 64 - count;
        self.some(count).map(|value| (value << shift).cast_signed() >> shift)
    }

    /// The number of zeros before the next one; `None` beyond the end.
    pub(super) fn unary(&mut self) -> Option<u64> {
        let mut zeros = 0;
        loop {
            let leading = self.cache.leading_zeros();
            if leading < self.count {
                self.drop(leading + 1);
                return Some(zeros + u64::from(leading));
            }
            zeros += u64::from(self.count);
            self.drop(self.count);
            self.refill();
            if self.count == 0 {
                return None;
            }
        }
    }

    /// Takes the rest of a byte, which must be zeros. Returns how many bytes were taken; `None` if there is a one.
    pub(super) fn align(&mut self) -> Option<usize> {
        let rest = self.count % 8;
        (self.bits(rest)? == 0).then(|| self.at - self.count as usize / 8)
    }
}

/// CRC-8 of a frame's header: polynomial 0x07.
pub(super) fn crc8(bytes: &[u8]) -> u8 {
    bytes
        .iter()
        .fold(0, |crc, byte| (0..8).fold(crc ^ byte, |crc, _| if crc & 0x80 == 0 { crc << 1 } else { crc << 1 ^ 0x07 }))
}

/// CRC-16 of a frame: polynomial 0x8005.
pub(super) fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0_u16, |crc, byte| crc << 8 ^ CRC16[usize::from((crc >> 8) as u8 ^ byte)])
}

const CRC16: [u16; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = (index as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x8005 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_fill_bytes_from_the_highest_on() {
        let mut writer = BitWriter::default();
        writer.bits(0b101, 3);
        writer.unary(6);
        writer.unary(70);
        writer.bits(0x1234_5678_9ABC, 48);
        writer.align();
        let mut expected = vec![0b1010_0000, 0b0100_0000];
        expected.extend([0; 8]);
        let text: String = writer.bytes.iter().map(|byte| format!("{byte:08b}")).collect();
        let ones = format!("101{}1{}1{:048b}", "0".repeat(6), "0".repeat(70), 0x1234_5678_9ABC_u64);
        assert!(text.starts_with(&ones) && text.len() == ones.len().next_multiple_of(8), "{text}");
        assert!(writer.bytes.starts_with(&expected[..2]));
    }

    #[test]
    fn what_is_written_is_read_and_nothing_behind_the_end() {
        let mut writer = BitWriter::default();
        let unary = [0, 7, 8, 63, 64, 65, 200];
        for (count, zeros) in (1..=56).zip(unary.into_iter().cycle()) {
            writer.bits(0x00A5_5A12_3456_789A, count);
            writer.unary(zeros);
            writer.bits((-1_i64).cast_unsigned(), count);
        }
        writer.align();
        let mut reader = BitReader::new(&writer.bytes);
        for (count, zeros) in (1..=56).zip(unary.into_iter().cycle()) {
            assert_eq!(reader.bits(count), Some(0x00A5_5A12_3456_789A & ((1 << count) - 1)));
            assert_eq!((reader.bits(0), reader.unary(), reader.signed(count)), (Some(0), Some(zeros), Some(-1)));
        }
        assert_eq!(reader.align(), Some(writer.bytes.len()));
        assert_eq!((reader.bits(1), reader.unary()), (None, None));
        let mut short = BitReader::new(&[0, 1]);
        assert_eq!((short.bits(17), short.bits(4), short.align(), short.align()), (None, Some(0), Some(1), Some(1)));
        let mut ones = BitReader::new(&[1]);
        assert_eq!((ones.bits(1), ones.align()), (Some(0), None));
    }

    /// The check values of the catalogue of CRCs (CRC-8/SMBUS, CRC-16/UMTS).
    #[test]
    fn the_checksums_are_those_of_the_catalogue() {
        assert_eq!((crc8(b"123456789"), crc16(b"123456789")), (0xF4, 0xFEE8));
    }
}
