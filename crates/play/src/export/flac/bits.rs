//! [`BitWriter`]: bits in bytes, the highest first, and the checksums of FLAC.

/// Appends bits to bytes.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    pub(super) bytes: Vec<u8>,
    /// Bits that fill no byte yet, in the lowest places.
    pending: u64,
    count: u32,
}

impl BitWriter {
    /// Continues after these bytes.
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

    /// Appends `zeros` zeros and a one.
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

    /// The check values of the catalogue of CRCs (CRC-8/SMBUS, CRC-16/UMTS).
    #[test]
    fn the_checksums_are_those_of_the_catalogue() {
        assert_eq!((crc8(b"123456789"), crc16(b"123456789")), (0xF4, 0xFEE8));
    }
}
