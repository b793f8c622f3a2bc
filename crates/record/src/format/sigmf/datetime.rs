//! A time of day in the form that SigMF requires: RFC 3339, in UTC, with as many decimals as are known.

use hairspring_machine::Nanos;
use jiff::Timestamp;

/// Formats a moment that is known to `within`, for example `2026-11-21T15:44:43.000000001Z`. Decimals smaller than `within` are
/// left out. Works for any `Nanos`: 1677 to 2262.
pub(super) fn datetime(since_1970: Nanos, within: Nanos) -> String {
    let known = (1..=9_u32).take_while(|digits| within.count() <= 10_i64.pow(9 - digits)).count();
    // Every `Nanos` is within the range of a timestamp, so the default is never taken.
    let moment = Timestamp::from_nanosecond(since_1970.count().into()).unwrap_or_default();
    format!("{moment:.known$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `date --utc --date=@SECONDS`.
    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (1_709_251_200, "2024-03-01T00:00:00"),
            (1_795_276_483, "2026-11-21T15:54:43"),
            (4_107_542_400, "2100-03-01T00:00:00"),
            (-1, "1969-12-31T23:59:59"),
            (-9_223_372_036, "1677-09-21T00:12:44"),
            (9_223_372_036, "2262-04-11T23:47:16"),
        ] {
            assert_eq!(datetime(Nanos::from_secs(seconds), Nanos::ZERO), format!("{expected}.000000000Z"));
        }
        assert_eq!(datetime(Nanos::new(1), Nanos::new(1)), "1970-01-01T00:00:00.000000001Z");
    }

    #[test]
    fn no_more_decimals_are_written_than_are_known() {
        for (within, expected) in [
            (1, ".123456789"),
            (2, ".12345678"),
            (10, ".12345678"),
            (70, ".1234567"),
            (30_000_000, ".1"),
            (100_000_000, ".1"),
            (100_000_001, ""),
            (5_000_000_000, ""),
        ] {
            let written = datetime(Nanos::new(123_456_789), Nanos::new(within));
            assert_eq!(written, format!("1970-01-01T00:00:00{expected}Z"), "{within}");
        }
    }
}
