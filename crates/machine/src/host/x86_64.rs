//! x86-64 under every system: the time-stamp counter, and what CPUID states about it.
//!
//! `lfence; rdtsc` is the ordered read: LFENCE lets no later instruction start before all earlier ones have completed
//! (Intel SDM vol. 3, "Time-Stamp Counter"; AMD since Linux and Windows set the serializing bit). It is what the kernels
//! themselves use.

use std::arch::x86_64::{_mm_lfence, _rdtsc};

use crate::{PublishedRate, Ticks};

pub(super) const COUNTER_NAME: &str = "tsc";

#[inline(always)]
pub(super) fn ticks() -> Ticks {
    // SAFETY: RDTSC exists on every x86-64 CPU; if the process was forbidden to read it (PR_SET_TSC on Linux), the kernel
    // ends the process with SIGSEGV, which is no memory error, and `counter_readable` reports it beforehand.
    Ticks::new(unsafe { _rdtsc() })
}

#[inline(always)]
pub(super) fn ticks_ordered() -> Ticks {
    fence();
    ticks()
}

#[inline(always)]
pub(super) fn fence() {
    // SAFETY: LFENCE is part of SSE2, which every x86-64 CPU has; it touches no memory.
    unsafe { _mm_lfence() };
}

#[inline(always)]
pub(super) fn relax() {
    std::hint::spin_loop();
}

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
