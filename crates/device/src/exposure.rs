//! [`Exposure`]: a shutter that is open for an exact time, with an instrument's reading in the middle that does not
//! lengthen it.
//!
//! The scenario of the test stands for which the delays were made: open the shutter, wait half the exposure, read the
//! light's power from an instrument, measure how long that took, wait exactly for the rest, close.
//!
//! ```text
//!     before ─ write ─ up ──── first half ──── reading ──── rest ──── over ─ write ─ after
//!       │                │◄──────────── measured_exp_time ───────────────►│               │
//!       │                │◄──────────────── at least ────────────────────►│               │
//!       │◄────────────────────────────────── at most ────────────────────────────────────►│
//! ```
//!
//! **Why it is never too short.** The shutter is open from some moment within the first write to some moment within the
//! second. All waiting is for absolute times that count from `up`, which is read after the first write; the second
//! write follows a reading that is not before `up` plus the exposure. Reading and computing use up part of the rest;
//! they do not add to it.
//!
//! The times are those of the time base, which is the kernel's clock within its bound: 1 ppm of 10 s is 10 µs, so
//! calibrate for a second before long exposures.
//!
//! **Disturbances are reported.** The delay reports its own disturbances; stamps show a pause between its return and
//! the closing write; and of two writes of one device the longer one shows a disturbance. The moment within a write at
//! which the shutter moved is unknown, so that counts as a disturbance of unknown cause. Lock the memory for a long
//! exposure: kernels reclaim pages that were not touched for seconds, and the closing write would wait for them.
//!
//! **The closing write is rehearsed.** During the final polling, the open state is written again, which changes no
//! line. So the code and data of the closing write are in the caches, and in the memory of a virtual machine's host,
//! which a guest cannot lock. The rehearsal is omitted for exposures below a second, and if the opening write took much
//! of the time left.
//!
//! **Other ends.** If the reading takes longer than the rest, the shutter closes at once, and the report states how
//! late it was. If a flag stops the delay, the shutter closes at once, and the exposure is shorter than requested. If
//! the instrument fails, the shutter closes on time, and the report has the error.
//!
//! **The shutter is not left open.** A panic in the reading, an error of the device or of the delay: in each case the
//! closing write is made, and if that fails the device is set to its safe state. `SIGKILL` is the exception: it leaves
//! the shutter open.
//!
//! **Which way is open.** Closed is the safe state of the device's lines, open is its opposite.
//!
//! **Real-time behaviour.** As [`LongDelay`]: asleep except near the ends. Only the reading allocates.

use hairspring_machine::{Machine, Nanos, Ticks};
use hairspring_time::{Cause, DelayError, GAP_LEAST, LongDelay, REQUEST_MOST, Report, Timebase, Verdict};

use crate::device::{Device, DeviceError, Lines, WRITE_SPREAD};

/// The shortest exposure whose closing write is rehearsed: in less time the caches stay warm.
const REHEARSED_LEAST: Nanos = Nanos::from_secs(1);
/// The time needed for the rehearsal beside twice the duration of the opening write: a cold write takes about 100 µs
/// more.
const REHEARSAL_LEAST: Nanos = Nanos::from_micros(200);

/// A request for an exposure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exposure {
    /// The lines of the shutter.
    pub lines: Lines,
    /// Shortest time for which it is open.
    pub time: Nanos,
}

/// The parts of the time from before the opening write until after the closing one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The write that opens.
    pub open_write: Nanos,
    /// From its end until half the exposure is over.
    pub first_half: Nanos,
    /// The reading of the instrument.
    pub reading: Nanos,
    /// From its end until just before the closing write.
    pub rest: Nanos,
    /// The write that closes.
    pub close_write: Nanos,
}

impl Parts {
    /// From the end of the opening write to the beginning of the closing one.
    pub fn open(&self) -> Nanos {
        self.first_half + self.reading + self.rest
    }

    /// The total.
    pub fn whole(&self) -> Nanos {
        self.open_write + self.open() + self.close_write
    }
}

/// How an exposure ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExposureEnd {
    /// It ended on time.
    OnTime,
    /// At the end of its reading: late by this much.
    ReadingTooLong(Nanos),
    /// Stopped, before its time.
    Stopped,
}

