//! The system calls of event sources: wait for a descriptor, read it, wait for a word.

#![expect(unsafe_code, reason = "system calls on descriptors and words")]

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU32;

use hairspring_machine::Nanos;

/// How often a source is asked again.
const ASKED_AGAIN_MS: libc::c_int = 1000;
/// The longest wait for an interrupt in one call: the kernel counts milliseconds in 32 bits.
const WAIT_MOST_MS: i64 = i32::MAX as i64;

/// The result of a call as Rust tells it.
fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A descriptor that the kernel has just given us.
fn owned(raw: RawFd) -> io::Result<OwnedFd> {
    let raw = checked(raw)?;
    // SAFETY: the kernel has just opened it for the caller, who passes it on to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// A counter that is 0, and blocks when it is read before something is added.
pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed.
    owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) })
}

/// A timer on `CLOCK_MONOTONIC`.
pub(crate) fn timer() -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed.
    owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) })
}

/// Makes a timer readable at this time, once, and not before.
pub(crate) fn set_timer(timer: BorrowedFd<'_>, at: Nanos) -> io::Result<()> {
    let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // Zero would switch it off; that time has passed anyway.
    let at = at.max(Nanos::new(1));
    let at = libc::timespec { tv_sec: at.count() / 1_000_000_000, tv_nsec: at.count() % 1_000_000_000 };
    let setting = libc::itimerspec { it_value: at, it_interval: none };
    let flags = libc::TFD_TIMER_ABSTIME;
    // SAFETY: the setting lives until the call returns, and the old one is not asked for.
    checked(unsafe { libc::timerfd_settime(timer.as_raw_fd(), flags, &raw const setting, std::ptr::null_mut()) })
        .map(drop)
}

