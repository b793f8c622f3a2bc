//! Statistics of one run's samples: the equivalent number of independent ones, and a median finer than the counter's
//! step.

/// The most lags, in √n: the batches show correlations over longer spans.
const LAGS_MOST: f64 = 10.0;
/// The least number of samples to test their order.
const ORDERED_LEAST: usize = 16;
/// Limit for a sign of dependence, in standard deviations above the level that independent samples show by chance.
const BEYOND_CHANCE: f64 = 2.0;
/// The least share of the samples in each of two steps for a grouped median: then the phase of the counter is random.
const STEP_SHARE_LEAST: f64 = 0.1;

/// The equivalent number of independent samples for the centre of these dependent ones. The samples must be in the
/// order of time. At least 1 and at most their number; 0 without samples.
///
/// It is the smaller of two estimates. One divides by 1 + 2·Σρ, the sum of the autocorrelations, which ends before the
/// first pair of lags that is not positive (C. J. Geyer, *Practical Markov Chain Monte Carlo*, 1992). The other
/// compares the spread of the means of √n batches with the spread that independent samples would give them. Both work
/// on the ranks of the samples, so neither a single long disturbance nor the unit matters. A dependence that chance
/// could explain does not count, so that percentiles do not appear and disappear from run to run.
pub fn n_effective(samples: &[f64]) -> f64 {
    let n = samples.len();
    if n < ORDERED_LEAST {
        return n as f64;
    }
    let ranks = centred_ranks(samples);
    let variance = ranks.iter().map(|rank| rank * rank).sum::<f64>() / n as f64;
    if variance == 0.0 {
        return n as f64;
    }
    by_autocorrelation(&ranks, variance).min(by_batches(&ranks, variance)).clamp(1.0, n as f64)
}

/// The rank of each sample less the mean rank; equal samples share the mean of their ranks.
fn centred_ranks(samples: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..samples.len()).collect();
    order.sort_unstable_by(|a, b| samples[*a].total_cmp(&samples[*b]));
    let mut ranks = vec![0.0; samples.len()];
    let mut first = 0;
    for equal in order.chunk_by(|a, b| samples[*a] == samples[*b]) {
        let rank = first as f64 + (equal.len() as f64 - samples.len() as f64) / 2.0;
        equal.iter().for_each(|index| ranks[*index] = rank);
        first += equal.len();
    }
    ranks
}

fn by_autocorrelation(centred: &[f64], variance: f64) -> f64 {
    let n = centred.len() as f64;
    let correlation = |lag: usize| {
        let products = centred.iter().zip(&centred[lag..]).map(|(early, late)| early * late);
        products.sum::<f64>() / (n * variance)
    };
    let chance = BEYOND_CHANCE * (2.0 / n).sqrt();
    let most = ((LAGS_MOST * n.sqrt()) as usize).min(centred.len() / 2);
    let pairs = (1..most).step_by(2).map(|lag| correlation(lag) + correlation(lag + 1));
    let sum: f64 = pairs.take_while(|pair| *pair > chance).sum();
    n / (1.0 + 2.0 * sum)
}

fn by_batches(centred: &[f64], variance: f64) -> f64 {
    let n = centred.len() as f64;
    let count = n.sqrt() as usize;
    let length = centred.len() / count;
    let means = centred.chunks_exact(length).map(|batch| batch.iter().sum::<f64>() / length as f64);
    let squares: Vec<f64> = means.map(|mean| mean * mean).collect();
    let between = squares.iter().sum::<f64>() / (squares.len() - 1) as f64;
    // The ratio of the variance of the batches to that of independent samples.
    let inflation = between * length as f64 / variance;
    let chance = BEYOND_CHANCE * (2.0 / (squares.len() - 1) as f64).sqrt();
    if inflation > 1.0 + chance { n / inflation } else { n }
}

/// The median of spans that a counter with this step rounded, or of their excess over a request, by linear
/// interpolation in the step that holds the 50 % point. `None` if fewer than two steps hold a tenth of the samples
/// each: then the phase of the counter was not random, and the median between its steps is unknown. The samples must be
/// in ascending order.
///
/// A span of 2.3 steps shows as two steps in 70 % of the samples and as three in 30 %, so the shares of the steps carry
/// more information than their median.
///
/// ```
/// use hairspring_sheet::statistics::grouped_median;
/// let samples = [20.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0, 30.0, 30.0, 30.0];
/// let median = grouped_median(&samples, 10.0).unwrap();
/// assert!((median - 22.1).abs() < 0.1);
/// assert_eq!(grouped_median(&[20.0; 10], 10.0), None);
/// ```
pub fn grouped_median(sorted: &[f64], step: f64) -> Option<f64> {
    let n = sorted.len() as f64;
    // Samples of one step are equal but for rounding, so an error of the step itself does not add up over many steps.
    let mean = |equal: &[f64]| equal.iter().sum::<f64>() / equal.len() as f64;
    let steps: Vec<(f64, f64)> =
        sorted.chunk_by(|a, b| b - a < step / 2.0).map(|equal| (mean(equal), equal.len() as f64)).collect();
    if step.is_nan() || step <= 0.0 || steps.iter().filter(|(_, count)| *count >= STEP_SHARE_LEAST * n).count() < 2 {
        return None;
    }
    let mut below = 0.0;
    for (middle, count) in steps {
        if 2.0 * (below + count) >= n {
            return Some(middle + ((n / 2.0 - below) / count - 0.5) * step);
        }
        below += count;
    }
    None
}