/// The report of an exposure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExposureReport<R> {
    /// The time that was requested.
    pub asked: Nanos,
    /// From the end of the opening write to the beginning of the closing one; the log's name for it. A lower bound of
    /// the time that the shutter was open. The upper bound is the sum of all parts.
    pub measured_exp_time: Nanos,
    /// Its parts.
    pub parts: Parts,
    /// How it ended.
    pub end: ExposureEnd,
    /// The instrument's answer or error; `None` if the exposure was stopped before.
    pub reading: Option<Result<R, DeviceError>>,
    /// The delay for the rest, if a rest was left.
    pub delay: Option<Report>,
}

impl<R> ExposureReport<R> {
    /// Lower bound of the time that the shutter was open.
    pub fn at_least(&self) -> Nanos {
        self.measured_exp_time
    }

    /// Upper bound of that time.
    pub fn at_most(&self) -> Nanos {
        self.parts.whole()
    }

    /// Excess over the requested time; negative only if the exposure was stopped, or the delay has a lead.
    pub fn late(&self) -> Nanos {
        self.measured_exp_time - self.asked
    }

    /// Disturbances of the end of the exposure, on which its length depends.
    pub fn verdict(&self) -> Verdict {
        self.delay.map(|delay| delay.verdict).unwrap_or_default()
    }

    /// From the last reading of the delay to the beginning of the closing write. The program does no work in between,
    /// so a time longer than [`GAP_LEAST`] is a disturbance of unknown cause.
    pub fn before_close(&self) -> Nanos {
        self.delay.map_or(Nanos::ZERO, |delay| self.late() - delay.late)
    }

    /// How much longer one of the writes took than the other, which shows the normal duration of a write. The shutter
    /// may have been open for that long in addition to `late`.
    pub(crate) fn in_writes(&self) -> Nanos {
        let (open, close) = (self.parts.open_write, self.parts.close_write);
        open.max(close) - open.min(close)
    }

    /// Whether something disturbed an end of the exposure, or may have. An undisturbed one exceeds the requested time
    /// by no more than [`WRITE_SPREAD`] and two writes.
    pub fn is_disturbed(&self) -> bool {
        let late = if self.end == ExposureEnd::OnTime { self.late().max(Nanos::ZERO) } else { Nanos::ZERO };
        !self.verdict().is_clean() || self.before_close() > GAP_LEAST || late + self.in_writes() > WRITE_SPREAD
    }

    /// The end in one word if the exposure did not end on time, else the verdict.
    pub fn name(&self) -> &'static str {
        match self.end {
            ExposureEnd::OnTime if self.verdict().is_clean() && self.is_disturbed() => Cause::Unknown.name(),
            ExposureEnd::OnTime => self.verdict().name(),
            ExposureEnd::ReadingTooLong(_) => "reading_too_long",
            ExposureEnd::Stopped => "stopped",
        }
    }
}

/// Why there was no exposure, or why its end is unknown. The device was set to its safe state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExposureError {
    /// The device.
    Device(DeviceError),
    /// The delay.
    Delay(DelayError),
    /// The time is zero or negative.
    Time(Nanos),
    /// The request has no line for a shutter.
    NoLines,
}

impl std::fmt::Display for ExposureError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Device(error) => error.fmt(f),
            Self::Delay(error) => write!(f, "failed to time an exposure: {error}"),
            Self::Time(time) => write!(f, "an exposure cannot last {time}: write a time like 10s"),
            Self::NoLines => f.write_str("an exposure needs a line for its shutter: name one"),
        }
    }
}

impl std::error::Error for ExposureError {}

impl From<DeviceError> for ExposureError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

impl From<DelayError> for ExposureError {
    fn from(error: DelayError) -> Self {
        Self::Delay(error)
    }
}

/// An open shutter, closed when this is dropped.
struct Open<'d> {
    device: &'d mut dyn Device,
    lines: Lines,
    closed: Lines,
    is_open: bool,
}

impl<'d> Open<'d> {
    fn new(device: &'d mut dyn Device, lines: Lines) -> Self {
        let closed = Lines(device.safe_state().0 & lines.0);
        Self { device, lines, closed, is_open: false }
    }

