//! Circular lists: a fixed number of slots, filled and emptied at both ends without waiting.

#![expect(unsafe_code, reason = "copies slots of the size that the list has; names of exported functions")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::{c_int, c_void};

use hairspring_exec::{CallStatus, CircularList, Create};

use super::{Part, anywhere, make_part};
use crate::error::{Failure, HS_E_NULL, HS_E_RANGE};
use crate::exec::executive::hs_exec;
use crate::handle::{Kind, peek};
use crate::pointer::{Place, bytes_at, room};

/// The longest list, so that a negative number converted to unsigned is refused.
const MOST_SLOTS: usize = 1 << 24;

/// A circular list. Lives as long as its executive; only its tasks and procedures use it, and the program between runs.
pub struct hs_exec_list(());

/// A list, and the bytes of each slot.
pub(crate) struct Slots {
    list: CircularList<u64>,
    slot_bytes: usize,
}

impl Kind for hs_exec_list {
    type Owned = Part<Slots>;
    const WORD: u64 = u64::from_le_bytes(*b"execlist");
    const NAME: &'static str = "circular list";
    const GOES_AT_ONCE: bool = false;
}

/// Creates a circular list of `slots` slots (1 to 16,777,216) of 1, 2, 4 or 8 bytes. From outside before or between
/// runs, and from a task of the executive. Allocates. The list is freed with its executive. HS_E_RANGE, HS_E_BUSY,
/// HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_list_new(
    exec: *mut hs_exec,
    slots: usize,
    slot_bytes: usize,
    list: *mut *mut hs_exec_list,
) -> c_int {
    make_part(exec, list, |site, _| {
        if !(1..=MOST_SLOTS).contains(&slots) || !matches!(slot_bytes, 1 | 2 | 4 | 8) {
            let why = "create a circular list: it has 1 to 16,777,216 slots of 1, 2, 4 or 8 bytes";
            return Err(Failure::new(HS_E_RANGE, why));
        }
        Ok(Slots { list: site.circular_list(slots), slot_bytes })
    })
}

/// Adds a value at the top: the bytes of one slot at `value`. Never waits, takes constant time. From anywhere in its
/// executive. HS_E_FULL, HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_list_add_top(list: *mut hs_exec_list, value: *const c_void) -> c_int {
    add::<true>(list, value)
}

/// Adds a value at the bottom: the bytes of one slot at `value`. Never waits, takes constant time. From anywhere in its
/// executive. HS_E_FULL, HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_list_add_bottom(list: *mut hs_exec_list, value: *const c_void) -> c_int {
    add::<false>(list, value)
}

/// Removes the value at the top and copies the bytes of one slot to `value`. Never waits, takes constant time. From
/// anywhere in its executive. HS_E_EMPTY, HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_list_remove_top(list: *mut hs_exec_list, value: *mut c_void) -> c_int {
    remove::<true>(list, value)
}

/// Removes the value at the bottom and copies the bytes of one slot to `value`. Never waits, takes constant time. From
/// anywhere in its executive. HS_E_EMPTY, HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_list_remove_bottom(list: *mut hs_exec_list, value: *mut c_void) -> c_int {
    remove::<false>(list, value)
}

/// How many values are in a list. From anywhere in its executive. HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_list_count(list: *mut hs_exec_list, count: *mut usize) -> c_int {
    let Ok(place) = Place::new(count) else { return HS_E_NULL };
    anywhere(list, |site, slots| {
        place.put(slots.list.count(&site)?);
        Ok(())
    })
}

/// Deletes a list and its values. It is HS_E_FREED from then on; its memory is freed with the executive. From anywhere
/// in its executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_list_delete(list: *mut hs_exec_list) -> c_int {
    anywhere(list, |site, slots| Ok(slots.list.delete(&site)?))
}

/// The bytes of a slot. Known before the caller is: a list never changes them.
fn slot_bytes(list: *const hs_exec_list) -> Result<usize, Failure> {
    peek(list).map(|part| part.object.slot_bytes)
}

#[inline]
fn add<const TOP: bool>(list: *mut hs_exec_list, value: *const c_void) -> c_int {
    let bytes = match slot_bytes(list).and_then(|bytes| bytes_at(value, bytes)) {
        Ok(bytes) => bytes,
        Err(failure) => return failure.tell(),
    };
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let word = u64::from_ne_bytes(word);
    anywhere(list, |site, slots| {
        let added = if TOP { slots.list.add_top(&site, word) } else { slots.list.add_bottom(&site, word) }?;
        if added { Ok(()) } else { Err(CallStatus::MailboxFull) }
    })
}

#[inline]
fn remove<const TOP: bool>(list: *mut hs_exec_list, value: *mut c_void) -> c_int {
    // A value is removed only when there is a place for it.
    let room = match slot_bytes(list).and_then(|bytes| room(value, bytes)) {
        Ok(room) => room.as_mut_ptr(),
        Err(failure) => return failure.tell(),
    };
    anywhere(list, |site, slots| {
        let removed = if TOP { slots.list.remove_top(&site) } else { slots.list.remove_bottom(&site) }?;
        let word = removed.ok_or(CallStatus::Empty)?.to_ne_bytes();
        // SAFETY: `room` found a place for the bytes of one slot, which are at most 8.
        unsafe { std::ptr::copy_nonoverlapping(word.as_ptr(), room, slots.slot_bytes) };
        Ok(())
    })
}
