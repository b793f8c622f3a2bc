//! [`Extremes`]: the greatest events of equal blocks of time on the axis of a Gumbel distribution, and a line through
//! them only where they lie on one.
//!
//! # Problem
//! The greatest event of eight hours does not bound that of the ninth, and a line drawn through maxima suggests more
//! than they show.
//!
//! # Solution
//! The maxima of blocks, in ascending order, have the plotting positions p = (i − 0.44) / (n + 0.12) (I. Gringorten, *A
//! plotting rule for extreme probability paper*, 1963) and lie at y = −ln(−ln p). Maxima of a Gumbel distribution lie
//! on a line. Its slope and place come from L-moments (J. Hosking, *L-moments*, 1990), with the variances of
//! probability-weighted moments (J. Hosking, J. Wallis and E. Wood, *Estimation of the generalized extreme-value
//! distribution by the method of probability-weighted moments*, 1985).
//!
//! # Conditions
//! A line is refused, with the reason, unless all of this holds:
//! 1. there are at least [`MAXIMA_LEAST`] blocks, of [`EVENTS_LEAST`] events each;
//! 2. at most [`UNEXPLAINED_MOST`] of the worst cases have no culprit: a mixture of causes has no common line;
//! 3. the first half of the maxima is like the second (rank sums of Mann and Whitney, 5 %);
//! 4. the upper limit of the shape of a generalized extreme-value distribution is at most [`SHAPE_MOST`];
//! 5. that shape is zero within its interval of 95 % (the test of Hosking, Wallis and Wood), and the correlation of the
//!    plot is no less than that of 95 % of Gumbel samples of this size (J. Filliben's test, 1975; the limit is drawn
//!    here with a fixed seed).
//!
//! The result is a value that is exceeded once, on average, in [`FURTHEST`] times the observed time; it is never the
//! worst case.

use fastrand::Rng;

/// Fewer maxima do not show the shape of a tail.
pub const MAXIMA_LEAST: usize = 50;
/// A block with fewer events has no tail of its own.
pub const EVENTS_LEAST: u64 = 1000;
/// The greatest share of worst cases without a culprit.
pub const UNEXPLAINED_MOST: f64 = 0.05;
/// The greatest upper limit of the shape: from there on the variance of the maxima is infinite.
pub const SHAPE_MOST: f64 = 0.5;
/// A line is drawn for no longer than this many times the observed time.
pub const FURTHEST: f64 = 3.0;

/// The quantile of the normal distribution for two-sided 95 %.
const NORMAL: f64 = 1.96;
/// Samples that are drawn for the limit of the correlation, and the place of the limit among them: 5 %.
const DRAWN: usize = 199;
const FIFTH_PERCENT: usize = 9;
const EULER: f64 = 0.577_215_664_901_532_9;

/// Maxima and their positions, and the line if there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Extremes {
    /// Reduced variate and maximum, ascending.
    pub points: Vec<(f64, f64)>,
    /// The line, or why there is none.
    pub line: Result<GumbelLine, String>,
}

/// A Gumbel distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GumbelLine {
    /// Its mode.
    pub place: f64,
    /// Its scale, above zero: the slope of the line.
    pub scale: f64,
    /// From how many maxima it comes.
    pub maxima: usize,
}

impl Extremes {
    /// The maxima of blocks, in the order of time. `events` is the least number of events in a block, `unexplained` the
    /// share of the worst cases without a culprit.
    pub fn of(maxima: &[f64], events: u64, unexplained: f64) -> Self {
        let mut sorted = maxima.to_vec();
        sorted.sort_by(f64::total_cmp);
        let points = (0..sorted.len()).map(|place| (variate(place, sorted.len()), sorted[place])).collect();
        Self { line: line(maxima, &sorted, events, unexplained), points }
    }
}

impl GumbelLine {
    /// The value that is exceeded once in `blocks` blocks on average, and its 95 % interval.
    ///
    /// # Panics
    /// If `blocks` is not greater than one.
    pub fn once_in(&self, blocks: f64) -> (f64, [f64; 2]) {
        assert!(blocks > 1.0, "no value is exceeded in every block");
        let y = -(-(1.0 / blocks)).ln_1p().abs().ln();
        let value = self.place + self.scale * y;
        let variance = (1.1128 + 2.0 * 0.2287 * y + 0.8046 * y * y) / self.maxima as f64;
        let width = NORMAL * self.scale * variance.sqrt();
        (value, [value - width, value + width])
    }
}

/// The reduced variate of a place in ascending order, by Gringorten's rule.
fn variate(place: usize, n: usize) -> f64 {
    let p = (place as f64 + 1.0 - 0.44) / (n as f64 + 0.12);
    -(-p.ln()).ln()
}

