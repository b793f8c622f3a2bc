//! [`Source`]: what produces a stream. A clocked source never waits for its consumer; what does not fit is a [`Gap`](hairspring_ring::Gap).
//!
//! A source is a state machine without threads: [`Source::service`] is called with the time, moves what there is into the
//! ring, and says when it wants to be called again. A thread does that on the host, a loop over virtual time in tests. Vendor
//! cards dock here: a driver that fills a buffer by itself implements `service` as "publish what has arrived".

pub(crate) mod descriptor;
#[cfg(test)]
mod listener;
pub mod reader;
pub mod udp;
pub mod virtual_card;

use std::os::fd::BorrowedFd;

use hairspring_machine::Instant;
use hairspring_ring::{End, OnOverrun};

use crate::pattern::Pattern;
use hairspring_ring::Producer;
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Bytes, SampleRate};

/// What a stream is, said before it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceDescription {
    /// Channels, resolution, container.
    pub layout: Layout,
    /// Frames per second; `None` if the source has no clock of its own that we know of.
    pub rate: Option<SampleRate>,
    /// Whether the source goes on whether or not anybody takes its data. Such a source cannot be made to wait.
    pub clocked: bool,
    /// Size of the hardware's FIFO; 0 if there is none.
    pub fifo: Bytes,
    /// What the device is called, for the recording's metadata.
    pub hardware: String,
    /// What the data are, if they can be computed again and so be verified.
    pub pattern: Option<Pattern>,
}

/// Datagrams that came and were not used, and how often their sender began anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    /// From another sender.
    pub foreign: u64,
    /// Not whole frames, or of another size than the others.
    pub malformed: u64,
    /// Late, or not for the first time.
    pub repeated: u64,
    /// With a number far ahead, which those after it did not confirm.
    pub misnumbered: u64,
    /// Times that the sender began its numbers anew. How much is missing there is not known.
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

    /// From the counts in the order of [`Ignored::named`].
    #[inline]
    pub fn of([foreign, malformed, repeated, misnumbered, restarts]: [u64; 5]) -> Self {
        Self { foreign, malformed, repeated, misnumbered, restarts }
    }

    /// What there is to tell, for people.
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

/// What the source itself counted, independently of the ring and the recorder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCounters {
    /// Bytes produced since the start, by the card's clock or the transport's count.
    pub produced_bytes: u64,
    /// Bytes that this source knows to be lost: of the gaps that it has declared, and of those that it will declare as soon
    /// as the data before them have left the FIFO.
    pub lost_bytes: u64,
    /// Bytes in the FIFO now.
    pub fifo_bytes: u64,
    /// The most there were.
    pub fifo_high_water_bytes: u64,
    /// Datagrams that are no part of the stream.
    pub ignored: Ignored,
}

/// What a source wants after having been served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To be called at this time (`CLOCK_MONOTONIC`).
    At(Instant),
    /// To be called when [`Source::descriptor`] can be read, or at this time at the latest.
    Readable(Instant),
    /// To be called again at once, as soon as there is room in the ring.
    Room,
    /// Never: it has ended.
    Ended(End),
}

/// What produces a stream.
///
/// The rules that every source keeps, so that the ledger can hold:
/// - What is committed to the ring and what is declared as gaps ([`Producer::gap`]) is, in order, everything that was produced
///   up to what is still in the FIFO: `produced = committed + lost + fifo` after each call, in whole grains. A gap behind data
///   that are still in the FIFO counts as lost at once and is declared when its turn comes, at the end at the latest.
/// - A clocked source takes room only; it never waits. When its FIFO overflows it acts by [`Producer::on_overrun`]:
///   `Stop` → moves what it has, declares what it lost until now, ends with [`End::Overrun`]; `Gap` → declares it and goes on;
///   `Overwrite` → asks [`Producer::evict`] for room first, and loses only what that does not give.
/// - Who asks for [`OnOverrun::Block`] is refused before it starts; a clocked source that meets it all the same acts as by `Stop`.
/// - The cause of a gap is [`GapCause::ServedLate`](hairspring_ring::GapCause::ServedLate) if the ring had room for it when it was found,
///   else [`GapCause::BufferFull`](hairspring_ring::GapCause::BufferFull).
pub trait Source: Send {
    /// What the stream is.
    fn describe(&self) -> SourceDescription;

    /// Begins at `now`: the first frame is due one sample period later.
    fn start(&mut self, now: Instant);

    /// Whether the first frame is taken when the first data come, which may be long after [`Source::start`], instead of then.
    fn begins_with_data(&self) -> bool {
        false
    }

    /// Moves what there is into the ring. Does not block; takes time in proportion to what it moves.
    fn service(&mut self, now: Instant, ring: &mut Producer) -> Next;

    /// Ends at `now`: moves what is in the FIFO, or what the kernel holds, at the first call; what comes later is not waited
    /// for. Called again until it answers [`Next::Ended`]; the consumer goes on meanwhile.
    fn stop(&mut self, now: Instant, ring: &mut Producer) -> Next;

    /// The descriptor that [`Next::Readable`] waits for.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// What it counted.
    fn counters(&self) -> SourceCounters;
}
