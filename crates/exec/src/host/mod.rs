//! What differs from one processor to the next: the control words of the floating-point unit, which belong to a task.

#[cfg(target_arch = "aarch64")]
mod fpu_aarch64;
#[cfg(target_arch = "x86_64")]
mod fpu_x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use fpu_aarch64::ControlWords;
#[cfg(target_arch = "x86_64")]
pub(crate) use fpu_x86_64::ControlWords;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the executive knows the floating-point control words of x86_64 and aarch64 only");
