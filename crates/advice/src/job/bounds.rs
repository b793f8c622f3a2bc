//! Confidence limits of a share and of a rate, from counts.
//!
//! A share: Clopper and Pearson 1934, *The use of confidence or fiducial limits illustrated in the case of the
//! binomial*. A rate: Garwood 1936, *Fiducial limits for the Poisson distribution*. Both are exact, so they err on the
//! safe side. All limits are one-sided with [`CONFIDENCE`].

use statrs::distribution::{Beta, ContinuousCDF, Gamma};

/// The confidence of a limit.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// Upper limit of the share of misses, after `misses` of `events`.
pub(crate) fn share_at_most(misses: u64, events: u64) -> f64 {
    if misses >= events {
        return 1.0;
    }
    // Without misses the quantile has a closed form, which is exact for any number of events.
    if misses == 0 {
        return -((1.0 - CONFIDENCE).ln() / events as f64).exp_m1();
    }
    Beta::new((misses + 1) as f64, (events - misses) as f64).map_or(1.0, |beta| beta.inverse_cdf(CONFIDENCE))
}

/// Lower limit of the share of misses, after `misses` of `events`.
pub(crate) fn share_at_least(misses: u64, events: u64) -> f64 {
    if misses == 0 {
        return 0.0;
    }
    if misses >= events {
        return ((1.0 - CONFIDENCE).ln() / events as f64).exp();
    }
    Beta::new(misses as f64, (events - misses + 1) as f64).map_or(0.0, |beta| beta.inverse_cdf(1.0 - CONFIDENCE))
}

/// Upper limit of the average number of misses in a watched time, after `misses` were seen in it.
pub(crate) fn count_at_most(misses: u64) -> f64 {
    if misses == 0 {
        return -(1.0 - CONFIDENCE).ln();
    }
    Gamma::new((misses + 1) as f64, 1.0).map_or(f64::INFINITY, |gamma| gamma.inverse_cdf(CONFIDENCE))
}

/// Lower limit of the average number of misses in a watched time, after `misses` were seen in it.
pub(crate) fn count_at_least(misses: u64) -> f64 {
    if misses == 0 {
        return 0.0;
    }
    Gamma::new(misses as f64, 1.0).map_or(0.0, |gamma| gamma.inverse_cdf(1.0 - CONFIDENCE))
}

/// Number of events without a miss that show that at most `share` of all events are misses.
pub(crate) fn events_needed(share: f64) -> u64 {
    ((1.0 - CONFIDENCE).ln() / (-share).ln_1p()).ceil() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn limits_are_those_of_the_tables() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, 7.2.4.1: 4 of 20, 95 % one-sided: at most 0.401029, at least
        // 0.071354.
        assert!((share_at_most(4, 20) - 0.401_029).abs() < 1e-6, "{}", share_at_most(4, 20));
        assert!((share_at_least(4, 20) - 0.071_354).abs() < 1e-6, "{}", share_at_least(4, 20));
        // Poisson: none seen, at most 3.00; one 4.74; two 6.30; three 7.75.
        for (misses, most) in [(0, 2.996), (1, 4.744), (2, 6.296), (3, 7.754)] {
            assert!((count_at_most(misses) - most).abs() < 1e-3, "{misses}: {}", count_at_most(misses));
        }
        // Quantiles without a miss: ln 0.05 / ln q.
        assert_eq!([0.001, 0.000_1, 0.000_01].map(events_needed), [2_995, 29_956, 299_572]);
    }

    /// The probability of at most `misses` of `events`, summed up.
    fn at_most(misses: u64, events: u64, share: f64) -> f64 {
        // From the end where the terms do not vanish.
        if share > 0.5 {
            return if misses == events { 1.0 } else { 1.0 - at_most(events - misses - 1, events, 1.0 - share) };
        }
        let mut term = (1.0 - share).powi(events as i32);
        let mut sum = term;
        for miss in 0..misses {
            term *= (events - miss) as f64 / (miss + 1) as f64 * share / (1.0 - share);
            sum += term;
        }
        sum
    }

    proptest! {
        #[test]
        fn a_limit_of_a_share_is_where_the_count_becomes_unlikely(events in 2_u64..300, part in 0.0..1.0_f64) {
            let misses = ((events as f64 * part) as u64).min(events - 1);
            let most = share_at_most(misses, events);
            prop_assert!((at_most(misses, events, most) - 0.05).abs() < 1e-6);
            if misses > 0 {
                let least = share_at_least(misses, events);
                prop_assert!((1.0 - at_most(misses - 1, events, least) - 0.05).abs() < 1e-6);
                prop_assert!(least < most);
            }
        }

        #[test]
        fn enough_events_are_just_enough(share in 1e-6..0.5_f64) {
            let events = events_needed(share);
            prop_assert!(share_at_most(0, events) <= share);
            prop_assert!(share_at_most(0, events - 1) > share);
        }
    }
}
