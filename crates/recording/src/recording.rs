//! [`Recording`]: opens all members of a recording and finds out where the blocks of its stream lie, which frame each
//! byte belongs to, and which frames are missing. [`BlockReader`] yields the blocks, each proven by its checksum.
//!
//! **What is trusted.** The metadata describe the recording. The journals list, record by record, the places of its
//! blocks and the losses. The size of a file is only a limit, because reserved space looks like data, and data that
//! were never synced may be gone. No byte is returned as good before its block has matched its checksum (CRC-32C).
//!
//! Opening reads metadata and journals only. It takes memory in proportion to their size, never to the sizes that they
//! state.

mod account;
mod chain;
mod evidence;
mod excerpt;
mod foreign;
mod members;
mod missing;
mod overtaken;
mod places;
mod reader;
mod reads;
pub mod sync_io;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hairspring_machine::Instant;

use crate::journal::{FailedOperation, GapBounds, JournalContents, KeptFrames, RecordingId};
use crate::ledger::{Ledger, RecordingVerdict};
use crate::sigmf::{About, Closing, SigmfError, StoredSegment};
use crate::timeline::Timeline;
use hairspring_ring::gap::{Gap, Skip};
use hairspring_ring::units::{Bytes, Frames};
use hairspring_store::compressed::COMPRESSED_ENDING;
use hairspring_store::owner::{Holder, OwnError};
use hairspring_store::{Store, StoreError, Ways};

pub(crate) use chain::Chain;
pub use evidence::MemberDoubt;
pub use excerpt::{DamagedBlock, Excerpt, ExcerptCheck, ExcerptError, ExcerptPart, ExcerptRun};
pub use members::{frames_agree, open_one};
pub use missing::{Missing, MissingCause, MissingFrames, leave_out_ends};
pub use reader::BlockReader;
pub use reads::{BlockRead, BlockReads, Unproven, proven, turned};

/// The pieces of the stored stream that are missing if only these blocks exist; blocks ascend by index.
pub fn holes_between(recording: &Recording, blocks: &[Block]) -> Vec<Hole> {
    let Recording { about, timeline, gaps, skips, ended, produced, .. } = recording;
    account::holes(about.layout, blocks, *produced, timeline, gaps, skips, *ended)
}

/// The largest block that is read, because a whole block is in memory before any of it is returned.
pub const MOST_BLOCK: Bytes = Bytes::mib(64);

/// The three files of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The samples.
    pub data: PathBuf,
    /// The metadata.
    pub meta: PathBuf,
    /// The journal.
    pub journal: PathBuf,
}

/// The extensions of the three files.
const EXTENSIONS: [&str; 3] = [".sigmf-data", ".sigmf-meta", ".hairspring-journal"];

impl Files {
    /// The files of the member with this base path.
    pub fn of(base: &Path) -> Self {
        let [data, meta, journal] = EXTENSIONS.map(|extension| {
            let mut path = base.as_os_str().to_owned();
            path.push(extension);
            PathBuf::from(path)
        });
        Self { data, meta, journal }
    }

    /// Removes the files that exist. A file that cannot be removed is reported by the next recording of this name.
    pub fn remove(&self) {
        for file in [&self.data, &self.meta, &self.journal] {
            drop(std::fs::remove_file(file));
        }
    }

    /// The base path that belongs to a path with or without one of the extensions.
    pub fn base_of(path: &Path) -> PathBuf {
        let data = without_ending(path, COMPRESSED_ENDING);
        let data = data.filter(|data| without_ending(data, EXTENSIONS[0]).is_some());
        let path = data.as_deref().unwrap_or(path);
        EXTENSIONS.iter().find_map(|extension| without_ending(path, extension)).unwrap_or_else(|| path.to_owned())
    }
}

/// A path, of any bytes, without this ending; `None` if it ends otherwise.
pub fn without_ending(path: &Path, ending: &str) -> Option<PathBuf> {
    let bytes = path.as_os_str().as_bytes().strip_suffix(ending.as_bytes())?;
    Some(PathBuf::from(OsStr::from_bytes(bytes)))
}

