//! [`Hearing`]: the origin of datagrams: [`Sockets`], or a script in tests.
//!
//! **Problem.** The receive buffer of a socket is open to every sender that knows its address. A stranger's flood fills
//! it, and the kernel counts the strangers' datagrams that it drops together with those of the stream.
//!
//! **Solution.** Once the sender is known, the socket is connected to it. From then on the kernel puts only the
//! sender's datagrams into its buffer, and counts only those. A second socket, the *ear*, is bound to the same address.
//! It receives from all others: a sender that begins anew at another port, and strangers, to be counted. Its losses do
//! not matter.
//!
//! **Conditions.** Connecting would also fix this computer's own address, so it is done only if datagrams arrive at the
//! address that the kernel would choose, not for a broadcast, for instance. If several senders are accepted, the socket
//! stays open for all. Then the kernel's count is an upper bound once strangers were heard.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};

use hairspring_ring::units::Bytes;

use super::super::datagrams::Batch;
use super::super::descriptor;

/// The origin of datagrams.
pub(super) trait Hearing: Debug + Send {
    /// Receives datagrams of the stream, and of other senders until one is kept. Does not block.
    fn receive(&mut self, batch: &mut Batch) -> io::Result<u64>;

    /// Receives datagrams of other senders, after one was kept. Does not block.
    fn receive_others(&mut self, batch: &mut Batch) -> io::Result<u64>;

    /// How many messages of the stream the kernel has dropped since the beginning; `None` if it does not state that.
    fn drops(&self) -> Option<u32>;

    /// From now on receives from this sender alone, which sends to the address `to`. If that is impossible, receives
    /// from all as before.
    fn keep(&mut self, sender: SocketAddr, to: Option<IpAddr>);

    /// Whether it receives from one sender alone.
    fn is_kept(&self) -> bool;

    /// Whether the kernel may join datagrams: then one in its count may be several.
    fn joins(&self) -> bool;

    /// Becomes readable when datagrams arrive.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// The sockets of a source.
#[derive(Debug)]
pub struct Sockets {
    pub(super) main: UdpSocket,
    /// Receives from all other senders, once `main` is connected.
    ear: Option<UdpSocket>,
    kept: bool,
    joined: bool,
    fifo: Bytes,
}

impl Sockets {
    /// Sets the options of a bound socket. `join`: the kernel may join datagrams.
    pub(super) fn new(main: UdpSocket, join: bool, fifo: Option<Bytes>) -> io::Result<Self> {
        descriptor::tell_drops(&main)?;
        descriptor::tell_arrivals(&main);
        descriptor::tell_destinations(&main, true);
        let joined = join && descriptor::join_datagrams(&main);
        let fifo = descriptor::receive_buffer(&main, fifo);
        Ok(Self { main, ear: None, kept: false, joined, fifo })
    }

    /// The granted receive buffer.
    pub(super) fn fifo(&self) -> Bytes {
        self.fifo
    }

    /// Connects the socket, and binds the ear to the same address.
    fn connect(&mut self, sender: SocketAddr, to: Option<IpAddr>) -> io::Result<()> {
        let bound = self.main.local_addr()?;
        // The address of this computer that the kernel would choose.
        let probe = UdpSocket::bind((if bound.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) }, 0))?;
        probe.connect(sender)?;
        let chosen = probe.local_addr()?.ip().to_canonical();
        if bound.ip().is_unspecified() && to.map(|to| to.to_canonical()) != Some(chosen) {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        self.main.connect(sender)?;
        self.kept = true;
        if self.ear.is_none() {
            self.ear = descriptor::bind_beside(&self.main, bound).ok();
        }
        descriptor::tell_destinations(&self.main, false);
        Ok(())
    }
}

impl Hearing for Sockets {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<u64> {
        batch.receive(&self.main)
    }

    fn receive_others(&mut self, batch: &mut Batch) -> io::Result<u64> {
        self.ear.as_ref().map_or_else(|| Err(io::ErrorKind::WouldBlock.into()), |ear| batch.receive(ear))
    }

    fn drops(&self) -> Option<u32> {
        descriptor::drops(&self.main)
    }

    fn keep(&mut self, sender: SocketAddr, to: Option<IpAddr>) {
        // If refused, the socket still receives from all, and addresses are compared as before.
        drop(self.connect(sender, to));
    }

    fn is_kept(&self) -> bool {
        self.kept
    }

    fn joins(&self) -> bool {
        self.joined
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.main.as_fd())
    }
}
