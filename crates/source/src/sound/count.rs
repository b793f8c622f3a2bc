//! [`PointerCount`]: from the positions that a driver shows to the number of frames that passed.
//!
//! **Problem.** A driver shows its position modulo a boundary, and the kernel infers how often its buffer went round
//! from interrupts. If interrupts and queries both fail for longer than one buffer lasts, whole rounds are missing from
//! the count without a sign of it.
//!
//! **Solution.** Each position comes with the time at which it changed. The time since the position before, times the
//! rate, gives the number of frames that must have passed. Whole buffers are added until both agree within a quarter of
//! a buffer.
//!
//! **Conditions.** The rate is known well enough: to 1 % at first, from the count itself after a second. If several
//! numbers of rounds are possible, or none fits, the count is an interval.
//!
//! ```text
//!            last        shown by the driver
//!   ──────────┼────┬────────────────┬────────────────┬──────▶ frames
//!             │ +0 rounds        +1 round        +2 rounds
//!             └──────────────── elapsed × rate ──┤±¼├          two rounds were missed
//! ```

use hairspring_machine::{Instant, Nanos};

/// Relative deviation of a card's true rate from the nominal one that is tolerated before enough is counted.
const NOMINAL_WITHIN: f64 = 0.01;
/// Relative deviation of the rate that is tolerated against the counted one.
const WANDER_WITHIN: f64 = 200e-6;
/// Seconds of frames after which the rate comes from the count instead of the nominal value.
const COUNTED_LONG_S: f64 = 1.0;

/// Frames that passed between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The fewest frames that can have passed; the exact number if it equals `most`.
    pub least: u64,
    /// The most.
    pub most: u64,
}

/// Counts frames by a pointer that wraps.
#[derive(Clone, Debug)]
pub struct PointerCount {
    boundary: u64,
    buffer: u64,
    /// The greatest step in which the pointer moves.
    step: u64,
    rate_hz: f64,
    pointer: u64,
    changed: Instant,
    /// Start of the current stretch that was counted without doubt.
    begun: Instant,
    counted: u64,
}

impl PointerCount {
    /// Counts from the start of a stream at `started`, whose pointer is `pointer` then. `step` is the period of a card
    /// whose pointer moves by periods. All in frames.
    pub fn new(boundary: u64, buffer: u64, step: u64, rate_hz: f64, pointer: u64, started: Instant) -> Self {
        Self { boundary, buffer, step, rate_hz, pointer, changed: started, begun: started, counted: 0 }
    }

    /// The frames from one pointer to another. A pointer that a driver shows beyond the boundary counts from 0 again.
    pub fn distance(&self, from: u64, to: u64) -> u64 {
        let (from, to) = (from % self.boundary, to % self.boundary);
        if to >= from { to - from } else { to + self.boundary - from }
    }

    /// Updates the count with a position from the driver, and the time when the pointer moved there.
    pub fn advance(&mut self, pointer: u64, changed: Instant) -> Passed {
        let shown = self.distance(self.pointer, pointer);
        if shown == 0 {
            return Passed { least: 0, most: 0 };
        }
        let elapsed_s = (changed - self.changed).max(Nanos::ZERO).as_secs_f64();
        let (rate_hz, within) = self.rate();
        let expected = elapsed_s * rate_hz;
        let slack = self.buffer as f64 / 4.0;
        let rounds = |frames: f64| (frames - shown as f64) / self.buffer as f64;
        let least = rounds(expected * (1.0 - within) - slack).ceil().max(0.0) as u64;
        let most = rounds(expected * (1.0 + within) + slack).floor().max(0.0) as u64;
        let (least, most) = (least.min(most), least.max(most));
        let passed = Passed { least: shown + least * self.buffer, most: shown + most * self.buffer };
        (self.pointer, self.changed) = (pointer, changed);
        if least == most {
            self.counted += passed.least;
        } else {
            (self.begun, self.counted) = (changed, 0);
        }
        passed
    }

