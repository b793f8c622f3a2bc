//! The stack pointer of the calling code, which shows whether that code is still on the stack that it began on.

#![expect(unsafe_code, reason = "a register is read by assembly")]

use std::arch::asm;

/// The stack pointer.
#[inline(always)]
pub(crate) fn stack_pointer() -> usize {
    let pointer: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it copies the stack pointer into a free register and touches nothing else.
    unsafe {
        asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: it copies the stack pointer into a free register and touches nothing else.
    unsafe {
        asm!("mov {}, sp", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    pointer
}
