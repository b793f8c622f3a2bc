//! Linux on aarch64: the virtual counter `CNTVCT_EL0`.
//!
//! The architecture promises its constant rate and its agreement among the CPUs (Arm ARM, "The Generic Timer"), and
//! `CNTFRQ_EL0` states the rate that the firmware set. Hairspring measures the rate nevertheless, because the register
//! is only as correct as the firmware. Until now this file has run only under QEMU, whose counter has a step of a
//! microsecond.

use std::arch::asm;

use super::sentinel::Descriptor;
use crate::{PublishedRate, Ticks};

pub(super) const COUNTER_NAME: &str = "cntvct";
/// The architecture promises it.
pub(super) const ALWAYS_CONSTANT: bool = true;

#[inline(always)]
pub(super) fn ticks() -> Ticks {
    let raw;
    // SAFETY: Linux allows CNTVCT_EL0 in user mode on every aarch64 machine (it emulates it where an erratum forbids
    // it).
    unsafe { asm!("mrs {}, cntvct_el0", out(reg) raw, options(nomem, nostack, preserves_flags)) };
    Ticks::new(raw)
}

#[inline(always)]
pub(super) fn ticks_ordered() -> Ticks {
    fence();
    ticks()
}

#[inline(always)]
pub(super) fn fence() {
    // SAFETY: ISB only waits for earlier instructions; it is what orders a read of the counter.
    unsafe { asm!("isb", options(nostack, preserves_flags)) };
}

#[inline(always)]
pub(super) fn relax() {
    std::hint::spin_loop();
}

/// The thread pointer: where glibc's thread control block is anchored.
#[inline(always)]
pub(super) fn thread_pointer() -> *mut u8 {
    let pointer;
    // SAFETY: TPIDR_EL0 is readable in user mode and holds the thread pointer by the ABI.
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}

// A critical section that no thread ever enters, for the rseq sentinel. The word before the abort address is glibc's
// RSEQ_SIG for aarch64 (`brk #0x45e0`).
std::arch::global_asm!(
    ".pushsection .text.hairspring_sentinel, \"ax\", %progbits",
    ".balign 16",
    ".inst 0xd428bc00",
    ".hidden hairspring_sentinel_abort",
    ".globl hairspring_sentinel_abort",
    "hairspring_sentinel_abort:",
    "udf #0",
    ".hidden hairspring_sentinel_start",
    ".globl hairspring_sentinel_start",
    "hairspring_sentinel_start:",
    "udf #0",
    ".popsection",
);

// SAFETY: both symbols are defined by the assembly above; they are only used as addresses and never called.
unsafe extern "C" {
    fn hairspring_sentinel_abort();
    fn hairspring_sentinel_start();
}

pub(super) static SENTINEL: Descriptor = Descriptor::new(hairspring_sentinel_start, 4, hairspring_sentinel_abort);

/// Promised by the architecture.
pub(super) fn invariant() -> bool {
    true
}

/// The name of the hypervisor, if a file states it; the CPU has no instruction for it.
pub(super) fn hypervisor() -> Option<String> {
    let text = std::fs::read_to_string("/sys/hypervisor/type").ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Rate that the firmware wrote to `CNTFRQ_EL0`.
pub(super) fn published_rates() -> Vec<PublishedRate> {
    let hz: u64;
    // SAFETY: CNTFRQ_EL0 is readable in user mode wherever CNTVCT_EL0 is.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags)) };
    vec![PublishedRate { source: "CNTFRQ_EL0", rate_hz: hz as f64, step_hz: 1.0 }]
}

/// No switch forbids it.
pub(super) fn counter_readable() -> bool {
    true
}
