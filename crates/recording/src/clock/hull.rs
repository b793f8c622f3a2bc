//! [`DriftHull`]: all straight lines through a set of marks, as hard bounds on the rate and the offset of a card's
//! clock.
//!
//! # Problem
//! A recording knows the time of a few frames, each as an interval. Its user asks for the time of any frame, and for
//! the card's true rate, with bounds that hold.
//!
//! # Solution
//! If the card's clock is steady, frame `x` was taken at `y = a + b·x`, and that line meets every interval:
//!
//! ```text
//!   time │                     ┬        Above all lower ends is above their upper hull; below all upper ends is
//!        │            ┬     ╱  ┴        below their lower hull. So only the corners of the two hulls count.
//!        │      ┬  ╱  ┴
//!        │   ╱  ┴                       The steepest line goes through a lower end and, to the right of it, an
//!        │┬                             upper end; the flattest one through an upper and then a lower end.
//!        └┴──────────────────── frame
//! ```
//!
//! # Why the bounds hold
//! For a given slope `b` there is an offset exactly if `low_i − b·x_i ≤ high_j − b·x_j` for all `i`, `j`. Each pair
//! bounds `b` from one side, so the possible slopes are one interval, and it is empty exactly if no line exists. Frames
//! are taken in order, so `b ≥ 0`. All arithmetic is exact in integers of 128 bits; results are rounded outwards.
//!
//! # Conditions
//! The clock is steady. If it is not, or a clock stepped, or frames are missing from the count, the hull is usually
//! empty. That is a finding, and [`off_line`] is the distance of the marks from any line.

use hairspring_machine::Nanos;
use hairspring_ring::units::SampleRate;

use super::Mark;

/// A corner of a hull: frame and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Corner {
    x: i128,
    y: i128,
}

/// Nanoseconds per frame, as a fraction; `dx` is positive.
#[derive(Clone, Copy, Debug)]
struct Slope {
    dy: i128,
    dx: i128,
}

impl Slope {
    fn is_below(self, other: Self) -> bool {
        self.dy * other.dx < other.dy * self.dx
    }

    /// The rise of the line over `x` frames, rounded down.
    fn rise_at_least(self, x: i128) -> i128 {
        (self.dy * x).div_euclid(self.dx)
    }

    /// The same, rounded up.
    fn rise_at_most(self, x: i128) -> i128 {
        -(-self.dy * x).div_euclid(self.dx)
    }

    fn frames_per_s(self) -> f64 {
        self.dx as f64 / self.dy as f64 * 1e9
    }
}

/// The straight lines that meet every mark.
#[derive(Clone, Debug)]
pub struct DriftHull {
    /// The upper hull of the lower ends, and the lower hull of the upper ends.
    lows: Vec<Corner>,
    highs: Vec<Corner>,
    /// The least and the greatest slope. With marks of one frame only there is no greatest.
    flattest: Slope,
    steepest: Option<Slope>,
}

impl DriftHull {
    /// The lines through these marks; `None` if there is no mark or no such line.
    pub fn through(marks: &[Mark]) -> Option<Self> {
        Self::of(marks, 0)
    }

    /// The lines through these marks, each made longer by `slack_ns` at both ends.
    fn of(marks: &[Mark], slack_ns: i128) -> Option<Self> {
        let mut intervals: Vec<(i128, i128, i128)> = marks
            .iter()
            .map(|mark| {
                let (low, high) = (mark.earliest.as_monotonic().count(), mark.latest.as_monotonic().count());
                (i128::from(mark.frame.0), i128::from(low) - slack_ns, i128::from(high) + slack_ns)
            })
            .collect();
        intervals.sort_unstable();
        intervals.dedup_by(|later, first| {
            let same = later.0 == first.0;
            if same {
                (first.1, first.2) = (first.1.max(later.1), first.2.min(later.2));
            }
            same
        });
        if intervals.is_empty() || intervals.iter().any(|(_, low, high)| low > high) {
            return None;
        }
        let lows = upper_hull(intervals.iter().map(|(x, low, _)| Corner { x: *x, y: *low }));
        let mut highs = upper_hull(intervals.iter().map(|(x, _, high)| Corner { x: *x, y: -*high }));
        highs.iter_mut().for_each(|corner| corner.y = -corner.y);
        let (mut flattest, mut steepest) = (Slope { dy: 0, dx: 1 }, None::<Slope>);
        for low in &lows {
            for high in &highs {
                let (dx, dy) = (high.x - low.x, high.y - low.y);
                if dx > 0 {
                    let slope = Slope { dy, dx };
                    steepest = Some(steepest.filter(|known| !slope.is_below(*known)).unwrap_or(slope));
                } else if dx < 0 {
                    let slope = Slope { dy: -dy, dx: -dx };
                    flattest = if flattest.is_below(slope) { slope } else { flattest };
                }
            }
        }
        let is_empty = steepest.is_some_and(|steepest| steepest.is_below(flattest));
        (!is_empty).then_some(Self { lows, highs, flattest, steepest })
    }

