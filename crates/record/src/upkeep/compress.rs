//! [`compress`] and [`restore`]: the data of a closed recording as zstd, and back, bit by bit.
//!
//! ```text
//! 1  files left by an interrupted call are removed
//! 2  the other file is written under a temporary name, and synced
//! 3  both are read back from the disk, and every byte is compared
//! 4  the metadata allow compressed samples                     (restoring: last)
//! 5  the other file gets its name, and the folder is synced
//! 6  the first file is removed, and the folder is synced
//! ```
//!
//! Each step may be interrupted, and the call can be repeated. After step 5 both files exist; readers take the one that
//! is not compressed. Then the next call reads it once more, and goes on only if every block matches its checksum.
//!
//! Journal and metadata describe the samples as before; only the version in the metadata differs, so that a program
//! without support for compression refuses them, instead of finding all samples lost. Every reader of this crate reads
//! a compressed recording; other programs need [`restore`] or `zstd --decompress` first.
//! [`renew_sums`](crate::series::collection::renew_sums) renews the sums in the collection of a series.
//!
//! **Other processes.** This process owns the files from before the first step to the end, so that no other call,
//! recovery or retention of a recorder changes them meanwhile. A program that ignores ownership may delete the
//! recording: then the new files are removed, and the call fails.

use std::path::{Path, PathBuf};

use hairspring_ring::units::Bytes;

use crate::recover::cut::free_name;
use crate::recover::{RecoverOptions, Taken, recover_opened};
use crate::upkeep::owned::owned;
use hairspring_recording::sigmf::restated;
use hairspring_recording::sync_io::{BlockingStore, MOST_META, PIECE};
use hairspring_recording::verify::{ReadProgress, VerifyOptions, verify};
use hairspring_recording::{Files, Member, Recording, RecordingError};
use hairspring_store::compressed::compressed_path;
use hairspring_store::frames::{FRAME_BYTES, FrameWriter};
use hairspring_store::owner::{PathFacts, Work};
use hairspring_store::{FileId, Open, Store, StoreError, remove_if_there};

/// zstd's usual level.
pub const USUAL_LEVEL: i32 = 3;

/// The ending of files that are not whole yet.
const PART_ENDING: &str = ".part";

/// The result of [`compress`] or [`restore`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compressed {
    /// The files that hold the data now, one for each member.
    pub files: Vec<PathBuf>,
    /// Bytes of samples.
    pub plain: Bytes,
    /// Bytes of the compressed files.
    pub packed: Bytes,
    /// Paths at which compressed files are kept that did not decompress as a whole. The gaps of the recording declare
    /// the missing data.
    pub damaged: Vec<PathBuf>,
}

impl Compressed {
    /// Adds the result for another recording.
    pub fn add(&mut self, other: Self) {
        self.files.extend(other.files);
        self.plain.0 += other.plain.0;
        self.packed.0 += other.packed.0;
        self.damaged.extend(other.damaged);
    }
}

