//! [`AnalogInput`]: the analogue inputs of a card, scanned at a rate of the card's own clock, as a [`Source`].
//!
//! It is clocked: the card continues whether or not its data are read. The kernel's buffer is the FIFO; data in it
//! count as produced only when they are read. Samples are stored as the card delivers them: unsigned, 0 for the lowest
//! voltage of the range.
//!
//! **Loss.** When the kernel's buffer overflows, the driver stops the card, so later data do not exist. Every policy
//! acts as `stop` here: all data in the buffer are kept, and the stream ends with an overrun. An incomplete frame is a
//! gap.

use std::io;
use std::path::Path;

use hairspring_machine::{Instant, Nanos};
use hairspring_ring::End;
use hairspring_ring::{Bytes, Container, Frames, Layout, Producer, SampleRate};
use hairspring_source::Source;
use hairspring_source::reader::{ReaderSource, StreamInfo};
use hairspring_source::{Next, SourceCounters, SourceDescription};

use super::kernel::{self, Acquisition, Kind, TRIG_COUNT, TRIG_FOLLOW, TRIG_NONE, TRIG_NOW, TRIG_TIMER, Trigger};
use crate::device::DeviceError;
use crate::driver::node::Node;
use crate::refusal::refusal;

const REMEDY: &str = "load the card's comedi driver, and name an analogue input subdevice of it";
/// One second: periods of the kernel's interface are 32 bits of nanoseconds.
const SECOND_NS: u64 = 1_000_000_000;
/// The kernel counts channels of a scan and their numbers in 16 bits.
const MOST_CHANNELS: usize = 1 << 16;

/// Which inputs, and how fast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inputs {
    /// The subdevice of the card.
    pub subdevice: u32,
    /// The channels of a frame, in order.
    pub channels: Vec<u32>,
    /// The number of the voltage range, as the card's manual lists them.
    pub range: u8,
    /// Time from one frame to the next; the driver takes the nearest that the card can.
    pub period: Nanos,
    /// Ends after this many frames.
    pub frames: Option<Frames>,
    /// Wanted size of the kernel's buffer.
    pub buffer: Option<Bytes>,
}

/// The source.
#[derive(Debug)]
pub struct AnalogInput {
    node: Node,
    acquisition: Acquisition,
    channels: Vec<u32>,
    reader: ReaderSource,
    fifo: Bytes,
    refused: Option<io::Error>,
    /// The end of the data to read after a stop.
    stop_at: Option<u64>,
}

impl AnalogInput {
    /// Opens a card's inputs and agrees with the driver about the rate. The card begins with [`Source::start`].
    ///
    /// # Errors
    /// No such card or subdevice, no permission, a subdevice that is no analogue input or cannot be streamed, an
    /// unsupported rate or range.
    pub fn open(path: &Path, inputs: &Inputs) -> Result<Self, DeviceError> {
        let node = Node::open(path, "the card", REMEDY)?;
        let subdevice = inputs.subdevice;
        let other = |said: String| DeviceError {
            attempted: format!("use subdevice {subdevice} of {} as an analogue input", path.display()),
            said,
            remedy: "choose other inputs or another rate; see the card's manual",
        };
        let refused = |what: &str, error: &io::Error| {
            refusal(format!("{what} subdevice {subdevice} of {}", path.display()), error, REMEDY)
        };
        let info = super::find(&node, subdevice)?;
        if info.kind != Kind::AnalogInput {
            return Err(other(format!("it is {}", info.kind)));
        }
        if !info.can_stream || info.sample_bytes != 2 {
            return Err(other("it cannot be streamed, or not in samples of 16 bits".to_owned()));
        }
        let count = inputs.channels.len();
        if let Some(wrong) = inputs.channels.iter().find(|channel| **channel >= info.channels) {
            return Err(other(format!("there is no channel {wrong}: it has {}", info.channels)));
        }
        let period_ns = u32::try_from(inputs.period.count()).ok().filter(|period| *period > 0 && count > 0);
        let Some(period_ns) = period_ns.filter(|_| count < MOST_CHANNELS) else {
            return Err(other(format!("{count} channels every {}", inputs.period)));
        };
        let channels: Vec<u32> =
            inputs.channels.iter().map(|channel| channel | u32::from(inputs.range) << 16).collect();
        kernel::read_from(&node, subdevice).map_err(|error| refused("read from", &error))?;
        let wanted = inputs.buffer.map(|bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX));
        let fifo =
            kernel::buffer_bytes(&node, subdevice, wanted).map_err(|error| refused("set the buffer of", &error))?;
        let acquisition = agree(&node, subdevice, &channels, period_ns, inputs.frames)
            .map_err(|error| other(format!("{count} channels every {}: {error}", inputs.period)))?;
        let layout = Layout::stored_as(count as u32, u32::BITS - info.greatest.leading_zeros(), Container::U16);
        let layout = layout.map_err(|error| other(error.to_string()))?;
        let about = StreamInfo {
            layout,
            rate: SampleRate::new(SECOND_NS, scan_ns(&acquisition, count)),
            pattern: None,
            frames: inputs.frames,
            hardware: format!("comedi {} subdevice {subdevice} range {}", path.display(), inputs.range),
        };
        let file = node.file().try_clone().map_err(|error| refused("read from", &error))?;
        let (reader, fifo) = (ReaderSource::new(file, about), Bytes(fifo.into()));
        Ok(Self { node, acquisition, channels, reader, fifo, refused: None, stop_at: None })
    }

    fn ended(next: Next) -> Next {
        match next {
            // The kernel's word for a buffer that overflowed.
            Next::Ended(End::Failed(libc::EPIPE)) => Next::Ended(End::Overrun),
            next => next,
        }
    }
}

