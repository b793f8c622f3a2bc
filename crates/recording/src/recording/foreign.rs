//! Recordings of other programs: SigMF beside its data file, or in an archive (`.sigmf`), which is read in place.
//!
//! Such a recording has nothing but its file, so the size of the file is trusted: a block is a piece of it without a
//! checksum. A file that is shorter than its captures counts as a copy that was cut short. [`sigmf`] documents the keys
//! of the metadata.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha512};

use super::sync_io::{BlockingStore, MOST_META};
use super::{Block, Files, Hole, Member, Recording, RecordingError};
use crate::clock::ClockRecord;
use crate::journal::{Journal, RecordingId};
use crate::sigmf::{self, About, Foreign, SigmfError};
use crate::timeline::Timeline;
use hairspring_machine::{Instant, Nanos};
use hairspring_ring::OnOverrun;
use hairspring_ring::units::{Bytes, Frames};
use hairspring_store::{Errno, Open, StoreError};

/// The approximate size of the blocks in which recordings of other programs are read.
const FOREIGN_BLOCK: Bytes = Bytes::mib(4);

/// Facts about a recording of another program besides its samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ForeignFile {
    /// SHA-512 of the data file as its metadata state it.
    pub(super) sha512: Option<String>,
    /// Where the data file begins in the file that is read, and its length.
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) is_complex: bool,
    pub(super) is_big_endian: bool,
    /// The metadata as they are.
    pub(super) document: Vec<u8>,
}

/// The files of a recording, or their places in an archive.
struct Found {
    base: PathBuf,
    /// The file of the metadata, for errors.
    meta: PathBuf,
    document: Vec<u8>,
    /// The file with the samples; their offset in it, and their length in bytes.
    data: PathBuf,
    offset: u64,
    length: u64,
}

/// Opens a recording with this base path.
pub(super) fn open(disk: &mut BlockingStore<'_>, base: &Path) -> Result<Recording, RecordingError> {
    let files = Files::of(base);
    let document = disk.read_whole(&files.meta, MOST_META)?;
    let foreign = parsed(&document, &files.meta)?;
    let data = foreign.dataset.as_ref().map_or(files.data, |name| files.meta.with_file_name(name));
    let file = disk.store.open(&data, Open::ReadData)?;
    let length = disk.store.facts(file).size;
    disk.store.close(file);
    assembled(Found { base: base.to_owned(), meta: files.meta, document, data, offset: 0, length }, foreign)
}

/// Whether a path names an archive.
pub(super) fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("sigmf")) && path.is_file()
}

/// Opens the recording in an archive. Nothing is unpacked: the samples lie in one piece of the archive.
pub(super) fn open_archive(path: &Path) -> Result<Recording, RecordingError> {
    let refused = |error: std::io::Error| {
        let errno = Errno(error.raw_os_error().unwrap_or(libc::EBADMSG));
        RecordingError::Store(StoreError { attempted: "read the archive".to_owned(), path: path.to_owned(), errno })
    };
    let limit = |why: String| RecordingError::Limit(format!("{}: {why}", path.display()));
    let mut archive = tar::Archive::new(File::open(path).map_err(refused)?);
    let (mut metas, mut others) = (Vec::new(), Vec::new());
    for entry in archive.entries_with_seek().map_err(refused)? {
        let mut entry = entry.map_err(refused)?;
        let name = PathBuf::from(std::ffi::OsStr::from_bytes(&entry.path_bytes()));
        let (kind, size) = (entry.header().entry_type(), entry.size());
        if !kind.is_file() {
            if kind.is_gnu_sparse() {
                return Err(limit(format!("{} is stored with holes: unpack it (tar xf)", name.display())));
            }
            continue;
        }
        if name.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("sigmf-meta")) {
            if size > MOST_META.0 {
                return Err(RecordingError::TooLarge(path.join(&name), Bytes(size)));
            }
            let mut document = Vec::new();
            entry.read_to_end(&mut document).map_err(refused)?;
            metas.push((name, document));
        } else {
            others.push((name, entry.raw_file_position(), size));
        }
    }
    let [(name, document)] = &metas[..] else {
        let names: Vec<String> = metas.iter().map(|(name, _)| name.display().to_string()).collect();
        return Err(limit(match names.len() {
            0 => "the archive has no .sigmf-meta".to_owned(),
            _ => format!("the archive has several recordings ({}): unpack it (tar xf) and name one", names.join(", ")),
        }));
    };
    let meta = path.join(name);
    if !matches!(sigmf::parse(document), Err(SigmfError::Foreign)) {
        let why = "a recording of Hairspring, whose journal proves it only beside its files: unpack it (tar xf)";
        return Err(limit(why.to_owned()));
    }
    let foreign = parsed(document, &meta)?;
    let data =
        foreign.dataset.as_ref().map_or_else(|| name.with_extension("sigmf-data"), |own| name.with_file_name(own));
    let Some((_, offset, length)) = others.iter().find(|(other, ..)| *other == data) else {
        return Err(limit(format!("the archive has no {}", data.display())));
    };
    let size = std::fs::metadata(path).map_err(refused)?.len();
    // An archive that was cut short.
    let length = (*length).min(size.saturating_sub(*offset));
    let (offset, document) = (*offset, document.clone());
    assembled(Found { base: path.with_extension(""), meta, document, data: path.to_owned(), offset, length }, foreign)
}

