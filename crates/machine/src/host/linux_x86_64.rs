//! Linux on x86-64: the time-stamp counter, as `x86_64.rs` reads it, the thread pointer, the sentinel's section.

use std::arch::asm;

use super::sentinel::Descriptor;
pub(super) use super::x86_64::{
    COUNTER_NAME, fence, hypervisor, invariant, published_rates, relax, ticks, ticks_ordered,
};

/// The kernel lists `constant_tsc` and `nonstop_tsc` where they hold.
pub(super) const ALWAYS_CONSTANT: bool = false;

/// The thread pointer: where glibc's thread control block begins.
#[inline(always)]
pub(super) fn thread_pointer() -> *mut u8 {
    let pointer;
    // SAFETY: the x86-64 ABI keeps the thread pointer itself at %fs:0, readable in every thread.
    unsafe { asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags)) };
    pointer
}

// A critical section that no thread ever enters, for the rseq sentinel. The four bytes before the abort address are
// glibc's RSEQ_SIG for x86; the kernel checks them before it believes the descriptor.
std::arch::global_asm!(
    ".pushsection .text.hairspring_sentinel, \"ax\", @progbits",
    ".balign 16",
    ".long 0x53053053",
    ".hidden hairspring_sentinel_abort",
    ".globl hairspring_sentinel_abort",
    "hairspring_sentinel_abort:",
    "ud2",
    ".hidden hairspring_sentinel_start",
    ".globl hairspring_sentinel_start",
    "hairspring_sentinel_start:",
    "ud2",
    ".popsection",
);

// SAFETY: both symbols are defined by the assembly above; they are only used as addresses and never called.
unsafe extern "C" {
    fn hairspring_sentinel_abort();
    fn hairspring_sentinel_start();
}

pub(super) static SENTINEL: Descriptor = Descriptor::new(hairspring_sentinel_start, 2, hairspring_sentinel_abort);

/// Whether this process may read the counter.
pub(super) fn counter_readable() -> bool {
    let mut mode: libc::c_int = 0;
    // SAFETY: PR_GET_TSC writes one int to the address given, which is that of `mode`.
    let result = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) };
    result != 0 || mode == libc::PR_TSC_ENABLE
}

#[cfg(test)]
mod tests {
    use crate::{Host, Machine, Nanos};

    /// Lets the calling thread read the counter, or not.
    fn allow(mode: libc::c_int) -> bool {
        // SAFETY: PR_SET_TSC takes a plain number, and concerns the calling thread only.
        unsafe { libc::prctl(libc::PR_SET_TSC, mode) == 0 }
    }

    #[test]
    fn a_counter_that_the_thread_may_not_read_is_not_read() {
        let alone = std::thread::spawn(|| {
            let before = Host.counter_evidence();
            // Meanwhile nothing may look at a clock: that would read the counter and end the process.
            let forbidden = allow(libc::PR_TSC_SIGSEGV);
            let during = Host.counter_evidence();
            allow(libc::PR_TSC_ENABLE);
            (before, during, forbidden)
        });
        let (before, during, forbidden) = alone.join().expect("it ends well");
        assert!(before.readable && before.read_cost < Nanos::MAX, "{before:?}");
        if !forbidden {
            let test = "host::linux_x86_64::tests::a_counter_that_the_thread_may_not_read_is_not_read";
            return testing::skip(test, "this kernel cannot forbid it");
        }
        assert!(!during.readable && during.read_cost == Nanos::MAX, "{during:?}");
    }
}
