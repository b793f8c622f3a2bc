//! Datagrams as a source.

use std::fmt;
use std::str::FromStr;

/// Most bytes before the samples of a datagram.
pub const MOST_HEADER_BYTES: u32 = 1024;

/// Where a datagram has its number, and how it is written. Each datagram's number is one more than that of the one before it;
/// after the highest comes 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// 1, 2, 4 or 8.
    bytes: u32,
    big_endian: bool,
    /// Of its first byte.
    offset_bytes: u32,
}

impl Sequence {
    /// The first byte behind it.
    pub fn end(self) -> u32 {
        self.offset_bytes + self.bytes
    }

    /// The number in a datagram; `None` if it is too short.
    fn read(self, datagram: &[u8]) -> Option<u64> {
        let bytes = datagram.get(self.offset_bytes as usize..self.end() as usize)?;
        let append = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(if self.big_endian { bytes.iter().fold(0, append) } else { bytes.iter().rev().fold(0, append) })
    }

    /// How far a number is ahead of another; negative if it is behind. Numbers start again at 0 after the highest.
    fn ahead(self, number: u64, of: u64) -> i64 {
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
