//! Exports of recordings: a view for HDF5 that copies no samples, and cuts as NumPy's `.npy`, WAV, FLAC, Zarr and CSV.
//!
//! Cuts contain proven samples only; a damaged block ends the export with an error. Every output is a new file, or for Zarr a new folder,
//! that gets its name when it is whole. No file is overwritten. Arrays refuse a cut with gaps unless the caller says what becomes of the
//! missing frames ([`GapChoice`]).

mod array_facts;
mod csv;
mod flac;
mod hdf5;
mod npy;
mod output;
mod rows;
#[cfg(test)]
mod tests;
mod values;
mod wav;
mod zarr;

use std::fmt;
use std::path::PathBuf;

use hairspring_record::recording::{Block, BlockReader, Recording, RecordingError};
use hairspring_record::store::Store;
use hairspring_record::verify::ReadProgress;
use hairspring_ring::gap::Gap;
use hairspring_ring::units::{Bytes, Frames};

pub use csv::{Csv, csv};
pub use flac::flac;
pub use hdf5::{Hdf5View, MOST_DATASETS, MOST_PIECES, hdf5};
pub use npy::{ArrayCut, npy};
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

/// Why an export failed. The incomplete output is removed.
#[derive(Debug)]
pub enum ExportError {
    /// The recording cannot be read.
    Recording(RecordingError),
    /// The output cannot be written: which, and what the system said.
    Output(PathBuf, std::io::Error),
    /// The format cannot hold it, for this reason, with a remedy.
    Unsuitable(String),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recording(error) => error.fmt(f),
            Self::Output(path, error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                write!(f, "{} exists already: it is not overwritten, choose another name", path.display())
            }
            Self::Output(path, error) => write!(f, "write {}: {error}", path.display()),
            Self::Unsuitable(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ExportError {}

impl From<RecordingError> for ExportError {
    fn from(error: RecordingError) -> Self {
        Self::Recording(error)
    }
}

/// A run of frames in a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    first: Frames,
    frames: Frames,
}

/// The existing frames of a cut, as runs without a hole.
fn parts(recording: &Recording, cut: Cut) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for block in recording.blocks() {
        for (_, part) in pieces_of(recording, block, cut) {
            match parts.last_mut() {
                Some(last) if last.first.0 + last.frames.0 == part.first.0 => last.frames.0 += part.frames.0,
                _ => parts.push(part),
            }
        }
    }
    parts
}

/// The part of a block within a cut: its place in the block and its frames, in whole grains.
fn pieces_of(recording: &Recording, block: &Block, cut: Cut) -> Vec<(usize, Part)> {
    let timeline = recording.timeline();
    let layout = timeline.layout();
    let grain = layout.grain().frames;
    let runs = timeline.runs_in(block.position, Bytes(block.length.into()));
    let clipped = runs.filter_map(|run| {
        let end = run.first.0.saturating_add(layout.frames_in(run.length.unwrap_or_default()).0);
        // To whole grains from the run's beginning: the cut is not split within one.
        let from = cut.first.0.max(run.first.0);
        let from = run.first.0 + (from - run.first.0) / grain * grain;
        let to = cut.end().0.min(end);
        (from < to).then(|| {
            let frames = (to - from).next_multiple_of(grain);
            let start = run.position - block.position + layout.bytes_of(Frames(from - run.first.0)).0;
            (start as usize, Part { first: Frames(from), frames: Frames(frames) })
        })
    });
    clipped.collect()
}

/// The gaps that touch a cut.
fn gaps_in(recording: &Recording, cut: Cut) -> impl Iterator<Item = &Gap> {
    let gaps = recording.gaps().iter().map(|(_, gap)| gap);
    gaps.filter(move |gap| gap.first < cut.end() && gap.end() > cut.first)
}

/// Takes the bytes of a run of frames and the global index of the first.
type Take<'a> = dyn FnMut(Frames, &[u8]) -> Result<(), ExportError> + 'a;

/// Hands the proven bytes of a cut to `take`, run by run in order, with the global index of the first frame.
fn read(
    store: &mut dyn Store,
    recording: &Recording,
    cut: Cut,
    progress: &mut dyn FnMut(ReadProgress),
    take: &mut Take<'_>,
) -> Result<(), ExportError> {
    let touched = recording.blocks().iter().filter(|block| !pieces_of(recording, block, cut).is_empty());
    let blocks: Vec<Block> = touched.copied().collect();
    let total = Bytes(blocks.iter().map(|block| u64::from(block.length)).sum());
    let layout = recording.about().layout;
    let mut done = 0;
    let mut reader = BlockReader::of(store, recording, blocks)?;
    while let Some((block, bytes)) = reader.next_block() {
        let bytes = bytes.map_err(|why| {
            let remedy = match recording.holder() {
                Some(_) => recording.remedy(),
                None => "`recover` leaves it out".to_owned(),
            };
            ExportError::Unsuitable(format!("block {} of the recording: {why}; {remedy}", block.index))
        })?;
        for (start, part) in pieces_of(recording, &block, cut) {
            let length = layout.bytes_of(part.frames).0 as usize;
            // The length of a block is whole grains, and so is that of a part in it.
            take(part.first, bytes.get(start..start + length).unwrap_or_default())?;
        }
        done += u64::from(block.length);
        progress(ReadProgress { done: Bytes(done), total });
    }
    Ok(())
}

/// Refuses a cut that is not one array: an empty cut, or a cut with holes. Returns how many frames it has.
fn one_part(recording: &Recording, cut: Cut, may_have_holes: bool) -> Result<u64, ExportError> {
    let parts = parts(recording, cut);
    let frames = parts.iter().map(|part| part.frames.0).sum();
    match (&parts[..], may_have_holes) {
        ([], _) => Err(ExportError::Unsuitable("this piece of the recording has no frames".to_owned())),
        ([_], _) | (_, true) => Ok(frames),
        ([first, second, ..], false) => Err(ExportError::Unsuitable(format!(
            "frames {} to {} are missing in this piece: choose a piece without a gap, or say whether gaps are left out or filled",
            first.first.0 + first.frames.0,
            second.first.0 - 1
        ))),
    }
}
