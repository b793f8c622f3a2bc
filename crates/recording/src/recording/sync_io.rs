//! Reads and writes whole files and single pieces through a [`Store`], one operation at a time: for metadata, journals
//! and mending, where order matters and speed does not.

use hairspring_machine::Instant;
use std::path::Path;

use super::RecordingError;
use hairspring_ring::memory::Memory;
use hairspring_ring::notifier::Notifier;
use hairspring_ring::units::Bytes;
use hairspring_store::lent_memory::{Scratch, pages_for};
use hairspring_store::{Completion, Errno, FileId, MemoryId, Op, Open, Piece, Store, StoreError, Token};

/// Largest metadata that are read or changed: some ten million captures.
pub const MOST_META: Bytes = Bytes::gib(1);

/// Bytes moved at once; a multiple of every alignment that disks require.
pub const PIECE: Bytes = Bytes::mib(1);

/// The buffer for small files; it also suits every alignment.
const SMALL: Bytes = Bytes::kib(64);

/// A store and a buffer attached to it.
pub struct BlockingStore<'a> {
    /// The store, for calls that do not block here.
    pub store: &'a mut dyn Store,
    scratch: Scratch,
    memory: MemoryId,
    notifier: Notifier,
    /// The size of the buffer.
    size: Bytes,
    completions: Vec<Completion>,
}

impl<'a> BlockingStore<'a> {
    /// With a buffer of [`PIECE`].
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(store: &'a mut dyn Store) -> Result<Self, RecordingError> {
        Self::with(store, PIECE)
    }

    /// With a small buffer, for small files.
    pub fn small(store: &'a mut dyn Store) -> Result<Self, RecordingError> {
        Self::with(store, SMALL)
    }

    fn with(store: &'a mut dyn Store, size: Bytes) -> Result<Self, RecordingError> {
        let (scratch, memory, notifier) = buffer(store, size)?;
        Ok(Self { store, scratch, memory, notifier, size, completions: Vec::new() })
    }

    /// Reads a whole file of at most `most` bytes.
    pub fn read_whole(&mut self, path: &Path, most: Bytes) -> Result<Vec<u8>, RecordingError> {
        let file = self.store.open(path, Open::ReadData)?;
        let size = self.store.facts(file).size;
        if size > most.0 {
            return Err(RecordingError::TooLarge(path.to_owned(), Bytes(size)));
        }
        let mut content = Vec::new();
        while (content.len() as u64) < size {
            // Whole pieces, because of the alignment. The end of the file cuts the last one short.
            let at = content.len() as u64 / self.size.0 * self.size.0;
            let known = content.len() - at as usize;
            let read = self.act(path, "read", Op::Read(file, at, self.piece(self.size)))? as usize;
            if read <= known {
                break;
            }
            content.extend_from_slice(&self.scratch.bytes(0, read)[known..]);
        }
        self.store.close(file);
        Ok(content)
    }

    /// Reads a whole file of any size, piece by piece. A function takes the pieces and returns whether it needs more.
    pub fn read_pieces(&mut self, path: &Path, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), RecordingError> {
        let file = self.store.open(path, Open::ReadData)?;
        let (size, mut at) = (self.store.facts(file).size, 0);
        while at < size {
            let piece = self.read_at(path, file, at, self.size.0)?;
            let (length, goes_on) = (piece.len() as u64, take(piece));
            // Whole pieces, because of the alignment; only the last one is shorter.
            if length < self.size.0 || !goes_on {
                break;
            }
            at += length;
        }
        self.store.close(file);
        Ok(())
    }

    /// Reads a piece of a file, at most the buffer; fewer bytes at its end. `at` is a multiple of the file's alignment.
    pub fn read_at(&mut self, path: &Path, file: FileId, at: u64, length: u64) -> Result<&mut [u8], RecordingError> {
        let alignment = self.store.facts(file).alignment;
        let (mut have, whole) = (0_u64, length.next_multiple_of(alignment).min(self.size.0));
        while have < length {
            let piece = Piece { memory: self.memory, at: have as usize, length: (whole - have) as usize };
            let end = have + self.act(path, "read", Op::Read(file, at + have, piece))?;
            // Keep the aligned part of a short read. If there is none, this is the end of the file.
            let kept = end / alignment * alignment;
            if kept == have {
                have = end;
                break;
            }
            have = kept;
        }
        Ok(self.scratch.bytes(0, have.min(length) as usize))
    }

    /// Writes the beginning of the buffer.
    pub fn write_buffered(&mut self, path: &Path, file: FileId, at: u64, length: u64) -> Result<(), RecordingError> {
        let mut done = 0_u64;
        while done < length {
            let piece = Piece { memory: self.memory, at: done as usize, length: (length - done) as usize };
            match self.act(path, "write", Op::Write(file, at + done, piece))? {
                0 => return Err(failed("write", path, Errno(libc::EIO)).into()),
                written => done += written,
            }
        }
        Ok(())
    }

    /// Writes a few bytes.
    pub fn write(&mut self, path: &Path, file: FileId, mut at: u64, bytes: &[u8]) -> Result<(), RecordingError> {
        for part in bytes.chunks(self.size.0 as usize) {
            self.scratch.bytes(0, part.len()).copy_from_slice(part);
            self.write_buffered(path, file, at, part.len() as u64)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Makes the data of a file durable. Blocks.
    ///
    /// # Errors
    /// The store's.
    pub fn sync(&mut self, path: &Path, file: FileId) -> Result<(), RecordingError> {
        self.act(path, "sync", Op::Sync(file)).map(drop)
    }

    fn piece(&self, length: Bytes) -> Piece {
        Piece { memory: self.memory, at: 0, length: length.0 as usize }
    }

    /// Runs one operation to its end.
    fn act(&mut self, path: &Path, attempted: &str, op: Op) -> Result<u64, RecordingError> {
        self.store.submit(Token(0), op);
        self.store.flush();
        loop {
            self.store.reap(&mut self.completions);
            if let Some(completion) = self.completions.pop() {
                return completion.result.map_err(|errno| failed(attempted, path, errno).into());
            }
            self.store.wait(&self.notifier, Instant::END);
        }
    }
}

fn failed(attempted: &str, path: &Path, errno: Errno) -> StoreError {
    StoreError { attempted: attempted.to_owned(), path: path.to_owned(), errno }
}

/// A buffer that is attached to a store, and a notifier that is never set.
pub fn buffer(store: &mut dyn Store, size: Bytes) -> Result<(Scratch, MemoryId, Notifier), RecordingError> {
    let memory =
        Memory::plain(size, size, pages_for(size)).map_err(|error| RecordingError::Limit(error.to_string()))?;
    let (scratch, id) = Scratch::attached(memory, store);
    let notifier =
        Notifier::new().map_err(|error| RecordingError::Limit(format!("no descriptor for waiting: {error}")))?;
    Ok((scratch, id, notifier))
}
