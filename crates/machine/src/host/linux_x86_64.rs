//! Linux on x86-64: the time-stamp counter and what CPUID says of it.
//!
//! `lfence; rdtsc` is the ordered read: LFENCE lets no later instruction start before all earlier ones have completed
//! (Intel SDM vol. 3, "Time-Stamp Counter"; AMD since Linux sets the serializing bit). It is what the kernel itself uses.

use std::arch::asm;
use std::arch::x86_64::{_mm_lfence, _rdtsc};

use super::sentinel::Descriptor;
use crate::{PublishedRate, Ticks};

pub(super) const COUNTER_NAME: &str = "tsc";
/// The kernel lists `constant_tsc` and `nonstop_tsc` where they hold.
pub(super) const ALWAYS_CONSTANT: bool = false;

#[inline(always)]
pub(super) fn ticks() -> Ticks {
    // SAFETY: RDTSC exists on every x86-64 CPU; if the process was forbidden to read it (PR_SET_TSC), the kernel ends the
    // process with SIGSEGV, which is no memory error, and `counter_readable` reports it beforehand.
    Ticks::new(unsafe { _rdtsc() })
}

#[inline(always)]
pub(super) fn ticks_ordered() -> Ticks {
    // SAFETY: LFENCE is part of SSE2, which every x86-64 CPU has; it touches no memory.
    unsafe { _mm_lfence() };
    ticks()
}

#[inline(always)]
pub(super) fn relax() {
    std::hint::spin_loop();
}

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

/// Whether the CPU promises a TSC of constant rate: CPUID 8000_0007h, EDX bit 8.
pub(super) fn invariant() -> bool {
    raw_cpuid::CpuId::new().get_advanced_power_mgmt_info().is_some_and(|info| info.has_invariant_tsc())
}

/// The hypervisor's own name, from CPUID 4000_0000h.
pub(super) fn hypervisor() -> Option<String> {
    let info = raw_cpuid::CpuId::new().get_hypervisor_info()?;
    Some(match info.identify() {
        raw_cpuid::Hypervisor::Unknown(b, c, d) => {
            [b, c, d].iter().flat_map(|word| word.to_le_bytes()).filter(u8::is_ascii_graphic).map(char::from).collect()
        }
        known => format!("{known:?}"),
    })
}

/// Rates that CPUID states. Leaf 15h describes the host when a hypervisor passes it through, so it counts on bare metal
/// only; under a hypervisor leaf 4000_0010h does (in kHz).
pub(super) fn published_rates() -> Vec<PublishedRate> {
    let cpuid = raw_cpuid::CpuId::new();
    if let Some(info) = cpuid.get_hypervisor_info() {
        return info
            .tsc_frequency()
            .filter(|&khz| khz > 0)
            .map(|khz| PublishedRate {
                source: "hypervisor leaf 0x40000010",
                rate_hz: f64::from(khz) * 1e3,
                step_hz: 1e3,
            })
            .into_iter()
            .collect();
    }
    let rate = cpuid.get_tsc_info().filter(|info| info.numerator() > 0 && info.denominator() > 0);
    rate.and_then(|info| info.tsc_frequency())
        .map(|hz| PublishedRate { source: "CPUID leaf 0x15", rate_hz: hz as f64, step_hz: 1.0 })
        .into_iter()
        .collect()
}

/// Whether this process may read the counter.
pub(super) fn counter_readable() -> bool {
    let mut mode: libc::c_int = 0;
    // SAFETY: PR_GET_TSC writes one int to the address given, which is that of `mode`.
    let result = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) };
    result != 0 || mode == libc::PR_TSC_ENABLE
}
