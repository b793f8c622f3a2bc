//! [`CompressedReads`]: a store that reads the data of compressed recordings as if they were not compressed.
//!
//! **Problem.** Verifying, playing, joining, exports and Python read `x.sigmf-data` through a [`Store`]. A compressed
//! recording has `x.sigmf-data.zst` in its place.
//!
//! **Solution.** A layer above the real store. It opens the compressed file where the plain one does not exist, reads
//! frames from the store below, and completes reads when it is flushed. All other operations go to the store below.
//! Readers see no difference.
//!
//! **Conditions.** Reads of compressed data block in [`Store::flush`]. A frame that does not decompress, or whose
//! checksum is wrong, is the error `EBADMSG` of the reads that need it. Compressed data can neither be mended nor
//! created anew: the error states the remedy. The token 2⁶⁴−1 is reserved for this layer.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use hairspring_machine::Instant;
use hairspring_ring::memory::{Memory, Pages};
use hairspring_ring::notifier::Notifier;
use hairspring_ring::units::Bytes;

use super::frames::{FRAME_BYTES, FrameTable, MOST_PACKED_BYTES};
use super::lent_memory::Scratch;
use super::memories::Memories;
use super::owner::{Holder, OwnError, Ownership, PathFacts, Work};
use super::{
    Completion, Direct, Errno, Fallback, FileFacts, FileId, LentMemory, MemoryId, Op, Open, Piece, Store, StoreError,
    Token,
};

/// The ending of compressed data, appended to the name of the data.
pub const COMPRESSED_ENDING: &str = ".zst";

/// The ids of compressed files begin here; a store opens far fewer files.
const FIRST_ID: u32 = 1 << 31;

/// The token of reads of this layer.
const OWN: Token = Token(u64::MAX);

/// The largest alignment that a file may require; larger ones are refused.
const MOST_ALIGNMENT: usize = 64 * 1024;

/// Bytes read at once: a frame, and up to an alignment more at both ends.
const SCRATCH: usize = (MOST_PACKED_BYTES + 2 * MOST_ALIGNMENT).next_multiple_of(FRAME_BYTES);

/// The compressed file in place of a data file.
pub fn compressed_path(data: &Path) -> PathBuf {
    let mut path = data.as_os_str().to_owned();
    path.push(COMPRESSED_ENDING);
    PathBuf::from(path)
}

/// A store that also reads compressed data.
pub struct CompressedReads<S> {
    below: S,
    memories: Memories,
    /// The ids of the memories in the store below.
    ids: Vec<MemoryId>,
    /// By id; the ids of closed files are reused.
    files: Vec<Option<CompressedFile>>,
    /// The memory for frames, once there is a compressed file.
    scratch: Option<(Scratch, MemoryId, Notifier)>,
    queued: Vec<(Token, usize, u64, Piece)>,
    done: Vec<Completion>,
}

/// An open file, and the frame of it that was decompressed last.
struct CompressedFile {
    path: PathBuf,
    below: FileId,
    table: FrameTable,
    present: Option<usize>,
    bytes: Vec<u8>,
}

impl<S: Store> CompressedReads<S> {
    /// A layer above a store on which nothing was opened or attached.
    pub fn above(below: S) -> Self {
        let (memories, ids, files) = (Memories::default(), Vec::new(), Vec::new());
        Self { below, memories, ids, files, scratch: None, queued: Vec::new(), done: Vec::new() }
    }

    fn file(&self, number: usize) -> &CompressedFile {
        self.files.get(number).and_then(Option::as_ref).expect("a file that this store has opened")
    }

    /// Opens a compressed file.
    fn open_compressed(&mut self, path: PathBuf) -> Result<FileId, StoreError> {
        if self.scratch.is_none() {
            let failed = |error: io::Error| StoreError::new("get memory to decompress", &path, &error);
            let size = Bytes(SCRATCH as u64);
            let memory = Memory::plain(size, size, Pages::Small);
            let memory = memory.map_err(|_| failed(io::Error::from_raw_os_error(libc::ENOMEM)))?;
            let notifier = Notifier::new().map_err(failed)?;
            let (scratch, id) = Scratch::attached(memory, &mut self.below);
            self.scratch = Some((scratch, id, notifier));
        }
        let below = self.below.open(&path, Open::ReadData)?;
        let size = self.below.facts(below).size;
        let mut read = |at, length| {
            let mut bytes = Vec::new();
            while (bytes.len() as u64) < length {
                let piece = (length - bytes.len() as u64).min(FRAME_BYTES as u64);
                bytes.extend_from_slice(self.read_below(below, at + bytes.len() as u64, piece as usize)?);
            }
            Ok(bytes)
        };
        let table = match FrameTable::read(size, &mut read) {
            // No error of the disk: the table is damaged, but the frames may be whole.
            Err(error) if error.raw_os_error().is_none() => FrameTable::find(size, read),
            other => other,
        };
        let table = table.map_err(|error| {
            self.below.close(below);
            let errno = error.raw_os_error().unwrap_or(libc::EBADMSG);
            StoreError::new("read the table of frames of", &path, &io::Error::from_raw_os_error(errno))
        })?;
        let number = self.files.iter().position(Option::is_none).unwrap_or(self.files.len());
        if number == self.files.len() {
            self.files.push(None);
        }
        self.files[number] = Some(CompressedFile { path, below, table, present: None, bytes: Vec::new() });
        Ok(FileId(FIRST_ID + number as u32))
    }

