//! The real-time class of Windows, which belongs to the process and is held for those of its threads that have a
//! real-time policy: the first raises the process, the last takes it back. Pure, so that it is tested on every system.
//!
//! A thread that did not ask for it sees, and restores, what the process had before. A change that fails half way is
//! undone. A thread that ends gives the class up.
//!
//! Changes are made one at a time, under a lock. A look takes no lock, because a long delay looks.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `REALTIME_PRIORITY_CLASS`.
const REAL_TIME: u32 = 0x100;

/// The calls to the system: the class of the process and the level of the calling thread.
pub(super) trait System {
    fn class_and_level(&self) -> (u32, i32);
    fn set_class(&self, class: u32) -> Result<(), String>;
    fn set_level(&self, level: i32) -> Result<(), String>;

    /// Sets both, even if setting the class fails.
    fn set(&self, class: u32, level: i32) -> Result<(), String> {
        let class = self.set_class(class);
        class.and(self.set_level(level))
    }
}

/// The holders of the class, and the state to restore.
pub(super) struct Class {
    change: Mutex<()>,
    /// Below, the threads that hold it or are about to. Above, how often that has changed.
    threads: AtomicU64,
    /// The class before the first of them.
    before: AtomicU32,
}

/// One more in the upper half of `Class::threads`.
const CHANGED: u64 = 1 << 32;

impl Class {
    pub(super) const fn new() -> Self {
        Self { change: Mutex::new(()), threads: AtomicU64::new(0), before: AtomicU32::new(0) }
    }

    /// Class and level of a thread, without what only other threads have asked for.
    pub(super) fn of(&self, system: &impl System, holds: &Cell<bool>) -> (u32, i32) {
        loop {
            // Acquire: pairs with the Release in `count`, which comes after the store of `before`.
            let threads = self.threads.load(Ordering::Acquire);
            let (class, level) = system.class_and_level();
            let before = self.before.load(Ordering::Relaxed);
            // Relaxed: the system's call lies between the two, and the changes are made around calls of it.
            if holds.get() || class != REAL_TIME {
                return (class, level);
            }
            if self.threads.load(Ordering::Relaxed) == threads {
                return (if !threads.is_multiple_of(CHANGED) { before } else { class }, level);
            }
        }
    }

    /// Makes the thread a holder of the class, at `level`.
    pub(super) fn raise(&self, system: &impl System, holds: &Cell<bool>, level: i32) -> Result<(), String> {
        let _alone = self.alone();
        let before = system.class_and_level();
        let others = self.others(holds);
        if others == 0 && !holds.get() {
            // Relaxed: the Release in `count` follows.
            self.before.store(before.0, Ordering::Relaxed);
        }
        self.count(others + 1);
        let raised = system.set_class(REAL_TIME).and_then(|()| {
            // Without the right to it Windows grants the next lower class and reports no error.
            if system.class_and_level().0 == REAL_TIME {
                system.set_level(level)
            } else {
                Err("the real-time class was not granted".to_owned())
            }
        });
        if let Err(said) = raised {
            let kept = system.set(before.0, before.1);
            self.count(others + u64::from(holds.get()));
            return Err(match kept {
                Ok(()) => said,
                Err(kept) => format!("{said}; and to go back: {kept}"),
            });
        }
        holds.set(true);
        Ok(())
    }

    /// Gives up the class, if the thread holds it: sets `class` unless other threads still need the real-time class.
    pub(super) fn lower(&self, system: &impl System, holds: &Cell<bool>, class: u32, level: i32) -> Result<(), String> {
        let _alone = self.alone();
        let others = self.others(holds);
        system.set(if others > 0 { REAL_TIME } else { class }, level)?;
        holds.set(false);
        self.count(others);
        Ok(())
    }

    /// Gives up the class for a thread that is ending.
    pub(super) fn leave(&self, system: &impl System, holds: &Cell<bool>) {
        if holds.get() {
            // Relaxed: stored by this thread or by those whose changes under the lock this thread's own followed. A
            // refusal of the level is the ending thread's; a refusal of the class is reported to the next thread that
            // changes it.
            let _ = self.lower(system, holds, self.before.load(Ordering::Relaxed), 0);
        }
    }

    fn alone(&self) -> MutexGuard<'_, ()> {
        self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The other threads that hold it. Under the lock.
    fn others(&self, holds: &Cell<bool>) -> u64 {
        // Relaxed: stored under the lock only.
        self.threads.load(Ordering::Relaxed) % CHANGED - u64::from(holds.get())
    }

