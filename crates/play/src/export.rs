//! Exports of recordings: a view for HDF5 that copies no samples, and cuts as NumPy's `.npy`, WAV, FLAC, Zarr, CSV and
//! HDF5.
//!
//! Cuts contain proven samples only; a damaged block ends the export with an error. Every output is a new file, or for
//! Zarr a new folder, that gets its name when it is whole. No file is overwritten. Arrays refuse a cut with gaps unless
//! the caller chooses how to treat missing frames ([`GapChoice`]). The recording itself determines which frames are
//! missing ([`Missing`](hairspring_recording::Missing)), and every export reports them ([`ExportedPiece`]).

mod array_facts;
mod csv;
mod flac;
mod hdf5;
mod npy;
mod output;
mod piece;
mod rows;
#[cfg(test)]
mod tests;
mod values;
mod wav;
mod zarr;

use std::fmt;
use std::path::PathBuf;

use hairspring_recording::{MissingFrames, RecordingError};
use hairspring_ring::units::Frames;

pub use csv::{Csv, csv};
pub use flac::flac;
pub use hdf5::{Hdf5View, MOST_DATASETS, MOST_PIECES, hdf5, hdf5_copy};
pub use npy::npy;
pub use rows::GapChoice;
pub use wav::wav;
pub use zarr::zarr;

/// A piece of a recording, in frames of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The global index of its first frame.
    pub first: Frames,
    /// Its length.
    pub frames: Frames,
}

impl Cut {
    /// All of it.
    pub const ALL: Self = Self { first: Frames(0), frames: Frames(u64::MAX) };

    fn end(self) -> Frames {
        Frames(self.first.0.saturating_add(self.frames.0))
    }
}

/// The numbers of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportUnits {
    /// The codes that were recorded.
    Codes,
    /// Values in the units of the channels, code × scale + offset, as 64-bit floats. A channel without both is an
    /// error.
    Channels,
}

/// Options of an export as an array: NumPy, WAV, FLAC, Zarr.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrayCut {
    /// The exported frames.
    pub cut: Cut,
    /// The treatment of missing frames.
    pub gaps: GapChoice,
    /// The numbers; WAV and FLAC hold codes only.
    pub units: ExportUnits,
}

/// The exported frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedPiece {
    /// The global index of the first row.
    pub first: Frames,
    /// The number of rows.
    pub frames: Frames,
    /// The frames of the piece that the recording lacks, in order.
    pub missing: Vec<MissingFrames>,
    /// The first frame after the known end of a recording that was cut off; `None` if the piece does not reach it.
    pub unknown_from: Option<Frames>,
}

impl ExportedPiece {
    /// Whether data are lost in the piece, or may be. Frames that were left out on purpose are not lost.
    pub fn lacks_data(&self) -> bool {
        self.unknown_from.is_some() || self.missing.iter().any(|missing| missing.cause.is_loss())
    }
}

/// Why an export failed. The incomplete output is removed.
#[derive(Debug)]
pub enum ExportError {
    /// The recording cannot be read.
    Recording(RecordingError),
    /// The output cannot be written: its path, and the system's error.
    Output(PathBuf, std::io::Error),
    /// The format cannot hold it, for this reason, with a remedy.
    Unsuitable(String),
    /// A block differs from what was recorded: which, and why.
    Damaged(String),
    /// Retention deleted these blocks of the series while they were read; the indices ascend. An export without them
    /// succeeds: [`Recording::leave_out_deleted`](hairspring_recording::Recording::leave_out_deleted).
    Deleted(Vec<u64>),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recording(error) => error.fmt(f),
            Self::Output(path, error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                write!(f, "{} exists already: it is not overwritten, choose another name", path.display())
            }
            Self::Output(path, error) => write!(f, "write {}: {error}", path.display()),
            Self::Unsuitable(why) | Self::Damaged(why) => f.write_str(why),
            Self::Deleted(blocks) => {
                let count = blocks.len();
                write!(
                    f,
                    "retention deleted {count} blocks of the series while it was exported: export what is left, or pin segments with `keep`"
                )
            }
        }
    }
}

impl std::error::Error for ExportError {}

impl From<RecordingError> for ExportError {
    fn from(error: RecordingError) -> Self {
        Self::Recording(error)
    }
}
