//! The scale between ticks and nanoseconds: a point and a slope in fixed point.
//!
//! `nanos = origin_nanos + (ticks − origin_ticks) · slope`. The slope is a whole number and a 64-bit fraction. So the
//! upper half of one 64 × 64 → 128 bit multiplication converts, without a shift. Reading the time costs a counter read
//! and about a quarter of a nanosecond. The relative rounding error of the slope is below 10⁻¹⁵ for counters from 10
//! MHz to 100 GHz, a thousand times finer than any bound that a calibration can state.
//!
//! The origin lies [`REACH_BACK`] ticks before the given point. So readings from before that point have a distance that
//! is not negative, too, and the multiplication can be unsigned.

use hairspring_machine::{Nanos, Ticks};

/// Position of the binary point of `ticks_per_nano`, which lies below 2⁶³: at most 127 ticks in a nanosecond.
const SHIFT: u32 = 56;

/// The longest tick, that of a counter of 8 MHz.
const TICK_MOST_NS: i64 = 125;

/// How far before its point a scale reaches back, in ticks: 56 years at 2.6 GHz. A counter that was set back, even to
/// zero, shows a time in the past, at which nothing is due yet. Beyond the reach it would show a time far ahead, and
/// delays would end early. The arithmetic is modulo 2⁶⁴, so the length of the reach costs neither range nor precision.
const REACH_BACK: i64 = 1 << 62;

/// A linear relation between ticks and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    origin_ticks: Ticks,
    origin_nanos: i64,
    /// Nanoseconds per tick, rounded up: the whole part, in [0, 125], and the rest in 2⁻⁶⁴.
    nanos_per_tick: (u64, u64),
    /// Ticks per nanosecond, in 2⁻⁵⁶, rounded up, in [1, 2⁶³).
    ticks_per_nano: i64,
}

impl Scale {
    /// The scale on which `nanos` passed during `ticks`, through the given point. None if a slope does not fit: the
    /// counter is slower than 8 MHz or faster than 127 GHz, or a span is not positive.
    pub(crate) fn through(point: (Ticks, Nanos), ticks: i64, nanos: Nanos) -> Option<Self> {
        let (ticks, nanos) = (u64::try_from(ticks).ok()?, u64::try_from(nanos.count()).ok()?);
        if ticks == 0 || nanos == 0 || nanos / ticks >= TICK_MOST_NS.unsigned_abs() {
            return None;
        }
        // Both slopes are rounded up, so a conversion there and back never yields less.
        let ticks_per_nano = (u128::from(ticks) << SHIFT).div_ceil(u128::from(nanos));
        let fraction = (u128::from(nanos % ticks) << 64).div_ceil(u128::from(ticks));
        // Rounded up, the fraction is still below a whole, because there are fewer than 2⁶⁴ ticks.
        let nanos_per_tick = (nanos / ticks, fraction as u64);
        let ticks_per_nano = i64::try_from(ticks_per_nano).ok()?;
        let scale = Self { origin_ticks: point.0, origin_nanos: 0, nanos_per_tick, ticks_per_nano };
        Some(scale.moved_to(point.0, point.1))
    }

    /// The same slope through another point.
    pub(crate) fn moved_to(self, ticks: Ticks, nanos: Nanos) -> Self {
        let origin_nanos = nanos.count().wrapping_sub(self.nanos_over(REACH_BACK.unsigned_abs()).cast_signed());
        Self { origin_ticks: ticks.plus(-REACH_BACK), origin_nanos, ..self }
    }

    /// The position of a reading on the scale, rounded down. Wrong for readings from before the reach of the scale.
    #[inline(always)]
    pub(crate) fn nanos_at(&self, ticks: Ticks) -> i64 {
        let distance = ticks.since(self.origin_ticks).cast_unsigned();
        self.origin_nanos.wrapping_add(self.nanos_over(distance).cast_signed())
    }

    /// The length of `ticks` ticks, rounded towards zero.
    #[inline(always)]
    pub(crate) fn nanos_in(&self, ticks: i64) -> i64 {
        let nanos = self.nanos_over(ticks.unsigned_abs()).cast_signed();
        if ticks < 0 { -nanos } else { nanos }
    }

    /// The upper half of the product plus the whole part; wraps if the result does not fit 64 bits.
    #[inline(always)]
    fn nanos_over(&self, ticks: u64) -> u64 {
        let (whole, fraction) = self.nanos_per_tick;
        let upper = ((u128::from(ticks) * u128::from(fraction)) >> 64) as u64;
        ticks.wrapping_mul(whole).wrapping_add(upper)
    }

