//! SigMF: the metadata beside the samples, in the Signal Metadata Format 1.2.5 with an extension of our own,
//! `hairspring`.
//!
//! Only these files know the JSON of a recording. `docs/recording-format.md` explains the extension's keys. A tool that
//! does not know the extension reads every member as an ordinary SigMF recording: samples without holes, and
//! `core:global_index` wherever frames are missing before a sample.
//!
//! SigMF has no packed samples and no single bits. Both are stored as `ru8` with as many channels as a grain has bytes;
//! one SigMF sample is then one grain, and the rate is that of grains. The true layout is in `hairspring:layout`.

mod clock;
mod datetime;
mod document;
mod foreign;
mod paths;
mod segments;
#[cfg(test)]
mod tests;
mod version;

use std::fmt;
use std::path::PathBuf;

use hairspring_machine::{Instant, Nanos};

use crate::channels::ChannelDescription;
use crate::clock::ClockRecord;
use crate::clock::axis::TimeAxis;
use crate::journal::{GapBounds, RecordingId};
use crate::ledger::{Ledger, RecordingVerdict};
use hairspring_ring::OnOverrun;
use hairspring_ring::gap::{Gap, Skip};
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Bytes, Frames, SampleRate};
use hairspring_source::Ignored;
use hairspring_source::trigger::Missed;
use hairspring_store::Fallback;

pub use datetime::datetime;
pub use document::{parse, render};
pub use foreign::{Foreign, ForeignCapture, parse_foreign};
pub use segments::{StoredSegment, segments};
pub use version::restated;

/// The version of the extension that is written. A reader accepts every version with the same first number, and with
/// the next one if the samples are compressed.
pub const EXTENSION_VERSION: &str = "1.1.0";

/// The description of a recording when it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct About {
    /// The id of the recording.
    pub id: RecordingId,
    /// Channels, resolution, container.
    pub layout: Layout,
    /// Frames per second; `None` if the source states no rate.
    pub rate: Option<SampleRate>,
    /// The name of the device.
    pub hardware: String,
    /// The pattern of the data as text, if the data can be computed again.
    pub pattern: Option<String>,
    /// Time of day (`CLOCK_REALTIME`) when the first frame was taken; when the files were made if that is not known.
    pub started_realtime: Nanos,
    /// The same moment on the scale of the journal's times.
    pub started_monotonic: Instant,
    /// How much earlier than that the first frame may have been taken; `None` if that is not known.
    pub started_within: Option<Nanos>,
    /// Size of all blocks but the last; whole grains.
    pub block: Bytes,
    /// The base paths (without extension) of all members, in their order.
    pub members: Vec<PathBuf>,
    /// The number of this member.
    pub member: usize,
    /// The policy for a full buffer.
    pub on_overrun: OnOverrun,
    /// Whether the source has a clock of its own, so that it cannot be made to wait.
    pub clocked: bool,
    /// The program that wrote the recording: name and version.
    pub software: String,
    /// The series, if the recording is a segment of one.
    pub series: Option<SegmentOf>,
    /// Quantities and units of the channels: of all, or an empty list if none is known.
    pub channels: Vec<ChannelDescription>,
    /// Facts about time.
    pub clock: ClockRecord,
}

impl About {
    /// The time axis of the recording.
    pub fn time_axis(&self) -> TimeAxis {
        TimeAxis::new(&self.clock, self.clocked)
    }

    /// The least and the greatest rate of the source in frames per second of the external clock: its rate by
    /// `CLOCK_MONOTONIC`, combined with that clock's rate against the external one. `None` without an external clock,
    /// or if the marks bound no rate.
    pub fn external_rate_hz(&self) -> Option<[f64; 2]> {
        let (hz, rate) = (self.time_axis().rate_hz()?, self.clock.external_rate()?);
        // Each product is rounded three times; outwards.
        let scaled = |hz: f64, ppb: f64, outwards: f64| hz * (1.0 + ppb / 1e9) * (1.0 + outwards * 4.0 * f64::EPSILON);
        Some([scaled(hz[0], rate.ppb[0], -1.0), scaled(hz[1], rate.ppb[1], 1.0)])
    }

    /// How far that is from the nominal rate, in parts per billion.
    pub fn external_rate_ppb(&self) -> Option<[f64; 2]> {
        let nominal = self.rate?.as_hz();
        Some(self.external_rate_hz()?.map(|hz| (hz / nominal - 1.0) * 1e9))
    }
}

