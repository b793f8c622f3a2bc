//! [`Monitor`]: a live view of a running stream, for people.
//!
//! **Problem.** People want to see a stream while it is recorded, but the view must never cause the loss of a sample.
//!
//! **Solution.** A monitor reads through a [`Tap`]. It copies the newest bytes out of the ring and blocks nothing. Then
//! it checks whether the producer wrote there during the copy. If so, it discards the copy and counts it as missed; the
//! next call tries again. So a monitor never delays the source or the recorder.
//!
//! A picture shows the data in the ring one after the other: lost frames leave no space.

use std::sync::Arc;

use crate::layout::{Container, Layout};
use crate::ring::{Fill, Tap};
use crate::units::{Bytes, Frames};

/// The values of one channel in a window, as they are stored: counts, or 0 and 1 of a digital line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Channel {
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The level: the root of the mean square.
    pub rms: f64,
    /// The decimated view: the smallest and largest value of each part of the window, oldest part first.
    pub envelope: Vec<(f64, f64)>,
}

/// A window of a stream, reduced for display.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// Position of its first byte in the stream of bytes through the ring.
    pub position: u64,
    /// The number of frames in the window.
    pub frames: Frames,
    /// Every channel.
    pub channels: Vec<Channel>,
}

/// The most parts of an envelope: more than the columns of a screen.
pub const MOST_POINTS: usize = 16_384;

impl Picture {
    /// Looks at whole frames; each envelope has at most `points` parts, fewer if there are fewer frames.
    pub fn of(layout: Layout, bytes: &[u8], points: usize) -> Self {
        let mut picture = Self::default();
        picture.draw(layout, bytes, points);
        picture
    }

    /// Replaces the contents of this picture; allocates only if it grows.
    fn draw(&mut self, layout: Layout, bytes: &[u8], points: usize) {
        self.frames = layout.frames_in(Bytes(bytes.len() as u64));
        let frames = self.frames.0 as usize;
        self.channels.resize_with(layout.channels() as usize, Channel::default);
        for (number, channel) in self.channels.iter_mut().enumerate() {
            match layout.container() {
                Container::I16 => {
                    let (stride, offset) = (layout.channels() as usize * 2, number * 2);
                    channel.draw(frames, points, |frame| {
                        let at = frame * stride + offset;
                        i16::from_le_bytes([bytes[at], bytes[at + 1]]).into()
                    });
                }
                _ => channel.draw(frames, points, |frame| layout.value(bytes, frame, number)),
            }
        }
    }
}

impl Channel {
    fn draw(&mut self, frames: usize, points: usize, value: impl Fn(usize) -> f64) {
        let points = points.clamp(1, MOST_POINTS).min(frames);
        let (mut sum, mut squares) = (0.0, 0.0);
        self.envelope.clear();
        for point in 0..points {
            // Parts differ by one frame at most, and each frame is in one.
            let part = |point: usize| (point as u128 * frames as u128 / points as u128) as usize;
            let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
            for frame in part(point)..part(point + 1) {
                let value = value(frame);
                (min, max) = (min.min(value), max.max(value));
                sum += value;
                squares += value * value;
            }
            self.envelope.push((min, max));
        }
        let count = frames.max(1) as f64;
        (self.mean, self.rms) = (sum / count, (squares / count).sqrt());
        let both = self
            .envelope
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |all, part| (all.0.min(part.0), all.1.max(part.1)));
        (self.min, self.max) = if points == 0 { (0.0, 0.0) } else { both };
    }
}

