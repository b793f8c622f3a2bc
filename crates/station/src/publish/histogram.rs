//! [`LatencyHistogram`]: number of activations by latency since the start, in steps of 1, 2 and 5.

use hairspring_machine::Nanos;

/// The edges of the bins in nanoseconds: bin 0 is below the first, the last bin is from the last edge on.
pub const LATENCY_EDGES_NS: [i64; 25] = {
    let mut edges = [0; 25];
    let (mut decade, mut at) = (100, 0);
    while at < 25 {
        edges[at] = decade * [1, 2, 5][at % 3];
        at += 1;
        if at % 3 == 0 {
            decade *= 10;
        }
    }
    edges
};

/// Counts of latencies, absolute since the start of the station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyHistogram(pub [u64; LATENCY_EDGES_NS.len() + 1]);

impl LatencyHistogram {
    /// Counts one.
    pub fn add(&mut self, latency: Nanos) {
        let bin = LATENCY_EDGES_NS.partition_point(|edge| *edge <= latency.count());
        self.0[bin] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_1_2_5_from_100_ns_to_10_s_and_begin_their_bins() {
        assert_eq!(LATENCY_EDGES_NS[..4], [100, 200, 500, 1_000]);
        assert_eq!(LATENCY_EDGES_NS[24], 10_000_000_000);
        let mut histogram = LatencyHistogram::default();
        for ns in [0, 99, 100, 199, 200, 9_999_999_999, 10_000_000_000, i64::MAX] {
            histogram.add(Nanos::new(ns));
        }
        assert_eq!(histogram.0[..3], [2, 2, 1]);
        assert_eq!(histogram.0[24..], [1, 2]);
    }
}
