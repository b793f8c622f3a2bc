//! Heaps: blocks of any size of one memory, with waiting until there is one.
#![expect(unsafe_code, reason = "blocks are parts of one memory")]

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_exec_core::{By, Call, HeapId, MOST_BLOCKS, MOST_UNITS, Priority};

use crate::back_end::BackEnd;
use crate::calls::{CallSite, Caller, Create, Limit, TaskCtx};
use crate::errors::{BlockError, BlockWaitError, CreateError, InUseError, ParcelError, accept};
use crate::inspect::ask;

/// A block begins at a multiple of this, and has a multiple of it in bytes.
pub const HEAP_UNIT_BYTES: usize = 16;

/// Most bytes of one heap.
pub const MOST_HEAP_BYTES: usize = MOST_UNITS as usize * HEAP_UNIT_BYTES;

/// The order of the tasks that wait for a block of a heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HeapOrder {
    /// First come, first served.
    #[default]
    Arrival,
    /// The most urgent first, equals by arrival.
    Priority,
}

/// Memory for a heap: of the library, or of the program.
pub struct HeapMemory {
    begin: *mut u8,
    bytes: usize,
    /// Memory that the library allocated. Never accessed through this field.
    _own: Option<Box<[MaybeUninit<u128>]>>,
}

// SAFETY: it is an address and a size; only the blocks access the bytes.
unsafe impl Send for HeapMemory {}
// SAFETY: the same.
unsafe impl Sync for HeapMemory {}

impl HeapMemory {
    /// Allocates this many bytes, rounded up to whole units of [`HEAP_UNIT_BYTES`], and fills them with zeros.
    pub fn allocate(bytes: usize) -> Self {
        let mut own = vec![MaybeUninit::new(0_u128); bytes.div_ceil(HEAP_UNIT_BYTES)].into_boxed_slice();
        Self { begin: own.as_mut_ptr().cast(), bytes: own.len() * HEAP_UNIT_BYTES, _own: Some(own) }
    }

    /// Takes memory of the program. The heap has the whole units of [`HEAP_UNIT_BYTES`] in it.
    pub fn new(memory: &'static mut [u8]) -> Self {
        // SAFETY: the memory is borrowed mutably for ever, so no other code has it.
        unsafe { Self::from_raw(memory.as_mut_ptr(), memory.len()) }
    }

    /// The same for an address and a size.
    ///
    /// # Safety
    /// The `bytes` at `memory` stay readable and writable while the heap, a handle of it or a block of it exists, and
    /// are accessed through its blocks only. They are initialized, if blocks are used as slices of Rust.
    pub unsafe fn from_raw(memory: *mut u8, bytes: usize) -> Self {
        let skipped = memory.align_offset(HEAP_UNIT_BYTES).min(bytes);
        let bytes = (bytes - skipped) / HEAP_UNIT_BYTES * HEAP_UNIT_BYTES;
        Self { begin: memory.wrapping_add(skipped), bytes, _own: None }
    }

    /// The bytes that a heap in it has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl fmt::Debug for HeapMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeapMemory").field("begin", &self.begin).field("bytes", &self.bytes).finish()
    }
}

/// How a heap is used, in bytes and blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeapUse {
    /// Bytes that it has.
    pub bytes: usize,
    /// Bytes that are free.
    pub free_bytes: usize,
    /// The largest block that would be granted now if no task waited: less than `free_bytes` if what is free lies
    /// apart.
    pub largest_bytes: usize,
    /// The fewest bytes that were ever free.
    pub least_free_bytes: usize,
    /// Blocks in use.
    pub blocks: usize,
    /// Most blocks that can be in use.
    pub most_blocks: usize,
}

struct Shared {
    memory: HeapMemory,
    /// By unit: whether the block that begins there is on its way in a message.
    parcelled: Box<[AtomicBool]>,
}