/// Compresses the data files of a closed recording. Removes each after its compressed file was read back and holds the
/// same bytes. Members that are compressed already stay as they are. `level`: zstd's, from 1 to 19. Blocks for the
/// whole time. `store` is one of [`best`](hairspring_store::best).
///
/// # Errors
/// Another process owns the recording ([`RecordingError::Owned`]); it was cut off, is not in order, is incomplete or
/// was made by another program; a file cannot be read, written or removed; or the compressed bytes differ
/// ([`RecordingError::Limit`]). In each case the data files that were not replaced yet stay.
pub fn compress(
    store: &mut dyn Store,
    recording: &Recording,
    level: i32,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Compressed, RecordingError> {
    let (recording, _ownership) = &owned(store, recording, Work::Changes)?;
    check(store, recording)?;
    let mut steps = Steps::new(store, recording, progress)?;
    for member in recording.members() {
        let data = Files::of(&member.base).data;
        let (part, packed) = (part_of(&data), compressed_path(&data));
        steps.clear(&data)?;
        if let Some(plain) = steps.open(&data, Open::Mend)? {
            steps.disk.store.close(plain);
            let packed_part = compressed_path(&part);
            let packing = steps.pack(&data, &packed_part, level).and_then(|()| {
                steps.compare(&data, &part, member.data_bytes)?;
                steps.restate(&member.base, true)?;
                steps.replace(&packed_part, &packed, &data)
            });
            steps.settled(packing, &data)?;
        } else {
            steps.restate(&member.base, true)?;
        }
        steps.done.packed.0 += steps.size(&packed)?;
        steps.done.files.push(packed);
    }
    Ok(steps.done)
}

/// Restores the data files of a compressed recording. Removes each compressed file after the restored one was read back
/// and holds the same bytes. Members that are not compressed stay as they are. Blocks for the whole time. `store` is
/// one of [`best`](hairspring_store::best).
///
/// # Errors
/// As [`compress`].
pub fn restore(
    store: &mut dyn Store,
    recording: &Recording,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Compressed, RecordingError> {
    let (recording, ownership) = owned(store, recording, Work::Changes)?;
    check(store, &recording)?;
    let mut steps = Steps::new(store, &recording, progress)?;
    for member in recording.members() {
        let data = Files::of(&member.base).data;
        steps.clear(&data)?;
        let packed = compressed_path(&data);
        if let Ok(size) = steps.size(&packed) {
            steps.done.packed.0 += size;
            let whole = steps.open(&data, Open::Mend).ok().flatten();
            if let Some(plain) = whole {
                // An interrupted call had not removed the compressed file; `check` has verified the plain one.
                steps.disk.store.close(plain);
                steps.gone(&packed)?;
            } else {
                steps.restored(member, false)?;
            }
        }
        steps.restate(&member.base, false)?;
        steps.done.files.push(data);
    }
    let done = steps.done;
    if !done.damaged.is_empty() {
        let bases: Vec<PathBuf> = recording.members().iter().map(|member| member.base.clone()).collect();
        let options = RecoverOptions { all: true, ..RecoverOptions::default() };
        let restored = Recording::open_in(store, &bases)?;
        let owned = Taken::Owned { recording: Box::new(restored.clone()), _ownership: ownership };
        recover_opened(store, &restored, &owned, options, &mut |_| {})?;
    }
    Ok(done)
}

/// Restores the compressed members of a recording that is about to be mended, as far as they decompress. Returns the
/// paths of the kept files that do not decompress as a whole.
pub(crate) fn restore_to_mend(
    store: &mut dyn Store,
    recording: &Recording,
    discard: bool,
) -> Result<Vec<PathBuf>, RecordingError> {
    let mut show = |_| {};
    let mut steps = Steps::new(store, recording, &mut show)?;
    for member in recording.members() {
        if is_compressed(steps.disk.store, member)? {
            steps.clear(&Files::of(&member.base).data)?;
            steps.restored(member, discard)?;
            steps.restate(&member.base, false)?;
        }
    }
    Ok(steps.done.damaged)
}

/// Whether the data of a member are compressed, and only so.
fn is_compressed(store: &mut dyn Store, member: &Member) -> Result<bool, RecordingError> {
    match store.open(&Files::of(&member.base).data, Open::Mend) {
        Ok(file) => {
            store.close(file);
            Ok(false)
        }
        Err(error) if error.errno.0 == libc::ENOENT => Ok(false),
        Err(error) if error.errno.0 == libc::EOPNOTSUPP => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// The files that can hold the samples of a base path, and files left by interrupted calls.
pub(crate) fn data_files(base: &Path) -> [PathBuf; 4] {
    let data = Files::of(base).data;
    let part = part_of(&data);
    [compressed_path(&part), part, compressed_path(&data), data]
}

/// The name of a data file that is not whole yet.
pub(crate) fn part_of(data: &Path) -> PathBuf {
    let mut path = data.as_os_str().to_owned();
    path.push(PART_ENDING);
    path.into()
}

/// Refuses recordings that are not closed and in order. Where a file exists both compressed and not, reads the one that
/// is not.
fn check(store: &mut dyn Store, recording: &Recording) -> Result<(), RecordingError> {
    recording.require_changeable()?;
    let refused = |why: &str| Err(RecordingError::Limit(why.to_owned()));
    if let Some(doubt) = recording.doubts().first() {
        return refused(&format!("nothing was changed: {doubt}"));
    }
    if let Some(why) = recording.unfinished() {
        return refused(&why);
    }
    match (recording.is_foreign(), recording.faults().first()) {
        (true, _) => return refused("another program wrote this recording, and may not read it compressed"),
        (.., Some(fault)) => {
            return refused(&format!("the recording is not in order ({fault}): {}", recording.remedy()));
        }
        _ => {}
    }
    for member in recording.members() {
        // The journal ends before the metadata are written.
        if member.closing.is_none() {
            return refused(&format!("its metadata do not say how it ended: {}", recording.remedy()));
        }
        let data = Files::of(&member.base).data;
        let mut there = Vec::new();
        for path in [compressed_path(&data), data.clone()] {
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

/// The steps and their result.
struct Steps<'a> {
    disk: BlockingStore<'a>,
    done: Compressed,
    /// The file that was read last.
    read: Option<PathFacts>,
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
        Ok(Self { disk: BlockingStore::new(store)?, done, read: None, progress, show })
    }

    /// Opens a file; `None` if it does not exist.
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

    /// Removes the files that an interrupted call left.
    fn clear(&mut self, data: &Path) -> Result<(), RecordingError> {
        let part = part_of(data);
        for left in [compressed_path(&part), part] {
            remove_if_there(self.disk.store, &left)?;
        }
        Ok(())
    }

    /// Writes a compressed file, and makes it durable.
    fn pack(&mut self, data: &Path, packed: &Path, level: i32) -> Result<(), RecordingError> {
        let failed =
            |why: std::io::Error| RecordingError::Limit(format!("failed to compress {}: {why}", data.display()));
        let mut output = Output::create(&mut self.disk, packed, data)?;
        let mut writer = FrameWriter::new(level).map_err(failed)?;
        let source = self.disk.store.open(data, Open::ReadData)?;
        self.read = Some(self.disk.store.look_at(source)?);
        let mut at = 0;
        loop {
            let bytes = self.disk.read_at(data, source, at, FRAME_BYTES as u64)?;
            if bytes.is_empty() {
                break;
            }
            let length = bytes.len() as u64;
            let part = writer.frame(bytes).map_err(failed)?;
            output.write(&mut self.disk, &part)?;
            at += length;
            self.went_on(length);
        }
        self.disk.store.close(source);
        output.write(&mut self.disk, &writer.finish())?;
        output.finish(&mut self.disk)
    }

    /// Puts the data of a member in place of its compressed file. One that does not decompress as a whole is kept under
    /// another name.
    fn restored(&mut self, member: &Member, discard: bool) -> Result<(), RecordingError> {
        let data = Files::of(&member.base).data;
        let (part, packed) = (part_of(&data), compressed_path(&data));
        let unpacking = self.unpack(&data, &packed, &part).and_then(|is_whole| {
            if is_whole {
                self.compare(&data, &part, member.data_bytes)?;
                return self.replace(&part, &data, &packed);
            }
            let kept = free_name(self.disk.store, &member.base, &[])?;
            self.disk.store.rename(&part, &data)?;
            self.disk.store.sync_folder(hairspring_file::folder_of(&data))?;
            if discard {
                return self.gone(&packed);
            }
            self.disk.store.rename(&packed, &kept)?;
            self.done.damaged.push(kept);
            Ok(self.disk.store.sync_folder(hairspring_file::folder_of(&data))?)
        });
        self.settled(unpacking, &data)
    }

    /// Decompresses a file into another, durably. Zeros replace data that do not decompress. Returns
    /// whether all did.
    fn unpack(&mut self, data: &Path, packed: &Path, to: &Path) -> Result<bool, RecordingError> {
        let source = self.disk.store.open(data, Open::ReadData)?;
        let size = self.disk.store.facts(source).size;
        self.read = Some(self.disk.store.look_at(source)?);
        let mut output = Output::create(&mut self.disk, to, packed)?;
        let (mut at, mut is_whole) = (0, true);
        while at < size {
            let length = PIECE.0.min(size - at);
            let bytes = match self.disk.read_at(packed, source, at, length) {
                Err(RecordingError::Store(error)) if error.errno.0 == libc::EBADMSG => {
                    is_whole = false;
                    vec![0; length as usize]
                }
                other => other?.to_vec(),
            };
            if bytes.is_empty() {
                break;
            }
            output.write(&mut self.disk, &bytes)?;
            at += bytes.len() as u64;
            self.went_on(bytes.len() as u64);
        }
        self.disk.store.close(source);
        output.finish(&mut self.disk)?;
        Ok(is_whole)
    }

    /// Passes a result on. After a failure the files made by the call are removed.
    fn settled<T>(&mut self, result: Result<T, RecordingError>, data: &Path) -> Result<T, RecordingError> {
        if result.is_err() {
            // The first failure is more useful than a failed removal; the next call repeats the removal.
            drop(self.clear(data));
        }
        result
    }

    /// Sets in the metadata whether the samples may be compressed.
    fn restate(&mut self, base: &Path, is_compressed: bool) -> Result<(), RecordingError> {
        let path = Files::of(base).meta;
        let meta = self.disk.read_whole(&path, MOST_META)?;
        match restated(&meta, is_compressed).map_err(|error| RecordingError::Meta(path.clone(), error))? {
            Some(changed) => Ok(self.disk.store.put(&path, &changed)?),
            None => Ok(()),
        }
    }

    /// Compares every byte of two files of `size` bytes. Each may be compressed.
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

    /// Renames a file to its final name, and removes the old one, unless another process has replaced the old one since
    /// it was read.
    fn replace(&mut self, part: &Path, to: &Path, old: &Path) -> Result<(), RecordingError> {
        self.disk.store.rename(part, to)?;
        self.disk.store.sync_folder(hairspring_file::folder_of(to))?;
        let read = self.read.take();
        if read.is_some_and(|read| self.disk.store.look(old).is_ok_and(|now| !now.is_same_file(&read))) {
            let (old, to) = (old.display(), to.display());
            let replaced = format!(
                "{old} was replaced by another file while it was read: that file stays, and what was read is in {to}"
            );
            return Err(RecordingError::Limit(replaced));
        }
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

/// A file that is written in whole pieces, past the page cache where that is possible.
struct Output {
    path: PathBuf,
    file: FileId,
    at: u64,
    pending: Vec<u8>,
}

impl Output {
    fn create(disk: &mut BlockingStore<'_>, path: &Path, like: &Path) -> Result<Self, StoreError> {
        let file = disk.store.create_like(path, like, Open::CreateData)?;
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
