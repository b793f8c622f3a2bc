//! The thread of one descriptor: it waits, reads, and delivers.
//!
//! An error of one read is counted, and the next is tried. The source ends at the end of its data, when reads keep failing, or
//! when its procedure panics; the reason stands in its [`Health`], which the run tells.
#![expect(unsafe_code, reason = "poll and read on descriptors of any kind")]

use std::io::{Error, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use hairspring_machine::{CpuSet, Host, Machine, Policy};

use super::{Arrival, Health, InterruptSource};
use crate::unwind::panic_text;

/// Reads that may fail one after the other before the source is given up: a socket tells each error once, a broken descriptor
/// fails for ever, within a millisecond or so.
const MOST_FAILURES: u32 = 1_000;

/// How long the end of a source waits for its thread, which may be in a read that blocks, or in a procedure that does not return.
const PATIENCE: Duration = Duration::from_secs(1);

/// A running source. Dropping it ends its thread, or leaves it behind if it does not come; it delivers nothing then.
pub(crate) struct SourceThread {
    end: OwnedFd,
    health: Arc<Health>,
    /// Its other end goes with the thread.
    gone: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl SourceThread {
    /// Starts the thread of a source that has a descriptor; none for software. A policy that is refused is left as it is, and told by [`Health`].
    /// Returns when the thread is in its place.
    pub(crate) fn start(
        name: &str,
        source: &InterruptSource,
        policy: Policy,
        cpus: Option<CpuSet>,
        health: Arc<Health>,
        deliver: impl FnMut(Arrival) + Send + 'static,
    ) -> Result<Option<Self>, Error> {
        let (descriptor, counts) = match source {
            InterruptSource::Software => return Ok(None),
            InterruptSource::Readable(descriptor) => (descriptor.try_clone()?, false),
            InterruptSource::Counter(descriptor) => (descriptor.try_clone()?, true),
        };
        // SAFETY: eventfd has no memory arguments; a negative result is checked before it becomes an owned descriptor.
        let end = unsafe {
            let raw = libc::eventfd(0, libc::EFD_CLOEXEC);
            if raw < 0 {
                return Err(Error::last_os_error());
            }
            OwnedFd::from_raw_fd(raw)
        };
        let stop = end.try_clone()?;
        // It has its place before anybody can keep it from getting there.
        let (in_place, gone) = sync_channel(1);
        let theirs = Arc::clone(&health);
        let thread = std::thread::Builder::new().name(format!("isp {name}")).spawn(move || {
            if let Some(cpus) = cpus {
                // Refusal leaves the thread where it is; the executive has reported the same of its own threads.
                let _ = Host.set_affinity(&cpus);
            }
            if let Err(refused) = Host.set_policy(policy) {
                theirs.refuse(refused);
            }
            // Nobody listens only if the caller has gone. It lives as long as the thread.
            let _ = in_place.send(());
            if let Some(why) = serve(&descriptor, &stop, counts, &theirs, deliver) {
                theirs.end(why);
            }
        })?;
        // An error means that the thread has ended, which its first wait would have told.
        let _ = gone.recv();
        Ok(Some(Self { end, health, gone, thread: Some(thread) }))
    }
}

impl Drop for SourceThread {
    fn drop(&mut self) {
        self.health.leave();
        let one = 1_u64.to_ne_bytes();
        // SAFETY: the eight bytes live; the descriptor is ours.
        unsafe { libc::write(self.end.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        if self.gone.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            return;
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Delivers what comes, until the source is dropped (none) or nothing will come any more (why).
fn serve(
    descriptor: &OwnedFd,
    stop: &OwnedFd,
    counts: bool,
    health: &Health,
    mut deliver: impl FnMut(Arrival),
) -> Option<String> {
    let mut failures = 0;
    loop {
        match wait_readable(descriptor, stop) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => return Some(format!("waiting for it failed: {error}")),
        }
        let read = read_some(descriptor, counts);
        if health.is_leaving() {
            return None;
        }
        match read {
            Ok(Some(count)) => {
                failures = 0;
                let arrival = Arrival { at: Host.monotonic(), count };
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| deliver(arrival))) {
                    return Some(format!("its procedure panicked: {}", panic_text(&*payload)));
                }
            }
            Ok(None) => return Some("the end of its data".to_owned()),
            Err(error) => {
                failures += 1;
                // Where several read, another can be faster; that is no error.
                if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) {
                    health.count_error();
                }
                if failures == MOST_FAILURES {
                    return Some(format!("{failures} reads in a row failed: {error}"));
                }
            }
        }
    }
}

/// Waits until the first has something to be read, be it an error (true), or the second has (false).
fn wait_readable(descriptor: &OwnedFd, stop: &OwnedFd) -> Result<bool, Error> {
    let look = |fd: &OwnedFd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    loop {
        let mut fds = [look(descriptor), look(stop)];
        // SAFETY: two live pollfd structures, and their number.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) };
        if ready < 0 {
            let error = Error::last_os_error();
            if error.kind() == ErrorKind::Interrupted {
                continue;
            }
            return Err(error);
        }
        if fds[1].revents != 0 {
            return Ok(false);
        }
        if fds[0].revents != 0 {
            return Ok(true);
        }
    }
}

/// Reads once: how many firings it stands for; none at the end of the data.
fn read_some(descriptor: &OwnedFd, counts: bool) -> Result<Option<u64>, Error> {
    let mut buffer = [0_u8; 4096];
    let wanted = if counts { 8 } else { buffer.len() };
    // SAFETY: the buffer is at least `wanted` long.
    let got = unsafe { libc::read(descriptor.as_raw_fd(), buffer.as_mut_ptr().cast(), wanted) };
    match got {
        ..0 => Err(Error::last_os_error()),
        0 => Ok(None),
        _ if !counts => Ok(Some(1)),
        8 => Ok(Some(u64::from_ne_bytes([
            buffer[0], buffer[1], buffer[2], buffer[3], buffer[4], buffer[5], buffer[6], buffer[7],
        ]))),
        _ => Err(Error::other(format!("a counter gives 8 bytes at a time, and this gave {got}"))),
    }
}
