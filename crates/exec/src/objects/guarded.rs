//! [`Guarded`]: state of a typed service, which only one step of the executive at a time reaches.
//!
//! Problem: a queue of any type needs state beside the core's, and that state must change in one step with the core's:
//! a task that finds a queue empty and then waits must not miss the message that comes between. Solution: the back-end
//! hands out an [`ExclusiveStep`] while no other task or thread can make a call (fibers: on the carrier; threads: under
//! the executive's lock). The state opens for a step of its own executive only.
#![expect(unsafe_code, reason = "a cell that a step of the executive guards")]

use std::cell::UnsafeCell;

use hairspring_exec_core::{Call, Core, Observer};

/// One step of an executive, in which no other caller is. Back-ends make it, one at a time.
#[doc(hidden)]
pub struct ExclusiveStep {
    home: u32,
}

/// The calls that end a step, in order. Only the last may wait.
pub(crate) type Calls = [Option<Call>; 3];

impl ExclusiveStep {
    /// For back-ends: while it lives, no other step of the executive with this number is made.
    #[inline(always)]
    pub(crate) fn new(home: u32) -> Self {
        Self { home }
    }
}

/// A value that opens for steps of its executive, until it is closed for good.
pub(crate) struct Guarded<T> {
    home: u32,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is reached through `open` only, by the thread that has the one step of its executive.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    pub(crate) fn new(home: u32, value: T) -> Self {
        Self { home, value: UnsafeCell::new(Some(value)) }
    }

    /// The value; none in a step of another executive, and when it was closed. Code of the program must not run while
    /// it is open.
    #[inline(always)]
    pub(crate) fn open<'s>(&'s self, step: &'s mut ExclusiveStep) -> Option<&'s mut T> {
        self.slot(step)?.as_mut()
    }

    /// Takes the value out for good, because its object is deleted. The caller drops it after the step: that is code of
    /// the program.
    pub(crate) fn close(&self, step: &mut ExclusiveStep) -> Option<T> {
        self.slot(step)?.take()
    }

    #[inline(always)]
    fn slot<'s>(&'s self, step: &'s mut ExclusiveStep) -> Option<&'s mut Option<T>> {
        // SAFETY: there is one step of an executive at a time, and its borrow opens one value at a time.
        (step.home == self.home).then(|| unsafe { &mut *self.value.get() })
    }
}

/// Whether a call of a step does anything: a signal of a semaphore that no task waits for does not.
pub(crate) fn finds_somebody(core: &Core<impl Observer>, call: Call) -> bool {
    match call {
        Call::SignalSemaphore { semaphore } => core.semaphore(semaphore).is_some_and(|(_, first)| first.is_some()),
        _ => true,
    }
}
