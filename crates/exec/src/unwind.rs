//! Ends a task from the inside: unwinds its stack up to the first frame, so that all its values are dropped.
//!
//! A kill and `end()` unwind as panics that no hook reports. Their payload distinguishes them from a panic of the
//! task's own code.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use hairspring_exec_core::Ending;

use crate::engine::{Ended, Unusual};

/// The payload of an unwinding that is not a panic.
struct Unwinding(Ending);

/// Unwinds a task that has been killed.
#[cold]
pub(crate) fn unwind_killed() -> ! {
    resume_unwind(Box::new(Unwinding(Ending::Killed)))
}

/// Unwinds a task that ends its run from deeper in its code.
#[cold]
pub(crate) fn unwind_ended() -> ! {
    resume_unwind(Box::new(Unwinding(Ending::Returned)))
}

/// Runs a task's body once: how it ended, and the message if it panicked.
#[inline(always)]
pub(crate) fn run_to_end(body: impl FnOnce()) -> Ended {
    catch_unwind(AssertUnwindSafe(body)).map_err(explain)
}

#[cold]
fn explain(payload: Box<dyn Any + Send>) -> Box<Unusual> {
    Box::new(match payload.downcast::<Unwinding>() {
        Ok(unwinding) => Unusual { how: unwinding.0, text: None },
        Err(payload) => Unusual { how: Ending::Panicked, text: Some(panic_text(payload.as_ref())) },
    })
}

/// The message of a panic.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a text".to_owned())
}
