//! [`ResumeFrom`]: computes the number of frames missing between the end of a recording and the start of the next run
//! of its source.
//!
//! ```text
//!   last frame taken in      [ a ── b ]
//!   first frame of the run              ...      [ c ── d ]       c − b ≤ time between ≤ d − a
//! ```
//!
//! The source counts from 0 again, so the frames between the runs were not counted. The two clocks bound them: on one
//! boot of the computer the monotonic clock plus the time for which the computer was suspended, otherwise the time of
//! day; the kernel states the error of each reading. The rate of the source is taken as the nominal one ± [`RATE_PPM`].
//! The gap is the least number of frames that can be missing; the interval bounds the excess.
//!
//! If the sender of the stream numbers its frames and did not restart, the gap is exact. A restarted sender can show a
//! number that looks like a continuation. So its numbers count only if the clocks agree: the frames since the last mark
//! are half to twice the number that the rate predicts, ± [`NEAR`] numbers, and no other wrap-around of the numbers
//! fits as well. The rate is the nominal one, or the average of the last run.

use hairspring_machine::{Instant, Nanos};
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Frames, SampleRate};
use hairspring_source::SenderCount;

use hairspring_recording::beginning::Beginning;
use hairspring_recording::clock::ClockRecord;
use hairspring_recording::journal::GapBounds;
use hairspring_recording::sigmf::About;

/// How far the rate of a source may be from its nominal rate, in parts per million: more than any quartz.
const RATE_PPM: f64 = 200.0;
/// Assumed error of a time of day that is not synchronized.
const UNSURE: Nanos = Nanos::from_secs(1);
/// Deviation of a sender's numbers from its rate that is always accepted.
const NEAR: i128 = 64;

/// The end of the recording to resume.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumeFrom {
    /// The first frame after the recording.
    pub end: Frames,
    /// When that frame would have been taken: the earliest and the latest time. `None` if unknown.
    pub taken: Option<(Instant, Instant)>,
    /// Facts about the clocks at the end of the recording.
    pub clock: ClockRecord,
    /// Frames per second; `None` if the source states no rate.
    pub rate: Option<SampleRate>,
    /// Average frames per second of its last run, up to the last mark; `None` without a mark after the first frame.
    pub average_hz: Option<f64>,
    /// The layout; a loss is a whole number of its grains.
    pub layout: Layout,
}

impl ResumeFrom {
    /// The end of a recording that has all frames before `end`. The time of that frame is on the line through the
    /// marks; without such a line the nominal rate is counted on from the last mark.
    pub fn of(about: &About, end: Frames) -> Self {
        let by_axis = about.time_axis().time_of(end).map(|time| (time.earliest, time.latest));
        let taken = by_axis.or_else(|| {
            let mark = about.clock.marks().last()?;
            let span = about.rate?.time_of(Frames(end.0.checked_sub(mark.frame.0)?));
            let slack = Nanos::new((span.count() as f64 * RATE_PPM * 1e-6) as i64 + 1);
            Some((mark.earliest + span - slack, mark.latest + span + slack))
        });
        let began = about.series.as_ref().map_or(Frames(0), |of| of.epoch_first);
        let average_hz = about.clock.marks().last().and_then(|mark| {
            let (frames, span) = (mark.frame.0.checked_sub(began.0)?, mark.earliest - about.started_monotonic);
            (frames > 0 && span > Nanos::ZERO).then(|| frames as f64 / span.as_secs_f64())
        });
        Self { end, taken, clock: about.clock.clone(), rate: about.rate, average_hz, layout: about.layout }
    }

    /// The frames that are missing when the source begins again. `clock`: facts about the clocks now; `count`: the
    /// sender's counter.
    pub fn bounds(&self, beginning: Beginning, clock: &ClockRecord, count: Option<SenderCount>) -> GapBounds {
        if let Some(frames) = count.and_then(|count| self.by_count(beginning, clock, count)) {
            return GapBounds { first: self.end, least: frames, most: frames };
        }
        let grain = self.layout.grain().frames;
        let Some(((least, most), rate)) = self.between(beginning, clock).zip(self.rate) else {
            return GapBounds { first: self.end, least: Frames(0), most: Frames(u64::MAX) };
        };
        let frames = |time: Nanos, factor: f64| (time.count().max(0) as f64 * 1e-9 * rate.as_hz() * factor).max(0.0);
        let least = frames(least, 1.0 - RATE_PPM * 1e-6) as u64 / grain * grain;
        let most = (frames(most, 1.0 + RATE_PPM * 1e-6).ceil() as u64 + 1).div_ceil(grain) * grain;
        GapBounds { first: self.end, least: Frames(least), most: Frames(most.max(least)) }
    }

