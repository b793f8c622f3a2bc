//! [`ClockMoment`]: a time that can be compared with later ones even if the time of day is set, or the computer is
//! suspended or rebooted.
//!
//! ```text
//!   within a boot    CLOCK_BOOTTIME              never steps, runs on in a suspend: the exact time between
//!   across boots     CLOCK_BOOTTIME of the later boot: a lower bound, because it counts from 0
//!                    CLOCK_REALTIME              only where the kernel calls it synchronized on both ends
//! ```

use hairspring_machine::{Clock, Machine, Nanos};

use crate::clock::BootId;

/// A moment by the kernel's clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockMoment {
    /// The time of day (`CLOCK_REALTIME`).
    pub realtime: Nanos,
    /// Time since the computer was started, suspends included (`CLOCK_BOOTTIME`).
    pub boottime: Nanos,
    /// The boot; `None` if the kernel does not state it.
    pub boot: Option<BootId>,
    /// Whether the kernel called its time of day synchronized. A program that sets the time of day ends that.
    pub synchronized: bool,
}

impl ClockMoment {
    /// The present moment. Reads a file: not for real-time threads.
    pub fn now(machine: &impl Machine) -> Self {
        let [realtime, boottime] = [Clock::Realtime, Clock::Boottime].map(|clock| machine.read(clock));
        let synchronized = machine.discipline().is_ok_and(|discipline| discipline.synchronized);
        Self { realtime, boottime, boot: BootId::read(), synchronized }
    }

    /// The time since an earlier moment as a lower bound, whatever happened to the time of day.
    pub fn surely_since(&self, earlier: &Self) -> Nanos {
        let between = (self.boottime - earlier.boottime).max(Nanos::ZERO);
        match (earlier.boot, self.boot) {
            (Some(before), Some(now)) if before != now => self.boottime.max(Nanos::ZERO),
            _ => between,
        }
    }

    /// How far the time of day is ahead of the time since the start; constant while no one sets it.
    pub fn offset(&self) -> Nanos {
        self.realtime - self.boottime
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(boot: u8, boottime: i64) -> ClockMoment {
        let boot = (boot > 0).then_some(BootId([boot; 16]));
        ClockMoment { boottime: Nanos::from_secs(boottime), boot, ..ClockMoment::default() }
    }

    #[test]
    fn the_time_between_two_moments_is_exact_within_a_boot_and_a_lower_bound_across_boots() {
        let between = |earlier, later: ClockMoment| later.surely_since(&earlier).as_secs_f64();
        assert_eq!(between(at(1, 10), at(1, 40)), 30.0);
        assert_eq!(between(at(1, 10), at(2, 40)), 40.0);
        assert_eq!(between(at(1, 100), at(2, 40)), 40.0);
        assert_eq!(between(at(0, 10), at(0, 40)), 30.0);
        assert_eq!(between(at(0, 100), at(0, 40)), 0.0, "whatever the boots were");
        assert_eq!(between(at(1, 100), at(0, 140)), 40.0, "a boot that nobody names may be the same");
    }
}
