//! The shadow stack of aarch64 (GCS): a copy of all return addresses that the processor keeps and compares at each
//! return.
#![expect(unsafe_code, reason = "asks the processor for a feature in assembly")]

use std::arch::asm;

/// Not 0 if the calling thread has a shadow stack.
pub(crate) fn shadow_stack_pointer() -> u64 {
    let disabled: u64;
    // SAFETY: CHKFEAT, by its number as a hint, clears the bit of an enabled feature in x16; older processors take it
    // for a NOP, which leaves the bit.
    unsafe { asm!("hint #40", inout("x16") 1_u64 => disabled, options(nomem, nostack, preserves_flags)) };
    disabled ^ 1
}
