//! [`Timebase`]: the scale that issues instants.
//!
//! # Problem
//! A program wants to read the time for the price of a counter read, to know the bound of its error, and to notice when
//! the machine sleeps, migrates or changes its clock.
//!
//! # Solution
//! A `Timebase` is an immutable value: the source of time, a scale in fixed point, and a calibration with a bound.
//! [`Timebase::calibrate`] sleeps for about 4 ms and is good to about 10 ppm; [`refine`](Timebase::refine) looks at the
//! kernel's clock again and returns a successor with a longer baseline and so a smaller bound. The successor continues
//! the scale without a step. The owner decides when to refine and passes the value on; there is no global clock and no
//! hidden thread. Objects that live long take the successor by their method `adopt`, see
//! [`HeldTimebase`](crate::HeldTimebase).
//!
//! ```text
//!   calibrate ──(1)──► Timebase ──refine──(2)──► successor, same epoch, smaller bound
//!                          │
//!                          ├──refine──(3)──► successor, same epoch, baseline begun anew (the kernel changed its rate)
//!                          └──refine──(4)──► successor, NEW epoch (suspend, clock step, counter no longer trusted)
//! ```
//!
//! # Conditions
//! The trust rules of [`Trust`] hold, or time is taken from `CLOCK_MONOTONIC` itself.
//!
//! # Why it works
//! Successors share the first bracket, so the bound falls with the age of the baseline. The new slope starts at the
//! point that the old one had reached, so the scale has no step. The error of the old slope at that point is measured:
//! it is the `offset` of the successor, a part of [`offset_bound`](Timebase::offset_bound).

use hairspring_machine::{Clock, Cpu, Epoch, Host, Instant, Machine, Nanos, Ticks};

use crate::calibration::{Anchor, Anchors, Calibration, raw, raw_ordered};
use crate::scale::Scale;
use crate::trust::{TimeSource, Trust};

/// The first baseline: long enough for a bound below 20 ppm where a bracket is narrower than 80 ns.
pub const FIRST_BASELINE: Nanos = Nanos::from_micros(4_000);

/// The shortest pause between two looks at the counter that counts as a gap. A hundred times a poll step, and shorter
/// than any interrupt. If time is taken from a kernel clock whose reading takes that long, the limit is four readings.
pub const GAP_LEAST: Nanos = Nanos::from_micros(1);

/// The assumed distance between the counters of two CPUs that nobody has measured. The kernel's warp test at boot would
/// have seen a larger one, because it hands over a cache line.
pub(crate) const SKEW_UNMEASURED: Nanos = Nanos::from_micros(1);

/// The fastest slew of the kernel's clock (`adjtimex`: 500 ppm), with some room. A faster change is a step.
const SLEW_MOST_PPM: i64 = 600;

/// Boot time and monotonic time cannot be read at the same instant; a difference below this is no suspend.
const SUSPEND_LEAST: Nanos = Nanos::from_millis(1);

/// A calibrated time base on the machine `M`.
#[derive(Clone, Debug)]
pub struct Timebase<M: Machine = Host> {
    machine: M,
    scale: Scale,
    source: TimeSource,
    epoch: Epoch,
    calibration: Calibration,
    trust: Trust,
    skew: Nanos,
    /// The rate changed during the baseline, so the next baseline begins where this one ends.
    unsettled: bool,
    /// Where the baseline begins.
    first: Anchor,
    /// The latest look at the kernel's clock.
    last: Anchor,
    /// Granularity of the counter in ticks beyond the first; 0 for counters that count singly.
    lag: i64,
    /// Our scale minus the kernel's clock when they were last compared.
    offset: Nanos,
    /// The shortest gap, in ticks and in time. Kept, because every delay needs it and finding it takes a
    /// multiplication.
    gap: (i64, Nanos),
    /// How long the kernel stalls a real-time thread that has used its share; none if it does not.
    stall: Option<Nanos>,
    cost: Cost,
}

/// The cost of a calibration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Wall time from the call of `calibrate` to its return.
    pub wall: Nanos,
    /// CPU time of the calling thread in it.
    pub cpu: Nanos,
}

