//! [`Instant`]: the one absolute time, a reading on the scale of `CLOCK_MONOTONIC`.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Add, AddAssign, Sub, SubAssign};

use crate::{Nanos, Ticks};

/// Which scale issued an instant.
///
/// The kernel's own clock is one scale for the whole life of the system. A time base begins a new epoch when its scale
/// breaks: after a suspend, after a step of the clock, or when the kernel gives the counter up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch(u32);

impl Epoch {
    /// The epoch of every reading of the kernel's own clock.
    pub const KERNEL: Self = Self(0);

    /// The epoch of a scale whose first look at the counter read `tick`. Two scales hardly ever begin at the same tick,
    /// so this number identifies the scale. Never [`KERNEL`](Self::KERNEL).
    #[must_use]
    pub fn beginning_at(tick: Ticks) -> Self {
        Self(((tick.raw().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32).max(1))
    }

    /// Another epoch than this one, for a successor that began at the same tick. Never [`KERNEL`](Self::KERNEL).
    #[must_use]
    pub fn other(self) -> Self {
        Self(self.0.wrapping_add(1).max(1))
    }

    /// The number of the epoch, for languages that hold an instant as numbers.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// An absolute time in nanoseconds on the scale of `CLOCK_MONOTONIC`.
///
/// Instants are ordered and can be subtracted. Order, equality and difference look at the reading only. An instant also
/// remembers the [`Epoch`] that issued it: a scale that broke (by a suspend, a step of the clock) may have been wrong
/// just before, so [`since`](Self::since) and the delays refuse to mix two epochs.
///
/// Arithmetic with a span saturates at the ends of the scale (±292 years): a deadline beyond the scale lies at its end
/// and never in the past. [`checked_add`](Self::checked_add) returns `None` there.
///
/// ```
/// use hairspring_machine::{Host, Machine, Nanos};
/// let start = Host.monotonic();
/// let deadline = start + Nanos::from_millis(1);
/// Host.sleep_until(deadline);
/// assert!(Host.monotonic() >= deadline);
/// assert_eq!(deadline - start, Nanos::from_millis(1));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Instant {
    nanos: i64,
    epoch: Epoch,
}

/// Two instants of different epochs have no certain distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochMismatch;

impl fmt::Display for EpochMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "subtract instants: they belong to different epochs (a suspend, a clock step or another time base lies between them)",
        )
    }
}

impl std::error::Error for EpochMismatch {}

impl Instant {
    /// When the kernel's clock read zero: about when the system started.
    pub const BOOT: Self = Self::from_monotonic(Nanos::ZERO);

    /// The end of the scale, 292 years after [`BOOT`](Self::BOOT). A wait until then ends only for another reason.
    pub const END: Self = Self::from_monotonic(Nanos::MAX);

    /// The instant of a reading of `CLOCK_MONOTONIC`; its epoch is [`Epoch::KERNEL`].
    #[inline(always)]
    #[must_use]
    pub const fn from_monotonic(reading: Nanos) -> Self {
        Self { nanos: reading.count(), epoch: Epoch::KERNEL }
    }

    /// The instant of a reading that the scale of this epoch issued.
    #[inline(always)]
    #[must_use]
    pub const fn of_epoch(epoch: Epoch, reading: Nanos) -> Self {
        Self { nanos: reading.count(), epoch }
    }

    /// The reading of `CLOCK_MONOTONIC` that this instant stands for, within the bounds that its time base states.
    #[inline(always)]
    pub const fn as_monotonic(self) -> Nanos {
        Nanos::new(self.nanos)
    }

    /// The epoch that issued this instant.
    #[inline(always)]
    pub const fn epoch(self) -> Epoch {
        self.epoch
    }

    /// How much later this instant is than `earlier`; negative if it is earlier. Saturates. The operator `-` does the
    /// same without looking at the epochs.
    ///
    /// # Errors
    /// The two belong to different epochs.
    #[inline(always)]
    pub fn since(self, earlier: Self) -> Result<Nanos, EpochMismatch> {
        if self.epoch == earlier.epoch { Ok(self - earlier) } else { Err(EpochMismatch) }
    }

    /// The instant `span` later; none beyond the ends of the scale.
    #[must_use]
    pub fn checked_add(self, span: Nanos) -> Option<Self> {
        Some(Self { nanos: self.nanos.checked_add(span.count())?, ..self })
    }

