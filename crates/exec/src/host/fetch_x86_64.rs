//! Fetching memory ahead on x86_64.
#![expect(unsafe_code, reason = "an instruction of the processor")]

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Prefetches the cache line of this address, which need not be valid.
#[inline(always)]
pub(crate) fn fetch(address: *const ()) {
    // SAFETY: a hint, which faults at no address and changes nothing.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}