/// Why a calibration failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalibrationError {
    /// The counter did not advance, or the kernel's clock did not, or their ratio is outside 8 MHz to 127 GHz.
    Implausible,
}

impl std::fmt::Display for CalibrationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "calibrate the counter: it and CLOCK_MONOTONIC did not advance together at 8 MHz to 127 GHz; look at \
             `dmesg | grep -i tsc` and at current_clocksource in /sys/devices/system/clocksource/clocksource0",
        )
    }
}

impl std::error::Error for CalibrationError {}

/// A successor, and how it relates to its predecessor.
#[derive(Clone, Debug)]
pub struct Refined<M: Machine = Host> {
    /// The successor.
    pub timebase: Timebase<M>,
    /// The changes of the clocks since the predecessor.
    pub continuity: Continuity,
}

/// How a successor continues its predecessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuity {
    /// Same epoch, longer baseline.
    Continued,
    /// Same epoch, but the kernel's clock has changed its rate: the baseline begins anew. The bound includes the
    /// difference. The next refinement has a baseline with the new rate only, and drops the difference.
    Rerated,
    /// A new epoch: the machine was suspended for about this long.
    Suspended(Nanos),
    /// A new epoch: the kernel's clock and the counter diverged by this much.
    Stepped(Nanos),
    /// A new epoch: the kernel no longer trusts the counter, so the time base does not, either.
    Distrusted,
}

impl<M: Machine + Clone> Timebase<M> {
    /// Calibrates, by sleeping about [`FIRST_BASELINE`]. Blocks for 4–5 ms and uses some 200 µs of CPU; not real-time
    /// safe. The bound is then about 10 ppm; [`refine`](Self::refine) at any later time for a smaller one.
    ///
    /// # Errors
    /// The counter and the kernel's clock do not advance together.
    pub fn calibrate(machine: M) -> Result<Self, CalibrationError> {
        let start = (machine.read(Clock::Monotonic), machine.read(Clock::ThreadCpu));
        let trust = Trust::judge(&machine.counter_evidence());
        let source = trust.source();
        let mut timebase = Self::calibrate_by(machine, trust, source)?;
        timebase.cost = Cost {
            wall: timebase.machine.read(Clock::Monotonic) - start.0,
            cpu: timebase.machine.read(Clock::ThreadCpu) - start.1,
        };
        Ok(timebase)
    }

    fn calibrate_by(machine: M, trust: Trust, source: TimeSource) -> Result<Self, CalibrationError> {
        let first = Anchor::take(&machine, source);
        let until = first.monotonic.at() + FIRST_BASELINE;
        while machine.monotonic() < until {
            machine.sleep_until(until);
        }
        let last = Anchor::take(&machine, source);
        Self::between(machine, trust, Anchors { source, first, last })
    }

    /// The time base that another process of this computer had when it gave its [`anchors`](Self::anchors). Takes
    /// microseconds, where a calibration takes milliseconds. It is as good as it was then. Call
    /// [`refine`](Self::refine) next, which returns what has happened to the clocks since. If this process trusts the
    /// counter and the other did not, or the other way round, it calibrates instead.
    ///
    /// # Errors
    /// The anchors are of another machine, or are no calibration at all.
    pub fn resume(machine: M, anchors: Anchors) -> Result<Self, CalibrationError> {
        let trust = Trust::judge(&machine.counter_evidence());
        if trust.source() != anchors.source {
            return Self::calibrate(machine);
        }
        Self::between(machine, trust, anchors)
    }

    fn between(machine: M, trust: Trust, anchors: Anchors) -> Result<Self, CalibrationError> {
        let Anchors { source, first, last } = anchors;
        let step = machine.clock_step();
        let (calibration, scale) =
            Calibration::between(source, step, first, last).ok_or(CalibrationError::Implausible)?;
        let stall = machine.real_time_throttle().map(|(runtime, period)| period - runtime);
        let timebase = Self {
            machine,
            scale,
            source,
            epoch: Epoch::beginning_at(first.monotonic.before),
            calibration,
            trust,
            skew: SKEW_UNMEASURED,
            unsettled: false,
            first,
            last,
            lag: first.lag.max(last.lag),
            offset: Nanos::ZERO,
            gap: (0, Nanos::ZERO),
            stall,
            cost: Cost::default(),
        };
        Ok(timebase.with_gap())
    }

