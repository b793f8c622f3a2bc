//! The shadow stack of x86_64 (CET): a copy of all return addresses that the processor keeps and compares at each
//! return.
#![expect(unsafe_code, reason = "reads a register in assembly")]

use std::arch::asm;

/// The calling thread's shadow-stack pointer; 0 if it has no shadow stack.
pub(crate) fn shadow_stack_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: reads a register of the thread; a processor or kernel without shadow stacks takes the instruction for a
    // NOP, which leaves the 0.
    unsafe { asm!("rdsspq {}", inout(reg) 0_u64 => pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}
