//! [`Sequence`]: the number of a datagram.

use std::fmt;
use std::str::FromStr;

/// Most bytes before the samples of a datagram.
pub const MOST_HEADER_BYTES: u32 = 1024;

/// The place and format of a datagram's number. Numbers increase by one; 0 follows the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// 1, 2, 4 or 8.
    bytes: u32,
    big_endian: bool,
    /// Of its first byte.
    offset_bytes: u32,
}

impl Sequence {
    /// The offset after its last byte.
    pub fn end(self) -> u32 {
        self.offset_bytes + self.bytes
    }

    /// The bits of a number.
    pub(super) fn bits(self) -> u8 {
        (self.bytes * 8) as u8
    }

    /// The number in a datagram; `None` if it is too short.
    pub(super) fn read(self, datagram: &[u8]) -> Option<u64> {
        let bytes = datagram.get(self.offset_bytes as usize..self.end() as usize)?;
        let append = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(if self.big_endian { bytes.iter().fold(0, append) } else { bytes.iter().rev().fold(0, append) })
    }

    /// The number of the datagram after the one with this number.
    pub(super) fn next(self, number: u64) -> u64 {
        number.wrapping_add(1) & self.highest()
    }

    /// The highest number.
    pub(super) fn highest(self) -> u64 {
        u64::MAX >> (64 - self.bytes * 8)
    }

    /// Distance from one number forward to another, at most one turn.
    pub(super) fn forward(self, number: u64, of: u64) -> u64 {
        number.wrapping_sub(of) & self.highest()
    }

    /// Signed distance of a number from another; negative if it is behind. Numbers wrap to 0 after the highest.
    pub(super) fn ahead(self, number: u64, of: u64) -> i64 {
        let unused = 64 - self.bytes * 8;
        (number.wrapping_sub(of) << unused) as i64 >> unused
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.big_endian { "be" } else { "le" };
        write!(f, "u{}{order}", self.bytes * 8)?;
        if self.offset_bytes > 0 { write!(f, "@{}", self.offset_bytes) } else { Ok(()) }
    }
}

impl FromStr for Sequence {
    type Err = &'static str;

    /// Reads `u32be`, `u16le@4`, `u8`.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        let (word, offset) = text.split_once('@').unwrap_or((text, "0"));
        let offset_bytes = offset.parse().ok().filter(|offset| *offset <= MOST_HEADER_BYTES - 8);
        let offset_bytes = offset_bytes.ok_or("the number's place is byte 0 to 1016")?;
        let (bytes, big_endian) = match word {
            "u8" | "u8le" => (1, false),
            "u16le" => (2, false),
            "u32le" => (4, false),
            "u64le" => (8, false),
            "u8be" => (1, true),
            "u16be" => (2, true),
            "u32be" => (4, true),
            "u64be" => (8, true),
            _ => return Err("a number is u8, u16, u32 or u64, then le or be"),
        };
        Ok(Self { bytes, big_endian, offset_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_where_they_are_and_compared_over_the_end() {
        let datagram = [0, 1, 2, 3, 4, 5, 6, 7, 8];
        let reads = |text: &str, number| {
            assert_eq!(text.parse::<Sequence>().expect(text).read(&datagram), number, "{text}");
        };
        reads("u8@3", Some(3));
        reads("u16le@1", Some(0x0201));
        reads("u32be@1", Some(0x0102_0304));
        reads("u64be@1", Some(0x0102_0304_0506_0708));
        reads("u64be@2", None);
        let byte = "u8".parse::<Sequence>().expect("a number");
        assert_eq!((byte.ahead(2, 250), byte.ahead(250, 2), byte.ahead(7, 7)), (8, -8, 0));
        let long = "u64le".parse::<Sequence>().expect("a number");
        assert_eq!((long.ahead(0, u64::MAX), long.ahead(u64::MAX, 0)), (1, -1));
        for wrong in ["", "u32", "u24be", "i32le", "u32be@", "u32be@-1", "u32be@1017", "u32be@4@4"] {
            assert!(wrong.parse::<Sequence>().is_err(), "{wrong}");
        }
    }
}
