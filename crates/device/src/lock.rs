//! [`DeviceLock`]: one at a time, between processes.
//!
//! **Problem.** Two processes use one board. An access takes microseconds and must not be mixed with another's. Whoever has the
//! lock can be preempted by someone in the middle, and then the most urgent process waits for the middle one (priority
//! inversion); or it can be killed, and then nobody ever gets it again.
//!
//! **Solution.** A lock in the memory that the processes share. [`Protocol::Inherit`] is the C library's robust,
//! process-shared mutex with priority inheritance: the owner runs with the priority of the most urgent waiter, and the kernel
//! tells the next owner if the last one died. [`Protocol::None`] is the same without inheritance, [`Protocol::Fifo`] a ticket
//! lock: they are there to show the difference.
//!
//! | protocol | who is next | an owner that is preempted | an owner that dies |
//! |---|---|---|---|
//! | `inherit` | the most urgent | runs at the waiter's priority | told to the next |
//! | `none` | the most urgent, or who comes just then | keeps everybody waiting | told to the next |
//! | `fifo` | the first that came | keeps everybody waiting | found out by the next, within 20 ms |
//!
//! **Real-time behaviour.** Without contention no system call (`fifo` one, when it is given back with others waiting). With
//! contention the thread sleeps in the kernel.

#![expect(unsafe_code, reason = "the C library's mutex, whether a thread exists; says what can be shared")]

use std::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hairspring_machine::Nanos;

use crate::calls;
use crate::device::DeviceError;
use crate::shared::{Page, Zeroed};

/// Who waits for whom, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Nothing is done about priorities.
    None,
    /// In the order of coming.
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

/// What is in the first word of a lock's file that is ready: the format and its version.
const MAGIC: u64 = u64::from_le_bytes(*b"hsLockF1");
/// Threads that can wait in order at once; later ones wait outside.
const PLACES: usize = 64;
/// How often a waiting thread looks whether the owner still lives.
const LOOK: Nanos = Nanos::from_millis(20);
/// After so many looks in which nobody has said whose turn it is, that one died before it could.
const LOOKS: u32 = 10;

/// The lock's memory. All zero is a lock that is not made yet.
#[repr(C)]
pub(crate) struct Words {
    /// For [`Protocol::None`] and [`Protocol::Inherit`].
    mutex: UnsafeCell<MaybeUninit<libc::pthread_mutex_t>>,
    /// For [`Protocol::Fifo`]: the next ticket, and the one whose turn it is.
    next: AtomicU32,
    turn: AtomicU32,
    /// The threads that hold the tickets, by ticket modulo [`PLACES`].
    holders: [AtomicU32; PLACES],
}

// SAFETY: atomics; and the mutex, which is looked into only by the C library and the kernel, in its cell.
unsafe impl Zeroed for Words {}
// SAFETY: the mutex is made for being used by many threads at once, and so are atomics.
unsafe impl Sync for Words {}

impl Words {
    /// Makes the lock, in memory that nobody uses yet.
    pub(crate) fn make(&self, protocol: Protocol) -> Result<(), DeviceError> {
        self.next.store(0, Ordering::Relaxed);
        // Release: pairs with the Acquire of the first turn that is seen.
        self.turn.store(0, Ordering::Release);
        let inheritance = match protocol {
            Protocol::Inherit => libc::PTHREAD_PRIO_INHERIT,
            Protocol::None | Protocol::Fifo => libc::PTHREAD_PRIO_NONE,
        };
        let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let made = attributes.as_mut_ptr();
        // SAFETY: the attributes are initialised by the first call before the others use them, live until the last one, and are
        // destroyed once. The mutex's memory is ours alone until it is made: the caller's word.
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

/// What has a lock that processes share.
pub trait Lockable {
    /// Its lock.
    fn lock(&self) -> DeviceLock<'_>;
}

/// A lock in a file of its own, for devices that have no memory of ours.
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
    /// The file cannot be opened, or is something else.
    pub fn open(path: &Path, protocol: Protocol) -> Result<Self, DeviceError> {
        let page = Page::of(path, size_of::<Shared>()).map_err(|error| DeviceError {
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
        let shared: &Shared = page.as_ref();
        page.made_once(&shared.magic, MAGIC, path, || {
            // Relaxed: published when it is made.
            shared.protocol.store(protocol as u32, Ordering::Relaxed);
            shared.lock.make(protocol)
        })?;
        Ok(Self(page))
    }
}

impl Lockable for LockFile {
    fn lock(&self) -> DeviceLock<'_> {
        let shared: &Shared = self.0.as_ref();
        DeviceLock::of(&shared.lock, &shared.protocol)
    }
}

/// The lock.
#[derive(Clone, Copy)]
pub struct DeviceLock<'m> {
    words: &'m Words,
    protocol: Protocol,
}

impl fmt::Debug for DeviceLock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceLock").field("protocol", &self.protocol).finish_non_exhaustive()
    }
}

impl<'m> DeviceLock<'m> {
    /// The lock of these words, made with the protocol that was written beside them.
    pub(crate) fn of(words: &'m Words, protocol: &AtomicU32) -> Self {
        const NONE: u32 = Protocol::None as u32;
        const FIFO: u32 = Protocol::Fifo as u32;
        let protocol = match protocol.load(Ordering::Relaxed) {
            NONE => Protocol::None,
            FIFO => Protocol::Fifo,
            _ => Protocol::Inherit,
        };
        Self { words, protocol }
    }

