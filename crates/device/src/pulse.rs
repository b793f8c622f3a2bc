//! [`Pulse`]: a line that goes up, and comes down not before its width has passed; and trains of pulses at absolute times.
//!
//! **Why it is never too short.** The width is waited out from a reading of the clock that follows the first write, and the
//! second write follows a reading of the clock that shows it to have passed. The line is up from some moment within the first
//! write to some moment within the second; so it is up for the time between the two readings at least, and for the time from
//! before the first write until after the second at most. The report has both.
//!
//! **A train keeps to its times.** Pulse *n* of a train is due at `start + n · period`, whatever became of those before it. What
//! comes too late by more than a period is left out and counted, so that two pulses never run together.
//!
//! **Real-time behaviour.** Widths up to [`POLL_MOST`] are polled, longer ones slept out but for their end; the pause of a train,
//! too. Nothing is allocated between the two writes of a pulse.

use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::{Machine, Nanos};
use hairspring_time::{DelayError, LongDelay, Timebase, Verdict};

use crate::device::{Device, DeviceError, Lines};

/// Widths up to this are polled.
pub const POLL_MOST: Nanos = Nanos::from_micros(200);

/// What became of a pulse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PulseReport {
    /// What was asked for.
    pub width: Nanos,
    /// The line was up for at least so long.
    pub at_least: Nanos,
    /// And at most so long.
    pub at_most: Nanos,
    /// How late it began; zero for a pulse that had no time.
    pub late: Nanos,
    /// What disturbed it while it was up.
    pub verdict: Verdict,
}

/// Why a pulse did not come to its end. The device was told to go to its safe state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PulseError {
    /// The device.
    Device(DeviceError),
    /// The delay.
    Delay(DelayError),
    /// A train makes no sense: its period is not longer than its pulses.
    Period(Nanos),
}

impl std::fmt::Display for PulseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Device(error) => error.fmt(f),
            Self::Delay(error) => write!(f, "failed to wait out a pulse: {error}"),
            Self::Period(period) => write!(f, "a period of {period} is no longer than the pulses: choose a longer one"),
        }
    }
}

impl std::error::Error for PulseError {}

impl From<DeviceError> for PulseError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

impl From<DelayError> for PulseError {
    fn from(error: DelayError) -> Self {
        Self::Delay(error)
    }
}

/// A pulse of one width on some lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// The lines that go up together.
    pub lines: Lines,
    /// How long they are up at least.
    pub width: Nanos,
}

/// What became of a train.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Train {
    /// Every pulse that was made, in order.
    pub pulses: Vec<PulseReport>,
    /// Pulses that were left out because their time had passed.
    pub left_out: u64,
    /// Whether it was stopped before its end.
    pub stopped: bool,
}

impl Pulse {
    /// Makes one pulse now. Blocks for its width.
    ///
    /// # Errors
    /// The device or the delay fails; then the device is told to go to its safe state.
    pub fn fire<M: Machine>(&self, device: &mut dyn Device, timebase: &Timebase<M>) -> Result<PulseReport, PulseError> {
        // Before the line is up, for it takes some milliseconds to learn how late the kernel wakes this thread.
        let mut long = (self.width > POLL_MOST).then(|| LongDelay::new(timebase));
        self.fire_with(device, timebase, long.as_mut())
    }

    /// As [`fire`](Self::fire), with a delay that was made before, for widths above [`POLL_MOST`]: so nothing lies before the line goes
    /// up. Without one the width is polled, as far as may be polled.
    ///
    /// # Errors
    /// As there.
    pub fn fire_with<M: Machine>(
        &self,
        device: &mut dyn Device,
        timebase: &Timebase<M>,
        long: Option<&mut LongDelay<'_, M>>,
    ) -> Result<PulseReport, PulseError> {
        let made = self.up_and_down(device, timebase, long, Nanos::ZERO);
        if made.is_err() {
            // The first error tells more than a second one would.
            drop(device.make_safe());
        }
        made
    }

    /// Makes `count` pulses, the first at once, the others at whole periods after it. Blocks until the last, or until `stop` is
    /// set, but for the end of a pulse that is up.
    ///
    /// # Errors
    /// As [`fire`](Self::fire); a period that is not longer than the width.
    pub fn train<M: Machine>(
        &self,
        count: u64,
        period: Nanos,
        device: &mut dyn Device,
        timebase: &Timebase<M>,
        stop: &AtomicBool,
    ) -> Result<Train, PulseError> {
        if period <= self.width {
            return Err(PulseError::Period(period));
        }
        let mut pause = LongDelay::new(timebase).cancelled_by(stop);
        // A pulse that is up is not cancelled.
        let mut long = (self.width > POLL_MOST).then(|| LongDelay::new(timebase));
        let most = usize::try_from(count).unwrap_or(usize::MAX).min(1 << 24);
        let mut train = Train { pulses: Vec::with_capacity(most), ..Train::default() };
        let start = timebase.now_ordered();
        let mut next = 0_u64;
        while next < count {
            // Relaxed: a plain flag.
            if stop.load(Ordering::Relaxed) {
                train.stopped = true;
                break;
            }
            let due = start + Nanos::new(period.count().saturating_mul(i64::try_from(next).unwrap_or(i64::MAX)));
            let waited = pause.delay_until(due);
            let made = waited.map_err(PulseError::from).and_then(|_| {
                let late = timebase.now_ordered().since(due).map_err(|_| PulseError::Delay(DelayError::OtherEpoch))?;
                if late > period {
                    return Ok(None);
                }
                self.up_and_down(device, timebase, long.as_mut(), late).map(Some)
            });
            match made {
                Ok(Some(report)) => train.pulses.push(report),
                Ok(None) => train.left_out += 1,
                Err(PulseError::Delay(DelayError::Cancelled(_))) => {
                    train.stopped = true;
                    break;
                }
                Err(error) => {
                    drop(device.make_safe());
                    return Err(error);
                }
            }
            next += 1;
        }
        Ok(train)
    }

    fn up_and_down<M: Machine>(
        &self,
        device: &mut dyn Device,
        timebase: &Timebase<M>,
        long: Option<&mut LongDelay<'_, M>>,
        late: Nanos,
    ) -> Result<PulseReport, PulseError> {
        let before = timebase.stamp_ordered();
        device.write(self.lines, self.lines)?;
        let up = timebase.stamp_ordered();
        let report = match long {
            Some(long) => long.delay(self.width)?,
            None => timebase.delay(self.width)?,
        };
        let over = timebase.stamp_ordered();
        device.write(self.lines, Lines(0))?;
        let after = timebase.stamp_ordered();
        let span = |from: hairspring_machine::Ticks, to: hairspring_machine::Ticks| timebase.nanos(to.since(from));
        Ok(PulseReport {
            width: self.width,
            at_least: span(up, over),
            at_most: span(before, after),
            late,
            verdict: report.verdict,
        })
    }
}
