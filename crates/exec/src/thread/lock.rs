//! The one lock of the thread back-end: a mutex whose holder inherits the priority of its most urgent waiter.
//!
//! The mutexes of std have no priority inheritance: if a task is preempted while it holds one, a more urgent task waits
//! until all tasks in between are done. This is `pthread_mutex` with `PTHREAD_PRIO_INHERIT`; uncontended it costs two
//! compare-exchanges and no system call. On request it measures the longest time it was held.
#![expect(unsafe_code, reason = "pthread_mutex, and the value it guards")]

use std::cell::UnsafeCell;
use std::io::Error;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

use hairspring_machine::Nanos;

use crate::system::clock::monotonic;

struct Guarded<T> {
    value: T,
    /// When the lock was taken, in nanoseconds of the monotonic clock; kept only if the lock is measured.
    since_ns: u64,
    longest_ns: u64,
}

pub(super) struct Lock<T> {
    /// Boxed: a pthread_mutex must not move once it is initialised.
    mutex: Box<UnsafeCell<libc::pthread_mutex_t>>,
    guarded: UnsafeCell<Guarded<T>>,
    measured: bool,
}

// SAFETY: the value is reached only through a `Held`, and the mutex gives out one at a time.
unsafe impl<T: Send> Sync for Lock<T> {}
// SAFETY: the mutex lives in a box, so moving the Lock moves neither it nor anything that points to it; the value is
// Send.
unsafe impl<T: Send> Send for Lock<T> {}

impl<T> Lock<T> {
    /// A free lock. If it is `measured`, each hold costs two readings of the clock.
    pub(super) fn new(value: T, measured: bool) -> Result<Self, Error> {
        // SAFETY: all zeros is a valid pthread_mutex_t to initialise, and it is initialised before another thread sees
        // it. The attributes live until they are destroyed here.
        let mutex = unsafe {
            let mutex = Box::new(UnsafeCell::new(MaybeUninit::<libc::pthread_mutex_t>::zeroed().assume_init()));
            let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::zeroed().assume_init();
            check(libc::pthread_mutexattr_init(&raw mut attributes))?;
            let made = check(libc::pthread_mutexattr_setprotocol(&raw mut attributes, libc::PTHREAD_PRIO_INHERIT))
                .and_then(|()| check(libc::pthread_mutex_init(mutex.get(), &raw const attributes)));
            libc::pthread_mutexattr_destroy(&raw mut attributes);
            made?;
            mutex
        };
        Ok(Self { mutex, guarded: UnsafeCell::new(Guarded { value, since_ns: 0, longest_ns: 0 }), measured })
    }

    /// Takes the lock. Blocks while another thread holds it; that thread then runs at least at the caller's priority.
    ///
    /// # Panics
    /// If the system refuses, for instance because the calling thread holds the lock already.
    #[inline]
    pub(super) fn hold(&self) -> Held<'_, T> {
        // SAFETY: initialised in `new` and not moved since.
        let code = unsafe { libc::pthread_mutex_lock(self.mutex.get()) };
        assert_eq!(code, 0, "the kernel lock was refused");
        if self.measured {
            // SAFETY: this thread holds the mutex.
            unsafe { (*self.guarded.get()).since_ns = monotonic().as_nanos() };
        }
        Held { lock: self, here: PhantomData }
    }
}

impl<T> Drop for Lock<T> {
    fn drop(&mut self) {
        // SAFETY: no thread holds it: a `Held` borrows the Lock, and the last holder has left the mutex before that
        // borrow ended.
        unsafe { libc::pthread_mutex_destroy(self.mutex.get()) };
    }
}

/// The lock, held by this thread.
pub(super) struct Held<'l, T> {
    lock: &'l Lock<T>,
    /// The mutex belongs to the thread that took it.
    here: PhantomData<*const ()>,
}

impl<T> Held<'_, T> {
    /// The longest hold since the last call, if the lock is measured.
    pub(super) fn take_longest(&mut self) -> Option<Nanos> {
        // SAFETY: this thread holds the mutex.
        let guarded = unsafe { &mut *self.lock.guarded.get() };
        let longest = std::mem::take(&mut guarded.longest_ns);
        self.lock.measured.then(|| Nanos::new(i64::try_from(longest).unwrap_or(i64::MAX)))
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this thread holds the mutex, and the value is borrowed no longer than the guard.
        unsafe { &(*self.lock.guarded.get()).value }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the mutex, and the guard is borrowed mutably.
        unsafe { &mut (*self.lock.guarded.get()).value }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this thread took the mutex when the guard was made and gives it back once.
        unsafe {
            if self.lock.measured {
                let guarded = &mut *self.lock.guarded.get();
                let held_ns = monotonic().as_nanos().saturating_sub(guarded.since_ns);
                guarded.longest_ns = guarded.longest_ns.max(held_ns);
            }
            libc::pthread_mutex_unlock(self.lock.mutex.get());
        }
    }
}

fn check(code: libc::c_int) -> Result<(), Error> {
    if code == 0 { Ok(()) } else { Err(Error::from_raw_os_error(code)) }
}