    /// Sets the shortest gap for the rate and for the time that the latest look at the kernel's clock took. A bracket
    /// is two looks; a pause as long as four looks is more than a step of the loop.
    fn with_gap(self) -> Self {
        let least = GAP_LEAST.max(self.nanos(self.last.monotonic.width()) * 2);
        Self { gap: (self.ticks_for_at_least(least), least), ..self }
    }

    /// Calibrates and refines until the bound is at most `bound_ppm` or the baseline has grown to `patience`, sleeping
    /// in between.
    ///
    /// # Errors
    /// As [`calibrate`](Self::calibrate).
    pub fn calibrate_to(machine: M, bound_ppm: f64, patience: Nanos) -> Result<Self, CalibrationError> {
        let mut timebase = Self::calibrate(machine)?;
        while timebase.calibration.bound_ppm > bound_ppm && timebase.calibration.baseline < patience {
            let baseline = timebase.calibration.baseline;
            let needed = (timebase.calibration.bound_ppm / bound_ppm * 1.1).min(4.0);
            let target = Nanos::new((baseline.count() as f64 * needed) as i64).min(patience);
            timebase.machine.sleep_until(timebase.first.monotonic.at() + target);
            timebase = timebase.refine().timebase;
        }
        Ok(timebase)
    }

    /// Looks at the kernel's clock again and yields the successor. Takes some 20 µs and opens a file; when a new epoch
    /// begins it calibrates anew, which blocks for 4–5 ms. Not real-time safe.
    pub fn refine(&self) -> Refined<M> {
        let now = Anchor::take(&self.machine, self.source);
        let elapsed = now.monotonic.clock - self.last.monotonic.clock;
        let residual = Nanos::new(self.scale.nanos_at(now.monotonic.middle())) - now.monotonic.clock;
        let moved = (residual - self.offset).count().abs();
        // The largest drift between the scale and the kernel's clock if both kept their known rates.
        let half_widths = self.scale.nanos_in(now.monotonic.half_width() + self.last.monotonic.half_width())
            + 2 * self.machine.clock_step().count();
        let allowance = self.drift_in(elapsed).count() + half_widths;
        let suspended = now.suspended - self.last.suspended;
        let believed = self.source == TimeSource::KernelClock
            || self.machine.clocksource().is_ok_and(|name| crate::trust::is_kept_with_the_counter(&name));
        let trouble = if !believed {
            Some(Continuity::Distrusted)
        } else if suspended > SUSPEND_LEAST {
            Some(Continuity::Suspended(suspended))
        } else if elapsed < Nanos::ZERO || moved > allowance + slewed_in(elapsed) {
            Some(Continuity::Stepped(self.offset - residual))
        } else {
            None
        };
        if let Some(continuity) = trouble {
            return Refined { timebase: self.begin_epoch(), continuity };
        }
        let rerated = moved > allowance;
        let begins_anew = rerated || self.unsettled;
        if begins_anew && elapsed < FIRST_BASELINE {
            // The time is too short to learn a new rate. The next look will see the change, too.
            return Refined { timebase: self.clone(), continuity: Continuity::Continued };
        }
        let first = if begins_anew { self.last } else { self.first };
        let lag = self.lag.max(now.lag);
        let mut successor = Self { last: now, first, lag, offset: residual, unsettled: rerated, ..self.clone() };
        if let Some((calibration, scale)) = Calibration::between(self.source, self.machine.clock_step(), first, now) {
            // The rate may have changed at any time since the last look. So the measured rate may be wrong by as much
            // as the old one was.
            let widening = if rerated { moved as f64 / elapsed.count() as f64 } else { 0.0 };
            successor.calibration = calibration.widened(widening);
            // The new slope starts where the old one has arrived, so the scale has no step.
            let middle = now.monotonic.middle();
            successor.scale = scale.moved_to(middle, Nanos::new(self.scale.nanos_at(middle)));
        }
        let continuity = if rerated { Continuity::Rerated } else { Continuity::Continued };
        Refined { timebase: successor.with_gap(), continuity }
    }

