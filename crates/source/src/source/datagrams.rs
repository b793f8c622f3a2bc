//! [`Batch`]: datagrams that the kernel hands over by one call, with their senders, their stamps and its count of
//! drops.
//!
//! A message of the kernel is one datagram, or several of one size that it has joined ([`join_datagrams`]).
//! [`Batch::next`] takes them apart again. Joined datagrams have one stamp, which is that of the first, and one count
//! of drops.
//!
//! **Which stamps count.** The kernel begins to stamp a moment after the first socket has asked for it. A datagram that
//! came before gets its stamp when it is read, and nothing marks that. So a stamp counts only if it is from before the
//! call that reads the datagram.

#![expect(unsafe_code, reason = "recvmmsg with its messages and their control messages")]

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::ptr::null_mut;

use hairspring_machine::{Clock, Host, Machine as _, Nanos};

/// The largest possible datagram, and the most that the kernel joins.
pub(super) const MOST_DATAGRAM_BYTES: usize = 65_536;

/// Most datagrams that the kernel joins (`UDP_GRO_CNT_MAX`, and `UDP_MAX_SEGMENTS` of newer kernels).
pub(super) const MOST_JOINED: u64 = 128;

/// Messages of one call. More would save nothing measurable, and would not fit into the caches.
pub(super) const MOST_MESSAGES: usize = 32;

/// Distance between two messages in the buffer: not a power of two, because otherwise all beginnings would share a set
/// of the cache.
const STRIDE: usize = MOST_DATAGRAM_BYTES + 1088;

/// Room for control messages of 4, 4, 16 and 20 bytes, aligned for their headers.
type Control = [u64; 16];

/// A received datagram, and its place in the batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    /// Offset of its first byte in [`Batch::bytes`].
    pub(super) at: usize,
    pub(super) length: usize,
    /// Messages that the kernel had dropped before it.
    pub(super) drops: u32,
    pub(super) from: SocketAddr,
    /// The time of day at which the kernel got it, if it was stamped then. Of joined datagrams only the first has a
    /// stamp.
    pub(super) arrived: Option<Nanos>,
    /// Time between its arrival and the read; 0 if it was not stamped.
    pub(super) age: Nanos,
    /// Destination address of the datagram on this computer, if the kernel states it.
    pub(super) to: Option<IpAddr>,
}

/// A message of the kernel.
#[derive(Clone, Copy, Debug)]
struct Message {
    whole: Received,
    /// The size of the datagrams in it.
    each: Option<usize>,
}

/// Datagrams that were received together, and the memory for the next ones.
#[derive(Default)]
pub(super) struct Batch {
    /// Address space only, until a datagram arrives there.
    pub(super) bytes: Vec<u8>,
    names: Vec<libc::sockaddr_storage>,
    controls: Vec<Control>,
    messages: Vec<Message>,
    /// The message that is being split, and the bytes of it already taken.
    next: usize,
    taken: usize,
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { messages, next, taken, .. } = self;
        f.debug_struct("Batch")
            .field("messages", messages)
            .field("next", next)
            .field("taken", taken)
            .finish_non_exhaustive()
    }
}

impl Batch {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; STRIDE * MOST_MESSAGES],
            // SAFETY: all zeros are an address of no family.
            names: vec![unsafe { std::mem::zeroed() }; MOST_MESSAGES],
            controls: vec![[0; 16]; MOST_MESSAGES],
            messages: Vec::with_capacity(MOST_MESSAGES),
            next: 0,
            taken: 0,
        }
    }

    /// Messages of the last call.
    pub(super) fn messages(&self) -> usize {
        self.messages.len()
    }

    /// Takes the next datagram, in order of arrival.
    pub(super) fn next(&mut self) -> Option<Received> {
        let Message { whole, each } = *self.messages.get(self.next)?;
        let first = self.taken == 0;
        let length = (whole.length - self.taken).min(each.unwrap_or(whole.length));
        let received =
            Received { at: whole.at + self.taken, length, arrived: whole.arrived.filter(|_| first), ..whole };
        self.taken += length;
        if self.taken == whole.length {
            (self.next, self.taken) = (self.next + 1, 0);
        }
        Some(received)
    }

    /// Replaces the taken datagrams by others, each a message of its own: bytes, number dropped before, sender.
    #[cfg(test)]
    pub(super) fn fill<'d>(&mut self, datagrams: impl Iterator<Item = (&'d [u8], u32, SocketAddr, Nanos)>) -> u64 {
        self.messages.clear();
        (self.next, self.taken) = (0, 0);
        let mut total = 0;
        for (number, (bytes, drops, from, age)) in datagrams.take(MOST_MESSAGES).enumerate() {
            let at = number * STRIDE;
            self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
            let whole = Received { at, length: bytes.len(), drops, from, arrived: None, age, to: None };
            self.messages.push(Message { whole, each: None });
            total += bytes.len() as u64;
        }
        total
    }

    /// Receives datagrams in place of the taken ones. Does not block. Returns the number of bytes.
    pub(super) fn receive(&mut self, socket: &UdpSocket) -> io::Result<u64> {
        self.messages.clear();
        (self.next, self.taken) = (0, 0);
        let mut pieces = [libc::iovec { iov_base: null_mut(), iov_len: MOST_DATAGRAM_BYTES }; MOST_MESSAGES];
        // SAFETY: all zeros are message headers without any part.
        let mut headers: [libc::mmsghdr; MOST_MESSAGES] = unsafe { std::mem::zeroed() };
        let (bytes, names) = (self.bytes.as_mut_ptr(), self.names.as_mut_ptr());
        let (controls, first_piece) = (self.controls.as_mut_ptr(), pieces.as_mut_ptr());
        for (number, header) in headers.iter_mut().enumerate() {
            let piece = first_piece.wrapping_add(number);
            // SAFETY: there are as many pieces as headers, and nothing else refers to them.
            unsafe { (*piece).iov_base = bytes.wrapping_add(number * STRIDE).cast() };
            let header = &mut header.msg_hdr;
            header.msg_name = names.wrapping_add(number).cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as _;
            header.msg_iov = piece;
            header.msg_iovlen = 1;
            header.msg_control = controls.wrapping_add(number).cast();
            header.msg_controllen = size_of::<Control>() as _;
        }
        let before = Host.read(Clock::Realtime);
        // SAFETY: each header names a piece, which names `MOST_DATAGRAM_BYTES` of a stride of `bytes`, a name and a
        // control buffer with their true lengths. There are `MOST_MESSAGES` of each. All live until the call returns,
        // and nothing else refers to them.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                MOST_MESSAGES as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        let mut total = 0;
        for (number, header) in headers[..count].iter().enumerate() {
            let length = header.msg_len as usize;
            total += length.max(1) as u64;
            let told = Told::of(&header.msg_hdr);
            let from = sender(&self.names[number]);
            let arrived = told.arrived.filter(|arrived| *arrived < before);
            let age = arrived.map_or(Nanos::ZERO, |arrived| before - arrived);
            let whole = Received { at: number * STRIDE, length, drops: told.drops, from, arrived, age, to: told.to };
            self.messages.push(Message { whole, each: told.each.filter(|each| *each > 0) });
        }
        Ok(total)
    }
}