/// A memory from which tasks get blocks of any size. Cloning it makes another handle of the same heap.
///
/// A task waits until there is a block for it. The first in line gets its block before any task that comes later,
/// however little that one wants; only a more urgent task passes, in a heap of [`HeapOrder::Priority`]. Getting and
/// freeing a block take constant time (a two-level segregated fit), beside the tasks that a free lets go. Neighbours
/// that are free become one area again. A request is rounded up to a whole [unit](HEAP_UNIT_BYTES), and can be refused
/// although a free area is up to an eighth larger than it. Nothing allocates after the heap was made; its records lie
/// beside the memory, so a task that writes past its block damages other blocks and not the heap.
///
/// ```
/// use hairspring_exec::{Backend, Create, ExecConfig, Executive, HeapMemory, HeapOrder, Limit, Priority, RunLimit, Services};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut executive = Executive::new(Backend::sim(), &ExecConfig::default())?;
/// let heap = executive.heap(HeapMemory::allocate(1024), 8, HeapOrder::Priority)?;
/// let theirs = heap.clone();
/// let waits = executive.task("waits", Priority::LOWEST, move |ctx| {
///     let block = theirs.get(ctx, 800, Limit::Forever).expect("the other frees its block");
///     assert_eq!(block.len(), 800);
/// })?;
/// let first = executive.task("first", Priority::HIGHEST, move |ctx| {
///     let mut block = heap.try_get(ctx, 500).expect("all is free");
///     block[499] = 7;
///     ctx.delay(hairspring_exec::Nanos::from_micros(10)).expect("nobody breaks it off");
///     assert_eq!(heap.usage(ctx).map(|usage| usage.free_bytes), Some(512));
/// })?;
/// executive.trigger(first)?;
/// executive.trigger(waits)?;
/// assert!(executive.run(RunLimit::Forever).clean());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Heap {
    heap: HeapId,
    home: u32,
    order: HeapOrder,
    shared: Arc<Shared>,
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.heap.fmt(f)
    }
}

/// A block in use; it is free again when it is dropped. Its contents are what the last user left.
pub struct HeapBlock<'k> {
    back_end: BackEnd<'k>,
    by: By,
    heap: Heap,
    first: u32,
    units: u32,
}

/// A block on its way to another task, as the contents of a message. Opened once; one that is never opened stays in
/// use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HeapParcel {
    heap: HeapId,
    home: u32,
    first: u32,
}

impl fmt::Debug for HeapParcel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeapParcel({:?} from {} on)", self.heap, self.first)
    }
}

/// The units of a request; none if it is larger than any heap.
fn units_for(bytes: usize) -> Option<u32> {
    u32::try_from(bytes.div_ceil(HEAP_UNIT_BYTES).max(1)).ok()
}

impl Heap {
    pub(crate) fn new(
        site: &(impl Create + ?Sized),
        memory: HeapMemory,
        blocks: usize,
        order: HeapOrder,
    ) -> Result<Self, CreateError> {
        let Caller { back_end, by } = site.caller();
        let units = u32::try_from(memory.bytes / HEAP_UNIT_BYTES).map_err(|_| CreateError::Overflow)?;
        let blocks = u16::try_from(blocks).map_err(|_| CreateError::Overflow)?;
        let heap = HeapId::from_number(accept(back_end.cold().call(by, Call::CreateHeap { units, blocks }))?);
        let parcelled = (0..units).map(|_| AtomicBool::new(false)).collect();
        Ok(Self { heap, home: back_end.home(), order, shared: Arc::new(Shared { memory, parcelled }) })
    }

    /// Gets a block of at least `bytes` bytes, and waits until there is one and it is this task's turn. A block of 0
    /// bytes has one unit.
    ///
    /// # Errors
    /// [`BlockWaitError`] names the reasons, each with what to do.
    pub fn get<'c>(&self, ctx: &'c TaskCtx<'_>, bytes: usize, limit: Limit) -> Result<HeapBlock<'c>, BlockWaitError> {
        let (first, units) = self.wait_for(ctx, bytes, limit)?;
        Ok(self.block(ctx.caller(), first, units))
    }