/// The place of a segment in its series, as the metadata describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentOf {
    /// The id of the series.
    pub id: RecordingId,
    /// The name of the series: that of the segment without its number.
    pub name: String,
    /// The number of the segment, from 0.
    pub number: u32,
    /// The global index of its first frame; `None` for a segment that was made in advance and is not in use.
    pub first: Option<Frames>,
    /// The segment before it.
    pub previous: Option<RecordingId>,
    /// How often the series was resumed before this segment.
    pub epoch: u16,
    /// The frame at which that resumption began, 0 without one. The times of the start are those of this frame.
    pub epoch_first: Frames,
}

/// The result of a recording when it has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Closing {
    /// The verdict.
    pub verdict: RecordingVerdict,
    /// Why it ended, in words.
    pub reason: String,
    /// Whether it ended in order or was mended.
    pub state: State,
    /// Where every byte is.
    pub ledger: Ledger,
    /// The lost frames.
    pub gaps: Vec<Gap>,
    /// The true lengths of those gaps that are only known as an interval.
    pub bounds: Vec<GapBounds>,
    /// Frames that no trigger asked for, and those before the first frame of a segment.
    pub skips: Vec<Skip>,
    /// The number of each shot and the global index of the frame that triggered it.
    pub triggers: Vec<(u64, Frames)>,
    /// The ways to the disk: those in use, and those refused.
    pub fallbacks: Vec<StoredFallback>,
    /// Whether all data are proven to have bypassed the page cache.
    pub direct_io_proven: bool,
    /// The longest time that one write took.
    pub worst_stall: Nanos,
    /// The most bytes that were in the buffer at once.
    pub buffer_high_water: Bytes,
    /// The size of the buffer.
    pub buffer: Bytes,
    /// From the first frame to the end of the source.
    pub elapsed: Nanos,
    /// Datagrams that are no part of the stream.
    pub ignored: Ignored,
    /// Triggers that made no shot, or an incomplete one.
    pub missed: Missed,
}

/// A way to the disk like [`Fallback`], whose name may come from another version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFallback {
    /// Its stable name.
    pub name: String,
    /// `Ok` if it was in use, otherwise the reason against it.
    pub refused: Option<String>,
}

impl From<Fallback> for StoredFallback {
    fn from(fallback: Fallback) -> Self {
        Self { name: fallback.name.to_owned(), refused: fallback.refused }
    }
}

/// The state of a recording that has ended. Until then the state is `recording`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Ended in order, with this verdict.
    Ended(RecordingVerdict),
    /// Mended after a crash or damage.
    Recovered,
}

impl State {
    /// Its stable name in files and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ended(verdict) => verdict.name(),
            Self::Recovered => "recovered",
        }
    }
}

/// Why metadata cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SigmfError {
    /// It is not JSON, or not the JSON of SigMF, for this reason.
    NotSigmf(String),
    /// SigMF of another program: the extension is missing.
    Foreign,
    /// A newer version wrote it; its number.
    Newer(String),
    /// A value is impossible, for this reason.
    Value(String),
}

impl fmt::Display for SigmfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSigmf(why) => write!(f, "not SigMF metadata: {why}"),
            Self::Foreign => {
                f.write_str("SigMF of another program: without the extension 'hairspring' nothing in it can be proven")
            }
            Self::Newer(version) => write!(
                f,
                "it is written in version {version} of the extension 'hairspring', of which {EXTENSION_VERSION} is known here; take \
                 a newer hairspring"
            ),
            Self::Value(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for SigmfError {}

/// A layout in the terms of SigMF: the data type, the number of channels, and the frames in each SigMF sample.
pub fn datatype(layout: Layout) -> (&'static str, u64, u64) {
    use hairspring_ring::layout::Container;
    let channels = u64::from(layout.channels());
    let grain = layout.grain();
    match layout.container() {
        Container::I8 => ("ri8", channels, 1),
        Container::U8 => ("ru8", channels, 1),
        Container::I16 => ("ri16_le", channels, 1),
        Container::U16 => ("ru16_le", channels, 1),
        Container::I32 => ("ri32_le", channels, 1),
        Container::U32 => ("ru32_le", channels, 1),
        Container::F32 => ("rf32_le", channels, 1),
        Container::F64 => ("rf64_le", channels, 1),
        Container::Packed12 | Container::Bits => ("ru8", grain.bytes, grain.frames),
    }
}
