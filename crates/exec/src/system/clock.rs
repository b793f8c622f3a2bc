//! The executive's time on the host.

use hairspring_exec_core::Moment;
use hairspring_machine::{Clock, Host, Machine};

/// Reads `CLOCK_MONOTONIC`. Real-time safe.
#[inline]
pub(crate) fn monotonic() -> Moment {
    Moment::from_nanos(Host.read(Clock::Monotonic).count().cast_unsigned())
}
