//! [`DeviceLock`]: a lock between processes, for a device that they share.
//!
//! **Problem.** Two processes use one board. An access takes microseconds and must not be mixed with another's. A
//! thread of medium priority can preempt the owner of the lock, and then the most urgent process waits for it (priority
//! inversion). The owner can also be killed, and then no process ever gets the lock again.
//!
//! **Solution.** A lock in the memory that the processes share. [`Protocol::Inherit`] is the C library's robust,
//! process-shared mutex with priority inheritance: the owner runs with the priority of the most urgent waiter, and the
//! kernel notifies the next owner if the last one died. [`Protocol::None`] is the same without inheritance,
//! [`Protocol::Fifo`] a ticket lock (`ticket.rs`): both exist for comparison.
//!
//! | protocol | who is next | an owner that is preempted | an owner that dies |
//! |---|---|---|---|
//! | `inherit` | the most urgent | runs at the waiter's priority | the kernel notifies the next owner |
//! | `none` | the most urgent, or one just arriving | blocks all waiters | the kernel notifies the next owner |
//! | `fifo` | the first that arrived | blocks all waiters | the next owner detects it within 20 ms |
//!
//! **The death of an owner** is reported to every later owner until one calls [`Guard::repaired`], also if an earlier
//! one failed to repair the device.
//!
//! **One PID namespace.** All three protocols identify an owner by its thread number, which is meaningless in another
//! PID namespace: there a living owner looks dead, and two threads can have one number. A process outside the namespace
//! in which the lock was made (another container that shares `/dev/shm`) is refused.
//!
//! **Truncation of the file** destroys the lock. Every thread that waits for the lock then gets an error, the owner
//! gets one with its next call, and no process ends because of it.
//!
//! **Real-time behaviour.** Without contention no system call (`fifo`: one, when it is released while others wait).
//! With contention the thread sleeps in the kernel.

#![expect(unsafe_code, reason = "the C library's mutex; says what can be shared")]

mod guarded;
mod ticket;

pub use guarded::{Guarded, HeldDevice, Lend, PATIENCE};

use std::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::device::DeviceError;
use crate::memory::page::{Page, Zeroed};
use ticket::TicketLock;

/// How a lock chooses its next owner, and how it treats priorities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// No priority inheritance.
    None,
    /// In the order of arrival.
    Fifo,
    /// Priority inheritance.
    #[default]
    Inherit,
}

impl Protocol {
    /// Every protocol.
    pub const ALL: [Self; 3] = [Self::None, Self::Fifo, Self::Inherit];

    /// Its name in ids, JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fifo => "fifo",
            Self::Inherit => "inherit",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|protocol| protocol.name() == text);
        found.ok_or_else(|| format!("'{text}': write none, fifo or inherit"))
    }
}

/// First word of a lock's file that is ready: the format and its version.
const MAGIC: u64 = u64::from_le_bytes(*b"hsLockF3");
/// Longest time between two checks of the stop condition by a thread that waits for the mutex.
const LOOK: Duration = Duration::from_millis(100);

/// The lock's memory. All zeros: not initialised yet.
#[repr(C)]
pub(crate) struct Words {
    /// For [`Protocol::None`] and [`Protocol::Inherit`].
    mutex: UnsafeCell<MaybeUninit<libc::pthread_mutex_t>>,
    /// For [`Protocol::Fifo`].
    order: TicketLock,
    /// Whether an owner died, and no owner has called [`Guard::repaired`] since.
    is_left_behind: AtomicU32,
    /// The PID namespace of the process that made the lock.
    namespace: AtomicU64,
}

// SAFETY: atomics; and the mutex, which is looked into only by the C library and the kernel, in its cell.
unsafe impl Zeroed for Words {}
// SAFETY: the mutex and the atomics are made for concurrent use.
unsafe impl Sync for Words {}

impl Words {
    /// Records that an owner died. Called before another thread can have the lock.
    fn leave_behind(&self) {
        // Relaxed: the release of the lock publishes it.
        self.is_left_behind.store(1, Ordering::Relaxed);
    }

    /// Initialises the lock, in memory that is not shared yet.
    pub(crate) fn make(&self, protocol: Protocol, page: &Page) -> Result<(), DeviceError> {
        self.order.make();
        // Relaxed: published together with the words around it.
        self.namespace.store(page.namespace(), Ordering::Relaxed);
        // Relaxed: published together with the words around it.
        self.is_left_behind.store(0, Ordering::Relaxed);
        let inheritance = match protocol {
            Protocol::Inherit => libc::PTHREAD_PRIO_INHERIT,
            Protocol::None | Protocol::Fifo => libc::PTHREAD_PRIO_NONE,
        };
        let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let made = attributes.as_mut_ptr();
        // SAFETY: the attributes are initialised by the first call before the others use them, live until the last one,
        // and are destroyed once. The caller guarantees that no other thread uses the mutex's memory before it is made.
        let results = unsafe {
            [
                libc::pthread_mutexattr_init(made),
                libc::pthread_mutexattr_settype(made, libc::PTHREAD_MUTEX_ERRORCHECK),
                libc::pthread_mutexattr_setpshared(made, libc::PTHREAD_PROCESS_SHARED),
                libc::pthread_mutexattr_setrobust(made, libc::PTHREAD_MUTEX_ROBUST),
                libc::pthread_mutexattr_setprotocol(made, inheritance),
                libc::pthread_mutex_init(self.mutex.get().cast(), made),
                libc::pthread_mutexattr_destroy(made),
            ]
        };
        match results.into_iter().find(|result| *result != 0) {
            None => Ok(()),
            Some(error) => Err(refused("make the lock of a device", error)),
        }
    }
}