    /// Notes how many hold it. Under the lock.
    fn count(&self, threads: u64) {
        let changes = self.threads.load(Ordering::Relaxed) / CHANGED;
        // Release: pairs with the Acquire in `of`. After as many changes as there are numbers it begins anew.
        self.threads.store(changes.wrapping_add(1).wrapping_mul(CHANGED) + threads, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NORMAL: u32 = 0x20;
    const HIGH: u32 = 0x80;

    struct Process {
        class: Cell<u32>,
        administrator: bool,
        held: Class,
    }

    /// A thread of a process, with the limits of Windows.
    struct Thread<'p> {
        process: &'p Process,
        level: Cell<i32>,
        holds: Cell<bool>,
    }

    impl System for Thread<'_> {
        fn class_and_level(&self) -> (u32, i32) {
            (self.process.class.get(), self.level.get())
        }

        fn set_class(&self, class: u32) -> Result<(), String> {
            let granted = if class == REAL_TIME && !self.process.administrator { HIGH } else { class };
            self.process.class.set(granted);
            Ok(())
        }

        fn set_level(&self, level: i32) -> Result<(), String> {
            let most = if self.process.class.get() == REAL_TIME { 6 } else { 2 };
            if !(-7..=most).contains(&level) && level.abs() != 15 {
                return Err("the parameter is incorrect".to_owned());
            }
            self.level.set(level);
            Ok(())
        }
    }

    impl Process {
        fn new(administrator: bool, class: u32) -> Self {
            Self { class: Cell::new(class), administrator, held: Class::new() }
        }

        fn thread(&self) -> Thread<'_> {
            Thread { process: self, level: Cell::new(0), holds: Cell::new(false) }
        }
    }

    impl Thread<'_> {
        fn seen(&self) -> (u32, i32) {
            self.process.held.of(self, &self.holds)
        }

        fn raise(&self, level: i32) -> Result<(), String> {
            self.process.held.raise(self, &self.holds, level)
        }

        fn back_to(&self, (class, level): (u32, i32)) {
            self.process.held.lower(self, &self.holds, class, level).expect("never refused");
        }
    }

    #[test]
    fn what_is_refused_leaves_the_process_as_it_was() {
        // A user without administrator rights gets HIGH without an error, and there a level above 2 is refused.
        for (administrator, level) in [(false, 4), (false, 0), (true, 9)] {
            let process = Process::new(administrator, NORMAL);
            let thread = process.thread();
            assert!(thread.raise(level).is_err());
            assert_eq!((process.class.get(), thread.level.get(), thread.holds.get()), (NORMAL, 0, false));
            assert_eq!(thread.seen(), (NORMAL, 0));
        }
    }

    #[test]
    fn the_class_goes_with_the_last_thread_that_asked_for_it_in_any_order() {
        for class in [NORMAL, HIGH] {
            for first_goes_first in [true, false] {
                let process = Process::new(true, class);
                let (first, second) = (process.thread(), process.thread());
                let first_before = first.seen();
                first.raise(4).expect("granted");
                // One that never asked is lifted with the process; that is not its own policy, nor what it goes back
                // to.
                let second_before = second.seen();
                assert_eq!(second_before, (class, 0));
                second.raise(3).expect("granted");
                second.raise(2).expect("granted again");
                assert_eq!((first.seen(), second.seen()), ((REAL_TIME, 4), (REAL_TIME, 2)));
                let (one, other) = ((&first, first_before), (&second, second_before));
                let (one, other) = if first_goes_first { (one, other) } else { (other, one) };
                one.0.back_to(one.1);
                assert_eq!((process.class.get(), one.0.seen()), (REAL_TIME, (class, 0)));
                other.0.back_to(other.1);
                assert_eq!((process.class.get(), other.0.seen()), (class, (class, 0)));
            }
        }
    }

    #[test]
    fn a_thread_that_ends_with_the_class_gives_it_up() {
        // It was counted for ever, and the process stayed in the class.
        for class in [NORMAL, HIGH] {
            let process = Process::new(true, class);
            let (first, second) = (process.thread(), process.thread());
            first.raise(4).expect("granted");
            second.raise(3).expect("granted");
            process.held.leave(&first, &first.holds);
            assert_eq!((process.class.get(), second.seen()), (REAL_TIME, (REAL_TIME, 3)));
            process.held.leave(&second, &second.holds);
            process.held.leave(&second, &second.holds);
            assert_eq!((process.class.get(), process.thread().seen()), (class, (class, 0)));
        }
    }

    #[test]
    fn a_process_that_was_started_in_the_class_is_seen_in_it() {
        let process = Process::new(true, REAL_TIME);
        assert_eq!(process.thread().seen(), (REAL_TIME, 0));
    }
}
