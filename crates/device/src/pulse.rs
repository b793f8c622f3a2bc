//! [`Pulse`]: a line that goes up, and comes down no earlier than after its width; and trains of pulses at absolute
//! times.
//!
//! **Why it is never too short.** The width counts from a reading of the clock after the first write, and the second
//! write follows a reading that shows that the width has passed. The line is up from some moment within the first write
//! to some moment within the second; so it is up for the time between the two readings at least, and for the time from
//! before the first write until after the second at most. The report has both bounds, and flags a difference that its
//! writes do not explain: then the thread was delayed, and whether the line was up meanwhile is unknown.
//!
//! **A train keeps to its times.** Pulse *n* of a train is due at `start + n · period`, whatever happened to earlier
//! ones. A pulse that is late by more than a period is skipped and counted, so that two pulses never run together.
//!
//! **A stop during a train** lets a pulse that is up finish, if it is at most [`CUT_LEAST`] wide. A wider one is cut
//! short: the line comes down within some 0.1 s, and the report of that pulse is not among the others.
//!
//! **Real-time behaviour.** Widths up to [`POLL_MOST`] are polled, longer ones slept except for their end, as are the
//! pauses of a train. Nothing is allocated between the two writes of a pulse.

use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::{Machine, Nanos, Ticks};
use hairspring_time::{DelayError, LongDelay, Report, Timebase, Verdict};

use crate::device::{Device, DeviceError, Lines, WRITE_SPREAD};
use crate::lock::Lend;

/// Widths up to this are polled.
pub const POLL_MOST: Nanos = Nanos::from_micros(200);
/// Pulses wider than this are cut short by a stop.
pub const CUT_LEAST: Nanos = Nanos::from_millis(100);

/// The report of a pulse: its measured width and its disturbances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PulseReport {
    /// The width that was requested.
    pub width: Nanos,
    /// Lower bound of the time that the line was up.
    pub at_least: Nanos,
    /// Upper bound of that time.
    pub at_most: Nanos,
    /// Lateness of its beginning; zero for a pulse without a due time.
    pub late: Nanos,
    /// Disturbances of its delay.
    pub verdict: Verdict,
    /// The part of `at_most` that neither the delay, nor two writes like the shorter one, nor the error of the time
    /// base explains.
    pub unexplained: Nanos,
}

impl PulseReport {
    /// Whether something disturbed the pulse while the line was up, or may have.
    pub fn is_disturbed(&self) -> bool {
        !self.verdict.is_clean() || self.unexplained > WRITE_SPREAD
    }
}

/// A pulse that was cut short: the line came down before the width was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutPulse {
    /// The width that was requested.
    pub width: Nanos,
    /// Lower bound of the time that the line was up.
    pub at_least: Nanos,
    /// Upper bound of that time.
    pub at_most: Nanos,
}

/// Why a pulse failed. The device was set to its safe state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PulseError {
    /// The device.
    Device(DeviceError),
    /// The delay.
    Delay(DelayError),
    /// A train makes no sense: its period is not longer than its pulses.
    Period(Nanos),
    /// A stop was requested while the line was up.
    CutShort(CutPulse),
}

impl std::fmt::Display for PulseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Device(error) => error.fmt(f),
            Self::Delay(error) => write!(f, "failed to time a pulse: {error}"),
            Self::Period(period) => {
                write!(f, "a period of {period} is not longer than the pulses: choose a longer one")
            }
            Self::CutShort(CutPulse { width, at_most, .. }) => {
                write!(
                    f,
                    "failed to make a pulse of {width}: it was told to stop, and cut short after {at_most} at most"
                )
            }
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
    /// Shortest time for which they are up.
    pub width: Nanos,
}

/// The report of a train of pulses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Train {
    /// Every pulse that was made, in order.
    pub pulses: Vec<PulseReport>,
    /// Pulses skipped because their time had passed.
    pub left_out: u64,
    /// Whether it was stopped before its end.
    pub stopped: bool,
    /// The pulse that was cut short by that.
    pub cut_short: Option<CutPulse>,
}

/// The delay for a width that is too long to be polled. Make it before the line goes up: it takes some milliseconds to
/// measure how late the kernel wakes this thread.
pub fn delay_for<'t, M: Machine>(
    width: Nanos,
    timebase: &'t Timebase<M>,
    stop: &'t AtomicBool,
) -> Option<LongDelay<'t, M>> {
    match width {
        _ if width > CUT_LEAST => Some(LongDelay::new(timebase).cancelled_by(stop)),
        _ if width > POLL_MOST => Some(LongDelay::new(timebase)),
        _ => None,
    }
}