/// Control messages that the kernel attached to a message.
#[derive(Default)]
struct Told {
    /// The kernel attaches no count until it has dropped a message.
    drops: u32,
    arrived: Option<Nanos>,
    each: Option<usize>,
    to: Option<IpAddr>,
}

impl Told {
    fn of(message: &libc::msghdr) -> Self {
        let mut told = Self::default();
        // SAFETY: the kernel has filled the header; its control buffer is that of a batch which the caller borrows.
        let mut next = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() };
        while let Some(header) = next {
            // SAFETY: the header lies within the control buffer, as the kernel made it; its data follow it.
            let data = unsafe { libc::CMSG_DATA(std::ptr::from_ref(header)) };
            match (header.cmsg_level, header.cmsg_type) {
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    // SAFETY: the data of a message of this type are four bytes, within the buffer; they need not be
                    // aligned.
                    told.drops = unsafe { data.cast::<u32>().read_unaligned() };
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    // SAFETY: the data of a message of this type are a timespec, within the buffer; it need not be
                    // aligned.
                    let time = unsafe { data.cast::<libc::timespec>().read_unaligned() };
                    told.arrived = Nanos::from_secs(time.tv_sec).checked_add(Nanos::new(time.tv_nsec));
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    // SAFETY: the data of a message of this type are an int, within the buffer; it need not be aligned.
                    told.each = usize::try_from(unsafe { data.cast::<libc::c_int>().read_unaligned() }).ok();
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    // SAFETY: the data of a message of this type are an in_pktinfo, within the buffer; it need not be
                    // aligned.
                    let to = unsafe { data.cast::<libc::in_pktinfo>().read_unaligned() };
                    told.to = Some(Ipv4Addr::from(to.ipi_addr.s_addr.to_ne_bytes()).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    // SAFETY: the data of a message of this type begin with the 16 bytes of the address, within the
                    // buffer.
                    told.to = Some(Ipv6Addr::from(unsafe { data.cast::<[u8; 16]>().read_unaligned() }).into());
                }
                _ => {}
            }
            // SAFETY: both headers are the kernel's, and within the buffer by the length that the message states.
            next = unsafe { libc::CMSG_NXTHDR(message, std::ptr::from_ref(header)).as_ref() };
        }
        told
    }
}

/// The address in the kernel's form; no address for a family that a UDP socket does not have.
fn sender(from: &libc::sockaddr_storage) -> SocketAddr {
    let from = std::ptr::from_ref(from);
    // SAFETY: the kernel has filled the storage, which is larger than each kind of address and aligned for it; any bits
    // are one.
    let (family, v4, v6) = unsafe {
        ((*from).ss_family, from.cast::<libc::sockaddr_in>().read(), from.cast::<libc::sockaddr_in6>().read())
    };
    match libc::c_int::from(family) {
        libc::AF_INET6 => {
            let (port, scope) = (u16::from_be(v6.sin6_port), v6.sin6_scope_id);
            SocketAddrV6::new(Ipv6Addr::from(v6.sin6_addr.s6_addr), port, v6.sin6_flowinfo, scope).into()
        }
        libc::AF_INET => {
            SocketAddrV4::new(Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes()), u16::from_be(v4.sin_port)).into()
        }
        _ => SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0).into(),
    }
}
