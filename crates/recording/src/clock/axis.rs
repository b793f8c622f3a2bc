//! [`TimeAxis`]: the time of any frame of a recording, as an interval; and [`align`]: two recordings of one boot on one
//! axis.

use std::fmt;

use hairspring_machine::{Instant, Nanos};
use hairspring_ring::units::{Frames, SampleRate};

use super::hull::{DriftHull, off_line};
use super::{BootId, ClockRecord, Mark};

/// Frames and moments beyond this are refused: the arithmetic would leave its range.
const FARTHEST: i128 = 1 << 60;

/// When a frame was taken: between these two moments of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTime {
    /// Not before this.
    pub earliest: Instant,
    /// Not after this.
    pub latest: Instant,
}

impl FrameTime {
    /// The middle of the interval, and the largest distance of an end from it.
    pub fn middle(self) -> (Instant, Nanos) {
        let half = Nanos::new((self.latest - self.earliest).count() / 2);
        let middle = self.earliest + half;
        (middle, self.latest - middle)
    }
}

/// The time axis of a recording.
///
/// If the source has a clock of its own and a straight line meets all marks, the bounds are those of all such lines
/// ([`DriftHull`]). Otherwise a frame lies between the marks before and after it, because frames are taken in order.
#[derive(Clone, Debug)]
pub struct TimeAxis {
    /// By frame.
    marks: Vec<Mark>,
    hull: Option<DriftHull>,
    off_line: Nanos,
    clocked: bool,
    boot_id: Option<BootId>,
}

impl TimeAxis {
    /// The axis of a recording with this clock record. `clocked`: the source has a clock of its own.
    pub fn new(record: &ClockRecord, clocked: bool) -> Self {
        let mut marks = record.marks().to_vec();
        marks.sort_by_key(|mark| (mark.frame, mark.earliest));
        let hull = if clocked { DriftHull::through(&marks) } else { None };
        let off_line = if clocked && hull.is_none() { off_line(&marks) } else { Nanos::ZERO };
        Self { marks, hull, off_line, clocked, boot_id: record.boot_id }
    }

    /// When a frame was taken; `None` if the marks do not bound it on both sides.
    pub fn time_of(&self, frame: Frames) -> Option<FrameTime> {
        let x = i128::from(frame.0);
        let at = |ns: i128| i64::try_from(ns).ok().map(|ns| Instant::from_monotonic(Nanos::new(ns)));
        let (earliest, latest) = (at(self.earliest_ns(x)?)?, at(self.latest_ns(x)?)?);
        (x < FARTHEST).then_some(FrameTime { earliest, latest })
    }

    /// The frames between which the source was during an interval: the first was taken before it or at its begin, the
    /// last at its end or after it. Negative before frame 0. `None` if the marks do not bound them.
    pub fn frames_at(&self, time: FrameTime) -> Option<(i64, i64)> {
        let (from, to) =
            (i128::from(time.earliest.as_monotonic().count()), i128::from(time.latest.as_monotonic().count()));
        // Both bounds ascend with the frame.
        let first = least(|x| self.latest_ns(x).is_none_or(|latest| latest > from))? - 1;
        let last = least(|x| self.earliest_ns(x).is_some_and(|earliest| earliest >= to))?;
        Some((first, last))
    }

    /// The least and the greatest rate in frames per second of `CLOCK_MONOTONIC`, if the source has a clock and the
    /// marks bound it.
    pub fn rate_hz(&self) -> Option<[f64; 2]> {
        self.hull.as_ref()?.rate_hz()
    }

    /// How far the rate is from the nominal one, in parts per billion.
    pub fn rate_ppb(&self, nominal: SampleRate) -> Option<[f64; 2]> {
        self.hull.as_ref()?.rate_ppb(nominal)
    }

    /// How far the marks of a source with a clock are from any straight line. More than zero is a finding: the clock
    /// stepped or was not steady, data came with varying delay, or frames were lost without notice.
    pub fn off_line(&self) -> Nanos {
        self.off_line
    }

    /// From the first mark to the last.
    pub fn over(&self) -> Nanos {
        let ends = self.marks.first().zip(self.marks.last());
        ends.map_or(Nanos::ZERO, |(first, last)| last.latest - first.earliest)
    }

    /// Whether the source has a clock of its own.
    pub fn is_clocked(&self) -> bool {
        self.clocked
    }

    fn earliest_ns(&self, x: i128) -> Option<i128> {
        if let Some(hull) = &self.hull {
            return hull.earliest_ns(x);
        }
        let before = self.marks.partition_point(|mark| i128::from(mark.frame.0) <= x);
        self.marks[..before].iter().map(|mark| i128::from(mark.earliest.as_monotonic().count())).max()
    }

    fn latest_ns(&self, x: i128) -> Option<i128> {
        if let Some(hull) = &self.hull {
            return hull.latest_ns(x);
        }
        let before = self.marks.partition_point(|mark| i128::from(mark.frame.0) < x);
        self.marks[before..].iter().map(|mark| i128::from(mark.latest.as_monotonic().count())).min()
    }
}

/// The least frame for which `is_there` holds, if it holds for a frame within reach and not for all.
fn least(is_there: impl Fn(i128) -> bool) -> Option<i64> {
    let (mut no, mut yes) = (-FARTHEST, FARTHEST);
    if is_there(no) || !is_there(yes) {
        return None;
    }
    while yes - no > 1 {
        let middle = no.midpoint(yes);
        if is_there(middle) { yes = middle } else { no = middle }
    }
    i64::try_from(yes).ok()
}

