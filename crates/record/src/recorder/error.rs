//! [`RecorderError`]: why a recorder could not be made.

use std::path::PathBuf;

use hairspring_recording::MOST_BLOCK;
use hairspring_ring::memory::MemoryError;
use hairspring_ring::units::Bytes;
use hairspring_store::StoreError;
use hairspring_store::owner::OwnError;

/// Why a recorder could not be made. Files that were begun are removed.
#[derive(Debug)]
pub enum RecorderError {
    /// A file could not be made.
    Store(StoreError),
    /// Another process owns a file of this name.
    Owned(OwnError),
    /// The expected volume does not fit: the folder, the bytes needed, the bytes free.
    NoSpace(PathBuf, Bytes, Option<Bytes>),
    /// There is no memory for copies of blocks.
    Memory(MemoryError),
    /// The ring is too small for the blocks: the size of a block, and the least size of a ring.
    SmallRing(Bytes, Bytes),
    /// Blocks of whole frames with the disks' alignment would be larger than readers accept: their size.
    LargeBlock(Bytes),
    /// No target, or depth 0 or above [`MOST_DEPTH`](super::MOST_DEPTH).
    Setup(&'static str),
}

impl std::fmt::Display for RecorderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) if error.errno.0 == libc::EEXIST => {
                write!(
                    f,
                    "{} exists already: recordings are never overwritten, choose another name",
                    error.path.display()
                )
            }
            Self::Store(error) => error.fmt(f),
            Self::Owned(error) => error.fmt(f),
            Self::NoSpace(folder, needed, free) => {
                write!(f, "the recording needs {needed} in {}", folder.display())?;
                match free {
                    Some(free) => write!(f, ", where {free} are free: record less, or add a target"),
                    None => f.write_str(", which are not free: record less, or add a target"),
                }
            }
            Self::Memory(error) => error.fmt(f),
            Self::SmallRing(block, least) => write!(
                f,
                "a buffer for blocks of {block} needs {least} at least: choose a larger buffer or a smaller notify size"
            ),
            Self::LargeBlock(block) => write!(
                f,
                "blocks of whole frames that suit the disk have {block} at least, and at most {MOST_BLOCK} are read back: record \
                 fewer channels, or to a disk of smaller sectors"
            ),
            Self::Setup(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for RecorderError {}

impl From<OwnError> for RecorderError {
    fn from(error: OwnError) -> Self {
        match error {
            OwnError::Store(error) => Self::Store(error),
            error => Self::Owned(error),
        }
    }
}

impl From<StoreError> for RecorderError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
