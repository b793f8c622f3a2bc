//! [`IdleLatency`]: keeps idle CPUs from states that take long to leave.
//!
//! The kernel's PM QoS interface, `/dev/cpu_dma_latency`: a process that writes a number of microseconds to the file
//! and keeps it open limits the exit latency of all CPUs. The lowest number of all holders is in force. The kernel
//! drops the limit when the last descriptor is closed, so it cannot outlive its holders. Source:
//! Documentation/power/pm_qos_interface.rst of the kernel.

use std::fs::File;
use std::io::{self, Read};

use hairspring_machine::{Host, IdleLimit, Machine, Nanos, Refused};
use rustix::io::FdFlags;

/// The device that takes the limit.
pub const IDLE_DEVICE: &str = "/dev/cpu_dma_latency";

/// A limit on the exit latency of all CPUs, in force until it is dropped.
#[derive(Debug)]
pub struct IdleLatency(IdleLimit);

impl IdleLatency {
    /// Limits the exit latency of all CPUs to `most_us` microseconds. 0 keeps them out of all idle states: they poll.
    ///
    /// # Errors
    /// The device is missing, or the caller may not write to it: it belongs to root unless a udev rule changes that.
    pub fn hold(most_us: u32) -> Result<Self, Refused> {
        Host.limit_idle(Nanos::from_micros(i64::from(most_us))).map(Self)
    }

    /// Lets programs that this process starts inherit the limit: it lasts until the last of them has ended.
    ///
    /// # Errors
    /// The system refused to change the descriptor.
    pub(crate) fn let_children_inherit(&self) -> io::Result<()> {
        self.0.file().map_or(Ok(()), |file| Ok(rustix::io::fcntl_setfd(file, FdFlags::empty())?))
    }

    /// The limit in force, in microseconds, of any holder; `None` if the kernel has no limit.
    ///
    /// # Errors
    /// The device is missing, or the caller may not read it.
    pub fn in_force() -> io::Result<Option<u32>> {
        let mut bytes = [0; 4];
        File::open(IDLE_DEVICE)?.read_exact(&mut bytes)?;
        Ok(limit(i32::from_ne_bytes(bytes)))
    }
}

/// `PM_QOS_CPU_LATENCY_DEFAULT_VALUE`, 2,000 s: the kernel's value without any limit.
const NO_LIMIT_US: i32 = 2_000_000_000;

fn limit(shown_us: i32) -> Option<u32> {
    u32::try_from(shown_us).ok().filter(|_| shown_us != NO_LIMIT_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_default_is_no_limit() {
        assert_eq!(limit(2_000_000_000), None);
        assert_eq!(limit(0), Some(0));
        assert_eq!(limit(20), Some(20));
        assert_eq!(limit(-1), None);
    }
}
