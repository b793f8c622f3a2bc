//! [`StoredSegment`]: a piece of a data file in which no frame is missing. SigMF calls it a capture.

use crate::timeline::Timeline;
use hairspring_ring::units::{Bytes, Frames};

/// A piece of one data file in which no frame is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredSegment {
    /// Where it begins, in frames from the beginning of this data file.
    pub sample_start: Frames,
    /// The global index of its first frame.
    pub first: Frames,
    /// Its length.
    pub frames: Frames,
}

/// The segments of a data file, from the blocks in it: offset in the file, position in the stored stream, length, all
/// in bytes and whole grains; ascending by offset. Pieces that follow one another in the file and in the source are one
/// segment.
pub fn segments(timeline: &Timeline, blocks: impl IntoIterator<Item = (u64, u64, Bytes)>) -> Vec<StoredSegment> {
    let layout = timeline.layout();
    let mut segments: Vec<StoredSegment> = Vec::new();
    for (offset, position, length) in blocks {
        for run in timeline.runs_in(position, length) {
            let sample_start = layout.frames_in(Bytes(offset + (run.position - position)));
            let frames = layout.frames_in(run.length.unwrap_or_default());
            match segments.last_mut() {
                Some(last)
                    if last.sample_start.0 + last.frames.0 == sample_start.0
                        && last.first.0 + last.frames.0 == run.first.0 =>
                {
                    last.frames.0 += frames.0;
                }
                _ => segments.push(StoredSegment { sample_start, first: run.first, frames }),
            }
        }
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;
    use hairspring_ring::layout::Layout;

    #[test]
    fn segments_end_where_frames_are_missing_and_nowhere_else() {
        let mut timeline = Timeline::new(Layout::analogue(1, 16).expect("exists"));
        timeline.skip(12, Frames(5));
        timeline.skip(16, Frames(1));
        let segment = |sample_start, first, frames| StoredSegment {
            sample_start: Frames(sample_start),
            first: Frames(first),
            frames: Frames(frames),
        };
        let all = segments(&timeline, [(0, 0, Bytes(8)), (8, 8, Bytes(8)), (16, 16, Bytes(8))]);
        assert_eq!(all, [segment(0, 0, 6), segment(6, 11, 2), segment(8, 14, 4)]);
        // A member that has every second block, and one with a block out of its order.
        let second = segments(&timeline, [(0, 0, Bytes(8)), (8, 16, Bytes(8))]);
        assert_eq!(second, [segment(0, 0, 4), segment(4, 14, 4)]);
        let swapped = segments(&timeline, [(0, 8, Bytes(8)), (8, 0, Bytes(8))]);
        assert_eq!(swapped, [segment(0, 4, 2), segment(2, 11, 2), segment(4, 0, 4)]);
    }
}
