//! Differences between processors: setting floating-point control words.

#[cfg(target_arch = "x86_64")]
mod fpu_x86_64;
