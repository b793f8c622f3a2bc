//! Queries of descriptors that the standard library lacks: whether one is readable, how many datagrams the kernel has dropped, and when
//! it received one.

#![expect(unsafe_code, reason = "recvmsg with its control messages, and two socket options that rustix does not have")]

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd};

use hairspring_machine::Nanos;
use hairspring_ring::units::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

/// The largest receive buffer that is requested, because the kernel doubles the number and keeps it in an int.
const MOST_RECEIVE_BUFFER: u64 = i32::MAX as u64 / 2;

/// The index of the number of dropped datagrams in `SO_MEMINFO`, and how many numbers it has (`linux/sock_diag.h`).
const MEMINFO_DROPS: usize = 8;
const MEMINFO_LENGTH: usize = 9;

/// Room for a control message of four bytes and one of sixteen, aligned for their headers.
type Control = [u64; 8];

/// Whether a read would not block: there are data, or the end, or an error.
pub(super) fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)], Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// Bytes that can be read at once; 0 if the kernel does not state them.
pub(super) fn readable_bytes(descriptor: BorrowedFd<'_>) -> u64 {
    rustix::io::ioctl_fionread(descriptor).unwrap_or(0)
}

/// Binds a socket to the address of a group. Other programs on this computer may be bound to it as well.
pub(crate) fn bind_to_group(address: SocketAddr) -> io::Result<UdpSocket> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    Ok(UdpSocket::from(socket))
}

/// Requests a receive buffer of this size, and returns the granted size. The kernel allows at most `net.core.rmem_max`. It
/// doubles the number to make room for its own headers.
pub(super) fn receive_buffer(socket: &UdpSocket, wanted: Option<Bytes>) -> Bytes {
    if let Some(wanted) = wanted {
        let wanted = usize::try_from(wanted.0.min(MOST_RECEIVE_BUFFER)).unwrap_or(0);
        // A privileged process may go beyond the limit; any other gets at most the limit.
        if sockopt::set_socket_recv_buffer_size_force(socket, wanted).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(socket, wanted);
        }
    }
    Bytes(sockopt::socket_recv_buffer_size(socket).unwrap_or(0) as u64 / 2)
}

/// Makes the kernel attach to each datagram how many it has dropped before.
pub(super) fn tell_drops(socket: &UdpSocket) -> io::Result<()> {
    set(socket, libc::SO_RXQ_OVFL, 1)
}

/// How many datagrams the kernel has dropped so far; `None` if it does not state that.
pub(super) fn drops(socket: &UdpSocket) -> Option<u32> {
    let mut numbers = [0_u32; MEMINFO_LENGTH];
    (get(socket, libc::SO_MEMINFO, &mut numbers) == size_of_val(&numbers)).then_some(numbers[MEMINFO_DROPS])
}

/// Makes the kernel attach to each datagram when it came. A kernel that refuses attaches none.
pub(super) fn tell_arrivals(socket: &UdpSocket) {
    let _ = set(socket, libc::SO_TIMESTAMPNS, 1);
}

/// A received datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    pub(super) length: usize,
    /// How many the kernel had dropped before it.
    pub(super) drops: u32,
    pub(super) from: SocketAddr,
    /// The time of day at which the kernel got it.
    pub(super) arrived: Option<Nanos>,
}

/// Receives one datagram. Does not block.
pub(super) fn receive(socket: &UdpSocket, into: &mut [u8]) -> io::Result<Received> {
    let mut piece = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let mut control: Control = [0; 8];
    // SAFETY: all zeros are a message header without any part.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // SAFETY: all zeros are an address of no family.
    let mut from: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    message.msg_name = (&raw mut from).cast();
    message.msg_namelen = size_of_val(&from) as _;
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the header names `piece`, which names all of `into`, `from` and `control`, each with its true length; all of them
    // live until the call returns, and nothing else looks at them meanwhile.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    // The kernel attaches no count as long as it has dropped nothing.
    let (mut drops, mut arrived) = (0, None);
    // SAFETY: the kernel has filled the header, which still names `control`.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() };
    while let Some(header) = next {
        // SAFETY: the header lies within `control`, as the kernel made it; its data follow it.
        let data = unsafe { libc::CMSG_DATA(std::ptr::from_ref(header)) };
        match (header.cmsg_level, header.cmsg_type) {
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                // SAFETY: the data of a message of this type are four bytes, within `control`; they need not be aligned.
                drops = unsafe { data.cast::<u32>().read_unaligned() };
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                // SAFETY: the data of a message of this type are a timespec, within `control`; it need not be aligned.
                let time = unsafe { data.cast::<libc::timespec>().read_unaligned() };
                arrived = Nanos::from_secs(time.tv_sec).checked_add(Nanos::new(time.tv_nsec));
            }
            _ => {}
        }
        // SAFETY: both headers are the kernel's, and within `control` by the length that the message states.
        next = unsafe { libc::CMSG_NXTHDR(&raw const message, std::ptr::from_ref(header)).as_ref() };
    }
    Ok(Received { length, drops, from: sender(&from), arrived })
}

/// The address in the kernel's form; no address for a family that a UDP socket does not have.
fn sender(from: &libc::sockaddr_storage) -> SocketAddr {
    let from = std::ptr::from_ref(from);
    // SAFETY: the kernel has filled the storage, which is larger than each kind of address and aligned for it; any bits are one.
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

fn set(socket: &UdpSocket, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: reads the four bytes of `value`, which live until the call returns.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option that consists of numbers. Returns how many bytes the kernel wrote, 0 if it refused.
fn get(socket: &UdpSocket, option: libc::c_int, into: &mut [u32]) -> usize {
    let mut length = size_of_val(into) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, all of `into`, and any bits are a u32.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, into.as_mut_ptr().cast(), &raw mut length)
    };
    if result == 0 { length as usize } else { 0 }
}
