//! Queries and options of descriptors that the standard library lacks: readability, the number of dropped datagrams,
//! and control messages.

#![expect(unsafe_code, reason = "socket options that rustix does not have")]

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd};

use hairspring_ring::units::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

/// The largest receive buffer that is requested, because the kernel doubles the number and keeps it in an int.
const MOST_RECEIVE_BUFFER: u64 = i32::MAX as u64 / 2;

/// Index of the number of dropped datagrams in `SO_MEMINFO`, and the length of that array (`linux/sock_diag.h`).
const MEMINFO_DROPS: usize = 8;
const MEMINFO_LENGTH: usize = 9;

/// Whether a read would not block: data, an end or an error is pending.
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

/// Binds a second socket to the address of a connected one: it gets the datagrams that the other one does not. Does not
/// block.
pub(super) fn bind_beside(connected: &UdpSocket, address: SocketAddr) -> io::Result<UdpSocket> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
    // Only until this socket is bound: groups may be shared, but no other socket may share another address.
    let is_shared = sockopt::socket_reuseaddr(connected)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseaddr(connected, true)?;
    let bound = bind(&socket, &address);
    sockopt::set_socket_reuseaddr(connected, is_shared)?;
    sockopt::set_socket_reuseaddr(&socket, is_shared)?;
    bound?;
    Ok(UdpSocket::from(socket))
}

/// Requests a receive buffer of this size, and returns the granted size. The kernel allows at most `net.core.rmem_max`.
/// It doubles the number to make room for its own headers.
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

/// Makes the kernel attach to each datagram the number dropped before.
pub(super) fn tell_drops(socket: &UdpSocket) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)
}

/// How many datagrams the kernel has dropped since the socket was opened; `None` if it does not state that.
pub(super) fn drops(socket: &UdpSocket) -> Option<u32> {
    let mut numbers = [0_u32; MEMINFO_LENGTH];
    (get(socket, libc::SO_MEMINFO, &mut numbers) == size_of_val(&numbers)).then_some(numbers[MEMINFO_DROPS])
}

/// Makes the kernel attach to each datagram its time of arrival. A kernel that refuses attaches none.
pub(super) fn tell_arrivals(socket: &UdpSocket) {
    let _ = set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
}

/// Switches on or off that the kernel attaches to each datagram its destination address. A kernel that refuses attaches
/// none.
pub(super) fn tell_destinations(socket: &UdpSocket, tell: bool) {
    let is_v4 = socket.local_addr().is_ok_and(|bound| bound.is_ipv4());
    let (level, option) =
        if is_v4 { (libc::IPPROTO_IP, libc::IP_PKTINFO) } else { (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO) };
    let _ = set(socket, level, option, tell.into());
}

/// Lets the kernel join datagrams of one sender and one size into one message. Returns whether it does: Linux 5.0.
pub(super) fn join_datagrams(socket: &UdpSocket) -> bool {
    set(socket, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok()
}

/// Makes the kernel split each sent buffer into datagrams of this size. It joins them again if the receiver allows
/// that.
#[cfg(test)]
pub(super) fn send_in_segments(socket: &UdpSocket, bytes: usize) -> io::Result<()> {
    set(socket, libc::SOL_UDP, libc::UDP_SEGMENT, bytes as libc::c_int)
}

fn set(socket: &UdpSocket, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: reads the four bytes of `value`, which live until the call returns.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option that consists of numbers. Returns the number of bytes written, 0 if the kernel refused.
fn get(socket: &UdpSocket, option: libc::c_int, into: &mut [u32]) -> usize {
    let mut length = size_of_val(into) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, all of `into`, and any bits are a u32.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, into.as_mut_ptr().cast(), &raw mut length)
    };
    if result == 0 { length as usize } else { 0 }
}