    /// Gets a block of at least `bytes` bytes if there is one and no task waits.
    ///
    /// # Errors
    /// [`BlockError`] names the reasons, each with what to do.
    pub fn try_get<'c>(&self, site: &'c (impl CallSite + ?Sized), bytes: usize) -> Result<HeapBlock<'c>, BlockError> {
        let (first, units) = self.get_at_once(site, bytes)?;
        Ok(self.block(site.caller(), first, units))
    }

    fn block<'k>(&self, Caller { back_end, by }: Caller<'k>, first: u32, units: u32) -> HeapBlock<'k> {
        HeapBlock { back_end, by, heap: self.clone(), first, units }
    }

    /// A block that no guard owns, for callers in C: the unit at which it begins, and its units.
    fn wait_for(&self, ctx: &TaskCtx<'_>, bytes: usize, limit: Limit) -> Result<(u32, u32), BlockWaitError> {
        let Caller { back_end, by } = ctx.caller();
        if back_end.home() != self.home {
            return Err(BlockWaitError::NoSuchObject);
        }
        let units = units_for(bytes).ok_or(BlockWaitError::TooLarge)?;
        match back_end.call(by, Call::GetBlock { heap: self.heap, units }).result() {
            Ok(first) => return Ok((first, units)),
            Err(hairspring_exec_core::CallStatus::Empty) => {}
            Err(status) => return Err(crate::errors::refusal(status)),
        }
        let at = match self.order {
            HeapOrder::Arrival => Some(Priority::LOWEST),
            HeapOrder::Priority => None,
        };
        let call = Call::WaitBlock { heap: self.heap, units, until: ctx.until(limit), at };
        accept::<BlockWaitError>(back_end.call(by, call))?;
        // It was granted. A task that is killed here returns it at the end of its run.
        let first = accept::<BlockWaitError>(back_end.call(by, Call::TakeBlock))?;
        Ok((first, units))
    }

    fn get_at_once(&self, site: &(impl CallSite + ?Sized), bytes: usize) -> Result<(u32, u32), BlockError> {
        let Caller { back_end, by } = site.caller();
        if back_end.home() != self.home {
            return Err(BlockError::NoSuchObject);
        }
        let units = units_for(bytes).ok_or(BlockError::TooLarge)?;
        let first = accept(back_end.call(by, Call::GetBlock { heap: self.heap, units }))?;
        Ok((first, units))
    }

    /// [`get`](Self::get) for callers that have no guards: the address of the block. It is in use until it is
    /// [freed](Self::free_raw).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_raw(&self, ctx: &TaskCtx<'_>, bytes: usize, limit: Limit) -> Result<*mut u8, BlockWaitError> {
        self.wait_for(ctx, bytes, limit).map(|(first, _)| self.address(first))
    }

    /// [`try_get`](Self::try_get) for callers that have no guards.
    ///
    /// # Errors
    /// As [`try_get`](Self::try_get).
    pub fn try_get_raw(&self, site: &(impl CallSite + ?Sized), bytes: usize) -> Result<*mut u8, BlockError> {
        self.get_at_once(site, bytes).map(|(first, _)| self.address(first))
    }

    /// Frees the block at an address.
    ///
    /// # Safety
    /// The block is in use no more, and no [`HeapBlock`] or [`HeapParcel`] owns it.
    ///
    /// # Errors
    /// [`ParcelError::NotInUse`] if no block in use begins there: it was freed before, or the address is none of this
    /// heap.
    pub unsafe fn free_raw(&self, site: &(impl CallSite + ?Sized), block: *mut u8) -> Result<(), ParcelError> {
        let Caller { back_end, by } = site.caller();
        if back_end.home() != self.home {
            return Err(ParcelError::NoSuchObject);
        }
        let Some(first) = self.unit_at(block) else {
            return Err(self.usage(site).map_or(ParcelError::NoSuchObject, |_| ParcelError::NotInUse));
        };
        accept(back_end.call(by, Call::FreeBlock { heap: self.heap, first })).map(drop)
    }

    /// The size in bytes of the block in use at an address; none if there is none.
    pub fn block_bytes(&self, site: &(impl CallSite + ?Sized), block: *const u8) -> Option<usize> {
        let first = self.unit_at(block)?;
        if site.caller().back_end.home() != self.home {
            return None;
        }
        ask(site, |core| core.block_units(self.heap, first)).map(|units| units as usize * HEAP_UNIT_BYTES)
    }

    /// Opens a block that came in a message.
    ///
    /// # Errors
    /// [`ParcelError`] names the reasons, each with what to do.
    pub fn open<'c>(
        &self,
        site: &'c (impl CallSite + ?Sized),
        parcel: HeapParcel,
    ) -> Result<HeapBlock<'c>, ParcelError> {
        if site.caller().back_end.home() != self.home {
            return Err(ParcelError::NoSuchObject);
        }
        let packed = self.shared.parcelled.get(parcel.first as usize);
        // AcqRel: Acquire pairs with the Release in `into_parcel`, so that the opener sees what was written.
        let is_packed = (parcel.heap, parcel.home) == (self.heap, self.home)
            && packed.is_some_and(|packed| packed.swap(false, Ordering::AcqRel));
        if !is_packed {
            return Err(ParcelError::NotInUse);
        }
        // A block on its way is in use, and only the opener can free it.
        let units = ask(site, |core| core.block_units(self.heap, parcel.first)).ok_or(ParcelError::NotInUse)?;
        Ok(self.block(site.caller(), parcel.first, units))
    }

    /// How the heap is used; none in another executive, and when it was deleted.
    pub fn usage(&self, site: &(impl CallSite + ?Sized)) -> Option<HeapUse> {
        if site.caller().back_end.home() != self.home {
            return None;
        }
        let bytes = |units: u32| units as usize * HEAP_UNIT_BYTES;
        let usage = ask(site, |core| core.heap_usage(self.heap))?;
        Some(HeapUse {
            bytes: bytes(usage.units),
            free_bytes: bytes(usage.free),
            largest_bytes: bytes(usage.largest),
            least_free_bytes: bytes(usage.least_free),
            blocks: usage.blocks.into(),
            most_blocks: usage.most_blocks.into(),
        })
    }

    /// Whether a block of this heap can begin at an address: one of its memory, on the border of a unit.
    pub fn has_address(&self, block: *const u8) -> bool {
        self.unit_at(block).is_some()
    }

    /// Deletes the heap: every later use by any handle is refused. While no block is in use no task waits for one. The
    /// library's memory is freed with the last handle; the program's is its own again when this returns.
    ///
    /// # Errors
    /// [`InUseError::InUse`] while a block is in use; [`InUseError::NoSuchObject`] if it was deleted before, or belongs
    /// to another executive.
    pub fn delete(&self, site: &(impl CallSite + ?Sized)) -> Result<(), InUseError> {
        let Caller { back_end, by } = site.caller();
        if back_end.home() != self.home {
            return Err(InUseError::NoSuchObject);
        }
        accept(back_end.cold().call(by, Call::DeleteHeap { heap: self.heap })).map(drop)
    }

    fn address(&self, first: u32) -> *mut u8 {
        self.shared.memory.begin.wrapping_add(first as usize * HEAP_UNIT_BYTES)
    }

    /// The unit that begins at an address.
    fn unit_at(&self, block: *const u8) -> Option<u32> {
        let offset = (block as usize).wrapping_sub(self.shared.memory.begin as usize);
        let inside = offset < self.shared.memory.bytes && offset.is_multiple_of(HEAP_UNIT_BYTES);
        inside.then(|| u32::try_from(offset / HEAP_UNIT_BYTES).ok()).flatten()
    }
}

