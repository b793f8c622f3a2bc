//! Fetching memory ahead on aarch64, for which the standard library has no stable function.
#![expect(unsafe_code, reason = "an instruction of the processor, in assembly")]

use std::arch::asm;

/// Prefetches the cache line of this address, which need not be valid.
#[inline(always)]
pub(crate) fn fetch(address: *const ()) {
    // SAFETY: a hint, which faults at no address and changes nothing.
    unsafe { asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly)) };
}