/// Adds to a counter.
pub(crate) fn add_to_counter(counter: BorrowedFd<'_>, count: u64) -> io::Result<()> {
    let bytes = count.to_ne_bytes();
    // SAFETY: the eight bytes live until the call returns.
    let written = unsafe { libc::write(counter.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
    if written == 8 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads what is there, up to the buffer's length; zero at the end.
pub(crate) fn read(from: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        // SAFETY: the buffer is as long as is said, and nobody else has it.
        let got = unsafe { libc::read(from.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        match usize::try_from(got).map_err(|_| io::Error::last_os_error()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// What ended a wait for a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// There is something to read, or an end or an error that a read will tell.
    Source,
    /// The bell was rung.
    Bell,
}

/// Waits until there is something to read from the source, or the bell is rung; that one comes first. It is asked again each second:
/// a device that goes does not wake who sleeps for it on all kernels, and is an error only for who asks.
pub(crate) fn wait(source: BorrowedFd<'_>, bell: BorrowedFd<'_>) -> io::Result<Ready> {
    loop {
        match poll([bell, source], ASKED_AGAIN_MS) {
            Ok([true, _]) => return Ok(Ready::Bell),
            Ok([_, true]) => return Ok(Ready::Source),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits until a descriptor can be read, or for so long at most; whether it can. A device that is gone counts as readable: the
/// read says why. A signal may end the wait sooner.
pub(crate) fn wait_readable(descriptor: BorrowedFd<'_>, most: Nanos) -> io::Result<bool> {
    let millis = (most.count().max(0) / 1_000_000).min(WAIT_MOST_MS) as libc::c_int;
    match poll([descriptor], millis) {
        Ok([ready]) => Ok(ready),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(error) => Err(error),
    }
}

/// Which of these can be read, or have an end or an error that a read will tell; waits for one of them for so long at most.
fn poll<const N: usize>(descriptors: [BorrowedFd<'_>; N], millis: libc::c_int) -> io::Result<[bool; N]> {
    let mut entries = descriptors.map(|one| libc::pollfd { fd: one.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    // SAFETY: the structures live until the call returns, this is their number, and their descriptors are borrowed, so open.
    checked(unsafe { libc::poll(entries.as_mut_ptr(), N as libc::nfds_t, millis) })?;
    Ok(entries.map(|entry| entry.revents != 0))
}

/// A socket at an address that others may have, too, as the members of a group on one host do.
pub(crate) fn shared_udp(at: SocketAddr) -> io::Result<UdpSocket> {
    let family = if at.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: no memory is passed.
    let socket = owned(unsafe { libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
    set(socket.as_fd(), libc::SO_REUSEADDR)?;
    match at {
        SocketAddr::V4(at) => {
            let address = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: at.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(at.ip().octets()) },
                sin_zero: [0; 8],
            };
            bind(&socket, &address)?;
        }
        SocketAddr::V6(at) => {
            let address = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: at.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: at.ip().octets() },
                sin6_scope_id: at.scope_id(),
            };
            bind(&socket, &address)?;
        }
    }
    Ok(socket.into())
}

/// Binds a socket to an address of its family.
fn bind<T>(socket: &OwnedFd, address: &T) -> io::Result<()> {
    let bytes = size_of::<T>() as libc::socklen_t;
    // SAFETY: the address lives until the call returns, and is as long as is said; the kernel looks at its family first.
    checked(unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(address).cast(), bytes) }).map(drop)
}

/// Switches an option of a socket on.
fn set(socket: BorrowedFd<'_>, option: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    let bytes = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the number lives until the call returns, and is as long as is said.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const on).cast(), bytes) })
        .map(drop)
}

/// Makes a socket say when the kernel took each packet, and how many it had no room for.
pub(crate) fn tell_times_and_losses(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, libc::SO_TIMESTAMPNS)?;
    set(socket, libc::SO_RXQ_OVFL)
}

/// A datagram that was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    /// How much of it is in the buffer.
    pub(crate) bytes: usize,
    /// When the kernel took it, by `CLOCK_REALTIME`.
    pub(crate) realtime: Option<Nanos>,
    /// How many there was no room for since the socket was opened; `None` if there were none.
    pub(crate) dropped: Option<u32>,
}

/// Room for the two messages that [`tell_times_and_losses`] asks for.
#[repr(align(8))]
struct Messages([u8; 128]);

/// Receives a datagram that is there.
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Received> {
    let mut messages = Messages([0; 128]);
    let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all zero is a header without a name, pieces or messages.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut piece;
    header.msg_iovlen = 1;
    header.msg_control = messages.0.as_mut_ptr().cast();
    header.msg_controllen = messages.0.len();
    // SAFETY: header, piece, buffer and room for messages live until the call returns, and are as long as is said.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) };
    let bytes = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    let mut received = Received { bytes, ..Received::default() };
    // SAFETY: the header is the one that the kernel has filled in, and the room it points to is still there; each message is
    // as long as its type says, for the kernel wrote it, and is read without being aligned.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(&raw const header);
        while !at.is_null() {
            let data = libc::CMSG_DATA(at);
            match ((*at).cmsg_level, (*at).cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let time: libc::timespec = data.cast::<libc::timespec>().read_unaligned();
                    received.realtime = Some(Nanos::new(time.tv_sec * 1_000_000_000 + time.tv_nsec));
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    received.dropped = Some(data.cast::<u32>().read_unaligned());
                }
                _ => {}
            }
            at = libc::CMSG_NXTHDR(&raw const header, at);
        }
    }
    Ok(received)
}

/// Sleeps while a word has this value, in any process's memory; at most so long. `false` if nobody woke it.
pub(crate) fn wait_while(word: &AtomicU32, value: u32, most: Nanos) -> bool {
    let timeout = libc::timespec { tv_sec: most.count() / 1_000_000_000, tv_nsec: most.count() % 1_000_000_000 };
    // SAFETY: the word and the time live until the call returns. Not private: other processes wake it.
    let result = unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const timeout, 0_usize, 0_u32)
    };
    result == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ETIMEDOUT)
}

/// Wakes all who sleep on a word.
pub(crate) fn wake_all(word: &AtomicU32) {
    // SAFETY: the word lives until the call returns.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX, 0_usize, 0_usize, 0_u32) };
}

/// Whether a thread of this number lives. One that has ended and was not waited for yet does not. A number that was given to another
/// thread since makes a dead one look alive.
pub(crate) fn thread_exists(thread: u32) -> bool {
    // SAFETY: signal 0 is none; it is only asked whether it could be sent.
    let result = unsafe { libc::syscall(libc::SYS_tkill, libc::c_long::from(thread), 0) };
    if result != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH) {
        return false;
    }
    let stat = std::fs::read_to_string(format!("/proc/{thread}/stat")).unwrap_or_default();
    // Behind the name, which may hold anything, comes the state.
    !stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A killed owner of a lock whose parent had other things to do blocked everybody for ever: the kernel keeps the number of a
    /// process that nobody has waited for.
    #[test]
    fn what_nobody_has_waited_for_is_dead_all_the_same() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("it starts");
        assert!(thread_exists(child.id()));
        child.kill().expect("it lives");
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("it is kept");
        while !state().contains(") Z ") {
            std::thread::yield_now();
        }
        let exists = thread_exists(child.id());
        child.wait().expect("it ends");
        assert!(!exists);
    }
}
