//! Selectors: one task waits for the first of several objects.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::{c_int, c_void};

use hairspring_exec::{BytePipe, CallStatus, Create, MessageQueue, Selectable, Selector, errors::SelectError};

use super::broadcast::hs_exec_subscriber;
use super::pipe::hs_exec_pipe;
use super::queue::hs_exec_queue;
use super::{Part, alone_in_task, make_part};
use crate::error::{Failure, HS_E_BUSY, HS_E_HANDLE, HS_E_NULL, HS_E_RANGE, say};
use crate::exec::context::{current, limit};
use crate::exec::executive::{hs_exec, hs_exec_message};
use crate::exec::outcome::{failure, foreign, negative, not_here};
use crate::handle::{Alone, Kind, find, look, peek};
use crate::pointer::{Place, list};

/// The most objects of one wait.
pub const HS_EXEC_MOST_SELECTED: usize = 16;

/// Waits for the first of several objects. Lives as long as its executive; one task at a time uses it.
pub struct hs_exec_selector(());

impl Kind for hs_exec_selector {
    type Owned = Part<Selector>;
    const WORD: u64 = u64::from_le_bytes(*b"execsele");
    const NAME: &'static str = "selector";
    const GOES_AT_ONCE: bool = false;
}

/// An object of a selection, as long as the wait lasts.
enum Selected<'a> {
    Queue(&'a Part<MessageQueue<hs_exec_message>>),
    Pipe(&'a Part<BytePipe>),
    /// Its place among the messages must not change meanwhile.
    Subscriber(Alone<'a, hs_exec_subscriber>),
}

impl<'a> Selected<'a> {
    /// The object at an address, by the word that its kind begins with.
    fn at(object: *const c_void) -> Result<Self, Failure> {
        if look(object.cast::<hs_exec_queue>()).is_ok() {
            return peek(object.cast::<hs_exec_queue>()).map(Self::Queue);
        }
        if look(object.cast::<hs_exec_pipe>()).is_ok() {
            return peek(object.cast::<hs_exec_pipe>()).map(Self::Pipe);
        }
        match look(object.cast::<hs_exec_subscriber>()) {
            Ok(_) => Alone::of(object.cast::<hs_exec_subscriber>()).map(Self::Subscriber),
            Err(HS_E_HANDLE) => Err(Failure::told(say(
                HS_E_HANDLE,
                c"failed to wait for several objects: one of them is no queue, no pipe and no subscriber",
            ))),
            Err(code) => {
                Err(Failure::told(say(code, c"failed to wait for several objects: one of them has been freed")))
            }
        }
    }

    fn is_of(&self, home: u32) -> bool {
        match self {
            Self::Queue(queue) => queue.is_of(home),
            Self::Pipe(pipe) => pipe.is_of(home),
            Self::Subscriber(subscriber) => subscriber.is_of(home),
        }
    }

    fn selectable(&self) -> &dyn Selectable {
        match self {
            Self::Queue(queue) => &queue.object,
            Self::Pipe(pipe) => &pipe.object,
            Self::Subscriber(subscriber) => &subscriber.object,
        }
    }
}

/// Creates a selector. From outside before or between runs, and from a task of the executive. Allocates. The selector
/// is freed with its executive. HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_selector_new(exec: *mut hs_exec, selector: *mut *mut hs_exec_selector) -> c_int {
    make_part(exec, selector, |site, _| site.selector().map_err(|error| failure(error.into())))
}

/// Waits until one of up to HS_EXEC_MOST_SELECTED objects has something to take: a hs_exec_queue with a message, a
/// hs_exec_pipe with bytes, a hs_exec_subscriber with a message that it has not heard. `index` is its place in
/// `objects`, the first if there are several. Nothing is taken: take with HS_EXEC_NO_WAIT, and wait again if another
/// task was faster. For tasks. HS_E_TIMED_OUT (also with HS_EXEC_NO_WAIT), HS_E_BUSY (another task uses the selector,
/// one of the subscribers, or another selector for one of the objects), HS_E_RANGE (no objects or too many),
/// HS_E_CANCELLED, HS_E_KILLED, HS_E_NEGATIVE, HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_selector_wait(
    selector: *mut hs_exec_selector,
    objects: *const *const c_void,
    count: usize,
    limit_ns: i64,
    index: *mut usize,
) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    let Ok(place) = Place::new(index) else { return HS_E_NULL };
    if let Err(failure) = find(selector) {
        return failure.tell();
    }
    let Some(context) = current() else { return not_here() };
    if !(1..=HS_EXEC_MOST_SELECTED).contains(&count) {
        return say(HS_E_RANGE, c"failed to wait for several objects: write 1 to HS_EXEC_MOST_SELECTED");
    }
    let addresses = match list(objects, count) {
        Ok(addresses) => addresses,
        Err(failure) => return failure.tell(),
    };
    let mut selected = [const { None }; HS_EXEC_MOST_SELECTED];
    for (place, &address) in selected.iter_mut().zip(addresses) {
        match Selected::at(address) {
            Ok(object) if object.is_of(context.home) => *place = Some(object),
            Ok(_) => return foreign(),
            Err(failure) => return failure.tell(),
        }
    }
    let Some(first) = &selected[0] else { return HS_E_RANGE };
    let mut several = [first.selectable(); HS_EXEC_MOST_SELECTED];
    for (place, object) in several.iter_mut().zip(selected.iter().flatten()) {
        *place = object.selectable();
    }
    let mut watched = false;
    let code = alone_in_task(selector, |task, selector| match selector.wait(task, &several[..count], limit) {
        Ok(found) => {
            place.put(found);
            Ok(())
        }
        Err(error) => {
            watched = error == SelectError::NotOwner;
            Err(CallStatus::from(error))
        }
    });
    if watched {
        return say(HS_E_BUSY, c"failed to wait for several objects: another selector waits for one of them");
    }
    code
}

/// Deletes a selector that no task uses. It is HS_E_FREED from then on; the memory of the handle is freed with the
/// executive. For tasks. HS_E_BUSY (another task uses it), HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_selector_delete(selector: *mut hs_exec_selector) -> c_int {
    alone_in_task(selector, |task, selector| Ok(selector.delete(task)?))
}
