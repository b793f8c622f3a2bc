//! [`Part`]: what a handle of the executive's objects owns: queues, pipes, broadcasts, mutexes and the others that are
//! no ids.
//!
//! ```text
//!   handle of C ─► kind and state of the handle ─► executive of the object = executive of the caller ─► the call of `hairspring_exec`
//! ```
//!
//! A part is made before or between runs by the thread of its executive, or by one of its tasks, used by the
//! executive's tasks and procedures, and deleted by any of them. The memory of its handle is freed with the executive,
//! because a task that waited may still look at it. Every other use has a code: HS_E_HANDLE for another kind and for
//! another executive, HS_E_FREED after the end, HS_E_CALLER from outside.

#![expect(unsafe_code, reason = "addresses of handles")]

pub mod queue;

pub mod mutex;

pub mod pipe;

pub mod broadcast;

pub mod heap;

pub mod list;

pub mod selector;

pub mod ticker;

pub mod day_timer;

use std::ffi::c_int;

use hairspring_exec::{CallStatus, TaskCtx};

use super::context::{Context, Home, Site, create, current, in_task, serve_own};
use super::executive::hs_exec;
use super::outcome::{foreign, not_here};
use super::result::Results;
use crate::error::{Failure, door};
use crate::handle::{Alone, Kind, free, make, peek};
use crate::pointer::Place;

/// An object of an executive.
pub(crate) struct Part<T> {
    pub(in crate::exec) object: T,
    home: u32,
}

/// Makes an object of an executive, and a handle of it.
pub(in crate::exec) fn make_part<K: Kind<Owned = Part<T>>, T>(
    exec: *mut hs_exec,
    handle: *mut *mut K,
    make_object: impl FnOnce(Site<'_>, Home) -> Result<T, Failure>,
) -> c_int {
    door(|| {
        let place = Place::new(handle)?;
        create(exec, |site, here| {
            let object = make_object(site, here)?;
            let made = make::<K>(Part { object, home: here.home });
            keep(site.results(), made);
            place.put(made);
            Ok(())
        })
    })
}

/// Frees this handle when the executive of these results goes.
pub(in crate::exec) fn keep<K: Kind>(results: &Results, handle: *mut K) {
    let kept = Address(handle);
    results.keep(Box::new(move || {
        // It fails only if the program freed memory that is not its own.
        let _ = free(kept.pointer());
    }));
}

/// The address of a handle, which any thread may free.
struct Address<K>(*mut K);

// SAFETY: a handle may be freed by any thread, and this is done once, when its executive goes.
unsafe impl<K> Send for Address<K> {}

impl<K> Address<K> {
    /// A method, so that a closure takes the whole of it.
    fn pointer(&self) -> *mut K {
        self.0
    }
}

impl<T> Part<T> {
    /// Whether it is of this executive.
    pub(in crate::exec) fn is_of(&self, home: u32) -> bool {
        self.home == home
    }
}

/// The calling task or procedure, and an object of its executive.
#[inline(always)]
pub(in crate::exec) fn own_part<'c, K: Kind<Owned = Part<T>>, T: Sync>(
    handle: *const K,
) -> Result<(&'c Context, &'c T), c_int> {
    let part = peek(handle).map_err(Failure::tell)?;
    let Some(context) = current() else { return Err(not_here()) };
    if !part.is_of(context.home) {
        return Err(foreign());
    }
    Ok((context, &part.object))
}

/// Makes a call that cannot wait: for tasks and procedures.
#[inline]
pub(in crate::exec) fn in_executive<K: Kind<Owned = Part<T>>, T: Sync>(
    handle: *const K,
    call: impl FnOnce(Site<'_>, &T) -> Result<(), CallStatus>,
) -> c_int {
    match own_part(handle) {
        Ok((context, object)) => context.conclude(call(context.site(), object)),
        Err(code) => code,
    }
}

/// Makes a call that cannot wait: for tasks and procedures, and for the program between runs.
#[inline]
pub(in crate::exec) fn anywhere<K: Kind<Owned = Part<T>>, T: Sync>(
    handle: *const K,
    call: impl Fn(Site<'_>, &T) -> Result<(), CallStatus>,
) -> c_int {
    let part = match peek(handle) {
        Ok(part) => part,
        Err(failure) => return failure.tell(),
    };
    match current() {
        Some(context) if part.is_of(context.home) => context.conclude(call(context.site(), &part.object)),
        Some(_) => foreign(),
        None => serve_own(part.home, &|site| call(site, &part.object)),
    }
}

/// Makes a call for a task.
#[inline]
pub(in crate::exec) fn in_task_of<K: Kind<Owned = Part<T>>, T: Sync>(
    handle: *const K,
    call: impl FnOnce(&TaskCtx<'static>, &Context, &T) -> Result<(), CallStatus>,
) -> c_int {
    let part = match peek(handle) {
        Ok(part) => part,
        Err(failure) => return failure.tell(),
    };
    if current().is_some_and(|context| !part.is_of(context.home)) {
        return foreign();
    }
    in_task(|task, context| call(task, context, &part.object))
}

/// Makes a call for a task that changes the object. HS_E_BUSY while another task makes one.
pub(in crate::exec) fn alone_in_task<K: Kind<Owned = Part<T>>, T>(
    handle: *const K,
    call: impl FnOnce(&TaskCtx<'static>, &mut T) -> Result<(), CallStatus>,
) -> c_int {
    let mut part = match Alone::of(handle) {
        Ok(part) => part,
        Err(failure) => return failure.tell(),
    };
    if current().is_some_and(|context| !part.is_of(context.home)) {
        return foreign();
    }
    in_task(|task, _| call(task, &mut part.object))
}