    /// Reads from a file of the store below, and waits for it.
    fn read_below(&mut self, file: FileId, at: u64, length: usize) -> io::Result<&[u8]> {
        let alignment = self.below.facts(file).alignment;
        let from = at / alignment * alignment;
        let before = (at - from) as usize;
        let needed = before + length;
        let whole = needed.next_multiple_of(alignment as usize);
        if whole > SCRATCH {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let mut have = 0;
        while have < needed {
            let memory = self.scratch.as_ref().map(|scratch| scratch.1).unwrap_or(MemoryId(u32::MAX));
            let op = Op::Read(file, from + have as u64, Piece { memory, at: have, length: whole - have });
            let end = have + self.act(op).map_err(|errno| io::Error::from_raw_os_error(errno.0))? as usize;
            // Keep the aligned part of a short read.
            let kept = end / alignment as usize * alignment as usize;
            if kept == have && end < needed {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            have = if kept == have { end } else { kept };
        }
        match &mut self.scratch {
            Some((scratch, ..)) => Ok(&scratch.bytes(0, needed)[before..]),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Runs one operation of the store below to its end. Completions of other operations are kept.
    fn act(&mut self, op: Op) -> Result<u64, Errno> {
        self.below.submit(OWN, op);
        self.below.flush();
        loop {
            self.below.reap(&mut self.done);
            if let Some(own) = self.done.iter().position(|completion| completion.token == OWN) {
                return self.done.remove(own).result;
            }
            if let Some((.., notifier)) = &self.scratch {
                self.below.wait(notifier, Instant::END);
            }
        }
    }

    /// Reads into a piece; fewer bytes at the end of the file.
    fn perform(&mut self, number: usize, at: u64, piece: Piece) -> Result<u64, Errno> {
        let mut moved = 0;
        while moved < piece.length {
            let Some((place, frame)) = self.file(number).table.frame_at(at + moved as u64) else { break };
            if self.file(number).present != Some(place) {
                let file = self.file(number).below;
                let mut bytes =
                    self.files[number].as_mut().map(|file| std::mem::take(&mut file.bytes)).unwrap_or_default();
                let read = self.read_below(file, frame.at, frame.packed_length);
                let read = read.and_then(|packed| frame.decompress(packed, &mut bytes));
                if let Some(file) = &mut self.files[number] {
                    (file.present, file.bytes) = (read.is_ok().then_some(place), bytes);
                }
                read.map_err(|error| Errno(error.raw_os_error().unwrap_or(libc::EBADMSG)))?;
            }
            let bytes = &self.file(number).bytes[(at + moved as u64 - frame.begin) as usize..];
            let length = bytes.len().min(piece.length - moved);
            self.memories.span(Piece { at: piece.at + moved, length, ..piece }).copy_in(&bytes[..length]);
            moved += length;
        }
        Ok(moved as u64)
    }

    /// A piece in the store below.
    fn translated(&self, piece: Piece) -> Piece {
        Piece { memory: self.ids[piece.memory.0 as usize], ..piece }
    }
}

/// The number of a compressed file; `None` for the files of the store below.
fn number_of(file: FileId) -> Option<usize> {
    file.0.checked_sub(FIRST_ID).map(|number| number as usize)
}

/// Whether a file exists. An error of the open does not prove that it does.
fn exists(store: &mut impl Store, path: &Path) -> Result<bool, StoreError> {
    match store.open(path, Open::ReadData) {
        Ok(file) => {
            store.close(file);
            Ok(true)
        }
        // No file has a name that is too long.
        Err(error) if matches!(error.errno.0, libc::ENOENT | libc::ENAMETOOLONG | libc::ENOTDIR) => Ok(false),
        Err(error) => Err(error),
    }
}

impl<S: Store> Store for CompressedReads<S> {
    fn attach(&mut self, memory: LentMemory) -> MemoryId {
        let id = self.memories.attach(memory.again().into());
        self.ids.push(self.below.attach(memory));
        id
    }

    fn open(&mut self, path: &Path, how: Open) -> Result<FileId, StoreError> {
        let compressed = compressed_path(path);
        if matches!(how, Open::CreateData | Open::CreateJournal) && exists(&mut self.below, &compressed)? {
            let exists = io::Error::from_raw_os_error(libc::EEXIST);
            return Err(StoreError::new("create, because there is", &compressed, &exists));
        }
        match (how, self.below.open(path, how)) {
            (Open::ReadData, Err(error)) if error.errno.0 == libc::ENOENT => match self.open_compressed(compressed) {
                Err(second) if matches!(second.errno.0, libc::ENOENT | libc::ENAMETOOLONG) => Err(error),
                other => other,
            },
            (Open::Mend, Err(error)) if error.errno.0 == libc::ENOENT => match exists(&mut self.below, &compressed)? {
                true => Err(StoreError {
                    attempted: "change compressed data, which `hairspring compress --undo` must restore first:"
                        .to_owned(),
                    path: compressed,
                    errno: Errno(libc::EOPNOTSUPP),
                }),
                false => Err(error),
            },
            (_, other) => other,
        }
    }

    fn create_like(&mut self, path: &Path, other: &Path, how: Open) -> Result<FileId, StoreError> {
        self.below.create_like(path, other, how)
    }

    fn close(&mut self, file: FileId) {
        match number_of(file) {
            Some(number) => {
                let below = self.file(number).below;
                self.files[number] = None;
                self.below.close(below);
            }
            None => self.below.close(file),
        }
    }

    fn facts(&self, file: FileId) -> FileFacts {
        match number_of(file) {
            Some(number) => {
                let size = self.file(number).table.size();
                FileFacts { size, alignment: 1, memory_alignment: 1, direct: Direct::No, shared: false }
            }
            None => self.below.facts(file),
        }
    }

    fn data_from(&self, file: FileId, at: u64) -> u64 {
        match number_of(file) {
            None => self.below.data_from(file, at),
            Some(_) => at,
        }
    }

    fn depth(&self) -> usize {
        self.below.depth()
    }

    fn submit(&mut self, token: Token, op: Op) {
        let (Op::Write(file, ..) | Op::Read(file, ..) | Op::Sync(file) | Op::Allocate(file, ..)) = op;
        match (number_of(file), op) {
            (None, Op::Write(file, at, piece)) => self.below.submit(token, Op::Write(file, at, self.translated(piece))),
            (None, Op::Read(file, at, piece)) => self.below.submit(token, Op::Read(file, at, self.translated(piece))),
            (None, op) => self.below.submit(token, op),
            (Some(number), Op::Read(_, at, piece)) => {
                let _ = (self.file(number), self.memories.span(piece));
                self.queued.push((token, number, at, piece));
            }
            // It was opened for reading.
            (Some(_), _) => self.done.push(Completion { token, result: Err(Errno(libc::EBADF)) }),
        }
    }

    fn flush(&mut self) {
        // The disk is busy while frames are decompressed.
        self.below.flush();
        for (token, file, at, piece) in std::mem::take(&mut self.queued) {
            let result = self.perform(file, at, piece);
            self.done.push(Completion { token, result });
        }
    }

    fn reap(&mut self, completions: &mut Vec<Completion>) {
        completions.append(&mut self.done);
        self.below.reap(completions);
    }

    fn wait(&mut self, notifier: &Notifier, until: Instant) {
        self.flush();
        if self.done.is_empty() {
            self.below.wait(notifier, until);
        }
    }

    fn truncate(&mut self, file: FileId, length: u64) -> Result<(), StoreError> {
        match number_of(file) {
            None => self.below.truncate(file, length),
            Some(number) => {
                let (attempted, path) = ("set the length of".to_owned(), self.file(number).path.clone());
                Err(StoreError { attempted, path, errno: Errno(libc::EBADF) })
            }
        }
    }

    fn put(&mut self, path: &Path, content: &[u8]) -> Result<(), StoreError> {
        self.below.put(path, content)
    }

    fn own(&mut self, files: &[PathBuf], work: Work) -> Result<Ownership, OwnError> {
        self.below.own(files, work)
    }

    fn lend(&mut self, ownership: &Ownership) {
        self.below.lend(ownership);
    }

    fn holder(&self, path: &Path) -> Option<Holder> {
        self.below.holder(path)
    }

    fn look(&self, path: &Path) -> Result<PathFacts, StoreError> {
        self.below.look(path)
    }

    fn look_at(&self, file: FileId) -> Result<PathFacts, StoreError> {
        self.below.look_at(number_of(file).map_or(file, |number| self.file(number).below))
    }

    fn remove(&mut self, path: &Path) -> Result<(), StoreError> {
        self.below.remove(path)
    }

    fn discard(&mut self, path: &Path) -> Result<(), StoreError> {
        self.below.discard(path)
    }

    fn names(&mut self, folder: &Path, each: &mut dyn FnMut(&OsStr)) -> Result<(), StoreError> {
        self.below.names(folder, each)
    }

    fn rename(&mut self, from: &Path, to: &Path) -> Result<(), StoreError> {
        self.below.rename(from, to)
    }

    fn sync_folder(&mut self, folder: &Path) -> Result<(), StoreError> {
        self.below.sync_folder(folder)
    }

    fn free_bytes(&self, folder: &Path) -> Option<u64> {
        self.below.free_bytes(folder)
    }

    fn fallbacks(&self) -> Vec<Fallback> {
        self.below.fallbacks()
    }
}
