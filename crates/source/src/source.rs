//! [`Source`]: produces a stream. A clocked source never waits for its consumer; data that do not fit become a
//! [`Gap`](hairspring_ring::Gap).
//!
//! A source is a state machine without threads. Its caller passes the time to [`Source::service`], which moves the
//! available data into the ring and returns when it must be called again. The caller is a thread on the host and a loop
//! over virtual time in tests. The driver of a vendor's card implements this trait: if it fills a buffer itself,
//! `service` publishes what has arrived.

mod datagrams;
pub(crate) mod descriptor;
pub mod reader;
#[cfg(test)]
pub(crate) mod test_consumer;
pub mod udp;
pub mod virtual_card;

use std::os::fd::BorrowedFd;

use hairspring_machine::{Instant, Nanos};
use hairspring_ring::{End, OnOverrun};

use crate::pattern::Pattern;
use hairspring_ring::Producer;
use hairspring_ring::gap::GapBounds;
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Bytes, Frames, SampleRate};

/// The properties of a stream, known before it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceDescription {
    /// Channels, resolution, container.
    pub layout: Layout,
    /// Frames per second; `None` if the rate is not known.
    pub rate: Option<SampleRate>,
    /// Whether the source has a clock of its own and continues while the ring is full. Such a source cannot wait.
    pub clocked: bool,
    /// Size of the hardware's FIFO; 0 if there is none.
    pub fifo: Bytes,
    /// The name of the device, for the recording's metadata.
    pub hardware: String,
    /// The pattern of the data, if they can be computed again and so be verified.
    pub pattern: Option<Pattern>,
}

/// Datagrams that were received but not used, and restarts of their sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    /// From another sender.
    pub foreign: u64,
    /// Not whole frames, or of another size than the others.
    pub malformed: u64,
    /// Late, or received before.
    pub repeated: u64,
    /// With a number far ahead that later datagrams did not confirm.
    pub misnumbered: u64,
    /// How many times the sender restarted its numbers. The loss at a restart is unknown.
    pub restarts: u64,
}

impl Ignored {
    /// Each count with its stable name in files and JSON.
    pub fn named(&self) -> [(&'static str, u64); 5] {
        let Self { foreign, malformed, repeated, misnumbered, restarts } = *self;
        [
            ("foreign", foreign),
            ("malformed", malformed),
            ("repeated", repeated),
            ("misnumbered", misnumbered),
            ("restarts", restarts),
        ]
    }

    /// Makes the counts from numbers in the order of [`Ignored::named`].
    #[inline]
    pub fn of([foreign, malformed, repeated, misnumbered, restarts]: [u64; 5]) -> Self {
        Self { foreign, malformed, repeated, misnumbered, restarts }
    }

    /// A sentence for each count that is not zero.
    pub fn remarks(&self) -> Vec<String> {
        let texts = [
            "from other senders ignored",
            "of a wrong size ignored",
            "that came late or twice ignored",
            "with unlikely numbers ignored",
        ];
        let told = self.named().into_iter().zip(texts).filter(|((_, count), _)| *count > 0);
        let mut told: Vec<String> = told
            .map(|((_, count), text)| format!("{count} {} {text}", if count == 1 { "datagram" } else { "datagrams" }))
            .collect();
        if self.restarts > 0 {
            let times = if self.restarts == 1 { "once".to_owned() } else { format!("{} times", self.restarts) };
            told.push(format!("the sender began its numbers anew {times}: how much is missing there is not known"));
        }
        told
    }
}

/// The counts of the source itself, independent of the ring and the recorder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCounters {
    /// Bytes produced since the start, by the card's clock or the transport's count.
    pub produced_bytes: u64,
    /// Bytes in gaps: those that the source has declared, and those that it will declare when the data before them have
    /// left the FIFO.
    pub lost_bytes: u64,
    /// Bytes in the FIFO now.
    pub fifo_bytes: u64,
    /// The most bytes that were in the FIFO.
    pub fifo_high_water_bytes: u64,
    /// Datagrams that are no part of the stream.
    pub ignored: Ignored,
    /// Number of waits for several datagrams together, each at most [`udp::MOST_PAUSE`].
    pub pauses: u64,
    /// Datagrams that arrived after ones with higher numbers, and were put in their places.
    pub reordered: u64,
}