    /// A successor in a new epoch, calibrated anew, because a suspend or a migration of the whole machine may change
    /// even the rate. If the calibration fails, the successor takes time from the kernel's clock.
    fn begin_epoch(&self) -> Self {
        let trust = Trust::judge(&self.machine.counter_evidence());
        let fresh = Self::calibrate_by(self.machine.clone(), trust.clone(), trust.source());
        let fresh = fresh.or_else(|_| {
            let trust = Trust { trusted: false, ..trust };
            Self::calibrate_by(self.machine.clone(), trust, TimeSource::KernelClock)
        });
        // The rate of the kernel's clock against itself is 1, so this calibration does not fail.
        let Ok(fresh) = fresh else { return self.clone() };
        Self { epoch: self.epoch_after(fresh.epoch), skew: self.skew, cost: self.cost, ..fresh }
    }
}

/// The most that the kernel may slew its clock within a span.
fn slewed_in(span: Nanos) -> i64 {
    // In 128 bits: in 64 it would overflow after half a year.
    i64::try_from(i128::from(span.count()) * i128::from(SLEW_MOST_PPM) / 1_000_000).unwrap_or(i64::MAX)
}

impl<M: Machine> Timebase<M> {
    /// An epoch that differs from the present one. Its number comes from its beginning and not from its predecessor, so
    /// that clones which are refined across different suspends get different epochs.
    fn epoch_after(&self, fresh: Epoch) -> Epoch {
        if fresh == self.epoch { fresh.other() } else { fresh }
    }

    /// The time now. Costs a counter read and a multiplication; real-time safe; cannot fail.
    #[inline(always)]
    pub fn now(&self) -> Instant {
        self.instant(raw(&self.machine, self.source))
    }

    /// The time now, read after all earlier instructions have completed. Real-time safe.
    #[inline(always)]
    pub fn now_ordered(&self) -> Instant {
        self.instant(self.stamp_ordered())
    }

    /// A raw reading of the time source; the CPU may move it across neighbouring instructions.
    #[inline(always)]
    pub fn stamp(&self) -> Ticks {
        raw(&self.machine, self.source)
    }

    /// A raw reading of the time source, after all earlier instructions.
    #[inline(always)]
    pub fn stamp_ordered(&self) -> Ticks {
        raw_ordered(&self.machine, self.source)
    }

    /// The instant of a raw reading of this time base's source.
    #[inline(always)]
    pub fn instant(&self, stamp: Ticks) -> Instant {
        Instant::of_epoch(self.epoch, Nanos::new(self.scale.nanos_at(stamp)))
    }

    /// A deadline on this scale. A reading of the kernel's clock becomes an instant that neither this scale nor that
    /// clock reaches before the reading.
    #[inline]
    pub(crate) fn deadline(&self, at: Instant) -> Instant {
        if at.epoch() == Epoch::KERNEL {
            Instant::of_epoch(self.epoch, at.as_monotonic() + self.offset.max(Nanos::ZERO))
        } else {
            at
        }
    }

    /// The length of `ticks` ticks of the source, rounded down.
    #[inline(always)]
    pub fn nanos(&self, ticks: i64) -> Nanos {
        Nanos::new(self.scale.nanos_in(ticks))
    }

    /// The least number of ticks that certainly last `span` by the kernel's clock. It is rounded up and includes the
    /// calibration bound, and the counter's granularity if it counts in steps.
    #[inline]
    pub fn ticks_for_at_least(&self, span: Nanos) -> i64 {
        self.scale.ticks_for_at_least(span, self.calibration.bound).saturating_add(self.lag)
    }

    /// The counter value, without guard, at which `span` has passed since `from`.
    pub(crate) fn ticks_after(&self, from: Ticks, span: Nanos) -> Ticks {
        from.plus(self.scale.ticks_for_at_least(span, 0))
    }

    /// The machine below.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// The source of time.
    pub fn source(&self) -> TimeSource {
        self.source
    }

    /// The present epoch.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The rate and its bound.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// The foundation of the rate, to hand it to another process: see [`resume`](Self::resume).
    pub fn anchors(&self) -> Anchors {
        Anchors { source: self.source, first: self.first, last: self.last }
    }

