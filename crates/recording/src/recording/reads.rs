//! [`BlockReads`]: reads blocks from their files into an attached memory, several at once and in any order.
//!
//! A read that is interrupted or cut short is continued. Each read ends once, with all its bytes or with the reason why
//! they are missing. [`proven`] then compares the bytes with their checksum.

use std::fmt;

use hairspring_machine::Instant;
use hairspring_ring::notifier::Notifier;
use hairspring_ring::units::Bytes;

use hairspring_store::{Completion, Errno, FileId, Op, Piece, Store, Token};

/// How many times an interrupted or short read is continued.
const MOST_TRIES: u32 = 16;

/// Why a block is not proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unproven {
    /// The system did not read it.
    Read(Errno),
    /// Its file ends within it.
    Short,
    /// It does not match its checksum.
    Checksum,
}

impl fmt::Display for Unproven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(errno) => write!(f, "it cannot be read: {errno}"),
            Self::Short => f.write_str("its file ends within it"),
            Self::Checksum => f.write_str("it does not match its checksum"),
        }
    }
}

/// Returns the bytes of a block if they match its checksum. Recordings of other programs have no checksums; their bytes
/// are returned as they are.
///
/// # Errors
/// [`Unproven::Checksum`].
pub fn proven(bytes: &[u8], crc: Option<u32>) -> Result<&[u8], Unproven> {
    match crc {
        Some(crc) if crc != crc32c::crc32c(bytes) => Err(Unproven::Checksum),
        _ => Ok(bytes),
    }
}

/// Reverses the bytes of each sample; 1 byte has no order.
pub fn turned(bytes: &mut [u8], sample: usize) {
    match sample {
        2 => bytes.as_chunks_mut::<2>().0.iter_mut().for_each(|sample| sample.reverse()),
        4 => bytes.as_chunks_mut::<4>().0.iter_mut().for_each(|sample| sample.reverse()),
        8 => bytes.as_chunks_mut::<8>().0.iter_mut().for_each(|sample| sample.reverse()),
        _ => {}
    }
}

/// A read to be made.
#[derive(Clone, Copy, Debug)]
pub struct BlockRead {
    /// The file and the offset at which reading begins.
    pub file: FileId,
    /// A multiple of the alignment.
    pub at: u64,
    /// The file requires offsets and lengths to be multiples of this.
    pub alignment: u64,
    /// The destination; its length is a multiple of the alignment.
    pub piece: Piece,
    /// Number of bytes needed; the file may end after them.
    pub needed: u64,
}

/// The reads under way. The caller counts them, does not touch their pieces until they end, and flushes the store.
#[derive(Debug, Default)]
pub struct BlockReads {
    /// For each read the missing part, and how many times it was continued without progress.
    reads: Vec<(Token, BlockRead, u32)>,
    completions: Vec<Completion>,
    read: Bytes,
}

impl BlockReads {
    /// Queues a read.
    pub fn begin(&mut self, store: &mut dyn Store, token: Token, read: BlockRead) {
        self.reads.push((token, read, 0));
        store.submit(token, Op::Read(read.file, read.at, read.piece));
    }

    /// Returns the next read that has ended; does not wait.
    pub fn next_ended(&mut self, store: &mut dyn Store) -> Option<(Token, Result<(), Unproven>)> {
        if self.completions.is_empty() {
            store.reap(&mut self.completions);
            self.completions.reverse();
        }
        while let Some(Completion { token, result }) = self.completions.pop() {
            let Some(number) = self.reads.iter().position(|read| read.0 == token) else { continue };
            let (_, read, tries) = &mut self.reads[number];
            let length = result.unwrap_or(0);
            self.read.0 += length;
            // Keep the aligned part of a short read.
            let kept = length / read.alignment * read.alignment;
            *tries = if kept > 0 { 0 } else { *tries + 1 };
            let ended = match result {
                Ok(_) if length >= read.needed => Ok(()),
                Err(Errno(libc::EINTR | libc::EAGAIN)) | Ok(1..) if *tries <= MOST_TRIES => {
                    (read.at, read.needed) = (read.at + kept, read.needed - kept);
                    (read.piece.at, read.piece.length) =
                        (read.piece.at + kept as usize, read.piece.length - kept as usize);
                    store.submit(token, Op::Read(read.file, read.at, read.piece));
                    store.flush();
                    continue;
                }
                Ok(_) => Err(Unproven::Short),
                Err(errno) => Err(Unproven::Read(errno)),
            };
            self.reads.swap_remove(number);
            return Some((token, ended));
        }
        None
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.reads.is_empty()
    }

    /// All bytes that were read.
    pub fn read(&self) -> Bytes {
        self.read
    }

    /// Waits until nothing is under way. Until then the disk writes into the memory.
    pub fn abandon(&mut self, store: &mut dyn Store, notifier: &Notifier) {
        store.flush();
        loop {
            while self.next_ended(store).is_some() {}
            if self.is_idle() {
                return;
            }
            store.wait(notifier, Instant::END);
            notifier.clear();
        }
    }
}