fn parsed(document: &[u8], meta: &Path) -> Result<Foreign, RecordingError> {
    sigmf::parse_foreign(document).map_err(|error| RecordingError::Meta(meta.to_owned(), error))
}

fn assembled(found: Found, foreign: Foreign) -> Result<Recording, RecordingError> {
    let Found { base, meta, document, data, offset, length } = found;
    let layout = foreign.layout;
    let grain = layout.grain().bytes;
    let Some(samples) = length.checked_sub(foreign.trailing_bytes) else {
        let (why, more) = (Bytes(length), foreign.trailing_bytes);
        return Err(RecordingError::Meta(
            meta,
            SigmfError::Value(format!("core:trailing_bytes: {more} are more than the {why} of the data file")),
        ));
    };
    let mut timeline = Timeline::new(layout);
    let (mut blocks, mut faults) = (Vec::new(), Vec::new());
    let block = FOREIGN_BLOCK.round_up(Bytes(grain));
    let (mut stored, mut at, mut stated) = (0_u64, 0_u64, 0_u64);
    let mut is_short = false;
    for (number, capture) in foreign.captures.iter().enumerate() {
        let position = layout.bytes_of(capture.start).0;
        stated = position;
        let here = timeline.frame_at(position);
        timeline.skip(position, Frames(capture.first.0.saturating_sub(here.0)));
        at = at.saturating_add(capture.header_bytes);
        let there = samples.saturating_sub(at);
        // The captures lie one after the other; the last one takes the remaining bytes.
        let wanted = foreign.captures.get(number + 1).map(|next| layout.bytes_of(next.start).0 - position);
        let piece = wanted.unwrap_or(u64::MAX).min(there / grain * grain);
        if is_short {
            continue;
        }
        blocks.extend((0..piece.div_ceil(block.0)).map(|one| {
            let start = one * block.0;
            Block {
                index: 0,
                position: position + start,
                member: 0,
                file_offset: offset + at + start,
                length: u32::try_from((piece - start).min(block.0)).unwrap_or(u32::MAX),
                crc: None,
                produced_bytes: 0,
                at: Instant::BOOT,
                durable: false,
            }
        }));
        stored = position + piece;
        at += piece;
        match wanted {
            Some(wanted) if wanted > piece => is_short = true,
            None if !(samples.saturating_sub(at)).is_multiple_of(grain) || at > samples => {
                let rest = samples.saturating_sub(at);
                faults.push(format!(
                    "{}: its last {rest} bytes are no whole sample, and no core:trailing_bytes leaves them out",
                    data.display()
                ));
            }
            _ => {}
        }
    }
    (0_u64..).zip(&mut blocks).for_each(|(index, block)| block.index = index);
    let mut holes = Vec::new();
    if is_short {
        let position = stored;
        holes.push(Hole { position, length: stated.saturating_sub(position), declared: false });
        let start = foreign.captures.last().map_or(0, |capture| capture.start.0);
        faults.push(format!(
            "{}: it ends before core:sample_start {start} of its last capture, so it was cut short",
            data.display()
        ));
    }
    let about = About {
        id: identity(&data, &document, foreign.sha512.as_deref()),
        layout,
        rate: foreign.rate,
        hardware: foreign.hardware,
        pattern: None,
        started_realtime: Nanos::ZERO,
        started_monotonic: Instant::BOOT,
        started_within: None,
        block,
        members: vec![base.clone()],
        member: 0,
        on_overrun: OnOverrun::Stop,
        clocked: false,
        software: String::new(),
        series: None,
        channels: Vec::new(),
        clock: ClockRecord::default(),
    };
    let own_name = Files::of(&base).data;
    let member = Member {
        number: 0,
        base,
        elsewhere: false,
        data_bytes: length,
        has_data: true,
        has_journal: false,
        about: Arc::new(about.clone()),
        closing: None,
        segments: Vec::new(),
        journal: Journal::read(&[]),
        salvaged: false,
        durable_bytes: 0,
        other_data: (data != own_name).then_some(data),
    };
    let file = ForeignFile {
        sha512: foreign.sha512,
        offset,
        length,
        is_complex: foreign.is_complex,
        is_big_endian: foreign.is_big_endian,
        document,
    };
    Ok(Recording {
        about,
        members: vec![member],
        missing_members: Vec::new(),
        blocks,
        timeline,
        gaps: Vec::new(),
        bounds: Vec::new(),
        cut: None,
        skips: Vec::new(),
        triggers: Vec::new(),
        kept: Vec::new(),
        failures: Vec::new(),
        holes,
        produced: 0,
        ended: None,
        faults,
        doubts: Vec::new(),
        foreign: Some(file),
        last_members: 0,
        series_base: None,
        between: Vec::new(),
        lacks_last_segment: false,
        holder: None,
    })
}

