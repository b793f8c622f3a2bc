//! Adaptive polling: a waiting thread polls briefly before it sleeps, if polling was successful lately.
//!
//! A sleep costs a wake-up, and a system call in the thread that ends it. Polling for the duration of a wake-up costs
//! at most twice the better choice (the ski rental rule). After a poll in vain the next wait sleeps at once, after two
//! in a row the next three, and so on up to [`RESTS_MOST`]: a slow stream, or a producer on the same CPU, costs next to
//! nothing.

use hairspring_machine::Nanos;

/// Longest poll before a sleep: the duration of a wake-up on an ordinary computer.
pub(crate) const POLL_MOST: Nanos = Nanos::from_micros(50);
/// The most waits in a row that sleep at once.
const RESTS_MOST: u32 = 1023;

/// Outcomes of the waits of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitCounts {
    /// Waits that polling ended.
    pub polled: u64,
    /// Waits that slept after polling in vain.
    pub polled_in_vain: u64,
    /// The thread slept at once.
    pub slept: u64,
}

impl std::ops::Add for WaitCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            polled: self.polled + other.polled,
            polled_in_vain: self.polled_in_vain + other.polled_in_vain,
            slept: self.slept + other.slept,
        }
    }
}

/// Decides whether a wait polls, and counts the outcomes.
#[derive(Debug, Default)]
pub(crate) struct AdaptivePolling {
    /// Waits that sleep at once before one polls again.
    rests: u32,
    /// Waits without polling after the last poll in vain; 0 after a success.
    rests_last: u32,
    pub(crate) counts: WaitCounts,
}

impl AdaptivePolling {
    /// Polls, if that is worthwhile, until `is_there` or `is_over`. Returns whether it is there.
    pub(crate) fn poll(&mut self, is_there: impl Fn() -> bool, mut is_over: impl FnMut() -> bool) -> bool {
        if self.rests > 0 {
            self.rests -= 1;
            self.counts.slept += 1;
            return false;
        }
        while !is_over() {
            if is_there() {
                self.rests_last = 0;
                self.counts.polled += 1;
                return true;
            }
            std::hint::spin_loop();
        }
        self.rests_last = (2 * self.rests_last + 1).min(RESTS_MOST);
        self.rests = self.rests_last;
        self.counts.polled_in_vain += 1;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs one wait. If the thread polls, `comes` decides whether the awaited event comes at the third look.
    fn wait(polling: &mut AdaptivePolling, comes: bool) {
        let looks = std::cell::Cell::new(0);
        let is_there = || {
            looks.set(looks.get() + 1);
            comes && looks.get() == 3
        };
        let mut left = 10;
        let is_over = || {
            left -= 1;
            left < 0
        };
        let polled = polling.poll(is_there, is_over);
        assert_eq!(polled, comes && looks.get() > 0);
    }

    #[test]
    fn a_stream_that_comes_in_time_is_polled_for_each_time() {
        let mut polling = AdaptivePolling::default();
        (0..100).for_each(|_| wait(&mut polling, true));
        assert_eq!(polling.counts, WaitCounts { polled: 100, ..WaitCounts::default() });
    }

    #[test]
    fn a_slow_stream_is_polled_for_less_and_less_often() {
        let mut polling = AdaptivePolling::default();
        let mut polled_at = Vec::new();
        for number in 0..10_000 {
            let before = polling.counts.polled_in_vain;
            wait(&mut polling, false);
            polled_at.extend((polling.counts.polled_in_vain > before).then_some(number));
        }
        assert_eq!(polled_at[..5], [0, 2, 6, 14, 30]);
        let last: Vec<i32> = polled_at.windows(2).map(|two| two[1] - two[0]).collect();
        assert_eq!(last.iter().max(), Some(&1024));
        assert_eq!(polling.counts.slept, 10_000 - polled_at.len() as u64);
    }

    #[test]
    fn one_success_makes_it_patient_again() {
        let mut polling = AdaptivePolling::default();
        (0..31).for_each(|_| wait(&mut polling, false));
        (0..31).for_each(|_| wait(&mut polling, true));
        assert_eq!(polling.counts.polled, 0, "it rests");
        wait(&mut polling, true);
        wait(&mut polling, false);
        wait(&mut polling, true);
        wait(&mut polling, true);
        assert_eq!(polling.counts, WaitCounts { polled: 2, polled_in_vain: 6, slept: 26 + 31 + 1 });
    }
}
