//! The system calls of event sources: wait for a descriptor, read it, make timers, counters and sockets.

#![expect(unsafe_code, reason = "socket options and messages that rustix does not have")]

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use hairspring_device::system::poll;
use hairspring_machine::{Instant, Nanos};
use rustix::event::EventfdFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use zerocopy::FromBytes;

/// Longest time between two queries of a source.
const ASKED_AGAIN: Nanos = Nanos::from_secs(1);

/// A counter with value 0; reading blocks until something is added.
pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    Ok(rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?)
}

/// A timer on `CLOCK_MONOTONIC`.
pub(crate) fn timer() -> io::Result<OwnedFd> {
    let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
    Ok(rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?)
}

/// Makes a timer readable at this time, once, and not before.
pub(crate) fn set_timer(timer: BorrowedFd<'_>, at: Instant) -> io::Result<()> {
    // Zero would switch it off; that time has passed anyway.
    let at = at.as_monotonic().max(Nanos::new(1)).count();
    let it_value = Timespec { tv_sec: at / 1_000_000_000, tv_nsec: at % 1_000_000_000 };
    let setting = Itimerspec { it_value, it_interval: Timespec::default() };
    rustix::time::timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &setting)?;
    Ok(())
}

/// Adds to a counter.
pub(crate) fn add_to_counter(counter: BorrowedFd<'_>, count: u64) -> io::Result<()> {
    rustix::io::write(counter, &count.to_ne_bytes())?;
    Ok(())
}

/// Reads the available bytes, up to the buffer's length; zero at the end.
pub(crate) fn read(from: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| rustix::io::read(from, &mut *buffer))?)
}

/// Reason why a wait for a descriptor ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// There is data, or an end or an error that a read will return.
    Source,
    /// A stop was requested.
    Bell,
}

/// Waits until the source can be read or the bell is rung. If both, the bell comes first. Polls again each second: some
/// kernels do not wake a thread that waits for a device when that is unplugged, and report the error only to a new
/// call.
pub(crate) fn wait(source: BorrowedFd<'_>, bell: BorrowedFd<'_>) -> io::Result<Ready> {
    loop {
        match poll([bell, source], ASKED_AGAIN) {
            Ok([true, _]) => return Ok(Ready::Bell),
            Ok([_, true]) => return Ok(Ready::Source),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A socket at an address that other sockets may share, like the members of a group on one host.
pub(crate) fn shared_udp(at: SocketAddr) -> io::Result<UdpSocket> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &at)?;
    Ok(socket.into())
}

/// Switches an option of a socket on.
fn set(socket: BorrowedFd<'_>, option: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    let bytes = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the number lives until the call returns, and `bytes` is its length.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const on).cast(), bytes) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes the kernel attach to each packet its time of arrival and the number of packets dropped for lack of room.
pub(crate) fn tell_times_and_losses(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::SO_TIMESTAMPNS)?;
    set(socket, libc::SO_RXQ_OVFL)
}

/// A datagram that was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    /// Number of its bytes in the buffer.
    pub(crate) bytes: usize,
    /// When the kernel took it, by `CLOCK_REALTIME`.
    pub(crate) realtime: Option<Nanos>,
    /// Number of packets dropped for lack of room since the socket was opened; `None` if there were none.
    pub(crate) dropped: Option<u32>,
}

/// Header of each control message: `struct cmsghdr`. Behind it, and behind the message, there may be padding to a
/// multiple of the word size.
#[derive(FromBytes)]
#[repr(C)]
struct MessageHeader {
    bytes: usize,
    level: i32,
    kind: i32,
}

/// `struct timespec` in a message.
#[derive(FromBytes)]
#[repr(C)]
struct MessageTime {
    seconds: i64,
    nanoseconds: i64,
}

/// Room for the two messages that [`tell_times_and_losses`] asks for.
#[repr(align(8))]
struct Messages([u8; 128]);

/// Receives a datagram that has arrived.
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Received> {
    let mut messages = Messages([0; 128]);
    let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all zeros are a message header without any part.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut piece;
    header.msg_iovlen = 1;
    header.msg_control = messages.0.as_mut_ptr().cast();
    // The two C libraries declare lengths with different types.
    header.msg_controllen = messages.0.len() as _;
    // SAFETY: header, piece, buffer and room for messages live until the call returns, and the header has their
    // lengths.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) };
    let bytes = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    let length: usize = header.msg_controllen as _;
    let (realtime, dropped) = times_and_losses(&messages.0[..length.min(messages.0.len())]);
    Ok(Received { bytes, realtime, dropped })
}

/// The stamp and the drop count in the control messages of a datagram. Truncated messages and other kinds are ignored.
fn times_and_losses(mut messages: &[u8]) -> (Option<Nanos>, Option<u32>) {
    const HEADER: usize = size_of::<MessageHeader>();
    let (mut realtime, mut dropped) = (None, None);
    while let Ok((MessageHeader { bytes, level, kind }, _)) = MessageHeader::read_from_prefix(messages) {
        let Some(content) = messages.get(HEADER..bytes) else { break };
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                let time = MessageTime::read_from_prefix(content).ok();
                realtime = time.map(|(time, _)| Nanos::new(time.seconds * 1_000_000_000 + time.nanoseconds));
            }
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                dropped = u32::read_from_prefix(content).ok().map(|(count, _)| count);
            }
            _ => {}
        }
        messages = messages.get(bytes.next_multiple_of(size_of::<usize>())..).unwrap_or_default();
    }
    (realtime, dropped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(level: i32, kind: i32, content: &[u8]) -> Vec<u8> {
        let bytes = size_of::<MessageHeader>() + content.len();
        let mut message = [&bytes.to_ne_bytes()[..], &level.to_ne_bytes(), &kind.to_ne_bytes(), content].concat();
        message.resize(bytes.next_multiple_of(8), 0);
        message
    }

    #[test]
    fn messages_are_found_in_any_order_and_cut_ones_are_left_out() {
        let time = [3_i64.to_ne_bytes(), 7_i64.to_ne_bytes()].concat();
        let time = message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &time);
        let lost = message(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &5_u32.to_ne_bytes());
        let other = message(libc::IPPROTO_IP, 8, &[1, 2, 3]);
        let at = Some(Nanos::new(3_000_000_007));
        for (messages, found) in [
            (vec![], (None, None)),
            ([&time[..], &lost, &other].concat(), (at, Some(5))),
            ([&other[..], &lost, &time].concat(), (at, Some(5))),
            (lost.clone(), (None, Some(5))),
            (time[..time.len() - 1].to_vec(), (None, None)),
            (vec![0; 64], (None, None)),
            (vec![255; 64], (None, None)),
        ] {
            assert_eq!(times_and_losses(&messages), found, "{messages:?}");
        }
    }
}