    /// The frames that are missing by the numbers of the sender; `None` if it may have restarted.
    fn by_count(&self, beginning: Beginning, clock: &ClockRecord, now: SenderCount) -> Option<Frames> {
        let before =
            self.clock.count.filter(|before| (before.bits, before.frames_each) == (now.bits, now.frames_each))?;
        let mark = self.clock.marks().last()?;
        let since = match self.suspended((mark.latest, mark.latest), beginning, clock) {
            Some((least, most)) => [least, most].map(|suspended| beginning.monotonic - mark.latest + suspended),
            None => [beginning.realtime - self.clock.realtime_at(mark.latest)?.0; 2],
        };
        let rate_hz = self.rate.map(SampleRate::as_hz).or(self.average_hz)?;
        let expected = since.map(|since| (since.max(Nanos::ZERO).as_secs_f64() * rate_hz) as i128);
        let each = i128::from(now.frames_each);
        let turn = each << now.bits;
        // The frame of the series that the source counts as 0 now, up to whole wrap-arounds of the numbers.
        let numbers = (i128::from(now.number) - i128::from(before.number)).rem_euclid(1 << now.bits);
        let origin = i128::from(before.frame.0) + numbers * each - i128::from(now.frame.0);
        let (from, end) = (i128::from(mark.frame.0), i128::from(self.end.0));
        let least = (from + expected[0] / 2 - NEAR * each).max(end);
        let most = from + expected[1] * 2 + NEAR * each;
        let turns = (least - origin).max(0).div_euclid(turn) + i128::from((least - origin).max(0).rem_euclid(turn) > 0);
        let origin = origin + turns * turn;
        let is_only_one = origin >= least && origin <= most && origin + turn > most;
        is_only_one.then(|| u64::try_from(origin - end).ok().map(Frames)).flatten()
    }

    /// The time between, at least and at most.
    fn between(&self, beginning: Beginning, clock: &ClockRecord) -> Option<(Nanos, Nanos)> {
        let (earliest, latest) = self.taken?;
        if let Some((least_suspended, most_suspended)) = self.suspended((earliest, latest), beginning, clock) {
            let begins = beginning.monotonic;
            return Some((begins - beginning.within - latest + least_suspended, begins - earliest + most_suspended));
        }
        let (before, _) = self.clock.realtime_within(earliest)?;
        let (_, until) = self.clock.realtime_within(latest)?;
        let unsure = unsure(&self.clock) + unsure(clock);
        Some((beginning.realtime - beginning.within - until - unsure, beginning.realtime - before + unsure))
    }

    /// How long the computer was suspended between a moment of the recording and the beginning, at least and at most;
    /// `None` on another boot. A recording that was cut off may have been suspended after its last pair, before or
    /// after that moment.
    fn suspended(
        &self,
        (earliest, latest): (Instant, Instant),
        beginning: Beginning,
        clock: &ClockRecord,
    ) -> Option<(Nanos, Nanos)> {
        (self.clock.boot_id.is_some() && self.clock.boot_id == clock.boot_id).then_some(())?;
        let before = (self.clock.suspended_at(earliest).0, self.clock.suspended_at(latest).1);
        let now = clock.suspended_at(beginning.monotonic - beginning.within).0;
        let now = (now, clock.suspended_at(beginning.monotonic).1.unwrap_or(now));
        let least = before.1.map_or(Nanos::ZERO, |before| now.0 - before);
        Some((least.max(Nanos::ZERO), (now.1 - before.0).max(Nanos::ZERO)))
    }
}

/// The error of a time of day.
fn unsure(clock: &ClockRecord) -> Nanos {
    let stated = clock.reference.filter(|reference| reference.synchronized).map(|reference| reference.most_error);
    stated.unwrap_or(UNSURE)
}

#[cfg(test)]
mod tests {
    use hairspring_ring::layout::Container;