impl HeapBlock<'_> {
    /// Packs it up to be sent in a message; the receiver opens it with [`Heap::open`].
    pub fn into_parcel(self) -> HeapParcel {
        let parcel = HeapParcel { heap: self.heap.heap, home: self.heap.home, first: self.first };
        // Release pairs with the Acquire in `open`.
        self.heap.shared.parcelled[self.first as usize].store(true, Ordering::Release);
        let mut this = std::mem::ManuallyDrop::new(self);
        // SAFETY: `this` is never used or dropped again; its Arc is dropped here instead.
        unsafe {
            std::ptr::drop_in_place(&raw mut this.heap);
        }
        parcel
    }
}

impl Deref for HeapBlock<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the core gave these units to this block alone until it is dropped, they lie in the memory, which the
        // handle keeps, and all of the memory is initialized.
        unsafe { std::slice::from_raw_parts(self.heap.address(self.first), self.units as usize * HEAP_UNIT_BYTES) }
    }
}

impl DerefMut for HeapBlock<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and the block is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.heap.address(self.first), self.units as usize * HEAP_UNIT_BYTES) }
    }
}

impl Drop for HeapBlock<'_> {
    fn drop(&mut self) {
        // It was given to us and is freed once: nothing to fail.
        let _ = self.back_end.call(self.by, Call::FreeBlock { heap: self.heap.heap, first: self.first });
    }
}

const _: () = assert!(MOST_BLOCKS as usize == 32_767, "the manual says so");