    /// The verdict on the counter.
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// The cost of the first calibration.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// The assumed largest distance between the counters of two CPUs.
    pub fn skew(&self) -> Nanos {
        self.skew
    }

    /// The same time base with a measured bound on the skew between CPUs (see [`Skew`](crate::Skew)).
    #[must_use]
    pub fn with_skew(self, skew: Nanos) -> Self {
        Self { skew, ..self }
    }

    /// The largest distance of an instant of this time base from the kernel's clock. It is the sum of the offset at the
    /// latest comparison, half a bracket, the step of a counter that has one, and the drift that the rate's bound
    /// allows since.
    pub fn offset_bound(&self, at: Instant) -> Nanos {
        let age = (at.as_monotonic() - self.last.monotonic.clock).abs();
        let half_width = Nanos::new(self.scale.nanos_in(self.last.monotonic.half_width() + self.lag))
            + self.machine.clock_step() * 2;
        let offset = if self.offset.is_negative() { -self.offset } else { self.offset };
        offset + half_width + self.drift_in(age)
    }

    /// The drift that the rate's bound allows over a span.
    pub fn drift_in(&self, span: Nanos) -> Nanos {
        Nanos::new((span.count().abs() as f64 * self.calibration.bound_ppm * 1e-6).ceil() as i64)
    }

    /// The shortest pause between two looks at the source that counts as a gap: [`GAP_LEAST`], or more if a look itself
    /// takes that long.
    #[inline(always)]
    pub(crate) fn gap_least(&self) -> Nanos {
        self.gap.1
    }

    /// The shortest gap in ticks.
    #[inline(always)]
    pub(crate) fn gap_ticks(&self) -> i64 {
        self.gap.0
    }

    /// Whether a gap of this length looks like the stall of a thread that has used up its share of real time.
    pub(crate) fn is_like_a_stall(&self, length: Nanos) -> bool {
        self.stall.is_some_and(|stall| {
            let (length, stall) = (length.count(), stall.count());
            length > stall / 5 * 4 && length < stall / 5 * 6
        })
    }

    /// Our scale minus the kernel's clock when they were last compared.
    pub(crate) fn offset(&self) -> Nanos {
        self.offset
    }

    /// The thread's CPU, if the machine can determine it without a system call.
    #[inline(always)]
    pub(crate) fn cpu(&self) -> Option<Cpu> {
        self.machine.cpu()
    }
}

#[cfg(test)]
mod tests {
    use hairspring_machine::Sim;
    use hairspring_machine::sim::{Disturbance, Script};

    use super::*;

    /// A time base, and its successor in a new epoch, after a move to a CPU whose counter is that far from the first.
    fn successor_at(offset: i64) -> (Timebase<Sim>, Timebase<Sim>) {
        let sim = Sim::new(Script { cpu_offsets: vec![0, offset], ..Script::default() });
        let timebase = Timebase::calibrate(sim.clone()).expect("it advances");
        sim.disturb(sim.true_time(), Disturbance::Migrate(Cpu(1)));
        let successor = timebase.begin_epoch();
        (timebase, successor)
    }

    /// As of a counter that begins anew.
    #[test]
    fn a_new_epoch_is_another_one_even_if_it_begins_at_the_same_tick() {
        let begins = |timebase: &Timebase<Sim>| timebase.first.monotonic.before;
        let (timebase, successor) = successor_at(0);
        assert_eq!(successor.epoch(), Epoch::beginning_at(begins(&successor)));
        let (timebase, successor) = successor_at(begins(&timebase).since(begins(&successor)));
        assert_eq!(begins(&successor), begins(&timebase));
        assert_ne!(successor.epoch(), timebase.epoch());
    }

    /// The simulated kernel stalls a real-time thread for 50 ms.
    #[test]
    fn a_gap_is_like_a_stall_if_it_is_less_than_a_fifth_away_from_its_length() {
        let timebase = Timebase::calibrate(Sim::new(Script::default())).expect("it advances");
        for (length, like) in
            [(40_000_000, false), (40_000_001, true), (50_000_000, true), (59_999_999, true), (60_000_000, false)]
        {
            assert_eq!(timebase.is_like_a_stall(Nanos::new(length)), like, "{length} ns");
        }
    }
}
