//! [`Cut`]: the bytes of a data file that a recovery cuts off or overwrites, and the file beside it that keeps them.
//!
//! A recovery trusts checksums. Bytes that do not match may still be useful to the user: a block with one wrong bit, or
//! samples that were written but not entered. So all non-zero bytes go to `x.cut-N` first, where N is the first free
//! number. The file has the bytes in the order of the data file; zeros take no space. It is durable before the first
//! byte is cut.

use std::path::{Path, PathBuf};

use hairspring_recording::sync_io::{BlockingStore, PIECE};
use hairspring_recording::{Block, Files, Member, RecordingError};
use hairspring_ring::units::Bytes;
use hairspring_store::{FileId, Open, Store, StoreError};

/// Separates the base path of a recording and the number of a file with the bytes that were cut off.
const CUT_ENDING: &str = ".cut-";

/// Numbers that are tried.
const MOST_CUTS: u32 = 1_000_000;

/// The most pieces whose places are stated in words.
const MOST_STATED: usize = 100;

/// The bytes cut off one data file, or overwritten in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The number of the member.
    pub(crate) member: usize,
    /// Begin and end of each piece, ascending.
    pub(crate) pieces: Vec<(u64, u64)>,
    /// The file that keeps them; `None` if they are all zeros, or given up.
    pub(crate) keep: Option<PathBuf>,
    /// Whether any byte is not zero.
    pub(crate) has_content: bool,
}

impl Cut {
    /// Finds the bytes to cut off if these blocks of a member stay, which ascend by place. Reads them.
    pub(crate) fn find(
        store: &mut dyn Store,
        member: &Member,
        blocks: &[Block],
        discard: bool,
        given: &[PathBuf],
    ) -> Result<Self, RecordingError> {
        let pieces = pieces_between(member.data_bytes, blocks);
        let has_content = has_content(store, &Files::of(&member.base).data, &pieces)?;
        let keep = (has_content && !discard).then(|| free_name(store, &member.base, given)).transpose()?;
        Ok(Self { member: member.number, pieces, keep, has_content })
    }

    /// The report on these bytes, in words; `None` if they are all zeros.
    pub(crate) fn told(&self, data: &Path) -> Option<String> {
        let total = Bytes(self.pieces.iter().map(|(from, to)| to - from).sum());
        let places = self.pieces.iter().take(MOST_STATED).map(|(from, to)| format!("{from} to {}", to - 1));
        let places = places.collect::<Vec<_>>().join(", ");
        let more = self.pieces.len().saturating_sub(MOST_STATED);
        let more = if more > 0 { format!(" and {more} more pieces") } else { String::new() };
        let data = data.display();
        match &self.keep {
            Some(keep) => Some(format!(
                "{data}: {total} that nothing proves (bytes {places}{more}) are kept in {}",
                keep.display()
            )),
            None if self.has_content => {
                Some(format!("{data}: {total} that nothing proves (bytes {places}{more}) are discarded"))
            }
            None => None,
        }
    }

    /// Copies the bytes to their file, durably.
    pub(super) fn keep(&self, disk: &mut BlockingStore<'_>, data: &Path, source: FileId) -> Result<(), RecordingError> {
        let Some(path) = &self.keep else { return Ok(()) };
        let file = disk.store.create_like(path, data, Open::CreateJournal).map_err(explained)?;
        let copied = copy(disk, (data, source), (path, file), &self.pieces);
        disk.store.close(file);
        match copied {
            Ok(()) => Ok(disk.store.sync_folder(hairspring_file::folder_of(path))?),
            Err(error) => {
                // Nothing was cut off yet. The first error is the one to report.
                drop(disk.store.remove(path));
                Err(match error {
                    RecordingError::Store(error) => explained(error),
                    other => other,
                })
            }
        }
    }
}

impl Cut {
    /// Keeps the bytes of a file that is given up as a whole.
    pub(crate) fn keep_all(&self, store: &mut dyn Store, data: &Path) -> Result<(), RecordingError> {
        if self.keep.is_none() {
            return Ok(());
        }
        let mut disk = BlockingStore::new(store)?;
        let source = disk.store.open(data, Open::Mend)?;
        let kept = self.keep(&mut disk, data, source);
        disk.store.close(source);
        kept
    }
}

fn explained(error: StoreError) -> RecordingError {
    let attempted = "keep what would be cut off (--discard gives it up) in".to_owned();
    StoreError { attempted, ..error }.into()
}

