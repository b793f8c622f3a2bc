//! [`TapTrace`]: a stream reduced to the smallest and largest value of each piece of time, for pictures.
//!
//! Every frame that was read is in one point, so a spike of a single sample is in the picture however long the picture
//! is. Points are numbered by the frames of the source: a missing point is a hole in the stream, and stays a hole in
//! the picture.

use std::collections::VecDeque;

use hairspring_ring::monitor::{MOST_POINTS, Picture};
use hairspring_ring::{Bytes, Frames, Layout};

use crate::reader::TapPiece;

/// One piece of time.
#[derive(Clone, Debug, PartialEq)]
pub struct TracePoint {
    /// The number of the piece: the first frame's number by the frames of a point.
    pub number: u64,
    /// Number of its frames that were read.
    pub frames: Frames,
    /// The smallest and the largest value of each channel, as stored.
    pub extremes: Vec<(f64, f64)>,
}

/// The newest points of a stream.
#[derive(Debug)]
pub struct TapTrace {
    layout: Layout,
    /// Frames of a point.
    per_point: u64,
    /// Most points.
    most: usize,
    /// In order; the last one may still grow.
    points: VecDeque<TracePoint>,
    /// The frame after the last one, if its number is known.
    end: u64,
}

impl TapTrace {
    /// A trace of the newest `points` pieces of `frames` each, both at least 1.
    pub fn new(layout: Layout, frames: Frames, points: usize) -> Self {
        // Whole grains, so that a piece of bytes holds whole frames.
        let per_point = frames.0.max(1).next_multiple_of(layout.grain().frames);
        Self { layout, per_point, most: points.max(1), points: VecDeque::new(), end: 0 }
    }

    /// Frames of a point.
    pub fn frames_per_point(&self) -> Frames {
        Frames(self.per_point)
    }

    /// The points, oldest first; the last one may be growing.
    pub fn points(&self) -> impl ExactSizeIterator<Item = &TracePoint> {
        self.points.iter()
    }

    /// The complete points from a number on.
    pub fn complete_from(&self, number: u64) -> impl Iterator<Item = &TracePoint> {
        let complete = self.end / self.per_point;
        self.points.iter().filter(move |point| (number..complete).contains(&point.number))
    }

    /// Enters a piece that was read. Takes time in proportion to its frames.
    ///
    /// # Panics
    /// If the bytes are fewer than the piece has.
    pub fn enter(&mut self, piece: &TapPiece, bytes: &[u8]) {
        let grain = self.layout.grain();
        let bytes_of = |frames: u64| (frames / grain.frames * grain.bytes) as usize;
        // Without a number, continue the count after a hole.
        let first = piece.first_frame.map_or(self.end + self.per_point, |frame| frame.0);
        let mut done = 0;
        while done < piece.frames.0 {
            let frame = first + done;
            let left = piece.frames.0 - done;
            // Up to the next edge of a point, or whole points.
            let to_edge = self.per_point - frame % self.per_point;
            let (frames, points) = match left / self.per_point {
                whole @ 1.. if to_edge == self.per_point => {
                    let points = whole.min(MOST_POINTS as u64);
                    (points * self.per_point, points as usize)
                }
                _ => (left.min(to_edge), 1),
            };
            // A gap inside a grain: its frames count to the point in which they begin.
            let frames = frames.next_multiple_of(grain.frames).min(left);
            let picture = Picture::of(self.layout, &bytes[bytes_of(done)..bytes_of(done + frames)], points);
            for point in 0..points {
                let number = frame / self.per_point + point as u64;
                let extremes = picture.channels.iter().filter_map(|channel| channel.envelope.get(point).copied());
                self.grow(number, Frames(frames / points as u64), extremes.collect());
            }
            done += frames;
        }
        self.end = first + piece.frames.0;
    }

    fn grow(&mut self, number: u64, frames: Frames, extremes: Vec<(f64, f64)>) {
        match self.points.back_mut() {
            Some(last) if last.number == number => {
                last.frames.0 += frames.0;
                for (known, new) in last.extremes.iter_mut().zip(extremes) {
                    *known = (known.0.min(new.0), known.1.max(new.1));
                }
            }
            _ => {
                if self.points.len() == self.most {
                    self.points.pop_front();
                }
                self.points.push_back(TracePoint { number, frames, extremes });
            }
        }
    }

    /// Bytes of `frames` frames, rounded up to whole grains: the room that a read needs.
    pub fn room_for(layout: Layout, frames: Frames) -> Bytes {
        let grain = layout.grain();
        Bytes(frames.0.max(1).div_ceil(grain.frames).saturating_mul(grain.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(first: u64, frames: u64) -> TapPiece {
        TapPiece { position: 0, first_frame: Some(Frames(first)), frames: Frames(frames), missed: Frames(0) }
    }

    fn bytes(values: impl IntoIterator<Item = i16>) -> Vec<u8> {
        values.into_iter().flat_map(i16::to_le_bytes).collect()
    }

    /// One sample among ten thousand, wherever it lies, however the stream is cut into reads: it is in exactly one
    /// point.
    #[test]
    fn no_spike_is_lost() {
        let layout = Layout::analogue(1, 16).expect("exists");
        for (spike, cut) in [(0, 1), (99, 7), (100, 100), (5_432, 333), (9_999, 10_000), (1_234, 99)] {
            let mut trace = TapTrace::new(layout, Frames(100), 1000);
            let mut first = 0;
            while first < 10_000 {
                let frames = cut.min(10_000 - first);
                let values = (first..first + frames).map(|frame| if frame == spike { 7 } else { -1 });
                trace.enter(&piece(first, frames), &bytes(values));
                first += frames;
            }
            assert_eq!(trace.points().len(), 100);
            assert_eq!(trace.complete_from(0).count(), 100);
            for (number, point) in trace.points().enumerate() {
                let most = if number as u64 == spike / 100 { 7.0 } else { -1.0 };
                assert_eq!((point.number, point.frames), (number as u64, Frames(100)));
                assert_eq!(point.extremes, [(-1.0, most)], "{spike} {cut} {number}");
            }
        }
    }

    #[test]
    fn holes_stay_holes_and_old_points_go() {
        let layout = Layout::analogue(2, 16).expect("exists");
        let mut trace = TapTrace::new(layout, Frames(10), 3);
        trace.enter(&piece(5, 10), &bytes(0..20));
        trace.enter(&piece(45, 7), &bytes(0..14));
        let seen: Vec<_> = trace.points().map(|point| (point.number, point.frames.0)).collect();
        assert_eq!(seen, [(1, 5), (4, 5), (5, 2)]);
        assert_eq!(trace.complete_from(4).map(|point| point.number).collect::<Vec<_>>(), [4]);
        assert_eq!(trace.points().next().map(|point| point.extremes.clone()), Some(vec![(10.0, 18.0), (11.0, 19.0)]));
        let unknown = TapPiece { first_frame: None, ..piece(0, 10) };
        trace.enter(&unknown, &bytes(0..20));
        assert!(trace.points().last().expect("points").number > 5);
    }

    #[test]
    fn packed_samples_are_entered_in_whole_grains() {
        let layout = Layout::stored_as(1, 12, hairspring_ring::Container::Packed12).expect("exists");
        let mut trace = TapTrace::new(layout, Frames(3), 8);
        assert_eq!(trace.frames_per_point(), Frames(4));
        trace.enter(&piece(0, 10), &[0; 15]);
        assert_eq!(trace.points().map(|point| point.frames.0).collect::<Vec<_>>(), [4, 4, 2]);
        assert_eq!(TapTrace::room_for(layout, Frames(3)), Bytes(6));
    }
}
