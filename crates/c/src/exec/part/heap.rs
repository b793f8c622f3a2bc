//! Heaps: blocks of any size of one memory, with waiting until there is one.

#![expect(unsafe_code, reason = "addresses of blocks; names of exported functions")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::{c_int, c_void};

use hairspring_exec::{
    CallStatus, Create, HEAP_UNIT_BYTES, Heap, HeapMemory, HeapOrder, Limit, MOST_BLOCKS, MOST_HEAP_BYTES,
};

use super::{Part, anywhere, in_executive, in_task_of, make_part};
use crate::error::{Failure, HS_E_NULL, HS_E_RANGE, HS_E_STATE, say};
use crate::exec::context::limit;
use crate::exec::executive::hs_exec;
use crate::exec::outcome::{failure, negative};
use crate::handle::Kind;
use crate::pointer::{Growing, GrowingPlace, Numbers, Place};

/// Tasks wait for a block in the order in which they came.
pub const HS_EXEC_HEAP_ARRIVAL: c_int = 0;
/// Tasks wait for a block in the order of their priority.
pub const HS_EXEC_HEAP_PRIORITY: c_int = 1;

/// A memory with blocks of any size. Lives as long as its executive; only its tasks and procedures use it.
pub struct hs_exec_heap(());

impl Kind for hs_exec_heap {
    type Owned = Part<Heap>;
    const WORD: u64 = u64::from_le_bytes(*b"execheap");
    const NAME: &'static str = "heap";
    const GOES_AT_ONCE: bool = false;
}

/// How a heap is used.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hs_exec_heap_use {
    /// sizeof(struct hs_exec_heap_use), set by the caller.
    pub size: usize,
    /// Bytes that it has.
    pub bytes: u64,
    /// Bytes that are free.
    pub free_bytes: u64,
    /// The largest block that would be given now if no task waited.
    pub largest_bytes: u64,
    /// The fewest bytes that were ever free.
    pub least_free_bytes: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// Most blocks that can be in use.
    pub most_blocks: u64,
}

// SAFETY: a size and counts: each pattern of bits is one.
unsafe impl Numbers for hs_exec_heap_use {}

// SAFETY: `repr(C)`, with `size` before the bytes.
unsafe impl Growing for hs_exec_heap_use {
    const NAME: &'static str = "an account of how a heap is used";
    const FIRST_BYTES: usize = 56;
}

/// Creates a heap of `bytes` bytes (16 to 1,073,741,824), for at most `blocks` blocks in use (1 to 32,767). With
/// `memory` = NULL the library allocates them, else the heap has the whole units of 16 bytes in the program's memory,
/// which the program uses through blocks only until the heap is deleted or its executive is freed. Tasks wait in the
/// `order` HS_EXEC_HEAP_ARRIVAL or HS_EXEC_HEAP_PRIORITY. From outside before or between runs, and from a task of the
/// executive. Allocates; its records take 2 bytes for each 16 and 48 for each block. The heap is freed with its
/// executive. HS_E_RANGE, HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_heap_new(
    exec: *mut hs_exec,
    memory: *mut c_void,
    bytes: usize,
    blocks: usize,
    order: c_int,
    heap: *mut *mut hs_exec_heap,
) -> c_int {
    make_part(exec, heap, |site, _| {
        let refused = |why| Err(Failure::new(HS_E_RANGE, why));
        let order = match order {
            HS_EXEC_HEAP_ARRIVAL => HeapOrder::Arrival,
            HS_EXEC_HEAP_PRIORITY => HeapOrder::Priority,
            _ => return refused("create a heap: its order is HS_EXEC_HEAP_ARRIVAL or HS_EXEC_HEAP_PRIORITY"),
        };
        if !(HEAP_UNIT_BYTES..=MOST_HEAP_BYTES).contains(&bytes) || !(1..=usize::from(MOST_BLOCKS)).contains(&blocks) {
            return refused("create a heap: it has 16 to 1,073,741,824 bytes, and 1 to 32,767 blocks");
        }
        let memory = if memory.is_null() {
            HeapMemory::allocate(bytes)
        } else {
            // SAFETY: the header asks the caller for memory that no other code uses. Blocks of C are never slices of
            // Rust.
            unsafe { HeapMemory::from_raw(memory.cast(), bytes) }
        };
        if memory.bytes() == 0 {
            return refused("create a heap: there is no whole unit of 16 bytes in its memory");
        }
        site.heap(memory, blocks, order).map_err(|error| failure(error.into()))
    })
}