    /// The earliest moment at which a frame can have been taken, in nanoseconds; `None` if the marks do not bound it.
    pub(super) fn earliest_ns(&self, x: i128) -> Option<i128> {
        let from_corner = |corner: &Corner| match x - corner.x {
            0 => Some(corner.y),
            right if right > 0 => Some(corner.y + self.flattest.rise_at_least(right)),
            left => Some(corner.y + self.steepest?.rise_at_least(left)),
        };
        let corners = self.lows.iter().filter_map(from_corner);
        let edge = edge_at(&self.lows, x).map(|(corner, slope)| corner.y + slope.rise_at_least(x - corner.x));
        corners.chain(edge).max()
    }

    /// The latest moment at which a frame can have been taken.
    pub(super) fn latest_ns(&self, x: i128) -> Option<i128> {
        let from_corner = |corner: &Corner| match x - corner.x {
            0 => Some(corner.y),
            right if right > 0 => Some(corner.y + self.steepest?.rise_at_most(right)),
            left => Some(corner.y + self.flattest.rise_at_most(left)),
        };
        let corners = self.highs.iter().filter_map(from_corner);
        let edge = edge_at(&self.highs, x).map(|(corner, slope)| corner.y + slope.rise_at_most(x - corner.x));
        corners.chain(edge).min()
    }

    /// The least and the greatest rate, in frames per second of `CLOCK_MONOTONIC`; `None` if the marks do not bound it.
    pub fn rate_hz(&self) -> Option<[f64; 2]> {
        let (steepest, flattest) = (self.steepest?, self.flattest);
        // Three roundings each; outwards.
        let bounds = [
            steepest.frames_per_s() * (1.0 - 4.0 * f64::EPSILON),
            flattest.frames_per_s() * (1.0 + 4.0 * f64::EPSILON),
        ];
        (steepest.dy > 0 && flattest.dy > 0 && bounds.iter().all(|hz| hz.is_finite())).then_some(bounds)
    }

    /// How far the rate is from this nominal one, at least and at most, in parts per billion (10⁻⁹).
    pub fn rate_ppb(&self, nominal: SampleRate) -> Option<[f64; 2]> {
        Some(self.rate_hz()?.map(|hz| (hz / nominal.as_hz() - 1.0) * 1e9))
    }
}

