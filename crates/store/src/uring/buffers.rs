//! Registers the attached memories with the kernel, so that it need not look up their pages for each operation.
//!
//! One buffer has at most 1 GiB. A longer memory is registered as several buffers that overlap, so that every piece up
//! to [`LONGEST_PIECE`] lies wholly in one of them. Longer pieces may be used unregistered. Each buffer is registered
//! by its own call, because a call for several succeeds even if the kernel took only some. A buffer that the kernel
//! refuses is used unregistered, and [`Buffers::fallback`] states the number of such bytes.

#![expect(unsafe_code, reason = "registers memories with the kernel")]

use io_uring::IoUring;

use crate::{Fallback, LEFT_OUT, MemoryId, Piece};
use hairspring_ring::memory::Memory;
use hairspring_ring::units::Bytes;

/// The most that the kernel takes as one buffer.
const LONGEST: usize = 1 << 30;

/// Pieces up to this length lie wholly in one buffer.
const LONGEST_PIECE: usize = 64 << 20;

/// Buffers in the table, each of 1 GiB or less. Further memories are used unregistered.
const SLOTS: u32 = 256;

#[derive(Debug)]
struct Chunk {
    memory: MemoryId,
    begin: usize,
    end: usize,
}

#[derive(Debug)]
pub(crate) struct Buffers {
    chunks: Vec<Chunk>,
    /// Whether any memory was attached; before that there is nothing to report.
    asked: bool,
    refused: Option<String>,
    /// [`LONGEST`] and [`LONGEST_PIECE`], or less in a test.
    longest: (usize, usize),
}

impl Buffers {
    pub(super) fn new(ring: &IoUring, wanted: bool) -> Self {
        let refused = if wanted {
            let table = ring.submitter().register_buffers_sparse(SLOTS);
            table.err().map(|error| format!("no table of buffers from this kernel (5.19 or later has it): {error}"))
        } else {
            Some(LEFT_OUT.to_owned())
        };
        Self { chunks: Vec::new(), asked: false, refused, longest: (LONGEST, LONGEST_PIECE) }
    }

    /// Registers a memory. It must stay mapped until the ring is gone or nothing is under way any more.
    pub(super) fn attach(&mut self, ring: &IoUring, id: MemoryId, memory: &Memory) {
        self.asked = true;
        if self.refused.is_some() {
            return;
        }
        let first = self.chunks.len();
        let new: Vec<Chunk> =
            cut(memory.reach(), self.longest).map(|(begin, end)| Chunk { memory: id, begin, end }).collect();
        if first + new.len() > SLOTS as usize {
            self.refused = Some(format!("more than {SLOTS} GiB of memory"));
            return;
        }
        for (index, chunk) in new.into_iter().enumerate() {
            let vector = libc::iovec {
                iov_base: memory.address().as_ptr().wrapping_add(chunk.begin).cast(),
                iov_len: chunk.end - chunk.begin,
            };
            let slot = (first + index) as u32;
            // SAFETY: the vector describes a part of the memory, within its reach. The store keeps the memory until
            // nothing is under way; the kernel itself holds the pages that are registered.
            if let Err(error) = unsafe { ring.submitter().register_buffers_update(slot, &[vector], None) } {
                let remedy = match error.raw_os_error() {
                    Some(libc::ENOMEM) => "; raise the limit on locked memory (ulimit -l)",
                    _ => "",
                };
                // A mirrored memory has twice as many addresses as bytes, so its parts are stated as parts of its
                // addresses.
                let what =
                    format!("{} of {} addresses of memory", Bytes(chunk.begin as u64), Bytes(memory.reach() as u64));
                let what = if index == 0 { format!("{} of memory", memory.size()) } else { format!("only {what}") };
                self.refused = Some(format!("{what}: {error}{remedy}"));
                return;
            }
            self.chunks.push(chunk);
        }
    }

    /// The buffer in which a piece lies wholly.
    pub(super) fn find(&self, piece: Piece) -> Option<u16> {
        let end = piece.at + piece.length;
        let holds = |chunk: &Chunk| chunk.memory == piece.memory && chunk.begin <= piece.at && end <= chunk.end;
        self.chunks.iter().position(holds).and_then(|index| u16::try_from(index).ok())
    }

    #[cfg(test)]
    pub(crate) fn cut_shorter(&mut self, longest: usize, longest_piece: usize) {
        self.longest = (longest, longest_piece);
    }

    pub(super) fn fallback(&self) -> Option<Fallback> {
        let fallback = Fallback { name: "registered_buffers", refused: self.refused.clone() };
        self.asked.then_some(fallback)
    }
}

/// Cuts a length into overlapping ranges that the kernel takes.
fn cut(length: usize, (longest, longest_piece): (usize, usize)) -> impl Iterator<Item = (usize, usize)> {
    let step = longest - longest_piece;
    let last = length.saturating_sub(longest_piece).div_ceil(step).max(1);
    (0..last).map(move |index| (index * step, (index * step + longest).min(length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_of_a_long_memory_lies_wholly_in_one_buffer() {
        let gib = 1_usize << 30;
        for length in [1, 4096, gib - 1, gib, gib + 1, gib + 4096, 2 * gib, 5 * gib + 12288, 16 * gib] {
            let ranges: Vec<_> = cut(length, (LONGEST, LONGEST_PIECE)).collect();
            assert_eq!(ranges[0].0, 0);
            assert_eq!(ranges[ranges.len() - 1].1, length, "{length}");
            assert!(ranges.iter().all(|(begin, end)| begin < end && end - begin <= gib), "{ranges:?}");
            // The pieces that matter are those that begin just before the next range does.
            for pair in ranges.windows(2) {
                assert!(pair[0].1 - pair[1].0 >= LONGEST_PIECE - 1, "{pair:?}");
            }
        }
    }
}
