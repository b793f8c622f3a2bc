//! [`compress`] and [`restore`]: the data of a closed recording as zstd or FLAC, and back, bit by bit.
//!
//! ```text
//! 1  what an interrupted call left is removed
//! 2  the other file is written under a temporary name, and synced
//! 3  both are read back from the disk, and every byte is compared
//! 4  the metadata say that the samples may be compressed       (restoring: last)
//! 5  the other file gets its name, and the folder is synced
//! 6  the first file is removed, and the folder is synced
//! ```
//!
//! Each step may be interrupted, and the call can be repeated. After step 5 both files exist; readers take the one that is not compressed. Then
//! the next call reads it once more, and goes on only if every block matches its checksum.
//!
//! Journal and metadata describe the samples as before; of the metadata only the version differs, so that a program that knows no compression
//! refuses them, instead of finding all samples lost. Every reader of this crate reads a compressed recording; other programs need [`restore`] or
//! `zstd --decompress` first, or read the samples as FLAC. The sums in the collection of a series are renewed by [`renew_sums`](crate::series::collection::renew_sums).
//!
//! **Beside retention.** A recorder may delete the segment meanwhile. What was made of it is removed then, and the call fails.

use std::path::{Path, PathBuf};

use hairspring_ring::units::Bytes;

use super::verify::{ReadProgress, VerifyOptions, verify};
use crate::recording::blocking::{BlockingStore, MOST_META, PIECE};
use crate::recording::{Files, Member, Recording, RecordingError};
use crate::sigmf::restated;
use crate::store::compressed::{Compression, compressed_path, compressed_paths};
use crate::store::flac_frames::FlacWriter;
use crate::store::frames::{FRAME_BYTES, FrameWriter};
use crate::store::{FileId, Open, Store, StoreError, remove_if_there};

/// zstd's usual level.
pub const USUAL_LEVEL: i32 = 3;

/// The ending of files that are not whole yet.
const PART_ENDING: &str = ".part";

/// What to do where FLAC cannot hold the samples.
const TAKE_ZSTD: &str = "compress it by zstd, without FLAC";

/// Why a recording without an end is refused.
const OPEN: &str = "the recording is still being written, or was cut off: `recover` mends it";

/// How [`compress`] compresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// By zstd, at a level from 1 to 19: any data.
    Zstd(i32),
    /// As FLAC, which players and audio libraries read: integers of 8, 16 or 32 bits, 1 to 8 channels, whole rates of 1 to 1,048,575 Hz.
    Flac,
}

impl Packing {
    /// The kind of file that it makes.
    pub fn compression(self) -> Compression {
        match self {
            Self::Zstd(_) => Compression::Zstd,
            Self::Flac => Compression::Flac,
        }
    }
}

/// What [`compress`] or [`restore`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compressed {
    /// The files that hold the data now, one for each member.
    pub files: Vec<PathBuf>,
    /// Bytes of samples.
    pub plain: Bytes,
    /// Bytes of the compressed files.
    pub packed: Bytes,
}

impl Compressed {
    /// Adds what was done with another recording.
    pub fn add(&mut self, other: Self) {
        self.files.extend(other.files);
        self.plain.0 += other.plain.0;
        self.packed.0 += other.packed.0;
    }
}

