//! The executive's time on the host, and the two notations of it: [`Instant`] for users, [`Moment`] for the core.

use hairspring_exec_core::Moment;
use hairspring_machine::{Host, Instant, Machine, Nanos};

/// Reads `CLOCK_MONOTONIC`. Real-time safe.
#[inline]
pub(crate) fn monotonic() -> Moment {
    moment_of(Host.monotonic())
}

/// The core's notation of an instant. One before the clock's beginning becomes the beginning.
#[inline]
pub(crate) fn moment_of(instant: Instant) -> Moment {
    Moment::from_nanos(u64::try_from(instant.as_monotonic().count()).unwrap_or(0))
}

/// The instant of a moment of the core. One beyond 292 years becomes the end of that range.
#[inline]
pub(crate) fn instant_of(moment: Moment) -> Instant {
    Instant::from_monotonic(Nanos::new(i64::try_from(moment.as_nanos()).unwrap_or(i64::MAX)))
}
