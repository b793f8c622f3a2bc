//! A time of day as SigMF wants it: RFC 3339, in UTC, with as many decimals as are known.

use hairspring_machine::Nanos;

/// As `2026-11-21T15:44:43.000000001Z`, of a moment that is known to `within`: with the decimals that are larger than that. For
/// any `Nanos`: 1677 to 2262.
pub(super) fn datetime(since_1970: Nanos, within: Nanos) -> String {
    let (seconds, nanos) = (since_1970.count().div_euclid(1_000_000_000), since_1970.count().rem_euclid(1_000_000_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let decimals = format!("{nanos:09}");
    let known = (1..=9_u32).take_while(|digits| within.count() <= 10_i64.pow(9 - digits)).count();
    let point = if known > 0 { "." } else { "" };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{point}{}Z", &decimals[..known])
}

/// Year, month and day of the proleptic Gregorian calendar, so many days after 1970-01-01. The method is Howard Hinnant's
/// `civil_from_days`: years that begin in March, in eras of 400 years.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
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
