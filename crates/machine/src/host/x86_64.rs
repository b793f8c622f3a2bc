//! x86-64 under every system: the time-stamp counter, and what CPUID states about it.
//!
//! `lfence; rdtsc` is the ordered read: LFENCE lets no later instruction start before all earlier ones have completed
//! (Intel SDM vol. 3, "Time-Stamp Counter"; AMD since Linux and Windows set the serializing bit). It is what the
//! kernels themselves use.

use std::arch::x86_64::{_mm_lfence, _rdtsc};

use raw_cpuid::{CpuId, CpuIdReader};

use crate::{PublishedRate, Ticks};

pub(super) const COUNTER_NAME: &str = "tsc";

#[inline(always)]
pub(super) fn ticks() -> Ticks {
    // SAFETY: RDTSC exists on every x86-64 CPU; if the process was forbidden to read it (PR_SET_TSC on Linux), the
    // kernel ends the process with SIGSEGV, which is no memory error, and `counter_readable` reports it beforehand.
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
    is_invariant(&CpuId::new())
}

fn is_invariant(cpuid: &CpuId<impl CpuIdReader>) -> bool {
    cpuid.get_advanced_power_mgmt_info().is_some_and(|info| info.has_invariant_tsc())
}

/// The hypervisor's own name, from CPUID 4000_0000h.
pub(super) fn hypervisor() -> Option<String> {
    hypervisor_of(&CpuId::new())
}

fn hypervisor_of(cpuid: &CpuId<impl CpuIdReader>) -> Option<String> {
    let info = cpuid.get_hypervisor_info()?;
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
    rates_of(&CpuId::new())
}

