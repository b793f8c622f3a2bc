//! Messages as bytes: any `Copy` type is copied into an envelope and out again.
//!
//! The core numbers the envelopes and decides which task may touch which; this file holds their memory. A message keeps
//! its type, because a mailbox is made for one type and its handle carries that type.
#![expect(unsafe_code, reason = "copies values of caller-chosen Copy types through untyped slots")]

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering};

use hairspring_exec_core::{ExchangeId, TaskId};

use crate::calls::CallSite;
use crate::objects::{Exchange, Mailbox};

/// The bytes of one message of a `Copy` type, borrowed.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'m> {
    from: *const u8,
    count: usize,
    message: PhantomData<&'m ()>,
}

impl<'m> Bytes<'m> {
    #[inline]
    pub(crate) fn of<M: Copy>(message: &'m M) -> Self {
        Self { from: core::ptr::from_ref(message).cast(), count: size_of::<M>(), message: PhantomData }
    }
}

impl<M: Copy> Mailbox<M> {
    /// The mailboxes of a task that is known by its id only, as to a program in C.
    ///
    /// # Safety
    /// If `task` is a task of the executive of `site`, it takes messages of type `M`.
    #[inline(always)]
    pub unsafe fn from_id(site: &impl CallSite, task: TaskId) -> Self {
        Self::new(task, site.caller().back_end.home())
    }
}

impl<M: Copy> Exchange<M> {
    /// An exchange that is known by its id only, as to a program in C.
    ///
    /// # Safety
    /// If `exchange` is an exchange of the executive of `site`, it is one for messages of type `M`.
    #[inline(always)]
    pub unsafe fn from_id(site: &impl CallSite, exchange: ExchangeId) -> Self {
        Self::new(exchange, site.caller().back_end.home())
    }
}

/// Slots are made of these, so every message type up to this alignment fits.
#[repr(align(16))]
#[derive(Clone, Copy)]
struct Grain {
    _bytes: [MaybeUninit<u8>; GRAIN],
}

/// Bytes in a grain, and the largest alignment of a message.
pub(crate) const GRAIN: usize = 16;

/// The number of executives made in this process.
static HOMES: AtomicU32 = AtomicU32::new(0);

/// The memory of all envelopes.
pub(crate) struct Slots {
    grains: Box<[UnsafeCell<Grain>]>,
    /// Two to this power grains make a slot: a shift is faster than a product.
    shift: u32,
    home: u32,
}

// SAFETY: a slot is written by the sender to which the core has just given the envelope and read by the receiver to
// which the core handed it; engines do both under the same exclusion (lock or carrier thread) as the call to the core.
unsafe impl Sync for Slots {}

impl Slots {
    /// Memory for `envelopes` messages of at most `message_bytes`.
    pub(crate) fn new(envelopes: u16, message_bytes: usize) -> Self {
        let shift = message_bytes.div_ceil(GRAIN).max(1).next_power_of_two().trailing_zeros();
        let count = usize::from(envelopes) << shift;
        let grains = (0..count).map(|_| UnsafeCell::new(Grain { _bytes: [MaybeUninit::uninit(); GRAIN] })).collect();
        // Relaxed: only uniqueness matters.
        Self { grains, shift, home: HOMES.fetch_add(1, Ordering::Relaxed) }
    }

    /// The number of the executive that owns these envelopes, unique in this process up to 2³² executives.
    #[inline(always)]
    pub(crate) fn home(&self) -> u32 {
        self.home
    }

    /// Whether messages of this size and alignment fit.
    pub(crate) fn fits(&self, bytes: usize, alignment: usize) -> bool {
        bytes <= GRAIN << self.shift && alignment <= GRAIN
    }

    /// Copies a message in. The core gave `envelope` to the caller's message.
    #[inline]
    pub(crate) fn write(&self, envelope: u32, message: Bytes<'_>) {
        debug_assert!(message.count <= GRAIN << self.shift, "mailboxes are made only for types that fit");
        let slot = self.slot(envelope);
        // SAFETY: source: `Bytes` borrows a live value of `count` bytes. Target: the slot's grains are contiguous and
        // hold that many, because mailboxes are made only for types that fit; the core gives this envelope to no other
        // caller.
        unsafe { core::ptr::copy_nonoverlapping(message.from, slot, message.count) }
    }

    /// Moves a message in. As [`write`](Self::write), but of a message that may be in registers.
    #[inline(always)]
    pub(crate) fn put<M: Copy>(&self, envelope: u32, message: M) {
        const { assert!(align_of::<M>() <= GRAIN, "messages are aligned to at most 16 bytes") };
        debug_assert!(size_of::<M>() <= GRAIN << self.shift, "mailboxes are made only for types that fit");
        // SAFETY: as in `write`; a slot is aligned to a grain.
        unsafe { self.slot(envelope).cast::<M>().write(message) }
    }

    /// Copies a message out.
    ///
    /// # Safety
    /// `to` is valid for `count` bytes, at most as many as were written to this envelope, which the core has handed to
    /// the caller.
    #[inline]
    pub(crate) unsafe fn read(&self, envelope: u32, to: *mut u8, count: usize) {
        let slot = self.slot(envelope);
        // SAFETY: as the caller promises; the slot was written in full by the sender before it was handed over.
        unsafe { core::ptr::copy_nonoverlapping(slot, to, count) }
    }

    /// Where a slot begins; the pointer may be used for all of its grains.
    #[inline(always)]
    fn slot(&self, envelope: u32) -> *mut u8 {
        let first = (envelope as usize) << self.shift;
        // The memory is whole slots, so where one begins it also ends.
        assert!(first < self.grains.len(), "an envelope of another executive");
        UnsafeCell::raw_get(self.grains.as_ptr().wrapping_add(first)).cast()
    }
}