/// A type with a lock that processes share.
pub trait Lockable {
    /// Its lock.
    fn lock(&self) -> DeviceLock<'_>;
}

/// A lock in a file of its own, for real devices: a virtual board has its lock in its own file.
#[derive(Debug)]
pub struct LockFile(Page);

#[repr(C)]
struct Shared {
    magic: AtomicU64,
    protocol: AtomicU32,
    lock: Words,
}

// SAFETY: atomics, and the lock's words, which are `Zeroed` themselves.
unsafe impl Zeroed for Shared {}

impl LockFile {
    /// Opens the lock of this file; the first to do so makes it, with this protocol.
    ///
    /// # Errors
    /// The file cannot be opened, or is of another kind.
    pub fn open(path: &Path, protocol: Protocol) -> Result<Self, DeviceError> {
        let page = Page::of(path, size_of::<Shared>(), MAGIC).map_err(|error| DeviceError {
            attempted: format!("open the lock {}", path.display()),
            said: error.to_string(),
            remedy: "name a file in a folder that may be written, for instance /dev/shm/lock",
        })?;
        Self::made(page, path, protocol)
    }

    /// A lock for the threads of this process, with inheritance.
    ///
    /// # Errors
    /// There is no memory left.
    pub fn of_process() -> Result<Self, DeviceError> {
        let page = Page::without_file(size_of::<Shared>()).map_err(|error| DeviceError {
            attempted: "make a lock".to_owned(),
            said: error.to_string(),
            remedy: "free memory",
        })?;
        Self::made(page, Path::new("a lock of this process"), Protocol::Inherit)
    }

    fn made(page: Page, path: &Path, protocol: Protocol) -> Result<Self, DeviceError> {
        let shared: &Shared = page.start();
        page.made_once(&shared.magic, MAGIC, path, || {
            // Relaxed: published when it is made.
            shared.protocol.store(protocol as u32, Ordering::Relaxed);
            shared.lock.make(protocol, &page)
        })?;
        Ok(Self(page))
    }
}

impl Lockable for LockFile {
    fn lock(&self) -> DeviceLock<'_> {
        let shared: &Shared = self.0.start();
        DeviceLock::of(&self.0, &shared.lock, &shared.protocol)
    }
}

/// The lock.
#[derive(Clone, Copy)]
pub struct DeviceLock<'m> {
    page: &'m Page,
    words: &'m Words,
    protocol: Protocol,
}

impl fmt::Debug for DeviceLock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceLock").field("protocol", &self.protocol).finish_non_exhaustive()
    }
}

impl<'m> DeviceLock<'m> {
    /// The lock of these words in a page, made with the protocol that is stored beside them.
    pub(crate) fn of(page: &'m Page, words: &'m Words, protocol: &AtomicU32) -> Self {
        const NONE: u32 = Protocol::None as u32;
        const FIFO: u32 = Protocol::Fifo as u32;
        let protocol = match protocol.load(Ordering::Relaxed) {
            NONE => Protocol::None,
            FIFO => Protocol::Fifo,
            _ => Protocol::Inherit,
        };
        Self { page, words, protocol }
    }

    /// Its protocol.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Whether the lock was lost because another process truncated its file. Correct after a call of the lock.
    pub fn is_lost(&self) -> bool {
        self.page.is_revoked()
    }