/// The result of a look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Look<'a> {
    /// A picture of the newest window.
    Fresh(&'a Picture),
    /// No new data since the last look.
    Same(&'a Picture),
    /// No frame has arrived yet.
    Nothing,
    /// The stream was faster than the copy; counted in [`Monitor::missed`]. A larger ring or a smaller window helps.
    Missed,
}

/// Shows the newest frames of a ring.
#[derive(Debug)]
pub struct Monitor {
    tap: Arc<Tap>,
    layout: Layout,
    /// A window in bytes, whole grains.
    window: usize,
    points: usize,
    copy: Vec<u8>,
    picture: Picture,
    /// Position of the head at the last successful look.
    seen: u64,
    missed: u64,
    looks: u64,
}

impl Monitor {
    /// A monitor of the last `window` frames, limited to half of the ring. Its envelopes have `points` parts, at most
    /// [`MOST_POINTS`].
    pub fn new(tap: impl Into<Arc<Tap>>, layout: Layout, window: Frames, points: usize) -> Self {
        let tap = tap.into();
        let grain = layout.grain();
        let most = Bytes(tap.fill().capacity.0 / 2).round_down(Bytes(grain.bytes)).0.max(grain.bytes);
        let wanted = window.0.div_ceil(grain.frames).clamp(1, most / grain.bytes) * grain.bytes;
        let window = usize::try_from(wanted).unwrap_or(usize::MAX);
        let (copy, picture) = (vec![0; window], Picture::default());
        Self { tap, layout, window, points, copy, picture, seen: 0, missed: 0, looks: 0 }
    }

    /// Looks at the newest frames. Takes time in proportion to the window; never waits.
    pub fn look(&mut self) -> Look<'_> {
        self.looks += 1;
        let grain = self.layout.grain().bytes;
        let head = self.tap.head() / grain * grain;
        if head == 0 {
            return Look::Nothing;
        }
        if head == self.seen {
            return Look::Same(&self.picture);
        }
        let length = self.window.min(usize::try_from(head).unwrap_or(usize::MAX));
        let position = head - length as u64;
        if !self.tap.copy(position, &mut self.copy[..length]) {
            self.missed += 1;
            return Look::Missed;
        }
        self.seen = head;
        self.picture.draw(self.layout, &self.copy[..length], self.points);
        self.picture.position = position;
        Look::Fresh(&self.picture)
    }

    /// Looks that failed because the stream was faster than the copy.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Number of looks.
    pub fn looks(&self) -> u64 {
        self.looks
    }

    /// The present state of the ring.
    pub fn fill(&self) -> Fill {
        self.tap.fill()
    }

    /// Whether the stream has ended.
    pub fn is_closed(&self) -> bool {
        self.tap.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::OnOverrun;
    use crate::memory::{Memory, Pages};
    use crate::ring::ring;

    fn words(values: &[i16]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn a_picture_shows_extremes_level_and_envelope_of_each_channel() {
        let layout = Layout::analogue(2, 16).expect("exists");
        let picture = Picture::of(layout, &words(&[3, -1, -4, -1, 3, -1, 4, -1, 0, -1]), 2);
        assert_eq!(picture.frames, Frames(5));
        let first = &picture.channels[0];
        assert_eq!((first.min, first.max, first.mean, first.rms), (-4.0, 4.0, 1.2, 10_f64.sqrt()));
        assert_eq!(first.envelope, [(-4.0, 3.0), (0.0, 4.0)]);
        assert_eq!(picture.channels[1].envelope, [(-1.0, -1.0); 2]);
        assert_eq!(Picture::of(layout, &words(&[7, 8]), 100).channels[1].envelope, [(8.0, 8.0)]);
        assert_eq!(Picture::of(layout, &[], 10).channels[1], Channel::default());
        let digital = Picture::of(Layout::digital(9).expect("exists"), &[1, 1, 0, 1], 2);
        assert_eq!(digital.channels[0].envelope, [(1.0, 1.0), (0.0, 0.0)]);
        assert_eq!(digital.channels[8].mean, 1.0);
    }

    #[test]
    fn a_monitor_shows_the_newest_window() {
        let memory = Memory::mirrored(Bytes::kib(4), Bytes::kib(4), Pages::Small).expect("4 KiB");
        let (mut producer, consumer) = ring(Arc::new(memory), Bytes(1), OnOverrun::Stop).expect("a ring");
        let layout = Layout::analogue(1, 16).expect("exists");
        let mut monitor = Monitor::new(consumer.tap().expect("a view"), layout, Frames(3), 8);
        assert_eq!(monitor.look(), Look::Nothing);
        let bytes = words(&[1, 2, 3, 4]);
        producer.reserve(9).expect("room")[..8].copy_from_slice(&bytes);
        producer.commit(9);
        let Look::Fresh(picture) = monitor.look() else { panic!("fresh") };
        assert_eq!((picture.position, picture.frames, picture.channels[0].mean), (2, Frames(3), 3.0));
        assert!(matches!(monitor.look(), Look::Same(_)));
        assert_eq!((monitor.missed(), monitor.looks()), (0, 3));
    }

    /// A producer that never waits fills a small ring with a ramp, over and over. Each picture that is not missed must
    /// be a ramp without a break, and the producer must finish although only monitors read.
    #[test]
    fn a_monitor_never_shows_a_torn_picture_and_never_holds_up_the_producer() {
        const BYTES: u64 = 192 << 20;
        let memory = Memory::mirrored(Bytes::kib(4), Bytes::kib(4), Pages::Small).expect("4 KiB");
        let (mut producer, consumer) = ring(Arc::new(memory), Bytes::kib(1), OnOverrun::Overwrite).expect("a ring");
        let layout = Layout::analogue(1, 32).expect("exists");
        let over = AtomicBool::new(false);
        let seen = std::thread::scope(|scope| {
            let watchers: Vec<_> = [Frames(5), Frames(100), Frames(512)]
                .map(|window| {
                    let mut monitor = Monitor::new(consumer.tap().expect("a view"), layout, window, 4);
                    let over = &over;
                    scope.spawn(move || {
                        let mut fresh = 0;
                        // Look once more after the end: now no picture can be missed.
                        let mut ended = false;
                        while !ended {
                            ended = over.load(Ordering::Acquire);
                            if let Look::Fresh(picture) = monitor.look() {
                                let first = (picture.position / 4) as f64;
                                let last = first + (picture.frames.0 - 1) as f64;
                                let channel = &picture.channels[0];
                                assert_eq!((channel.min, channel.max), (first, last));
                                assert!((channel.mean - (first + last) / 2.0).abs() < 1e-3);
                                fresh += 1;
                            }
                        }
                        (fresh, monitor.missed())
                    })
                })
                .into();
            let mut value = 0_u32;
            while producer.position() < BYTES {
                producer.evict(1024, 4);
                let piece = producer.reserve(1024).expect("evicted: nobody else holds the ring");
                for word in piece.as_chunks_mut::<4>().0 {
                    *word = value.to_le_bytes();
                    value += 1;
                }
                producer.commit(1024);
            }
            over.store(true, Ordering::Release);
            watchers.into_iter().map(|watcher| watcher.join().expect("no torn picture")).collect::<Vec<_>>()
        });
        assert!(seen.iter().all(|(fresh, _)| *fresh > 0), "(fresh, missed) of each: {seen:?}");
    }
}
