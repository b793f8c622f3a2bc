//! Descriptors that std cannot make, and a thread without privileges, for the tests of interrupt sources.
#![expect(unsafe_code, reason = "eventfd, timerfd and the user of one thread have no wrapper in std")]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// A counter of 64 bits that becomes readable when it is written.
pub(crate) fn eventfd() -> OwnedFd {
    // SAFETY: no memory arguments; the result is a new descriptor that no other code has, or is refused below.
    unsafe {
        let raw = libc::eventfd(0, libc::EFD_CLOEXEC);
        assert!(raw >= 0, "{}", std::io::Error::last_os_error());
        OwnedFd::from_raw_fd(raw)
    }
}

/// A timer that fires each `period_ns`, at most a second.
pub(crate) fn timerfd(period_ns: i64) -> OwnedFd {
    // SAFETY: as above; the structure lives until the call returns.
    unsafe {
        let raw = libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC);
        assert!(raw >= 0, "{}", std::io::Error::last_os_error());
        let timer = OwnedFd::from_raw_fd(raw);
        let period = libc::timespec { tv_sec: 0, tv_nsec: period_ns };
        let set = libc::itimerspec { it_interval: period, it_value: period };
        assert_eq!(libc::timerfd_settime(timer.as_raw_fd(), 0, &raw const set, std::ptr::null_mut()), 0);
        timer
    }
}

/// A pair of sockets, the first of which is called readable from the first byte on, but whose reads wait for the
/// second.
pub(crate) fn reads_that_wait() -> (UnixStream, UnixStream) {
    let (reader, writer) = UnixStream::pair().expect("a pair of sockets");
    let two: libc::c_int = 2;
    let (level, size) = (libc::SOL_SOCKET, size_of_val(&two) as libc::socklen_t);
    // SAFETY: the value lives until the call returns, and its size is given.
    let code = unsafe { libc::setsockopt(reader.as_raw_fd(), level, libc::SO_RCVLOWAT, (&raw const two).cast(), size) };
    assert_eq!(code, 0);
    (reader, writer)
}

/// Bytes that can be read at once.
pub(crate) fn bytes_ready(descriptor: &impl AsRawFd) -> i32 {
    let mut bytes: libc::c_int = -1;
    // SAFETY: FIONREAD writes an int, which lives until the call returns.
    assert_eq!(unsafe { libc::ioctl(descriptor.as_raw_fd(), libc::FIONREAD, &raw mut bytes) }, 0);
    bytes
}

/// Runs this on a thread that has no privileges, whatever the process has.
pub(crate) fn unprivileged<R: Send>(act: impl FnOnce() -> R + Send) -> R {
    const NOBODY: libc::c_long = 65_534;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: plain numbers. The system call by its number concerns the calling thread alone, which ends soon.
            unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
            act()
        });
        thread.join().expect("it does not panic")
    })
}