fn line(maxima: &[f64], sorted: &[f64], events: u64, unexplained: f64) -> Result<GumbelLine, String> {
    let n = sorted.len();
    if n < MAXIMA_LEAST {
        return Err(format!("there are {n} blocks so far, and {MAXIMA_LEAST} are needed"));
    }
    if events < EVENTS_LEAST {
        return Err(format!("a block has only {events} events, and {EVENTS_LEAST} are needed"));
    }
    if unexplained > UNEXPLAINED_MOST {
        return Err(format!(
            "{:.0} % of the worst cases have no culprit, and mixed causes have no common line",
            unexplained * 100.0
        ));
    }
    if sorted[0] >= sorted[n - 1] {
        return Err("all maxima are equal".to_owned());
    }
    let drift = rank_sums(&maxima[..n / 2], &maxima[n / 2..]);
    if drift.abs() > NORMAL {
        let grow = if drift < 0.0 { "greater" } else { "smaller" };
        return Err(format!(
            "the maxima of the second half are {grow} than those of the first: the conditions changed"
        ));
    }
    let [mean, second, skew] = l_moments(sorted);
    let shape = shape(skew);
    let width = NORMAL * (0.5633 / n as f64).sqrt();
    if shape + width > SHAPE_MOST {
        return Err(format!("the tail is too heavy: its shape is {shape:.2}, up to {:.2}", shape + width));
    }
    if shape.abs() > width {
        let bend = if shape > 0.0 { "upwards, as with several causes" } else { "downwards, as with a bounded cause" };
        return Err(format!("the maxima do not lie on a line: they bend {bend} (shape {shape:.2})"));
    }
    let (straight, needed) = (correlation(sorted), correlation_needed(n));
    if straight < needed {
        return Err(format!("the maxima do not lie on a line: correlation {straight:.4}, and {needed:.4} is needed"));
    }
    let scale = second / std::f64::consts::LN_2;
    Ok(GumbelLine { place: mean - EULER * scale, scale, maxima: n })
}

/// The first two L-moments of ascending values, and their L-skewness.
fn l_moments(sorted: &[f64]) -> [f64; 3] {
    let n = sorted.len() as f64;
    let mut weighted = [0.0; 3];
    for (place, value) in sorted.iter().enumerate() {
        let place = place as f64;
        weighted[0] += value / n;
        weighted[1] += value / n * place / (n - 1.0);
        weighted[2] += value / n * place * (place - 1.0) / ((n - 1.0) * (n - 2.0));
    }
    let [first, second, third] = weighted;
    let scale = 2.0 * second - first;
    [first, scale, (6.0 * third - 6.0 * second + first) / scale]
}

/// The shape of a generalized extreme-value distribution, above zero for a heavy tail, from its L-skewness (Hosking,
/// Wallis and Wood).
fn shape(skew: f64) -> f64 {
    let c = 2.0 / (3.0 + skew) - std::f64::consts::LN_2 / 3_f64.ln();
    -(7.8590 * c + 2.9554 * c * c)
}

/// The correlation of ascending values with the variates of their places.
fn correlation(sorted: &[f64]) -> f64 {
    let n = sorted.len() as f64;
    let variates: Vec<f64> = (0..sorted.len()).map(|place| variate(place, sorted.len())).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / n;
    let (x, y) = (mean(&variates), mean(sorted));
    let sum = |of: &dyn Fn(usize) -> f64| (0..sorted.len()).map(of).sum::<f64>();
    let both = sum(&|i| (variates[i] - x) * (sorted[i] - y));
    let (xs, ys) = (sum(&|i| (variates[i] - x).powi(2)), sum(&|i| (sorted[i] - y).powi(2)));
    both / (xs * ys).sqrt()
}

/// The correlation that 95 % of Gumbel samples of this size reach.
fn correlation_needed(n: usize) -> f64 {
    let mut rng = Rng::with_seed(n as u64);
    let mut drawn: Vec<f64> = (0..DRAWN).map(|_| correlation(&gumbel(n, &mut rng))).collect();
    drawn.sort_by(f64::total_cmp);
    drawn[FIFTH_PERCENT]
}

/// An ascending sample of the Gumbel distribution with place 0 and scale 1.
fn gumbel(n: usize, rng: &mut Rng) -> Vec<f64> {
    let mut sample: Vec<f64> = (0..n).map(|_| -(-rng.f64().max(f64::MIN_POSITIVE).ln()).ln()).collect();
    sample.sort_by(f64::total_cmp);
    sample
}

