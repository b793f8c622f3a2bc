//! Actions of a program on its threads and processes that bypass the library: cancelling threads, and forking.

#![expect(unsafe_code, reason = "functions of the C library")]

use std::ffi::c_int;

/// Cancellation is not acted on. The number is the same in all C libraries of Linux.
const DISABLE: c_int = 1;

// SAFETY: the C library defines both, with the arguments and results that POSIX gives them.
unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

/// The calling thread is not cancelled as long as this lives; a request waits. A cancelled thread would unwind through
/// frames that cannot be unwound.
pub(crate) struct Uncancelled(c_int);

impl Uncancelled {
    pub(crate) fn new() -> Self {
        let mut before = 0;
        // SAFETY: `before` may be written to. It fails for an unknown state only.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
        Self(before)
    }

    /// For a thread of the library's own: until it ends.
    pub(crate) fn for_good() {
        std::mem::forget(Self::new());
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        let mut own = 0;
        // SAFETY: `own` may be written to; the state is the one that `new` found.
        unsafe { pthread_setcancelstate(self.0, &raw mut own) };
    }
}

/// Calls a function in the child of each fork from now on. It must do what a signal handler may. Returns whether there
/// was memory for it.
pub(crate) fn in_each_child(function: extern "C" fn()) -> bool {
    // SAFETY: the function is one of the library, which is never unloaded.
    unsafe { pthread_atfork(None, None, Some(function)) == 0 }
}
