//! The thread of one descriptor: it waits, reads, and delivers.
#![expect(unsafe_code, reason = "poll and read on descriptors of any kind")]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::thread::JoinHandle;

use hairspring_exec_core::Moment;
use hairspring_machine::{Clock, CpuSet, Host, Machine, Policy};

use super::{Arrival, Source};

/// The executive's time on the host. Real-time safe.
#[inline]
pub(crate) fn monotonic() -> Moment {
    Moment::from_nanos(Host.read(Clock::Monotonic).count().cast_unsigned())
}

/// A running source. Dropping it ends its thread.
pub(crate) struct SourceThread {
    end: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl SourceThread {
    /// Starts the thread of a source that has a descriptor; none for software. A policy that is refused is left as it is.
    /// Returns when the thread is in its place.
    pub(crate) fn start(
        name: &str,
        source: &Source,
        policy: Policy,
        cpus: Option<CpuSet>,
        mut deliver: impl FnMut(Arrival) + Send + 'static,
    ) -> Result<Option<Self>, std::io::Error> {
        let (descriptor, counts) = match source {
            Source::Software => return Ok(None),
            Source::Readable(descriptor) => (descriptor.try_clone()?, false),
            Source::Counter(descriptor) => (descriptor.try_clone()?, true),
        };
        // SAFETY: eventfd has no memory arguments; a negative result is checked before it becomes an owned descriptor.
        let end = unsafe {
            let raw = libc::eventfd(0, libc::EFD_CLOEXEC);
            if raw < 0 {
                return Err(std::io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(raw)
        };
        let stop = end.try_clone()?;
        // It has its place before anybody can keep it from getting there.
        let (in_place, placed) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name(format!("isp {name}")).spawn(move || {
            if let Some(cpus) = cpus {
                // Refusal leaves the thread where it is; the executive has reported the same of its own threads.
                let _ = Host.set_affinity(&cpus);
            }
            let _ = Host.set_policy(policy);
            // Nobody listens only if the caller has gone.
            let _ = in_place.send(());
            while wait_readable(&descriptor, &stop) {
                match read_some(&descriptor, counts) {
                    Some(count) => deliver(Arrival { at: monotonic(), count }),
                    None => return,
                }
            }
        })?;
        // An error means that the thread has ended, which its first wait would have told.
        let _ = placed.recv();
        Ok(Some(Self { end, thread: Some(thread) }))
    }
}

impl Drop for SourceThread {
    fn drop(&mut self) {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: the eight bytes live; the descriptor is ours.
        unsafe { libc::write(self.end.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Waits until the first is readable (true) or the second is (false).
fn wait_readable(descriptor: &OwnedFd, stop: &OwnedFd) -> bool {
    let look = |fd: &OwnedFd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    loop {
        let mut fds = [look(descriptor), look(stop)];
        // SAFETY: two live pollfd structures, and their number.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) };
        if ready < 0 && std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return false;
        }
        if fds[1].revents != 0 {
            return false;
        }
        if fds[0].revents & libc::POLLIN != 0 {
            return true;
        }
        if fds[0].revents != 0 {
            return false;
        }
    }
}

/// Reads once: how many firings it stands for; none at the end of the data or on an error.
fn read_some(descriptor: &OwnedFd, counts: bool) -> Option<u64> {
    let mut buffer = [0_u8; 4096];
    let wanted = if counts { 8 } else { buffer.len() };
    // SAFETY: the buffer is at least `wanted` long.
    let got = unsafe { libc::read(descriptor.as_raw_fd(), buffer.as_mut_ptr().cast(), wanted) };
    match got {
        8 if counts => Some(u64::from_ne_bytes([
            buffer[0], buffer[1], buffer[2], buffer[3], buffer[4], buffer[5], buffer[6], buffer[7],
        ])),
        1.. if !counts => Some(1),
        _ => None,
    }
}
