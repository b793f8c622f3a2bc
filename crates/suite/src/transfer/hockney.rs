//! Hockney's line: the time of one transfer is T(n) = n/r∞ + t₀, so a whole sweep over block sizes is two numbers.
//!
//! r∞ is the rate that large blocks approach, t₀ the cost of every block however small it is, and n½ = r∞·t₀ the block
//! at which half of the rate is reached (R. W. Hockney, *The Science of Computer Benchmarking*, 1996).
//!
//! The line is fitted to the medians of the repeats at each block by least squares of the relative error, since the
//! times of a sweep span decades. The limits come from a bootstrap: the same fit through medians of repeats that are
//! drawn again, with replacement, at each block. A number that the sweep does not support is refused, not printed.

use hairspring_sheet::Absent;

use crate::interleaving::{Random, median};

/// Fits of redrawn repeats.
const REDRAWS: usize = 1000;
/// A line has two parameters; with fewer blocks than this the fit cannot show that it is one.
const BLOCKS_LEAST: usize = 4;
/// The largest distance of a median from the line, as a share of itself. Beyond it the sweep is no line.
const ERROR_MOST: f64 = 0.25;
/// Limits wider than the number itself carry no information.
const WIDTH_MOST: f64 = 1.0;

/// A block size with the times that its transfers took.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) bytes: f64,
    /// One for each repeat.
    pub(crate) times_ns: Vec<f64>,
}

/// A number with the limits between which it lies in 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    pub(crate) limits: [f64; 2],
}

/// The two numbers and the third that follows from them. A part that the sweep does not support holds the reason.
#[derive(Clone, Debug)]
pub(crate) struct Fit {
    /// Bytes per second.
    pub(crate) r_inf: Estimate,
    /// Nanoseconds.
    pub(crate) t0: Result<Estimate, Absent>,
    /// Bytes.
    pub(crate) n_half: Result<Estimate, Absent>,
    line: Line,
}

/// T(n) = `per_byte_ns`·n + `start_ns`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    per_byte_ns: f64,
    start_ns: f64,
}

impl Line {
    /// The line of least relative squares through points (bytes, nanoseconds); `None` if they determine none.
    fn through(points: &[(f64, f64)]) -> Option<Self> {
        // Weighted by 1/T², the sums of the normal equations.
        let sum = |term: &dyn Fn(f64, f64) -> f64| points.iter().map(|(n, t)| term(*n, *t) / (t * t)).sum::<f64>();
        let (ones, n, nn) = (sum(&|_, _| 1.0), sum(&|n, _| n), sum(&|n, _| n * n));
        let (t, nt) = (sum(&|_, t| t), sum(&|n, t| n * t));
        let determinant = ones * nn - n * n;
        let line = Self { per_byte_ns: (ones * nt - n * t) / determinant, start_ns: (nn * t - n * nt) / determinant };
        (line.per_byte_ns.is_finite() && line.start_ns.is_finite()).then_some(line)
    }

    fn time_ns(self, bytes: f64) -> f64 {
        self.per_byte_ns * bytes + self.start_ns
    }

    /// Relative distance of the farthest point from the line.
    fn error(self, points: &[(f64, f64)]) -> f64 {
        points.iter().map(|(n, t)| (self.time_ns(*n) / t - 1.0).abs()).fold(0.0, f64::max)
    }
}

impl Fit {
    /// Fits the line.
    ///
    /// # Errors
    /// Too few blocks, or they do not lie on a line whose rate is known.
    pub(crate) fn through(blocks: &[Block]) -> Result<Self, Absent> {
        if blocks.len() < BLOCKS_LEAST {
            return Err(Absent::new(
                format!("a line needs {BLOCKS_LEAST} block sizes, and there are {}", blocks.len()),
                "take the whole sweep: leave out --only, or name the table",
            ));
        }
        let points: Vec<(f64, f64)> = blocks.iter().map(|block| (block.bytes, median(&block.times_ns))).collect();
        let line = Line::through(&points).filter(|line| line.per_byte_ns > 0.0);
        let Some(line) = line else { return Err(Absent::final_("larger blocks do not take longer: there is no line")) };
        let error = line.error(&points);
        if error > ERROR_MOST {
            return Err(Absent::final_(format!(
                "no line fits: the worst point is {:.0} % off. Cache levels or disturbances cause this",
                error * 100.0
            )));
        }
        let redrawn = redraw(blocks);
        let r_inf = estimate(1e9 / line.per_byte_ns, redrawn.iter().map(|line| 1e9 / line.per_byte_ns));
        if !r_inf.is_known() {
            let reason = format!(
                "the repeats scatter too much: {:.3e} to {:.3e} bytes per second",
                r_inf.limits[0], r_inf.limits[1]
            );
            return Err(Absent::new(reason, "take the sheet on a machine that is less busy, or with --thorough"));
        }
        let t0 = estimate(line.start_ns, redrawn.iter().map(|line| line.start_ns));
        let n_half =
            estimate(line.start_ns / line.per_byte_ns, redrawn.iter().map(|line| line.start_ns / line.per_byte_ns));
        let unknown = |estimate: Estimate| {
            if estimate.is_known() {
                return Ok(estimate);
            }
            Err(Absent::final_(format!(
                "what a block costs to begin with is too small for this sweep to tell: {:.0} ns to {:.0} ns",
                t0.limits[0], t0.limits[1]
            )))
        };
        Ok(Self { r_inf, t0: unknown(t0), n_half: unknown(n_half), line })
    }