/// Time at which a frame was taken, as stamped by a source or the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameStamp {
    /// The global index of the frame.
    pub frame: Frames,
    /// When.
    pub taken: StampTime,
}

/// The clock of a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampTime {
    /// `CLOCK_MONOTONIC`.
    Monotonic(Instant),
    /// Between two readings of `CLOCK_MONOTONIC`.
    Between(Instant, Instant),
    /// The time of day (`CLOCK_REALTIME`), by which the kernel stamps datagrams.
    Realtime(Nanos),
}

/// A number of the sender's count, and its frame. Later frames have the following numbers, including missing ones,
/// until the source states another count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderCount {
    /// The global index of the first frame with this number.
    pub frame: Frames,
    /// The number.
    pub number: u64,
    /// Frames per number.
    pub frames_each: u32,
    /// The bits of a number, 1–64; 0 follows the highest.
    pub bits: u8,
}

/// When a source must be called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// At this time.
    At(Instant),
    /// When [`Source::descriptor`] is readable, or at this time at the latest.
    Readable(Instant),
    /// As soon as there is room in the ring.
    Room,
    /// Never: it has ended.
    Ended(End),
}

/// Produces a stream.
///
/// Rules for every source, on which the ledger depends:
/// - The data committed to the ring and the gaps declared ([`Producer::gap`]) are, in order, everything produced except
///   the contents of the FIFO: `produced = committed + lost + fifo` after each call, in whole grains. A gap after data
///   that are still in the FIFO counts as lost at once, and is declared when the data have left the FIFO.
/// - A clocked source never waits for room. When its FIFO overflows it follows [`Producer::on_overrun`]: with `Stop` it
///   moves the data that it has, declares the loss, and ends with [`End::Overrun`]; with `Gap` it declares the loss and
///   goes on; with `Overwrite` it first asks [`Producer::evict`] for room, and loses only what still does not fit.
/// - A clocked source is not started with [`OnOverrun::Block`]. If it is nevertheless, it acts as with `Stop`.
/// - The cause of a gap is [`GapCause::ServedLate`](hairspring_ring::GapCause::ServedLate) if the ring had room for it
///   when it was found, else [`GapCause::BufferFull`](hairspring_ring::GapCause::BufferFull).
pub trait Source: Send {
    /// The properties of the stream.
    fn describe(&self) -> SourceDescription;

    /// Starts the source at `now`; the first frame is due one sample period later.
    fn start(&mut self, now: Instant);

    /// Whether the first frame is taken with the first data, possibly long after [`Source::start`]; otherwise it is
    /// taken at the start.
    fn begins_with_data(&self) -> bool {
        false
    }

    /// Moves the available data into the ring. Does not block; takes time in proportion to the data.
    fn service(&mut self, now: Instant, ring: &mut Producer) -> Next;

    /// Ends the source at `now`. Moves the data that the FIFO or the kernel holds at the first call, and does not wait
    /// for later data. The caller calls it until it returns [`Next::Ended`]; the consumer goes on meanwhile.
    fn stop(&mut self, now: Instant, ring: &mut Producer) -> Next;

    /// The descriptor for which [`Next::Readable`] waits.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Time at which frame 0 was taken, if the source or the kernel has stamped it.
    fn first_stamp(&self) -> Option<FrameStamp> {
        None
    }

    /// The newest frame that the source or the kernel has stamped.
    fn newest_stamp(&self) -> Option<FrameStamp> {
        None
    }

    /// Counts by the sender's own numbers, if it has them: since its first number received, or since its latest
    /// restart.
    fn sender_count(&self) -> Option<SenderCount> {
        None
    }

    /// The declared gaps whose length is known as an interval only, in order. An entry may still grow while it is the
    /// last.
    fn gap_bounds(&self) -> &[GapBounds] {
        &[]
    }

    /// Current counts.
    fn counters(&self) -> SourceCounters;
}
