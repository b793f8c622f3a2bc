//! [`Host`]: this computer. The back-end is chosen here, once.
//!
//! A back-end is one file per system and CPU with equal inner names: `ticks`, `ticks_ordered`, `relax`,
//! `thread_pointer`, `SENTINEL`, `invariant`, `hypervisor`, `published_rates`, `counter_readable`, `COUNTER_NAME`.
//! What all Linux machines share is in `linux.rs`.

#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
#[path = "linux_x86_64.rs"]
#[expect(unsafe_code, reason = "on the ledger: counter, fence, thread pointer, prctl")]
mod arch;

#[cfg(all(target_os = "linux", target_arch = "aarch64", target_env = "gnu"))]
#[path = "linux_aarch64.rs"]
#[expect(unsafe_code, reason = "on the ledger: counter, barrier, thread pointer")]
mod arch;

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), target_env = "gnu")))]
compile_error!("Hairspring runs on Linux with glibc on x86-64 and aarch64; this target has no back-end yet");

#[expect(unsafe_code, reason = "on the ledger: calls of libc")]
mod linux;
mod linux_facts;
#[expect(unsafe_code, reason = "on the ledger: the area that a thread shares with the kernel")]
mod sentinel;

/// This computer. A value of no size: it can be copied about freely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host;
