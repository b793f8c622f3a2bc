//! Control words of x86_64: MXCSR for SSE and AVX, the x87 control word. The System V ABI makes both callee-saved, and
//! the switch between stacks does not save them.
#![expect(unsafe_code, reason = "reads and loads control registers in assembly")]

use std::arch::asm;
use std::mem::MaybeUninit;

/// Rounding, masks of exceptions, flush to zero: what a task set for itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ControlWords {
    /// MXCSR in the lower half, the x87 word above it: one comparison for both.
    words: u64,
}

/// The status flags in MXCSR: sticky, not part of what a task sets, and not restored.
const MXCSR_FLAGS: u32 = 0x3f;

impl ControlWords {
    /// The control words in force.
    #[inline(always)]
    pub(crate) fn read() -> Self {
        let mut mxcsr = MaybeUninit::<u32>::uninit();
        let mut x87 = MaybeUninit::<u16>::uninit();
        // SAFETY: both instructions only store, in full, to the locals whose addresses they are given.
        unsafe {
            asm!(
                "stmxcsr [{mxcsr}]", "fnstcw [{x87}]",
                mxcsr = in(reg) mxcsr.as_mut_ptr(), x87 = in(reg) x87.as_mut_ptr(),
                options(nostack, preserves_flags)
            );
            Self { words: u64::from(mxcsr.assume_init() & !MXCSR_FLAGS) | u64::from(x87.assume_init()) << 32 }
        }
    }

    /// Puts these in force, where `in_force` are. Loads only words that differ, because a load costs more than the rest
    /// of a switch.
    #[inline(always)]
    pub(crate) fn put_in_force(self, in_force: Self) {
        if in_force != self {
            self.load();
        }
    }

    #[cold]
    #[inline(never)]
    fn load(self) {
        let mxcsr = self.words as u32;
        let x87 = (self.words >> 32) as u16;
        // SAFETY: the words were read from this processor, so no reserved bit is set; the compiler assumes nothing
        // about them beyond their default, which is what code outside tasks runs with.
        unsafe {
            asm!(
                "ldmxcsr [{mxcsr}]", "fldcw [{x87}]",
                mxcsr = in(reg) &raw const mxcsr, x87 = in(reg) &raw const x87,
                options(nostack, preserves_flags, readonly)
            );
        }
    }
}
