//! A time of day in the form that SigMF requires: RFC 3339, in UTC, with as many decimals as are known.

use hairspring_machine::Nanos;
use hairspring_ring::units::Frames;
use jiff::Timestamp;

use super::About;

/// Formats a moment that is known to `within`, for example `2026-11-21T15:44:43.000000001Z`: with as many decimals as
/// leave the text within that distance. Works for any `Nanos`: 1677 to 2262.
pub fn datetime(since_1970: Nanos, within: Nanos) -> String {
    let known = (0..9_u32).take_while(|digits| within.count() < 10_i64.pow(9 - digits)).count();
    // Every `Nanos` is within the range of a timestamp, so the default is never taken.
    let moment = Timestamp::from_nanosecond(since_1970.count().into()).unwrap_or_default();
    format!("{moment:.known$}")
}

/// The time of day at which a frame was taken: the middle of the interval in which it was. `None` if the time of frame
/// 0 is unknown.
pub(super) fn taken(about: &About, first: Frames) -> Option<String> {
    // Computed from the source's own rate, if it is known. The first frame of an epoch has the time of the start.
    let origin = about.series.as_ref().map_or(0, |of| of.epoch_first.0);
    let first = first.0.checked_sub(origin);
    let since = match about.rate {
        Some(rate) => first.map(|first| rate.time_of(Frames(first))),
        None => (first == Some(0)).then_some(Nanos::ZERO),
    };
    // The middle of the interval in which frame 0 was taken.
    let middle = about.started_within.map(|within| {
        let half = Nanos::new(within.count() / 2);
        (about.started_realtime - half, within - half)
    });
    let (since, (middle, within)) = since.zip(middle)?;
    Some(datetime(middle.checked_add(since)?, within))
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
    fn decimals_that_are_not_known_are_left_out() {
        for (within, expected) in [
            (0, ".123456789"),
            (1, ".123456789"),
            (9, ".123456789"),
            (10, ".12345678"),
            (70, ".12345678"),
            (30_000_000, ".12"),
            (100_000_000, ".1"),
            (999_999_999, ".1"),
            (5_000_000_000, ""),
        ] {
            let written = datetime(Nanos::new(123_456_789), Nanos::new(within));
            assert_eq!(written, format!("1970-01-01T00:00:00{expected}Z"), "{within}");
        }
    }
}
