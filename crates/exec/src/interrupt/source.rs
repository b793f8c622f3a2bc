//! The thread of one descriptor: it waits, reads, and delivers.
//!
//! A failed read is counted, and the next one is tried. The source ends at the end of its data, when reads keep
//! failing, or when its procedure panics. Its [`Health`] keeps the reason, and the run reports it.

use std::io::{Error, ErrorKind};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use hairspring_machine::{CpuSet, Host, Machine, Policy};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::{Arrival, Health, InterruptSource};
use crate::unwind::panic_text;

/// The number of consecutive failed reads that ends a source. A socket reports each error once; a broken descriptor
/// fails for ever and reaches this limit within about a millisecond.
const MOST_FAILURES: u32 = 1_000;

/// How long the end of a source waits for its thread, which may be in a blocking read or in a procedure that does not
/// return.
const PATIENCE: Duration = Duration::from_secs(1);

/// A running source. Dropping it ends its thread. A thread that does not end is abandoned and delivers nothing any
/// more.
pub(crate) struct SourceThread {
    end: OwnedFd,
    health: Arc<Health>,
    /// Its other end goes with the thread.
    gone: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl SourceThread {
    /// Starts the thread of a source with a descriptor; none for software. If the system refuses the policy, the thread
    /// keeps its own, and [`Health`] reports the refusal. Returns when the thread is in its place.
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
        let end = eventfd(0, EventfdFlags::CLOEXEC)?;
        let stop = end.try_clone()?;
        // The thread takes its place before another thread can delay it.
        let (in_place, gone) = sync_channel(1);
        let theirs = Arc::clone(&health);
        let thread = std::thread::Builder::new().name(format!("isp {name}")).spawn(move || {
            if let Some(cpus) = cpus {
                // After a refusal the thread stays where it is; the executive has reported the same for its own
                // threads.
                let _ = Host.set_affinity(&cpus);
            }
            if let Err(refused) = Host.set_policy(policy) {
                theirs.refuse(refused);
            }
            // The send fails only if the caller has gone.
            let _ = in_place.send(());
            if let Some(why) = serve(&descriptor, &stop, counts, &theirs, deliver) {
                theirs.end(why);
            }
        })?;
        // An error means that the thread has ended, which its first wait would have reported.
        let _ = gone.recv();
        Ok(Some(Self { end, health, gone, thread: Some(thread) }))
    }
}

impl Drop for SourceThread {
    fn drop(&mut self) {
        self.health.leave();
        // It fails only if it was written before; then the thread comes, too.
        let _ = rustix::io::write(&self.end, &1_u64.to_ne_bytes());
        if self.gone.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            return;
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Delivers arrivals until the source is dropped (none) or ends (the reason).
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
                // Another reader of the descriptor can be faster; that is not an error.
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
    loop {
        let mut fds = [descriptor, stop].map(|fd| PollFd::new(fd, PollFlags::IN));
        match poll(&mut fds, None) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            ready => ready?,
        };
        let [comes, stops] = fds.map(|fd| !fd.revents().is_empty());
        if comes || stops {
            return Ok(!stops);
        }
    }
}

/// Reads once and returns the number of firings; none at the end of the data.
fn read_some(descriptor: &OwnedFd, counts: bool) -> Result<Option<u64>, Error> {
    let mut buffer = [0_u8; 4096];
    let wanted = if counts { 8 } else { buffer.len() };
    match rustix::io::read(descriptor, &mut buffer[..wanted])? {
        0 => Ok(None),
        _ if !counts => Ok(Some(1)),
        8 => Ok(buffer.first_chunk().map(|count| u64::from_ne_bytes(*count))),
        got => Err(Error::other(format!("a counter gives 8 bytes at a time, and this gave {got}"))),
    }
}
