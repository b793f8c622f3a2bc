//! Pools: buffers that are all made in advance, taken, passed on in messages, and given back.

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_exec_core::{By, Call, PoolId};

use crate::back_end::BackEnd;

/// The memory of a pool, shared by all its handles and buffers.
struct Cells<T> {
    contents: Box<[UnsafeCell<T>]>,
    /// Which buffers are on their way in a message.
    parcelled: Box<[AtomicBool]>,
}

#[expect(unsafe_code, reason = "a buffer is owned by the task to which the core gave it, on any thread")]
// SAFETY: a cell is reached only through its one Buffer: the core gives a buffer out once until it is freed, and a
// parcel can be opened once.
unsafe impl<T: Send> Sync for Cells<T> {}

/// A pool of buffers of type `T`, all made in advance.
pub struct Pool<T: Send + 'static> {
    pub(crate) pool: PoolId,
    /// The executive that made it.
    pub(crate) home: u32,
    cells: Arc<Cells<T>>,
}

impl<T: Send + 'static> Clone for Pool<T> {
    fn clone(&self) -> Self {
        Self { pool: self.pool, home: self.home, cells: Arc::clone(&self.cells) }
    }
}

impl<T: Send + 'static> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pool.fmt(f)
    }
}

impl<T: Send + 'static> Pool<T> {
    pub(crate) fn new(pool: PoolId, home: u32, contents: impl Iterator<Item = T>) -> Self {
        let contents: Box<[_]> = contents.map(UnsafeCell::new).collect();
        let parcelled = contents.iter().map(|_| AtomicBool::new(false)).collect();
        Self { pool, home, cells: Arc::new(Cells { contents, parcelled }) }
    }

    /// How many buffers it has, free or not.
    pub fn buffers(&self) -> usize {
        self.cells.contents.len()
    }

    /// Takes a parcel's buffer; false if it is not on its way (any more).
    pub(crate) fn unpack(&self, parcel: Parcel) -> bool {
        // AcqRel: Acquire pairs with the Release in `into_parcel`, so that the opener sees what was written.
        let packed = self.cells.parcelled.get(usize::from(parcel.number));
        parcel.pool == self.pool && packed.is_some_and(|packed| packed.swap(false, Ordering::AcqRel))
    }

    pub(crate) fn buffer<'k>(&self, back_end: BackEnd<'k>, by: By, number: u32) -> Buffer<'k, T> {
        Buffer { back_end, by, pool: self.clone(), number: number as u16 }
    }
}

/// A buffer in use; goes back to its pool when it is dropped. Its contents are what the last user left.
pub struct Buffer<'k, T: Send + 'static> {
    back_end: BackEnd<'k>,
    by: By,
    pool: Pool<T>,
    number: u16,
}

/// A buffer on its way to another task, as the contents of a message. Opened once; one that is never opened stays in
/// use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parcel {
    pub(crate) pool: PoolId,
    pub(crate) number: u16,
}

impl<T: Send + 'static> Buffer<'_, T> {
    /// Packs it up to be sent in a message; the receiver opens it.
    pub fn into_parcel(self) -> Parcel {
        let parcel = Parcel { pool: self.pool.pool, number: self.number };
        // Release pairs with the Acquire in `unpack`.
        self.pool.cells.parcelled[usize::from(self.number)].store(true, Ordering::Release);
        let mut this = std::mem::ManuallyDrop::new(self);
        #[expect(unsafe_code, reason = "takes the handle out of a buffer that is not dropped")]
        // SAFETY: `this` is never used or dropped again; its Arc is dropped here instead.
        unsafe {
            std::ptr::drop_in_place(&raw mut this.pool);
        }
        parcel
    }
}

impl<T: Send + 'static> Deref for Buffer<'_, T> {
    type Target = T;

    #[expect(unsafe_code, reason = "reads a cell of the pool")]
    fn deref(&self) -> &T {
        // SAFETY: this Buffer is the only way to the cell until it is dropped.
        unsafe { &*self.pool.cells.contents[usize::from(self.number)].get() }
    }
}

impl<T: Send + 'static> DerefMut for Buffer<'_, T> {
    #[expect(unsafe_code, reason = "writes a cell of the pool")]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this Buffer is the only way to the cell, and it is borrowed mutably.
        unsafe { &mut *self.pool.cells.contents[usize::from(self.number)].get() }
    }
}

impl<T: Send + 'static> Drop for Buffer<'_, T> {
    fn drop(&mut self) {
        // It was given to us and is given back once: nothing to fail.
        let _ = self.back_end.call(self.by, Call::FreeBuffer { pool: self.pool.pool, buffer: self.number });
    }
}