impl Pulse {
    /// Makes one pulse now. Blocks for its width.
    ///
    /// # Errors
    /// The device or the delay fails; then the device is set to its safe state. If a line is no output of the device,
    /// no line is changed.
    pub fn fire<M: Machine>(&self, device: &mut dyn Device, timebase: &Timebase<M>) -> Result<PulseReport, PulseError> {
        // Make it before the line is up: it takes some milliseconds to measure how late the kernel wakes this thread.
        let mut long = (self.width > POLL_MOST).then(|| LongDelay::new(timebase));
        self.fire_with(device, timebase, long.as_mut())
    }

    /// As [`fire`](Self::fire), with a delay made in advance, for widths above [`POLL_MOST`]: so the line goes up at
    /// once. Without one the width is polled, up to the longest allowed polling. A flag that cancels it cuts the pulse
    /// short.
    ///
    /// # Errors
    /// As there; it was cut short.
    pub fn fire_with<M: Machine>(
        &self,
        device: &mut dyn Device,
        timebase: &Timebase<M>,
        long: Option<&mut LongDelay<'_, M>>,
    ) -> Result<PulseReport, PulseError> {
        device.check_outputs(self.lines)?;
        let made = self.up_and_down(device, timebase, long, Nanos::ZERO);
        if made.is_err() {
            // Keep the first error: it is more useful than a second one.
            drop(device.make_safe());
        }
        made
    }

    /// Makes `count` pulses, the first at once, the others at whole periods after it. Blocks until the last, or until
    /// `stop` is set; a pulse that is up then and not wider than [`CUT_LEAST`] is finished first. A shared device is
    /// locked for each pulse separately.
    ///
    /// # Errors
    /// As [`fire`](Self::fire); a period that is not longer than the width.
    pub fn train<M: Machine>(
        &self,
        count: u64,
        period: Nanos,
        device: &mut impl Lend,
        timebase: &Timebase<M>,
        stop: &AtomicBool,
    ) -> Result<Train, PulseError> {
        if period <= self.width {
            return Err(PulseError::Period(period));
        }
        // `None` after a stop while another owner had the device: that shows below.
        device.lend(|device| device.check_outputs(self.lines))?.unwrap_or(Ok(()))?;
        let mut pause = LongDelay::new(timebase).cancelled_by(stop);
        let mut long = delay_for(self.width, timebase, stop);
        let most = usize::try_from(count).unwrap_or(usize::MAX).min(1 << 24);
        let mut train = Train { pulses: Vec::with_capacity(most), ..Train::default() };
        let start = timebase.now_ordered();
        for number in 0..count {
            // Relaxed: a plain flag.
            if stop.load(Ordering::Relaxed) {
                train.stopped = true;
                break;
            }
            let due = start + Nanos::new(period.count().saturating_mul(i64::try_from(number).unwrap_or(i64::MAX)));
            let waited = pause.delay_until(due);
            let made = waited.map_err(PulseError::from).and_then(|_| {
                let made = device.lend(|device| {
                    let late = timebase.now_ordered().since(due).map_err(|_| DelayError::OtherEpoch)?;
                    if late > period {
                        return Ok(None);
                    }
                    self.up_and_down(device, timebase, long.as_mut(), late).map(Some)
                });
                // `None` after a stop while another owner had the device.
                made?.unwrap_or(Err(DelayError::Cancelled(Nanos::ZERO).into()))
            });
            match made {
                Ok(Some(report)) => train.pulses.push(report),
                Ok(None) => train.left_out += 1,
                Err(PulseError::Delay(DelayError::Cancelled(_))) => train.stopped = true,
                Err(PulseError::CutShort(cut)) => {
                    train.stopped = true;
                    train.cut_short = Some(cut);
                }
                Err(error) => {
                    drop(device.lend(|device| device.make_safe()));
                    return Err(error);
                }
            }
            if train.stopped {
                break;
            }
        }
        Ok(train)
    }

    /// Raises and lowers the line. The line comes down in any case, unless the device fails.
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
        let waited = match long {
            Some(long) => long.delay(self.width),
            None => timebase.delay(self.width),
        };
        let over = timebase.stamp_ordered();
        let written = device.write(self.lines, Lines(0));
        let after = timebase.stamp_ordered();
        written?;
        let span = |from: Ticks, to: Ticks| timebase.nanos(to.since(from));
        let (width, at_least, at_most) = (self.width, span(up, over), span(before, after));
        match waited {
            Ok(Report { late: over_late, verdict, .. }) => {
                let write = span(before, up).min(span(over, after));
                let explained = width + over_late + write + write + timebase.drift_in(width);
                let unexplained = (at_most - explained).max(Nanos::ZERO);
                Ok(PulseReport { width, at_least, at_most, late, verdict, unexplained })
            }
            Err(DelayError::Cancelled(_)) => Err(PulseError::CutShort(CutPulse { width, at_least, at_most })),
            Err(error) => Err(error.into()),
        }
    }
}
