//! Permanent changes in a series of measurements.

use fastrand::Rng;

/// The most permutations of a test: enough for a level of 1 %.
const PERMUTATIONS: usize = 999;
/// A test ends early after this many permutations that separate as well as the series: its p value is then known well
/// enough (Besag and Clifford, 1991).
const ENOUGH: usize = 20;
/// The fewest values on each side of a change.
pub(crate) const SEGMENT_MIN: usize = 3;

/// A change in a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The first value after the change.
    pub at: usize,
    /// The share of random orders of the values that separate as well; the level decides.
    pub p: f64,
}

/// The changes of a series, in its order: E-divisive means (Matteson and James, *A Nonparametric Approach for Multiple
/// Change Point Analysis of Multivariate Data*, JASA 2014), which MongoDB uses on its performance tests (Daly and
/// others, ICPE 2020). It makes no assumption about the distribution of the values.
///
/// The best split is that with the greatest energy distance between its sides. It is kept if at most the share `level`
/// of random orders of the values within the segments splits as well; then the segments are split further. The same
/// seed gives the same result.
pub fn change_points(values: &[f64], level: f64, seed: u64) -> Vec<ChangePoint> {
    let mut rng = Rng::with_seed(seed);
    let mut borders = vec![0, values.len()];
    let mut found: Vec<ChangePoint> = Vec::new();
    while let Some((at, distance)) = best_of(values, &borders) {
        let (mut as_good, mut taken) = (0, 0);
        let mut shuffled = values.to_vec();
        while taken < PERMUTATIONS && as_good < ENOUGH {
            borders.windows(2).for_each(|segment| rng.shuffle(&mut shuffled[segment[0]..segment[1]]));
            taken += 1;
            as_good += usize::from(best_of(&shuffled, &borders).is_some_and(|(_, other)| other >= distance));
        }
        let p = (as_good + 1) as f64 / (taken + 1) as f64;
        if p > level {
            break;
        }
        found.push(ChangePoint { at, p });
        borders.push(at);
        borders.sort_unstable();
    }
    found.sort_unstable_by_key(|change| change.at);
    found
}

/// The best split of all segments, and its energy distance.
fn best_of(values: &[f64], borders: &[usize]) -> Option<(usize, f64)> {
    let segments = borders.windows(2).filter_map(|segment| {
        let (at, distance) = best_split(&values[segment[0]..segment[1]])?;
        Some((segment[0] + at, distance))
    });
    segments.max_by(|(_, a), (_, b)| a.total_cmp(b)).filter(|(_, distance)| *distance > 0.0)
}

/// The split of a segment whose sides are farthest apart.
fn best_split(values: &[f64]) -> Option<(usize, f64)> {
    let n = values.len();
    let distance = |a: usize, b: usize| (values[a] - values[b]).abs();
    let mut right: f64 = (0..n).map(|a| (a + 1..n).map(|b| distance(a, b)).sum::<f64>()).sum();
    let total = right;
    let (mut left, mut best) = (0.0, None);
    for at in 1..n {
        // The value before `at` moves from the right side to the left one.
        left += (0..at - 1).map(|a| distance(a, at - 1)).sum::<f64>();
        right -= (at..n).map(|b| distance(at - 1, b)).sum::<f64>();
        if at < SEGMENT_MIN || n - at < SEGMENT_MIN {
            continue;
        }
        let (m, k) = (at as f64, (n - at) as f64);
        let between = 2.0 * (total - left - right) / (m * k);
        let within = 2.0 * left / (m * (m - 1.0)) + 2.0 * right / (k * (k - 1.0));
        let energy = m * k / (m + k) * (between - within);
        if best.is_none_or(|(_, other)| energy > other) {
            best = Some((at, energy));
        }
    }
    best
}
