//! [`Nanos`]: a span of time in nanoseconds, with its arithmetic; how people write it and read it.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};
use std::str::FromStr;
use std::time::Duration;

/// A span of time: a signed number of nanoseconds, up to ±292 years.
///
/// Arithmetic saturates at the ends of the range and never wraps. [`checked_add`](Self::checked_add),
/// [`checked_sub`](Self::checked_sub) and [`checked_mul`](Self::checked_mul) return `None` instead. Division rounds
/// towards zero and panics on a division by zero, as it does for integers.
///
/// A reading of a kernel clock other than `CLOCK_MONOTONIC` is also given as `Nanos`: the span since that clock's zero.
/// An absolute time on the scale of `CLOCK_MONOTONIC` is an [`Instant`](crate::Instant).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(i64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span, about 292 years.
    pub const MAX: Self = Self(i64::MAX);

    /// A span in nanoseconds.
    pub const fn new(nanos: i64) -> Self {
        Self(nanos)
    }

    /// A span in microseconds; saturates.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// A span in milliseconds; saturates.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// A span in seconds; saturates.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// A span from seconds as a floating-point number, rounded to the nearest nanosecond.
    ///
    /// # Errors
    /// NaN, an infinite number, or one beyond ±292 years.
    pub fn try_from_secs_f64(secs: f64) -> Result<Self, DurationError> {
        if secs.is_nan() {
            return Err(DurationError::NotANumber);
        }
        let nanos = secs * 1e9;
        // `i64::MAX as f64` rounds up to 2⁶³, hence the strict comparison.
        if nanos.abs() < i64::MAX as f64 { Ok(Self(nanos.round() as i64)) } else { Err(DurationError::TooLong) }
    }

    /// The number of nanoseconds.
    pub const fn count(self) -> i64 {
        self.0
    }

    /// The span in seconds, rounded to what a floating-point number can hold.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whether the span is negative.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// The span without its sign; saturates.
    #[must_use]
    pub const fn abs(self) -> Self {
        Self(self.0.saturating_abs())
    }

    /// The sum; none beyond ±292 years.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The difference; none beyond ±292 years.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// The span scaled by a whole number; none beyond ±292 years.
    #[must_use]
    pub fn checked_mul(self, factor: i64) -> Option<Self> {
        self.0.checked_mul(factor).map(Self)
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for Nanos {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Mul<i64> for Nanos {
    type Output = Self;
    fn mul(self, factor: i64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Mul<Nanos> for i64 {
    type Output = Nanos;
    fn mul(self, span: Nanos) -> Nanos {
        span * self
    }
}

impl Div<i64> for Nanos {
    type Output = Self;
    fn div(self, divisor: i64) -> Self {
        Self(self.0.saturating_div(divisor))
    }
}

impl Div for Nanos {
    type Output = i64;
    /// How many times the right span fits into the left one.
    fn div(self, other: Self) -> i64 {
        self.0.saturating_div(other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Nanos {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl MulAssign<i64> for Nanos {
    fn mul_assign(&mut self, factor: i64) {
        *self = *self * factor;
    }
}

impl DivAssign<i64> for Nanos {
    fn div_assign(&mut self, divisor: i64) {
        *self = *self / divisor;
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

impl<'s> Sum<&'s Nanos> for Nanos {
    fn sum<I: Iterator<Item = &'s Self>>(spans: I) -> Self {
        spans.copied().sum()
    }
}

impl From<Duration> for Nanos {
    /// Saturates at 292 years.
    fn from(duration: Duration) -> Self {
        Self(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl TryFrom<Nanos> for Duration {
    type Error = DurationError;
    /// Refuses a negative span. Where a negative span means "no time", write `.unwrap_or_default()`.
    fn try_from(span: Nanos) -> Result<Self, DurationError> {
        u64::try_from(span.0).map(Self::from_nanos).map_err(|_| DurationError::Negative { span })
    }
}

/// The units that people write, with their length in nanoseconds. The first name of each length is the one printed.
const UNITS: [(&str, i64); 9] = [
    ("ns", 1),
    ("µs", 1_000),
    ("us", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

impl fmt::Display for Nanos {
    /// The span as people write it, with up to three decimals and without loss of the unit: `1.5 ms`, `250 µs`,
    /// `-3 ns`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        let (unit, length) = match magnitude {
            0..1_000 => ("ns", 1),
            1_000..1_000_000 => ("µs", 1_000),
            1_000_000..1_000_000_000 => ("ms", 1_000_000),
            _ => ("s", 1_000_000_000),
        };
        let text = format!("{:.3}", self.0 as f64 / f64::from(length));
        let text = text.trim_end_matches('0').trim_end_matches('.');
        f.pad(&format!("{text} {unit}"))
    }
}

impl FromStr for Nanos {
    type Err = DurationError;

    /// Reads a duration as people write it: a number and a unit, with or without a space between them (`250us`,
    /// `1.5 ms`, `2s`). Rounded to the nearest nanosecond.
    fn from_str(text: &str) -> Result<Self, DurationError> {
        let text = text.trim();
        let digits_end = text
            .char_indices()
            .find(|&(i, c)| c.is_alphabetic() && !is_exponent(text, i, c))
            .map_or(text.len(), |(i, _)| i);
        let (number, unit) = (text[..digits_end].trim(), text[digits_end..].trim());
        match text.to_ascii_lowercase().trim_start_matches(['+', '-']) {
            lower if lower.starts_with("nan") => return Err(DurationError::NotANumber),
            lower if lower.starts_with("inf") => return Err(DurationError::TooLong),
            _ => {}
        }
        let value: f64 = number.parse().map_err(|_| DurationError::NoNumber)?;
        if unit.is_empty() {
            return Err(DurationError::NoUnit { number: number.to_owned() });
        }
        let (_, length) = UNITS
            .into_iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(|| DurationError::UnknownUnit { unit: unit.to_owned() })?;
        // A whole number stays exact: only fractions go through floating point.
        if let Ok(whole) = number.parse::<i64>() {
            return whole.checked_mul(length).map(Self).ok_or(DurationError::TooLong);
        }
        Self::try_from_secs_f64(value * (length as f64 / 1e9))
    }
}

/// Whether the letter at `index` is the `e` of a number like `1e-3`.
fn is_exponent(text: &str, index: usize, letter: char) -> bool {
    matches!(letter, 'e' | 'E')
        && text[index + 1..].trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit())
}

/// Why a text or number is not a duration, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DurationError {
    /// There is no number at the start.
    NoNumber,
    /// The number has no unit.
    NoUnit {
        /// The number as written.
        number: String,
    },
    /// The unit is not known.
    UnknownUnit {
        /// The unit as written.
        unit: String,
    },
    /// The number is NaN.
    NotANumber,
    /// The span is longer than 292 years.
    TooLong,
    /// The span is negative, and a [`Duration`] cannot be.
    Negative {
        /// The span.
        span: Nanos,
    },
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumber => write!(f, "no number found: write a number and a unit, like 250us, 1.5ms or 2s"),
            Self::NoUnit { number } => write!(f, "no unit: write {number}ns, {number}us, {number}ms or {number}s"),
            Self::UnknownUnit { unit } => {
                write!(f, "unknown unit '{unit}': use ns, us, ms, s, min, h or d, as in 1.5ms")
            }
            Self::NotANumber => write!(f, "NaN is not a duration: write a number and a unit, like 250us"),
            Self::TooLong => write!(f, "longer than 292 years: write a finite duration, like 2s"),
            Self::Negative { span } => write!(f, "{span} is negative: a duration is zero or more"),
        }
    }
}

impl std::error::Error for DurationError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(text: &str, nanos: i64) {
        assert_eq!(text.parse(), Ok(Nanos::new(nanos)), "{text:?}");
    }

    #[track_caller]
    fn refuses(text: &str, hint: &str) {
        let said = text.parse::<Nanos>().expect_err(text).to_string();
        assert!(said.contains(hint), "{text:?} said {said:?}, without {hint:?}");
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        reads("250us", 250_000);
        reads("250 µs", 250_000);
        reads("1.5ms", 1_500_000);
        reads("2s", 2_000_000_000);
        reads("1e-3s", 1_000_000);
        reads("1E3ns", 1_000);
        reads("9223372036854775807ns", i64::MAX);
        reads("-3ns", -3);
        reads("0.4ns", 0);
        reads("1min", 60_000_000_000);
    }

    #[test]
    fn a_bad_duration_says_what_to_write_instead() {
        refuses("", "no number");
        refuses("ms", "no number");
        refuses("10", "10us");
        refuses("10 lightyears", "unknown unit 'lightyears'");
        refuses("nan", "NaN");
        refuses("NaNms", "NaN");
        refuses("inf", "292 years");
        refuses("-infinity s", "292 years");
        refuses("1e300s", "292 years");
        refuses("9223372036854775807us", "292 years");
        refuses("1.2.3ms", "no number");
    }

    #[test]
    fn spans_print_in_the_unit_that_fits() {
        for (nanos, text) in
            [(0, "0 ns"), (999, "999 ns"), (1_500, "1.5 µs"), (-2_000_000, "-2 ms"), (60_000_000_000, "60 s")]
        {
            assert_eq!(Nanos::new(nanos).to_string(), text);
        }
    }

    #[test]
    fn spans_calculate_as_numbers_do() {
        let mut span = Nanos::new(7);
        assert_eq!((span + span, span - Nanos::new(9), -span), (Nanos::new(14), Nanos::new(-2), Nanos::new(-7)));
        assert_eq!(
            (span * 3, 3 * span, span / 2, Nanos::new(15) / span),
            (Nanos::new(21), Nanos::new(21), Nanos::new(3), 2)
        );
        span += Nanos::new(3);
        span *= 4;
        span -= Nanos::new(10);
        span /= 3;
        assert_eq!(span, Nanos::new(10));
        assert_eq!(([span, span].iter().sum::<Nanos>(), [span].into_iter().sum::<Nanos>()), (Nanos::new(20), span));
        assert_eq!((-span).abs(), span);
    }

    #[test]
    fn a_negative_span_is_no_duration_of_the_standard_library() {
        assert_eq!(Duration::try_from(Nanos::new(5)), Ok(Duration::from_nanos(5)));
        let error = Duration::try_from(Nanos::new(-5)).expect_err("negative");
        assert_eq!(error.to_string(), "-5 ns is negative: a duration is zero or more");
        assert_eq!(Nanos::from(Duration::from_nanos(5)), Nanos::new(5));
        assert_eq!(Nanos::from(Duration::MAX), Nanos::MAX);
    }

    #[test]
    fn arithmetic_saturates_and_never_wraps() {
        assert_eq!(Nanos::MAX + Nanos::new(1), Nanos::MAX);
        assert_eq!(Nanos::from_secs(i64::MAX), Nanos::MAX);
        assert_eq!((Nanos::MAX * 2, -2 * Nanos::MAX), (Nanos::MAX, Nanos::new(i64::MIN)));
        assert_eq!((Nanos::new(i64::MIN) / -1, Nanos::new(i64::MIN).abs()), (Nanos::MAX, Nanos::MAX));
        assert_eq!((Nanos::MAX.checked_add(Nanos::new(1)), Nanos::MAX.checked_mul(2)), (None, None));
        assert_eq!(Nanos::new(-2).checked_sub(Nanos::MAX), None);
        assert!(Nanos::try_from_secs_f64(f64::NAN).is_err());
        assert!(Nanos::try_from_secs_f64(9.3e9).is_err());
    }
}