/// Nanoseconds from one frame to the next.
fn scan_ns(acquisition: &Acquisition, channels: usize) -> u64 {
    match acquisition.scan_begin.source {
        TRIG_TIMER => acquisition.scan_begin.argument.into(),
        _ => u64::from(acquisition.convert.argument) * channels as u64,
    }
}

/// Negotiates an acquisition with the driver: scans by a timer if it supports them, else conversions by a timer.
fn agree(
    node: &Node,
    subdevice: u32,
    channels: &[u32],
    period_ns: u32,
    frames: Option<Frames>,
) -> io::Result<Acquisition> {
    let trigger = |source, argument| Trigger { source, argument };
    let count = channels.len() as u32;
    let asked = Acquisition {
        subdevice,
        start: trigger(TRIG_NOW, 0),
        scan_begin: trigger(TRIG_TIMER | TRIG_FOLLOW, 0),
        convert: trigger(TRIG_TIMER | TRIG_NOW, 0),
        scan_end: trigger(TRIG_COUNT, count),
        stop: trigger(TRIG_COUNT | TRIG_NONE, 0),
    };
    let possible = kernel::possible(node, &asked, channels)?;
    let has = |trigger: Trigger, source| trigger.source & source != 0;
    let scans = has(possible.scan_begin, TRIG_TIMER);
    let converts = has(possible.convert, TRIG_TIMER);
    let limit = frames.and_then(|frames| u32::try_from(frames.0).ok()).filter(|_| has(possible.stop, TRIG_COUNT));
    let wanted = Acquisition {
        scan_begin: if scans { trigger(TRIG_TIMER, period_ns) } else { trigger(TRIG_FOLLOW, 0) },
        convert: match (converts, scans) {
            (true, _) => trigger(TRIG_TIMER, period_ns / count.max(1)),
            (false, true) => trigger(TRIG_NOW, 0),
            (false, false) => return Err(io::Error::other("the card has no timer")),
        },
        stop: limit.map_or(trigger(TRIG_NONE, 0), |limit| trigger(TRIG_COUNT, limit)),
        ..asked
    };
    kernel::corrected(node, &wanted, channels)
}

impl Source for AnalogInput {
    fn describe(&self) -> SourceDescription {
        SourceDescription { clocked: true, fifo: self.fifo, ..self.reader.describe() }
    }

    fn start(&mut self, now: Instant) {
        self.reader.start(now);
        self.refused = kernel::begin(&self.node, &self.acquisition, &self.channels).err();
    }

    fn service(&mut self, now: Instant, ring: &mut Producer) -> Next {
        match &self.refused {
            Some(error) => Next::Ended(End::Failed(error.raw_os_error().unwrap_or(libc::EIO))),
            None => Self::ended(self.reader.service(now, ring)),
        }
    }

    fn stop(&mut self, now: Instant, ring: &mut Producer) -> Next {
        // Reads the kernel's data before stopping the card, because the kernel discards them then.
        let stop_at = *self.stop_at.get_or_insert(self.reader.counters().produced_bytes + self.fifo.0);
        match self.service(now, ring) {
            Next::At(at) if self.reader.counters().produced_bytes < stop_at => Next::At(at),
            Next::At(_) | Next::Readable(..) => {
                // The acquisition may have ended in the meantime.
                let _ = kernel::cancel(&self.node, self.acquisition.subdevice);
                self.reader.stop(now, ring)
            }
            next => next,
        }
    }

    fn counters(&self) -> SourceCounters {
        self.reader.counters()
    }
}
