//! The atomics and the futex of the lock-free parts: the machine's, or loom's when its model checks them. Also
//! [`whole`], a lock that ignores poisoning.

#[cfg(not(loom))]
mod chosen {
    pub(crate) use crate::system::futex::{sleep_while, wake_all, wake_one};
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

#[cfg(loom)]
mod chosen {
    //! A futex of loom's parts: sleeping is waiting on a condition variable, once the word has been looked at under its
    //! lock. There is one for all words, and every wake ends every sleep, so a sleep can end spuriously, as with the
    //! kernel's futex. A deadline has always passed: a sleep with a deadline ends at once, at any point of the other
    //! threads' work.
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    use hairspring_exec_core::Moment;
    use loom::sync::{Condvar, Mutex};

    loom::lazy_static! {
        static ref BED: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
    }

    pub(crate) fn sleep_while(word: &AtomicU32, expected: u32, deadline: Option<Moment>) {
        if deadline.is_some() {
            loom::thread::yield_now();
            return;
        }
        let guard = BED.0.lock().expect("loom's locks are not poisoned");
        if word.load(Ordering::SeqCst) == expected {
            drop(BED.1.wait(guard));
        }
    }

    pub(crate) fn wake_all(_word: &AtomicU32) {
        let _guard = BED.0.lock().expect("loom's locks are not poisoned");
        BED.1.notify_all();
    }

    pub(crate) use wake_all as wake_one;
}

pub(crate) use chosen::*;

/// Locks a mutex and ignores poisoning: its value is always replaced as a whole.
pub(crate) fn whole<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