/// The part of a recording in one directory.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its number, from 0.
    pub number: usize,
    /// The base path at which it was found.
    pub base: PathBuf,
    /// Whether it was found only at the path that the metadata list, outside the named folders. It may be read, but not
    /// changed.
    pub elsewhere: bool,
    /// Size of its data file; only a limit.
    pub data_bytes: u64,
    /// Whether there is a data file, compressed or not.
    pub has_data: bool,
    /// Whether there is a journal.
    pub has_journal: bool,
    /// The description in its metadata; in a series, of the whole series.
    pub about: Arc<About>,
    /// How it ended, by its metadata.
    pub closing: Option<Closing>,
    /// The segments in its metadata.
    pub segments: Vec<StoredSegment>,
    /// The readable part of its journal; empty in a series.
    pub journal: JournalContents,
    /// Whether records after damage in the journal are trusted as well.
    pub salvaged: bool,
    /// Bytes of its blocks that are covered by a sync.
    pub durable_bytes: u64,
    /// The file with its samples, if it has another name: in recordings of other programs.
    pub other_data: Option<PathBuf>,
}

impl Member {
    /// The file with its samples.
    pub fn data(&self) -> PathBuf {
        self.other_data.clone().unwrap_or_else(|| Files::of(&self.base).data)
    }
}

/// A block of the stored stream and the place where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its number.
    pub index: u64,
    /// Position of its first byte in the stored stream.
    pub position: u64,
    /// The number of the member whose data file holds it.
    pub member: usize,
    /// Its offset in that file.
    pub file_offset: u64,
    /// Its length in bytes.
    pub length: u32,
    /// CRC-32C of its bytes; none in recordings of other programs.
    pub crc: Option<u32>,
    /// Bytes that the source had produced when it was written.
    pub produced_bytes: u64,
    /// When it was written.
    pub at: Instant,
    /// Whether a sync covers it.
    pub durable: bool,
}

impl Block {
    /// The position after its last byte.
    pub fn end(&self) -> u64 {
        self.position + u64::from(self.length)
    }
}

/// The end of a recording, as its journals state it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The verdict.
    pub verdict: RecordingVerdict,
    /// Whether it was mended.
    pub recovered: bool,
    /// Bytes that the source produced.
    pub produced_bytes: u64,
    /// Bytes that were in the files of all members.
    pub stored_bytes: u64,
    /// The sum of all gaps.
    pub lost_bytes: u64,
    /// The sum of all skips.
    pub left_out_bytes: u64,
}

/// An operation that failed during the recording, from the journals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The number of the member.
    pub member: usize,
    /// The operation.
    pub operation: FailedOperation,
    /// The system's error number.
    pub errno: i32,
    /// The block concerned, or `u64::MAX`.
    pub block: u64,
    /// When.
    pub at: Instant,
}

/// A piece of the stored stream that is in no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// Where it begins.
    pub position: u64,
    /// Its length.
    pub length: u64,
    /// Whether a gap declares it; otherwise it is damage.
    pub declared: bool,
}

/// A recording that was opened.
#[derive(Clone, Debug)]
pub struct Recording {
    about: About,
    members: Vec<Member>,
    missing_members: Vec<(usize, PathBuf)>,
    blocks: Vec<Block>,
    timeline: Timeline,
    gaps: Vec<(u64, Gap)>,
    bounds: Vec<GapBounds>,
    cut: Option<Frames>,
    skips: Vec<(u64, Skip)>,
    triggers: Vec<(u64, Frames)>,
    kept: Vec<KeptFrames>,
    failures: Vec<Failure>,
    holes: Vec<Hole>,
    /// Bytes that the source had produced as far as the journals know, up to the cut.
    produced: u64,
    ended: Option<Ended>,
    faults: Vec<String>,
    doubts: Vec<MemberDoubt>,
    foreign: Option<foreign::ForeignFile>,
    /// Members of the last segment of a series; 0 for one recording.
    last_members: usize,
    /// The base path of a series.
    series_base: Option<PathBuf>,
    /// Frames that lie between two segments of a series and are in neither.
    between: Vec<(Skip, MissingCause)>,
    /// Whether the last segments of a series are missing.
    lacks_last_segment: bool,
    /// The owner of its files before they were read.
    holder: Option<Holder>,
}

