//! [`Watch`]: view of a tap for `scope --live`: the extremes over time, the newest frames, and the counts.

use hairspring_ring::monitor::Picture;
use hairspring_ring::{Bytes, Container, Frames, Layout};
use hairspring_tap::{TapPiece, TapPlace, TapReader, TapState, TapTrace};
use hairspring_time::Nanos;
use serde::Deserialize;

use super::spectrum::{FRAMES_MOST, Spectrum};
use crate::exit::Failure;

/// Points of a trace that cover the span: two for each column of a wide terminal.
pub(super) const POINTS: usize = 400;
/// Approximate size of one read, in bytes.
const READ_BYTES: u64 = 1 << 20;
/// Reads of one turn: a stream that is faster than this program must not keep it from drawing.
const READS_MOST: usize = 64;
/// Frames of a picture of a stream without a rate.
const FRAMES_WITHOUT_RATE: u64 = 1 << 16;

/// A channel, as the recording describes it.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ShownChannel {
    pub(super) name: Option<String>,
    pub(super) unit: Option<String>,
    scale: Option<f64>,
    offset: Option<f64>,
}

impl ShownChannel {
    /// A stored value in the channel's unit; as stored if no scale is known.
    pub(super) fn value(&self, stored: f64) -> f64 {
        self.scale.map_or(stored, |scale| stored * scale + self.offset.unwrap_or(0.0))
    }

    /// The unit of such values.
    pub(super) fn unit(&self) -> &str {
        self.unit.as_deref().filter(|_| self.scale.is_some()).unwrap_or("")
    }
}

/// A reader of a tap, with the data that it has seen.
pub(super) struct Watch {
    reader: TapReader,
    channels: Vec<ShownChannel>,
    trace: TapTrace,
    /// The newest frames that follow each other, at most [`FRAMES_MOST`].
    newest: Vec<u8>,
    /// The frame behind them.
    newest_end: Option<u64>,
    buffer: Vec<u8>,
    spectrum: Spectrum,
    seen: u64,
}

impl Watch {
    /// Opens a tap. `span` is the time that the picture covers.
    pub(super) fn open(place: &TapPlace, span: Nanos, points: usize) -> Result<Self, Failure> {
        let reader = TapReader::open(place).map_err(|error| Failure::bad_request(format!("failed to {error}")))?;
        let layout = reader.layout();
        let mut channels: Vec<ShownChannel> = serde_json::from_str(reader.channels_text()).unwrap_or_default();
        channels.resize(layout.channels() as usize, ShownChannel::default());
        let frames = reader.rate().map_or(FRAMES_WITHOUT_RATE, |rate| rate.frames_after(span).0);
        let trace = TapTrace::new(layout, Frames(frames.div_ceil(points as u64)), points);
        let room = Bytes(READ_BYTES.min(reader.capacity().0 / 4));
        let buffer = vec![0; TapTrace::room_for(layout, layout.frames_in(room)).0 as usize];
        let (newest, spectrum) = (Vec::new(), Spectrum::default());
        Ok(Self { reader, channels, trace, newest, newest_end: None, buffer, spectrum, seen: 0 })
    }

    pub(super) fn reader(&self) -> &TapReader {
        &self.reader
    }

    pub(super) fn channels(&self) -> &[ShownChannel] {
        &self.channels
    }

    pub(super) fn trace(&self) -> &TapTrace {
        &self.trace
    }

    /// Frames that were read.
    pub(super) fn seen(&self) -> Frames {
        Frames(self.seen)
    }

    /// Frames that the source lost; `None` if the recorder died while it wrote that.
    pub(super) fn lost(&self) -> Option<Frames> {
        self.reader.gaps().map(|gaps| gaps.lost)
    }

    /// State of the stream.
    pub(super) fn state(&self) -> TapState {
        self.reader.state()
    }

    /// Reads the available frames; returns whether there were any.
    pub(super) fn read(&mut self) -> bool {
        let mut came = false;
        for _ in 0..READS_MOST {
            let piece = self.reader.read(&mut self.buffer);
            if piece.frames.0 == 0 {
                break;
            }
            came = true;
            self.seen += piece.frames.0;
            let length = self.layout().bytes_of(piece.frames).0 as usize;
            self.trace.enter(&piece, &self.buffer[..length]);
            self.keep_newest(&piece, length);
        }
        came
    }

    fn keep_newest(&mut self, piece: &TapPiece, length: usize) {
        let most = TapTrace::room_for(self.layout(), Frames(FRAMES_MOST as u64)).0 as usize;
        let first = piece.first_frame.map(|frame| frame.0);
        if first.is_none() || first != self.newest_end {
            self.newest.clear();
        }
        self.newest_end = first.map(|first| first + piece.frames.0);
        self.newest.extend_from_slice(&self.buffer[..length]);
        let over = self.newest.len().saturating_sub(most);
        self.newest.drain(..over);
    }

    pub(super) fn layout(&self) -> Layout {
        self.reader.layout()
    }

    /// The newest frames, reduced: extremes, mean and level of each channel.
    pub(super) fn levels(&self) -> Picture {
        Picture::of(self.layout(), &self.newest, 1)
    }

    /// The spectrum of a channel in dB of full scale; `None` with too few frames, and for digital lines.
    pub(super) fn spectrum(&mut self, channel: usize) -> Option<Vec<f64>> {
        let layout = self.layout();
        if layout.container() == Container::Bits {
            return None;
        }
        let frames = layout.frames_in(Bytes(self.newest.len() as u64)).0 as usize;
        let values: Vec<f64> = (0..frames).map(|frame| layout.value(&self.newest, frame, channel)).collect();
        self.spectrum.of(&values, full_scale(layout))
    }
}

/// The amplitude of the largest sine, as stored.
pub(super) fn full_scale(layout: Layout) -> f64 {
    match layout.container() {
        Container::F32 => 1.0,
        _ => 2_f64.powi(i32::try_from(layout.resolution_bits()).unwrap_or(32) - 1),
    }
}