/// Compresses the data files of a closed recording. Removes each when its compressed file has proved to hold the same bytes. Members that are
/// compressed already, by any method, are left as they are. Blocks as long as that takes. `store` is one of [`best`](crate::store::best).
///
/// # Errors
/// The recording is still being written, not in order, incomplete or of another program; FLAC cannot hold its samples; a file cannot be read,
/// written or removed; or the compressed bytes are not the same ([`RecordingError::Limit`]). In each case the data files that were not replaced yet stay.
pub fn compress(
    store: &mut dyn Store,
    recording: &Recording,
    method: Packing,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Compressed, RecordingError> {
    check(store, recording)?;
    if method == Packing::Flac {
        recording.members().iter().try_for_each(|member| flac_writer(recording, member, 1).map(drop))?;
    }
    let mut steps = Steps::new(store, recording, progress)?;
    for member in recording.members() {
        let data = Files::of(&member.base).data;
        let part = part_of(&data);
        steps.clear(&data)?;
        let packed = if let Some(plain) = steps.open(&data, Open::Mend)? {
            steps.disk.store.close(plain);
            let packed = compressed_path(&data, method.compression());
            // An interrupted call by another method had not removed this one; `check` has proved it.
            for other in compressed_paths(&data).iter().filter(|other| **other != packed) {
                remove_if_there(steps.disk.store, other)?;
            }
            let packing = steps.pack(recording, member, &compressed_path(&part, method.compression()), method);
            let packing = packing.and_then(|()| {
                steps.compare(&data, &part, member.data_bytes)?;
                steps.restate(&member.base, Some(method.compression()))?;
                steps.replace(&compressed_path(&part, method.compression()), &packed, &data)
            });
            steps.settled(packing, &data)?;
            packed
        } else {
            let (compression, packed, _) = steps.compressed(&data)?;
            steps.restate(&member.base, Some(compression))?;
            packed
        };
        steps.done.packed.0 += steps.size(&packed)?;
        steps.done.files.push(packed);
    }
    Ok(steps.done)
}

/// Restores the data files of a compressed recording. Removes each compressed file when the other one has proved to hold the same bytes. Members
/// that are not compressed are left as they are. Blocks as long as that takes. `store` is one of [`best`](crate::store::best).
///
/// # Errors
/// As [`compress`].
pub fn restore(
    store: &mut dyn Store,
    recording: &Recording,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Compressed, RecordingError> {
    check(store, recording)?;
    let mut steps = Steps::new(store, recording, progress)?;
    for member in recording.members() {
        let data = Files::of(&member.base).data;
        let part = part_of(&data);
        steps.clear(&data)?;
        if let Ok((_, packed, size)) = steps.compressed(&data) {
            steps.done.packed.0 += size;
            let whole = steps.open(&data, Open::Mend).ok().flatten();
            if let Some(plain) = whole {
                // An interrupted call had not removed the other file; `check` has proved this one.
                steps.disk.store.close(plain);
                steps.gone(&packed)?;
            } else {
                let unpacking = steps.unpack(&data, &packed, &part).and_then(|()| {
                    steps.compare(&data, &part, member.data_bytes)?;
                    steps.replace(&part, &data, &packed)
                });
                steps.settled(unpacking, &data)?;
            }
        }
        steps.restate(&member.base, None)?;
        steps.done.files.push(data);
    }
    Ok(steps.done)
}

/// The files in which the samples of a base path can be, and what interrupted calls may have left of them.
pub(crate) fn data_files(base: &Path) -> [PathBuf; 6] {
    let data = Files::of(base).data;
    let part = part_of(&data);
    let ([zstd_part, flac_part], [zstd, flac]) = (compressed_paths(&part), compressed_paths(&data));
    [zstd_part, flac_part, part, zstd, flac, data]
}

/// Writes a member's data as FLAC, behind a head that ends at a multiple of `alignment`.
fn flac_writer(recording: &Recording, member: &Member, alignment: u64) -> Result<FlacWriter, RecordingError> {
    FlacWriter::new(recording, member, alignment).map_err(|why| RecordingError::Limit(format!("{why}: {TAKE_ZSTD}")))
}

fn part_of(data: &Path) -> PathBuf {
    let mut path = data.as_os_str().to_owned();
    path.push(PART_ENDING);
    path.into()
}

/// Refuses recordings that are not closed and in order. Where a file exists both compressed and not, reads the one that is not.
fn check(store: &mut dyn Store, recording: &Recording) -> Result<(), RecordingError> {
    recording.require_members()?;
    let refused = |why: &str| Err(RecordingError::Limit(why.to_owned()));
    match (recording.is_foreign(), recording.ended(), recording.faults().first()) {
        (true, ..) => return refused("another program wrote this recording, and may not read it compressed"),
        (_, None, _) => return refused(OPEN),
        (.., Some(fault)) => return refused(&format!("the recording is not in order ({fault}): recover it first")),
        _ => {}
    }
    for member in recording.members() {
        // The journal ends before the metadata are written.
        if member.closing.is_none() {
            return refused(OPEN);
        }
        let data = Files::of(&member.base).data;
        let mut there = Vec::new();
        for path in compressed_paths(&data).into_iter().chain([data.clone()]) {
            match store.open(&path, Open::Mend) {
                Ok(file) => {
                    store.close(file);
                    there.push(path);
                }
                Err(error) if matches!(error.errno.0, libc::ENOENT | libc::EOPNOTSUPP) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if there.len() > 1 && there.contains(&data) {
            let verified = verify(store, recording, VerifyOptions::default(), &mut |_| {})?;
            if verified.damaged > 0 || verified.missing.0 > 0 {
                return refused(&format!(
                    "{} exists beside {}, and has damaged blocks: move it away, and verify the recording again",
                    data.display(),
                    there[0].display()
                ));
            }
            break;
        }
    }
    Ok(())
}

/// The steps, and what they have done.
struct Steps<'a> {
    disk: BlockingStore<'a>,
    done: Compressed,
    progress: ReadProgress,
    show: &'a mut dyn FnMut(ReadProgress),
}

impl<'a> Steps<'a> {
    fn new(
        store: &'a mut dyn Store,
        recording: &Recording,
        show: &'a mut dyn FnMut(ReadProgress),
    ) -> Result<Self, RecordingError> {
        let plain = Bytes(recording.members().iter().map(|member| member.data_bytes).sum());
        let done = Compressed { plain, ..Compressed::default() };
        // Each byte is read to write it, and to compare it.
        let progress = ReadProgress { done: Bytes(0), total: Bytes(2 * plain.0) };
        Ok(Self { disk: BlockingStore::new(store)?, done, progress, show })
    }

    /// Opens a file; `None` if there is none.
    fn open(&mut self, path: &Path, how: Open) -> Result<Option<FileId>, RecordingError> {
        match self.disk.store.open(path, how) {
            Ok(file) => Ok(Some(file)),
            // Data that are compressed are not changed: there is no other file.
            Err(error) if matches!(error.errno.0, libc::ENOENT | libc::EOPNOTSUPP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn size(&mut self, path: &Path) -> Result<u64, RecordingError> {
        let file = self.disk.store.open(path, Open::ReadData)?;
        let size = self.disk.store.facts(file).size;
        self.disk.store.close(file);
        Ok(size)
    }

    /// The compressed file in place of data, and its size.
    fn compressed(&mut self, data: &Path) -> Result<(Compression, PathBuf, u64), RecordingError> {
        for compression in Compression::ALL {
            let packed = compressed_path(data, compression);
            if let Some(file) = self.open(&packed, Open::Mend)? {
                let size = self.disk.store.facts(file).size;
                self.disk.store.close(file);
                return Ok((compression, packed, size));
            }
        }
        Err(StoreError::new("find", data, &std::io::Error::from_raw_os_error(libc::ENOENT)).into())
    }

    /// Removes what an interrupted call left.
    fn clear(&mut self, data: &Path) -> Result<(), RecordingError> {
        let part = part_of(data);
        for left in compressed_paths(&part).into_iter().chain([part]) {
            remove_if_there(self.disk.store, &left)?;
        }
        Ok(())
    }

    /// Writes a compressed file, and makes it durable.
    fn pack(
        &mut self,
        recording: &Recording,
        member: &Member,
        packed: &Path,
        method: Packing,
    ) -> Result<(), RecordingError> {
        let data = &Files::of(&member.base).data;
        let failed = |why| RecordingError::Limit(format!("failed to compress {}: {why}", data.display()));
        let mut output = Output::create(&mut self.disk, packed)?;
        let mut packer = match method {
            Packing::Zstd(level) => Packer::Zstd(FrameWriter::new(level).map_err(|error| failed(error.to_string()))?),
            Packing::Flac => {
                let alignment = self.disk.store.facts(output.file).alignment;
                let writer = flac_writer(recording, member, alignment)?;
                output.at = writer.head_bytes();
                Packer::Flac(Box::new(writer))
            }
        };
        let source = self.disk.store.open(data, Open::ReadData)?;
        let mut at = 0;
        loop {
            let bytes = self.disk.read_at(data, source, at, FRAME_BYTES as u64)?;
            if bytes.is_empty() {
                break;
            }
            let length = bytes.len() as u64;
            let part = packer.pack(bytes).map_err(failed)?;
            output.write(&mut self.disk, &part)?;
            at += length;
            self.went_on(length);
        }
        self.disk.store.close(source);
        let (tail, head) = packer.finish().map_err(failed)?;
        output.write(&mut self.disk, &tail)?;
        self.disk.write(packed, output.file, 0, &head)?;
        output.finish(&mut self.disk)
    }

    /// Writes what a compressed file holds, and makes it durable.
    fn unpack(&mut self, data: &Path, packed: &Path, to: &Path) -> Result<(), RecordingError> {
        let source = self.disk.store.open(data, Open::ReadData)?;
        let mut output = Output::create(&mut self.disk, to)?;
        let mut at = 0;
        loop {
            let bytes = self.disk.read_at(packed, source, at, PIECE.0)?.to_vec();
            if bytes.is_empty() {
                break;
            }
            output.write(&mut self.disk, &bytes)?;
            at += bytes.len() as u64;
            self.went_on(bytes.len() as u64);
        }
        self.disk.store.close(source);
        output.finish(&mut self.disk)
    }

    /// Passes a result on. After a failure what was made is removed.
    fn settled<T>(&mut self, result: Result<T, RecordingError>, data: &Path) -> Result<T, RecordingError> {
        if result.is_err() {
            // The failure itself says more than that this failed, too; the next call repeats it.
            drop(self.clear(data));
        }
        result
    }

    /// Lets the metadata state whether the samples may be compressed, and how.
    fn restate(&mut self, base: &Path, compression: Option<Compression>) -> Result<(), RecordingError> {
        let path = Files::of(base).meta;
        let meta = self.disk.read_whole(&path, MOST_META)?;
        match restated(&meta, compression).map_err(|error| RecordingError::Meta(path.clone(), error))? {
            Some(changed) => Ok(self.disk.store.put(&path, &changed)?),
            None => Ok(()),
        }
    }

    /// Compares every byte of two files of so many bytes. Each may be compressed.
    fn compare(&mut self, one: &Path, other: &Path, size: u64) -> Result<(), RecordingError> {
        let first = self.disk.store.open(one, Open::ReadData)?;
        let second = self.disk.store.open(other, Open::ReadData)?;
        let mut at = 0;
        loop {
            let expected = self.disk.read_at(one, first, at, PIECE.0)?.to_vec();
            let found = self.disk.read_at(other, second, at, PIECE.0)?;
            if found != expected {
                return Err(RecordingError::Limit(format!(
                    "what was written of {} is not the same when it is read back: nothing was removed; check the disk",
                    one.display()
                )));
            }
            if expected.is_empty() {
                break;
            }
            at += expected.len() as u64;
            self.went_on(expected.len() as u64);
        }
        self.disk.store.close(first);
        self.disk.store.close(second);
        if at != size {
            let changed = format!("{} has {at} bytes now, and had {size}: nothing was removed", one.display());
            return Err(RecordingError::Limit(changed));
        }
        Ok(())
    }

    /// Gives a file its name, and removes the other one.
    fn replace(&mut self, part: &Path, to: &Path, old: &Path) -> Result<(), RecordingError> {
        self.disk.store.rename(part, to)?;
        self.disk.store.sync_folder(hairspring_file::folder_of(to))?;
        match self.gone(old) {
            // Retention deleted the recording meanwhile.
            Err(RecordingError::Store(error)) if error.errno.0 == libc::ENOENT => {
                self.disk.store.remove(to)?;
                Err(error.into())
            }
            other => other,
        }
    }

    fn gone(&mut self, old: &Path) -> Result<(), RecordingError> {
        self.disk.store.remove(old)?;
        Ok(self.disk.store.sync_folder(hairspring_file::folder_of(old))?)
    }

    fn went_on(&mut self, bytes: u64) {
        self.progress.done.0 += bytes;
        (self.show)(self.progress);
    }
}

/// Compresses the data of one file.
enum Packer {
    Zstd(FrameWriter),
    Flac(Box<FlacWriter>),
}

impl Packer {
    /// Compresses the next [`FRAME_BYTES`], or fewer at the end.
    fn pack(&mut self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Self::Zstd(writer) => writer.frame(bytes).map_err(|error| error.to_string()),
            Self::Flac(writer) => writer.write(bytes).map_err(|why| format!("{why}: {TAKE_ZSTD}")),
        }
    }

    /// The end of the file, and what belongs to its beginning.
    fn finish(self) -> Result<(Vec<u8>, Vec<u8>), String> {
        match self {
            Self::Zstd(writer) => Ok((writer.finish(), Vec::new())),
            Self::Flac(writer) => writer.finish().map_err(|why| format!("{why}: {TAKE_ZSTD}")),
        }
    }
}

/// A file that is written in whole pieces, past the page cache where that is possible.
struct Output {
    path: PathBuf,
    file: FileId,
    at: u64,
    pending: Vec<u8>,
}

impl Output {
    fn create(disk: &mut BlockingStore<'_>, path: &Path) -> Result<Self, StoreError> {
        let file = disk.store.open(path, Open::CreateData)?;
        Ok(Self { path: path.to_owned(), file, at: 0, pending: Vec::new() })
    }

    fn write(&mut self, disk: &mut BlockingStore<'_>, bytes: &[u8]) -> Result<(), RecordingError> {
        self.pending.extend_from_slice(bytes);
        while self.pending.len() as u64 >= PIECE.0 {
            disk.write(&self.path, self.file, self.at, &self.pending[..PIECE.0 as usize])?;
            self.pending.drain(..PIECE.0 as usize);
            self.at += PIECE.0;
        }
        Ok(())
    }

    /// Writes the rest, and makes the file durable.
    fn finish(mut self, disk: &mut BlockingStore<'_>) -> Result<(), RecordingError> {
        let length = self.at + self.pending.len() as u64;
        let alignment = disk.store.facts(self.file).alignment as usize;
        self.pending.resize(self.pending.len().next_multiple_of(alignment), 0);
        disk.write(&self.path, self.file, self.at, &self.pending)?;
        disk.store.truncate(self.file, length)?;
        disk.sync(&self.path, self.file)?;
        disk.store.close(self.file);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
