//! [`Probe`]: finds the frames at which one channel reaches a value.
//!
//! It compares runs of samples without a branch, so that the compiler can compare many at once. Only a run with a hit
//! is searched again.

use hairspring_ring::layout::value::{line, packed, word};
use hairspring_ring::layout::{Container, Layout};

/// Frames of a run. Long enough to make the branch at its end cheap, and short enough to make the second search cheap.
const RUN: usize = 64;

/// Frames that are searched singly first, because runs waste time where hits are dense.
const DENSE: usize = 8;

/// A comparison with a value of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Test {
    /// Not less.
    AtLeast(f64),
    /// Not more.
    AtMost(f64),
}

/// Tests one channel of a layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    layout: Layout,
    channel: usize,
}

impl Probe {
    pub(super) fn new(layout: Layout, channel: u32) -> Self {
        Self { layout, channel: channel as usize }
    }

    /// The first frame from `from` on, below `to`, that passes the test. Both count in `bytes`.
    pub(super) fn first(self, bytes: &[u8], from: usize, to: usize, test: Test) -> Option<usize> {
        let (channels, channel) = (self.layout.channels() as usize, self.channel);
        match self.layout.container() {
            Container::I8 => self.spaced(bytes, from, to, test, |[byte]| i32::from(i8::from_le_bytes([byte]))),
            Container::U8 => self.spaced(bytes, from, to, test, |[byte]| i32::from(byte)),
            Container::I16 => self.spaced(bytes, from, to, test, |word| i32::from(i16::from_le_bytes(word))),
            Container::U16 => self.spaced(bytes, from, to, test, |word| i32::from(u16::from_le_bytes(word))),
            Container::I32 => self.spaced(bytes, from, to, test, i32::from_le_bytes),
            Container::F32 => match test {
                Test::AtLeast(least) => {
                    spaced(bytes, channels, channel, from, to, |w| f32::from_le_bytes(w) >= least as f32)
                }
                Test::AtMost(most) => {
                    spaced(bytes, channels, channel, from, to, |w| f32::from_le_bytes(w) <= most as f32)
                }
            },
            Container::U32 | Container::F64 => (from..to).find(|frame| {
                let value = self.layout.value(bytes, *frame, channel);
                match test {
                    Test::AtLeast(least) => value >= least,
                    Test::AtMost(most) => value <= most,
                }
            }),
            Container::Packed12 => indexed(from, to, test, |frame| packed(bytes, frame * channels + channel)),
            Container::Bits => {
                let stride = channels.div_ceil(8);
                indexed(from, to, test, |frame| line(bytes, stride, frame, channel))
            }
        }
    }

    /// The test, of two, that the last frame to pass any of them passes: searches backwards from `to` to `from`.
    pub(super) fn last(self, bytes: &[u8], from: usize, to: usize, tests: [Test; 2]) -> Option<usize> {
        (from..to).rev().find_map(|frame| {
            let value = self.layout.value(bytes, frame, self.channel);
            tests.iter().position(|test| match *test {
                Test::AtLeast(least) => value >= least,
                Test::AtMost(most) => value <= most,
            })
        })
    }

    fn spaced<const SIZE: usize>(
        self,
        bytes: &[u8],
        from: usize,
        to: usize,
        test: Test,
        value: impl Fn([u8; SIZE]) -> i32,
    ) -> Option<usize> {
        let (channels, channel) = (self.layout.channels() as usize, self.channel);
        match whole(test) {
            Whole::AtLeast(least) => spaced(bytes, channels, channel, from, to, |word| value(word) >= least),
            Whole::AtMost(most) => spaced(bytes, channels, channel, from, to, |word| value(word) <= most),
        }
    }
}

/// A test of whole numbers.
enum Whole {
    AtLeast(i32),
    AtMost(i32),
}

/// The same test for whole numbers; a threshold beyond all of them is passed by none or all alike.
fn whole(test: Test) -> Whole {
    match test {
        Test::AtLeast(least) => Whole::AtLeast(least.ceil() as i32),
        Test::AtMost(most) => Whole::AtMost(most.floor() as i32),
    }
}

/// Samples of one size, one after the other.
fn spaced<const SIZE: usize>(
    bytes: &[u8],
    channels: usize,
    channel: usize,
    from: usize,
    to: usize,
    passes: impl Fn([u8; SIZE]) -> bool,
) -> Option<usize> {
    let stride = channels * SIZE;
    let frames = &bytes[from * stride..to * stride];
    let found = if channels == 1 {
        // A stride known at compile time lets the compiler compare many samples at once.
        runs(frames.as_chunks::<SIZE>().0, |frame| passes(*frame))
    } else {
        strided(frames, stride, |frame| passes(word(frame, channel)))
    };
    found.map(|frame| from + frame)
}

