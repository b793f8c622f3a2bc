//! [`Piece`]: the part of a recording that is exported: its frames, which of them are missing, and the reading of the
//! others.

use std::ops::Range;

use super::values::{Number, plain};
use super::{Cut, ExportError, ExportedPiece};
use hairspring_recording::verify::ReadProgress;
use hairspring_recording::{Block, BlockReader, MissingFrames, Recording, Unproven, leave_out_ends};
use hairspring_ring::units::{Bytes, Frames};
use hairspring_store::Store;

/// A cut, within the frames that the recording has.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// The number of its first frame, and the one after the last, missing ones included.
    pub(super) range: Range<u64>,
    /// Its missing frames, in order.
    pub(super) missing: Vec<MissingFrames>,
    /// The first frame after the known end of the recording, if the cut reaches it.
    unknown_from: Option<Frames>,
}

/// Takes whole rows in the numbers of the layout, and the global index of the first.
type Take<'a> = dyn FnMut(Frames, &[u8]) -> Result<(), ExportError> + 'a;

impl Piece {
    /// # Errors
    /// The cut begins after the end of the recording.
    pub(super) fn of(recording: &Recording, cut: Cut) -> Result<Self, ExportError> {
        let missing = recording.missing();
        let extent = missing.extent();
        if cut.first.0 > extent.end {
            return Err(ExportError::Unsuitable(format!(
                "there is no frame {}: the recording has frames {} to before {}",
                cut.first.0, extent.start, extent.end
            )));
        }
        let start = cut.first.0.max(extent.start);
        let range = start..cut.end().0.min(extent.end).max(start);
        let unknown_from = (!missing.is_end_known() && cut.end().0 > extent.end).then_some(Frames(extent.end));
        Ok(Self { missing: missing.within(range.clone()).collect(), range, unknown_from })
    }

    /// Leaves out missing frames at both ends that are not lost: frames that no trigger asked for or that retention
    /// deleted.
    pub(super) fn shorten(&mut self) {
        leave_out_ends(&mut self.range, &mut self.missing);
    }

    /// # Errors
    /// A frame is missing.
    pub(super) fn demand_whole(&self) -> Result<(), ExportError> {
        let Some(gap) = self.missing.first() else { return Ok(()) };
        Err(ExportError::Unsuitable(format!(
            "frames {} to {} are missing in this piece ({}): choose a piece without a gap, or say whether gaps are left out or filled",
            gap.first.0,
            gap.end().0 - 1,
            gap.cause
        )))
    }

    /// The number of existing frames.
    pub(super) fn frames_there(&self) -> u64 {
        let missing: u64 = self.missing.iter().map(|missing| missing.frames.0).sum();
        self.range.end - self.range.start - missing
    }

    /// The first existing frame, or the first of the piece if there is none.
    pub(super) fn first_there(&self) -> u64 {
        let mut first = self.range.start;
        for missing in &self.missing {
            if missing.first.0 > first {
                break;
            }
            first = missing.end().0;
        }
        if first < self.range.end { first } else { self.range.start }
    }

    /// The runs of frames without a gap.
    pub(super) fn runs(&self) -> Vec<Range<u64>> {
        let mut at = self.range.start;
        let mut runs = Vec::with_capacity(self.missing.len() + 1);
        for missing in &self.missing {
            runs.push(at..missing.first.0);
            at = missing.end().0;
        }
        runs.push(at..self.range.end);
        runs.retain(|run| !run.is_empty());
        runs
    }

    /// The export's report on the piece itself.
    pub(super) fn exported(&self) -> ExportedPiece {
        ExportedPiece {
            first: Frames(self.range.start),
            frames: Frames(self.frames_there()),
            missing: self.missing.clone(),
            unknown_from: self.unknown_from,
        }
    }

    /// The first frame after the known end of the recording.
    pub(super) fn unknown_from(&self) -> Option<Frames> {
        self.unknown_from
    }

