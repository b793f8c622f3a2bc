//! [`Judgement`]: the decision about a datagram, and [`Trial`]: those that are undecided.

use std::net::{IpAddr, SocketAddr};

use hairspring_machine::{Instant, Nanos};
use hairspring_ring::gap::GapCause;

use super::End;

/// A datagram of the stream, without its samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) number: u64,
    /// Why the datagrams before it are missing, if any are.
    pub(super) cause: GapCause,
    /// Arrival at this computer.
    pub(super) came: Instant,
    /// The kernel's stamp of it, which counts for the recording.
    pub(super) arrived: Option<Nanos>,
}

/// Datagrams whose numbers are out of sequence, held until they are confirmed.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) from: SocketAddr,
    /// Their destination address on this computer.
    pub(super) to: Option<IpAddr>,
    /// Whether they are from our sender.
    pub(super) ours: bool,
    /// Whether the first one is behind the expected number.
    pub(super) behind: bool,
    /// The first one.
    pub(super) first: Placed,
    /// Arrival of the last one.
    pub(super) last_came: Instant,
    pub(super) next: u64,
    pub(super) count: u32,
    pub(super) samples: Vec<u8>,
}

impl Trial {
    /// The same trial without datagrams; reuses the memory of the samples.
    pub(super) fn emptied(&mut self) -> Self {
        let mut samples = std::mem::take(&mut self.samples);
        samples.clear();
        Self { samples, count: 0, ..*self }
    }
}

/// Decision about a datagram.
pub(super) enum Judgement {
    /// Its samples go into the ring, with the kernel's stamp.
    Keep,
    /// It was counted, or is held; samples that are ready go into the ring.
    Next,
    /// To be judged again when the waiting ones have left the window.
    Again,
    End(End),
}