    /// The number of ticks that last at least `nanos`, even if the true rate is faster than ours by `bound` parts of
    /// 2⁶⁴.
    #[inline]
    pub(crate) fn ticks_for_at_least(&self, nanos: Nanos, bound: u64) -> i64 {
        let exact = i128::from(nanos.count()) * i128::from(self.ticks_per_nano);
        // Rounded up. The shift rounds down, also for negative spans; a division of 128 bits would be a call that takes
        // tens of nanoseconds.
        let ticks = (exact + ((1 << SHIFT) - 1)) >> SHIFT;
        // Saturating: a budget of `Nanos::MAX` with a bound of a half would not fit; far more than i64::MAX is left.
        let guard = (ticks.unsigned_abs().saturating_mul(u128::from(bound)) >> 64) as i128 + i128::from(bound > 0);
        i64::try_from(ticks + guard).unwrap_or(i64::MAX)
    }

    /// The counter's rate in hertz, for people.
    pub(crate) fn rate_hz(&self) -> f64 {
        self.ticks_per_nano as f64 / (1_u64 << SHIFT) as f64 * 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scale(rate_hz: i64) -> Scale {
        Scale::through((Ticks::new(7), Nanos::new(11)), rate_hz, Nanos::from_secs(1)).expect("rate in range")
    }

    proptest! {
        #[test]
        fn ticks_for_a_span_always_last_at_least_that_span(
            rate_hz in 10_000_000_i64..100_000_000_000, nanos in 0_i64..100_000_000_000, bound in 0_u64..1 << 50,
        ) {
            let scale = scale(rate_hz);
            let ticks = scale.ticks_for_at_least(Nanos::new(nanos), bound);
            prop_assert!(scale.nanos_in(ticks) >= nanos);
            // And by exact arithmetic, without the scale.
            prop_assert!(i128::from(ticks) * 1_000_000_000 >= i128::from(nanos) * i128::from(rate_hz));
        }

        #[test]
        fn conversion_is_monotonic_and_exact_to_a_nanosecond(
            rate_hz in 10_000_000_i64..100_000_000_000, ticks in -(1_i64 << 52)..1 << 52,
        ) {
            let scale = scale(rate_hz);
            let exact = (i128::from(ticks) * 1_000_000_000).div_euclid(i128::from(rate_hz));
            let at = scale.nanos_at(Ticks::new(7).plus(ticks)) - 11;
            // Readings from before the reach of the scale are not asked for.
            prop_assume!(ticks > -REACH_BACK);
            let error = i128::from(at) - exact;
            // Beyond 2⁵² ns (52 days) the slope's own rounding may show.
            prop_assume!(exact.abs() < 1 << 52);
            prop_assert!((-1..=1).contains(&error), "{error}");
            prop_assert!((i128::from(scale.nanos_in(ticks)) - exact).abs() <= 1);
            prop_assert!(scale.nanos_in(ticks + 1) >= scale.nanos_in(ticks));
            prop_assert!(scale.nanos_at(Ticks::new(8).plus(ticks)) - 11 >= at);
        }
    }

    #[test]
    fn a_scale_passes_through_its_origin_and_reaches_back_in_time() {
        let scale = scale(2_600_000_000);
        assert_eq!(scale.nanos_at(Ticks::new(7)), 11);
        for microseconds in [-4_000_000_000, -1, 1, 4_000_000_000] {
            let reading = scale.nanos_at(Ticks::new(7).plus(2600 * microseconds));
            // Rounded down at both ends.
            assert!((reading - 11 - 1000 * microseconds).abs() <= 1, "{reading}");
        }
    }

    #[test]
    fn spans_that_give_no_scale_are_refused() {
        let origin = (Ticks::new(0), Nanos::ZERO);
        assert!(Scale::through(origin, 0, Nanos::from_secs(1)).is_none());
        assert!(Scale::through(origin, 1_000, Nanos::ZERO).is_none());
        assert!(Scale::through(origin, 1_000_000, Nanos::from_secs(1)).is_none(), "1 MHz is too slow");
    }

    #[test]
    fn a_span_that_is_whole_ticks_has_no_tick_more_unless_the_rate_may_be_wrong() {
        let scale = scale(1_000_000_000);
        for nanos in [0, 1, 2, 999, 1_000_000] {
            assert_eq!(scale.ticks_for_at_least(Nanos::new(nanos), 0), nanos);
            assert_eq!(scale.ticks_for_at_least(Nanos::new(nanos), 1), nanos + 1);
        }
    }
}