fn rates_of(cpuid: &CpuId<impl CpuIdReader>) -> Vec<PublishedRate> {
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
    cpuid
        .get_tsc_info()
        .and_then(|info| info.tsc_frequency())
        .map(|hz| PublishedRate { source: "CPUID leaf 0x15", rate_hz: hz as f64, step_hz: 1.0 })
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host, Machine};
    use raw_cpuid::{CpuIdReaderNative, CpuIdResult};

    /// A CPU whose leaves, each as EAX, EBX, ECX and EDX, are these; all others are zero.
    fn cpu<const LEAVES: usize>(leaves: [(u32, [u32; 4]); LEAVES]) -> CpuId<impl CpuIdReader> {
        CpuId::with_cpuid_reader(move |leaf: u32, _| {
            let (_, [eax, ebx, ecx, edx]) = leaves.into_iter().find(|(other, _)| *other == leaf).unwrap_or_default();
            CpuIdResult { eax, ebx, ecx, edx }
        })
    }

    /// The bit of leaf 1, ECX, by which a hypervisor shows that it is there.
    const GUEST: (u32, [u32; 4]) = (1, [0, 0, 1 << 31, 0]);
    const LEAVES_TO_15: (u32, [u32; 4]) = (0, [0x15, 0, 0, 0]);

    fn words(name: &[u8; 12]) -> [u32; 3] {
        [0, 4, 8].map(|at| u32::from_le_bytes([name[at], name[at + 1], name[at + 2], name[at + 3]]))
    }

    /// A guest whose hypervisor has this name and leaves up to this one.
    fn hypervisor_leaf(most: u32, name: &[u8; 12]) -> (u32, [u32; 4]) {
        let [b, c, d] = words(name);
        (0x4000_0000, [most, b, c, d])
    }

    #[test]
    fn the_counter_is_invariant_if_the_cpu_says_so() {
        let extended = (0x8000_0000, [0x8000_0007, 0, 0, 0]);
        assert!(is_invariant(&cpu([extended, (0x8000_0007, [0, 0, 0, 1 << 8])])));
        assert!(!is_invariant(&cpu([extended, (0x8000_0007, [0, 0, 0, !(1 << 8)])])));
        assert!(!is_invariant(&cpu([])));
    }

    #[test]
    fn a_hypervisor_is_known_by_its_name_or_named_as_it_says() {
        let named = |name| hypervisor_of(&cpu([LEAVES_TO_15, GUEST, hypervisor_leaf(0x4000_0001, name)]));
        assert_eq!(named(b"KVMKVMKVM\0\0\0").as_deref(), Some("KVM"));
        assert_eq!(named(b"My own VMM!!").as_deref(), Some("MyownVMM!!"));
        assert_eq!(hypervisor_of(&cpu([LEAVES_TO_15])), None);
    }

    #[test]
    fn bare_metal_states_its_rate_as_a_ratio_to_its_crystal() {
        let rates = |denominator, numerator, crystal| {
            let stated = rates_of(&cpu([LEAVES_TO_15, (0x15, [denominator, numerator, crystal, 0])]));
            stated.iter().map(|rate| (rate.source, rate.rate_hz, rate.step_hz)).collect::<Vec<_>>()
        };
        assert_eq!(rates(2, 216, 24_000_000), [("CPUID leaf 0x15", 2.592e9, 1.0)]);
        for (denominator, numerator, crystal) in [(0, 216, 24_000_000), (2, 0, 24_000_000), (2, 216, 0)] {
            assert_eq!(rates(denominator, numerator, crystal), []);
        }
    }

    #[test]
    fn under_a_hypervisor_only_its_own_leaf_states_a_rate() {
        let rates = |most, khz| {
            let host = (0x15, [2, 216, 24_000_000, 0]);
            let leaf = hypervisor_leaf(most, b"KVMKVMKVM\0\0\0");
            let stated = rates_of(&cpu([LEAVES_TO_15, GUEST, host, leaf, (0x4000_0010, [khz, 0, 0, 0])]));
            stated.iter().map(|rate| (rate.source, rate.rate_hz, rate.step_hz)).collect::<Vec<_>>()
        };
        assert_eq!(rates(0x4000_0010, 2_596_122), [("hypervisor leaf 0x40000010", 2.596_122e9, 1e3)]);
        assert_eq!(rates(0x4000_0010, 0), []);
        assert_eq!(rates(0x4000_0001, 2_596_122), []);
    }

    #[test]
    fn this_cpu_is_asked() {
        let native = CpuId::with_cpuid_reader(CpuIdReaderNative);
        assert_eq!((invariant(), hypervisor()), (is_invariant(&native), hypervisor_of(&native)));
        assert_eq!(published_rates(), rates_of(&native));
    }

    /// Twenty divisions of which each needs the result of the one before, in so few instructions that a CPU has begun
    /// what comes after them long before they have ended.
    #[inline(always)]
    fn divide(value: f64, by: f64) -> f64 {
        let value = value / by / by / by / by / by / by / by / by / by / by;
        value / by / by / by / by / by / by / by / by / by / by
    }

    /// The work takes its whole time before a second look at the counter only if that look waits for it. Both are
    /// measured in turn, a thousand times: a CPU changes its speed meanwhile, and some counters move in steps of a
    /// sixth of this work.
    #[test]
    fn a_read_behind_a_fence_waits_for_the_work_before_it() {
        const ROUNDS: i64 = 20;
        let by = std::hint::black_box(1.01);
        let alone = || {
            let start = ticks_ordered();
            std::hint::black_box((0..ROUNDS).fold(1.0, |value, _| divide(value, by)));
            ticks_ordered().since(start) / ROUNDS
        };
        let median = |mut ticks: Vec<i64>| {
            ticks.sort_unstable();
            ticks[ticks.len() / 2]
        };
        let check = |read: fn() -> Ticks| {
            let waited = || {
                let start = ticks_ordered();
                std::hint::black_box(divide(std::hint::black_box(1.0), by));
                read().since(start)
            };
            let (alone, waited): (Vec<i64>, Vec<i64>) = (0..1_000).map(|_| (alone(), waited())).unzip();
            let (alone, waited) = (median(alone), median(waited));
            assert!(waited * 3 > alone * 2, "{waited} ticks for what takes {alone}");
        };
        check(ticks_ordered);
        check(|| Host.ticks_ordered());
        check(|| {
            Host.fence();
            Host.ticks()
        });
    }
}
