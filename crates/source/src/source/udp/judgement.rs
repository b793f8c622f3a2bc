//! [`Judgement`]: what becomes of a datagram, and [`Trial`]: those on which nothing is decided yet.

use std::net::SocketAddr;

use super::End;

/// Datagrams whose numbers are out of sequence, held until they are confirmed.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) from: SocketAddr,
    /// Whether that is our sender.
    pub(super) ours: bool,
    /// How far the first of them is ahead of the expected number.
    pub(super) ahead: i64,
    pub(super) next: u64,
    pub(super) count: u32,
    pub(super) samples: Vec<u8>,
}

/// What to do with a datagram.
pub(super) enum Judgement {
    /// Its samples go into the ring.
    Keep,
    /// It was counted, or is held; samples that are ready go into the ring.
    Next,
    End(End),
}