/// The first frame of a slice of frames that passes.
fn runs<T>(frames: &[T], passes: impl Fn(&T) -> bool) -> Option<usize> {
    let dense = frames.len().min(DENSE);
    if let Some(frame) = frames[..dense].iter().position(&passes) {
        return Some(frame);
    }
    for (number, run) in frames[dense..].chunks(RUN).enumerate() {
        if run.iter().fold(false, |any, frame| any | passes(frame)) {
            return run.iter().position(&passes).map(|frame| dense + number * RUN + frame);
        }
    }
    None
}

/// The same for frames of a length that is known only at run time.
fn strided(frames: &[u8], stride: usize, passes: impl Fn(&[u8]) -> bool) -> Option<usize> {
    let dense = (frames.len() / stride).min(DENSE);
    if let Some(frame) = frames[..dense * stride].chunks_exact(stride).position(&passes) {
        return Some(frame);
    }
    for (number, run) in frames[dense * stride..].chunks(RUN * stride).enumerate() {
        if run.chunks_exact(stride).fold(false, |any, frame| any | passes(frame)) {
            return run.chunks_exact(stride).position(&passes).map(|frame| dense + number * RUN + frame);
        }
    }
    None
}

fn indexed(from: usize, to: usize, test: Test, value: impl Fn(usize) -> i32) -> Option<usize> {
    match whole(test) {
        Whole::AtLeast(least) => (from..to).find(|frame| value(*frame) >= least),
        Whole::AtMost(most) => (from..to).find(|frame| value(*frame) <= most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes one sample.
    fn put(layout: Layout, bytes: &mut [u8], frame: usize, channel: usize, value: i32) {
        let sample = frame * layout.channels() as usize + channel;
        let le = value.to_le_bytes();
        match layout.container() {
            Container::I8 | Container::U8 => bytes[sample] = le[0],
            Container::I16 | Container::U16 => bytes[sample * 2..][..2].copy_from_slice(&le[..2]),
            Container::I32 | Container::U32 => bytes[sample * 4..][..4].copy_from_slice(&le),
            Container::F32 => bytes[sample * 4..][..4].copy_from_slice(&(value as f32).to_le_bytes()),
            Container::F64 => bytes[sample * 8..][..8].copy_from_slice(&f64::from(value).to_le_bytes()),
            Container::Packed12 => {
                for bit in 0..12 {
                    let at = sample % 2 * 12 + bit;
                    let byte = &mut bytes[sample / 2 * 3 + at / 8];
                    *byte = *byte & !(1 << (at % 8)) | (u8::from(value >> bit & 1 == 1) << (at % 8));
                }
            }
            Container::Bits => {
                let stride = (layout.channels() as usize).div_ceil(8);
                bytes[frame * stride + channel / 8] |= u8::from(value == 1) << (channel % 8);
            }
        }
    }

    #[track_caller]
    fn check(container: Container, channels: u32, low: i32, high: i32) {
        let layout = Layout::stored_as(channels, container.bits(), container).expect("exists");
        for channel in [0, channels - 1] {
            for hit in [0, 1, DENSE - 1, DENSE, 70, 71, 137, 199] {
                let mut bytes = vec![0; layout.bytes_of(hairspring_ring::units::Frames(200)).0 as usize];
                (0..200).for_each(|frame| put(layout, &mut bytes, frame, channel as usize, low));
                put(layout, &mut bytes, hit, channel as usize, high);
                let probe = Probe::new(layout, channel);
                let above = Test::AtLeast(f64::from(high) - 0.5);
                assert_eq!(probe.first(&bytes, 0, 200, above), Some(hit), "{layout}");
                assert_eq!(probe.first(&bytes, hit, 200, above), Some(hit), "{layout}");
                assert_eq!(probe.first(&bytes, hit + 1, 200, above), None, "{layout}");
                assert_eq!(probe.first(&bytes, 0, hit, above), None, "{layout}");
                let below = Test::AtMost(f64::from(low));
                assert_eq!(probe.first(&bytes, 0, 200, below), Some(usize::from(hit == 0)), "{layout}");
                assert_eq!(probe.last(&bytes, 0, hit + 1, [below, above]), Some(1), "{layout}");
                assert_eq!(probe.last(&bytes, hit + 1, hit + 1, [below, above]), None, "{layout}");
            }
        }
    }

    #[test]
    fn the_first_hit_is_found_in_every_container_at_every_place() {
        for channels in [1, 2, 3, 4, 17] {
            check(Container::I8, channels, -128, 127);
            check(Container::U8, channels, 0, 255);
            check(Container::I16, channels, -32768, 32767);
            check(Container::U16, channels, 5, 65535);
            check(Container::I32, channels, i32::MIN, i32::MAX);
            check(Container::F32, channels, -7, 9);
            check(Container::Packed12, channels, -2048, 2047);
            check(Container::Bits, channels, 0, 1);
        }
    }
}