/// Why a recording cannot be opened.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordingError {
    /// A system call failed.
    Store(StoreError),
    /// No file was named.
    Nothing,
    /// No recording has this name.
    NotFound(PathBuf),
    /// The metadata cannot be read.
    Meta(PathBuf, SigmfError),
    /// A file is too large to be read: its path and its size.
    TooLarge(PathBuf, Bytes),
    /// Two of the named files belong to different recordings, or are the same member.
    NotTogether(PathBuf, PathBuf),
    /// A segment belongs to another series than the index beside it: the segment, and the index.
    AnotherSeries(PathBuf, PathBuf),
    /// Members are missing: their numbers from 0, where they should be, and the number of members of the recording.
    MembersMissing(Vec<(usize, PathBuf)>, usize),
    /// Members were found only in folders that were not named, so they are not changed: one that was named, and their
    /// numbers from 0 and places.
    Elsewhere(PathBuf, Vec<(usize, PathBuf)>),
    /// Its files cannot be owned, so that it is not changed: another process owns them, or there are no locks.
    Owned(OwnError),
    /// It cannot be read for the reason given.
    Limit(String),
    /// The caller cancelled the reading.
    Cancelled,
}

impl From<StoreError> for RecordingError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<OwnError> for RecordingError {
    fn from(error: OwnError) -> Self {
        match error {
            OwnError::Store(error) => Self::Store(error),
            error => Self::Owned(error),
        }
    }
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Nothing => f.write_str("no recording was named"),
            Self::NotFound(base) => {
                let files = Files::of(base);
                write!(f, "no recording {}: there is no {}", base.display(), files.meta.display())
            }
            Self::Meta(path, error) => write!(f, "{}: {error}", path.display()),
            Self::TooLarge(path, size) => write!(f, "{} has {size}: that is no file of a recording", path.display()),
            Self::NotTogether(a, b) => write!(
                f,
                "{} and {} are not members of one recording, or the same member twice: name one recording",
                a.display(),
                b.display()
            ),
            Self::AnotherSeries(segment, index) => write!(
                f,
                "{} belongs to another series than the index {}: move away the one that is wrong; without an index, \
                 `hairspring recover` makes one from the segments",
                segment.display(),
                index.display()
            ),
            Self::MembersMissing(missing, of) => {
                for (place, (number, path)) in missing.iter().enumerate() {
                    let comma = if place > 0 { ", " } else { "" };
                    write!(f, "{comma}member {} of {of} is missing (it was {})", number + 1, path.display())?;
                }
                f.write_str(": name it as well, where it is now")
            }
            Self::Elsewhere(named, members) => {
                let all: Vec<String> = members.iter().map(|(_, base)| base.display().to_string()).collect();
                write!(
                    f,
                    "nothing was changed, because {} was moved or copied, and other parts of the recording were found only in folders that \
                     were not named: if they belong together, name {} {}",
                    named.display(),
                    named.display(),
                    all.join(" ")
                )
            }
            Self::Owned(error) => error.fmt(f),
            Self::Limit(why) => f.write_str(why),
            Self::Cancelled => f.write_str("reading was cancelled"),
        }
    }
}

impl std::error::Error for RecordingError {}

impl Recording {
    /// Opens a recording by the path of any of its members, with or without an extension.
    /// [`Recording::missing_members`] lists members that are neither named nor at the path in the metadata. The name of
    /// a [series](crate::series), of its index or of its collection opens all of its segments as one recording.
    ///
    /// # Errors
    /// See [`RecordingError`].
    pub fn open(paths: &[PathBuf]) -> Result<Self, RecordingError> {
        Self::open_in(&mut *hairspring_store::best(1, Ways::ALL), paths)
    }

