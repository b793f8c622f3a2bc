//! [`Timeline`]: which frame of the source each byte of the stored stream is.
//!
//! The stored stream has no holes. The source's stream has holes where frames were lost or left out. The timeline lists
//! the places where the two streams differ.

use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Bytes, Frames};

/// Converts positions in the stored stream to frames of the source, and back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    layout: Layout,
    /// Position of the first byte and global index of the frame it belongs to, of every run without holes; ascending in
    /// both.
    runs: Vec<(u64, Frames)>,
}

/// A run of frames without a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Position of its first byte in the stored stream.
    pub position: u64,
    /// The global index of its first frame.
    pub first: Frames,
    /// Its length; `None` for the last run of a stream that is still growing.
    pub length: Option<Bytes>,
}

impl Timeline {
    /// The timeline of a stream without holes.
    pub fn new(layout: Layout) -> Self {
        Self { layout, runs: vec![(0, Frames(0))] }
    }

    /// The layout of its frames.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Enters a hole: `frames` frames are missing before the byte at `position`. Positions ascend and are whole grains.
    ///
    /// # Panics
    /// If the position is before the last hole.
    pub fn skip(&mut self, position: u64, frames: Frames) {
        let index = Frames(self.frame_at(position).0.saturating_add(frames.0));
        match self.runs.last_mut() {
            Some(last) if last.0 == position => last.1 = index,
            Some(last) => {
                assert!(last.0 < position, "holes ascend");
                self.runs.push((position, index));
            }
            None => unreachable!("there is always a first run"),
        }
    }

    /// Ends the stored stream at a position and forgets the rest. Returns the frame that would come next if there
    /// were no hole.
    pub fn cut(&mut self, position: u64) -> Frames {
        while self.runs.len() > 1 && self.runs.last().is_some_and(|run| run.0 > position) {
            self.runs.pop();
        }
        self.frame_at(position)
    }

    /// The global index of the frame to which the byte at a position belongs.
    pub fn frame_at(&self, position: u64) -> Frames {
        let run = self.runs.partition_point(|run| run.0 <= position).max(1) - 1;
        let (start, first) = self.runs[run];
        Frames(first.0.saturating_add(self.layout.frames_in(Bytes(position - start)).0))
    }

    /// The position where a frame begins; for a missing frame, the position where the next stored frame begins.
    pub fn position_of(&self, frame: Frames) -> u64 {
        let run = self.runs.partition_point(|run| run.1 <= frame);
        if run == 0 {
            return 0;
        }
        let (start, first) = self.runs[run - 1];
        let position = start.saturating_add(self.layout.bytes_of(Frames(frame.0 - first.0)).0);
        self.runs.get(run).map_or(position, |next| position.min(next.0))
    }

    /// The runs within a piece of the stored stream, in order, cut at its ends; each has a length.
    pub fn runs_in(&self, position: u64, length: Bytes) -> impl Iterator<Item = Run> + '_ {
        let end = position.saturating_add(length.0);
        let first = self.runs.partition_point(|run| run.0 <= position).max(1) - 1;
        let starts =
            self.runs[first..].iter().map(move |run| run.0.max(position)).take_while(move |start| *start < end);
        starts.enumerate().map(move |(number, start)| {
            let next = self.runs.get(first + number + 1).map_or(end, |next| next.0.min(end));
            Run { position: start, first: self.frame_at(start), length: Some(Bytes(next - start)) }
        })
    }

    /// The runs, in order.
    pub fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        self.runs.iter().enumerate().map(|(number, (position, first))| Run {
            position: *position,
            first: *first,
            length: self.runs.get(number + 1).map(|next| Bytes(next.0 - position)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_frames_are_each_others_inverse_around_holes() {
        let layout = Layout::analogue(2, 16).expect("exists");
        let mut timeline = Timeline::new(layout);
        timeline.skip(40, Frames(5));
        timeline.skip(40, Frames(2));
        timeline.skip(100, Frames(1000));
        let frames: Vec<u64> = [0, 39, 40, 99, 100, 104].map(|position| timeline.frame_at(position).0).into();
        assert_eq!(frames, [0, 9, 17, 31, 1032, 1033]);
        for position in (0..200).step_by(4) {
            assert_eq!(timeline.position_of(timeline.frame_at(position)), position);
        }
        assert_eq!(timeline.position_of(Frames(12)), 40, "a lost frame");
        let lengths: Vec<_> = timeline.runs().map(|run| run.length).collect();
        assert_eq!(lengths, [Some(Bytes(40)), Some(Bytes(60)), None]);
    }

    #[test]
    fn a_piece_has_the_runs_that_lie_in_it() {
        let mut timeline = Timeline::new(Layout::analogue(2, 16).expect("exists"));
        timeline.skip(40, Frames(7));
        timeline.skip(100, Frames(1000));
        let runs = |position, length| -> Vec<_> {
            let runs = timeline.runs_in(position, Bytes(length));
            runs.map(|run| (run.position, run.first.0, run.length.map_or(0, |length| length.0))).collect()
        };
        assert_eq!(runs(0, 200), [(0, 0, 40), (40, 17, 60), (100, 1032, 100)]);
        assert_eq!(runs(40, 60), [(40, 17, 60)]);
        assert_eq!(runs(20, 24), [(20, 5, 20), (40, 17, 4)]);
        assert_eq!(runs(400, 8), [(400, 1107, 8)]);
        assert_eq!(runs(8, 0), []);
    }

    #[test]
    fn a_stream_may_begin_with_a_hole() {
        let mut timeline = Timeline::new(Layout::analogue(1, 8).expect("exists"));
        timeline.skip(0, Frames(7));
        assert_eq!(timeline.frame_at(0), Frames(7));
        assert_eq!(timeline.position_of(Frames(3)), 0);
        assert_eq!(timeline.runs().count(), 1);
    }
}