/// Distance of the ranks of the first values above those of the others, in standard deviations; equal values share
/// their ranks.
fn rank_sums(first: &[f64], others: &[f64]) -> f64 {
    let (n, m) = (first.len() as f64, others.len() as f64);
    let mut sorted = others.to_vec();
    sorted.sort_by(f64::total_cmp);
    let below = |value: f64| {
        let less = sorted.partition_point(|other| *other < value);
        let equal = sorted.partition_point(|other| *other <= value) - less;
        less as f64 + equal as f64 / 2.0
    };
    let sum: f64 = first.iter().map(|value| below(*value)).sum();
    (sum - n * m / 2.0) / (n * m * (n + m + 1.0) / 12.0).sqrt()
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    /// `n` maxima of a generalized extreme-value distribution, in a random order.
    fn maxima(n: usize, shape: f64, seed: u64) -> Vec<f64> {
        let mut rng = Rng::with_seed(seed);
        let mut sample = gumbel(n, &mut rng);
        rng.shuffle(&mut sample);
        let bent = |y: f64| if shape == 0.0 { y } else { ((shape * y).exp() - 1.0) / shape };
        sample.into_iter().map(|y| 100_000.0 + 20_000.0 * bent(y)).collect()
    }

    fn of(maxima: &[f64]) -> Result<GumbelLine, String> {
        Extremes::of(maxima, 60_000, 0.0).line
    }

    #[test]
    fn a_line_is_drawn_through_gumbel_maxima_and_its_limits_hold() {
        let (mut drawn, mut held) = (0, 0);
        // The value that a Gumbel maximum exceeds once in 1,440 blocks.
        let truth = 100_000.0 + 20_000.0 * -(-(1.0 - 1.0 / 1440.0_f64).ln()).ln();
        for seed in 0..200 {
            let Ok(line) = of(&maxima(480, 0.0, seed)) else { continue };
            drawn += 1;
            let (value, [low, high]) = line.once_in(1440.0);
            assert!(low < value && value < high);
            held += usize::from((low..=high).contains(&truth));
        }
        // Three tests of 5 % each refuse some.
        assert!((160..=190).contains(&drawn), "{drawn}");
        assert!(held as f64 >= 0.9 * f64::from(drawn), "{held} of {drawn}");
    }

    #[test]
    fn a_line_is_refused_where_maxima_lie_on_none() {
        let refused = |maxima: &[f64], says: &str| {
            let why = of(maxima).expect_err("no line");
            assert!(why.contains(says), "{why}");
        };
        refused(&maxima(49, 0.0, 1), "49 blocks so far");
        refused(&maxima(480, 0.9, 1), "too heavy");
        refused(&maxima(480, 0.3, 1), "bend upwards");
        refused(&maxima(480, -0.3, 1), "bend downwards");
        refused(&[7.0; 100], "equal");
        // A drift: the second half lies a scale higher.
        let drifting: Vec<f64> =
            maxima(480, 0.0, 1).iter().enumerate().map(|(n, m)| if n < 240 { *m } else { m + 20_000.0 }).collect();
        refused(&drifting, "second half are greater");
        // A rare cause of its own: 1 % of the blocks hold something ten scales away.
        let mut mixed = maxima(480, 0.0, 3);
        mixed.iter_mut().step_by(97).for_each(|maximum| *maximum += 400_000.0);
        assert!(of(&mixed).is_err());
        let good = maxima(480, 0.0, 1);
        let why = |events, unexplained| Extremes::of(&good, events, unexplained).line.expect_err("no line");
        assert!(why(999, 0.0).contains("999 events"));
        assert!(why(60_000, 0.3).contains("30 % of the worst cases have no culprit"));
    }

    #[test]
    fn nearly_all_gumbel_samples_reach_the_limit_of_the_correlation() {
        let mut rng = Rng::with_seed(77);
        for n in [50, 100, 480] {
            let needed = correlation_needed(n);
            let reach = (0..400).filter(|_| correlation(&gumbel(n, &mut rng)) >= needed).count();
            assert!((360..=396).contains(&reach), "{n}: {reach} of 400 reach {needed}");
        }
    }

    proptest! {
        #[test]
        fn points_ascend_and_do_not_depend_on_the_order(mut maxima in proptest::collection::vec(0.0..1e9_f64, 1..200), turn in 0_usize..200) {
            let points = Extremes::of(&maxima, 60_000, 0.0).points;
            prop_assert!(points.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
            let turn = turn % maxima.len();
            maxima.rotate_left(turn);
            prop_assert_eq!(Extremes::of(&maxima, 60_000, 0.0).points, points);
        }

        #[test]
        fn a_line_moves_and_stretches_with_its_maxima(seed in 0_u64..500, place in 0.0..1e6_f64, scale in 0.1..10.0_f64) {
            let plain = maxima(120, 0.0, seed);
            let other: Vec<f64> = plain.iter().map(|maximum| place + scale * maximum).collect();
            let (Ok(plain), Ok(other)) = (of(&plain), of(&other)) else { return Ok(()) };
            let [one, two] = [plain.once_in(360.0).0, other.once_in(360.0).0];
            prop_assert!((place + scale * one - two).abs() < 1e-6 * two.abs());
        }
    }
}