    /// Hands the proven rows of the piece to `take`, run by run in order: exactly its frames, though a grain may have
    /// two.
    pub(super) fn read(
        &self,
        store: &mut dyn Store,
        recording: &Recording,
        progress: &mut dyn FnMut(ReadProgress),
        take: &mut Take<'_>,
    ) -> Result<(), ExportError> {
        let layout = recording.about().layout;
        let row = Number::of(layout).bytes() * u64::from(layout.channels());
        let touched = recording.blocks().iter().filter(|block| !pieces_of(recording, block, &self.range).is_empty());
        let blocks: Vec<Block> = touched.copied().collect();
        let total = Bytes(blocks.iter().map(|block| u64::from(block.length)).sum());
        let mut done = 0;
        let mut reader = BlockReader::of(store, recording, blocks)?;
        while let Some((block, bytes)) = reader.next_block() {
            let bytes = match bytes {
                Ok(bytes) => bytes,
                Err(why) => {
                    drop(reader);
                    return Err(unread(store, recording, &block, why));
                }
            };
            for BlockPiece { start, first, frames } in pieces_of(recording, &block, &self.range) {
                // The lengths of a block and of its pieces are whole grains.
                let length = layout.bytes_of(frames).0 as usize;
                let rows = plain(layout, bytes.get(start..start + length).unwrap_or_default());
                let from = self.range.start.max(first.0);
                let to = self.range.end.min(first.0 + frames.0);
                let [from_byte, to_byte] = [from, to].map(|frame| ((frame - first.0) * row) as usize);
                take(Frames(from), rows.get(from_byte..to_byte).unwrap_or_default())?;
            }
            done += u64::from(block.length);
            progress(ReadProgress { done: Bytes(done), total });
        }
        Ok(())
    }
}

/// A part of a block without a gap, in whole grains.
pub(super) struct BlockPiece {
    /// Its place in the block.
    pub(super) start: usize,
    pub(super) first: Frames,
    pub(super) frames: Frames,
}

/// The parts of a block that hold frames of a range, in whole grains.
pub(super) fn pieces_of(recording: &Recording, block: &Block, range: &Range<u64>) -> Vec<BlockPiece> {
    let timeline = recording.timeline();
    let layout = timeline.layout();
    let grain = layout.grain().frames;
    let runs = timeline.runs_in(block.position, Bytes(block.length.into()));
    let clipped = runs.filter_map(|run| {
        let end = run.first.0.saturating_add(layout.frames_in(run.length.unwrap_or_default()).0);
        // To whole grains from the run's beginning: bytes are not split within one.
        let from = range.start.max(run.first.0);
        let from = run.first.0 + (from - run.first.0) / grain * grain;
        let to = range.end.min(end);
        (from < to).then(|| {
            let frames = (to - from).next_multiple_of(grain);
            let start = run.position - block.position + layout.bytes_of(Frames(from - run.first.0)).0;
            BlockPiece { start: start as usize, first: Frames(from), frames: Frames(frames) }
        })
    });
    clipped.collect()
}

/// Why a block cannot be exported: retention deleted it since the series was opened, or it is damaged.
fn unread(store: &mut dyn Store, recording: &Recording, block: &Block, why: Unproven) -> ExportError {
    match recording.deleted_since(store, recording.blocks()) {
        Ok(deleted) if deleted.binary_search(&block.index).is_ok() => ExportError::Deleted(deleted),
        Ok(_) => damaged(recording, block, why),
        Err(error) => error.into(),
    }
}

fn damaged(recording: &Recording, block: &Block, why: Unproven) -> ExportError {
    let timeline = recording.timeline();
    let first = timeline.frame_at(block.position);
    let remedy = match why {
        Unproven::Read(_) => String::new(),
        Unproven::Short | Unproven::Checksum if recording.holder().is_some() => format!("; {}", recording.remedy()),
        Unproven::Short | Unproven::Checksum => "; `hairspring recover --all` leaves it out".to_owned(),
    };
    ExportError::Damaged(format!(
        "block {} of the recording, which begins with frame {}: {why}{remedy}",
        block.index, first.0
    ))
}
