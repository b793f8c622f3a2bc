//! [`CarrierCell`]: state of the engine that the carrier thread borrows between two switches.
//!
//! Problem: any task that makes a call changes the engine's state, on its own stack. A `RefCell` would count borrows at
//! each call.
//!
//! Solution: a cell that trusts its callers in release builds and checks them in debug builds, in which all tests run.
//!
//! Conditions: the engine is neither `Send` nor `Sync`, so only the carrier thread is here. A borrow ends before the
//! next switch of stacks, before code of the program runs that could make a call, and before the same cell is borrowed
//! again.
#![expect(unsafe_code, reason = "a cell that is borrowed between switches")]

#[cfg(debug_assertions)]
use std::cell::Cell;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

/// A value of the engine. One borrow at a time.
#[derive(Default)]
pub(super) struct CarrierCell<T> {
    value: UnsafeCell<T>,
    #[cfg(debug_assertions)]
    borrowed: Cell<bool>,
}

/// The value, borrowed.
pub(super) struct Borrowed<'c, T> {
    cell: &'c CarrierCell<T>,
}

impl<T> CarrierCell<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            value: UnsafeCell::new(value),
            #[cfg(debug_assertions)]
            borrowed: Cell::new(false),
        }
    }

    /// Borrows the value, on the conditions above.
    ///
    /// # Panics
    /// In debug builds, if it is borrowed already.
    #[inline(always)]
    pub(super) fn borrow(&self) -> Borrowed<'_, T> {
        #[cfg(debug_assertions)]
        assert!(!self.borrowed.replace(true), "a cell of the engine is borrowed twice at once");
        Borrowed { cell: self }
    }

    /// The value of an engine without other references.
    pub(super) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// The address of the value, for a borrow across a switch or for a signal handler.
    #[inline(always)]
    pub(super) fn as_ptr(&self) -> *mut T {
        self.value.get()
    }
}

impl<T> Deref for Borrowed<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this is the only borrow of the cell: the callers in this folder keep to the conditions above.
        unsafe { &*self.cell.value.get() }
    }
}

impl<T> DerefMut for Borrowed<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and this borrow is itself borrowed mutably.
        unsafe { &mut *self.cell.value.get() }
    }
}

#[cfg(debug_assertions)]
impl<T> Drop for Borrowed<'_, T> {
    fn drop(&mut self) {
        self.cell.borrowed.set(false);
    }
}
