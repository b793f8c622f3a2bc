//! Control word of aarch64: FPCR. The switch between stacks does not save it.
#![expect(unsafe_code, reason = "reads and loads a control register in assembly")]

use std::arch::asm;

/// Rounding, traps, flush to zero: what a task set for itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ControlWords {
    fpcr: u64,
}

impl ControlWords {
    /// The control word in force.
    #[inline(always)]
    pub(crate) fn read() -> Self {
        let fpcr: u64;
        // SAFETY: reads a register that every process may read.
        unsafe { asm!("mrs {}, fpcr", out(reg) fpcr, options(nomem, nostack, preserves_flags)) };
        Self { fpcr }
    }

    /// Puts it in force, where `in_force` is, if it differs.
    #[inline(always)]
    pub(crate) fn put_in_force(self, in_force: Self) {
        if in_force != self {
            // SAFETY: the word was read from this processor, so no reserved bit is set.
            unsafe { asm!("msr fpcr, {}", in(reg) self.fpcr, options(nomem, nostack, preserves_flags)) };
        }
    }
}