/// The place of one recording on the axis of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// Delay of the frame of `b` after the frame of `a`, at least.
    pub earliest: Nanos,
    /// The same, at most.
    pub latest: Nanos,
    /// The frames of `b` between which `b` was when the frame of `a` was taken. `None` if the marks of `b` do not bound
    /// them.
    pub frames: Option<(i64, i64)>,
}

/// Why two recordings have no common axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlignError {
    /// One of them does not state in which boot it was made: an older version wrote it.
    NoBoot,
    /// They are of different boots, and `CLOCK_MONOTONIC` restarts with each.
    OtherBoot,
    /// The marks of one do not bound the time of the frame.
    Unbounded,
}

impl fmt::Display for AlignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoBoot => {
                "a recording does not state in which boot of the computer it was made: compare core:datetime instead"
            }
            Self::OtherBoot => "the recordings are of different boots or computers: compare core:datetime instead",
            Self::Unbounded => "the marks of a recording do not bound the time of this frame: it was too short",
        })
    }
}

impl std::error::Error for AlignError {}

/// How much later frame `frame` of `b` was taken than frame `frame` of `a`, and where `b` was then. Both as
/// intervals that hold if each card's clock is steady.
///
/// # Errors
/// See [`AlignError`].
pub fn align(a: &TimeAxis, b: &TimeAxis, frame: Frames) -> Result<Alignment, AlignError> {
    match (a.boot_id, b.boot_id) {
        (Some(first), Some(second)) if first == second => {}
        (Some(_), Some(_)) => return Err(AlignError::OtherBoot),
        _ => return Err(AlignError::NoBoot),
    }
    let (in_a, in_b) = a.time_of(frame).zip(b.time_of(frame)).ok_or(AlignError::Unbounded)?;
    let (earliest, latest) = (in_b.earliest - in_a.latest, in_b.latest - in_a.earliest);
    Ok(Alignment { earliest, latest, frames: b.frames_at(in_a) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::MarkSource;
    use super::*;

    fn at(ns: i64) -> Instant {
        Instant::from_monotonic(Nanos::new(ns))
    }

    /// A card that takes frame `n` at `start + n·period`, seen with this uncertainty every 1000 frames.
    fn axis(start: i64, period: i64, width: i64, clocked: bool) -> TimeAxis {
        let mut record = ClockRecord { boot_id: Some(BootId([1; 16])), ..ClockRecord::default() };
        for number in 0..10 {
            let time = start + number * 1000 * period;
            record.mark(Mark {
                frame: Frames(number as u64 * 1000),
                earliest: at(time - width),
                latest: at(time + width),
                how: MarkSource::Card,
            });
        }
        TimeAxis::new(&record, clocked)
    }

    #[test]
    fn without_a_clock_a_frame_lies_between_its_neighbours() {
        let axis = axis(0, 100, 5, false);
        assert_eq!(axis.time_of(Frames(1500)), Some(FrameTime { earliest: at(99_995), latest: at(200_005) }));
        assert_eq!(axis.time_of(Frames(9001)), None);
        assert_eq!((axis.rate_hz(), axis.off_line()), (None, Nanos::ZERO));
        assert_eq!(axis.frames_at(FrameTime { earliest: at(150_000), latest: at(150_000) }), Some((1000, 2000)));
    }

    #[test]
    fn a_frame_that_vanished_without_notice_leaves_no_line() {
        let mut record = ClockRecord::default();
        for (frame, time) in [(0, 0), (1000, 100_000), (1990, 200_000), (2990, 300_000)] {
            let how = MarkSource::Card;
            record.mark(Mark { frame: Frames(frame), earliest: at(time - 100), latest: at(time + 100), how });
        }
        let axis = TimeAxis::new(&record, true);
        // Ten frames of 100 ns vanished; a line through the middle misses by less than half of that.
        assert!(axis.off_line() > Nanos::new(100) && axis.off_line() < Nanos::new(500), "{}", axis.off_line());
        assert_eq!(axis.time_of(Frames(1500)), Some(FrameTime { earliest: at(99_900), latest: at(200_100) }));
    }

    #[test]
    fn recordings_of_two_boots_are_not_aligned() {
        let (a, mut b) = (axis(0, 100, 5, true), axis(0, 100, 5, true));
        b.boot_id = Some(BootId([2; 16]));
        assert_eq!(align(&a, &b, Frames(0)), Err(AlignError::OtherBoot));
        b.boot_id = None;
        assert_eq!(align(&a, &b, Frames(0)), Err(AlignError::NoBoot));
        let empty = TimeAxis::new(&ClockRecord { boot_id: a.boot_id, ..ClockRecord::default() }, true);
        assert_eq!(align(&a, &empty, Frames(0)), Err(AlignError::Unbounded));
    }

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_alignment(
            starts in any::<[u32; 2]>(),
            periods in [1..100_000_i64, 1..100_000_i64],
            widths in [0..50_000_i64, 0..50_000_i64],
            frame in 0..20_000_u64,
        ) {
            let [a, b] = [0, 1].map(|n| axis(starts[n].into(), periods[n], widths[n], true));
            let time = |n: usize| i64::from(starts[n]) + frame as i64 * periods[n];
            let found = align(&a, &b, Frames(frame)).expect("aligned");
            let truth = Nanos::new(time(1) - time(0));
            prop_assert!(found.earliest <= truth && truth <= found.latest, "{:?} {truth}", found);
            if let Some((first, last)) = found.frames {
                let truth = (time(0) - i64::from(starts[1])) as f64 / periods[1] as f64;
                prop_assert!(first as f64 <= truth + 1e-6 && truth - 1e-6 <= last as f64, "{:?} {truth}", found);
            }
        }
    }
}