    /// The instant `span` earlier; none beyond the ends of the scale.
    #[must_use]
    pub fn checked_sub(self, span: Nanos) -> Option<Self> {
        Some(Self { nanos: self.nanos.checked_sub(span.count())?, ..self })
    }
}

impl fmt::Display for Instant {
    /// The reading in seconds, to the nanosecond: `81234.000000500 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.nanos < 0 { "-" } else { "" };
        let nanos = self.nanos.unsigned_abs();
        write!(f, "{sign}{}.{:09} s", nanos / 1_000_000_000, nanos % 1_000_000_000)
    }
}

impl PartialEq for Instant {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Instant {}

impl PartialOrd for Instant {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Instant {
    #[inline(always)]
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Hash for Instant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl Sub for Instant {
    type Output = Nanos;
    /// How much later the left instant is than the right one. Saturates.
    #[inline(always)]
    fn sub(self, earlier: Self) -> Nanos {
        Nanos::new(self.nanos.saturating_sub(earlier.nanos))
    }
}

impl Add<Nanos> for Instant {
    type Output = Self;
    /// Saturates at the end of the scale.
    #[inline(always)]
    fn add(self, span: Nanos) -> Self {
        Self { nanos: self.nanos.saturating_add(span.count()), ..self }
    }
}

impl Sub<Nanos> for Instant {
    type Output = Self;
    /// Saturates at the end of the scale.
    #[inline(always)]
    fn sub(self, span: Nanos) -> Self {
        Self { nanos: self.nanos.saturating_sub(span.count()), ..self }
    }
}

impl AddAssign<Nanos> for Instant {
    fn add_assign(&mut self, span: Nanos) {
        *self = *self + span;
    }
}

impl SubAssign<Nanos> for Instant {
    fn sub_assign(&mut self, span: Nanos) {
        *self = *self - span;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLY: Instant = Instant::from_monotonic(Nanos::new(5));
    const LATE: Instant = Instant::from_monotonic(Nanos::new(9));

    #[test]
    fn instants_are_ordered_and_their_difference_is_a_span() {
        assert!(EARLY < LATE);
        assert_eq!((LATE - EARLY, EARLY - LATE), (Nanos::new(4), Nanos::new(-4)));
        assert_eq!((EARLY + Nanos::new(4), LATE - Nanos::new(4)), (LATE, EARLY));
        let mut moved = EARLY;
        moved += Nanos::new(10);
        moved -= Nanos::new(6);
        assert_eq!(moved, LATE);
    }

    #[test]
    fn arithmetic_with_instants_saturates_or_tells() {
        let (end, begin) = (EARLY + Nanos::MAX, EARLY - Nanos::MAX - Nanos::MAX);
        assert!(end > LATE && begin < EARLY);
        assert_eq!(end - begin, Nanos::MAX);
        assert_eq!((EARLY.checked_add(Nanos::MAX), begin.checked_sub(Nanos::new(1))), (None, None));
        assert_eq!(EARLY.checked_add(Nanos::new(4)), Some(LATE));
        assert_eq!(LATE.checked_sub(Nanos::new(4)), Some(EARLY));
    }

    #[test]
    fn equal_readings_are_equal_and_hash_alike_whatever_issued_them() {
        use std::hash::BuildHasher;
        let other = Instant::of_epoch(Epoch::beginning_at(Ticks::new(7)), Nanos::new(5));
        let state = std::hash::RandomState::new();
        assert_eq!((EARLY, state.hash_one(EARLY)), (other, state.hash_one(other)));
        assert_eq!((other.since(EARLY), (other + Nanos::new(1)).since(other)), (Err(EpochMismatch), Ok(Nanos::new(1))));
    }

    #[test]
    fn an_instant_prints_in_seconds() {
        assert_eq!(Instant::from_monotonic(Nanos::new(-1_000_000_500)).to_string(), "-1.000000500 s");
    }

    #[test]
    fn no_scale_gets_the_epoch_of_the_kernel() {
        assert_ne!(Epoch::beginning_at(Ticks::new(0)), Epoch::KERNEL);
        assert_ne!(Epoch(u32::MAX).other(), Epoch::KERNEL);
    }
}