    /// Frames per second, counted or nominal, and their relative uncertainty.
    fn rate(&self) -> (f64, f64) {
        let span_s = (self.changed - self.begun).as_secs_f64();
        if span_s < COUNTED_LONG_S || self.counted == 0 {
            return (self.rate_hz, NOMINAL_WITHIN);
        }
        let counted = self.counted as f64;
        (counted / span_s, WANDER_WITHIN + 2.0 * self.step as f64 / counted)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RATE: f64 = 48_000.0;
    const BUFFER: u64 = 4800;
    const BOUNDARY: u64 = BUFFER << 3;

    fn at(ms: i64) -> Instant {
        Instant::BOOT + Nanos::from_millis(ms)
    }

    fn count() -> PointerCount {
        PointerCount::new(BOUNDARY, BUFFER, 480, RATE, 0, Instant::BOOT)
    }

    fn exactly(frames: u64) -> Passed {
        Passed { least: frames, most: frames }
    }

    #[test]
    fn a_pointer_that_wraps_goes_on() {
        let mut count = count();
        let mut total = 0;
        for step in 1..200 {
            total += 480;
            assert_eq!(count.advance(total % BOUNDARY, at(step * 10)), exactly(480), "{step}");
        }
        assert!(total > BOUNDARY);
    }

    #[test]
    fn a_pointer_beyond_the_boundary_counts_from_0_again() {
        // Some driver reports such a pointer; the subtraction overflowed, and the count was of the order of 2⁶⁴.
        let mut count = count();
        assert_eq!(count.advance(BOUNDARY + 480, at(10)), exactly(480));
        assert_eq!(count.distance(u64::MAX, 0), (BOUNDARY - u64::MAX % BOUNDARY) % BOUNDARY);
    }

    #[test]
    fn rounds_that_the_kernel_missed_are_found_by_the_clock() {
        let mut count = count();
        assert_eq!(count.advance(480, at(10)), exactly(480));
        // 230 ms later the pointer shows 30 ms: two buffers of 100 ms went by.
        assert_eq!(count.advance(480 + 1440, at(240)), exactly(1440 + 2 * BUFFER));
        // A driver that is slightly early or late does not count as a round.
        assert_eq!(count.advance(480 + 1440 + 3000, at(280)), exactly(3000));
    }

    #[test]
    fn what_the_clock_cannot_decide_is_an_interval() {
        let mut count = count();
        count.advance(480, at(10));
        // Half a buffer between two answers: 0 or 1 rounds.
        assert_eq!(count.advance(960, at(10 + 60)), Passed { least: 480, most: 480 + BUFFER });
        // After a minute 1 % of the nominal rate is many buffers. Once the count spans a second, its rate is more
        // accurate.
        let far = count.advance(1440, at(60_080));
        assert!(far.least < 59 * 48_000 + 48_000 && far.most > 60 * 48_000, "{far:?}");
        let mut long = self::count();
        for step in 1..=1000 {
            long.advance(step * 480 % BOUNDARY, at(step as i64 * 10));
        }
        let passed = long.advance((1000 * 480 + 480) % BOUNDARY, at(10_000 + 2_010));
        assert_eq!(passed, exactly(480 + 20 * BUFFER));
    }

    proptest! {
        #[test]
        fn a_card_of_any_rate_is_counted_right_whatever_the_queries(
            ppm in -3000_i64..3000, waits in proptest::collection::vec(1_i64..390, 1..200)
        ) {
            let rate = RATE * (1.0 + ppm as f64 * 1e-6);
            let mut count = count();
            let (mut now_ms, mut before) = (0, 0);
            for wait_ms in waits {
                now_ms += wait_ms;
                let true_frames = (now_ms as f64 * rate / 1000.0) as u64;
                // The kernel shows the position within the buffer and adds at most one round.
                let shown = (true_frames - before) % BUFFER;
                let pointer = (count.pointer + shown) % BOUNDARY;
                let passed = count.advance(pointer, at(now_ms));
                if shown > 0 {
                    prop_assert!(passed.least <= true_frames - before && true_frames - before <= passed.most);
                    before = true_frames;
                } else {
                    prop_assert_eq!(passed, exactly(0));
                }
            }
        }
    }
}