    /// Like [`open`](Self::open), through a store of the caller's choice.
    ///
    /// # Errors
    /// See [`RecordingError`].
    pub fn open_in(store: &mut dyn Store, paths: &[PathBuf]) -> Result<Self, RecordingError> {
        members::open(store, paths)
    }

    /// The description of the recording. Members that were found have the base paths where they were found.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Its end, by the metadata of its first member.
    pub fn closing(&self) -> Option<&Closing> {
        self.members.first()?.closing.as_ref()
    }

    /// The owner of its files when it was opened: a process that records, changes or deletes them.
    pub fn holder(&self) -> Option<Holder> {
        self.holder
    }

    /// Why the recording has no end yet, in a sentence; `None` if it has. May look for the process that owns the files.
    pub fn unfinished(&self) -> Option<String> {
        let is_open = self.ended.is_none() && !self.is_foreign();
        is_open.then(|| match self.holder {
            Some(holder) => format!("the recording {holder}: this is what is in the files so far"),
            None => "the recording was cut off; `recover` mends it".to_owned(),
        })
    }

    /// The remedy for a recording that is not in order, as a fragment. May look for the process that owns the files.
    pub fn remedy(&self) -> String {
        match self.holder {
            Some(holder) => format!("it {holder}: wait until that ends"),
            None => "recover it first".to_owned(),
        }
    }

    /// The base path of a series; `None` for one recording.
    pub fn series_base(&self) -> Option<&Path> {
        self.series_base.as_deref()
    }

    /// The members that were found, in order.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The member with this number, if it was found.
    pub fn member(&self, number: usize) -> Option<&Member> {
        self.members.iter().find(|member| member.number == number)
    }

    /// The missing members: their numbers from 0, and where they should be.
    pub fn missing_members(&self) -> &[(usize, PathBuf)] {
        &self.missing_members
    }

    /// Returns the recording if all members were found.
    ///
    /// # Errors
    /// [`RecordingError::MembersMissing`].
    pub fn whole(self) -> Result<Self, RecordingError> {
        self.require_members().map(|()| self)
    }

    /// The members that were found only in folders that were not named: their numbers from 0, and their places. They
    /// may be read.
    pub fn elsewhere(&self) -> Vec<(usize, PathBuf)> {
        let elsewhere = self.members.iter().filter(|member| member.elsewhere);
        elsewhere.map(|member| (member.number, member.base.clone())).collect()
    }

    /// The report on members that were found elsewhere, in words.
    pub fn told_elsewhere(&self) -> impl Iterator<Item = String> {
        let of = self.about.members.len();
        self.elsewhere().into_iter().map(move |(number, base)| {
            let base = base.display();
            format!("part {} of {of} is read at {base}, outside the folders that were named: name it, too, if it belongs here", number + 1)
        })
    }

    /// Refuses a recording if a member is missing, or lies where it must not be changed.
    pub fn require_changeable(&self) -> Result<(), RecordingError> {
        self.require_members()?;
        self.require_named()
    }

    /// Refuses a recording if a member lies where it must not be changed.
    pub fn require_named(&self) -> Result<(), RecordingError> {
        let elsewhere = self.elsewhere();
        match self.members.iter().find(|member| !member.elsewhere) {
            Some(named) if !elsewhere.is_empty() => Err(RecordingError::Elsewhere(named.base.clone(), elsewhere)),
            _ => Ok(()),
        }
    }

    /// Refuses a recording if a member is missing.
    pub fn require_members(&self) -> Result<(), RecordingError> {
        if self.missing_members.is_empty() {
            return Ok(());
        }
        Err(RecordingError::MembersMissing(self.missing_members.clone(), self.about.members.len()))
    }

    /// The blocks that the journals name, by index; not yet proven.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The bytes of these blocks.
    pub fn stored_bytes(&self) -> u64 {
        self.blocks.iter().map(|block| u64::from(block.length)).sum()
    }

