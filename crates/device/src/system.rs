//! System calls of locks and drivers: wait for a descriptor, wait for a word, check that a thread lives.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU32;

use hairspring_machine::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use rustix::thread::futex;

/// Waits at most `most` until a descriptor can be read; returns whether it can. A removed device counts as readable:
/// the read returns its error. A signal may end the wait earlier.
///
/// # Errors
/// No memory.
pub fn wait_readable(descriptor: BorrowedFd<'_>, most: Nanos) -> io::Result<bool> {
    match poll([descriptor], most) {
        Ok([ready]) => Ok(ready),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(error) => Err(error),
    }
}

/// Waits at most `most` for one of these descriptors. Returns which of them have data, or an end or an error that a
/// read will report.
///
/// # Errors
/// A signal ended the wait, or there is no memory.
pub fn poll<const N: usize>(descriptors: [BorrowedFd<'_>; N], most: Nanos) -> io::Result<[bool; N]> {
    let mut entries = descriptors.map(|one| PollFd::from_borrowed_fd(one, PollFlags::IN));
    rustix::event::poll(&mut entries, Some(&timespec(most)))?;
    Ok(entries.map(|entry| !entry.revents().is_empty()))
}

/// Sleeps at most `most` while a word has this value; other processes may change the word and wake its sleepers.
/// `false` after a time-out.
pub fn wait_while(word: &AtomicU32, value: u32, most: Nanos) -> bool {
    // Not a private futex: other processes wake it.
    futex::wait(word, futex::Flags::empty(), value, Some(&timespec(most))) != Err(Errno::TIMEDOUT)
}

/// Wakes all threads that sleep on a word, in any process.
pub fn wake_all(word: &AtomicU32) {
    // Fails only for invalid addresses.
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX.unsigned_abs());
}

fn timespec(span: Nanos) -> Timespec {
    let nanos = span.count().max(0);
    Timespec { tv_sec: nanos / 1_000_000_000, tv_nsec: nanos % 1_000_000_000 }
}

/// Whether the thread with this id lives. A zombie does not. If the id has been reused, a dead thread looks alive.
pub(crate) fn thread_exists(thread: u32) -> bool {
    let Some(number) = thread.try_into().ok().and_then(Pid::from_raw) else { return false };
    // Linux accepts any thread id here, not only process ids. Signal 0 sends nothing.
    if test_kill_process(number) == Err(Errno::SRCH) {
        return false;
    }
    let stat = std::fs::read_to_string(format!("/proc/{thread}/stat")).unwrap_or_default();
    // The state follows the name, which may contain any characters.
    !stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A killed owner of a lock blocked all waiters until its parent reaped it: the kernel keeps the id of a zombie.
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

    #[test]
    fn threads_that_are_not_the_first_of_their_process_exist_until_they_end() {
        let (told, number) = std::sync::mpsc::channel();
        let (ends, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            told.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).expect("somebody listens");
            let _ = wait.recv();
        });
        let number = number.recv().expect("a number");
        assert_ne!(number, std::process::id());
        assert!(thread_exists(number));
        drop(ends);
        thread.join().expect("it ends");
        // The kernel may not have finished removing the process.
        while thread_exists(number) {
            std::thread::yield_now();
        }
        assert!(!thread_exists(0) && !thread_exists(u32::MAX));
    }
}
