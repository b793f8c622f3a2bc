//! [`Ages`]: the age of each closed segment, as a lower bound.
//!
//! **Problem.** The time of day steps: a board without a battery begins in 1970 and is set right later, a user sets the
//! clock. By such a clock a segment of three seconds ago is decades old, or never ages. `CLOCK_BOOTTIME` never steps,
//! but restarts at each boot.
//!
//! **Solution.** `Ages` adds up the intervals between the ends of the segments and the present: between two ends in one
//! boot the difference of `CLOCK_BOOTTIME`, between ends in two boots the reading of that clock at the later one. So a
//! segment is never younger than this sum, and the sum grows as long as the computer runs. Time for which the computer
//! was off is not in it.
//!
//! **Use of the time of day.** It adds the time for which the computer was off, under two conditions: the kernel called
//! it synchronized at the end of the segment and does so now; and between all ends from there to the present it has
//! advanced as far as `CLOCK_BOOTTIME` (within a boot) or at least as far (across boots), ± [`SLACK`]. A program that
//! sets the clock makes the kernel call it unsynchronized.

use hairspring_machine::{Host, Machine, Nanos};

use hairspring_recording::Recording;
use hairspring_recording::clock::BootId;
use hairspring_recording::moment::ClockMoment;

/// Allowed difference of the time of day from `CLOCK_BOOTTIME`: a leap second, and a step that a daemon makes at its
/// start.
const SLACK: Nanos = Nanos::from_secs(2);

/// Sums up the time between ends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ages {
    last: Option<ClockMoment>,
    /// The sum up to the last end.
    sum: Nanos,
    /// Number of times that the time of day has disagreed.
    steps: u32,
}

/// The end of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    at: ClockMoment,
    /// The sum at this end, and the number of disagreements of the time of day.
    sum: Nanos,
    steps: u32,
}

impl Ages {
    /// Enters the end of the next segment.
    pub(super) fn enter(&mut self, at: ClockMoment) -> End {
        if let Some(last) = self.last {
            self.sum += at.surely_since(&last);
            self.steps += u32::from(!agree(&last, &at));
        }
        self.last = Some(at);
        End { at, sum: self.sum, steps: self.steps }
    }

    /// The time since a segment ended, as a lower bound.
    pub(super) fn age(&self, end: End, now: &ClockMoment) -> Nanos {
        let Some(last) = self.last else { return Nanos::ZERO };
        let sure = self.sum - end.sum + now.surely_since(&last);
        let other_boot = end.at.boot.is_some() && now.boot.is_some() && end.at.boot != now.boot;
        let agrees = end.steps == self.steps && agree(&last, now) && end.at.synchronized && now.synchronized;
        if other_boot && agrees { sure.max(now.realtime - end.at.realtime) } else { sure }
    }
}

/// The end of a segment that the index does not list as closed: the time of its last block. In this boot not before
/// that time, in another boot not after it, so that the age is never too large.
pub(super) fn end_of(recording: &Recording) -> Option<ClockMoment> {
    let clock = &recording.about().clock;
    let at = recording.blocks().iter().map(|block| block.at).max()?;
    let is_this_boot = clock.boot_id.is_some() && clock.boot_id == BootId::read();
    let suspended = if is_this_boot { Host.suspended().max(Nanos::ZERO) } else { clock.suspended_at(at).0 };
    let realtime = clock.realtime_at(at).map_or(Nanos::ZERO, |(time, _)| time);
    Some(ClockMoment { realtime, boottime: at.as_monotonic() + suspended, boot: clock.boot_id, synchronized: false })
}