    /// Its protocol.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Waits for the lock. It is given back when the guard is dropped.
    ///
    /// # Errors
    /// The thread has it already; the C library refuses.
    pub fn lock(&self) -> Result<Guard<'m>, DeviceError> {
        let owner_died = match self.protocol {
            Protocol::Fifo if self.is_own_turn() => return Err(refused("lock a device", libc::EDEADLK)),
            Protocol::Fifo => self.wait_in_order(),
            Protocol::None | Protocol::Inherit => self.wait_for_mutex()?,
        };
        Ok(Guard { lock: *self, owner_died, not_send: std::marker::PhantomData })
    }

    fn wait_for_mutex(&self) -> Result<bool, DeviceError> {
        let mutex = self.words.mutex.get().cast();
        // SAFETY: the mutex was made before the lock was handed out, and lies in memory that lives as long as `'m`.
        match unsafe { libc::pthread_mutex_lock(mutex) } {
            0 => Ok(false),
            libc::EOWNERDEAD => {
                // SAFETY: as above, and this thread owns it now.
                let result = unsafe { libc::pthread_mutex_consistent(mutex) };
                if result == 0 { Ok(true) } else { Err(refused("repair the lock of a device", result)) }
            }
            error => Err(refused("lock a device", error)),
        }
    }

    /// Whether this thread has it, in order of coming.
    fn is_own_turn(&self) -> bool {
        let turn = self.words.turn.load(Ordering::Relaxed);
        self.words.holders[turn as usize % PLACES].load(Ordering::Relaxed) == own_thread()
    }

    /// Takes a ticket and waits for its turn; whether one before it died.
    fn wait_in_order(&self) -> bool {
        let words = self.words;
        let mut somebody_died = false;
        'ticket: loop {
            let mine = words.next.fetch_add(1, Ordering::Relaxed);
            // A place is free when the holder of the ticket that had it before is done.
            while mine.wrapping_sub(words.turn.load(Ordering::Acquire)) >= PLACES as u32 {
                somebody_died |= self.pass_the_dead(false);
                std::thread::yield_now();
            }
            words.holders[mine as usize % PLACES].store(own_thread(), Ordering::Release);
            let mut looks = 0;
            loop {
                // Acquire: pairs with the Release of who gave it back.
                let turn = words.turn.load(Ordering::Acquire);
                if turn == mine {
                    return somebody_died;
                }
                if mine.wrapping_sub(turn) > u32::MAX / 2 {
                    // It was taken for dead before it had written who it is.
                    continue 'ticket;
                }
                if calls::wait_while(&words.turn, turn, LOOK) {
                    looks = 0;
                } else {
                    looks += 1;
                    somebody_died |= self.pass_the_dead(looks > LOOKS);
                }
            }
        }
    }

    /// Lets the next one have its turn if the thread whose turn it is no longer exists, or `also_nobody` has said who it is;
    /// whether that was so.
    fn pass_the_dead(&self, also_nobody: bool) -> bool {
        let turn = self.words.turn.load(Ordering::Acquire);
        let place = &self.words.holders[turn as usize % PLACES];
        let holder = place.load(Ordering::Acquire);
        if (holder == 0 && !also_nobody) || (holder != 0 && exists(holder)) {
            return false;
        }
        // First the place, or else the next one to have it could be taken for the dead.
        let _ = place.compare_exchange(holder, 0, Ordering::Relaxed, Ordering::Relaxed);
        let passed = self.words.turn.compare_exchange(turn, turn.wrapping_add(1), Ordering::AcqRel, Ordering::Relaxed);
        if passed.is_ok() {
            calls::wake_all(&self.words.turn);
        }
        passed.is_ok()
    }

    fn give_back(&self) {
        match self.protocol {
            Protocol::Fifo => {
                let turn = self.words.turn.load(Ordering::Relaxed);
                self.words.holders[turn as usize % PLACES].store(0, Ordering::Relaxed);
                // Release: what was done under the lock is seen by the next one.
                self.words.turn.store(turn.wrapping_add(1), Ordering::Release);
                if self.words.next.load(Ordering::Relaxed) != turn.wrapping_add(1) {
                    calls::wake_all(&self.words.turn);
                }
            }
            Protocol::None | Protocol::Inherit => {
                // SAFETY: this thread owns it: the guard is not `Send`, and exists once.
                unsafe { libc::pthread_mutex_unlock(self.words.mutex.get().cast()) };
            }
        }
    }
}

/// Has the lock until it is dropped. Stays in its thread.
#[derive(Debug)]
pub struct Guard<'m> {
    lock: DeviceLock<'m>,
    owner_died: bool,
    not_send: std::marker::PhantomData<*const ()>,
}

impl Guard<'_> {
    /// Whether an owner died with it: the device is in a state that nobody knows, and is to be initialised.
    pub fn owner_died(&self) -> bool {
        self.owner_died
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.lock.give_back();
    }
}

fn refused(attempted: &str, error: i32) -> DeviceError {
    let remedy = match error {
        libc::EDEADLK => "it has the lock already: give it back first",
        libc::ENOTRECOVERABLE => "remove the file of the board, and start all its users again",
        _ => "see the manual page of pthread_mutex_lock",
    };
    DeviceError { attempted: attempted.to_owned(), said: std::io::Error::from_raw_os_error(error).to_string(), remedy }
}

/// The kernel's number of this thread.
fn own_thread() -> u32 {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::gettid() }.unsigned_abs()
}

/// Whether a thread of this number exists. A number that was given to another thread since makes a dead one look alive.
fn exists(thread: u32) -> bool {
    // SAFETY: signal 0 is none; it is only asked whether it could be sent.
    let result = unsafe { libc::syscall(libc::SYS_tkill, libc::c_long::from(thread), 0) };
    result == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
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
