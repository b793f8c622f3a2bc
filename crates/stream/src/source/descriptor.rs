//! What the standard library does not say about descriptors: whether one can be read, and how many datagrams the kernel threw
//! away because nobody took them.

#![expect(unsafe_code, reason = "system calls on descriptors: poll, recvmsg, socket options")]

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::units::Bytes;

/// Where `SO_MEMINFO` has the number of dropped datagrams, and how many numbers it has (`linux/sock_diag.h`).
const MEMINFO_DROPS: usize = 8;
const MEMINFO_LENGTH: usize = 9;

/// Room for one control message of four bytes, aligned as its header wants to be.
type Control = [u64; 8];

/// Whether a read would not block: there are data, or the end, or an error.
pub(super) fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut entry = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: there is one entry, it lives until the call returns, and its descriptor is borrowed, so open, meanwhile.
    let ready = unsafe { libc::poll(&raw mut entry, 1, 0) };
    ready > 0
}

/// Asks for a receive buffer of so many bytes; how large it is then. The kernel allows at most `net.core.rmem_max`, and counts
/// its own headers, for which it doubles the number.
pub(super) fn receive_buffer(socket: &UdpSocket, wanted: Option<Bytes>) -> Bytes {
    if let Some(wanted) = wanted {
        let wanted = libc::c_int::try_from(wanted.0).unwrap_or(libc::c_int::MAX / 2);
        // Beyond the limit if this process may; if not, up to it.
        if set(socket, libc::SO_RCVBUFFORCE, wanted).is_err() {
            let _ = set(socket, libc::SO_RCVBUF, wanted);
        }
    }
    let mut size: [libc::c_int; 1] = [0];
    get(socket, libc::SO_RCVBUF, &mut size);
    Bytes(u64::try_from(size[0]).unwrap_or(0) / 2)
}

/// Asks the kernel to say with each datagram how many it had thrown away before it.
pub(super) fn tell_drops(socket: &UdpSocket) -> io::Result<()> {
    set(socket, libc::SO_RXQ_OVFL, 1)
}

/// How many datagrams the kernel has thrown away so far; `None` if it does not say.
pub(super) fn drops(socket: &UdpSocket) -> Option<u32> {
    let mut numbers = [0_u32; MEMINFO_LENGTH];
    (get(socket, libc::SO_MEMINFO, &mut numbers) == size_of_val(&numbers)).then_some(numbers[MEMINFO_DROPS])
}

/// Takes one datagram: its length, and how many the kernel had thrown away when it came. Does not block if the socket does
/// not.
pub(super) fn receive(socket: &UdpSocket, into: &mut [u8]) -> io::Result<(usize, u32)> {
    let mut piece = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let mut control: Control = [0; 8];
    // SAFETY: all zeros are a message header without any part.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the header names `piece`, which names all of `into`, and `control`, each with its true length; all of them live
    // until the call returns, and nothing else looks at them meanwhile.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has filled the header, which still names `control`.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() };
    let drops = match header {
        Some(header) if (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
            // SAFETY: the data of a message of this type are four bytes, within `control`; they need not be aligned.
            unsafe { libc::CMSG_DATA(std::ptr::from_ref(header)).cast::<u32>().read_unaligned() }
        }
        // Nothing is said as long as nothing was thrown away.
        _ => 0,
    };
    Ok((length, drops))
}

fn set(socket: &UdpSocket, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: reads the four bytes of `value`, which live until the call returns.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option that is numbers; how many bytes the kernel wrote, 0 if it refused.
fn get<T: Number>(socket: &UdpSocket, option: libc::c_int, into: &mut [T]) -> usize {
    let mut length = size_of_val(into) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, all of `into`, whose elements may be any bits (`Number`).
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, into.as_mut_ptr().cast(), &raw mut length)
    };
    if result == 0 { length as usize } else { 0 }
}

/// Integers: any bits are one.
trait Number {}
impl Number for u32 {}
impl Number for libc::c_int {}