    /// Waits for the lock. Dropping the guard releases it.
    ///
    /// # Errors
    /// The thread holds it already; the lock is of another PID namespace; its file was truncated; the C library
    /// refuses.
    pub fn lock(&self) -> Result<Guard<'m>, DeviceError> {
        loop {
            if self.acquire(&mut || false)? {
                return Ok(self.guard());
            }
        }
    }

    /// Waits for the lock, or until `is_over` returns true: it is called some ten times a second, and only after others
    /// have held the lock for a while.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub fn lock_unless(&self, is_over: &mut dyn FnMut() -> bool) -> Result<Option<Guard<'m>>, DeviceError> {
        Ok(self.acquire(is_over)?.then(|| self.guard()))
    }

    /// Waits for the lock; `false` only if `is_over`.
    fn acquire(&self, is_over: &mut dyn FnMut() -> bool) -> Result<bool, DeviceError> {
        let (page, words, thread) = (self.page, self.words, own_thread());
        let of_maker = words.namespace.load(Ordering::Relaxed);
        page.kept("lock")?;
        page.check_namespace(of_maker)?;
        // A thread that sleeps in the kernel does not notice that the memory was revoked.
        let mut is_over = || page.is_revoked() || is_over();
        let is_had = match self.protocol {
            Protocol::Fifo if words.order.is_turn_of(thread) => return Err(refused("lock a device", libc::EDEADLK)),
            Protocol::Fifo => words.order.wait(thread, || words.leave_behind(), &mut is_over),
            Protocol::None | Protocol::Inherit => self.wait_for_mutex(&mut is_over)?,
        };
        // A lock in the memory that replaced a revoked page excludes no other process.
        page.kept("lock")?;
        Ok(is_had)
    }

    /// A guard for this thread, which owns the lock.
    fn guard(&self) -> Guard<'m> {
        // Relaxed: under the lock.
        let owner_died = self.words.is_left_behind.load(Ordering::Relaxed) != 0;
        self.page.guard_made();
        Guard { lock: *self, owner_died, not_send: std::marker::PhantomData }
    }

    fn wait_for_mutex(&self, is_over: &mut dyn FnMut() -> bool) -> Result<bool, DeviceError> {
        let mutex = self.words.mutex.get().cast();
        loop {
            match try_for(mutex, LOOK) {
                0 => return Ok(true),
                libc::EOWNERDEAD => {
                    self.words.leave_behind();
                    // SAFETY: as above, and this thread owns it now.
                    let result = unsafe { libc::pthread_mutex_consistent(mutex) };
                    return if result == 0 { Ok(true) } else { Err(refused("repair the lock of a device", result)) };
                }
                libc::ETIMEDOUT if is_over() => return Ok(false),
                libc::ETIMEDOUT => {}
                error => return Err(refused("lock a device", error)),
            }
        }
    }

    fn give_back(&self) {
        match self.protocol {
            Protocol::Fifo => self.words.order.give_back(),
            Protocol::None | Protocol::Inherit => {
                // SAFETY: this thread owns it: the guard is not `Send`, and exists once.
                unsafe { libc::pthread_mutex_unlock(self.words.mutex.get().cast()) };
            }
        }
    }
}

/// Ownership of the lock until it is dropped. Stays in its thread.
#[derive(Debug)]
pub struct Guard<'m> {
    lock: DeviceLock<'m>,
    owner_died: bool,
    not_send: std::marker::PhantomData<*const ()>,
}

impl Guard<'_> {
    /// Whether an earlier owner died: the state of the device is unknown, and it must be initialised.
    pub fn owner_died(&self) -> bool {
        self.owner_died
    }

    /// Declares that the device is in order again. Until then every new owner sees that one died.
    pub fn repaired(&mut self) {
        self.owner_died = false;
        // Relaxed: under the lock.
        self.lock.words.is_left_behind.store(0, Ordering::Relaxed);
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let page = self.lock.page;
        // A lock that was lost with its file is not released: its words are zeros, and the page stays for the thread's
        // list of mutexes.
        if !page.is_revoked() {
            self.lock.give_back();
        }
        if !page.is_revoked() {
            page.guard_given_back();
        }
    }
}

fn refused(attempted: &str, error: i32) -> DeviceError {
    let remedy = match error {
        libc::EDEADLK => "the thread already holds the lock: release it first",
        libc::ENOTRECOVERABLE => "remove the file of the board, and restart all its users",
        _ => "see the manual page of pthread_mutex_lock",
    };
    DeviceError { attempted: attempted.to_owned(), said: std::io::Error::from_raw_os_error(error).to_string(), remedy }
}

/// Waits at most this long for an initialised mutex; `ETIMEDOUT` if it was not free in time.
fn try_for(mutex: *mut libc::pthread_mutex_t, span: Duration) -> libc::c_int {
    // By the time of day: with inheritance older kernels know no other clock. If that clock is set back, the look is
    // delayed by the same amount.
    let until = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + span;
    let (seconds, nanos) = (until.as_secs().cast_signed(), i64::from(until.subsec_nanos()));
    let until = libc::timespec { tv_sec: seconds, tv_nsec: nanos };
    // SAFETY: the caller guarantees an initialised mutex, and the time lives until the call returns.
    unsafe { libc::pthread_mutex_timedlock(mutex, &raw const until) }
}

/// The kernel's number of this thread.
fn own_thread() -> u32 {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::gettid() }.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_read_as_they_are_written() {
        for protocol in Protocol::ALL {
            assert_eq!(protocol.to_string().parse(), Ok(protocol));
        }
        assert!("ceiling".parse::<Protocol>().is_err_and(|why| why.contains("write none, fifo or inherit")));
    }
}
