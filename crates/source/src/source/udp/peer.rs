//! [`Peer`]: the senders whose datagrams belong to the stream.

use std::net::SocketAddr;

/// The accepted senders.
#[derive(Debug)]
pub(super) enum Peer {
    /// Undecided: the sender of the first datagram that fits.
    First,
    /// This one, which was the first.
    Kept(SocketAddr),
    /// These addresses; port 0 stands for all ports.
    Named(Vec<SocketAddr>),
}

/// The origin of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    Ours,
    /// Another port of our sender's computer.
    Neighbour,
    Foreign,
}

impl Peer {
    /// Whether that is one sender at one port.
    pub(super) fn is_one(&self) -> bool {
        match self {
            Self::First => false,
            Self::Kept(_) => true,
            Self::Named(known) => matches!(known[..], [one] if one.port() != 0),
        }
    }

    /// Whose a datagram from this address is.
    pub(super) fn knows(&self, sender: SocketAddr) -> Sender {
        let address = sender.ip().to_canonical();
        let is = |known: &SocketAddr, port: u16| known.ip().to_canonical() == address && known.port() == port;
        match self {
            Self::First => Sender::Ours,
            Self::Kept(known) if is(known, sender.port()) => Sender::Ours,
            Self::Kept(known) if is(known, known.port()) => Sender::Neighbour,
            Self::Named(known) if known.iter().any(|one| is(one, sender.port()) || is(one, 0)) => Sender::Ours,
            Self::Kept(_) | Self::Named(_) => Sender::Foreign,
        }
    }
}