/// An identity for a recording that states none: of its metadata and of the hash that they state for the data, so that
/// a copy is the same recording. Without such a hash it is of the data file by path, inode, size and time of change: a
/// copy, and the same file after a change, are other recordings.
fn identity(data: &Path, document: &[u8], stated: Option<&str>) -> RecordingId {
    let mut hash = Sha512::new();
    match stated {
        Some(stated) => hash.update(stated.to_ascii_lowercase()),
        None => {
            let path = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
            hash.update(path.as_os_str().as_bytes());
            if let Ok(found) = std::fs::metadata(data) {
                for number in [found.dev(), found.ino(), found.size()] {
                    hash.update(number.to_le_bytes());
                }
                for number in [found.mtime(), found.mtime_nsec()] {
                    hash.update(number.to_le_bytes());
                }
            }
        }
    }
    hash.update(document);
    let mut id = [0; 16];
    id.copy_from_slice(&hash.finalize()[..16]);
    RecordingId(id)
}

impl Recording {
    /// SHA-512 of the data file as another program's metadata state it.
    pub fn stated_sha512(&self) -> Option<&str> {
        self.foreign.as_ref()?.sha512.as_deref()
    }

    /// Whether another program wrote it. Then blocks have no checksums, and only [`Recording::stated_sha512`] can prove
    /// the data.
    pub fn is_foreign(&self) -> bool {
        self.foreign.is_some()
    }

    /// Whether two neighbouring channels are one complex sample, I before Q. Only in recordings of other programs.
    pub fn is_complex(&self) -> bool {
        self.foreign.as_ref().is_some_and(|file| file.is_complex)
    }

    /// Whether the samples lie in the files with their highest byte first. Only in recordings of other programs;
    /// readers reverse them.
    pub fn is_big_endian(&self) -> bool {
        self.foreign.as_ref().is_some_and(|file| file.is_big_endian)
    }

    /// The metadata of another program's recording, unchanged; in an archive they are no file.
    pub fn foreign_metadata(&self) -> Option<&[u8]> {
        self.foreign.as_ref().map(|file| &file.document[..])
    }

    /// The offset of another program's data file in the file that is read, and its length.
    pub fn foreign_piece(&self) -> Option<(u64, u64)> {
        self.foreign.as_ref().map(|file| (file.offset, file.length))
    }

    /// Bytes of a sample that readers reverse; 1 if they do not.
    pub fn swapped_bytes(&self) -> usize {
        if self.is_big_endian() { self.about.layout.container().bits() as usize / 8 } else { 1 }
    }
}