    /// The frame to which each byte of the stored stream belongs.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The gaps, by position in the stored stream.
    pub fn gaps(&self) -> &[(u64, Gap)] {
        &self.gaps
    }

    /// The true lengths of those gaps that are only known as an interval.
    pub fn bounds(&self) -> &[GapBounds] {
        &self.bounds
    }

    /// The skips, by position in the stored stream.
    pub fn skips(&self) -> &[(u64, Skip)] {
        &self.skips
    }

    /// The number of each shot and the frame that triggered it.
    pub fn triggers(&self) -> &[(u64, Frames)] {
        &self.triggers
    }

    /// The operations that failed during the recording.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// Pieces of the stored stream that are in no file, declared or not.
    pub fn holes(&self) -> &[Hole] {
        &self.holes
    }

    /// How it ended, from the journals; `None` if it was cut off.
    pub fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// The faults of the files that show without reading the data: damaged journals, blocks after the end of their
    /// file, contradictions. The list is bounded.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Why none of the data may be cut off; the first reason of each member. They are among the faults, too.
    pub fn doubts(&self) -> &[MemberDoubt] {
        &self.doubts
    }

    /// The frames that a trigger asked to keep, for a segment. They may reach into its neighbours.
    pub fn kept(&self) -> &[KeptFrames] {
        &self.kept
    }

    /// The first frame of the next segment, if this is one of a series that was cut.
    pub fn cut(&self) -> Option<Frames> {
        self.cut
    }

    /// Ends a segment that was cut off where the next one begins: data that the source produced from that frame on are
    /// in the next segment. Changes nothing if the recording has ended or its own journal has a cut.
    pub fn ends_before(&mut self, next: Frames) {
        if self.ended.is_none() && self.cut.is_none() {
            self.cut = Some(next);
            self.produced = self.about.layout.bytes_of(next).0;
            self.holes = holes_between(self, &self.blocks);
        }
    }

    /// Sets the first frame of a segment whose journal has lost it, and the id of the previous segment. Changes nothing
    /// if the journal has the segment's begin.
    pub fn begins_at(&mut self, first: Frames, previous: Option<RecordingId>) {
        let Some(of) = self.about.series.as_mut().filter(|of| of.first.is_none()) else { return };
        (of.first, of.previous) = (Some(first), previous);
        self.leave_out_earlier();
    }

    /// Leaves out the frames before the first one, if this is a segment of a series whose journal has lost its place.
    fn leave_out_earlier(&mut self) {
        let first = self.about.series.as_ref().and_then(|of| of.first).unwrap_or_default();
        if first > Frames(0) && self.skips.is_empty() && self.gaps.is_empty() {
            self.timeline.skip(0, first);
            self.skips.push((0, Skip { first: Frames(0), frames: first }));
            self.holes = holes_between(self, &self.blocks);
        }
    }

    /// Bytes of the frames before the first one, if this is a segment of a series.
    pub fn earlier_bytes(&self) -> u64 {
        let first = self.about.series.as_ref().and_then(|of| of.first);
        self.about.layout.bytes_of(first.unwrap_or_default()).0
    }

    /// The account from the journals alone, without the parts under way.
    pub fn ledger(&self) -> Ledger {
        let layout = self.about.layout;
        let stored_bytes = self.stored_bytes();
        let lost = self.gaps.iter().fold(0_u64, |sum, (_, gap)| sum.saturating_add(layout.bytes_of(gap.frames).0));
        let left_out =
            self.skips.iter().fold(0_u64, |sum, (_, skip)| sum.saturating_add(layout.bytes_of(skip.frames).0));
        Ledger {
            produced_bytes: self.ended.map_or(self.produced, |ended| ended.produced_bytes),
            stored_bytes,
            durable_bytes: self.blocks.iter().filter(|block| block.durable).map(|block| u64::from(block.length)).sum(),
            lost_bytes: lost,
            left_out_bytes: left_out,
            earlier_bytes: self.earlier_bytes(),
            ..Ledger::default()
        }
    }
}
