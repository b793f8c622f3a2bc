//! [`Instant`]: a moment on the scale of a time base.

use std::fmt;
use std::ops::{Add, Sub};

use hairspring_machine::{Nanos, Ticks};

/// Which unbroken stretch of a time base an instant belongs to.
///
/// A suspend, a step of the kernel's clock or a counter that lost its trust ends an epoch; instants before and after
/// cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch(pub(crate) u32);

impl Epoch {
    /// The epoch of a scale whose first look at the counter read this. Two hardly ever begin at the same tick, so their instants do not
    /// mix unnoticed.
    pub(crate) fn beginning_at(tick: Ticks) -> Self {
        Self((tick.raw().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32)
    }

    /// Its number, for languages that hold an instant as numbers.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A moment, to the nanosecond, on the scale of the [`Timebase`](crate::Timebase) that issued it. The scale is that of
/// `CLOCK_MONOTONIC`, within the bounds that the time base states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instant {
    pub(crate) nanos: i64,
    pub(crate) epoch: Epoch,
}

/// Two instants of different epochs have no known distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochMismatch;

impl fmt::Display for EpochMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the instants belong to different epochs (suspend, clock step or another time base between them)")
    }
}

impl std::error::Error for EpochMismatch {}

impl Instant {
    /// How much later this instant is than `earlier`; negative if it is earlier. Saturates.
    ///
    /// # Errors
    /// The two belong to different epochs.
    pub fn since(self, earlier: Self) -> Result<Nanos, EpochMismatch> {
        if self.epoch == earlier.epoch {
            Ok(Nanos::new(self.nanos.saturating_sub(earlier.nanos)))
        } else {
            Err(EpochMismatch)
        }
    }

    /// The epoch it belongs to.
    pub fn epoch(self) -> Epoch {
        self.epoch
    }

    /// The reading of `CLOCK_MONOTONIC` that this instant stands for, within the bounds that its time base states.
    pub fn as_monotonic(self) -> Nanos {
        Nanos::new(self.nanos)
    }
}

impl Add<Nanos> for Instant {
    type Output = Self;
    /// Saturates at the end of the scale.
    fn add(self, span: Nanos) -> Self {
        Self { nanos: self.nanos.saturating_add(span.count()), ..self }
    }
}

impl Sub<Nanos> for Instant {
    type Output = Self;
    /// Saturates at the end of the scale.
    fn sub(self, span: Nanos) -> Self {
        Self { nanos: self.nanos.saturating_sub(span.count()), ..self }
    }
}