    fn open(&mut self) -> Result<(), DeviceError> {
        // Before the write, because a failed write may have opened the shutter nevertheless.
        self.is_open = true;
        self.device.write(self.lines, Lines(!self.closed.0 & self.lines.0))
    }

    fn close(&mut self) -> Result<(), DeviceError> {
        self.device.write(self.lines, self.closed)?;
        self.is_open = false;
        Ok(())
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.is_open && self.close().is_err() {
            // This error cannot be reported; the first error, or the panic, is more useful.
            drop(self.device.make_safe());
        }
    }
}

impl Exposure {
    /// Opens the shutter, waits half the time, takes the reading, waits out the rest, closes. Blocks for the exposure.
    ///
    /// `delay` learns from exposure to exposure; a flag that cancels it stops the exposure. `reading` receives the time
    /// that is left, so that it can give up before the shutter must close.
    ///
    /// # Errors
    /// The device or the delay fails, or the request is invalid. The shutter is closed as far as the device allows.
    ///
    /// # Panics
    /// If the reading does; the shutter is closed first.
    pub fn make<M: Machine, R>(
        &self,
        device: &mut dyn Device,
        timebase: &Timebase<M>,
        delay: &mut LongDelay<'_, M>,
        reading: impl FnOnce(Nanos) -> Result<R, DeviceError>,
    ) -> Result<ExposureReport<R>, ExposureError> {
        if self.time <= Nanos::ZERO {
            return Err(ExposureError::Time(self.time));
        }
        if self.time > REQUEST_MOST {
            return Err(DelayError::Absurd(self.time).into());
        }
        if self.lines == Lines(0) {
            return Err(ExposureError::NoLines);
        }
        device.check_outputs(self.lines)?;
        let mut shutter = Open::new(device, self.lines);
        let before = timebase.stamp_ordered();
        shutter.open()?;
        let up = timebase.stamp_ordered();
        let began = timebase.instant(up);
        let (half, end) = (began + Nanos::new(self.time.count() / 2), began + self.time);

        let first = delay.delay_until(half);
        let (from, mut to) = (timebase.stamp_ordered(), timebase.stamp_ordered());
        let (mut read, mut last) = (None, first);
        if first.is_ok() {
            read = Some(reading(end.since(timebase.instant(from)).unwrap_or(Nanos::ZERO)));
            to = timebase.stamp_ordered();
            let opening = timebase.nanos(up.since(before));
            last = delay.delay_until_prepared(end, |left| {
                if self.time >= REHEARSED_LEAST && left > REHEARSAL_LEAST + opening * 2 {
                    // The shutter is already open; an error here occurs again when it closes.
                    drop(shutter.open());
                }
            });
        }
        // Immediately: any code in between would lengthen the exposure by its cache misses.
        let over = timebase.stamp_ordered();
        let closed = shutter.close();
        let after = timebase.stamp_ordered();
        closed?;

        let (ended, report) = match last {
            // Do not wait for a time that has passed.
            Ok(none) if none.late > Nanos::ZERO && none.slept + none.polled == Nanos::ZERO => {
                (ExposureEnd::ReadingTooLong(none.late), None)
            }
            Ok(waited) => (ExposureEnd::OnTime, Some(waited)),
            Err(DelayError::Cancelled(_)) => (ExposureEnd::Stopped, None),
            Err(error) => return Err(error.into()),
        };
        let parts = self.parts(timebase, [before, up, from, to, over, after]);
        Ok(ExposureReport {
            asked: self.time,
            measured_exp_time: parts.open(),
            parts,
            end: ended,
            reading: read,
            delay: report,
        })
    }

    /// Differences of instants, not of ticks: those add up to the nanosecond.
    fn parts<M: Machine>(&self, timebase: &Timebase<M>, stamps: [Ticks; 6]) -> Parts {
        let [before, up, from, to, over, after] = stamps.map(|stamp| timebase.instant(stamp).as_monotonic());
        Parts {
            open_write: up - before,
            first_half: from - up,
            reading: to - from,
            rest: over - to,
            close_write: after - over,
        }
    }
}