/// Whether the time of day has advanced between two moments as far as the time since boot.
fn agree(earlier: &ClockMoment, later: &ClockMoment) -> bool {
    let Some(moved) = later.realtime.checked_sub(earlier.realtime) else { return false };
    let sure = later.surely_since(earlier);
    let same_boot = earlier.boot == later.boot && earlier.boot.is_some();
    moved >= sure - SLACK && (!same_boot || moved <= sure + SLACK)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};

    use super::*;
    use crate::series::retention::{Due, HeldSegments, Retention};

    /// Events in the life of a computer that records a series; times in seconds.
    #[derive(Clone, Copy, Debug)]
    enum Event {
        /// A segment of this duration is recorded, and ends.
        Segment(i64),
        /// The computer is suspended for this time.
        Suspend(i64),
        /// A user sets the time of day forward by this amount.
        Step(i64),
        /// A daemon sets the time of day right, and keeps it so.
        Synchronize,
        /// The computer is off for this time. With a battery its clock goes on, otherwise it begins in 1970.
        Reboot { off: i64, battery: bool },
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let day = 86_400_i64;
        let one = prop_oneof![
            4 => (1..7200_i64).prop_map(Event::Segment),
            1 => (1..day).prop_map(Event::Suspend),
            1 => prop_oneof![-day..day, 0..50 * 365 * day, Just(-day), Just(50 * 365 * day)].prop_map(Event::Step),
            1 => Just(Event::Synchronize),
            1 => (1..30 * day, any::<bool>()).prop_map(|(off, battery)| Event::Reboot { off, battery }),
        ];
        prop::collection::vec(one, 1..60)
    }

    /// A computer: the true time, and its clocks.
    struct Computer {
        true_time: i64,
        booted: i64,
        boot: u8,
        /// How far the time of day is ahead of the truth.
        ahead: i64,
        synchronized: bool,
    }

    impl Computer {
        fn moment(&self) -> ClockMoment {
            ClockMoment {
                realtime: Nanos::from_secs(self.true_time + self.ahead),
                boottime: Nanos::from_secs(self.true_time - self.booted),
                boot: Some(BootId([self.boot; 16])),
                synchronized: self.synchronized,
            }
        }

        /// Applies an event; returns whether a segment has ended.
        fn happens(&mut self, event: Event) -> bool {
            match event {
                Event::Segment(seconds) | Event::Suspend(seconds) => self.true_time += seconds,
                Event::Step(by) => (self.ahead, self.synchronized) = (self.ahead + by, false),
                Event::Synchronize => (self.ahead, self.synchronized) = (0, true),
                Event::Reboot { off, battery } => {
                    self.true_time += off;
                    (self.booted, self.boot) = (self.true_time, self.boot + 1);
                    self.synchronized = false;
                    self.ahead = if battery { self.ahead } else { -self.true_time };
                }
            }
            matches!(event, Event::Segment(_))
        }
    }

    const BEGAN: i64 = 1_700_000_000;

    /// Records segments under a retention of this time and number, through all events, and checks each deletion.
    fn live(events: Vec<Event>, keep: Nanos, most: u32) -> Result<(), TestCaseError> {
        let mut computer =
            Computer { true_time: BEGAN, booted: BEGAN - 60, boot: 1, ahead: -BEGAN, synchronized: false };
        let retention = Retention { time: Some(keep), segments: Some(most), ..Retention::default() };
        let (mut ages, mut kept) = (Ages::default(), VecDeque::new());
        for event in events {
            if computer.happens(event) {
                kept.push_back((ages.enter(computer.moment()), computer.true_time, computer.boot));
            }
            let now = computer.moment();
            for (end, ended, boot) in &kept {
                let (age, truth) = (ages.age(*end, &now), Nanos::from_secs(computer.true_time - ended));
                prop_assert!(age <= truth, "{age:?} for {truth:?} after {event:?}");
                prop_assert!(*boot != computer.boot || age == truth, "{age:?} for {truth:?} within a boot");
                // So segments that retention deletes by time are deleted eventually.
                let since_boot = Nanos::from_secs(computer.true_time - computer.booted);
                prop_assert!(*boot == computer.boot || age >= since_boot, "{age:?} since {since_boot:?}");
            }
            loop {
                let oldest = kept.front().map(|(end, ..)| (0, ages.age(*end, &now)));
                let held = HeldSegments { segments: kept.len(), bytes: 0, oldest };
                if retention.due(held, None, false) == Due::Nothing {
                    break;
                }
                let before = kept.len();
                let Some((_, ended, _)) = kept.pop_front() else { break };
                let truth = Nanos::from_secs(computer.true_time - ended);
                prop_assert!(truth > keep || before > most as usize, "{truth:?} old, one of {before}, after {event:?}");
            }
            prop_assert!(kept.len() <= most as usize);
        }
        Ok(())
    }

    /// By the time of day, a board without a battery deleted segments of three seconds ago when its clock was set.
    #[test]
    fn no_segment_is_deleted_before_its_time_whatever_the_clocks_do() {
        let times = std::env::var("HAIRSPRING_PROOF").ok().and_then(|times| times.parse::<u32>().ok()).unwrap_or(1);
        let config = Config { cases: 500 * times, ..Config::default() };
        let any = (events(), 1..20 * 86_400_i64, 1..40_u32);
        let lived = TestRunner::new(config.clone())
            .run(&any, |(events, keep, most)| live(events, Nanos::from_secs(keep), most));
        assert_eq!(lived.map_err(|error| error.to_string()), Ok(()));
        println!("figure: lives of computers whose clocks do anything: {}", config.cases);
    }

    /// If the clock is synchronized before and after, the time for which the computer was off counts, but no longer
    /// once it was set.
    #[test]
    fn the_time_for_which_a_computer_was_off_counts_if_its_clock_agrees() {
        let at = |realtime: i64, boottime: i64, boot: u8, synchronized: bool| ClockMoment {
            realtime: Nanos::from_secs(realtime),
            boottime: Nanos::from_secs(boottime),
            boot: Some(BootId([boot; 16])),
            synchronized,
        };
        let mut ages = Ages::default();
        let end = ages.enter(at(1000, 100, 1, true));
        let age = |ages: &Ages, now: ClockMoment| ages.age(end, &now).as_secs_f64();
        assert_eq!(age(&ages, at(5000, 10, 2, true)), 4000.0);
        assert_eq!(age(&ages, at(5000, 10, 2, false)), 10.0, "nobody vouches for the clock");
        assert_eq!(age(&ages, at(900, 10, 2, true)), 10.0, "it is behind the end");
        ages.enter(at(20, 20, 2, false));
        assert_eq!(age(&ages, at(5000, 30, 2, true)), 30.0, "it began in 1970 and was set");
    }
}
