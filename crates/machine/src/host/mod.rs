//! [`Host`]: this computer. The back-end is chosen here, once.
//!
//! On Linux a back-end is one file per CPU with equal inner names: `ticks`, `ticks_ordered`, `fence`, `relax`,
//! `thread_pointer`, `SENTINEL`, `invariant`, `hypervisor`, `published_rates`, `counter_readable`, `COUNTER_NAME`.
//! `linux.rs` holds the code for all Linux machines, with glibc or musl. musl does not register threads for rseq, so
//! there is no sentinel with it. Windows has one file, `windows_x86_64.rs`, and its facts beside it. `x86_64.rs` reads
//! what an x86-64 CPU states about itself under either system.

#[cfg(all(target_os = "linux", target_arch = "x86_64", any(target_env = "gnu", target_env = "musl")))]
#[expect(unsafe_code, reason = "on the ledger: thread pointer, prctl")]
mod linux_x86_64;
#[cfg(all(target_os = "linux", target_arch = "x86_64", any(target_env = "gnu", target_env = "musl")))]
use linux_x86_64 as arch;

#[cfg(all(target_os = "linux", target_arch = "aarch64", any(target_env = "gnu", target_env = "musl")))]
#[expect(unsafe_code, reason = "on the ledger: counter, barrier, thread pointer")]
mod linux_aarch64;
#[cfg(all(target_os = "linux", target_arch = "aarch64", any(target_env = "gnu", target_env = "musl")))]
use linux_aarch64 as arch;

#[cfg(not(any(
    all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        any(target_env = "gnu", target_env = "musl")
    ),
    all(target_os = "windows", target_arch = "x86_64")
)))]
compile_error!(
    "Hairspring runs on Linux with glibc or musl on x86-64 and aarch64, and on Windows on x86-64; this target has no back-end yet"
);

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "on the ledger: calls of libc")]
mod linux;
#[cfg(target_os = "linux")]
mod linux_facts;
#[cfg(target_os = "linux")]
mod linux_idle;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "on the ledger: the area that a thread shares with the kernel")]
mod sentinel;
#[cfg(any(target_os = "windows", test))]
mod windows_class;
#[cfg(target_os = "windows")]
#[expect(unsafe_code, reason = "on the ledger: calls of ntdll and kernel32, the page that the kernel shares")]
mod windows_facts;
#[cfg(any(target_os = "windows", test))]
mod windows_levels;
#[cfg(target_os = "windows")]
#[expect(unsafe_code, reason = "on the ledger: calls of kernel32")]
mod windows_x86_64;
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "on the ledger: counter and fence")]
mod x86_64;

thread_local! {
    static SETTINGS: crate::ThreadSettings = crate::ThreadSettings::default();
}

/// The wishes of the calling thread.
fn thread_settings() -> Option<crate::ThreadSettings> {
    SETTINGS.try_with(Clone::clone).ok()
}

/// This computer. It has no size and can be copied freely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host;