/// Gets a block of at least `bytes` bytes, aligned to 16; a task waits until there is one and it is first in line. Its
/// contents are what the last user left. Procedures use HS_EXEC_NO_WAIT. Getting and freeing take constant time. A
/// request can be refused although a free area is up to an eighth larger. A killed task that waits gets none, and frees
/// what it has before it returns. HS_E_EMPTY (none, or a task waits, and HS_EXEC_NO_WAIT), HS_E_TIMED_OUT, HS_E_RANGE
/// (larger than the heap), HS_E_CANCELLED, HS_E_KILLED, HS_E_NEGATIVE, HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_heap_get(
    heap: *mut hs_exec_heap,
    bytes: usize,
    limit_ns: i64,
    block: *mut *mut c_void,
) -> c_int {
    let Some(limit) = limit(limit_ns) else { return negative() };
    let Ok(place) = Place::new(block) else { return HS_E_NULL };
    if limit == Limit::NoWait {
        return in_executive(heap, |site, heap| {
            place.put(heap.try_get_raw(&site, bytes)?.cast());
            Ok(())
        });
    }
    in_task_of(heap, |task, _, heap| {
        place.put(heap.get_raw(task, bytes, limit)?.cast());
        Ok(())
    })
}

/// Frees a block, and gives blocks to the tasks that wait and have one now. Takes constant time, and more for each such
/// task. From tasks and procedures of the executive. A block that was freed before is HS_E_STATE, unless another block
/// begins at its address by then. HS_E_STATE (no block in use begins there), HS_E_RANGE (no address of a block of this
/// heap), HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_heap_free(heap: *mut hs_exec_heap, block: *mut c_void) -> c_int {
    let mut is_foreign = false;
    let code = in_executive(heap, |site, heap| {
        is_foreign = !heap.has_address(block.cast());
        // SAFETY: blocks of C are addresses; the program frees what it does not use any more. A wrong address is
        // refused.
        Ok(unsafe { heap.free_raw(&site, block.cast()) }?)
    });
    if is_foreign && code == HS_E_STATE { foreign_block() } else { code }
}

/// Returns the size of a block in use: the requested size, rounded up to a multiple of 16. From tasks and procedures of
/// the executive. HS_E_STATE (no block in use begins there), HS_E_NULL, HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_heap_block_bytes(heap: *mut hs_exec_heap, block: *const c_void, bytes: *mut usize) -> c_int {
    let Ok(place) = Place::new(bytes) else { return HS_E_NULL };
    in_executive(heap, |site, heap| {
        let refused = if heap.usage(&site).is_some() { CallStatus::NotInUse } else { CallStatus::NoSuchObject };
        place.put(heap.block_bytes(&site, block.cast()).ok_or(refused)?);
        Ok(())
    })
}

/// Returns how a heap is used. From anywhere in its executive. HS_E_RANGE (the size is not set), HS_E_NULL, HS_E_FREED,
/// HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_heap_measure(heap: *mut hs_exec_heap, usage: *mut hs_exec_heap_use) -> c_int {
    let place = match GrowingPlace::new(usage) {
        Ok(place) => place,
        Err(failure) => return failure.tell(),
    };
    anywhere(heap, |site, heap| {
        let usage = heap.usage(&site).ok_or(CallStatus::NoSuchObject)?;
        place.put(hs_exec_heap_use {
            size: size_of::<hs_exec_heap_use>(),
            bytes: usage.bytes as u64,
            free_bytes: usage.free_bytes as u64,
            largest_bytes: usage.largest_bytes as u64,
            least_free_bytes: usage.least_free_bytes as u64,
            blocks: usage.blocks as u64,
            most_blocks: usage.most_blocks as u64,
        });
        Ok(())
    })
}

/// Deletes a heap of which no block is in use; while none is, no task waits for one. It is HS_E_FREED from then on. The
/// program's memory is the program's again; the library's is freed with the executive. From anywhere in its executive.
/// HS_E_STATE (a block is in use), HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_heap_delete(heap: *mut hs_exec_heap) -> c_int {
    anywhere(heap, |site, heap| Ok(heap.delete(&site)?))
}

#[cold]
fn foreign_block() -> c_int {
    say(HS_E_RANGE, c"failed to free a block: no block of this heap begins at this address")
}
