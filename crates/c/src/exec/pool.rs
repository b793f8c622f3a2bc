//! Pools: blocks of memory of one size, all allocated in advance.

#![expect(unsafe_code, reason = "names of exported functions")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::{c_int, c_void};

use hairspring_exec::{Create, Pool, Services};

use super::executive::hs_exec;
use super::outcome::failure;
use super::part::{Part, anywhere, make_part, own_part};
use crate::error::{Failure, HS_E_NULL, HS_E_RANGE, say};
use crate::handle::Kind;
use crate::pointer::Place;

/// Blocks begin at multiples of this.
const ALIGNMENT: usize = 16;

/// The largest block, so that a negative number converted to unsigned is refused.
const MOST_BYTES: usize = 1 << 30;

/// A pool of blocks. Lives as long as its executive; only its tasks and procedures use it.
pub struct hs_exec_pool(());

pub(crate) struct Blocks {
    /// Records which blocks are in use.
    pool: Pool<()>,
    memory: Box<[u128]>,
    block_bytes: usize,
}

impl Kind for hs_exec_pool {
    type Owned = Part<Blocks>;
    const WORD: u64 = u64::from_le_bytes(*b"execpool");
    const NAME: &'static str = "pool of blocks";
    const GOES_AT_ONCE: bool = false;
}

/// Creates a pool of `blocks` blocks (1 to 65,535), aligned to 16 bytes. From outside before or between runs, and from
/// a task of the executive. Allocates. The pool is freed with its executive. HS_E_RANGE, HS_E_TOO_MANY, HS_E_BUSY,
/// HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_pool_new(
    exec: *mut hs_exec,
    blocks: u16,
    block_bytes: usize,
    pool: *mut *mut hs_exec_pool,
) -> c_int {
    make_part(exec, pool, |site, _| {
        if blocks == 0 || !(1..=MOST_BYTES).contains(&block_bytes) {
            return Err(Failure::new(
                HS_E_RANGE,
                "create a pool: it needs blocks, and blocks of 1 to 1,073,741,824 bytes",
            ));
        }
        let block_bytes = block_bytes.next_multiple_of(ALIGNMENT);
        let pool = site.pool(vec![(); usize::from(blocks)]).map_err(|error| failure(error.into()))?;
        let memory = vec![0_u128; usize::from(blocks) * (block_bytes / ALIGNMENT)].into_boxed_slice();
        Ok(Blocks { pool, memory, block_bytes })
    })
}

/// Deletes a pool of which all blocks have been given back. It is HS_E_FREED from then on; its memory is freed with the
/// executive. From anywhere in its executive. HS_E_STATE (a block is in use), HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_pool_delete(pool: *mut hs_exec_pool) -> c_int {
    anywhere(pool, |site, blocks| Ok(site.delete_pool(&blocks.pool)?))
}

/// Takes a block of a pool. Its contents are what the last user left. From tasks and procedures of the executive.
/// HS_E_EMPTY, HS_E_NULL, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_pool_take(pool: *mut hs_exec_pool, block: *mut *mut c_void) -> c_int {
    let (context, blocks) = match own_part(pool) {
        Ok(found) => found,
        Err(code) => return code,
    };
    let Ok(place) = Place::new(block) else { return HS_E_NULL };
    let taken = context.site().buffer_unguarded(&blocks.pool);
    if let Ok(number) = taken {
        // The address is C's; the library does not follow it.
        let first = blocks.memory.as_ptr().cast_mut().cast::<u8>();
        place.put(first.wrapping_add(usize::from(number) * blocks.block_bytes).cast());
    }
    context.conclude(taken.map(drop).map_err(Into::into))
}

/// Gives a block back to its pool. From tasks and procedures of the executive. HS_E_STATE (it is not in use),
/// HS_E_RANGE (no block of this pool), HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_pool_give(pool: *mut hs_exec_pool, block: *mut c_void) -> c_int {
    let (context, blocks) = match own_part(pool) {
        Ok(found) => found,
        Err(code) => return code,
    };
    let offset = (block as usize).wrapping_sub(blocks.memory.as_ptr() as usize);
    if offset >= size_of_val(&*blocks.memory) || !offset.is_multiple_of(blocks.block_bytes) {
        return say(HS_E_RANGE, c"failed to give a block back: it is none of this pool");
    }
    // There are at most 65,535.
    let number = (offset / blocks.block_bytes) as u16;
    context.conclude(context.site().give_back(&blocks.pool, number).map_err(Into::into))
}
