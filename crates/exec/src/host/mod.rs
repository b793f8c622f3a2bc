//! Differences between processors: the control words of the floating-point unit, which belong to a task; shadow stacks;
//! prefetching.

#[cfg(target_arch = "aarch64")]
mod fetch_aarch64;
#[cfg(target_arch = "x86_64")]
mod fetch_x86_64;
#[cfg(target_arch = "aarch64")]
mod fpu_aarch64;
#[cfg(target_arch = "x86_64")]
mod fpu_x86_64;
#[cfg(target_arch = "aarch64")]
mod shadow_stack_aarch64;
#[cfg(target_arch = "x86_64")]
mod shadow_stack_x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use fetch_aarch64::fetch;
#[cfg(target_arch = "x86_64")]
pub(crate) use fetch_x86_64::fetch;
#[cfg(target_arch = "aarch64")]
pub(crate) use fpu_aarch64::ControlWords;
#[cfg(target_arch = "x86_64")]
pub(crate) use fpu_x86_64::ControlWords;
#[cfg(target_arch = "aarch64")]
pub(crate) use shadow_stack_aarch64::shadow_stack_pointer;
#[cfg(target_arch = "x86_64")]
pub(crate) use shadow_stack_x86_64::shadow_stack_pointer;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the executive knows the floating-point control words and shadow stacks of x86_64 and aarch64 only");
