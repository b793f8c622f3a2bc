//! [`ResumeFrom`]: how many frames are missing between the end of a recording and the start of the next run of its source.
//!
//! ```text
//!   last frame taken in      [ a ── b ]
//!   first frame of the run              ...      [ c ── d ]       c − b ≤ time between ≤ d − a
//! ```
//!
//! The source counted from 0 again, so nobody counted the frames between. The two clocks bound them: on one boot of the computer the
//! monotonic clock, otherwise the time of day, each reading as far off as the kernel says. The rate of the source is taken as the nominal
//! one, give or take [`RATE_PPM`]. The gap is the fewest frames that can be missing; the interval says how far that may be off.

use hairspring_machine::{Instant, Nanos};
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Frames, SampleRate};

use crate::beginning::Beginning;
use crate::clock::ClockRecord;
use crate::journal::GapBounds;
use crate::sigmf::About;

/// How far the rate of a source may be from its nominal rate, in parts per million: more than any quartz.
const RATE_PPM: f64 = 200.0;
/// How far a time of day may be off that nobody keeps synchronized.
const UNSURE: Nanos = Nanos::from_secs(1);

/// The end of the recording that goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumeFrom {
    /// The first frame that it has not.
    pub end: Frames,
    /// When that frame would have been taken: not before, and not after. `None` if nobody knows.
    pub taken: Option<(Instant, Instant)>,
    /// What was known of time then.
    pub clock: ClockRecord,
    /// Frames per second; `None` if the source states no rate.
    pub rate: Option<SampleRate>,
    /// The layout, whose grains losses are whole numbers of.
    pub layout: Layout,
}

impl ResumeFrom {
    /// The end of a recording, which has all frames before this one. The time of that frame is on the line through its marks; where they bound
    /// none, the nominal rate counts on from the last mark.
    pub fn of(about: &About, end: Frames) -> Self {
        let by_axis = about.time_axis().time_of(end).map(|time| (time.earliest, time.latest));
        let taken = by_axis.or_else(|| {
            let mark = about.clock.marks().last()?;
            let span = about.rate?.time_of(Frames(end.0.checked_sub(mark.frame.0)?));
            let slack = Nanos::new((span.count() as f64 * RATE_PPM * 1e-6) as i64 + 1);
            Some((mark.earliest + span - slack, mark.latest + span + slack))
        });
        Self { end, taken, clock: about.clock.clone(), rate: about.rate, layout: about.layout }
    }

    /// The frames that are missing when the source begins again. `clock` is what is known of time now.
    pub fn bounds(&self, beginning: Beginning, clock: &ClockRecord) -> GapBounds {
        let grain = self.layout.grain().frames;
        let Some(((least, most), rate)) = self.between(beginning, clock).zip(self.rate) else {
            return GapBounds { first: self.end, least: Frames(0), most: Frames(u64::MAX) };
        };
        let frames = |time: Nanos, factor: f64| (time.count().max(0) as f64 * 1e-9 * rate.as_hz() * factor).max(0.0);
        let least = frames(least, 1.0 - RATE_PPM * 1e-6) as u64 / grain * grain;
        let most = (frames(most, 1.0 + RATE_PPM * 1e-6).ceil() as u64 + 1).div_ceil(grain) * grain;
        GapBounds { first: self.end, least: Frames(least), most: Frames(most.max(least)) }
    }

    /// The time between, at least and at most.
    fn between(&self, beginning: Beginning, clock: &ClockRecord) -> Option<(Nanos, Nanos)> {
        let (earliest, latest) = self.taken?;
        if self.clock.boot_id.is_some() && self.clock.boot_id == clock.boot_id {
            let begins = beginning.monotonic;
            return Some((begins - beginning.within - latest, begins - earliest));
        }
        let (before, before_within) = self.clock.realtime_at(earliest)?;
        let (until, until_within) = self.clock.realtime_at(latest)?;
        let unsure = unsure(&self.clock) + unsure(clock);
        let least = beginning.realtime - beginning.within - until - until_within - unsure;
        let most = beginning.realtime - before + before_within + unsure;
        Some((least, most))
    }
}

/// How far a time of day may be off.
fn unsure(clock: &ClockRecord) -> Nanos {
    let stated = clock.reference.filter(|reference| reference.synchronized).map(|reference| reference.most_error);
    stated.unwrap_or(UNSURE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{BootId, ClockPair};

    const SECOND: Nanos = Nanos::from_secs(1);

    fn at(ns: i64) -> Instant {
        Instant::BOOT + Nanos::new(ns)
    }

    fn clock(boot: u8, realtime_of_boot: Nanos) -> ClockRecord {
        let mut clock = ClockRecord::default();
        clock.boot_id = Some(BootId([boot; 16]));
        let none = Nanos::ZERO;
        clock.pair(ClockPair {
            monotonic: Instant::BOOT,
            realtime: realtime_of_boot,
            raw: none,
            suspended: none,
            within: none,
        });
        clock
    }

    fn from() -> ResumeFrom {
        ResumeFrom {
            end: Frames(5000),
            taken: Some((at(1_000_000_000), at(1_001_000_000))),
            clock: clock(1, Nanos::from_secs(100)),
            rate: SampleRate::hz(1000),
            layout: Layout::analogue(2, 16).expect("exists"),
        }
    }

    #[test]
    fn on_one_boot_the_monotonic_clock_bounds_what_is_missing() {
        let beginning =
            Beginning { monotonic: at(11_000_000_000), realtime: Nanos::ZERO, within: Nanos::from_millis(2) };
        let bounds = from().bounds(beginning, &clock(1, Nanos::from_secs(999)));
        // 9.997 to 10 s at 1000 frames per second, give or take 200 ppm.
        assert_eq!(bounds, GapBounds { first: Frames(5000), least: Frames(9995), most: Frames(10_003) });
    }

    #[test]
    fn on_another_boot_the_time_of_day_does_as_far_as_it_can_be_trusted() {
        let beginning = Beginning { monotonic: at(5), realtime: Nanos::from_secs(111), within: Nanos::ZERO };
        let bounds = from().bounds(beginning, &clock(2, Nanos::from_secs(111)));
        // From second 101 to second 111, each a second off at most.
        assert!((7990..=7999).contains(&bounds.least.0) && (12_000..=12_010).contains(&bounds.most.0), "{bounds:?}");
        // A clock that was set back: nothing need be missing.
        let earlier = Beginning { realtime: Nanos::from_secs(50), ..beginning };
        assert_eq!(from().bounds(earlier, &clock(2, SECOND)).least, Frames(0));
    }

    #[test]
    fn what_nobody_knows_is_not_invented() {
        let beginning = Beginning { monotonic: at(5), realtime: SECOND, within: Nanos::ZERO };
        let unknown = GapBounds { first: Frames(5000), least: Frames(0), most: Frames(u64::MAX) };
        assert_eq!(ResumeFrom { rate: None, ..from() }.bounds(beginning, &clock(1, SECOND)), unknown);
        assert_eq!(ResumeFrom { taken: None, ..from() }.bounds(beginning, &clock(1, SECOND)), unknown);
    }
}
