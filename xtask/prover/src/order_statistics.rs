//! Order statistics of a proof's samples, for its figures.

use serde_json::{Value, json};

/// The quantile of sorted samples; none without samples.
pub(crate) fn quantile(sorted: &[i64], share: f64) -> Option<i64> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

/// Count, median, p99 and the ends, in nanoseconds. A p99 of fewer than a hundred samples is left out.
pub(crate) fn figures(samples: &mut [i64]) -> Value {
    samples.sort_unstable();
    let p99 = if samples.len() >= 100 { quantile(samples, 0.99) } else { None };
    json!({
        "n": samples.len(),
        "min_ns": samples.first(),
        "median_ns": quantile(samples, 0.5),
        "p99_ns": p99,
        "max_ns": samples.last(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples_and_need_enough_of_them() {
        let sorted: Vec<i64> = (1..=200).collect();
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|share| quantile(&sorted, share)), [1, 100, 198, 200].map(Some));
        assert_eq!(quantile(&[], 0.5), None);
        let figures = figures(&mut [3, 1, 2]);
        assert_eq!((&figures["median_ns"], &figures["p99_ns"]), (&json!(2), &Value::Null));
    }
}