    /// The rate at a block size in bytes per second.
    pub(crate) fn rate(&self, bytes: f64) -> f64 {
        bytes * 1e9 / self.line.time_ns(bytes)
    }
}

impl Estimate {
    /// Whether the number is above zero and its limits are closer to each other than it is to zero.
    fn is_known(self) -> bool {
        let [low, high] = self.limits;
        self.value > 0.0 && low > 0.0 && high - low <= WIDTH_MOST * self.value
    }
}

/// The same fit through repeats that are drawn again.
fn redraw(blocks: &[Block]) -> Vec<Line> {
    let mut random = Random::new();
    let mut drawn = Vec::new();
    let mut again = || {
        let points = blocks.iter().map(|block| {
            drawn.clear();
            drawn.extend(block.times_ns.iter().map(|_| block.times_ns[random.below(block.times_ns.len())]));
            (block.bytes, median(&drawn))
        });
        Line::through(&points.collect::<Vec<_>>())
    };
    (0..REDRAWS).filter_map(|_| again()).collect()
}

fn estimate(value: f64, redrawn: impl Iterator<Item = f64>) -> Estimate {
    let mut sorted: Vec<f64> = redrawn.collect();
    sorted.sort_by(f64::total_cmp);
    let rank = |share: f64| sorted.get((share * sorted.len() as f64) as usize).copied().unwrap_or(f64::NAN);
    Estimate { value, limits: [rank(0.025), rank(0.975)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times on a line, each repeat off by its share of `scatter`.
    fn sweep(rate: f64, start_ns: f64, scatter: f64) -> Vec<Block> {
        let bytes = [4096.0, 16384.0, 65536.0, 262_144.0, 1_048_576.0, 4_194_304.0];
        let time = |n: f64, repeat: u32| {
            (n * 1e9 / rate + start_ns) * (1.0 + scatter * (f64::from(repeat * 3 % 7) - 3.0) / 3.0)
        };
        bytes
            .into_iter()
            .map(|n| Block { bytes: n, times_ns: (0..7).map(|repeat| time(n, repeat)).collect() })
            .collect()
    }

    #[test]
    fn the_line_that_the_times_were_made_from_is_found_and_lies_within_its_limits() {
        // AN006's M4i in FIFO mode: 3690 MiB/s, 6 µs, so n½ is 23 KiB.
        let rate = 3690.0 * 1_048_576.0;
        let fit = Fit::through(&sweep(rate, 6000.0, 0.02)).expect("a line");
        let near = |estimate: Estimate, expected: f64| {
            assert!((estimate.value / expected - 1.0).abs() < 1e-9, "{estimate:?}");
            assert!(estimate.limits[0] < expected && expected < estimate.limits[1], "{estimate:?}");
            assert!(estimate.limits[1] - estimate.limits[0] < 0.05 * expected, "{estimate:?}");
        };
        near(fit.r_inf, rate);
        near(fit.t0.clone().expect("well above the scatter"), 6000.0);
        near(fit.n_half.clone().expect("the same"), rate * 6000e-9);
        assert!((fit.rate(rate * 6000e-9) / rate - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_start_that_is_lost_in_the_scatter_is_not_printed() {
        for start_ns in [0.0, -100.0, 2.0] {
            let fit = Fit::through(&sweep(5e9, start_ns, 0.05)).expect("the rate is known");
            assert!(fit.t0.is_err() && fit.n_half.is_err(), "{start_ns}: {:?}", fit.t0);
        }
    }

    #[test]
    fn what_is_no_line_is_refused() {
        let mut caches = sweep(5e9, 100.0, 0.01);
        caches[..3].iter_mut().for_each(|block| block.times_ns.iter_mut().for_each(|time| *time /= 4.0));
        assert!(Fit::through(&caches).expect_err("two rates").reason.contains("no line fits"));
        let mut shrinking = sweep(5e9, 100.0, 0.01);
        shrinking.iter_mut().for_each(|block| block.bytes = 1e9 - block.bytes);
        assert!(Fit::through(&shrinking).is_err());
        let few = Fit::through(&sweep(5e9, 100.0, 0.01)[..3]).expect_err("three blocks");
        assert!(few.reason.contains("needs 4 block sizes"), "{}", few.reason);
        let wild = Fit::through(&sweep(5e9, 100.0, 0.95)).expect_err("scatter");
        assert!(wild.remedy.is_some(), "{}", wild.reason);
    }
}