/// The corners of the upper hull: no point lies above it. The points ascend in `x`.
fn upper_hull(points: impl Iterator<Item = Corner>) -> Vec<Corner> {
    let mut hull: Vec<Corner> = Vec::new();
    for point in points {
        while let [.., a, b] = hull[..]
            && (b.x - a.x) * (point.y - a.y) >= (point.x - a.x) * (b.y - a.y)
        {
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// The edge of a hull above or below `x`: its left corner and its slope.
fn edge_at(hull: &[Corner], x: i128) -> Option<(Corner, Slope)> {
    let right = hull.partition_point(|corner| corner.x <= x);
    let (left, right) = (hull.get(right.checked_sub(1)?)?, hull.get(right)?);
    Some((*left, Slope { dy: right.y - left.y, dx: right.x - left.x }))
}

/// How far the marks are from the best straight line: the least length by which each interval must grow at both ends
/// until a line meets all of them. Zero if the hull is not empty.
pub fn off_line(marks: &[Mark]) -> Nanos {
    let (mut enough, mut too_little) = (i64::MAX / 4, -1_i64);
    while enough - too_little > 1 {
        let middle = too_little.midpoint(enough);
        if marks.is_empty() || DriftHull::of(marks, middle.into()).is_some() {
            enough = middle;
        } else {
            too_little = middle;
        }
    }
    Nanos::new(enough)
}

#[cfg(test)]
mod tests {
    use hairspring_machine::Instant;
    use hairspring_ring::units::Frames;
    use proptest::prelude::*;

    use super::super::MarkSource;
    use super::*;

    fn mark((frame, low, high): (u64, i64, i64)) -> Mark {
        let at = |ns| Instant::from_monotonic(Nanos::new(ns));
        Mark { frame: Frames(frame), earliest: at(low), latest: at(high), how: MarkSource::Card }
    }

    /// The slow reference: every line through two ends of intervals, and whether it meets all of them. The bounds at a
    /// frame are those of these lines, because a linear program has its extremes at corners. With fractions: slope and
    /// offset times `dx`.
    fn reference(marks: &[(u64, i64, i64)], x: u64) -> Option<(f64, f64)> {
        let ends: Vec<(i128, i128)> = marks
            .iter()
            .flat_map(|(frame, low, high)| {
                [(i128::from(*frame), i128::from(*low)), (i128::from(*frame), i128::from(*high))]
            })
            .collect();
        let mut bounds: Option<(f64, f64)> = None;
        for (n, a) in ends.iter().enumerate() {
            for b in &ends[n..] {
                // A level line is the flattest possible.
                let slopes = if a.0 == b.0 { vec![(1, 0)] } else { vec![(1, 0), (b.0 - a.0, b.1 - a.1)] };
                for (dx, dy) in slopes {
                    let (dx, dy) = if dx < 0 { (-dx, -dy) } else { (dx, dy) };
                    let scaled = |frame: i128| a.1 * dx + dy * (frame - a.0);
                    let meets = |mark: &(u64, i64, i64)| {
                        let at = scaled(i128::from(mark.0));
                        i128::from(mark.1) * dx <= at && at <= i128::from(mark.2) * dx
                    };
                    if dy >= 0 && marks.iter().all(meets) {
                        let y = scaled(i128::from(x)) as f64 / dx as f64;
                        let (low, high) = bounds.unwrap_or((y, y));
                        bounds = Some((low.min(y), high.max(y)));
                    }
                }
            }
        }
        bounds
    }

    /// Marks near a line, so that there often is one through them.
    fn near_a_line() -> impl Strategy<Value = Vec<(u64, i64, i64)>> {
        let one = (0..60_u64, -9..10_i64, 0..14_i64, 0..14_i64);
        (0..40_i64, prop::collection::vec(one, 2..9)).prop_map(|(slope, all)| {
            let at = |(x, off, below, above): (u64, i64, i64, i64)| {
                let y = slope * x as i64 / 4 + off / 3;
                (x, y - below, y + above)
            };
            all.into_iter().map(at).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_hull_is_that_of_the_slow_reference(marks in near_a_line(), x in 0..80_u64) {
            let hull = DriftHull::through(&marks.iter().map(|one| mark(*one)).collect::<Vec<_>>());
            let expected = reference(&marks, x);
            prop_assert_eq!(hull.is_some(), expected.is_some());
            let (Some(hull), Some((low, high))) = (hull, expected) else { return Ok(()) };
            let frames: std::collections::BTreeSet<u64> = marks.iter().map(|one| one.0).collect();
            prop_assume!(frames.len() > 1);
            prop_assert_eq!(hull.earliest_ns(x.into()), Some(low.floor() as i128));
            prop_assert_eq!(hull.latest_ns(x.into()), Some(high.ceil() as i128));
        }

        #[test]
        fn marks_are_off_the_line_by_exactly_what_brings_them_back(marks in near_a_line()) {
            let marks: Vec<Mark> = marks.iter().map(|one| mark(*one)).collect();
            let off = off_line(&marks);
            prop_assert_eq!(off == Nanos::ZERO, DriftHull::through(&marks).is_some());
            prop_assert!(DriftHull::of(&marks, off.count().into()).is_some());
            prop_assert!(off == Nanos::ZERO || DriftHull::of(&marks, i128::from(off.count()) - 1).is_none());
        }

        /// The true line is never excluded, at any rate and any width, and the true rate lies within the bounds.
        #[test]
        fn the_truth_is_within_the_bounds(
            hz in 1.0..1e9_f64,
            widths in prop::collection::vec((0..1_000_000_i64, 0..1_000_000_i64), 2..40),
        ) {
            let time = |frame: u64| (frame as f64 / hz * 1e9) as i64;
            let step = ((hz * 10.0) as u64).max(1);
            let marks: Vec<Mark> = widths.iter().zip(0_u64..).map(|((below, above), number)| {
                let at = time(number * step);
                mark((number * step, at - below - 2000, at + above + 2000))
            }).collect();
            let hull = DriftHull::through(&marks).expect("the true line");
            let [low, high] = hull.rate_hz().expect("bounded");
            prop_assert!(low <= hz * (1.0 + 1e-12) && hz <= high * (1.0 + 1e-12), "{low} {hz} {high}");
            for frame in [0, step / 2, step * 3, step * 100] {
                let (earliest, latest) = (hull.earliest_ns(frame.into()), hull.latest_ns(frame.into()));
                let at = i128::from(time(frame));
                prop_assert!(earliest <= Some(at + 2000) && Some(at - 2000) <= latest, "{earliest:?} {at} {latest:?}");
            }
        }
    }

    #[test]
    fn two_marks_an_hour_apart_bound_the_rate_as_computed_by_hand() {
        // ± 0.5 ms at both ends of an hour: 1 ms in 3600 s is 0.28 ppm.
        let hour = 3_600_000_000_000;
        let marks = [(0, -500_000, 500_000), (3_600_000, hour - 500_000, hour + 500_000)].map(mark);
        let [low, high] = DriftHull::through(&marks)
            .expect("a line")
            .rate_ppb(SampleRate::hz(1000).expect("a rate"))
            .expect("bounded");
        assert!((low + 277.8).abs() < 0.1 && (high - 277.8).abs() < 0.1, "{low} {high}");
    }

    #[test]
    fn marks_of_one_frame_bound_that_frame_and_no_rate() {
        let hull = DriftHull::through(&[mark((7, 10, 30)), mark((7, 20, 40))]).expect("a line");
        assert_eq!((hull.earliest_ns(7), hull.latest_ns(7), hull.rate_hz()), (Some(20), Some(30), None));
        assert_eq!((hull.earliest_ns(8), hull.latest_ns(8), hull.latest_ns(6)), (Some(20), None, Some(30)));
        assert!(DriftHull::through(&[mark((7, 10, 20)), mark((7, 21, 40))]).is_none());
        assert!(DriftHull::through(&[]).is_none());
    }
}
