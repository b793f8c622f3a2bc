//! [`Users`]: counts the calls that use a handle; also marks exclusive use, and that the handle was freed. It is the
//! only protection of a handle's contents against two threads of C.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, Ordering};

/// One call uses the handle exclusively.
const ALONE: u32 = 1 << 31;
/// The handle has been freed: no call gets it.
const GONE: u32 = 3 << 30;
/// The most calls at a time. Far below `ALONE`, because a refused call also adds itself for a moment.
const MOST: u32 = 1 << 30;

pub(super) struct Users(AtomicU32);

impl Users {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Begins shared use. `false` if the handle is used exclusively or was freed.
    #[inline(always)]
    pub(super) fn share(&self) -> bool {
        // Acquire pairs with the Release in `end_alone`.
        if self.0.fetch_add(1, Ordering::Acquire) < MOST {
            return true;
        }
        // Relaxed: it has read nothing.
        self.0.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// Ends that use.
    #[inline(always)]
    pub(super) fn end_share(&self) {
        // Release pairs with the Acquire of the next thread that is alone.
        self.0.fetch_sub(1, Ordering::Release);
    }

    /// Begins exclusive use. `false` if the handle is in use or was freed.
    #[inline(always)]
    pub(super) fn be_alone(&self) -> bool {
        // Acquire pairs with the Release of the calls before; Relaxed, because a refusal reads nothing of them.
        self.0.compare_exchange(0, ALONE, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// That call is over.
    #[inline(always)]
    pub(super) fn end_alone(&self) {
        // A subtraction, because calls that are being refused may have added themselves for a moment. Release pairs
        // with the Acquire of the next call.
        self.0.fetch_sub(ALONE, Ordering::Release);
    }

    /// Marks the handle as freed. `false` if it is in use or was freed already.
    pub(super) fn go(&self) -> bool {
        // As in `be_alone`.
        self.0.compare_exchange(0, GONE, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

#[cfg(loom)]
#[cfg(test)]
mod loom_checks {
    //! All interleavings of calls that share a handle, are alone with it and free it. The handle owns a cell that loom
    //! watches: loom reports a read beside a write, and a use after the end.

    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::{AtomicU32, Ordering, Users};

    /// Switches between threads that are not forced.
    const PREEMPTIONS: usize = 3;
    /// Value of the cell after the handle's value has been dropped.
    const DROPPED: u32 = u32::MAX;

    struct Handle {
        users: Users,
        /// The cell that loom watches, and how often it was changed or that it was dropped.
        owned: (UnsafeCell<()>, AtomicU32),
    }

    impl Handle {
        fn is_dropped(&self) -> bool {
            self.owned.0.with(|_| self.owned.1.load(Ordering::Relaxed) == DROPPED)
        }

        fn set(&self, value: impl FnOnce(u32) -> u32) {
            let (cell, owned) = &self.owned;
            cell.with_mut(|_| {
                let before = owned.load(Ordering::Relaxed);
                assert_ne!(before, DROPPED, "used after its end");
                owned.store(value(before), Ordering::Relaxed);
            });
        }
    }

    /// A call that reads; whether it was let in.
    fn reads(handle: &Handle) -> bool {
        let shares = handle.users.share();
        if shares {
            assert!(!handle.is_dropped(), "used after its end");
            handle.users.end_share();
        }
        shares
    }

    /// A call that changes something.
    fn changes(handle: &Handle) -> bool {
        let is_alone = handle.users.be_alone();
        if is_alone {
            handle.set(|changes| changes + 1);
            handle.users.end_alone();
        }
        is_alone
    }

    fn frees(handle: &Handle) -> bool {
        let freed = handle.users.go();
        if freed {
            handle.set(|_| DROPPED);
        }
        freed
    }

    /// Two threads and this one make a call each; then the handle can be used as if they had never met, or is gone.
    fn explore(calls: [fn(&Handle) -> bool; 3]) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(PREEMPTIONS);
        model.check(move || {
            let handle = Arc::new(Handle { users: Users::new(), owned: (UnsafeCell::new(()), AtomicU32::new(0)) });
            let [first, second, own] = calls;
            let threads = [first, second].map(|call| {
                let handle = Arc::clone(&handle);
                thread::spawn(move || call(&handle))
            });
            own(&handle);
            for thread in threads {
                thread.join().expect("it does not panic");
            }
            let is_gone = handle.is_dropped();
            let uses = [reads, changes, frees].map(|call| call(&handle));
            assert_eq!(uses, [!is_gone; 3], "a count was left behind");
            assert!(!frees(&handle));
        });
    }

    #[test]
    fn who_reads_and_who_changes_never_meet() {
        explore([reads, changes, reads]);
        explore([reads, changes, changes]);
    }

    #[test]
    fn nobody_uses_what_has_been_freed_and_it_is_dropped_once() {
        explore([reads, frees, changes]);
        explore([reads, frees, frees]);
    }
}
