//! Pipes: streams of bytes between tasks, with waiting for bytes and for room.

#![expect(unsafe_code, reason = "names of exported functions are the linker's")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::{c_int, c_void};

use hairspring_exec::{BytePipe, CallStatus, Create, Limit};

use super::{Part, anywhere, in_executive, in_task_of, make_part};
use crate::error::{Failure, HS_E_NULL, HS_E_RANGE};
use crate::exec::context::limit;
use crate::exec::executive::hs_exec;
use crate::exec::outcome::{failure, negative};
use crate::handle::Kind;
use crate::pointer::{Place, bytes_at, room};

/// The largest pipe, so that a negative number converted to unsigned is refused.
const MOST_BYTES: usize = 1 << 30;

/// A stream of bytes. Lives as long as its executive; only its tasks and procedures use it.
pub struct hs_exec_pipe(());

impl Kind for hs_exec_pipe {
    type Owned = Part<BytePipe>;
    const WORD: u64 = u64::from_le_bytes(*b"execpipe");
    const NAME: &'static str = "pipe of bytes";
    const GOES_AT_ONCE: bool = false;
}

/// Creates a pipe with room for `capacity` bytes, 1 to 1,073,741,824. From outside before or between runs, and from a
/// task of the executive. Allocates. The pipe is freed with its executive. HS_E_RANGE, HS_E_TOO_MANY, HS_E_BUSY,
/// HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_pipe_new(exec: *mut hs_exec, capacity: usize, pipe: *mut *mut hs_exec_pipe) -> c_int {
    make_part(exec, pipe, |site, _| {
        if !(1..=MOST_BYTES).contains(&capacity) {
            return Err(Failure::new(HS_E_RANGE, "create a pipe: it has room for 1 to 1,073,741,824 bytes"));
        }
        site.byte_pipe(capacity).map_err(|error| failure(error.into()))
    })
}

/// Writes as many of the bytes as there is room for, and stores their number in `written`; a task waits until there is
/// room for one. Procedures use HS_EXEC_NO_WAIT. With no bytes it returns at once. On threads it copies under the
/// executive's lock: keep pieces short. HS_E_FULL (no room, and HS_EXEC_NO_WAIT), HS_E_TIMED_OUT, HS_E_CANCELLED,
/// HS_E_KILLED, HS_E_NEGATIVE, HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_pipe_write(
    pipe: *mut hs_exec_pipe,
    bytes: *const c_void,
    count: usize,
    limit_ns: i64,
    written: *mut usize,
) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    let Ok(place) = Place::new(written) else { return HS_E_NULL };
    let bytes = match bytes_at(bytes, count) {
        Ok(bytes) => bytes,
        Err(failure) => return failure.tell(),
    };
    if limit == Limit::NoWait {
        return in_executive(pipe, |site, pipe| {
            let count = pipe.try_write(&site, bytes)?;
            place.put(count);
            if count == 0 && !bytes.is_empty() { Err(CallStatus::MailboxFull) } else { Ok(()) }
        });
    }
    in_task_of(pipe, |task, _, pipe| {
        place.put(pipe.write(task, bytes, limit)?);
        Ok(())
    })
}

/// Writes all of the bytes, and waits for room as often as it must; `limit_ns` is for all together. After an error some
/// may have been written. For tasks. HS_E_TIMED_OUT, HS_E_CANCELLED, HS_E_KILLED, HS_E_NEGATIVE, HS_E_NULL, HS_E_FREED,
/// HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_pipe_write_all(
    pipe: *mut hs_exec_pipe,
    bytes: *const c_void,
    count: usize,
    limit_ns: i64,
) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    let bytes = match bytes_at(bytes, count) {
        Ok(bytes) => bytes,
        Err(failure) => return failure.tell(),
    };
    in_task_of(pipe, |task, _, pipe| Ok(pipe.write_all(task, bytes, limit)?))
}

/// Reads the bytes that are there, up to `most`, and stores their number in `count`; a task waits until there is one.
/// Procedures use HS_EXEC_NO_WAIT. With `most` = 0 it returns at once. HS_E_TIMED_OUT (also with HS_EXEC_NO_WAIT),
/// HS_E_CANCELLED, HS_E_KILLED, HS_E_NEGATIVE, HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_pipe_read(
    pipe: *mut hs_exec_pipe,
    bytes: *mut c_void,
    most: usize,
    limit_ns: i64,
    count: *mut usize,
) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    let Ok(place) = Place::new(count) else { return HS_E_NULL };
    let room = match room(bytes, most) {
        Ok(room) => room,
        Err(failure) => return failure.tell(),
    };
    if limit == Limit::NoWait {
        return in_executive(pipe, |site, pipe| {
            let count = pipe.try_read(&site, room)?;
            place.put(count);
            if count == 0 && !room.is_empty() { Err(CallStatus::TimedOut) } else { Ok(()) }
        });
    }
    in_task_of(pipe, |task, _, pipe| {
        place.put(pipe.read(task, room, limit)?);
        Ok(())
    })
}

/// How many bytes are in a pipe. From tasks and procedures of the executive. HS_E_NULL, HS_E_FREED, HS_E_HANDLE,
/// HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_pipe_count(pipe: *mut hs_exec_pipe, count: *mut usize) -> c_int {
    let Ok(place) = Place::new(count) else { return HS_E_NULL };
    in_executive(pipe, |site, pipe| {
        place.put(pipe.len(&site));
        Ok(())
    })
}

/// Deletes a pipe and its bytes. Tasks that wait for it get HS_E_FREED. It is HS_E_FREED from then on; the memory of
/// the handle is freed with the executive. From anywhere in its executive. HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_pipe_delete(pipe: *mut hs_exec_pipe) -> c_int {
    anywhere(pipe, |site, pipe| Ok(pipe.delete(&site)?))
}
