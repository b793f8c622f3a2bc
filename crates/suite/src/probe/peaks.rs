//! Peaks: whether a distribution has several peaks, where they are and how far apart.
//!
//! FESA's latency note saw steps of 20 µs and named them; such steps show in no quartile. The samples are binned by the
//! rule of Freedman and Diaconis (a bin of 2·IQR/∛n), the counts are smoothed over three bins, and a peak counts if it
//! stands out: the counts fall to below half of the lower of two neighbouring peaks between them, and at least a
//! twentieth of all samples belong to it. (D. Freedman, P. Diaconis, On the histogram as a density estimator, 1981.)

use hairspring_machine::Nanos;

/// The least number of samples to look for peaks.
pub(crate) const SAMPLES_LEAST: usize = 400;
/// The share of the samples that is cut off at each end: the tail would stretch the bins without a peak.
const INNER: (f64, f64) = (0.005, 0.98);
/// The least share of the samples in a peak.
const SHARE_LEAST: f64 = 0.05;
/// The most bins.
const BINS_MOST: usize = 400;

/// The peaks of samples in nanoseconds, ascending.
fn peaks(values: &[f64]) -> Vec<f64> {
    if values.len() < SAMPLES_LEAST {
        return Vec::new();
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    let (low, high) = (at(INNER.0), at(INNER.1));
    let width = 2.0 * (at(0.75) - at(0.25)) / (sorted.len() as f64).cbrt();
    if width <= 0.0 || high <= low {
        return Vec::new();
    }
    let count = (((high - low) / width).ceil() as usize).clamp(1, BINS_MOST);
    let width = (high - low) / count as f64;
    let mut bins = vec![0_usize; count];
    for value in sorted.iter().filter(|value| (low..=high).contains(*value)) {
        bins[(((value - low) / width) as usize).min(count - 1)] += 1;
    }
    let smooth: Vec<f64> = (0..count)
        .map(|bin| {
            let near = &bins[bin.saturating_sub(1)..(bin + 2).min(count)];
            near.iter().sum::<usize>() as f64 / near.len() as f64
        })
        .collect();
    let parts = divided(&smooth);
    let least = SHARE_LEAST * sorted.len() as f64;
    let heavy = parts.into_iter().filter(|part| bins[part.clone()].iter().sum::<usize>() as f64 >= least);
    heavy
        .filter_map(|part| part.max_by(|a, b| smooth[*a].total_cmp(&smooth[*b])))
        .map(|bin| low + (bin as f64 + 0.5) * width)
        .collect()
}

/// Cuts the counts at valleys that are less than half as high as the peaks on both sides.
fn divided(counts: &[f64]) -> Vec<std::ops::Range<usize>> {
    let mut parts = Vec::new();
    let (mut begin, mut peak, mut valley) = (0, 0, 0);
    for bin in 1..counts.len() {
        if counts[bin] < counts[valley] {
            valley = bin;
        }
        let is_apart = counts[valley] < 0.5 * counts[bin].min(counts[peak]);
        if is_apart && valley > peak {
            parts.push(begin..valley);
            (begin, peak, valley) = (valley, bin, bin);
        } else if counts[bin] > counts[peak] {
            (peak, valley) = (bin, bin);
        }
    }
    parts.push(begin..counts.len());
    parts
}

/// The note about the peaks of samples in nanoseconds; `None` if there is only one.
pub(crate) fn named(values: &[f64]) -> Option<String> {
    let peaks: Vec<Nanos> = peaks(values).iter().map(|peak| Nanos::new(*peak as i64)).collect();
    if peaks.len() < 2 {
        return None;
    }
    let list = |of: &mut dyn Iterator<Item = Nanos>| of.map(|span| span.to_string()).collect::<Vec<_>>().join(", ");
    let spacing = list(&mut peaks.windows(2).map(|two| two[1] - two[0]));
    Some(format!("{} peaks, at {}; apart by {spacing}", peaks.len(), list(&mut peaks.iter().copied())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples around these places, each with its count, spread evenly over a width.
    fn around(places: &[(f64, usize)], width: f64) -> Vec<f64> {
        let mut values = Vec::new();
        for (place, count) in places {
            // A triangle, as the sum of two even spreads.
            values.extend((0..*count).map(|n| {
                let (a, b) = ((n * 7919 % 1000) as f64 / 1000.0, (n * 104_729 % 997) as f64 / 997.0);
                place + width * (a + b - 1.0)
            }));
        }
        values
    }

    #[test]
    fn steps_are_found_with_their_spacing() {
        let steps = around(&[(430_000.0, 500), (450_000.0, 300), (470_000.0, 200)], 4_000.0);
        let found = peaks(&steps);
        assert_eq!(found.len(), 3, "{found:?}");
        for (peak, place) in found.iter().zip([430_000.0, 450_000.0, 470_000.0]) {
            assert!((peak - place).abs() < 3_000.0, "{found:?}");
        }
        let text = named(&steps).expect("three");
        assert!(text.starts_with("3 peaks, at "), "{text}");
    }

    #[test]
    fn one_peak_with_a_long_tail_is_one() {
        let mut values = around(&[(25_000.0, 1000)], 5_000.0);
        values.extend((0..15).map(|n| 100_000.0 * f64::from(n + 1)));
        assert_eq!(peaks(&values).len(), 1);
        assert_eq!(named(&values), None);
        // Few samples, equal ones, and the noise of an even spread have no peaks either.
        assert_eq!(named(&around(&[(1e5, 100), (3e5, 100)], 1e3)), None);
        assert_eq!(named(&[7.0; 1000]), None);
        let even: Vec<f64> = (0..1000).map(|n| f64::from(n * 7919 % 1000)).collect();
        assert_eq!(named(&even), None);
    }
}
