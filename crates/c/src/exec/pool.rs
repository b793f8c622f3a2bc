//! Pools: blocks of memory of one size, all allocated in advance.

#![expect(unsafe_code, reason = "addresses of blocks; names of exported functions")]
#![expect(non_camel_case_types, reason = "names of C")]

use std::ffi::{c_int, c_void};

use hairspring_exec::{CallStatus, Create, Parcel, Pool, Services};

use super::context::{Site, create, current, serve_own};
use super::executive::hs_exec;
use super::outcome::{failure, foreign, meaning, not_here};
use super::part::keep;
use crate::error::{Failure, HS_E_HANDLE, HS_E_RANGE, door, say};
use crate::handle::{Kind, make, peek};
use crate::pointer::Place;

/// Blocks begin at multiples of this.
const ALIGNMENT: usize = 16;

/// The largest block, so that a mistaken sign is told.
const MOST_BYTES: usize = 1 << 30;

/// A pool of blocks. Lives as long as its executive; only its tasks and procedures use it.
pub struct hs_exec_pool(());

pub(crate) struct OwnedPool {
    pool: Pool<u16>,
    /// Each block as a parcel: packed up while C holds it.
    parcels: Vec<Parcel>,
    memory: Box<[u128]>,
    block_bytes: usize,
    home: u32,
}

// SAFETY: its memory is never touched by the library; the rest never changes.
unsafe impl Sync for OwnedPool {}

impl Kind for hs_exec_pool {
    type Owned = OwnedPool;
    const WORD: u64 = u64::from_le_bytes(*b"execpool");
    const NAME: &'static str = "pool of blocks";
    const GOES_AT_ONCE: bool = false;
}

/// Creates a pool of so many blocks (1 to 65,535), aligned to 16 bytes. From outside before or between runs, and from a task of
/// the executive. Allocates. The pool is freed with its executive. HS_E_RANGE, HS_E_TOO_MANY, HS_E_BUSY, HS_E_THREAD, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_pool_new(
    exec: *mut hs_exec,
    blocks: u16,
    block_bytes: usize,
    pool: *mut *mut hs_exec_pool,
) -> c_int {
    door(|| {
        let place = Place::new(pool)?;
        if blocks == 0 || !(1..=MOST_BYTES).contains(&block_bytes) {
            return Err(Failure::new(
                HS_E_RANGE,
                "create a pool: it needs blocks, and blocks of 1 to 1,073,741,824 bytes",
            ));
        }
        let block_bytes = block_bytes.next_multiple_of(ALIGNMENT);
        create(exec, |site, here| {
            let made = site.pool((0..blocks).collect()).map_err(|error| failure(error.into()))?;
            // Each buffer is taken once for its parcel. Contents are numbers, so that a block is told from its buffer.
            let mut taken = Vec::new();
            for _ in 0..blocks {
                taken.push(site.buffer(&made).map_err(|error| failure(error.into()))?);
            }
            taken.sort_unstable_by_key(|buffer| **buffer);
            let parcels: Vec<Parcel> = taken.into_iter().map(hairspring_exec::Buffer::into_parcel).collect();
            for parcel in &parcels {
                drop(site.open_parcel(&made, *parcel).map_err(|error| failure(error.into()))?);
            }
            let memory = vec![0_u128; usize::from(blocks) * (block_bytes / ALIGNMENT)].into_boxed_slice();
            let handle = make::<hs_exec_pool>(OwnedPool { pool: made, parcels, memory, block_bytes, home: here.home });
            keep(site.results(), handle);
            place.put(handle);
            Ok(())
        })
    })
}

/// Deletes a pool of which all blocks have been given back. It is HS_E_FREED from then on; its memory is freed with the executive. From anywhere in
/// its executive. HS_E_STATE (a block is in use), HS_E_FREED, HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_pool_delete(pool: *mut hs_exec_pool) -> c_int {
    let owned = match peek(pool) {
        Ok(owned) => owned,
        Err(failure) => return failure.tell(),
    };
    match current() {
        Some(context) if context.home == owned.home => {
            context.conclude(context.site().delete_pool(&owned.pool).map_err(Into::into))
        }
        Some(_) => foreign(),
        None => serve_own(owned.home, &|site| Ok(site.delete_pool(&owned.pool)?)),
    }
}

/// Takes a block of a pool. Its contents are what the last user left. From tasks and procedures of the executive. HS_E_EMPTY, HS_E_NULL,
/// HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_pool_take(pool: *mut hs_exec_pool, block: *mut *mut c_void) -> c_int {
    within_pool(pool, |site, owned| {
        let place = Place::new(block).map_err(Fault::Told)?;
        let buffer = site.buffer(&owned.pool).map_err(|error| Fault::Status(error.into()))?;
        let offset = usize::from(*buffer) * owned.block_bytes;
        buffer.into_parcel();
        // The address is C's; the library does not follow it.
        place.put(owned.memory.as_ptr().cast_mut().cast::<u8>().wrapping_add(offset).cast());
        Ok(())
    })
}

/// Gives a block back to its pool. From tasks and procedures of the executive. HS_E_STATE (it is not in use), HS_E_RANGE (no block of this
/// pool), HS_E_HANDLE, HS_E_CALLER.
#[unsafe(no_mangle)]
pub extern "C" fn hs_exec_pool_give(pool: *mut hs_exec_pool, block: *mut c_void) -> c_int {
    within_pool(pool, |site, owned| {
        let offset = (block as usize).wrapping_sub(owned.memory.as_ptr() as usize);
        let parcel = owned.parcels.get(offset / owned.block_bytes).filter(|_| offset.is_multiple_of(owned.block_bytes));
        let Some(parcel) = parcel else {
            return Err(Fault::Told(Failure::told(say(
                HS_E_RANGE,
                c"failed to give a block back: it is none of this pool",
            ))));
        };
        let buffer = site.open_parcel(&owned.pool, *parcel).map_err(|error| Fault::Status(error.into()))?;
        drop(buffer);
        Ok(())
    })
}

enum Fault {
    Status(CallStatus),
    Told(Failure),
}

#[inline(always)]
fn within_pool(pool: *mut hs_exec_pool, call: impl FnOnce(Site<'_>, &OwnedPool) -> Result<(), Fault>) -> c_int {
    let owned = match peek(pool) {
        Ok(owned) => owned,
        Err(failure) => return failure.tell(),
    };
    let Some(context) = current() else { return not_here() };
    if context.home != owned.home {
        return say(HS_E_HANDLE, c"failed to use a pool: it belongs to another executive");
    }
    let result = call(context.site(), owned);
    context.come_back();
    match result {
        Ok(()) => crate::error::HS_OK,
        Err(Fault::Status(status)) => {
            let (code, sentence) = meaning(status);
            say(code, sentence)
        }
        Err(Fault::Told(failure)) => failure.tell(),
    }
}
