//! Segments that retention deletes from a series while it is read.
//!
//! **Problem.** A reader opens a series and then reads for minutes. Retention deletes the oldest segments meanwhile, so
//! their files are gone when the reader comes to them.
//!
//! **Solution.** The index lists a segment as deleted before its first file is removed. A reader that cannot read a
//! block reads the index again ([`Recording::deleted_since`]), and leaves out the deleted blocks
//! ([`Recording::leave_out_deleted`]): those frames are missing because they were deleted, and are no damage. Segments
//! that the index still lists are damaged.

use super::{Block, MissingCause, Recording, RecordingError};
use crate::series::open::read_index;
use crate::series::{index_of, segment_of};
use crate::sync_io::BlockingStore;
use hairspring_ring::gap::Skip;
use hairspring_ring::units::{Bytes, Frames};
use hairspring_store::Store;

impl Recording {
    /// The indices of the given blocks whose segments retention has deleted since the series was opened; empty for a
    /// recording that is no series. Blocks.
    ///
    /// # Errors
    /// The index of the series cannot be read.
    pub fn deleted_since(&self, store: &mut dyn Store, blocks: &[Block]) -> Result<Vec<u64>, RecordingError> {
        let Some(series) = self.series_base.as_deref().filter(|_| !blocks.is_empty()) else { return Ok(Vec::new()) };
        let Some(index) = read_index(&mut BlockingStore::small(store)?, &index_of(series))? else {
            return Ok(Vec::new());
        };
        let is_deleted = |block: &&Block| {
            let member = self.members.binary_search_by_key(&block.member, |member| member.number);
            let segment = member.ok().and_then(|place| segment_of(&self.members[place].base));
            segment.is_some_and(|(_, number)| number < index.next && !index.segments.contains_key(&number))
        };
        Ok(blocks.iter().filter(is_deleted).map(|block| block.index).collect())
    }

    /// Leaves out blocks that [`Recording::deleted_since`] found: their frames are missing, because retention deleted
    /// them. The indices ascend.
    pub fn leave_out_deleted(&mut self, blocks: &[u64]) {
        let (gone, rest): (Vec<Block>, Vec<Block>) =
            self.blocks.iter().partition(|block| blocks.binary_search(&block.index).is_ok());
        self.blocks = rest;
        let mut skips: Vec<(u64, Skip)> = Vec::new();
        for block in &gone {
            for run in self.timeline.runs_in(block.position, Bytes(block.length.into())) {
                let frames = self.about.layout.frames_in(run.length.unwrap_or_default());
                match skips.last_mut() {
                    Some((_, last)) if last.first.0 + last.frames.0 == run.first.0 => last.frames.0 += frames.0,
                    _ => skips.push((run.position, Skip { first: run.first, frames })),
                }
            }
        }
        let frames = Frames(skips.iter().map(|(_, skip)| skip.frames.0).sum());
        if let Some(ended) = &mut self.ended {
            let bytes = self.about.layout.bytes_of(frames).0;
            ended.stored_bytes = ended.stored_bytes.saturating_sub(bytes);
            ended.left_out_bytes = ended.left_out_bytes.saturating_add(bytes);
        }
        self.between.extend(skips.iter().map(|(_, skip)| (*skip, MissingCause::Deleted)));
        self.skips.extend(skips);
        self.skips.sort_by_key(|(position, skip)| (*position, skip.first));
    }
}