/// Copies pieces of a file, one after the other, durably. Zeros become holes.
pub(super) fn copy(
    disk: &mut BlockingStore<'_>,
    (from, source): (&Path, FileId),
    (to, target): (&Path, FileId),
    pieces: &[(u64, u64)],
) -> Result<(), RecordingError> {
    let mut at = 0;
    for (begin, end) in pieces {
        let mut here = *begin;
        while here < *end {
            let data = disk.store.data_from(source, here).min(*end);
            if data > here {
                (here, at) = (data, at + (data - here));
                continue;
            }
            let bytes = disk.read_at(from, source, here, PIECE.0.min(end - here))?;
            let length = bytes.len() as u64;
            if length == 0 {
                let cut_short = std::io::Error::from_raw_os_error(libc::EIO);
                return Err(StoreError::new("read all of", from, &cut_short).into());
            }
            if !is_zeros(bytes) {
                disk.write_buffered(to, target, at, length)?;
            }
            (here, at) = (here + length, at + length);
        }
    }
    disk.store.truncate(target, at)?;
    disk.sync(to, target)
}

/// The pieces of a file of this length between these blocks, which ascend by place, and after them.
fn pieces_between(length: u64, blocks: &[Block]) -> Vec<(u64, u64)> {
    let mut at = 0;
    let mut pieces = Vec::new();
    let ends = blocks.iter().map(|block| (block.file_offset, block.file_offset + u64::from(block.length)));
    for (begin, end) in ends.chain([(length, length)]) {
        if begin > at {
            pieces.push((at, begin));
        }
        at = at.max(end);
    }
    pieces
}

/// Whether these pieces of a file hold anything but zeros. Data that do not decompress count as nothing.
pub(crate) fn has_content(store: &mut dyn Store, path: &Path, pieces: &[(u64, u64)]) -> Result<bool, RecordingError> {
    if pieces.iter().all(|(begin, end)| begin == end) {
        return Ok(false);
    }
    let mut disk = BlockingStore::new(store)?;
    let file = disk.store.open(path, Open::ReadData)?;
    let alignment = disk.store.facts(file).alignment;
    let mut found = false;
    'pieces: for (begin, end) in pieces {
        let mut here = *begin;
        while here < *end {
            let data = disk.store.data_from(file, here).min(*end);
            if data > here {
                here = data;
                continue;
            }
            let from = here / alignment * alignment;
            let next = (here + 1).next_multiple_of(PIECE.0).min(*end);
            let bytes = match disk.read_at(path, file, from, next - from) {
                Err(RecordingError::Store(error)) if error.errno.0 == libc::EBADMSG => &mut [],
                other => other?,
            };
            if bytes.get((here - from) as usize..).is_some_and(|bytes| !is_zeros(bytes)) {
                found = true;
                break 'pieces;
            }
            here = next;
        }
    }
    disk.store.close(file);
    Ok(found)
}

/// Whether all bytes are 0.
fn is_zeros(bytes: &[u8]) -> bool {
    const ZEROS: [u8; 4096] = [0; 4096];
    bytes.chunks(ZEROS.len()).all(|part| part == &ZEROS[..part.len()])
}

/// The first free name for the bytes cut off a recording. `given`: names assigned already.
pub(crate) fn free_name(store: &mut dyn Store, base: &Path, given: &[PathBuf]) -> Result<PathBuf, RecordingError> {
    for number in 1..MOST_CUTS {
        let mut path = base.as_os_str().to_owned();
        path.push(format!("{CUT_ENDING}{number}"));
        let path = PathBuf::from(path);
        if given.contains(&path) {
            continue;
        }
        match store.open(&path, Open::ReadData) {
            Ok(file) => store.close(file),
            Err(error) if error.errno.0 == libc::ENOENT => return Ok(path),
            // A file with this name exists and is not ours.
            Err(error) if matches!(error.errno.0, libc::EISDIR | libc::EACCES | libc::ELOOP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(StoreError::new("find a free name beside", base, &std::io::Error::from_raw_os_error(libc::EEXIST)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_is_what_no_block_holds() {
        let block = |file_offset, length| Block {
            index: 0,
            position: 0,
            member: 0,
            file_offset,
            length,
            crc: None,
            produced_bytes: 0,
            at: hairspring_machine::Instant::BOOT,
            durable: false,
        };
        assert_eq!(pieces_between(10, &[]), [(0, 10)]);
        assert_eq!(pieces_between(10, &[block(0, 10)]), []);
        assert_eq!(pieces_between(10, &[block(2, 3), block(5, 1)]), [(0, 2), (6, 10)]);
        assert_eq!(pieces_between(0, &[]), []);
    }
}
