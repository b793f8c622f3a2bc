//! Checks of the fuzz targets: one function for each parser of foreign files, packets and answers.
//!
//! A function takes any bytes. It panics if the parser panics, contradicts itself, or accepts what it cannot write
//! again. The targets in `fuzz/targets` hand the fuzzer's inputs to these functions. They are a crate of the main
//! workspace, so every change of a parser is compiled with its check, and the ordinary tests run each check on its
//! seeds (`tests/seeds.rs`).

pub mod archive;
pub mod card;
pub mod channels;
pub mod command;
pub mod compressed;
pub mod datagrams;
pub mod description;
pub mod http;
pub mod index;
pub mod journal;
pub mod requirement;
pub mod sheet;
pub mod sigmf;
pub mod sound;
pub mod state;
pub mod tap;
pub mod topology;

/// A check of any bytes.
pub type Check = fn(&[u8]);

/// All checks with the names of their targets. A target names its own: so it holds no code of the others, whose edges
/// the fuzzer would look through after each input.
pub const CHECKS: &[(&str, Check)] = &[
    ("archive", archive::check),
    ("card", card::check),
    ("channels", channels::check),
    ("command", command::check),
    ("compressed", compressed::check),
    ("datagrams", datagrams::check),
    ("description", description::check),
    ("http", http::check),
    ("index", index::check),
    ("journal", journal::check),
    ("requirement", requirement::check),
    ("sheet", sheet::check),
    ("sigmf", sigmf::check),
    ("sound", sound::check),
    ("state", state::check),
    ("tap", tap::check),
    ("topology", topology::check),
];

/// The bytes as text; the parsers of text get no others.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Takes bytes of an input from its front; zeros follow its end.
struct Input<'b>(&'b [u8]);

impl<'b> Input<'b> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// At most `most` bytes.
    fn take(&mut self, most: usize) -> &'b [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    fn long(&mut self) -> u64 {
        let mut bytes = [0; 8];
        let taken = self.take(8);
        bytes[..taken.len()].copy_from_slice(taken);
        u64::from_le_bytes(bytes)
    }
}

/// Gives 64-byte records with a checksum the magic, the number and the checksum of their places.
fn seal(records: &mut [u8], magic: [u8; 4]) {
    for (number, record) in records.chunks_exact_mut(64).enumerate() {
        record[..4].copy_from_slice(&magic);
        record[8..16].copy_from_slice(&(number as u64).to_le_bytes());
        let crc = crc32c::crc32c(&record[8..]);
        record[4..8].copy_from_slice(&crc.to_le_bytes());
    }
}