    use super::*;
    use hairspring_recording::clock::{BootId, ClockPair, Mark, MarkSource};

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
            average_hz: None,
            layout: Layout::analogue(2, 16).expect("exists"),
        }
    }

    #[test]
    fn on_one_boot_the_monotonic_clock_bounds_what_is_missing() {
        let beginning =
            Beginning { monotonic: at(11_000_000_000), realtime: Nanos::ZERO, within: Nanos::from_millis(2) };
        let bounds = from().bounds(beginning, &clock(1, Nanos::from_secs(999)), None);
        // 9.997 to 10 s at 1000 frames per second ± 200 ppm.
        assert_eq!(bounds, GapBounds { first: Frames(5000), least: Frames(9995), most: Frames(10_003) });
    }

    /// A computer that was suspended for an hour between two runs: the gap of the monotonic clock was an hour too
    /// short.
    #[test]
    fn a_suspend_between_two_runs_is_in_the_gap_and_one_at_an_unknown_time_widens_it() {
        let pair = |seconds: i64, suspended: i64| ClockPair {
            monotonic: at(seconds * 1_000_000_000),
            realtime: Nanos::ZERO,
            raw: Nanos::ZERO,
            suspended: Nanos::from_secs(suspended),
            within: Nanos::ZERO,
        };
        let record = |pairs: &[ClockPair]| {
            let mut record = ClockRecord::default();
            record.boot_id = Some(BootId([1; 16]));
            pairs.iter().for_each(|one| record.pair(*one));
            record
        };
        let beginning = Beginning { monotonic: at(11_000_000_000), realtime: Nanos::ZERO, within: Nanos::ZERO };
        let bounds = |before: &[ClockPair], after: &[ClockPair]| {
            let from = ResumeFrom { clock: record(before), ..from() };
            let bounds = from.bounds(beginning, &record(after), None);
            (bounds.least.0 / 1000, bounds.most.0.div_ceil(1000))
        };
        // Both ends of the recording are known: 10 s, and an hour of suspend.
        assert_eq!(bounds(&[pair(0, 5), pair(2, 5)], &[pair(11, 3605)]), (3609, 3611));
        // It was cut off after its last pair, so the hour may be in the recording or after it.
        assert_eq!(bounds(&[pair(0, 5)], &[pair(11, 3605)]), (9, 3611));
        // The new run was suspended before its first frame came, or after that.
        assert_eq!(bounds(&[pair(0, 5), pair(2, 5)], &[pair(10, 5), pair(12, 3605)]), (9, 3611));
    }

    #[test]
    fn on_another_boot_the_time_of_day_does_as_far_as_it_can_be_trusted() {
        let beginning = Beginning { monotonic: at(5), realtime: Nanos::from_secs(111), within: Nanos::ZERO };
        let bounds = from().bounds(beginning, &clock(2, Nanos::from_secs(111)), None);
        // From second 101 to second 111, each a second off at most.
        assert!((7990..=7999).contains(&bounds.least.0) && (12_000..=12_010).contains(&bounds.most.0), "{bounds:?}");
        // The first frame may have been taken earlier than stated, and the old pair may be off as far as its bracket
        // was wide.
        let mut wide = from();
        let none = Nanos::ZERO;
        let pair = |within| ClockPair {
            monotonic: Instant::BOOT,
            realtime: Nanos::from_secs(100),
            raw: none,
            suspended: none,
            within,
        };
        wide.clock = ClockRecord::default();
        wide.clock.boot_id = Some(BootId([1; 16]));
        wide.clock.pair(pair(Nanos::from_secs(2)));
        let late = Beginning { within: Nanos::from_secs(3), ..beginning };
        let bounds = wide.bounds(late, &clock(2, Nanos::from_secs(111)), None);
        assert!((2990..=2999).contains(&bounds.least.0) && (14_000..=14_010).contains(&bounds.most.0), "{bounds:?}");
        // A clock that was set back: nothing need be missing.
        let earlier = Beginning { realtime: Nanos::from_secs(50), ..beginning };
        assert_eq!(from().bounds(earlier, &clock(2, SECOND), None).least, Frames(0));
    }

    #[test]
    fn what_is_missing_is_whole_grains() {
        let layout = Layout::stored_as(3, 12, Container::Packed12).expect("exists");
        let grain = layout.grain().frames;
        let beginning =
            Beginning { monotonic: at(11_000_000_000), realtime: Nanos::ZERO, within: Nanos::from_millis(2) };
        let bounds = ResumeFrom { layout, ..from() }.bounds(beginning, &clock(1, SECOND), None);
        let expected = [9995 / grain * grain, 10_003_u64.next_multiple_of(grain)].map(Frames);
        assert!(grain > 1);
        assert_eq!([bounds.least, bounds.most], expected);
    }

    #[test]
    fn what_nobody_knows_is_not_invented() {
        let beginning = Beginning { monotonic: at(5), realtime: SECOND, within: Nanos::ZERO };
        let unknown = GapBounds { first: Frames(5000), least: Frames(0), most: Frames(u64::MAX) };
        assert_eq!(ResumeFrom { rate: None, ..from() }.bounds(beginning, &clock(1, SECOND), None), unknown);
        assert_eq!(ResumeFrom { taken: None, ..from() }.bounds(beginning, &clock(1, SECOND), None), unknown);
    }

    /// A recording of numbers with 10 frames each, 1000 frames per second, which ended in the middle of number 499. It
    /// is resumed `seconds` after its last mark, with this number.
    #[track_caller]
    fn resumed_with(bits: u8, seconds: i64, number: u64, expected: Option<u64>) {
        for average_hz in [None, Some(1000.0)] {
            let count = |frame, number| SenderCount { frame: Frames(frame), number, frames_each: 10, bits };
            let mut before = ResumeFrom { end: Frames(4995), average_hz, ..from() };
            if average_hz.is_some() {
                before.rate = None;
            }
            let at = at(1_000_000_000);
            before.clock.mark(Mark { frame: Frames(4900), earliest: at, latest: at, how: MarkSource::Kernel });
            before.clock.count = Some(count(0, 0));
            let beginning = Beginning {
                monotonic: at + Nanos::from_secs(seconds),
                realtime: Nanos::ZERO,
                within: Nanos::from_millis(2),
            };
            let bounds = before.bounds(beginning, &clock(1, SECOND), Some(count(0, number)));
            let exact = (bounds.least == bounds.most).then_some(bounds.least.0);
            assert_eq!(exact, expected, "{bits} bits, after {seconds} s with {number}: {bounds:?}");
            assert_eq!(bounds.first, Frames(4995));
        }
    }

    #[test]
    fn a_sender_that_went_on_counting_says_exactly_how_many_are_missing() {
        // 10 s later 1000 numbers have passed.
        resumed_with(32, 10, 1490, Some(14_900 - 4995));
        // Less exact than the clocks, but within twice the time.
        resumed_with(32, 10, 2400, Some(24_000 - 4995));
        // Nothing is missing but the rest of a datagram, or of none.
        resumed_with(32, 0, 500, Some(5));
        // 512 numbers, which wrapped around.
        resumed_with(9, 2, 690 - 512, Some(6900 - 4995));
    }

    /// The sender's numbers do not begin with 0, and the first number came with a later frame; the computer was
    /// rebooted between the runs.
    #[test]
    fn numbers_count_from_where_each_was_told_also_on_another_boot() {
        let count = |frame, number| SenderCount { frame: Frames(frame), number, frames_each: 10, bits: 32 };
        let at = at(1_000_000_000);
        let mut before = ResumeFrom { end: Frames(4995), ..from() };
        before.clock.mark(Mark { frame: Frames(4900), earliest: at, latest: at, how: MarkSource::Kernel });
        before.clock.count = Some(count(300, 7030));
        // Frame 300 has number 7030, so frame 14,900 of the series has 8490. The run counts it as its frame 40.
        let told = Some(count(40, 8490));
        let realtime = before.clock.realtime_at(at).expect("known").0 + Nanos::from_secs(10);
        let same = Beginning { monotonic: at + Nanos::from_secs(10), realtime: Nanos::ZERO, within: Nanos::ZERO };
        let other = Beginning { monotonic: Instant::BOOT, realtime, within: Nanos::ZERO };
        for (beginning, boot) in [(same, 1), (other, 2)] {
            let bounds = before.bounds(beginning, &clock(boot, SECOND), told);
            assert_eq!((bounds.least, bounds.most), (Frames(14_860 - 4995), Frames(14_860 - 4995)), "boot {boot}");
        }
    }

    /// 10 s at 1000 frames per second after frame 4900: half to twice as many, ± 64 numbers of 10 frames.
    #[test]
    fn numbers_are_believed_within_twice_the_time_and_some_and_no_further() {
        let least = 4900 + 5000 - 640;
        let most = 4900 + 20_000 + 640;
        resumed_with(32, 10, least / 10, Some(least - 4995));
        resumed_with(32, 10, least / 10 - 1, None);
        resumed_with(32, 10, most / 10, Some(most - 4995));
        resumed_with(32, 10, most / 10 + 1, None);
        // 2048 numbers wrap around once in 20,480 frames. The accepted range has 16,290, so it never holds two
        // candidates. With 1024 it may.
        resumed_with(11, 10, least / 10, Some(least - 4995));
        resumed_with(10, 10, (least / 10) % 1024, None);
        // The second candidate is the last accepted number, and the one after it.
        resumed_with(10, 10, 506, None);
        resumed_with(10, 10, 507, Some(15_310 - 4995));
    }

    #[test]
    fn a_sender_that_may_have_begun_anew_says_nothing() {
        resumed_with(32, 10, 0, None);
        resumed_with(32, 10, 700, None);
        resumed_with(32, 10, 40_000, None);
        // Several wrap-arounds fit.
        resumed_with(8, 10, 210, None);
        // Other datagrams.
        let mut before = from();
        before.clock.count = Some(SenderCount { frame: Frames(0), number: 0, frames_each: 10, bits: 32 });
        let beginning = Beginning { monotonic: at(2_000_000_000), realtime: SECOND, within: Nanos::ZERO };
        let now = SenderCount { frame: Frames(0), number: 600, frames_each: 11, bits: 32 };
        let bounds = before.bounds(beginning, &clock(1, SECOND), Some(now));
        assert!(bounds.most > bounds.least, "{bounds:?}");
    }
}
